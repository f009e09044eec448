/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/synthetic.c - draws ids with integers alone, so that every machine has the same. */
#include "corpus/synthetic.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/random.h"

enum {
    VERSION = 1,       /* of the ids of a seed; part of the identity */
    MULTIPLIERS = 4096 /* tried for `a`; far fewer are needed below 2^30, and 1 always fits */
};

/* Below this, of 2^32: the next id follows from the previous one. */
#define FOLLOWS UINT32_C(0xc0000000)

static int64_t common_factor(int64_t x, int64_t y)
{
    while (y) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

static int32_t octaves_of(int64_t V)
{
    int32_t octaves = 0;
    for (; V; V >>= 1) octaves++;
    return octaves;
}

void hr_synthetic_begin(hr_synthetic *s, int64_t V, int64_t tokens, uint64_t seed, uint32_t lane,
                        uint32_t *ids)
{
    HR_ASSERT(V >= 1 && V <= INT64_C(1) << 30);
    const hr_random_stream stream = hr_random_stream_of(seed, 0, HR_SITE_SYNTHETIC, UINT32_MAX);
    const hr_random_row row = hr_random_row_of(stream, 0, 0);
    *s = (hr_synthetic){ .V = V, .tokens = tokens, .seed = seed, .lane = lane, .ids = ids };
    const int64_t first = hr_random_element(&row, 0) % V;
    s->a = 1;
    for (int64_t i = 0; i < MULTIPLIERS; i++) {
        const int64_t a = (first + i) % V;
        if (a < 2 || common_factor(a, V) != 1) continue;
        s->a = a;
        break;
    }
    s->c = hr_random_element(&row, 1) % V;
}

static int64_t draw(const hr_synthetic *s, int32_t octaves, const hr_random_block *random)
{
    const int32_t octave = (int32_t)((uint64_t)random->word[1] * (uint64_t)octaves >> 32);
    const int64_t place = random->word[2] & ((UINT32_C(1) << octave) - 1);
    return ((INT64_C(1) << octave) - 1 + place) % s->V;
}

int64_t hr_synthetic_next(hr_synthetic *s)
{
    const hr_random_stream stream = hr_random_stream_of(s->seed, 0, HR_SITE_SYNTHETIC, s->lane);
    const int32_t octaves = octaves_of(s->V);
    const int64_t count = hr_min(HR_SYNTHETIC_AT_ONCE, s->tokens - s->at);
    for (int64_t i = 0; i < count; i++, s->at++) {
        const hr_random_row row = hr_random_row_of(stream, (uint32_t)(s->at >> 32), 0);
        const hr_random_block random = hr_random_block_of(&row, (uint32_t)s->at);
        s->last = s->at && random.word[0] < FOLLOWS ? (s->a * s->last + s->c) % s->V
                                                    : draw(s, octaves, &random);
        s->ids[i] = (uint32_t)s->last;
    }
    return count;
}

/* ---- documents */

static hr_text_hash identity(const hr_synthetic *s)
{
    char text[160];
    const int bytes = snprintf(text, sizeof text,
                               "synthetic %d V=%" PRId64 " tokens=%" PRId64 " seed=%" PRIu64
                               " lane=%" PRIu32,
                               VERSION, s->V, s->tokens, s->seed, s->lane);
    HR_ASSERT(bytes < (int)sizeof text);
    const XXH128_hash_t hash = XXH3_128bits(text, (size_t)bytes);
    return (hr_text_hash){ hash.low64, hash.high64 };
}

static hr_status identify(void *context, const hr_text_progress *progress, hr_text_hash *hash,
                          int64_t *bytes, hr_error *err)
{
    (void)progress;
    (void)err;
    const hr_synthetic *s = context;
    *hash = identity(s);
    *bytes = s->tokens * (int64_t)sizeof *s->ids;
    return HR_OK;
}

static hr_status open_pass(void *context, const char *work, const hr_text_progress *progress,
                           hr_error *err)
{
    hr_synthetic *s = context;
    (void)err;
    s->at = s->last = 0;
    s->work = work;
    s->progress = progress;
    return HR_OK;
}

static hr_status next(void *context, hr_piece *piece, hr_error *err)
{
    hr_synthetic *s = context;
    const int64_t first = s->at, width = (int64_t)sizeof *s->ids;
    const hr_status status = hr_text_continue(s->progress, s->work, first * width,
                                              s->tokens * width, err);
    if (status != HR_OK) return status;
    const int64_t count = hr_synthetic_next(s);
    *piece = (hr_piece){ 0 };
    if (count)
        *piece = (hr_piece){ .ids = s->ids,
                             .count = count,
                             .begins = first == 0,
                             .targets = true,
                             .path = "synthetic",
                             .offset = first };
    return HR_OK;
}

static hr_text_hash seen(void *context, int64_t *bad_lines)
{
    *bad_lines = 0;
    return identity(context);
}

static void close_pass(void *context)
{
    (void)context;
}

hr_documents hr_synthetic_documents(hr_synthetic *s)
{
    return (hr_documents){ .context = s,
                           .is_ids = true,
                           .identify = identify,
                           .open = open_pass,
                           .next = next,
                           .seen = seen,
                           .close = close_pass };
}
