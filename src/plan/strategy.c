/* SPDX-License-Identifier: Apache-2.0 */
/* plan/strategy.c - brings a strategy into its canonical form and applies its passes. */
#include "plan/strategy.h"

#include "base/checked.h"
#include "model/assemble.h"
#include "plan/recompute.h"
#include "plan/tile.h"

/* Logits of so many tokens: large enough that adding the head's gradient once a chunk costs little,
 * small enough to be a minor part of any plan. */
enum { LOSS_CHUNK_TOKENS = 1024, BLOCK_TOKENS = 64 };

/* Norms cost a pass over memory to compute again; layers cost most of their forward pass. */
static uint32_t dropped_of(int32_t recompute)
{
    const uint32_t norms = 1u << HR_INTERMEDIATE_NORM;
    switch (recompute) {
    case HR_RECOMPUTE_NONE: return 0;
    case HR_RECOMPUTE_LAYERS:
        return norms | 1u << HR_INTERMEDIATE_QKV | 1u << HR_INTERMEDIATE_ATTENTION |
               1u << HR_INTERMEDIATE_UP | 1u << HR_INTERMEDIATE_ACTIVATION;
    default: return norms;
    }
}

hr_strategy hr_strategy_of(const hr_config *config, int64_t micro_batch)
{
    const int64_t T = config->train.seq_len;
    int64_t chunk = config->memory.loss_chunk;
    if (chunk == 0)
        chunk = T % BLOCK_TOKENS == 0 ? LOSS_CHUNK_TOKENS : hr_max(LOSS_CHUNK_TOKENS / T, 1) * T;
    return (hr_strategy){ .micro_batch = micro_batch < config->train.batch ? micro_batch : 0,
                          .loss_chunk = chunk < micro_batch * T ? chunk : 0,
                          .dropped = dropped_of(config->memory.recompute) };
}

/* The steps of the head in a section: neighbours, forward and backward. */
static bool head_of(const hr_program *program, const char *section, int32_t *first, int32_t *last)
{
    const int32_t l = hr_program_loop(program, section);
    bool found = false;
    if (l == HR_NONE) return false;
    for (int32_t s = program->loops[l].step_first; s <= program->loops[l].step_last; s++) {
        if (program->steps[s].block != HR_BLOCK_HEAD) continue;
        if (!found) *first = s;
        *last = s;
        found = true;
    }
    return found;
}

static hr_status tile_heads(hr_program *program, int64_t chunk, hr_region *scratch, hr_error *err)
{
    static const char *const sections[][2] = { { "step", "loss chunk" },
                                               { "evaluation", "evaluation loss chunk" } };
    for (int32_t i = 0; i < 2; i++) {
        int32_t first = 0, last = 0;
        if (!head_of(program, sections[i][0], &first, &last)) continue;
        const hr_status status = hr_tile(program, first, last, sections[i][1], chunk, scratch, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

hr_status hr_strategy_apply(const hr_strategy *strategy, int64_t T, hr_program *program,
                            hr_region *scratch, hr_error *err)
{
    hr_status status = HR_OK;
    const int32_t section = hr_program_loop(program, "step");
    if (strategy->dropped) status = hr_recompute(program, section, strategy->dropped, scratch, err);
    if (status == HR_OK && strategy->micro_batch) {
        const hr_loop *step = &program->loops[section];
        status = hr_tile(program, step->step_first, step->step_last, "micro-batch",
                         strategy->micro_batch * T, scratch, err);
    }
    if (status == HR_OK && strategy->loss_chunk)
        status = tile_heads(program, strategy->loss_chunk, scratch, err);
    if (status == HR_OK) hr_tile_sort_loops(program);
    return status;
}
