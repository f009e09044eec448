/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/stage_text.c - what opening a stage and counting its words and atoms share:
 * regions within the budget, tables that grow, reading the text with several threads. */
#include "base/checked.h"
#include "headroom/config.h"
#include "tokenizer/train/stage.h"

hr_status hr_stage_report(const hr_stage *s, const char *work, int64_t done, int64_t all,
                          hr_error *err)
{
    const hr_tokenize_train_request *r = s->request;
    if (r->progress) r->progress(r->context, work, done, all);
    if (!r->interrupts || !*r->interrupts) return HR_OK;
    return hr_fail(err, HR_INTERRUPTED, "interrupted while %s", work);
}

hr_status hr_stage_region(hr_stage *s, const char *name, int64_t bytes, hr_region *region,
                          hr_error *err)
{
    const int64_t needed = hr_memory_bytes_with(&s->memory, bytes), budget = s->request->budget;
    if (budget && needed > budget) {
        char wanted[64], there[64];
        return hr_fail(err, HR_NO_FIT, "%s: needs at least %s, --budget is %s", name,
                       hr_bytes_print(needed, wanted), hr_bytes_print(budget, there));
    }
    return hr_memory_region_open(&s->memory, name, bytes, region, err);
}

hr_status hr_stage_tables(hr_stage *s, const hr_word_room rooms[HR_POOL_THREADS_MAX], hr_error *err)
{
    int64_t bytes = 0;
    hr_region region;
    for (int32_t i = 0; i < s->threads; i++) bytes += hr_word_counts_bytes(rooms[i]) + 192;
    hr_status status = hr_stage_region(s, "counting words", bytes, &region, err);
    if (status != HR_OK) return status;
    for (int32_t i = 0; i < s->threads; i++) {
        hr_word_counts larger;
        hr_word_counts_place(&larger, &region, rooms[i]);
        hr_word_counts_add_all(&larger, &s->workers[i].counts);
        s->workers[i].counts = larger;
        s->workers[i].full = false;
    }
    hr_memory_region_close(&s->memory, &s->counting);
    s->counting = region;
    return HR_OK;
}

static hr_status grow_tables(hr_stage *s, hr_error *err)
{
    hr_word_room rooms[HR_POOL_THREADS_MAX];
    for (int32_t i = 0; i < s->threads; i++) rooms[i] = hr_word_counts_more(&s->workers[i].counts);
    for (int32_t i = 0; i < s->threads; i++) {
        const hr_word_counts *counts = &s->workers[i].counts;
        if (s->workers[i].full && rooms[i].words == counts->room.words &&
            rooms[i].bytes == counts->room.bytes)
            rooms[i].bytes *= 2; /* the next word alone does not fit */
    }
    return hr_stage_tables(s, rooms, err);
}

enum { FEED_BYTES = 2 << 20 }; /* per thread, between checks for interrupts */

static void feed_some(void *context, int32_t thread, int32_t threads)
{
    hr_stage *s = context;
    hr_stage_worker *w = &s->workers[thread];
    (void)threads;
    if (!w->feed.finished && !w->full) w->status = hr_feed_run(&w->feed, FEED_BYTES, &w->err);
    if (w->changed) w->status = hr_fail(&w->err, HR_CORRUPT, "the text changed while it was read");
}

hr_status hr_stage_feed(hr_stage *s, const char *work,
                        bool (*word)(void *, const uint8_t *, int64_t), hr_error *err)
{
    hr_status status = HR_OK;
    bool finished = false;
    for (int32_t i = 0; i < s->threads; i++) {
        s->workers[i].feed.word = word;
        hr_feed_begin(&s->workers[i].feed, i, s->threads);
    }
    while (status == HR_OK && !finished) {
        int64_t done = 0;
        bool full = false;
        finished = true;
        hr_pool_run(&s->pool, feed_some, s);
        for (int32_t i = 0; i < s->threads && status == HR_OK; i++) {
            const hr_stage_worker *w = &s->workers[i];
            status = w->status;
            if (status != HR_OK && err) *err = w->err;
            full = full || w->full;
            finished = finished && w->feed.finished;
            done += w->feed.done;
        }
        if (status == HR_OK && full) status = grow_tables(s, err);
        if (status == HR_OK) status = hr_stage_report(s, work, done, s->source->bytes, err);
    }
    for (int32_t i = 0; i < s->threads; i++) hr_feed_end(&s->workers[i].feed);
    return status;
}

hr_status hr_stage_alphabet(hr_stage *s, const int64_t counts[256], hr_error *err)
{
    const hr_tokenize_train_request *r = s->request;
    hr_region region;
    hr_status status = hr_stage_region(s, "alphabet", hr_alphabet_bytes(r->initial_alphabet),
                                       &region, err);
    if (status == HR_OK)
        status = hr_alphabet_place(&s->alphabet, &region, counts, r->initial_alphabet,
                                   r->limit_alphabet, err);
    if (status != HR_OK) return status;
    const int64_t first = s->alphabet.count + r->special_count;
    if (r->vocab_size < first)
        return hr_fail(err, HR_USAGE,
                       "vocabulary size %lld: %lld characters and %d special tokens need %lld",
                       (long long)r->vocab_size, (long long)s->alphabet.count, r->special_count,
                       (long long)first);
    s->sizes.tokens = r->vocab_size + 1;
    s->sizes.leaves = hr_alphabet_leaves(&s->alphabet, r->special_tokens, r->special_count) + 64;
    return HR_OK;
}
