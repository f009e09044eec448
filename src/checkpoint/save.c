/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/save.c - double buffering: one thread writes rows while the others gather the next
 * ones. */
#include "checkpoint/save.h"

#include "base/assert.h"
#include "base/checked.h"

/* Rows of a parameter in row-major order, as other software stores them. */
typedef struct {
    int64_t first, count;
    uint8_t *staging;
} part;

typedef struct {
    hr_weights_out *out;
    int32_t param;
    const void *values;
    hr_residual residual;
    int64_t width, row_bytes;
    part gathered, next; /* count 0: none */
    hr_status status;
    hr_error *err;
} saving;

/* Each of `shares` threads gathers whole panels, so that no cache line is read by two. */
static void gather(const saving *s, int64_t share, int64_t shares)
{
    const part *next = &s->next;
    const int64_t panels = (next->count + HR_PANEL_WIDTH - 1) / HR_PANEL_WIDTH;
    const int64_t first = hr_min(panels * share / shares * HR_PANEL_WIDTH, next->count);
    const int64_t end = hr_min(panels * (share + 1) / shares * HR_PANEL_WIDTH, next->count);
    if (first < end)
        hr_weights_gather(s->out->program, s->param, s->out->kept, s->values, s->residual,
                          next->first + first, end - first, next->staging + first * s->row_bytes);
}

static void work(void *context, int32_t thread, int32_t threads)
{
    saving *s = context;
    if (thread == 0 && s->gathered.count)
        s->status = hr_weights_append(s->out, s->param, s->gathered.staging,
                                      s->gathered.count * s->width, s->err);
    /* In the first round thread 0 has nothing to write, and it may be the only thread. */
    if (threads == 1 || !s->gathered.count) gather(s, thread, threads);
    else if (thread > 0) gather(s, thread - 1, threads - 1);
}

/* Writes half of the staging buffer while the other half is filled. One extra round writes the last
 * half. */
static void save_double_buffered(saving *s, hr_pool *pool, int64_t rows, int64_t capacity,
                                 uint8_t *staging)
{
    uint8_t *other = staging + capacity * s->row_bytes;
    for (int64_t row = 0; row < rows + capacity && s->status == HR_OK; row += capacity) {
        s->next = (part){ row, hr_max(hr_min(capacity, rows - row), 0), staging };
        hr_pool_run(pool, work, s);
        s->gathered = s->next;
        uint8_t *const filled = staging;
        staging = other;
        other = filled;
    }
}

static void save_serially(saving *s, int64_t rows, int64_t capacity, uint8_t *staging)
{
    for (int64_t row = 0; row < rows && s->status == HR_OK; row += capacity) {
        s->next = (part){ row, hr_min(capacity, rows - row), staging };
        gather(s, 0, 1);
        s->status = hr_weights_append(s->out, s->param, staging, s->next.count * s->width, s->err);
    }
}

hr_status hr_save(hr_weights_out *out, int32_t param, hr_pool *pool, const void *values,
                  hr_residual residual, const float *scales, void *staging, int64_t staging_bytes,
                  hr_error *err)
{
    enum { PANEL = HR_PANEL_WIDTH };
    const hr_kept_shape shape = hr_kept_shape_of(out->program, param, out->kept);
    const int64_t rows = hr_weights_rows(shape), width = hr_weights_width(shape);
    const int64_t row_bytes = width * hr_kept_element_bytes(out->program, param, out->kept);
    const int64_t capacity = staging_bytes / row_bytes;
    saving s = { .out = out,
                 .param = param,
                 .values = values,
                 .residual = residual,
                 .width = width,
                 .row_bytes = row_bytes,
                 .err = err };
    HR_ASSERT(capacity > 0);
    if (rows > PANEL && capacity >= 2 * PANEL)
        save_double_buffered(&s, pool, rows, capacity / 2 / PANEL * PANEL, staging);
    else save_serially(&s, rows, capacity > PANEL ? capacity / PANEL * PANEL : capacity, staging);
    return s.status == HR_OK ? hr_weights_append_scales(out, param, scales, err) : s.status;
}
