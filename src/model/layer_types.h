/* SPDX-License-Identifier: Apache-2.0 */
/* model/layer_types.h - parses model.attention.layer_types: which layers have the sliding window.
 *
 *     full*21 sliding*7   21 layers without it, then 7 with it
 *     full sliding        alternating
 *
 * Words are separated by blanks or commas. The list repeats up to the last layer. An empty list:
 * all layers have the window, if there is one. */
#ifndef HR_MODEL_LAYER_TYPES_H
#define HR_MODEL_LAYER_TYPES_H

#include "config/config.h"

/* Kinds of layers by their attention: model.attention.pattern, or the sliding window. */
enum { HR_LAYER_FULL, HR_LAYER_SLIDING };

/* The kind of a layer. The list must be checked. */
int32_t hr_layer_type(const hr_config *config, int64_t layer);

/* Errors   USAGE  a word that is not a type, a list that is longer than the model, a list without
 *                 a window. */
HR_MUST_CHECK hr_status hr_layer_types_check(const hr_config *config, hr_error *err);

/* Sets the list from the kind of each layer, in its shortest period.
 *
 *   types  [count]
 *
 * Errors   USAGE  the text of the list has no room in the key. */
HR_MUST_CHECK hr_status hr_layer_types_set(hr_config *config, const uint8_t *types, int64_t count,
                                           hr_error *err);

#endif
