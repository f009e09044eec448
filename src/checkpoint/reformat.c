/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/reformat.c - parameter by parameter, in chunks of rows of the file: to fp32 in the
 * order of the file, and from there to the other format.
 *
 * Codes lie in blocks of 256 elements in the order of memory. A chunk has whole blocks: 256 rows of
 * a file whose rows are outputs are 16 panels, and 256 rows of memory are 256 blocks at least.
 * Where rows of the file cross the order of memory, a chunk is a whole matrix. */
#include "checkpoint/reformat.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "checkpoint/repack.h"
#include "checkpoint/weights_in.h"
#include "ops/update/moments.h"

enum { CHUNK_ELEMENTS = 1 << 16, BLOCK = HR_STATE_BLOCK_ELEMENTS };

/* ---- which files */

hr_kept hr_reformat_source(const hr_program *was, const hr_program *now, hr_kept kept_now)
{
    const char *name = hr_kept_name(now, kept_now);
    for (hr_kept kept = 0; name && kept < hr_kept_count(was); kept++) {
        const char *other = hr_kept_name(was, kept);
        if (other && !strcmp(other, name)) return kept;
    }
    return HR_NONE;
}

static bool is_codes(const hr_program *program, int32_t param, hr_kept kept)
{
    return hr_kept_format(program, param, kept)->dtype == HR_U8;
}

static hr_layout layout_of(const hr_program *program, int32_t param, hr_kept kept)
{
    return (hr_layout)program->tensors[hr_kept_tensor(program, param, kept)].layout;
}

static bool has_other_format(const hr_program *was, const hr_program *now, int32_t param,
                             hr_kept kept_was, hr_kept kept_now)
{
    const hr_weight_format *before = hr_kept_format(was, param, kept_was);
    const hr_weight_format *after = hr_kept_format(now, param, kept_now);
    if (before->dtype != after->dtype) return true;
    if (before->dtype != HR_U8) return false;
    const int64_t K = now->params[param].dims[0];
    const hr_layout old = layout_of(was, param, kept_was), new = layout_of(now, param, kept_now);
    return (old == HR_ROWS) != (new == HR_ROWS) || (old != new &&K % 2);
}

static bool is_plain(const hr_weight_format *format)
{
    return format->dtype == HR_F32 || format->dtype == HR_BF16 || format->dtype == HR_U8;
}

bool hr_reformat_can(const hr_program *was, const hr_program *now, hr_kept kept_was,
                     hr_kept kept_now, bool *differs)
{
    bool can = true;
    for (int32_t p = 0; p < now->param_count; p++) {
        if (hr_kept_tensor(now, p, kept_now) == HR_NONE) continue;
        if (!has_other_format(was, now, p, kept_was, kept_now)) continue;
        *differs = true;
        can &= is_plain(hr_kept_format(was, p, kept_was)) &&
               is_plain(hr_kept_format(now, p, kept_now)) &&
               hr_kept_shape_of(now, p, kept_now).groups == 1;
    }
    return can;
}

/* Which moment a file has, from 0 on. */
static int32_t moment_of(const hr_program *program, hr_kept kept)
{
    int32_t moment = 0;
    for (int32_t s = 0; s < kept - HR_KEPT_STATES; s++)
        moment += program->states[s].shape == HR_STATE_ELEMENTS && !program->states[s].average;
    return moment;
}

/* The scales of a file of moments: the states of blocks are in the order of the moments. */
static hr_kept scales_of(const hr_program *program, hr_kept kept)
{
    int32_t moment = moment_of(program, kept);
    if (kept == HR_KEPT_WEIGHTS || program->states[kept - HR_KEPT_STATES].average) return HR_NONE;
    for (int32_t s = 0; s < program->state_count; s++)
        if (program->states[s].shape == HR_STATE_BLOCKS && moment-- == 0) return HR_KEPT_STATES + s;
    return HR_NONE;
}

/* ---- one parameter */

/* A file that is read, and the buffers of a chunk. */
typedef struct {
    const hr_reformat *reformat;
    hr_update_kernels kernels;
    hr_weights_in in, in_scales;
    hr_weights_out out, out_scales;
    hr_kept kept_was, kept_now;
    bool second;   /* moment */
    uint8_t *file; /* rows of a file, in any format */
    float *rows;   /* the same in fp32 */
    float *values; /* in the order of memory, padding included */
    uint8_t *codes;
    float *scales;
} writing;

