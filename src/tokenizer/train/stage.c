/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/stage.c - opens a stage, scans and counts the text with several threads, and
 * plans the memory. */
#include "tokenizer/train/stage.h"

#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/random.h"
#include "headroom/config.h"
#include "mem/limits.h"
#include "tokenizer/train/output.h"

/* ---- opening */

static hr_status read_like(hr_stage *s, const char *path, hr_error *err)
{
    int file = -1;
    int64_t bytes;
    hr_region text = { 0 };
    hr_status status = hr_file_open(path, &file, &bytes, err);
    if (status == HR_OK) status = hr_stage_region(s, path, bytes + 1, &text, err);
    if (status == HR_OK) status = hr_file_read(file, path, 0, text.base, bytes, err);
    if (status == HR_OK)
        status = hr_pipeline_read(&s->pipeline, &s->settings, path, (char *)text.base, bytes, err);
    hr_file_close(&file);
    hr_memory_region_close(&s->memory, &text);
    return status;
}

static hr_status open_pipeline(hr_stage *s, hr_error *err)
{
    const hr_tokenize_train_request *r = s->request;
    const bool two = s->number == 2;
    const char *like = two ? r->like_two : r->like, *pattern = two ? r->pattern_two : r->pattern;
    if (like) return read_like(s, like, err);
    if (!pattern && r->transition) pattern = "super";
    return hr_pipeline_name(&s->pipeline, &s->settings, pattern, s->number, r->prefix_space, err);
}

static hr_status open_inherited(hr_stage *s, hr_error *err)
{
    int file = -1;
    int64_t bytes;
    hr_region text = { 0 }, region = { 0 };
    hr_status status = hr_file_open(s->merges_path, &file, &bytes, err);
    if (status == HR_OK) status = hr_stage_region(s, s->merges_path, bytes + 1, &text, err);
    if (status == HR_OK) status = hr_file_read(file, s->merges_path, 0, text.base, bytes, err);
    hr_file_close(&file);
    if (status != HR_OK) return status;
    const char *merges = (const char *)text.base;
    for (int64_t i = 0; i < bytes; i++)
        s->merges_hash = hr_random_mix(s->merges_hash ^ (uint8_t)merges[i]);
    const int64_t lines = hr_inherited_lines(merges, bytes, INT64_MAX);
    int64_t asked = s->request->transition;
    if (lines < asked && s->request->inherit)
        status = hr_fail(err, HR_USAGE, "--transition %lld: %s has only %lld lines of merges",
                         (long long)asked, s->merges_path, (long long)lines);
    asked = hr_min(asked, lines); /* stage 1 of a small text may have made fewer */
    if (status == HR_OK)
        status = hr_stage_region(s, "inherited merges", hr_inherited_bytes(asked), &region, err);
    if (status == HR_OK)
        status = hr_inherited_place(
            &s->inherited, &region, s->merges_path, merges, bytes, asked,
            s->request->max_token_length ? s->request->max_token_length : INT64_MAX, err);
    hr_memory_region_close(&s->memory, &text);
    return status;
}

static bool scan_progress(void *context, const char *work, int64_t done, int64_t all)
{
    hr_error ignored;
    return hr_stage_report(context, work, done, all, &ignored) != HR_OK;
}

static hr_status scan(hr_stage *s, hr_error *err)
{
    hr_region scratch = { 0 };
    const int64_t begun = hr_clock_ns();
    hr_status status = hr_stage_region(s, "scanning the text", HR_FEED_BYTES_LEAST, &scratch, err);
    if (status == HR_OK)
        status = hr_feed_scan(s->source, s->request->files, s->request->file_count, scratch.base,
                              HR_FEED_BYTES_LEAST, scan_progress, s, err);
    hr_memory_region_close(&s->memory, &scratch);
    s->result->plan.text_bytes = s->source->bytes;
    s->result->plan.lines = s->source->lines;
    s->result->look_seconds += (double)(hr_clock_ns() - begun) / 1e9;
    return status;
}

enum { SETTINGS_BYTES = 1 << 20 };

hr_status hr_stage_open(hr_stage *s, hr_error *err)
{
    hr_status status = hr_threads_choose(s->request->threads, &s->threads, err);
    if (status == HR_OK) status = hr_memory_open(&s->memory, err);
    if (status == HR_OK) status = hr_stage_region(s, "settings", SETTINGS_BYTES, &s->settings, err);
    if (status != HR_OK) return status;
    s->source = hr_region_take(&s->settings, 1, sizeof *s->source);
    s->output = hr_region_take_raw(&s->settings, HR_OUTPUT_BYTES, 1);
    if (!s->source || !s->output) return hr_fail(err, HR_NO_FIT, "out of memory for the settings");
    status = open_pipeline(s, err);
    if (status == HR_OK && s->number == 2) status = open_inherited(s, err);
    if (status == HR_OK) status = scan(s, err);
    return status;
}

/* ---- counting */

