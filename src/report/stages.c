/* SPDX-License-Identifier: Apache-2.0 */
/* report/stages.c - one row for each stage of a run. */
#include "report/stages.h"

#include <stdio.h>

#include "base/checked.h"

static double tokens_of(const hr_plan_stage *stage)
{
    return (double)stage->batch * (double)stage->seq_len;
}

static void put_row(hr_writer *writer, const hr_plan_answer *answer, int32_t index)
{
    const hr_plan_stage *stage = &answer->stages[index];
    char batch[HR_COUNT_BYTES], length[HR_COUNT_BYTES], micro[HR_COUNT_BYTES],
        chunk[HR_COUNT_BYTES], bytes[HR_COUNT_BYTES], step[HR_COUNT_BYTES], first[HR_COUNT_BYTES],
        hours[HR_COUNT_BYTES] = "-", shape[64], strategy[64];
    const bool whole = stage->micro_batch == stage->batch;
    const double billion = 1e9 / tokens_of(stage) * stage->step_seconds;
    snprintf(shape, sizeof shape, "%s x %s", hr_count_print(stage->batch, batch),
             hr_count_print(stage->seq_len, length));
    snprintf(strategy, sizeof strategy, "%s / %s",
             whole ? "all" : hr_count_print(stage->micro_batch, micro),
             stage->loss_chunk == stage->micro_batch * stage->seq_len
                 ? "all"
                 : hr_count_print(stage->loss_chunk, chunk));
    if (stage->fits) hr_duration_print(billion, hours);
    hr_put(writer, "  %3d%s %9s  %15s  %14s  %9d  %19s  %11s  %s\n", index + 1,
           index == answer->stage ? "*" : " ", hr_count_print(stage->first_step, first), shape,
           stage->fits ? strategy : "-", stage->recomputing,
           hr_count_print(stage->process_bytes, bytes),
           stage->fits ? hr_duration_print(stage->step_seconds, step) : "does not fit", hours);
}

/* The tokens and the time of all stages, where the recipe says how many steps the last has. */
static void put_sum(hr_writer *writer, const hr_plan_answer *answer)
{
    char steps[HR_COUNT_BYTES], tokens[HR_COUNT_BYTES], time[HR_COUNT_BYTES];
    double count = 0, tokens_sum = 0, seconds = 0;
    bool fits = true, ends = true;
    for (int32_t i = 0; i < answer->stage_count; i++) {
        const hr_plan_stage *stage = &answer->stages[i];
        count += (double)stage->steps;
        tokens_sum += (double)stage->steps * tokens_of(stage);
        seconds += (double)stage->steps * stage->step_seconds;
        fits = fits && stage->fits;
        ends = ends && stage->steps;
    }
    if (!fits || !(count > 0)) return;
    hr_put(writer, "  %s steps%s: %s tokens in %s\n", hr_count_print((int64_t)count, steps),
           ends ? "" : " before the last stage, whose end the text decides",
           hr_count_print((int64_t)tokens_sum, tokens), hr_duration_print(seconds, time));
}

/* Which of the strategies are proven to be the fastest. */
static void put_certificates(hr_writer *writer, const hr_plan_answer *answer)
{
    int32_t fits = 0, open = 0;
    for (int32_t i = 0; i < answer->stage_count; i++) {
        const hr_plan_stage *stage = &answer->stages[i];
        const bool proven = stage->step_seconds <= stage->bound_seconds * (1 + 1e-6);
        fits += stage->fits;
        if (!stage->fits || proven) continue;
        hr_put(writer, "%s %d", open++ ? "," : "  not proven fastest: stage", i + 1);
    }
    if (open) hr_put(writer, "\n");
    else if (fits == answer->stage_count)
        hr_put(writer, "  every strategy is proven fastest within the memory\n");
}

void hr_stages_put(const hr_plan_answer *answer, const hr_style *style, hr_writer *writer)
{
    if (!answer->stage_count) return;
    hr_put(writer,
           "\n%s%d stages%s, each with the fastest plan within the memory; what lives through "
           "the run is at the same bytes in all\n",
           style->title, answer->stage_count, style->plain);
    hr_put(writer, "  %4s %9s  %15s  %14s  %9s  %19s  %11s  %s\n", "", "from step",
           "batch x tokens", "micro / chunk", "recompute", "process bytes", "a step",
           "1e9 tokens in");
    for (int32_t i = 0; i < answer->stage_count; i++) put_row(writer, answer, i);
    put_sum(writer, answer);
    put_certificates(writer, answer);
    hr_put(writer, "  * %s; what follows is about this stage (--stage N shows another)\n",
           answer->fits ? "the largest: the arena of the run is its arena"
                        : "needs most, and does not fit");
}
