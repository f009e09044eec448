/* SPDX-License-Identifier: Apache-2.0 */
/* cli/model.c - common code of the commands that run a model: options, and time and memory of the
 * run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define FORMAT_WORD(id, name) #name,

hr_status hr_cli_number(const hr_cli_arguments *arguments, hr_cli_option_id id, double *value,
                        hr_error *err)
{
    const char *text = arguments->values[id];
    char *end;
    if (!text) return HR_OK;
    *value = strtod(text, &end);
    if (end != text && !*end) return HR_OK;
    return hr_fail(err, HR_USAGE, "--%s %.40s is not a number", hr_cli_option_at((int32_t)id)->name,
                   text);
}

hr_status hr_cli_whole(const hr_cli_arguments *arguments, hr_cli_option_id id, int64_t *value,
                       hr_error *err)
{
    double wide = (double)*value;
    const hr_status status = hr_cli_number(arguments, id, &wide, err);
    if (status != HR_OK) return status;
    if (wide > 1e15)
        return hr_fail(err, HR_USAGE, "--%s %.40s is above 10^15",
                       hr_cli_option_at((int32_t)id)->name, arguments->values[id]);
    if (!(wide >= 0) || wide != (double)(int64_t)wide)
        return hr_fail(err, HR_USAGE, "--%s %.40s is not a non-negative integer",
                       hr_cli_option_at((int32_t)id)->name, arguments->values[id]);
    *value = (int64_t)wide;
    return HR_OK;
}

/* Reads --weights: the choices of the key model.weights. */
static hr_status read_weights(const char *given, int32_t *weights, hr_error *err)
{
    static const char *const names[] = { HR_WEIGHT_FORMAT_LIST(FORMAT_WORD) "auto" };
    for (int32_t i = 0; i <= HR_WEIGHTS_AUTO; i++)
        if (!strcmp(given, names[i])) {
            *weights = i;
            return HR_OK;
        }
    return hr_fail(err, HR_USAGE, "--weights takes compute, f16, bf16, f8_e4m3 or auto; got %.40s",
                   given);
}

static void print_note(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "%s\n", line);
}

hr_status hr_cli_model(const hr_cli_arguments *arguments, hr_infer_request *request, hr_error *err)
{
    const char *format = arguments->values[HR_OPTION_FORMAT];
    const char *tokenizer = arguments->values[HR_OPTION_TOKENIZER];
    const char *budget = arguments->values[HR_OPTION_BUDGET];
    const char *weights = arguments->values[HR_OPTION_WEIGHTS];
    const char *place = arguments->values[HR_OPTION_WEIGHTS_IN];
    if (format && strcmp(format, "fp32") != 0 && strcmp(format, "bf16") != 0)
        return hr_fail(err, HR_USAGE, "--dtype takes fp32 or bf16; got %.40s", format);
    if (place && strcmp(place, "memory") != 0 && strcmp(place, "file") != 0)
        return hr_fail(err, HR_USAGE, "--weights-in takes memory or file; got %.40s", place);
    *request = (hr_infer_request){
        .size = sizeof(hr_infer_request),
        .folder = arguments->operands[0],
        .tokenizer = tokenizer,
        .format = format && !strcmp(format, "bf16") ? HR_FORMAT_BF16 : HR_FORMAT_FP32,
        .place = place && !strcmp(place, "file") ? HR_PLACE_FILE : HR_PLACE_HOST,
        .note = print_note,
        .kernels = arguments->values[HR_OPTION_KERNELS],
        .interrupts = hr_cli_catch_signals(NULL)
    };
    hr_cli_warn_processor();
    request->npt_layers = arguments->values[HR_OPTION_NPT_LAYERS];
    request->adapters = hr_cli_repeated(arguments, HR_OPTION_ADAPTER, &request->adapter_count);
    hr_status status = hr_cli_whole(arguments, HR_OPTION_THREADS, &request->threads, err);
    if (status == HR_OK && weights) status = read_weights(weights, &request->weights, err);
    if (status == HR_OK && budget) status = hr_bytes_parse(budget, &request->budget, err);
    if (status == HR_OK && budget && request->budget == 0)
        return hr_fail(err, HR_USAGE, "--budget %.40s is zero; give a size", budget);
    return status;
}

void hr_cli_put_reads(FILE *file, int64_t bytes, double seconds, double waited)
{
    char size[HR_COUNT_BYTES];
    fprintf(file, "base   read %s of weights in %.1f s (%.0f MB/s), waited %.1f s for them\n",
            hr_size_print(bytes, size), seconds, 1e-6 * (double)bytes / fmax(seconds, 1e-9),
            waited);
}

void hr_cli_put_json_run(const hr_infer_result *r)
{
    printf("\"weight_bytes\": %lld, \"arena_bytes_planned\": %lld, \"arena_bytes_used\": %lld, "
           "\"process_bytes_planned\": %lld, \"process_bytes_measured\": %lld, "
           "\"clock\": { \"load_seconds\": %.6f",
           (long long)r->weight_bytes, (long long)r->arena_bytes_planned,
           (long long)r->arena_bytes_used, (long long)r->process_bytes_planned,
           (long long)r->process_bytes_measured, r->load_seconds);
}

void hr_cli_put_run(FILE *file, const hr_infer_result *r)
{
    char planned[64], measured[64];
    fprintf(file, "memory planned %s, measured %s\n",
            hr_bytes_print(r->process_bytes_planned, planned),
            hr_bytes_print(r->process_bytes_measured, measured));
    if (r->read_bytes)
        hr_cli_put_reads(file, r->read_bytes, r->read_seconds, r->read_waited_seconds);
}
