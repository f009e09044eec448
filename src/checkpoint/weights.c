/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/weights.c - header, tensors and config. Text is printed into the caller's buffer,
 * because all of this runs after the seal. */
#include "checkpoint/weights.h"

#include <limits.h>
#include <string.h>

#include "base/assert.h"
#include "base/bf16.h"
#include "base/checked.h"
#include "base/path.h"
#include "base/residual.h"
#include "base/writer.h"
#include "checkpoint/adapter_config.h"
#include "checkpoint/repack.h"
#include "hf/hf_config.h"

enum { ENTRY_BYTES = 256, CONFIG_BYTES = 4096, LENGTH_BYTES = 8, HEADER_ALIGN = 64 };

/* ---- contents of a file */

static const char *const weights_names[] = { [HR_ADAPTER_NONE] = "model.safetensors",
                                             [HR_ADAPTER_LORA] = "adapter_model.safetensors",
                                             [HR_ADAPTER_NPT] = "npt_model.safetensors" };

const char *hr_weights_name(const hr_config *config)
{
    return weights_names[config->train.adapter.kind];
}

const char *hr_weights_config_name(const hr_config *config)
{
    static const char *const names[] = { [HR_ADAPTER_NONE] = "config.json",
                                         [HR_ADAPTER_LORA] = "adapter_config.json",
                                         [HR_ADAPTER_NPT] = "npt_config.json" };
    return names[config->train.adapter.kind];
}

int32_t hr_kept_count(const hr_program *program)
{
    return HR_KEPT_STATES + program->state_count;
}

const char *hr_kept_name(const hr_program *program, hr_kept kept)
{
    if (kept != HR_KEPT_WEIGHTS) return program->states[kept - HR_KEPT_STATES].file;
    return weights_names[program->modulates ? HR_ADAPTER_NPT
                         : program->adapts  ? HR_ADAPTER_LORA
                                            : HR_ADAPTER_NONE];
}

int32_t hr_kept_tensor(const hr_program *program, int32_t index, hr_kept kept)
{
    const hr_param *param = &program->params[index];
    if (param->rule.base) return HR_NONE;
    if (kept == HR_KEPT_WEIGHTS) return param->master;
    return hr_kept_name(program, kept) ? param->states[kept - HR_KEPT_STATES] : HR_NONE;
}

hr_kept_shape hr_kept_shape_of(const hr_program *program, int32_t index, hr_kept kept)
{
    const hr_param *param = &program->params[index];
    const int64_t K = param->dims[0], N = hr_max(param->dims[1], 1);
    const bool vector = param->dims[1] == 0;
    const int32_t shape = kept == HR_KEPT_WEIGHTS ? HR_STATE_ELEMENTS
                                                  : program->states[kept - HR_KEPT_STATES].shape;
    if (shape == HR_STATE_BLOCKS) {
        const int32_t scales = hr_kept_tensor(program, index, kept);
        return (hr_kept_shape){ scales == HR_NONE ? 0 : program->tensors[scales].dims[0], 1, true,
                                .groups = 1 };
    }
    if (shape == HR_STATE_ROWS) return (hr_kept_shape){ K, 1, true, .groups = 1 };
    if (shape == HR_STATE_COLUMNS) return (hr_kept_shape){ N, 1, true, .groups = 1 };
    const int64_t stack = kept == HR_KEPT_WEIGHTS ? param->rule.stack : 0;
    return (hr_kept_shape){ .K = K,
                            .N = N,
                            .vector = vector,
                            .transposed = param->external_transposed && !vector,
                            .stack = stack,
                            .groups = stack && param->rule.stacks_columns ? stack : 1 };
}

int64_t hr_weights_rows(hr_kept_shape shape)
{
    return shape.transposed ? shape.N : shape.K * shape.groups;
}

int64_t hr_weights_width(hr_kept_shape shape)
{
    return shape.transposed ? shape.K : shape.N / shape.groups;
}

bool hr_kept_any(const hr_program *program, hr_kept kept)
{
    for (int32_t p = 0; p < program->param_count; p++)
        if (hr_kept_tensor(program, p, kept) != HR_NONE) return true;
    return false;
}

/* Of optimizer states, and of bf16 weights without masters. The scales of codes are a state of
 * their own. */
static const hr_weight_format codes_format = { .name = "u8", .file_dtype = "U8", .dtype = HR_U8 };
static const hr_weight_format bf16_format = { .name = "bf16",
                                              .file_dtype = "BF16",
                                              .dtype = HR_BF16 };

