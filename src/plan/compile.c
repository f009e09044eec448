/* SPDX-License-Identifier: Apache-2.0 */
/* plan/compile.c - runs the stages of the compiler in order. */
#include "plan/compile.h"

#include <string.h>

#include "base/checked.h"
#include "plan/dequantize.h"
#include "plan/lifetimes.h"
#include "plan/reorder.h"
#include "plan/spill.h"
#include "plan/stream.h"
#include "plan/tile.h"
#include "plan/transfers.h"
#include "sections/assemble.h"
#include "sections/evaluation.h"
#include "sections/generation.h"

int64_t hr_compile_kept_bytes(const hr_config *config)
{
    const hr_model_limits limits = hr_model_limits_of(config);
    const int64_t storages = (int64_t)limits.tensors + limits.steps;
    const int64_t program = limits.steps * (int64_t)sizeof(hr_step) +
                            limits.tensors * (int64_t)sizeof(hr_tensor) +
                            limits.loops * (int64_t)sizeof(hr_loop) +
                            limits.params * (int64_t)sizeof(hr_param);
    const int64_t plan = storages * (int64_t)(sizeof(hr_buffer) + sizeof(hr_storage)) +
                         storages * 2 * (int64_t)sizeof(int32_t);
    const int64_t alignment = 64 << 6;
    return config->model.n_layers * (int64_t)sizeof(hr_intermediates) + program + plan + alignment;
}

int64_t hr_compile_unpacked_bytes(const hr_config *config)
{
    const hr_model_limits limits = hr_model_limits_of(config);
    const int64_t clones = limits.steps * (int64_t)(sizeof(hr_step) + sizeof(int32_t));
    const int64_t cuts = limits.loops * (int64_t)sizeof(hr_tile_cut);
    return hr_compile_kept_bytes(config) + cuts + clones + limits.tensors * 32;
}

int64_t hr_compile_bytes(const hr_config *config)
{
    const hr_model_limits limits = hr_model_limits_of(config);
    return hr_compile_unpacked_bytes(config) + hr_pack_scratch_bytes(limits.tensors + limits.steps);
}

/* Copies the offsets of storages to their buffers. A view adds its offset in the viewed buffer. */
static void place_buffers(const hr_program *program, hr_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        hr_buffer *buffer = &plan->buffers[b];
        buffer->offset = plan->storages[buffer->storage].offset;
        if (buffer->view_of == HR_NONE) continue;
        const hr_tensor *view = &program->tensors[buffer->tensor];
        buffer->offset = plan->buffers[buffer->view_of].offset + view->view_offset_bytes;
        if (view->view_align) buffer->offset = hr_round_up(buffer->offset, view->view_align);
    }
}

static hr_status copy_strategy(const hr_config *config, const hr_strategy *from, hr_region *region,
                               hr_strategy *to, hr_error *err)
{
    const hr_status status = hr_strategy_check(config, from, err);
    if (status != HR_OK) return status;
    hr_intermediates *recompute_set = hr_region_take(region, from->layer_count,
                                                     sizeof *recompute_set);
    if (!recompute_set)
        return hr_fail(err, HR_FAILURE, "out of memory for a strategy of %d layers",
                       from->layer_count);
    memcpy(recompute_set, from->recompute_set, (size_t)from->layer_count * sizeof *recompute_set);
    *to = *from;
    to->recompute_set = recompute_set;
    hr_strategy_canonical(config, to);
    return HR_OK;
}

/* Derives buffers, lifetimes and the floor of the assembled program. */
static hr_status derive_plan(int32_t threads, hr_region *region, hr_compiled *compiled,
                             hr_error *err)
{
    hr_plan *plan = &compiled->plan;
    *plan = (hr_plan){ .process = { .threads = threads, .rung = "" } };
    hr_status status = hr_lifetimes(&compiled->program, region, plan, err);
    for (hr_space k = HR_SPACES; k-- > 0 && status == HR_OK;) {
        hr_plan_space *space = &plan->spaces[k];
        if (space->storage_count == 0) continue;
        status = hr_pack_floor(plan->storages + space->storage_first, space->storage_count, region,
                               &compiled->packing, err); /* the last one is that of the host */
        if (status != HR_OK || k == HR_SPACE_HOST) continue;
        space->bytes = space->floor_bytes = compiled->packing.floor_bytes;
    }
    if (status != HR_OK) return status;
    plan->arena_bytes = plan->floor_bytes = compiled->packing.floor_bytes;
    plan->peak_step = compiled->packing.peak_step;
    return HR_OK;
}

hr_status hr_compile_floor(const hr_config *config, const hr_backend *backend,
                           const hr_strategy *strategy, int32_t threads, hr_region *region,
                           hr_compiled *compiled, hr_error *err)
{
    hr_program *program = &compiled->program;
    hr_status status = copy_strategy(config, strategy, region, &compiled->strategy, err);
    if (status != HR_OK) return status;
    const int64_t sequences = compiled->strategy.micro_batch ? compiled->strategy.micro_batch
                                                             : config->train.batch;
    status = hr_model_assemble(config, backend, sequences, region, program, err);
    if (status == HR_OK)
        status = hr_strategy_apply(&compiled->strategy, config->train.seq_len, program, region,
                                   err);
    hr_prefetch prefetch = { .count = 0 };
    int32_t moves;
    if (status == HR_OK && !compiled->strategy.late)
        status = hr_prefetch_choose(program, threads, region, &prefetch, err);
    compiled->early = prefetch.count;
    if (status == HR_OK) status = hr_transfers(program, &prefetch, region, err);
    if (status == HR_OK && !compiled->strategy.late)
        status = hr_spill_overlap(program, threads, region, err);
    if (status == HR_OK && compiled->strategy.reorder)
        status = hr_reorder(program, threads, region, &moves, err);
    compiled->program_bytes = region->used;
    return status == HR_OK ? derive_plan(threads, region, compiled, err) : status;
}

