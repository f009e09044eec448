/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/train.c - runs the stages, and saves and resumes interrupted trainings. */
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/options.h"
#include "base/path.h"
#include "base/random.h"
#include "headroom/config.h"
#include "tokenizer/train/output.h"
#include "tokenizer/train/stage.h"
#include "tokenizer/train/state.h"

void hr_tokenize_train_default(hr_tokenize_train_request *request)
{
    *request = (hr_tokenize_train_request){ .size = sizeof(hr_tokenize_train_request),
                                            .vocab_size = 30000,
                                            .cut_from = 16 << 20 };
}

/* ---- checking the request */

enum { VOCABULARY_MOST = 1 << 24 };

static hr_status check_numbers(const hr_tokenize_train_request *r, hr_error *err)
{
    if (r->vocab_size < 1 || r->vocab_size > VOCABULARY_MOST)
        return hr_fail(err, HR_USAGE, "vocabulary size %lld is not from 1 to %d",
                       (long long)r->vocab_size, VOCABULARY_MOST);
    if (r->transition > r->vocab_size)
        return hr_fail(err, HR_USAGE, "transition %lld is above the vocabulary size %lld",
                       (long long)r->transition, (long long)r->vocab_size);
    if (r->min_frequency < 0 || r->limit_alphabet < 0 || r->max_token_length < 0 ||
        r->transition < 0)
        return hr_fail(err, HR_USAGE, "an option has a negative number");
    if (r->max_token_length == 1)
        return hr_fail(err, HR_USAGE, "--max-token-length takes 2 or more characters");
    return HR_OK;
}

static hr_status check_request(const hr_tokenize_train_request *r, hr_error *err)
{
    hr_status status = check_numbers(r, err);
    if (status != HR_OK) return status;
    if (r->file_count < 1)
        return hr_fail(err, HR_USAGE, "no text: give at least one file to train on");
    if (r->transition && r->limit_alphabet)
        return hr_fail(err, HR_USAGE,
                       "--limit-alphabet and --transition exclude each other: stage 2 has the "
                       "alphabet of the text");
    if (!r->transition && (r->inherit || r->pattern_two || r->like_two))
        return hr_fail(err, HR_USAGE, "--inherit and --pattern-two need --transition");
    if ((r->like && r->pattern) || (r->like_two && r->pattern_two))
        return hr_fail(err, HR_USAGE, "--pattern and --like exclude each other; give one");
    if (r->prefix_space && (r->like || r->transition || (r->pattern && strcmp(r->pattern, "gpt2"))))
        return hr_fail(err, HR_USAGE, "--prefix-space is for --pattern gpt2 without --transition");
    for (int32_t i = 0; i < r->special_count; i++)
        if (!*r->special_tokens[i]) return hr_fail(err, HR_USAGE, "a special token is empty");
    return HR_OK;
}

/* ---- hashes that identify a training */

static uint64_t mix_text(uint64_t sum, const char *text)
{
    if (!text) return hr_random_mix(sum + 1);
    for (; *text; text++) sum = hr_random_mix(sum ^ (uint8_t)*text);
    return hr_random_mix(sum + 2);
}

/* Of what is asked for, with which stage 1 was made: its pattern and the content of `like` are not
 * at hand in stage 2. */
static uint64_t request_of(const hr_tokenize_train_request *r)
{
    const int64_t numbers[] = { r->vocab_size,       r->min_frequency, r->limit_alphabet,
                                r->max_token_length, r->transition,    r->special_count,
                                r->prefix_space };
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sum = hr_random_mix(sum ^ (uint64_t)numbers[i]);
    for (int32_t i = 0; i < r->special_count; i++) sum = mix_text(sum, r->special_tokens[i]);
    sum = mix_text(mix_text(mix_text(sum, r->initial_alphabet), r->pattern), r->like);
    return mix_text(sum, r->inherit);
}

static uint64_t settings_of(const hr_stage *s)
{
    uint64_t sum = hr_random_mix(request_of(s->request) ^ s->merges_hash);
    sum = hr_random_mix(sum ^ (uint64_t)s->pipeline.prefix_space);
    for (int32_t i = 0; i < HR_PIPELINE_SECTIONS; i++) sum = mix_text(sum, s->pipeline.sections[i]);
    for (int32_t i = 0; i < HR_PIPELINE_FLAGS; i++) sum = mix_text(sum, s->pipeline.flags[i]);
    return sum;
}