static hr_word_room first_room(const hr_stage *s)
{
    const int64_t words = 8192 + s->source->bytes / s->threads / 256;
    return (hr_word_room){ words, 16 * words };
}

static hr_status open_reading(hr_stage *s, hr_error *err)
{
    void *stacks;
    hr_status status = hr_stage_region(s, "pattern", hr_pretokenizer_bytes(&s->pipeline.cut) + 64,
                                       &s->cutting, err);
    if (status == HR_OK)
        status = hr_pretokenizer_place(&s->pretokenizer, &s->cutting, &s->pipeline.cut,
                                       hr_cpu_detect(), err);
    if (status != HR_OK) return status;
    const int64_t buffer = hr_feed_buffer_bytes(s->source);
    const int64_t places = s->number == 2 ? INT64_C(1) << HR_ATOM_PLACE_BITS : 0;
    const int64_t each = hr_round_up(hr_pretokenizer_cursor_bytes(s->pretokenizer), 64) + buffer +
                         HR_FEED_BEHIND + 192 + places * (int64_t)sizeof(hr_atom_place) +
                         hr_round_up((int64_t)sizeof *s->workers, 64);
    status = hr_stage_region(s, "reading", each * s->threads + 64, &s->reading, err);
    if (status != HR_OK) return status;
    s->workers = hr_region_take(&s->reading, s->threads, sizeof *s->workers);
    for (int32_t i = 0; status == HR_OK && i < s->threads; i++) {
        hr_feed *feed = &s->workers[i].feed;
        feed->source = s->source;
        feed->buffer_bytes = buffer;
        feed->buffer = hr_region_take(&s->reading, buffer + HR_FEED_BEHIND, 1);
        feed->prefix_space = s->pipeline.prefix_space;
        feed->context = &s->workers[i];
        feed->descriptor = -1;
        s->workers[i].stage = s;
        s->workers[i].places = hr_region_take(&s->reading, places, sizeof(hr_atom_place));
        HR_ASSERT(feed->buffer);
        status = hr_pretokenizer_cursor_place(&feed->cut, &s->reading, s->pretokenizer, err);
    }
    const int64_t bytes = hr_pool_bytes(s->threads);
    if (status == HR_OK) status = hr_memory_stacks_open(&s->memory, bytes, &stacks, err);
    if (status == HR_OK) status = hr_pool_open(&s->pool, stacks, bytes, s->threads, err);
    return status;
}

/* Combines the words of all threads in one table. */
static hr_status join_tables(hr_stage *s, hr_error *err)
{
    hr_word_room room = { 0, 0 };
    if (s->threads == 1) {
        s->words = s->workers[0].counts;
        return HR_OK;
    }
    for (int32_t i = 0; i < s->threads; i++) {
        room.words += s->workers[i].counts.word_count;
        room.bytes += s->workers[i].counts.text_bytes;
    }
    room.words = hr_max(room.words, 1);
    hr_status status = hr_stage_region(s, "words of all threads", hr_word_counts_bytes(room) + 192,
                                       &s->merged, err);
    if (status != HR_OK) return status;
    hr_word_counts_place(&s->words, &s->merged, room);
    for (int32_t i = 0; i < s->threads; i++)
        hr_word_counts_add_all(&s->words, &s->workers[i].counts);
    /* The text is the last allocation in the region. */
    s->merged.used -= room.bytes - s->words.text_bytes;
    hr_memory_region_trim(&s->memory, &s->merged);
    return HR_OK;
}

hr_status hr_stage_count(hr_stage *s, hr_error *err)
{
    const bool two = s->number == 2;
    const int64_t begun = hr_clock_ns();
    hr_word_room rooms[HR_POOL_THREADS_MAX];
    for (int32_t i = 0; i < s->threads; i++) rooms[i] = first_room(s);
    hr_status status = open_reading(s, err);
    if (status == HR_OK) status = hr_stage_tables(s, rooms, err);
    if (status == HR_OK)
        status = hr_stage_feed(s, "counting words",
                               two ? hr_stage_count_atoms : hr_stage_count_word, err);
    if (status == HR_OK) status = join_tables(s, err);
    if (status == HR_OK) status = two ? hr_stage_size_atoms(s, err) : hr_stage_size_words(s, err);
    s->result->count_seconds += (double)(hr_clock_ns() - begun) / 1e9;
    return status;
}

/* ---- the plan */

enum { WRITING_REGIONS = 6 };

/* The regions that are freed once the corpus is written. */
static void writing_regions(hr_stage *s, hr_region *regions[WRITING_REGIONS])
{
    hr_region *const list[WRITING_REGIONS] = { &s->cutting, &s->reading, &s->counting,
                                               &s->merged,  &s->atoms,   &s->bordering };
    memcpy(regions, list, sizeof list);
}

/* The plan covers two phases: first all open regions and the corpus, then the corpus and the
 * arena. */
