/* SPDX-License-Identifier: Apache-2.0 */
/* plan/strategy.c - canonical form, legality and application of strategies. */
#include "plan/strategy.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "graph/backend.h"
#include "model/family.h"
#include "model/layer_schema.h"
#include "model/nsa.h"
#include "plan/consume.h"
#include "plan/defer.h"
#include "plan/dequantize.h"
#include "plan/order.h"
#include "plan/recompute.h"
#include "plan/spill.h"
#include "plan/stream.h"
#include "plan/strips.h"
#include "plan/tile.h"

/* Default loss chunk in tokens: large enough that accumulating the head's gradient once per chunk
 * costs little, small enough that the logits are a minor part of any plan. */
enum { LOSS_CHUNK_TOKENS = 1024, BLOCK_TOKENS = 64 };

/* All values that a layer makes. */
static const hr_intermediates everything = (1u << HR_INTERMEDIATE_INPUT) - 2;

/* Recomputing norms costs a pass over memory; recomputing layers costs most of their forward
 * pass. */
static hr_intermediates dropped_of(int32_t recompute)
{
    switch (recompute) {
    case HR_RECOMPUTE_NONE: return 0;
    case HR_RECOMPUTE_LAYERS: return everything;
    default: return 1u << HR_INTERMEDIATE_NORM;
    }
}

int64_t hr_strategy_unit(int64_t T, int64_t sequences)
{
    return T % BLOCK_TOKENS == 0 || sequences == 1 ? BLOCK_TOKENS : T;
}

int64_t hr_strategy_part(const hr_config *config, int64_t sequences)
{
    if (sequences != 1 || !(hr_family_of(config)->traits & HR_PARTS_SEQUENCES)) return 0;
    return HR_PART_ROWS * (hr_nsa_is_on(config) ? hr_part_together(config->train.seq_len) : 1);
}

/* Sequences per iteration; 0 stands for the whole batch. */
static int64_t sequences_of(const hr_config *config, int64_t micro_batch)
{
    return micro_batch ? micro_batch : config->train.batch;
}

hr_strategy hr_strategy_of(const hr_config *config, int64_t micro_batch,
                           hr_intermediates *recompute_set)
{
    const int64_t unit = hr_strategy_unit(config->train.seq_len, sequences_of(config, micro_batch));
    int64_t chunk = config->memory.loss_chunk;
    if (chunk == 0) chunk = hr_max(LOSS_CHUNK_TOKENS / unit, 1) * unit;
    hr_strategy strategy = { .micro_batch = micro_batch,
                             .loss_chunk = chunk,
                             .dw_first = true,
                             .layer_count = (int32_t)config->model.n_layers,
                             .recompute_set = recompute_set };
    for (int32_t l = 0; l < strategy.layer_count; l++)
        recompute_set[l] = dropped_of(config->memory.recompute);
    hr_strategy_canonical(config, &strategy);
    return strategy;
}

void hr_strategy_canonical(const hr_config *config, hr_strategy *strategy)
{
    const int64_t T = config->train.seq_len, batch = config->train.batch;
    const int64_t sequences = sequences_of(config, strategy->micro_batch);
    const hr_layer_schema schema = hr_layer_schema_of(config);
    if (sequences >= batch) strategy->micro_batch = 0;
    if (strategy->micro_batch) strategy->consume = false;
    if (strategy->loss_chunk >= sequences * T) strategy->loss_chunk = 0;
    if (strategy->mlp_tile >= sequences * T) strategy->mlp_tile = 0;
    if (hr_family_of(config)->traits & HR_HAS_STATES) strategy->mlp_tile = 0;
    if (strategy->attention_tile >= sequences * T) strategy->attention_tile = 0;
    for (int32_t l = 0; l < strategy->layer_count; l++)
        strategy->recompute_set[l] = hr_layer_schema_within(&schema, strategy->recompute_set[l]);
}

