/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/convert_tensor.c - reads a tensor in pieces through one buffer. F8_E4M3 is converted
 * in rows that share a row of blocks. */
#include "checkpoint/convert_tensor.h"

#include <math.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "checkpoint/narrow.h"
#include "checkpoint/unpack.h"

enum { NAME_SHOWN = 120 };

static hr_status check_interrupts(const hr_tensor_conversion *c, hr_error *err)
{
    const volatile sig_atomic_t *interrupts = c->interrupts;
    if (!interrupts || *interrupts == 0) return HR_OK;
    return hr_fail(err, HR_INTERRUPTED, "interrupted; the unfinished files in %.200s were removed",
                   c->destination);
}

/* Narrows merged rows, which are in c->wide. */
static const void *narrow_merged(const hr_tensor_conversion *c, hr_stored_kind to, int64_t count)
{
    bool held = true;
    for (int64_t i = 0; i < count; i++) {
        if (to == HR_STORED_BF16) c->half[i] = hr_bf16_from_f32(c->wide[i]);
        held &= isfinite(to == HR_STORED_BF16 ? hr_bf16_to_f32(c->half[i]) : c->wide[i]) != 0;
    }
    return !held ? NULL : to == HR_STORED_BF16 ? (const void *)c->half : c->wide;
}

/* Converts rows [first, first + rows) of `width` elements in c->piece. Returns the result, or null
 * if an element cannot be represented.
 *   scales  of F8_E4M3: the factors of the rows, before or after the conversion */
static const void *convert_elements(const hr_tensor_conversion *c, const hr_converted *r,
                                    int64_t first, int64_t rows, int64_t width, const float *scales)
{
    const hr_stored_kind to = r->dtype->kind;
    const bool halves = to == HR_STORED_BF16 && !c->low;
    const hr_unpack unpack = { .kind = r->from->dtype->kind,
                               .layout = HR_ROWS,
                               .K = rows,
                               .N = width,
                               .master = halves ? NULL : c->wide,
                               .weight = halves ? c->half : NULL,
                               .cpu_mask = c->cpu_mask,
                               .scales = scales };
    bool held = hr_unpack_take(&unpack, 0, rows, c->piece);
    if (halves || !held) return held ? c->half : NULL;
    if (c->low) hr_low_rank_add(c->low, first, rows, c->wide);
    if (c->low && (to == HR_STORED_BF16 || to == HR_STORED_F32))
        return narrow_merged(c, to, rows * width);
    if (to == HR_STORED_F32) return c->wide;
    for (int64_t i = 0; i < rows * width; i++)
        if (to == HR_STORED_F16) held &= hr_narrow_to_f16(c->wide[i], &c->half[i]);
        else
            ((uint8_t *)c->half)[i] = hr_e4m3_from_f32(c->wide[i] /
                                                       scales[i % width / HR_SCALE_BLOCK]);
    return held ? c->half : NULL;
}

static hr_status read_piece(const hr_tensor_conversion *c, const hr_converted *r, int64_t at,
                            int64_t bytes, hr_error *err)
{
    const hr_status status = check_interrupts(c, err);
    if (status != HR_OK) return status;
    return hr_file_read(c->stored->files[r->from->file].file, c->stored->path, r->from->offset + at,
                        c->piece, bytes, err);
}

static hr_status fail_values(const hr_tensor_conversion *c, const hr_converted *r, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT,
                   "%.200s: tensor %.*s has values that are NaN, Inf or too large for %s",
                   c->stored->path, NAME_SHOWN, r->from->name, r->dtype->name);
}