static hr_state_head head_of(const hr_stage *s)
{
    return (hr_state_head){ .settings = settings_of(s),
                            .text = s->source->identity,
                            .stage = s->number,
                            .merging = true,
                            .words = s->result->plan.words,
                            .inherited = s->result->inherited,
                            .dropped = s->result->dropped,
                            .sizes = s->sizes };
}

/* ---- one stage */

static hr_status save(hr_stage *s, hr_error *err)
{
    const hr_state_head head = head_of(s);
    return hr_state_save(s->request->out, &head, &s->engine, err);
}

enum { STEPS = 16 };                                      /* merges between checks of the clock */
static const int64_t save_ns = INT64_C(300) * 1000000000; /* interval of automatic saves */

static hr_status merge(hr_stage *s, hr_error *err)
{
    const int64_t begun = hr_clock_ns();
    int64_t saved = begun;
    hr_status status = HR_OK;
    bool made = true;
    for (int64_t i = 0; made && status == HR_OK; i++) {
        status = hr_engine_step(&s->engine, &made, err);
        if (i % STEPS != 0 || status != HR_OK) continue;
        hr_error interrupted;
        status = hr_stage_report(s, "merging", s->engine.vocabulary.count, s->request->vocab_size,
                                 &interrupted);
        const int64_t now = hr_clock_ns();
        if (status == HR_OK && now - saved < save_ns) continue;
        const hr_status wrote = save(s, err);
        saved = now;
        if (wrote != HR_OK) return wrote;
        if (status == HR_OK) continue;
        s->result->saved = true;
        status = hr_fail(
            err, HR_INTERRUPTED,
            "interrupted after %lld of %lld tokens; the state is saved, the same command "
            "resumes",
            (long long)s->engine.vocabulary.count, (long long)s->request->vocab_size);
    }
    s->result->merge_seconds += (double)(hr_clock_ns() - begun) / 1e9;
    return status;
}

/* Resumes from a state in the folder if it belongs to this training; refuses any other. */
static hr_status find_state(hr_stage *s, hr_state_head *head, bool *found, hr_error *err)
{
    hr_status status = hr_state_read_head(s->request->out, head, found, err);
    if (status != HR_OK || !*found) return status;
    const bool same_text = head->text == s->source->identity;
    const uint64_t settings = head->merging ? settings_of(s) : request_of(s->request);
    if (head->stage == s->number && same_text && head->settings == settings) {
        *found = head->merging;
        return HR_OK;
    }
    return hr_fail(err, HR_USAGE,
                   "%s/training.state belongs to a training with other %s; remove it to start "
                   "over",
                   s->request->out, same_text ? "settings" : "text");
}

static hr_status make_engine(hr_stage *s, hr_error *err)
{
    hr_state_head head;
    bool found;
    hr_status status = find_state(s, &head, &found, err);
    if (status != HR_OK) return status;
    if (!found) {
        status = hr_stage_count(s, err);
        if (status == HR_OK) status = hr_stage_admit(s, false, err);
        if (status == HR_OK) status = hr_stage_build(s, err);
        return status;
    }
    s->sizes = head.sizes;
    s->result->plan.words = head.words;
    s->result->inherited = head.inherited;
    s->result->dropped = head.dropped;
    status = hr_stage_admit(s, true, err);
    if (status == HR_OK) status = hr_state_load(s->request->out, &head, &s->engine, err);
    return status;
}

static hr_status write_files(hr_stage *s, const char *folder, hr_error *err)
{
    const int64_t begun = hr_clock_ns();
    s->result->tokens = s->engine.vocabulary.count;
    s->result->merges = s->engine.merge_count;
    s->result->recounts = s->engine.recounts - 1;
    hr_status status = hr_output_write(folder, &s->engine, &s->pipeline, s->request->special_tokens,
                                       s->request->special_count, s->output, err);
    s->result->write_seconds += (double)(hr_clock_ns() - begun) / 1e9;
    return status;
}

