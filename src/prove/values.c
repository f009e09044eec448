/* SPDX-License-Identifier: Apache-2.0 */
/* prove/values.c - writes loaded weights to a file, and loads weights from it. */
#include "prove/values.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/e4m3.h"
#include "base/f16.h"
#include "base/file.h"
#include "base/path.h"
#include "base/residual.h"
#include "graph/weight_format.h"
#include "ops/host/host.h"
#include "ops/list.h"
#include "run/initialize.h"

enum { ELEMENTS = HR_TRACE_BUFFER_BYTES / sizeof(float) };

int64_t hr_values_bytes(int64_t params)
{
    return params * (int64_t)(3 * sizeof(int64_t)) + 128;
}

hr_status hr_values_open(hr_values *values, const char *directory, int64_t params, uint8_t *buffer,
                         hr_region *region, hr_error *err)
{
    char path[HR_PATH_BYTES + 16];
    *values = (hr_values){ .file = -1, .param_max = (int32_t)params, .buffer = buffer };
    values->offset = hr_region_take(region, params, sizeof *values->offset);
    values->dims = hr_region_take(region, params, sizeof *values->dims);
    if (!values->offset || !values->dims)
        return hr_fail(err, HR_FAILURE, "out of memory for %lld initial weights",
                       (long long)params);
    const hr_status status = hr_path_join(directory, "weights", path, sizeof path, err);
    if (status != HR_OK) return status;
    values->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (values->file >= 0 && unlink(path) == 0) return HR_OK;
    const int code = errno;
    hr_values_close(values);
    return hr_fail(err, HR_FAILURE, "%s: cannot be created: %s", path, hr_reason(code));
}

void hr_values_close(hr_values *values)
{
    hr_file_close(&values->file);
}

/* ---- writing */

static int64_t end_of(const hr_values *values)
{
    const int32_t last = values->count - 1;
    if (last < 0) return 0;
    return values->offset[last] +
           values->dims[last][0] * values->dims[last][1] * (int64_t)sizeof(float);
}

static hr_status write_at(const hr_values *values, int64_t offset, const float *elements,
                          int64_t count, hr_error *err)
{
    const uint8_t *bytes = (const uint8_t *)elements;
    int64_t done = 0;
    while (done < count * (int64_t)sizeof(float)) {
        const ssize_t wrote = pwrite(values->file, bytes + done,
                                     (size_t)(count * (int64_t)sizeof(float) - done),
                                     offset + done);
        if (wrote > 0) done += wrote;
        else if (wrote == 0 || errno != EINTR)
            return hr_fail(err, HR_FAILURE, "the initial weights cannot be written: %s",
                           hr_reason(errno));
    }
    return HR_OK;
}

static hr_status begin(hr_values *values, int64_t K, int64_t N, hr_error *err)
{
    if (values->count == values->param_max)
        return hr_fail(err, HR_FAILURE, "there is room for %d initial weights", values->param_max);
    values->offset[values->count] = end_of(values);
    values->dims[values->count][0] = K;
    values->dims[values->count][1] = N;
    values->count++;
    return HR_OK;
}

hr_status hr_values_append(hr_values *values, int64_t K, int64_t N, const float *elements,
                           int32_t *index, hr_error *err)
{
    const hr_status status = begin(values, K, N, err);
    if (status != HR_OK) return status;
    *index = values->count - 1;
    return write_at(values, values->offset[*index], elements, K * N, err);
}

/* A weight in memory. */
typedef struct {
    const hr_param *param;
    const void *memory;
    const float *scales;  /* null: none */
    hr_residual residual; /* of bf16 */
    hr_dtype dtype;
    hr_layout layout;
    int64_t K, N;
} weight;

static weight weight_of(const hr_executor *executor, int32_t index)
{
    const hr_program *program = executor->program;
    const hr_param *param = &program->params[index];
    const bool stored = param->format != HR_WEIGHTS_COMPUTE;
    const int32_t tensor = stored ? param->weight : param->master;
    const int32_t residual = hr_program_residual(program, index);
    return (weight){
        .param = param,
        .memory = hr_executor_address(executor, tensor),
        .scales = param->scales == HR_NONE ? NULL : hr_executor_address(executor, param->scales),
        .residual = hr_program_residual_at(
            program, residual == HR_NONE ? NULL : hr_executor_address(executor, residual)),
        .dtype = (hr_dtype)program->tensors[tensor].dtype,
        .layout = (hr_layout)program->tensors[tensor].layout,
        .K = param->dims[0],
        .N = hr_max(param->dims[1], 1)
    };
}

/* The scale of an element's block in the matrix of the file. */
static float scale_of(const weight *w, int64_t k, int64_t n)
{
    const hr_weight_format *format = hr_weight_format_of(w->param->format);
    const bool turned = w->param->external_transposed;
    const int64_t rows = turned ? w->N : w->K, columns = turned ? w->K : w->N;
    int64_t shape[2];
    if (!w->scales) return 1;
    hr_weight_scales_shape(format, rows, columns, shape);
    const int64_t row = (turned ? n : k) / format->block[0],
                  column = (turned ? k : n) / format->block[1];
    return w->scales[row * shape[1] + column];
}