hr_status hr_strategy_check(const hr_config *config, const hr_strategy *strategy, hr_error *err)
{
    const int64_t T = config->train.seq_len, batch = config->train.batch;
    const int64_t unit = hr_strategy_unit(T, sequences_of(config, strategy->micro_batch));
    if (strategy->layer_count != config->model.n_layers)
        return hr_fail(err, HR_USAGE, "the strategy is for %d layers, model.n_layers is %lld",
                       strategy->layer_count, (long long)config->model.n_layers);
    if (strategy->micro_batch && batch % strategy->micro_batch)
        return hr_fail(err, HR_USAGE, "micro_batch %lld does not divide train.batch %lld",
                       (long long)strategy->micro_batch, (long long)batch);
    if (strategy->mlp_tile % unit)
        return hr_fail(
            err, HR_USAGE,
            "mlp_tile %lld would change the result: with train.seq_len %lld it must be a "
            "multiple of %lld",
            (long long)strategy->mlp_tile, (long long)T, (long long)unit);
    const int64_t part = hr_strategy_part(config, sequences_of(config, strategy->micro_batch));
    char nor[32] = "";
    if (part) snprintf(nor, sizeof nor, ", nor of %lld", (long long)part);
    if (strategy->attention_tile % T && (!part || strategy->attention_tile % part))
        return hr_fail(err, HR_USAGE,
                       "attention_tile is in tokens: %lld is no multiple of train.seq_len %lld%s",
                       (long long)strategy->attention_tile, (long long)T, nor);
    if (strategy->consume && strategy->micro_batch && strategy->micro_batch < batch)
        return hr_fail(err, HR_USAGE,
                       "micro_batch %lld accumulates gradients over %lld micro-batches: "
                       "gradient_release needs one micro-batch",
                       (long long)strategy->micro_batch,
                       (long long)(batch / strategy->micro_batch));
    return HR_OK;
}

/* ---- tiles */

typedef struct {
    const hr_program *program;
    hr_tile_cut *cuts;
    int32_t count, most;
} cutting;

static void add_tile(cutting *c, int32_t first, int32_t last, const char *name, int64_t rows)
{
    HR_ASSERT(c->count < c->most);
    c->cuts[c->count++] = (hr_tile_cut){ first, last, name, rows, false };
}

/* Tiles the steps of the head in a section, which are adjacent: forward and backward. */
static void tile_head(cutting *c, hr_loop_id section, const char *name, int64_t chunk)
{
    const hr_program *program = c->program;
    const int32_t l = hr_program_loop(program, section);
    int32_t first = HR_NONE, last = HR_NONE;
    if (l == HR_NONE) return;
    for (int32_t s = program->loops[l].step_first; s <= program->loops[l].step_last; s++) {
        if (program->steps[s].block != HR_BLOCK_HEAD) continue;
        if (first == HR_NONE) first = s;
        last = s;
    }
    if (first != HR_NONE) add_tile(c, first, last, name, chunk);
}

/* Last step of the run that starts at step `s`: adjacent steps of one block of one layer. */
static int32_t run_end(const hr_program *program, int32_t s, int32_t end)
{
    const hr_step *first = &program->steps[s];
    while (s < end && program->steps[s + 1].block == first->block &&
           program->steps[s + 1].layer == first->layer)
        s++;
    return s;
}

static bool reads_root(const hr_program *program, const hr_step *step, int32_t root)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE && hr_tensor_root(program, step->in[i]) == root) return true;
    return false;
}

static bool writes_root(const hr_program *program, const hr_step *step, int32_t root)
{
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        if (step->out[k] != HR_NONE && hr_tensor_root(program, step->out[k]) == root) return true;
    return false;
}

/* Whether a step may have parts of a sequence: always if its rows are independent. */
static bool takes_parts(const hr_program *program, const hr_step *step)
{
    const hr_op *op = hr_step_op(program, step);
    const hr_op_facts *facts = hr_step_facts(program, step);
    return op->has_parts ? op->has_parts(step->attr)
                         : !facts->row_quantum || facts->row_quantum(step->attr) == 1;
}

/* Whether a step can be in a loop over parts of sequences with `other`: it neither makes what that
 * reads of all parts, nor reads what that writes after the last one. */
static bool parts_with(const hr_program *program, const hr_step *step, const hr_step *other)
{
    const hr_op *op = hr_step_op(program, other);
    if (!op->has_parts) return true;
    for (int32_t i = 0; op->in[i]; i++)
        if (hr_letter_is_sequence(op->in[i]) && other->in[i] != HR_NONE &&
            writes_root(program, step, hr_tensor_root(program, other->in[i])))
            return false;
    for (int32_t k = 0; op->out[k]; k++)
        if (hr_letter_is_sequence(op->out[k]) && other->out[k] != HR_NONE &&
            reads_root(program, step, hr_tensor_root(program, other->out[k])))
            return false;
    return true;
}