static int64_t chunk_rows(const hr_program *program, int32_t param, hr_kept kept)
{
    const hr_kept_shape shape = hr_kept_shape_of(program, param, kept);
    const int64_t rows = hr_weights_rows(shape), width = hr_weights_width(shape);
    const bool in_rows = layout_of(program, param, kept) == HR_ROWS;
    if (is_codes(program, param, kept) && in_rows == shape.transposed) return rows;
    return hr_min(rows, hr_round_up(hr_max(CHUNK_ELEMENTS / width, 1), BLOCK));
}

/* Rows of a chunk of both programs. */
static int64_t rows_of(const hr_program *was, const hr_program *now, int32_t param,
                       hr_kept kept_was, hr_kept kept_now)
{
    return hr_max(chunk_rows(was, param, kept_was), chunk_rows(now, param, kept_now));
}

/* `count` rows of a file as a matrix of their own in memory. */
static hr_repack part_of(const hr_program *program, int32_t param, hr_kept kept, int64_t count,
                         int64_t element_bytes, uint8_t pad)
{
    const hr_kept_shape shape = hr_kept_shape_of(program, param, kept);
    return (hr_repack){ .layout = layout_of(program, param, kept),
                        .K = shape.transposed ? shape.K : count,
                        .N = shape.transposed ? count : shape.N,
                        .transposed = shape.transposed,
                        .element_bytes = element_bytes,
                        .pad = pad };
}

static int64_t elements_of(const hr_repack *part)
{
    return hr_layout_elements(part->layout, part->K, part->N);
}

/* The blocks of all rows before `first`, which are whole. */
static int64_t blocks_before(const hr_program *program, int32_t param, hr_kept kept, int64_t first)
{
    const hr_repack part = part_of(program, param, kept, first, 1, 0);
    return first ? elements_of(&part) / BLOCK : 0;
}

static hr_moment codes_of(const writing *w)
{
    return (hr_moment){ .stored = w->codes,
                        .scales = w->scales,
                        .map = hr_moment_map_of(!w->second),
                        .second = w->second };
}

/* Codes in `file` become `rows`. */
static hr_status unpack_codes(writing *w, int32_t param, int64_t first, int64_t count,
                              hr_error *err)
{
    const hr_program *was = w->reformat->was;
    hr_repack part = part_of(was, param, w->kept_was, count, 1, 0);
    const int64_t elements = elements_of(&part), blocks = (elements + BLOCK - 1) / BLOCK;
    const int64_t before = blocks_before(was, param, w->kept_was, first);
    const hr_status status = hr_file_read(w->in_scales.files[0], w->in_scales.path,
                                          w->in_scales.sources[param].offset +
                                              before * (int64_t)sizeof *w->scales,
                                          w->scales, blocks * (int64_t)sizeof *w->scales, err);
    if (status != HR_OK) return status;
    const hr_moment moment = codes_of(w);
    hr_repack_take(&part, 0, count, w->file, w->codes);
    for (int64_t i = 0; i < elements; i += BLOCK)
        hr_moment_unpack(&w->kernels, &moment, i, hr_min(BLOCK, elements - i), w->values + i);
    part.element_bytes = sizeof *w->values;
    hr_repack_give(&part, 0, count, w->values, w->rows);
    return HR_OK;
}

/* The inverse: writes the scales, and leaves codes in `file`. */
static hr_status pack_codes(writing *w, int32_t param, int64_t count, hr_error *err)
{
    hr_repack part = part_of(w->reformat->now, param, w->kept_now, count, sizeof *w->values, 0);
    const int64_t elements = elements_of(&part), blocks = (elements + BLOCK - 1) / BLOCK;
    const hr_moment moment = codes_of(w);
    hr_repack_take(&part, 0, count, w->rows, w->values);
    for (int64_t i = 0; i < elements; i += BLOCK)
        hr_moment_pack(&w->kernels, &moment, i, hr_min(BLOCK, elements - i), w->values + i);
    part.element_bytes = 1;
    hr_repack_give(&part, 0, count, w->codes, w->file);
    return hr_weights_append(&w->out_scales, param, w->scales, blocks, err);
}