static float element(const weight *w, int64_t k, int64_t n)
{
    const int64_t at = hr_layout_index(w->layout, w->K, w->N, k, n);
    switch (w->dtype) {
    case HR_F32: return ((const float *)w->memory)[at];
    case HR_BF16:
        if (w->residual.codes) return hr_residual_value(w->memory, w->residual, at);
        return hr_bf16_to_f32(((const hr_bf16 *)w->memory)[at]);
    case HR_F16: return hr_f16_to_f32(((const uint16_t *)w->memory)[at]);
    default: return hr_e4m3_to_f32(((const uint8_t *)w->memory)[at]) * scale_of(w, k, n);
    }
}

/* The weight of a step that loads one, of the parameter that is next; steps that load only a state
 * have none. */
hr_status hr_values_note(hr_values *values, const hr_executor *executor, int32_t s, hr_error *err)
{
    const hr_step *step = &executor->program->steps[s];
    const hr_host_attr *attr = (const hr_host_attr *)step->attr;
    float *buffer = (float *)values->buffer;
    int64_t filled = 0;
    if (step->op != HR_OP_initialize || attr->param != values->count) return HR_OK;
    const weight w = weight_of(executor, attr->param);
    hr_status status = begin(values, w.K, w.N, err);
    int64_t offset = status == HR_OK ? values->offset[attr->param] : 0;
    for (int64_t i = 0; i < w.K * w.N && status == HR_OK; i++) {
        buffer[filled++] = element(&w, i / w.N, i % w.N);
        if (filled < ELEMENTS && i + 1 < w.K * w.N) continue;
        status = write_at(values, offset, buffer, filled, err);
        offset += filled * (int64_t)sizeof(float);
        filled = 0;
    }
    return status;
}

/* ---- reading */

hr_status hr_values_read(const hr_values *values, int32_t index, int64_t row, int64_t rows,
                         float *elements, hr_error *err)
{
    const int64_t N = values->dims[index][1], width = N * (int64_t)sizeof(float);
    return hr_file_read(values->file, "the initial weights", values->offset[index] + row * width,
                        elements, rows * width, err);
}

/* Places an element in the master and in the weight that products read. */
static void put(const weight *w, float *master, hr_bf16 *narrow, int64_t k, int64_t n, float value)
{
    const int64_t at = hr_layout_index(w->layout, w->K, w->N, k, n);
    if (master) master[at] = value;
    if (w->residual.codes) hr_residual_put(narrow, w->residual, at, value);
    else if (narrow) narrow[at] = hr_bf16_from_f32(value);
}

static hr_status load_weight(const hr_values *values, const hr_executor *executor, int32_t param,
                             const hr_call *call, hr_error *err)
{
    const int32_t from = values->from ? values->from[param] : param;
    const weight w = weight_of(executor, param);
    float *buffer = (float *)values->buffer;
    hr_status status = HR_OK;
    if (values->dims[from][0] != w.K || values->dims[from][1] != w.N)
        return hr_fail(err, HR_FAILURE, "%s: its initial weight has another shape",
                       w.param->external_name);
    const int64_t bytes = hr_tensor_bytes(&executor->program->tensors[w.param->master]);
    const bool is_narrow = w.dtype == HR_BF16;
    if (w.residual.codes)
        memset(w.residual.codes, 0,
               (size_t)hr_residual_halves(bytes / (int64_t)sizeof(hr_bf16), w.residual.bytes) *
                   sizeof *w.residual.codes);
    memset(is_narrow ? call->out[1] : call->out[0], 0, (size_t)bytes);
    if (!is_narrow && call->out[1]) memset(call->out[1], 0, (size_t)bytes / 2);
    for (int64_t first = 0, count; first < w.K * w.N && status == HR_OK; first += count) {
        count = hr_min(ELEMENTS, w.K * w.N - first);
        status = hr_file_read(values->file, "the initial weights",
                              values->offset[from] + first * (int64_t)sizeof(float), buffer,
                              count * (int64_t)sizeof(float), err);
        for (int64_t i = 0; i < count && status == HR_OK; i++)
            put(&w, is_narrow ? NULL : call->out[0], call->out[1], (first + i) / w.N,
                (first + i) % w.N, buffer[i]);
    }
    if (w.residual.codes)
        hr_residual_finish(call->out[1], w.residual, bytes / (int64_t)sizeof(hr_bf16));
    return status;
}

static hr_weights_place place_of(const hr_executor *executor, int32_t param, const hr_call *call)
{
    return (hr_weights_place){ .master = call->out[0],
                               .weight = call->out[1],
                               .residual = weight_of(executor, param).residual };
}

static hr_status load(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                      hr_error *err)
{
    const hr_values *values = context;
    const hr_program *program = executor->program;
    const int32_t param = ((const hr_host_attr *)call->attr)->param;
    const bool has_weight = call->out[0] || call->out[1];
    const hr_status status = has_weight ? load_weight(values, executor, param, call, err) : HR_OK;
    for (int32_t i = 0; i < program->state_count && status == HR_OK; i++) {
        const int32_t tensor = program->steps[step].out[2 + i];
        if (program->params[param].rule.frozen || tensor == HR_NONE) continue;
        hr_initialize_state(program, param, i, place_of(executor, param, call), call->out[2 + i]);
    }
    return status;
}

static const hr_service services[] = { { HR_OP_initialize, HR_LOOP_LOAD, load, NULL } };

hr_services hr_values_services(hr_values *values)
{
    return (hr_services){ services, 1, values };
}