/* Tiles of the run [first, last] the steps around each operation on sequences, as many as can be in
 * one loop over parts. */
static void tile_parts(cutting *c, int32_t first, int32_t last, const char *name, int64_t rows)
{
    const hr_program *program = c->program;
    for (int32_t from = first, to; from <= last; from = to + 1) {
        bool divides = hr_step_op(program, &program->steps[from])->has_parts;
        to = from;
        if (!takes_parts(program, &program->steps[from])) continue;
        for (; to < last; to++) {
            const hr_step *next = &program->steps[to + 1];
            bool joins = takes_parts(program, next);
            for (int32_t s = from; s <= to && joins; s++)
                joins = parts_with(program, &program->steps[s], next) &&
                        parts_with(program, next, &program->steps[s]);
            if (!joins) break;
            divides |= hr_step_op(program, next)->has_parts != NULL;
        }
        if (!divides) continue;
        add_tile(c, from, to, name, rows);
        c->cuts[c->count - 1].parts = true;
    }
}

/* Tiles every run of a block in the step, each as its own loop: forward, backward, and separate
 * clones. */
static void tile_blocks(cutting *c, hr_block block, const char *name, int64_t rows, bool parts)
{
    const hr_program *program = c->program;
    const hr_loop *section = &program->loops[hr_program_loop(program, HR_LOOP_STEP)];
    const int32_t end = section->step_last;
    for (int32_t s = section->step_first, last; s <= end; s = last + 1) {
        last = run_end(program, s, end);
        if (program->steps[s].block != block) continue;
        if (parts) tile_parts(c, s, last, name, rows);
        else add_tile(c, s, last, name, rows);
    }
}

static bool drops_something(const hr_strategy *strategy)
{
    for (int32_t l = 0; l < strategy->layer_count; l++)
        if (strategy->recompute_set[l]) return true;
    return false;
}

/* Tiled blocks must stay adjacent: clones of another block would split their runs. */
static uint32_t whole_blocks(const hr_strategy *strategy)
{
    return (strategy->mlp_tile ? 1u << HR_BLOCK_MLP : 0) |
           (strategy->attention_tile ? 1u << HR_BLOCK_ATTENTION : 0);
}

hr_status hr_strategy_apply(const hr_strategy *strategy, int64_t T, hr_program *program,
                            hr_region *scratch, hr_error *err)
{
    hr_status status = HR_OK;
    const int32_t section = hr_program_loop(program, HR_LOOP_STEP);
    hr_order(program, section, strategy->dw_first);
    if (drops_something(strategy))
        status = hr_recompute(program, section, strategy->recompute_set, whole_blocks(strategy),
                              scratch, err);
    if (status == HR_OK) status = hr_dequantize(program, scratch, err);
    if (status != HR_OK) return status;

    const int64_t kept = scratch->used;
    cutting c = { .program = program, .most = program->loop_max };
    c.cuts = hr_region_take(scratch, c.most, sizeof *c.cuts);
    if (!c.cuts) return hr_fail(err, HR_FAILURE, "out of memory for %d tiles", c.most);
    const hr_loop *step = &program->loops[section];
    if (strategy->micro_batch)
        add_tile(&c, step->step_first, step->step_last, "micro-batch", strategy->micro_batch * T);
    if (strategy->loss_chunk) {
        tile_head(&c, HR_LOOP_STEP, "loss chunk", strategy->loss_chunk);
        tile_head(&c, HR_LOOP_EVALUATION, "evaluation loss chunk", strategy->loss_chunk);
    }
    if (strategy->mlp_tile) tile_blocks(&c, HR_BLOCK_MLP, "mlp tile", strategy->mlp_tile, false);
    if (strategy->attention_tile)
        tile_blocks(&c, HR_BLOCK_ATTENTION, "attention tile", strategy->attention_tile,
                    strategy->attention_tile % T != 0);
    status = hr_tile(program, c.cuts, c.count, scratch, err);
    scratch->used = kept;
    if (status == HR_OK && strategy->consume)
        status = hr_defers(program) ? hr_defer(program, scratch, err)
                                    : hr_consume(program, scratch, err);
    if (status == HR_OK && strategy->consume) status = hr_strips_cut(program, scratch, err);
    if (status == HR_OK) status = hr_spill(program, strategy->recompute_set, scratch, err);
    if (status == HR_OK) hr_tile_sort_loops(program);
    return status == HR_OK ? hr_stream(program, scratch, err) : status;
}
