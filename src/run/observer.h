/* SPDX-License-Identifier: Apache-2.0 */
/* run/observer.h - a run that someone watches: every operation, every step, and the weights and
 * states at its end.
 *
 * The run is that of hr_train, in the memory of its plan. Its observer sees the arena between
 * operations, may end the run after some steps, and may take the place of services or of the
 * device. It must not allocate. */
#ifndef HR_RUN_OBSERVER_H
#define HR_RUN_OBSERVER_H

#include "checkpoint/manifest.h"
#include "dev/executor.h"
#include "graph/rates.h"
#include "headroom/train.h"
#include "run/measures.h"

/* All functions may be null. */
typedef struct {
    void *context; /* of all functions */

    /* The run ends after this many of its steps, as if its recipe had no more. The learning rate
     * remains that of the recipe. */
    int64_t last_step;

    hr_services services; /* they take precedence over those of training; count 0: none */

    /* Called once, when program and plan are known and nothing has run.
     *   rates  that the plan was priced with */
    hr_status (*placed)(void *context, const hr_executor *executor, const hr_rates *rates,
                        hr_error *err);

    /* Returns the device that runs the steps, in place of `device`. */
    const hr_device *(*device)(void *context, const hr_device *device, hr_pool *pool);

    hr_watch_fn *before, *watch; /* before and after every operation */

    /* After every training step, with the state after it. Its error ends the run. */
    hr_status (*stepped)(void *context, const hr_run_state *state, const hr_measures *measures,
                         hr_error *err);

    /* After the last step. The section that saves then runs without writing, so that `watch` sees
     * every weight and state, wherever they are kept. */
    hr_status (*last)(void *context, const hr_executor *executor, hr_error *err);
} hr_observer;

/* As hr_train. An interrupt ends the run as usual; then `last` is not called.
 *
 *   observer  null: as hr_train */
HR_MUST_CHECK hr_status hr_train_observed(const hr_config *config, const hr_train_options *options,
                                          const hr_observer *observer, hr_train_result *result,
                                          hr_error *err);

#endif
