/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/weights.c - header, tensors, config: text by snprintf into the caller's buffer, since all
 * of it runs after the seal. */
#include "ckpt/weights.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/bf16.h"
#include "base/checked.h"
#include "base/writer.h"
#include "model/hf_config.h"

enum { ENTRY_BYTES = 256, CONFIG_BYTES = 4096 };

int64_t hr_weights_text_bytes(const hr_program *program)
{
    return hr_max(program->param_count * (int64_t)ENTRY_BYTES + ENTRY_BYTES, CONFIG_BYTES);
}

static int64_t elements_of(const hr_param *param)
{
    return param->dims[0] * hr_max(param->dims[1], 1);
}

static const char weights_name[] = "model.safetensors", config_name[] = "config.json";

hr_status hr_weights_check(const char *directory, hr_error *err)
{
    char path[PATH_MAX];
    hr_status status = hr_path_join(directory, weights_name, path, sizeof path, err);
    if (status == HR_OK) status = hr_file_check_place(path, err);
    if (status == HR_OK) status = hr_path_join(directory, config_name, path, sizeof path, err);
    return status == HR_OK ? hr_file_check_place(path, err) : status;
}

hr_status hr_weights_begin(hr_weights_out *out, const hr_program *program, const char *directory,
                           char *text, int64_t bytes, hr_error *err)
{
    enum { LENGTH_BYTES = 8, ALIGN = 64 };
    hr_writer w = { text + LENGTH_BYTES, bytes - LENGTH_BYTES };
    int64_t begin = 0;
    hr_put(&w, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        const int64_t first = param->dims[param->external_transposed ? 1 : 0];
        const int64_t second = param->dims[param->external_transposed ? 0 : 1];
        const int64_t end = begin + elements_of(param) * (int64_t)sizeof(float);
        hr_put(&w, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%lld", param->external_name,
               (long long)first);
        if (second) hr_put(&w, ",%lld", (long long)second);
        hr_put(&w, "],\"data_offsets\":[%lld,%lld]}", (long long)begin, (long long)end);
        begin = end;
    }
    hr_put(&w, "}");
    while ((w.used + LENGTH_BYTES) % ALIGN && !w.cut) hr_put(&w, " ");
    HR_ASSERT(!w.cut); /* sizes were asked for */
    for (int32_t i = 0; i < LENGTH_BYTES; i++) text[i] = (char)((uint64_t)w.used >> (8 * i));

    out->program = program;
    hr_status status = hr_file_begin(&out->file, directory, weights_name, err);
    if (status == HR_OK) status = hr_file_reserve(&out->file, LENGTH_BYTES + w.used + begin, err);
    if (status == HR_OK) status = hr_file_append(&out->file, text, w.used + LENGTH_BYTES, err);
    return status;
}

static float element(const void *values, hr_dtype dtype, int64_t index)
{
    return dtype == HR_F32 ? ((const float *)values)[index]
                           : hr_bf16_to_f32(((const hr_bf16 *)values)[index]);
}

/* One row of the file's matrix out of memory's layout. */
static void gather_row(const hr_param *param, const hr_tensor *tensor, const void *values,
                       int64_t row, float *out)
{
    const int64_t K = param->dims[0], N = hr_max(param->dims[1], 1);
    const hr_layout layout = (hr_layout)tensor->layout;
    const hr_dtype dtype = (hr_dtype)tensor->dtype;
    if (param->external_transposed)
        for (int64_t k = 0; k < K; k++)
            out[k] = element(values, dtype, hr_layout_index(layout, K, N, k, row));
    else
        for (int64_t n = 0; n < N; n++)
            out[n] = element(values, dtype, hr_layout_index(layout, K, N, row, n));
}

/* Without a branch, so that many elements are looked at a cycle. */
static bool all_finite(const float *values, int64_t count)
{
    bool finite = true;
    for (int64_t i = 0; i < count; i++) finite &= isfinite(values[i]) != 0;
    return finite;
}

static hr_status append(hr_weights_out *out, const hr_param *param, const float *values,
                        int64_t count, hr_error *err)
{
    if (all_finite(values, count))
        return hr_file_append(&out->file, values, count * (int64_t)sizeof *values, err);
    return hr_fail(err, HR_DIVERGED, "%s has elements that are not finite", param->external_name);
}

hr_status hr_weights_add(hr_weights_out *out, int32_t index, const void *master, void *staging,
                         int64_t staging_bytes, hr_error *err)
{
    const hr_param *param = &out->program->params[index];
    const hr_tensor *tensor = &out->program->tensors[param->master];
    if (tensor->layout == HR_ROWS && tensor->dtype == HR_F32)
        return append(out, param, master, elements_of(param), err);
    const int64_t rows = param->dims[param->external_transposed ? 1 : 0];
    const int64_t width = param->dims[param->external_transposed ? 0 : 1];
    const int64_t held = staging_bytes / (width * (int64_t)sizeof(float));
    HR_ASSERT(held > 0);
    for (int64_t row = 0; row < rows; row += held) {
        const int64_t count = hr_min(held, rows - row);
        for (int64_t i = 0; i < count; i++)
            gather_row(param, tensor, master, row + i, (float *)staging + i * width);
        const hr_status status = append(out, param, staging, count * width, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

/* The config goes first: weights never stand beside another model's. */
hr_status hr_weights_commit(hr_weights_out *out, const hr_config *config, const char *directory,
                            char *text, int64_t bytes, hr_error *err)
{
    hr_writer w = { text, bytes };
    hr_file_out file;
    hr_hf_config_write(config, &w);
    HR_ASSERT(!w.cut);
    hr_status status = hr_file_begin(&file, directory, config_name, err);
    if (status == HR_OK) status = hr_file_append(&file, text, w.used, err);
    if (status == HR_OK) status = hr_file_commit(&file, err);
    if (status == HR_OK) status = hr_file_commit(&out->file, err);
    return status;
}

void hr_weights_abort(hr_weights_out *out)
{
    hr_file_abort(&out->file);
}
