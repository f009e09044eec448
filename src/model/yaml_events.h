/* SPDX-License-Identifier: Apache-2.0 */
/* model/yaml_events.h - a YAML file as events, one after the other: bounded, and every failure one
 * sentence. What the events mean is their taker's. */
#ifndef HR_MODEL_YAML_EVENTS_H
#define HR_MODEL_YAML_EVENTS_H

#include <stdint.h>
#include <yaml.h>

#include "headroom/status.h"

/* Takes an event of line `line`; anything but OK ends the reading. */
typedef hr_status hr_yaml_take(void *context, const yaml_event_t *event, int64_t line);

/* Reads a file of up to 1 MiB.
 *
 *   what  "recipe", "strategy": what the file should be, in sentences
 *
 * Errors   USAGE    cannot be opened or read, a directory, too large, not YAML; what `take` says.
 *          FAILURE  no memory left for libyaml. */
HR_MUST_CHECK hr_status hr_yaml_read(const char *path, const char *what, hr_yaml_take *take,
                                     void *context, hr_error *err);

/* The same of a file that is open at its beginning, and stays open. */
HR_MUST_CHECK hr_status hr_yaml_read_open(int file, const char *path, const char *what,
                                          hr_yaml_take *take, void *context, hr_error *err);

/* "path:line: sentence", USAGE; of a long path the end is what tells. */
hr_status hr_yaml_fail(const char *path, int64_t line, const char *sentence, hr_error *err);

#endif
