/* SPDX-License-Identifier: Apache-2.0 */
/* cli/model.c - what the commands share that ask a model of a folder: numbers out of options, and
 * signals that end an answer. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static volatile sig_atomic_t interrupts, signalled;

/* The first ends what is going on; the second does not wait for that. */
static void interrupted(int number)
{
    signalled = number;
    interrupts = interrupts + 1;
    if (interrupts > 1) _exit(128 + number);
}

const volatile sig_atomic_t *hr_cli_catch_signals(void)
{
    struct sigaction action = { .sa_handler = interrupted, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &interrupts;
}

int hr_cli_signalled(void)
{
    return 128 + signalled;
}

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
    if (!(wide >= 0 && wide <= 1e15) || wide != (double)(int64_t)wide)
        return hr_fail(err, HR_USAGE, "--%s %.40s is not a whole number from 0 on",
                       hr_cli_option_at((int32_t)id)->name, arguments->values[id]);
    *value = (int64_t)wide;
    return HR_OK;
}

hr_status hr_cli_model_words(const hr_cli_arguments *arguments, int32_t *numbers, bool *is_bytes,
                             int64_t *bytes, hr_error *err)
{
    const char *format = arguments->values[HR_OPTION_FORMAT];
    const char *tokenizer = arguments->values[HR_OPTION_TOKENIZER];
    const char *budget = arguments->values[HR_OPTION_BUDGET];
    if (format && strcmp(format, "fp32") != 0 && strcmp(format, "bf16") != 0)
        return hr_fail(err, HR_USAGE, "--format %.40s is none of fp32, bf16", format);
    if (tokenizer && strcmp(tokenizer, "bytes") != 0)
        return hr_fail(err, HR_USAGE, "--tokenizer %.40s is not known; there is bytes", tokenizer);
    *numbers = format && !strcmp(format, "bf16") ? HR_FORMAT_BF16 : HR_FORMAT_FP32;
    *is_bytes = tokenizer != NULL;
    if (!budget) return HR_OK;
    const hr_status status = hr_bytes_parse(budget, bytes, err);
    if (status == HR_OK && *bytes == 0)
        return hr_fail(err, HR_USAGE, "--budget %.40s is no room at all; give a size", budget);
    return status;
}