/* After stage 1, saves a state that says so, for a stage 2 that is interrupted before it merges. */
static hr_status mark_stage_two(const hr_stage *s, hr_error *err)
{
    hr_state_head head = head_of(s);
    head.settings = request_of(s->request);
    head.stage = 2;
    head.merging = false;
    return hr_state_save(s->request->out, &head, 0, err);
}

/* The count at which stage 2 stopped although more merges are needed, because rarer text was cut
 * out; 0: stage 2 is complete. */
static int64_t came_down_to(const hr_stage *s)
{
    const hr_engine *e = &s->engine;
    const bool is_full = (int64_t)e->vocabulary.count >= s->request->vocab_size;
    return !is_full && e->rules.least > hr_max(1, s->request->min_frequency) ? e->rules.least : 0;
}

/* `more`: another stage follows. *down: not 0 if the stage must be repeated with a cut below this
 * count. */
static hr_status run_stage(hr_stage *s, const char *folder, bool more, int64_t *down, hr_error *err)
{
    *down = 0;
    const bool made = !hr_file_exists(s->request->out);
    hr_status status = hr_stage_open(s, err);
    if (status == HR_OK) status = make_engine(s, err);
    if (status == HR_OK)
        status = hr_directory_make(folder, err); /* a refused training makes none */
    if (status == HR_OK) status = merge(s, err);
    if (status == HR_OK) *down = came_down_to(s);
    if (status == HR_OK && !*down) status = write_files(s, folder, err);
    if (status == HR_OK && (more || *down)) status = mark_stage_two(s, err);
    const int64_t measured = hr_memory_peak_bytes(&s->memory);
    s->result->process_bytes_measured = measured;
    const int64_t planned = s->result->plan.process_bytes_planned;
    if (status == HR_OK && hr_process_is_exact() && measured > planned)
        status = hr_fail(err, HR_BROKEN, "process: planned %lld bytes, measured %lld",
                         (long long)planned, (long long)measured);
    hr_stage_close(s);
    if (status != HR_OK && made) { /* only empty folders are removed */
        (void)rmdir(folder);
        (void)rmdir(s->request->out);
    }
    return status;
}

enum { CUT_LOWER = 8 }; /* divisor of the cut count when a stage is repeated */

hr_status hr_tokenize_train(const hr_tokenize_train_request *given,
                            hr_tokenize_train_result *result, hr_error *err)
{
    hr_tokenize_train_request own_request;
    const hr_tokenize_train_request *request = &own_request;
    char folder[HR_PATH_BYTES], merges[HR_PATH_BYTES];
    hr_state_head head;
    int64_t down;
    bool found;
    *result = (hr_tokenize_train_result){ .process_bytes_measured = -1 };
    hr_status status = hr_options_take(&own_request, sizeof own_request, given, err);
    if (status == HR_OK) status = check_request(request, err);
    if (status == HR_OK) status = hr_output_check(request->out, err);
    if (status == HR_OK) status = hr_directory_check(request->out, err);
    if (status == HR_OK) status = hr_state_read_head(request->out, &head, &found, err);
    if (status != HR_OK) return status;
    const bool two = request->transition > 0, own = two && !request->inherit;
    if (!two || (own && !(found && head.stage == 2))) {
        hr_stage stage = { .request = request, .result = result, .number = 1 };
        status = hr_path_join(request->out, own ? "stage-1" : ".", folder, sizeof folder, err);
        if (status == HR_OK) status = run_stage(&stage, folder, own, &down, err);
        if (status == HR_OK && !own) hr_state_remove(request->out);
        if (status != HR_OK || !two) return status;
    }
    status = hr_path_join(request->out, "stage-1/merges.txt", merges, sizeof merges, err);
    result->saved = own; /* stage 1 is complete and will not be repeated */
    for (int64_t cut_most = 0; status == HR_OK; cut_most = hr_max(1, down / CUT_LOWER)) {
        hr_stage stage = { .request = request,
                           .result = result,
                           .number = 2,
                           .merges_path = request->inherit ? request->inherit : merges,
                           .cut_most = cut_most };
        status = run_stage(&stage, request->out, false, &down, err);
        if (!down) break;
    }
    if (status == HR_OK) hr_state_remove(request->out);
    return status;
}
