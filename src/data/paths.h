/* SPDX-License-Identifier: Apache-2.0 */
/* data/paths.h - the paths of a recipe. */
#ifndef HR_DATA_PATHS_H
#define HR_DATA_PATHS_H

#include "config/config.h"

/* Checks that the texts are readable, and that weights, shards and `metrics` (null: none) can be
 * written to their paths. Creates nothing, because the plan may still be refused.
 * Errors   USAGE    a path is missing, unreadable, or of the wrong kind
 *          FAILURE  the system would refuse to write. */
HR_MUST_CHECK hr_status hr_paths_check(const hr_config *config, const char *metrics, hr_error *err);

#endif