static void make_plan(hr_stage *s, bool resumed)
{
    hr_region *writing[WRITING_REGIONS];
    hr_tokenize_train_plan *report = &s->result->plan;
    const hr_memory *memory = &s->memory;
    const hr_process_base base = hr_memory_process(memory);
    const int64_t corpus = hr_round_up(hr_engine_corpus_bytes(&s->sizes), hr_page_bytes());
    const int64_t engine = hr_engine_bytes(&s->sizes);
    int64_t freed = 0;
    writing_regions(s, writing);
    for (int32_t i = 0; i < WRITING_REGIONS; i++) freed += writing[i]->bytes;
    const hr_account_region regions[] = {
        { memory->stacks.bytes, HR_PHASE_PLAN, HR_PHASE_PREPARE }, /* open before the arena */
        { memory->regions_bytes_most, HR_PHASE_PLAN, HR_PHASE_PLAN },
        { freed, HR_PHASE_PREPARE, HR_PHASE_PREPARE },
        { memory->regions_bytes - freed, HR_PHASE_PREPARE, HR_PHASE_RUN },
        { corpus, HR_PHASE_PREPARE, HR_PHASE_RUN },
    };
    hr_account_regions(&base, regions, sizeof regions / sizeof *regions, s->threads, "", engine,
                       &s->account);
    report->stage = s->number;
    report->slots = s->sizes.slots;
    report->tables_bytes = hr_max(memory->regions_bytes_most, memory->regions_bytes + corpus);
    report->engine_bytes = memory->regions_bytes - freed + corpus + engine;
    report->process_bytes_planned = s->account.bytes;
    report->resumed = resumed;
}

static hr_status check_plan(const hr_stage *s, hr_error *err)
{
    const int64_t budget = s->request->budget, available = hr_room_available(budget);
    const int64_t needed = hr_account_needed(budget, hr_page_bytes(), s->account.bytes, s->threads,
                                             false);
    char wanted[64], there[64];
    if (s->sizes.slots > HR_SLOTS_MAX || s->sizes.positions > HR_SLOTS_MAX)
        return hr_fail(err, HR_NO_FIT,
                       "the text has %lld symbols after counting, the limit is %lld",
                       (long long)s->sizes.slots, (long long)HR_SLOTS_MAX);
    if (needed <= available) return HR_OK;
    return hr_fail(err, HR_NO_FIT,
                   "stage %d: needs %s, %s are available; use a larger --budget or less text",
                   s->number, hr_bytes_print(needed, wanted), hr_bytes_print(available, there));
}

/* Allocates and writes the corpus, then frees the regions that only writing needs. */
static hr_status write_corpus(hr_stage *s, bool resumed, hr_error *err)
{
    hr_region corpus, *writing[WRITING_REGIONS];
    hr_status status = hr_memory_region_open(&s->memory, "text as tokens",
                                             hr_engine_corpus_bytes(&s->sizes), &corpus, err);
    if (status != HR_OK) return status;
    hr_engine_place_corpus(&s->engine, &corpus, &s->sizes);
    if (!resumed)
        status = s->number == 2 ? hr_stage_write_atoms(s, err) : hr_stage_write_words(s, err);
    writing_regions(s, writing);
    for (int32_t i = 0; i < WRITING_REGIONS; i++) hr_memory_region_close(&s->memory, writing[i]);
    return status;
}

hr_status hr_stage_admit(hr_stage *s, bool resumed, hr_error *err)
{
    const hr_tokenize_train_request *r = s->request;
    const int64_t begun = hr_clock_ns(), engine = hr_engine_bytes(&s->sizes);
    make_plan(s, resumed);
    hr_status status = check_plan(s, err);
    if (status == HR_OK && r->planned) r->planned(r->context, &s->result->plan);
    if (status == HR_OK) status = write_corpus(s, resumed, err);
    s->result->build_seconds += (double)(hr_clock_ns() - begun) / 1e9;
    if (status == HR_OK)
        status = hr_memory_arena_open(&s->memory, &s->account, engine, r->interrupts, err);
    if (status != HR_OK) return status;
    hr_region arena = hr_region_over(s->memory.arena, engine);
    hr_engine_place(&s->engine, &arena);
    s->engine.rules = (hr_engine_rules){ .vocabulary_max = r->vocab_size,
                                         .least = hr_max(r->min_frequency, s->cut),
                                         .characters_max = r->max_token_length ? r->max_token_length
                                                                               : INT64_MAX,
                                         .filters = s->number == 2 };
    hr_arena_note(&s->memory, s->memory.arena, engine);
    return hr_memory_seal(&s->memory, &s->account, err);
}

hr_status hr_stage_build(hr_stage *s, hr_error *err)
{
    const int64_t begun = hr_clock_ns();
    hr_status status = s->number == 2 ? hr_stage_build_atoms(s, err) : hr_stage_build_words(s, err);
    s->result->build_seconds += (double)(hr_clock_ns() - begun) / 1e9;
    return status;
}

void hr_stage_close(hr_stage *s)
{
    hr_pool_close(&s->pool);
    hr_memory_close(&s->memory);
}
