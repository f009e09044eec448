/* SPDX-License-Identifier: Apache-2.0 */
/* attention_cached_cases.h - attention of a sequence in one call, and in pieces over a KV cache:
 * the bits must agree. The cache is poisoned with NaN and ends at an inaccessible page. */
#ifndef HR_TESTS_OPS_ATTENTION_CACHED_CASES_H
#define HR_TESTS_OPS_ATTENTION_CACHED_CASES_H

#include "attention_cases.h"
#include "ops/cpu.h"
#include "ops/kv_cache/kv_cache.h"

typedef struct {
    hr_kv_cache_attr append;
    hr_attention_cached_attr attend;
    void *keys, *values;
    hr_guard guard[2];
} cached_room;

/* A cache for pieces of at most `rows` rows. */
static inline void cached_open(const attention_case *c, int64_t rows, cached_room *room)
{
    const hr_attention_attr *a = &c->attr;
    const bool slides = a->mask.kind == HR_PATTERN_SLIDING;
    const int64_t capacity = hr_kv_cache_rows(a->T, rows, slides ? a->mask.window : 0);
    const int64_t bytes = a->G * capacity * a->head_width * hr_dtype_bytes(c->dtype);
    *room = (cached_room){ .append = { .G = a->G,
                                       .head_width = a->head_width,
                                       .capacity = capacity,
                                       .k_width = c->fused ? a->q_width : a->k_width,
                                       .v_width = c->fused ? a->q_width : a->v_width,
                                       .k_offset = a->k_offset,
                                       .v_offset = a->v_offset,
                                       .k_head_stride = a->k_head_stride,
                                       .v_head_stride = a->v_head_stride },
                           .attend = { .H = a->H,
                                       .G = a->G,
                                       .head_width = a->head_width,
                                       .capacity = capacity,
                                       .q_width = a->q_width,
                                       .q_offset = a->q_offset,
                                       .q_head_stride = a->q_head_stride,
                                       .mask = a->mask,
                                       .scale = a->scale } };
    room->keys = hr_guard_open(&room->guard[0], bytes);
    room->values = hr_guard_open(&room->guard[1], bytes);
    memset(room->keys, 0xff, (size_t)bytes);
    memset(room->values, 0xff, (size_t)bytes);
}

static inline void cached_close(cached_room *room)
{
    hr_guard_close(&room->guard[0]);
    hr_guard_close(&room->guard[1]);
}

/* Rows of a tensor from `first` on. */
static inline void *case_rows(const attention_case *c, const attention_tensors *t, int tensor,
                              int64_t first)
{
    if (!t->at[tensor]) return NULL;
    return (char *)t->at[tensor] + first * (t->count[tensor] / c->rows) * case_bytes(c, tensor);
}

/* Appends rows [first, first + rows) to the cache and runs attention on them. `inside` of the
 * position is in the row index of the call, the rest in the position operand. */
static inline void cached_piece(const attention_case *c, attention_tensors *t, cached_room *room,
                                uint32_t mask, int32_t threads, int64_t first, int64_t rows,
                                int64_t inside)
{
    const int32_t position = (int32_t)(first - inside);
    const int64_t bytes = hr_attention_cached_cpu.scratch_bytes(&room->attend, rows, threads);
    hr_kernels kernels;
    hr_guard guard;
    hr_kernels_fill(&kernels, mask);
    hr_call append = { .in = { case_rows(c, t, c->fused ? CASE_Q : CASE_K, first),
                               case_rows(c, t, CASE_V, first), (void *)&position },
                       .out = { room->keys, room->values },
                       .attr = &room->append,
                       .rows = rows,
                       .row_first = inside,
                       .dtype = c->dtype,
                       .threads = threads };
    hr_call attend = { .in = { case_rows(c, t, CASE_Q, first), room->keys, room->values,
                               (void *)&position },
                       .out = { case_rows(c, t, CASE_O, first) },
                       .attr = &room->attend,
                       .kernels = &kernels,
                       .rows = rows,
                       .row_first = inside,
                       .dtype = c->dtype,
                       .threads = threads };
    for (append.thread = 0; append.thread < threads; append.thread++) hr_cache_append_run(&append);
    attend.scratch = hr_guard_open(&guard, bytes);
    memset(attend.scratch, 0xff, (size_t)bytes);
    for (attend.thread = 0; attend.thread < threads; attend.thread++)
        hr_attention_cached_run(&attend);
    hr_guard_close(&guard);
}