static hr_status take_rows(writing *w, int32_t param, int64_t first, int64_t count, int64_t width,
                           hr_error *err)
{
    const hr_dtype dtype = hr_kept_format(w->reformat->was, param, w->kept_was)->dtype;
    const int64_t row_bytes = width * hr_dtype_bytes(dtype);
    void *to = dtype == HR_F32 ? (void *)w->rows : w->file;
    const hr_status status = hr_file_read(w->in.files[0], w->in.path,
                                          w->in.sources[param].offset + first * row_bytes, to,
                                          count * row_bytes, err);
    if (status == HR_OK && dtype == HR_U8) return unpack_codes(w, param, first, count, err);
    if (status == HR_OK && dtype == HR_BF16)
        w->kernels.unpack_bf16((const hr_bf16 *)w->file, w->rows, count * width);
    return status;
}

static hr_status put_rows(writing *w, int32_t param, int64_t count, int64_t width, hr_error *err)
{
    const hr_dtype dtype = hr_kept_format(w->reformat->now, param, w->kept_now)->dtype;
    if (dtype == HR_U8) {
        const hr_status status = pack_codes(w, param, count, err);
        if (status != HR_OK) return status;
    }
    if (dtype == HR_BF16) w->kernels.pack_bf16(w->rows, NULL, 0, (hr_bf16 *)w->file, count * width);
    return hr_weights_append(&w->out, param, dtype == HR_F32 ? (void *)w->rows : w->file,
                             count * width, err);
}

static hr_status write_param(writing *w, int32_t param, hr_error *err)
{
    const hr_reformat *reformat = w->reformat;
    const hr_kept_shape shape = hr_kept_shape_of(reformat->now, param, w->kept_now);
    const int64_t rows = hr_weights_rows(shape), width = hr_weights_width(shape);
    const int64_t most = rows_of(reformat->was, reformat->now, param, w->kept_was, w->kept_now);
    hr_status status = HR_OK;
    for (int64_t first = 0; first < rows && status == HR_OK; first += most) {
        const int64_t count = hr_min(most, rows - first);
        if (reformat->interrupts && *reformat->interrupts > 0)
            return hr_fail(err, HR_INTERRUPTED,
                           "interrupted before the first step; nothing was saved");
        status = take_rows(w, param, first, count, width, err);
        if (status == HR_OK) status = put_rows(w, param, count, width, err);
    }
    return status;
}

/* ---- one file */

/* Largest elements of a chunk, padding included. */
static int64_t elements_most(const hr_program *was, const hr_program *now)
{
    int64_t most = BLOCK;
    for (hr_kept kept = 0; kept < hr_kept_count(now); kept++) {
        const hr_kept source = hr_reformat_source(was, now, kept);
        for (int32_t p = 0; p < now->param_count && source != HR_NONE; p++) {
            if (hr_kept_tensor(now, p, kept) == HR_NONE ||
                hr_kept_tensor(was, p, source) == HR_NONE)
                continue;
            const int64_t count = rows_of(was, now, p, source, kept);
            const hr_repack old = part_of(was, p, source, count, 1, 0);
            const hr_repack new = part_of(now, p, kept, count, 1, 0);
            most = hr_max(most, hr_max(elements_of(&old), elements_of(&new)));
        }
    }
    return most;
}

int64_t hr_reformat_bytes(const hr_program *was, const hr_program *now)
{
    enum { ALIGN = 64, BUFFERS = 8 };
    const int64_t elements = elements_most(was, now);
    const int64_t each = 4 + 4 + 4 + 1; /* file, rows, values, codes */
    return elements * each + (elements / BLOCK + 1) * 4 +
           2 * (hr_weights_in_kept_bytes(now) + hr_weights_text_bytes(now)) +
           hr_weights_text_bytes(was) + BUFFERS * ALIGN;
}

