/* SPDX-License-Identifier: Apache-2.0 */
/* prove/trace.c - places a trace, and reads it. */
#include "prove/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/path.h"
#include "prove/trace_layout.h"

int64_t hr_trace_bytes(int64_t params)
{
    return params * (int64_t)sizeof(hr_trace_param) + 64;
}

/* The file loses its name at once, so that the kernel removes it with the process, however that
 * ends. */
hr_status hr_trace_open(hr_trace *trace, const char *directory, int64_t params, hr_region *region,
                        hr_error *err)
{
    char path[HR_PATH_BYTES + 16];
    *trace = (hr_trace){ .file = -1, .param_max = (int32_t)params };
    trace->params = hr_region_take(region, params, sizeof *trace->params);
    if (!trace->params)
        return hr_fail(err, HR_FAILURE, "out of memory for a trace of %lld parameters",
                       (long long)params);
    const hr_status status = hr_path_join(directory, "trace", path, sizeof path, err);
    if (status != HR_OK) return status;
    trace->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (trace->file >= 0 && unlink(path) == 0) return HR_OK;
    const int code = errno;
    hr_trace_close(trace);
    return hr_fail(err, HR_FAILURE, "%s: cannot be created: %s", path, hr_reason(code));
}

void hr_trace_close(hr_trace *trace)
{
    hr_file_close(&trace->file);
}

hr_status hr_trace_load(const hr_trace *trace, const hr_trace_array *array, int64_t step,
                        void *memory, hr_error *err)
{
    return hr_file_read(trace->file, "the trace", array->offset + step * trace->gradients_bytes,
                        memory, array->bytes, err);
}

double hr_trace_element(const hr_trace_array *array, const void *memory, int64_t k, int64_t n)
{
    const int64_t at = hr_layout_index((hr_layout)array->layout, array->K, array->N, k, n);
    if (array->dtype == HR_F32) return (double)((const float *)memory)[at];
    if (array->dtype == HR_U8) return ((const uint8_t *)memory)[at]; /* a code */
    return (double)hr_bf16_to_f32(((const hr_bf16 *)memory)[at]);
}

static hr_trace_array array_of(const hr_tensor *tensor, int64_t offset)
{
    return (hr_trace_array){ .offset = offset,
                             .bytes = hr_tensor_bytes(tensor),
                             .K = tensor->dims[0],
                             .N = hr_max(tensor->dims[1], 1),
                             .layout = tensor->layout,
                             .dtype = tensor->dtype };
}

/* The tensor of a parameter that is kept: its master, or a state. */
static int32_t kept_tensor(const hr_param *param, int32_t kept)
{
    return kept == 0 ? param->master : param->states[kept - 1];
}

int32_t hr_trace_states(const hr_program *program)
{
    const int32_t count = program->state_count;
    return count - (count && hr_state_is_residual(&program->states[count - 1]));
}

/* A bf16 weight with a residual is the fp32 number that it is the half of. */
static hr_trace_array kept_array(const hr_program *program, int32_t index, int32_t kept,
                                 int64_t offset)
{
    const int32_t tensor = kept_tensor(&program->params[index], kept);
    if (tensor == HR_NONE) return (hr_trace_array){ 0 }; /* scales of a state that has none */
    hr_trace_array array = array_of(&program->tensors[tensor], offset);
    if (kept == 0 && hr_program_residual(program, index) != HR_NONE) {
        array.bytes *= (int64_t)(sizeof(float) / sizeof(hr_bf16));
        array.dtype = HR_F32;
    }
    return array;
}

hr_status hr_trace_describe(hr_trace *trace, const hr_program *program, int64_t steps,
                            hr_error *err)
{
    int64_t end = 0;
    if (program->param_count > trace->param_max)
        return hr_fail(err, HR_FAILURE, "a trace has room for %d parameters, the model has %d",
                       trace->param_max, program->param_count);
    trace->param_count = program->param_count;
    trace->state_count = hr_trace_states(program);
    for (int32_t i = 0; i < trace->state_count; i++)
        trace->state_names[i] = program->states[i].name;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        hr_trace_param *traced = &trace->params[p];
        *traced = (hr_trace_param){ .trained = !param->rule.frozen };
        snprintf(traced->name, sizeof traced->name, "%s", param->external_name);
        if (!traced->trained) continue;
        traced->gradient = array_of(&program->tensors[param->gradient], end);
        end += traced->gradient.bytes;
    }
    trace->gradients_bytes = end;
    end *= steps;
    for (int32_t p = 0; p < program->param_count; p++) {
        hr_trace_param *traced = &trace->params[p];
        for (int32_t i = 0; traced->trained && i <= trace->state_count; i++) {
            traced->kept[i] = kept_array(program, p, i, end);
            end += traced->kept[i].bytes;
        }
    }
    return HR_OK;
}

double hr_trace_average(const hr_trace *trace)
{
    return trace->grad_norm[0] * trace->scale / sqrt((double)hr_max(trace->gradients_bytes, 4) / 4);
}

static bool is_same_array(const hr_trace_array *one, const hr_trace_array *two)
{
    return one->bytes == two->bytes && one->K == two->K && one->N == two->N &&
           one->layout == two->layout && one->dtype == two->dtype;
}

/* Two programs of one model have the same parameters in the same layouts, whatever their strategy:
 * only then are their bytes comparable. */
hr_status hr_trace_check(const hr_trace *trace, const hr_program *program, hr_error *err)
{
    bool same = trace->param_count == program->param_count &&
                trace->state_count == hr_trace_states(program);
    for (int32_t p = 0; same && p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        const hr_trace_param *traced = &trace->params[p];
        same = traced->trained == !param->rule.frozen &&
               !strcmp(traced->name, param->external_name);
        if (!same || !traced->trained) continue;
        const hr_trace_array gradient = array_of(&program->tensors[param->gradient], 0);
        same = is_same_array(&traced->gradient, &gradient);
        for (int32_t i = 0; same && i <= trace->state_count; i++) {
            const hr_trace_array kept = kept_array(program, p, i, 0);
            same = is_same_array(&traced->kept[i], &kept);
        }
    }
    if (same) return HR_OK;
    return hr_fail(err, HR_FAILURE, "the two runs of a proof have different parameters");
}