/* Compares the whole sequence in one call with pieces of 1 to `most` rows, half of them single
 * rows. */
static inline void cached_check(const attention_case *c, uint32_t mask, int64_t most,
                                case_random random)
{
    attention_tensors whole, pieces;
    cached_room room;
    case_open(c, &whole, random);
    case_open(c, &pieces, random);
    cached_open(c, most, &room);
    case_call(c, &whole, false, mask, 1, 0, c->rows);
    for (int64_t at = 0, rows; at < c->rows; at += rows) {
        const bool single = at > 0 && case_below(&random, 2);
        rows = single ? 1 : 1 + case_below(&random, most);
        if (at == 0) rows = most;
        rows = hr_min(rows, c->rows - at);
        cached_piece(c, &pieces, &room, mask, 1 + (int32_t)case_below(&random, 5), at, rows,
                     case_below(&random, at + 1));
    }
    for (int64_t i = 0; i < c->rows; i++) {
        const int64_t width = (int64_t)c->attr.H * c->attr.head_width;
        if (!memcmp(case_rows(c, &whole, CASE_O, i), case_rows(c, &pieces, CASE_O, i),
                    (size_t)(width * case_bytes(c, CASE_O))))
            continue;
        case_print(c);
        int64_t e = 0;
        while (case_get(c, &whole, CASE_O, i * width + e) ==
               case_get(c, &pieces, CASE_O, i * width + e))
            e++;
        fail_msg("%s, pieces of %d: row %d element %d is %.9g, in the whole %.9g",
                 hr_cpu_rung_name(mask), (int)most, (int)i, (int)e,
                 case_get(c, &pieces, CASE_O, i * width + e),
                 case_get(c, &whole, CASE_O, i * width + e));
    }
    cached_close(&room);
    case_close(&whole);
    case_close(&pieces);
}

/* Shapes that cross blocks and chunks of 256 keys, in every pattern. */
static inline void cached_check_all(const uint32_t *masks, int mask_count, bool bf16_only,
                                    case_random random)
{
    static const struct {
        int64_t T;
        int32_t H, G, width;
        bool fused;
        int64_t most;
        hr_attention_mask mask;
    } shapes[] = {
        { 530, 2, 2, 64, true, 70, { HR_PATTERN_DENSE, 64, 0, 1 } },
        { 300, 4, 1, 24, false, 300, { HR_PATTERN_DENSE, 64, 0, 1 } },
        { 290, 6, 2, 16, false, 1, { HR_PATTERN_DENSE, 64, 0, 1 } },
        { 140, 150, 1, 8, false, 9, { HR_PATTERN_DENSE, 64, 0, 1 } },
        { 70, 2, 1, 256, true, 33, { HR_PATTERN_DENSE, 64, 0, 1 } },
        { 330, 2, 1, 16, true, 50, { HR_PATTERN_LOCAL, 64, 1, 1 } },
        { 330, 2, 2, 16, true, 50, { HR_PATTERN_GLOBAL, 48, 0, 3 } },
        { 430, 4, 2, 16, false, 40, { HR_PATTERN_MIXED, 20, 2, 3 } },
        { 600, 2, 1, 16, false, 40, { HR_PATTERN_SLIDING, 1, 100, 1 } },
        { 600, 4, 2, 32, false, 1, { HR_PATTERN_SLIDING, 1, 64, 1 } },
        { 300, 2, 2, 16, true, 7, { HR_PATTERN_SLIDING, 1, 1, 1 } },
        { 300, 2, 2, 16, true, 64, { HR_PATTERN_SLIDING, 1, 63, 1 } },
        { 700, 2, 1, 16, false, 130, { HR_PATTERN_SLIDING, 1, 257, 1 } },
        { 200, 3, 1, 20, false, 30, { HR_PATTERN_SLIDING, 1, 300, 1 } },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int m = 0; m < mask_count; m++)
            for (int type = bf16_only; type < (bf16_only ? 2 : 3); type++) {
                attention_case c = case_of(shapes[i].T, shapes[i].H, shapes[i].G, shapes[i].width,
                                           shapes[i].fused, i % 2 ? 3 : 0);
                c.attr.mask = shapes[i].mask;
                c.dtype = case_dtypes[type];
                cached_check(&c, masks[m], shapes[i].most, random);
                case_draw(&random);
            }
}

#endif
