/* SPDX-License-Identifier: Apache-2.0 */
/* model/optimizer.h - the optimizers: the states that each keeps for a parameter, and the steps
 * that update one.
 *
 * A new optimizer needs a row in hr_optimizers, a line of HR_OPTIMIZER_LIST (headroom/config.h),
 * and an operation if no existing one computes its update. */
#ifndef HR_MODEL_OPTIMIZER_H
#define HR_MODEL_OPTIMIZER_H

#include "config/config.h"
#include "ops/update/update_build.h"

typedef struct {
    const char *name; /* in train.optimizer.kind */
    const hr_state *states;
    const hr_state *scales; /* of the blocks of each state, if it is coded */
    int32_t state_count;

    /* Adds the update of a trained parameter, whose first states are those above.
     *   norm_scale  tensor of hr_build_norm_scale; HR_NONE: no scaling */
    void (*update)(hr_builder *builder, const hr_config *config, int32_t param, int32_t norm_scale,
                   int32_t lr);

    /* Whether the recipe has the last of the states; null: always. */
    bool (*has_last)(const hr_config *config);
    bool whole; /* the update needs whole matrices, so the states cannot be in a file */
} hr_optimizer;

/* [hr_optimizer_kind] */
extern const hr_optimizer hr_optimizers[];

/* The average of the weights, train.ema_decay. */
extern const hr_state hr_average_state;

/* The states that a run of this config keeps for each trained parameter: those of its optimizer, in
 * the format of train.state.moments and the space of memory.moments, their scales, then the
 * average, then the residuals of train.state.master. Returns their number. Pure. */
int32_t hr_config_states(const hr_config *config, hr_state states[HR_STATES_MAX]);

#endif
