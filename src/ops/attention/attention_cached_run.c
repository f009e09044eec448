/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_cached_run.c - splits heads and positions of attention_cached over
 * threads.
 *
 * A unit is a number of heads of one group at a number of positions: large enough to share reads of
 * the cache, and smaller if there would be fewer units than threads. The bits of a row do not
 * depend on the split. */
#include "base/assert.h"
#include "base/element.h"
#include "ops/attention/attention_scratch.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/kv_cache/kv_cache.h"

/* Split of a call: units of at most `heads` heads and `rows` positions. */
typedef struct {
    int64_t heads, rows;
    int64_t parts; /* units per group */
} cut;

static int64_t parts_of(int64_t count, int64_t each)
{
    return (count + each - 1) / each;
}

static cut cut_of(const hr_attention_cached_attr *attr, int64_t rows, int32_t threads)
{
    const int64_t shared = attr->H / attr->G;
    cut c = { .heads = hr_min(shared, ATTENTION_QUERY_TILE) };
    c.rows = hr_max(1, hr_min(rows, ATTENTION_QUERY_TILE / c.heads));
    for (;;) {
        c.parts = parts_of(shared, c.heads);
        if (attr->G * c.parts * parts_of(rows, c.rows) >= threads) return c;
        if (c.heads > 1) c.heads = (c.heads + 1) / 2;
        else if (c.rows > 1) c.rows = (c.rows + 1) / 2;
        else return c;
    }
}

/* End of the unit of positions that starts at `first`; it stays in one block of the mask. */
static int64_t unit_end(const hr_attention_mask *mask, const cut *c, int64_t first, int64_t end)
{
    return hr_min(hr_min(first + c->rows, end), (first / mask->block + 1) * mask->block);
}

typedef struct {
    const hr_call *call;
    const hr_attention_cached_attr *attr;
    hr_attention_mask mask;
    int64_t position; /* position of the call's first row */
    uint8_t *scratch;
} share;

/* Rows of head `group` of a cache. */
static hr_attention_rows cache_rows(const share *s, void *cache, int64_t group)
{
    enum { AHEAD_ROWS = 8 };
    const int64_t width = s->attr->head_width, at = group * s->attr->capacity * width;
    return (hr_attention_rows){ hr_element_at(cache, at, s->call->dtype), width, AHEAD_ROWS, 0 };
}

static void run_unit(const share *s, int64_t head, int64_t heads, int64_t first, int64_t last)
{
    const hr_attention_cached_attr *attr = s->attr;
    const hr_call *call = s->call;
    const int64_t group = head / (attr->H / attr->G), row = first - s->position;
    const int64_t o_width = (int64_t)attr->H * attr->head_width;
    const int64_t q = row * attr->q_width + attr->q_offset + head * attr->q_head_stride;
    const int64_t o = row * o_width + head * attr->head_width;
    const hr_attention_cached_task task = {
        .head = { .q = { hr_element_at(call->in[0], q, call->dtype), attr->q_width, 0, 0 },
                  .k = cache_rows(s, call->in[1], group),
                  .v = cache_rows(s, call->in[2], group),
                  .o = { hr_element_at(call->out[0], o, call->dtype), o_width, 0, 0 },
                  .length = last - first,
                  .head_width = attr->head_width,
                  .dtype = call->dtype,
                  .mask = s->mask,
                  .scale = attr->scale,
                  .keep_scale = 1,
                  .scratch = s->scratch },
        .heads = heads,
        .q_head_stride = attr->q_head_stride,
        .o_head_stride = attr->head_width,
        .position = first,
        .capacity = attr->capacity
    };
    call->kernels->attention.cached[call->dtype](&task);
}

/* The ring buffer must hold the whole window: see hr_kv_cache_rows. */
static void check(const share *s)
{
    const hr_attention_cached_attr *attr = s->attr;
    const int64_t end = s->position + s->call->rows;
    const int64_t needed = attr->mask.window + s->call->rows - 1;
    HR_ASSERT(attr->H >= 1 && attr->G >= 1 && attr->H % attr->G == 0);
    HR_ASSERT(attr->head_width >= 1 && attr->head_width <= HR_ATTENTION_HEAD_MAX);
    HR_ASSERT(attr->scale > 0 && s->position >= 0);
    HR_ASSERT(end <= attr->capacity ||
              (attr->mask.kind == HR_PATTERN_SLIDING && attr->capacity >= needed &&
               attr->capacity % HR_KV_CACHE_BLOCK == 0));
}

void hr_attention_cached_run(const hr_call *call)
{
    const hr_attention_cached_attr *attr = call->attr;
    share s = { .call = call,
                .attr = attr,
                .mask = attr->mask,
                .position = *(const int32_t *)call->in[3] + call->row_first,
                .scratch = (uint8_t *)call->scratch +
                           call->thread * attention_cached_thread_bytes(attr) };
    const int64_t end = s.position + call->rows, shared = attr->H / attr->G;
    const cut c = cut_of(attr, call->rows, call->threads);
    check(&s);
    if (s.mask.kind == HR_PATTERN_DENSE || s.mask.kind == HR_PATTERN_SLIDING)
        s.mask.block = INT32_MAX;
    int64_t tiles = 0, first_unit, last_unit;
    for (int64_t at = s.position; at < end; at = unit_end(&s.mask, &c, at, end)) tiles++;
    hr_share(attr->G * c.parts * tiles, call->thread, call->threads, &first_unit, &last_unit);
    for (int64_t unit = 0, part = 0; part < attr->G * c.parts; part++) {
        const int64_t head = part % c.parts * c.heads;
        const int64_t heads = hr_min(c.heads, shared - head);
        for (int64_t at = s.position, next; at < end; at = next, unit++) {
            next = unit_end(&s.mask, &c, at, end);
            if (unit >= first_unit && unit < last_unit)
                run_unit(&s, part / c.parts * shared + head, heads, at, next);
        }
    }
}

const hr_op_run hr_attention_cached_cpu_run = { hr_attention_cached_run, 1 };