const hr_weight_format *hr_kept_format(const hr_program *program, int32_t index, hr_kept kept)
{
    const hr_param *param = &program->params[index];
    /* a base is in no file of a run, but is read from files */
    const int32_t kept_in = kept == HR_KEPT_WEIGHTS ? param->master
                                                    : hr_kept_tensor(program, index, kept);
    const bool weight = kept_in == param->weight;
    const bool rounded = weight && param->gradient != HR_NONE && /* it has no more bits */
                         hr_program_residual(program, index) == HR_NONE;
    const bool plain = kept_in == HR_NONE || (weight && !rounded);
    const int32_t dtype = plain ? HR_F32 : program->tensors[kept_in].dtype;
    if (dtype == HR_U8) return &codes_format;
    if (dtype == HR_BF16) return &bf16_format;
    return hr_weight_format_of(weight ? param->format : HR_WEIGHTS_COMPUTE);
}

int64_t hr_kept_element_bytes(const hr_program *program, int32_t param, hr_kept kept)
{
    return hr_dtype_bytes(hr_kept_format(program, param, kept)->dtype);
}

/* The scales of a parameter in a file: their shape, and their bytes. */
static int64_t scales_of(const hr_program *program, int32_t param, hr_kept kept, int64_t shape[2])
{
    const hr_kept_shape matrix = hr_kept_shape_of(program, param, kept);
    const hr_weight_format *format = hr_kept_format(program, param, kept);
    hr_weight_scales_shape(format, hr_weights_rows(matrix), hr_weights_width(matrix), shape);
    return shape[0] * shape[1] * hr_dtype_bytes(format->scale_dtype);
}

static int64_t elements_bytes(const hr_program *program, int32_t param, hr_kept kept)
{
    const hr_kept_shape shape = hr_kept_shape_of(program, param, kept);
    return shape.K * shape.N * hr_kept_element_bytes(program, param, kept);
}

int64_t hr_kept_bytes_of(const hr_program *program, int32_t param, hr_kept kept)
{
    int64_t shape[2];
    return elements_bytes(program, param, kept) + scales_of(program, param, kept, shape);
}

int64_t hr_kept_bytes(const hr_program *program, hr_kept kept)
{
    int64_t sum = 0;
    for (int32_t p = 0; p < program->param_count; p++)
        if (hr_kept_tensor(program, p, kept) != HR_NONE) sum += hr_kept_bytes_of(program, p, kept);
    return sum;
}

/* A program that only counts (admission/run_bytes.c) counts scales as parameters. */
int64_t hr_weights_text_bytes(const hr_program *program)
{
    int64_t entries = program->param_count + 1;
    for (int32_t p = 0; p < program->param_count && program->params; p++)
        entries += program->params[p].scales != HR_NONE;
    return hr_max(entries * ENTRY_BYTES, CONFIG_BYTES);
}

/* Writes, unless `w` is null, a list of tensors for the metadata: those in rows, or those that are
 * panels and not transposed. Returns its bytes. */
static int64_t put_names(hr_writer *w, const hr_program *program, hr_kept kept, bool rows)
{
    int64_t bytes = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        const bool in_rows = program->tensors[param->weight].layout == HR_ROWS;
        if (hr_kept_tensor(program, p, kept) == HR_NONE || in_rows != rows) continue;
        if (!rows && param->external_transposed) continue;
        if (w) hr_put(w, " %s", param->external_name);
        bytes += 1 + (int64_t)strlen(param->external_name);
    }
    return bytes;
}

static bool is_blocks(const hr_program *program, hr_kept kept)
{
    return kept >= HR_KEPT_STATES &&
           program->states[kept - HR_KEPT_STATES].shape == HR_STATE_BLOCKS;
}

/* The begin of a header. Scales of codes lie in the order of memory, which the metadata of their
 * file tells (docs/moments.md). */
static const char begin_plain[] = "{\"__metadata__\":{\"format\":\"pt\"",
                  begin_rows[] = ",\"rows\":\"", begin_inputs[] = "\",\"inputs_first\":\"",
                  begin_end[] = "\"";

static void put_begin(hr_writer *w, const hr_program *program, hr_kept kept)
{
    hr_put(w, "%s", begin_plain);
    if (is_blocks(program, kept)) {
        hr_put(w, "%s", begin_rows);
        put_names(w, program, kept, true);
        hr_put(w, "%s", begin_inputs);
        put_names(w, program, kept, false);
        hr_put(w, "%s", begin_end);
    }
    hr_put(w, "}");
}