static hr_status write_file(writing *w, char *text, int64_t text_bytes, hr_error *err)
{
    const hr_reformat *r = w->reformat;
    const hr_kept from_scales = scales_of(r->was, w->kept_was);
    const hr_kept to_scales = scales_of(r->now, w->kept_now);
    hr_status status = hr_weights_in_open_kept(&w->in, r->was, w->kept_was, r->from, 0, text,
                                               text_bytes, err);
    if (status == HR_OK && from_scales != HR_NONE)
        status = hr_weights_in_open_kept(&w->in_scales, r->was, from_scales, r->from, 0, text,
                                         text_bytes, err);
    if (status == HR_OK)
        status = hr_weights_begin(&w->out, r->now, w->kept_now, r->to, text, text_bytes, err);
    if (status == HR_OK && to_scales != HR_NONE)
        status = hr_weights_begin(&w->out_scales, r->now, to_scales, r->to, text, text_bytes, err);
    for (int32_t p = 0; p < r->now->param_count && status == HR_OK; p++)
        if (hr_kept_tensor(r->now, p, w->kept_now) != HR_NONE) status = write_param(w, p, err);
    if (status == HR_OK) status = hr_file_commit(&w->out.file, err);
    if (status == HR_OK && to_scales != HR_NONE) status = hr_file_commit(&w->out_scales.file, err);
    return status;
}

/* What a change of format loses. */
static const char *loss_of(hr_dtype before, hr_dtype after)
{
    if (before == after) return "in other blocks";
    if (after == HR_F32) return "which loses nothing";
    if (after == HR_U8) return "which rounds to 8 bits, with one scale for 256 elements";
    return before == HR_F32 ? "which keeps 8 of 24 significant bits" : "which rounds again";
}

/* The formats of a parameter that has another one now. */
static void report(const writing *w)
{
    static const char *const names[] = { [HR_F32] = "fp32", [HR_BF16] = "bf16", [HR_U8] = "int8" };
    const hr_reformat *r = w->reformat;
    char line[256];
    int32_t p = 0;
    while (hr_kept_tensor(r->now, p, w->kept_now) == HR_NONE ||
           !has_other_format(r->was, r->now, p, w->kept_was, w->kept_now))
        p++;
    const hr_dtype before = hr_kept_format(r->was, p, w->kept_was)->dtype;
    const hr_dtype after = hr_kept_format(r->now, p, w->kept_now)->dtype;
    snprintf(line, sizeof line, "%s of the checkpoint: from %s to %s, %s",
             hr_kept_name(r->now, w->kept_now), names[before], names[after],
             loss_of(before, after));
    if (r->report) r->report(r->context, line);
}

hr_status hr_reformat_write(const hr_reformat *reformat, hr_region *region, hr_error *err)
{
    const hr_program *was = reformat->was, *now = reformat->now;
    const int64_t elements = elements_most(was, now);
    const int64_t text_bytes = hr_max(hr_weights_text_bytes(was), hr_weights_text_bytes(now));
    int files[2];
    writing w = { .reformat = reformat };
    w.in.sources = hr_region_take(region, now->param_count, sizeof *w.in.sources);
    w.in_scales.sources = hr_region_take(region, now->param_count, sizeof *w.in.sources);
    w.rows = hr_region_take(region, elements, sizeof *w.rows);
    w.file = hr_region_take(region, elements, sizeof *w.rows);
    w.values = hr_region_take(region, elements, sizeof *w.values);
    w.codes = hr_region_take(region, elements, 1);
    w.scales = hr_region_take(region, elements / BLOCK + 1, sizeof *w.scales);
    char *text = hr_region_take(region, text_bytes, 1);
    if (!text) return hr_fail(err, HR_FAILURE, "out of memory for another format of states");
    hr_update_kernels_fill(&w.kernels, hr_cpu_detect());
    hr_status status = HR_OK;
    for (hr_kept kept = 0; kept < hr_kept_count(now) && status == HR_OK; kept++) {
        bool differs = false;
        w.kept_now = kept;
        w.kept_was = hr_reformat_source(was, now, kept);
        if (w.kept_was == HR_NONE || !hr_kept_any(now, kept)) continue;
        if (kept != HR_KEPT_WEIGHTS &&
            now->states[kept - HR_KEPT_STATES].shape != HR_STATE_ELEMENTS)
            continue;
        if (!hr_reformat_can(was, now, w.kept_was, kept, &differs) || !differs) continue;
        w.second = moment_of(now, kept) == 1;
        report(&w);
        files[0] = files[1] = -1;
        w.in.files = &files[0];
        w.in_scales.files = &files[1];
        w.out.file = w.out_scales.file = (hr_file_out){ .directory = -1, .file = -1 };
        status = write_file(&w, text, text_bytes, err);
        hr_file_close(&files[0]);
        hr_file_close(&files[1]);
        hr_weights_abort(&w.out);
        hr_weights_abort(&w.out_scales);
    }
    return status;
}
