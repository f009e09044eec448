/* SPDX-License-Identifier: Apache-2.0 */
/* config/yaml_events.h - reads a YAML file as a bounded sequence of events. Every failure is one
 * sentence. The caller's function interprets the events. */
#ifndef HR_CONFIG_YAML_EVENTS_H
#define HR_CONFIG_YAML_EVENTS_H

#include <stdint.h>
#include <yaml.h>

#include "headroom/status.h"

/* Handles an event of line `line`. Any status but OK ends the reading. */
typedef hr_status hr_yaml_take(void *context, const yaml_event_t *event, int64_t line);

/* Reads a file of up to 1 MiB.
 *
 *   what  "recipe", "strategy": the kind of file, for error sentences
 *
 * Errors   USAGE    cannot be opened or read, not a regular file, too large, not YAML; errors of
 *                   `take`.
 *          FAILURE  out of memory in libyaml. */
HR_MUST_CHECK hr_status hr_yaml_read(const char *path, const char *what, hr_yaml_take *take,
                                     void *context, hr_error *err);

/* The same for an open file at its start, which stays open. */
HR_MUST_CHECK hr_status hr_yaml_read_open(int file, const char *path, const char *what,
                                          hr_yaml_take *take, void *context, hr_error *err);

/* The same for a text in memory; `name` stands for its path. */
HR_MUST_CHECK hr_status hr_yaml_read_text(const char *text, const char *name, const char *what,
                                          hr_yaml_take *take, void *context, hr_error *err);

/* Error "path:line: sentence", USAGE. A long path is cut at the front. */
hr_status hr_yaml_fail(const char *path, int64_t line, const char *sentence, hr_error *err);

#endif