static hr_status copy_tensor(const hr_tensor_conversion *c, hr_file_out *out, const hr_converted *r,
                             hr_error *err)
{
    for (int64_t at = 0; at < r->bytes; at += HR_CONVERT_PIECE_BYTES) {
        const int64_t some = hr_min(HR_CONVERT_PIECE_BYTES, r->bytes - at);
        hr_status status = read_piece(c, r, at, some, err);
        if (status == HR_OK) status = hr_file_append(out, c->piece, some, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

/* Rows of a matrix that are converted at once: they lie in one row of blocks. */
static int64_t rows_of_piece(const hr_stored_tensor *tensor)
{
    int64_t rows = HR_SCALE_BLOCK;
    while (rows * tensor->dims[1] > HR_CONVERT_PIECE) rows /= 2;
    return rows;
}

/* The scales of new F8_E4M3 rows [first, first + 128): the largest magnitude of a block becomes
 * 448. A block of zeros has the scale 1. */
static hr_status find_scales(const hr_tensor_conversion *c, const hr_converted *r, int64_t first,
                             float scales[HR_SCALES_MAX], hr_error *err)
{
    const int64_t width = r->from->dims[1], size = r->from->dtype->bits / 8;
    const int64_t step = rows_of_piece(r->from);
    const int64_t end = hr_min(first + HR_SCALE_BLOCK, r->from->dims[0]);
    const hr_converted wide = { .from = r->from, .dtype = hr_stored_dtype_find("F32") };
    for (int64_t i = 0; i < hr_scale_blocks(width); i++) scales[i] = 0;
    for (int64_t at = first; at < end; at += step) {
        const int64_t rows = hr_min(step, end - at);
        const hr_status status = read_piece(c, r, at * width * size, rows * width * size, err);
        if (status != HR_OK) return status;
        const float *values = convert_elements(c, &wide, at, rows, width, NULL);
        if (!values) return fail_values(c, r, err);
        for (int64_t i = 0; i < rows * width; i++) {
            float *scale = &scales[i % width / HR_SCALE_BLOCK];
            *scale = fmaxf(*scale, fabsf(values[i]));
        }
    }
    for (int64_t i = 0; i < hr_scale_blocks(width); i++)
        scales[i] = scales[i] > 0 ? scales[i] / 448 : 1;
    return HR_OK;
}

static hr_status write_scales(const hr_tensor_conversion *c, hr_file_out *out,
                              const hr_converted *r, hr_error *err)
{
    float scales[HR_SCALES_MAX];
    for (int64_t first = 0; first < r->from->dims[0]; first += HR_SCALE_BLOCK) {
        hr_status status = find_scales(c, r, first, scales, err);
        if (status == HR_OK)
            status = hr_file_append(
                out, scales, hr_scale_blocks(r->from->dims[1]) * (int64_t)sizeof *scales, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

/* From or to F8_E4M3, or with an adapter. `out` null: nothing is written. */
static hr_status write_matrix(const hr_tensor_conversion *c, hr_file_out *out,
                              const hr_converted *r, hr_error *err)
{
    const int64_t width = r->from->dims[1], step = rows_of_piece(r->from);
    const int64_t size = r->from->dtype->bits / 8, to_size = r->dtype->bits / 8;
    const bool narrows = r->dtype->kind == HR_STORED_E4M3;
    float scales[HR_SCALES_MAX];
    for (int64_t at = 0; at < r->from->dims[0]; at += step) {
        const int64_t rows = hr_min(step, r->from->dims[0] - at);
        hr_status status = HR_OK;
        if (narrows && at % HR_SCALE_BLOCK == 0) status = find_scales(c, r, at, scales, err);
        else if (r->old_scales.columns)
            status = hr_block_scales_read(&r->old_scales, c->stored->files[r->old_scales.file].file,
                                          c->stored->path, at / HR_SCALE_BLOCK, scales, err);
        if (status == HR_OK) status = read_piece(c, r, at * width * size, rows * width * size, err);
        if (status != HR_OK) return status;
        const void *written = convert_elements(c, r, at, rows, width, scales);
        if (!written) return fail_values(c, r, err);
        if (out) status = hr_file_append(out, written, rows * width * to_size, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

/* Finds the lengths of the outputs with the adapter, before they are changed. */
static hr_status measure(const hr_tensor_conversion *c, const hr_converted *r, hr_error *err)
{
    const hr_converted wide = { .from = r->from,
                                .dtype = hr_stored_dtype_find("F32"),
                                .old_scales = r->old_scales };
    c->low->measures = true;
    const hr_status status = write_matrix(c, NULL, &wide, err);
    c->low->measures = false;
    return status;
}

hr_status hr_convert_tensor(const hr_tensor_conversion *c, hr_file_out *out, const hr_converted *r,
                            hr_error *err)
{
    const int64_t size = r->from->dtype->bits / 8, to_size = r->dtype->bits / 8;
    if (c->low && c->low->magnitudes) {
        const hr_status status = measure(c, r, err);
        if (status != HR_OK) return status;
    }
    if (r->scales) return write_scales(c, out, r, err);
    if (r->dtype == r->from->dtype && !c->low) return copy_tensor(c, out, r, err);
    if (c->low || r->dtype->kind == HR_STORED_E4M3 || r->from->dtype->kind == HR_STORED_E4M3)
        return r->bytes ? write_matrix(c, out, r, err) : HR_OK;
    const int64_t elements = r->bytes / to_size;
    for (int64_t at = 0; at < elements; at += HR_CONVERT_PIECE) {
        const int64_t some = hr_min(HR_CONVERT_PIECE, elements - at);
        hr_status status = read_piece(c, r, at * size, some * size, err);
        if (status != HR_OK) return status;
        const void *written = convert_elements(c, r, 0, some, 1, NULL);
        if (!written) return fail_values(c, r, err);
        status = hr_file_append(out, written, some * to_size, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}
