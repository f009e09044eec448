/* SPDX-License-Identifier: Apache-2.0 */
/* model/module_names.h - the words that name modules, that is parameters without ".weight".
 *
 *     down_proj mlp.down_proj   the last parts of the name
 *     *.layers.[0-3].*          a pattern for the whole name
 *     /.*\.(q|v)_proj/          a regular expression for the whole name (base/regex.h)
 *     all-linear                the matrices of all layers */
#ifndef HR_MODEL_MODULE_NAMES_H
#define HR_MODEL_MODULE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#define HR_ALL_LINEAR "all-linear"

/* Whether a word names a module, in a layer or not (HR_NONE). */
bool hr_module_is_named(const char *word, int16_t layer, const char *module);

/* Errors   USAGE  too long, or a regular expression that cannot be read. */
HR_MUST_CHECK hr_status hr_module_word_check(const char *key, const char *word, hr_error *err);

#endif
