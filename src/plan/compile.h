/* SPDX-License-Identifier: Apache-2.0 */
/* plan/compile.h - compiles a config to a packed plan.
 *
 * The stages are: assemble the program, tile it, derive lifetimes, pack the arena. */
#ifndef HR_PLAN_COMPILE_H
#define HR_PLAN_COMPILE_H

#include "config/config.h"
#include "graph/backend.h"
#include "plan/pack/pack.h"
#include "plan/strategy.h"

/* Work limits for packing one plan, counted in items that the search examines. The search runs only
 * when the placement orders miss the floor, for about one plan in a hundred. The default allows
 * three stages of hr_pack, at most a third of a second. BRIEF allows two stages, for a plan that is
 * one of many candidates. MOST allows five, which take seconds, for tests and benchmarks. */
enum {
    HR_COMPILE_PACK_WORK_BRIEF = 5 << 20,
    HR_COMPILE_PACK_WORK = 21 << 20,
    HR_COMPILE_PACK_WORK_MOST = 341 << 20
};

typedef struct {
    hr_program program;
    hr_plan plan;
    hr_strategy strategy; /* canonical; its `recompute_set` is in the region */
    hr_pack_result packing;
    int32_t early;         /* pieces of states that are fetched early */
    int64_t program_bytes; /* of the region: those before the tables of the plan */
} hr_compiled;

/* Upper bound of the region bytes that compiling this config takes. */
int64_t hr_compile_bytes(const hr_config *config);

/* Upper bound of the region bytes that compiling takes without packing. */
int64_t hr_compile_unpacked_bytes(const hr_config *config);

/* Upper bound of those bytes that the program and the plan keep. It is the same for every strategy,
 * so that the process size depends on the strategy only through the arena. */
int64_t hr_compile_kept_bytes(const hr_config *config);

/* First half of compiling, without packing. Sets arena_bytes to the floor, its lower bound. */
HR_MUST_CHECK hr_status hr_compile_floor(const hr_config *config, const hr_backend *backend,
                                         const hr_strategy *strategy, int32_t threads,
                                         hr_region *region, hr_compiled *compiled, hr_error *err);

/* Moves the steps of a compiled program around its peak (plan/reorder.h) and derives its plan
 * again, as hr_compile_floor does for a strategy with `reorder`.
 *
 *   region  the one it was compiled in
 *   moved   out: false if no move lowers the floor; then the compiled plan is as it was */
HR_MUST_CHECK hr_status hr_compile_reorder(hr_region *region, hr_compiled *compiled, bool *moved,
                                           hr_error *err);

/* Second half of compiling: gives every buffer its offset, with `work` as in hr_pack. Packing a
 * plan again with more work never makes it larger. */
HR_MUST_CHECK hr_status hr_compile_pack(hr_region *region, int64_t work, hr_compiled *compiled,
                                        hr_error *err);

/* Compiles a config with a strategy, which is copied. All results are in `region`.
 *
 *   strategy  legal for the config; need not be canonical
 *   threads   the scratch sizes depend on it
 *   compiled  out; the caller fills plan.process and plan.process.rung
 *
 * Errors   USAGE  the strategy is not legal. FAILURE  the region is too small. NO_FIT  a size of
 *          2^63 bytes or more. */
HR_MUST_CHECK hr_status hr_compile(const hr_config *config, const hr_backend *backend,
                                   const hr_strategy *strategy, int32_t threads, hr_region *region,
                                   hr_compiled *compiled, hr_error *err);

/* Compiles the whole program that generates text (sections/generation.h). It has no strategy. */
HR_MUST_CHECK hr_status hr_compile_generation(const hr_config *config, const hr_backend *backend,
                                              int64_t rows, int64_t picking_bytes, int32_t threads,
                                              hr_region *region, hr_compiled *compiled,
                                              hr_error *err);

/* Compiles the program that evaluates whole sequences (sections/evaluation.h).
 *
 *   sequences  per iteration
 *   chunk      rows whose logits exist at a time
 *   mlp_tile   rows that an MLP processes at a time; 0: all */
HR_MUST_CHECK hr_status hr_compile_evaluation(const hr_config *config, const hr_backend *backend,
                                              int64_t sequences, int64_t chunk, int64_t mlp_tile,
                                              int64_t emit_bytes, bool strips, int32_t threads,
                                              hr_region *region, hr_compiled *compiled,
                                              hr_error *err);

#endif