/* The bytes of put_begin. */
static int64_t begin_bytes(const hr_program *program, hr_kept kept)
{
    const int64_t plain = (int64_t)sizeof begin_plain - 1 + 1;
    if (!is_blocks(program, kept)) return plain;
    return plain + (int64_t)(sizeof begin_rows + sizeof begin_inputs + sizeof begin_end) - 3 +
           put_names(NULL, program, kept, true) + put_names(NULL, program, kept, false);
}

/* Prints the entries of a parameter that begins at offset `begin` of the data. */
static void put_entry(hr_writer *w, const hr_program *program, int32_t param, hr_kept kept,
                      int64_t begin)
{
    const hr_kept_shape shape = hr_kept_shape_of(program, param, kept);
    const char *name = program->params[param].external_name;
    const char *dtype = hr_kept_format(program, param, kept)->file_dtype;
    const int64_t end = begin + elements_bytes(program, param, kept);
    int64_t blocks[2];
    const int64_t scales_bytes = scales_of(program, param, kept, blocks);
    hr_put(w, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", name, dtype ? dtype : "F32");
    if (shape.stack) hr_put(w, "%lld,", (long long)shape.stack);
    hr_put(w, "%lld", (long long)(hr_weights_rows(shape) / hr_max(shape.stack, 1)));
    if (!shape.vector) hr_put(w, ",%lld", (long long)hr_weights_width(shape));
    hr_put(w, "],\"data_offsets\":[%lld,%lld]}", (long long)begin, (long long)end);
    if (scales_bytes)
        hr_put(w,
               ",\"%s%s\":{\"dtype\":\"F32\",\"shape\":[%lld,%lld],\"data_offsets\":[%lld,%lld]}",
               name, HR_SCALES_SUFFIX, (long long)blocks[0], (long long)blocks[1], (long long)end,
               (long long)(end + scales_bytes));
}

int64_t hr_kept_file_bytes(const hr_program *program, hr_kept kept)
{
    char entry[2 * ENTRY_BYTES];
    if (!hr_kept_any(program, kept)) return 0;
    /* includes the final "}" */
    int64_t begin = 0, header = LENGTH_BYTES + begin_bytes(program, kept) + 1;
    for (int32_t p = 0; p < program->param_count; p++) {
        if (hr_kept_tensor(program, p, kept) == HR_NONE) continue;
        hr_writer w = { entry, sizeof entry };
        put_entry(&w, program, p, kept, begin);
        HR_ASSERT(!w.cut);
        header += w.used;
        begin += hr_kept_bytes_of(program, p, kept);
    }
    return hr_round_up(header, HEADER_ALIGN) + begin;
}

int64_t hr_weights_header(const hr_program *program, hr_kept kept, char *text, int64_t bytes)
{
    hr_writer w = { text + LENGTH_BYTES, bytes - LENGTH_BYTES };
    int64_t begin = 0;
    put_begin(&w, program, kept);
    for (int32_t p = 0; p < program->param_count; p++) {
        if (hr_kept_tensor(program, p, kept) == HR_NONE) continue;
        put_entry(&w, program, p, kept, begin);
        begin += hr_kept_bytes_of(program, p, kept);
    }
    hr_put(&w, "}");
    while ((w.used + LENGTH_BYTES) % HEADER_ALIGN && !w.cut) hr_put(&w, " ");
    HR_ASSERT(!w.cut); /* the caller's buffer has hr_weights_text_bytes */
    for (int32_t i = 0; i < LENGTH_BYTES; i++) text[i] = (char)((uint64_t)w.used >> (8 * i));
    return w.used + LENGTH_BYTES;
}

/* ---- writing */

hr_status hr_weights_check(const hr_config *config, const char *directory, hr_error *err)
{
    char path[PATH_MAX];
    hr_status status = hr_path_join(directory, hr_weights_name(config), path, sizeof path, err);
    if (status == HR_OK) status = hr_file_check_place(path, err);
    if (status == HR_OK)
        status = hr_path_join(directory, hr_weights_config_name(config), path, sizeof path, err);
    return status == HR_OK ? hr_file_check_place(path, err) : status;
}

static hr_status append(hr_weights_out *out, const void *memory, int64_t bytes, hr_error *err)
{
    hr_hash_add(&out->hash, memory, bytes);
    return hr_file_append(&out->file, memory, bytes, err);
}

hr_status hr_weights_begin(hr_weights_out *out, const hr_program *program, hr_kept kept,
                           const char *directory, char *text, int64_t bytes, hr_error *err)
{
    const int64_t header_bytes = hr_weights_header(program, kept, text, bytes);
    out->program = program;
    out->kept = kept;
    hr_hash_begin(&out->hash);
    hr_status status = hr_file_begin(&out->file, directory, hr_kept_name(program, kept), err);
    if (status == HR_OK)
        status = hr_file_reserve(&out->file, header_bytes + hr_kept_bytes(program, kept), err);
    return status == HR_OK ? append(out, text, header_bytes, err) : status;
}

/* Gathers any layout and dtype, one element at a time. */
static void gather_any(hr_kept_shape shape, const hr_tensor *tensor, const void *values,
                       hr_residual residual, int64_t row, float *to)
{
    const int64_t width = hr_weights_width(shape);
    for (int64_t i = 0; i < width; i++) {
        const int64_t k = shape.transposed ? i : row % shape.K;
        const int64_t n = shape.transposed ? row : row / shape.K * width + i;
        const int64_t at = hr_layout_index((hr_layout)tensor->layout, shape.K, shape.N, k, n);
        to[i] = tensor->dtype == HR_F32 ? ((const float *)values)[at]
                : residual.codes        ? hr_residual_value(values, residual, at)
                                        : hr_bf16_to_f32(((const hr_bf16 *)values)[at]);
    }
}

/* Writes columns [n, n + columns) of lines [k, k + lines) of one panel as rows of the file. The
 * block fits the first-level cache, so each line is fetched once. Adjacent columns of a line are
 * `step` floats apart. */
static void gather_block(const float *values, hr_layout layout, int64_t K, int64_t N, int64_t k,
                         int64_t lines, int64_t n, int64_t columns, float *to, int64_t width)
{
    const int64_t step = layout == HR_PANEL_PAIR ? 2 : 1;
    for (int64_t i = 0; i < lines; i++) {
        const float *line = values + hr_layout_index(layout, K, N, k + i, n);
        for (int64_t c = 0; c < columns; c++) to[c * width + i] = line[c * step];
    }
}

/* For files whose rows are columns of panels. */
static void gather_columns(hr_kept_shape shape, hr_layout layout, const float *values,
                           int64_t first, int64_t count, float *to)
{
    enum { LINES = 16 };
    const int64_t K = shape.K, N = shape.N;
    for (int64_t n = first; n < first + count;) {
        const int64_t end = hr_min(first + count, (n / HR_PANEL_WIDTH + 1) * HR_PANEL_WIDTH);
        float *rows = to + (n - first) * K;
        for (int64_t k = 0; k < K; k += LINES)
            gather_block(values, layout, K, N, k, hr_min(LINES, K - k), n, end - n, rows + k, K);
        n = end;
    }
}

/* For files whose rows are lines of panels. */
static void gather_lines(hr_kept_shape shape, hr_layout layout, const float *values, int64_t first,
                         int64_t count, float *to)
{
    const int64_t K = shape.K, N = shape.N;
    const int64_t step = layout == HR_PANEL_PAIR ? 2 : 1;
    for (int64_t n = 0; n < N; n += HR_PANEL_WIDTH) {
        const int64_t columns = hr_min(HR_PANEL_WIDTH, N - n);
        for (int64_t k = first; k < first + count; k++) {
            const float *line = values + hr_layout_index(layout, K, N, k, n);
            float *row = to + (k - first) * N + n;
            for (int64_t c = 0; c < columns; c++) row[c] = line[c * step];
        }
    }
}

static void gather_values(hr_kept_shape shape, const hr_tensor *tensor, const void *values,
                          hr_residual residual, int64_t first, int64_t count, float *to)
{
    const hr_layout layout = (hr_layout)tensor->layout;
    const int64_t width = hr_weights_width(shape);
    const bool panels = tensor->dtype == HR_F32 && layout != HR_ROWS && shape.groups == 1;
    if (panels && shape.transposed) {
        gather_columns(shape, layout, values, first, count, to);
    } else if (panels) {
        gather_lines(shape, layout, values, first, count, to);
    } else {
        for (int64_t i = 0; i < count; i++)
            gather_any(shape, tensor, values, residual, first + i, to + i * width);
    }
}

void hr_weights_gather(const hr_program *program, int32_t index, hr_kept kept, const void *values,
                       hr_residual residual, int64_t first, int64_t count, void *to)
{
    const hr_kept_shape shape = hr_kept_shape_of(program, index, kept);
    const hr_tensor *tensor = &program->tensors[hr_kept_tensor(program, index, kept)];
    const hr_repack stored = { .layout = (hr_layout)tensor->layout,
                               .K = shape.K,
                               .N = shape.N,
                               .transposed = shape.transposed,
                               .element_bytes = hr_kept_element_bytes(program, index, kept) };
    if (hr_kept_format(program, index, kept)->file_dtype)
        hr_repack_give(&stored, first, count, values, to);
    else gather_values(shape, tensor, values, residual, first, count, to);
}

/* An exponent of all ones carries into the sign bit. Vectorised and without branches, because
 * training waits for the check. */
static bool all_finite(const float *values, int64_t count)
{
    enum { LANES = 16 };
    const uint32_t magnitude = 0x7fffffff, one = 0x00800000;
    uint32_t bits[LANES], carried[LANES] = { 0 }, any = 0;
    for (int64_t i = 0; i < count; i += LANES) {
        const int64_t lanes = hr_min(LANES, count - i);
        if (lanes < LANES) memset(bits, 0, sizeof bits);
        memcpy(bits, values + i, lanes < LANES ? (size_t)lanes * sizeof *bits : sizeof bits);
        for (int32_t l = 0; l < LANES; l++) carried[l] |= (bits[l] & magnitude) + one;
    }
    for (int32_t l = 0; l < LANES; l++) any |= carried[l];
    return any <= magnitude;
}

static bool all_finite_bf16(const hr_bf16 *values, int64_t count)
{
    const hr_bf16 exponent = 0x7f80;
    bool finite = true;
    for (int64_t i = 0; i < count; i++) finite &= (values[i] & exponent) != exponent;
    return finite;
}

static bool can_append(const hr_weight_format *format, const void *values, int64_t count)
{
    if (!format->file_dtype) return all_finite(values, count);
    return format->dtype != HR_BF16 || all_finite_bf16(values, count);
}

/* Stored weights were checked when they were read, and are constant. Codes are finite, and their
 * scales are checked as fp32. */
hr_status hr_weights_append(hr_weights_out *out, int32_t param, const void *values, int64_t count,
                            hr_error *err)
{
    const hr_weight_format *format = hr_kept_format(out->program, param, out->kept);
    const int64_t bytes = count * hr_kept_element_bytes(out->program, param, out->kept);
    if (can_append(format, values, count)) return append(out, values, bytes, err);
    return hr_fail(err, HR_DIVERGED, "%s: %s has NaN or Inf values",
                   hr_kept_name(out->program, out->kept),
                   out->program->params[param].external_name);
}

hr_status hr_weights_append_scales(hr_weights_out *out, int32_t param, const float *scales,
                                   hr_error *err)
{
    int64_t shape[2];
    const int64_t bytes = scales_of(out->program, param, out->kept, shape);
    return bytes ? append(out, scales, bytes, err) : HR_OK;
}

hr_status hr_weights_add(hr_weights_out *out, int32_t index, const void *values, void *staging,
                         int64_t staging_bytes, hr_error *err)
{
    const hr_kept_shape shape = hr_kept_shape_of(out->program, index, out->kept);
    const int64_t rows = hr_weights_rows(shape), width = hr_weights_width(shape);
    const int64_t held = staging_bytes /
                         (width * hr_kept_element_bytes(out->program, index, out->kept));
    HR_ASSERT(held > 0 && out->program->params[index].scales == HR_NONE);
    for (int64_t row = 0; row < rows; row += held) {
        const int64_t count = hr_min(held, rows - row);
        hr_weights_gather(out->program, index, out->kept, values, (hr_residual){ 0 }, row, count,
                          staging);
        const hr_status status = hr_weights_append(out, index, staging, count * width, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

void hr_weights_abort(hr_weights_out *out)
{
    hr_file_abort(&out->file);
}

int64_t hr_weights_config(const hr_config *config, const hr_program *program, char *text,
                          int64_t bytes)
{
    hr_writer w = { text, bytes };
    int32_t weights = HR_WEIGHTS_COMPUTE;
    if (program->adapts) {
        hr_adapter_config_write(config, program, &w);
        HR_ASSERT(!w.cut);
        return w.used;
    }
    for (int32_t p = 0; p < program->param_count && weights == HR_WEIGHTS_COMPUTE; p++)
        weights = program->params[p].format;
    hr_hf_config_write(config, weights, &w);
    HR_ASSERT(!w.cut);
    return w.used;
}