hr_status hr_compile_reorder(hr_region *region, hr_compiled *compiled, bool *moved, hr_error *err)
{
    const int32_t threads = compiled->plan.process.threads;
    int32_t moves;
    const hr_status status = hr_reorder(&compiled->program, threads, region, &moves, err);
    *moved = moves > 0;
    if (status != HR_OK || !*moved) return status;
    compiled->strategy.reorder = true;
    region->used = compiled->program_bytes;
    return derive_plan(threads, region, compiled, err);
}

hr_status hr_compile_pack(hr_region *region, int64_t work, hr_compiled *compiled, hr_error *err)
{
    hr_plan *plan = &compiled->plan;
    hr_status status = HR_OK;
    for (hr_space k = HR_SPACES; k-- > 0 && status == HR_OK;) {
        hr_plan_space *space = &plan->spaces[k];
        if (space->storage_count == 0) continue;
        status = hr_pack(plan->storages + space->storage_first, space->storage_count, work, region,
                         &compiled->packing, err);
        if (status != HR_OK || k == HR_SPACE_HOST) continue;
        space->bytes = compiled->packing.arena_bytes;
    }
    if (status != HR_OK) return status;
    plan->arena_bytes = compiled->packing.arena_bytes;
    place_buffers(&compiled->program, plan);
    return HR_OK;
}

hr_status hr_compile(const hr_config *config, const hr_backend *backend,
                     const hr_strategy *strategy, int32_t threads, hr_region *region,
                     hr_compiled *compiled, hr_error *err)
{
    const hr_status status = hr_compile_floor(config, backend, strategy, threads, region, compiled,
                                              err);
    if (status != HR_OK) return status;
    return hr_compile_pack(region, HR_COMPILE_PACK_WORK, compiled, err);
}

hr_status hr_compile_generation(const hr_config *config, const hr_backend *backend, int64_t rows,
                                int64_t picking_bytes, int32_t threads, hr_region *region,
                                hr_compiled *compiled, hr_error *err)
{
    hr_status status = hr_model_assemble_generation(config, backend, rows, picking_bytes, region,
                                                    &compiled->program, err);
    if (status == HR_OK) status = hr_dequantize(&compiled->program, region, err);
    if (status == HR_OK) status = hr_stream(&compiled->program, region, err);
    if (status == HR_OK) status = derive_plan(threads, region, compiled, err);
    if (status != HR_OK) return status;
    return hr_compile_pack(region, HR_COMPILE_PACK_WORK, compiled, err);
}

/* Tiles the head and each MLP of a section. The head is the last block of its section; every layer
 * has an MLP. */
static hr_status tile_evaluation(int64_t chunk, int64_t mlp_tile, int64_t rows, hr_program *program,
                                 hr_region *scratch, hr_error *err)
{
    const int64_t kept = scratch->used;
    const int32_t end = program->step_count - 1;
    int32_t count = 0, first = end;
    hr_tile_cut *cuts = hr_region_take(scratch, program->loop_max, sizeof *cuts);
    if (!cuts) return hr_fail(err, HR_FAILURE, "out of memory for %d tiles", program->loop_max);
    while (first > 0 && program->steps[first - 1].block == HR_BLOCK_HEAD) first--;
    if (chunk < rows) cuts[count++] = (hr_tile_cut){ first, end, "chunk of logits", chunk };
    for (int32_t s = 0, last; mlp_tile && mlp_tile < rows && s <= end; s = last + 1) {
        const hr_step *step = &program->steps[s];
        last = s;
        if (step->block != HR_BLOCK_MLP || count == program->loop_max) continue;
        while (last < end && program->steps[last + 1].block == step->block &&
               program->steps[last + 1].layer == step->layer)
            last++;
        cuts[count++] = (hr_tile_cut){ s, last, "mlp tile", mlp_tile };
    }
    const hr_status status = hr_tile(program, cuts, count, scratch, err);
    scratch->used = kept;
    hr_tile_sort_loops(program);
    return status;
}

hr_status hr_compile_evaluation(const hr_config *config, const hr_backend *backend,
                                int64_t sequences, int64_t chunk, int64_t mlp_tile,
                                int64_t emit_bytes, bool strips, int32_t threads, hr_region *region,
                                hr_compiled *compiled, hr_error *err)
{
    hr_program *program = &compiled->program;
    hr_status status = hr_model_assemble_evaluation(config, backend, sequences, emit_bytes, strips,
                                                    region, program, err);
    if (status == HR_OK) status = hr_dequantize(program, region, err);
    if (status == HR_OK)
        status = tile_evaluation(chunk, mlp_tile, sequences * config->train.seq_len, program,
                                 region, err);
    if (status == HR_OK) status = hr_stream(program, region, err);
    if (status == HR_OK) status = derive_plan(threads, region, compiled, err);
    if (status != HR_OK) return status;
    return hr_compile_pack(region, HR_COMPILE_PACK_WORK, compiled, err);
}
