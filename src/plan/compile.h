/* SPDX-License-Identifier: Apache-2.0 */
/* plan/compile.h - from a config to a packed plan: assemble, cut, derive lives, pack. */
#ifndef HR_PLAN_COMPILE_H
#define HR_PLAN_COMPILE_H

#include "headroom/config.h"
#include "plan/pack.h"
#include "plan/strategy.h"

/* Items that packing may look at for one plan where the best orders fail, which is one plan in a
 * hundred: three stages of hr_pack, a third of a second at most. BRIEF: two stages, for a plan that
 * is one of many candidates. HINT: one, for a plan of which only the size is printed. MOST: five,
 * some seconds, for tests and benchmarks. */
enum {
    HR_COMPILE_PACK_WORK_HINT = 1 << 20,
    HR_COMPILE_PACK_WORK_BRIEF = 5 << 20,
    HR_COMPILE_PACK_WORK = 21 << 20,
    HR_COMPILE_PACK_WORK_MOST = 341 << 20
};

typedef struct {
    hr_program program;
    hr_plan plan;
    hr_strategy strategy; /* canonical; `dropped` lies in the region */
    hr_pack_result packing;
} hr_compiled;

/* Bytes that compiling such a config takes from a region, at most. */
int64_t hr_compile_bytes(const hr_config *config);

/* Bytes that it takes without packing, at most. */
int64_t hr_compile_lives_bytes(const hr_config *config);

/* Bytes of these that program and plan keep, at most: the same for every strategy, so that a
 * process is as large as its arena says. */
int64_t hr_compile_kept_bytes(const hr_config *config);

/* The first half of compiling, without packing: the floor stands for the arena, which is never
 * less. */
HR_MUST_CHECK hr_status hr_compile_floor(const hr_config *config, const hr_strategy *strategy,
                                         int32_t threads, hr_region *region, hr_compiled *compiled,
                                         hr_error *err);

/* The second half: gives every buffer its place, with so much work (hr_pack). A plan that was
 * packed already does not become larger if it is packed again with more work. */
HR_MUST_CHECK hr_status hr_compile_pack(hr_region *region, int64_t work, hr_compiled *compiled,
                                        hr_error *err);

/* Compiles with a strategy, which is copied. Everything lies in `region`.
 *
 *   strategy  legal for the config; need not be canonical
 *   threads   scratch depends on them
 *   compiled  out; plan.process and plan.rung are left for the caller
 *
 * Errors   USAGE  the strategy is not legal. FAILURE  the region is too small. NO_FIT  a size of
 *          2^63 bytes or more. */
HR_MUST_CHECK hr_status hr_compile(const hr_config *config, const hr_strategy *strategy,
                                   int32_t threads, hr_region *region, hr_compiled *compiled,
                                   hr_error *err);

/* Compiles what goes on with a text (model/generation.h), whole; there is no strategy to choose. */
HR_MUST_CHECK hr_status hr_compile_generation(const hr_config *config, int64_t rows,
                                              int64_t picking_bytes, int32_t threads,
                                              hr_region *region, hr_compiled *compiled,
                                              hr_error *err);

/* Compiles what asks a model about whole sequences (model/evaluation.h), so many a turn, logits of
 * `chunk` rows at a time; `mlp_tile` rows pass an MLP at a time, 0: all. */
HR_MUST_CHECK hr_status hr_compile_evaluation(const hr_config *config, int64_t sequences,
                                              int64_t chunk, int64_t mlp_tile, int64_t emit_bytes,
                                              int32_t threads, hr_region *region,
                                              hr_compiled *compiled, hr_error *err);

#endif
