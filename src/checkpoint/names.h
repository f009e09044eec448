/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/names.h - names of tensors: with and without the prefix of an architecture; and the
 * part of a path that a message shows. */
#ifndef HR_CHECKPOINT_NAMES_H
#define HR_CHECKPOINT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* What a model with a head puts before the names of its base model; files of a base model alone
 * have nothing. The first is empty. */
enum { HR_PREFIXES = 4 };
extern const char *const hr_prefixes[HR_PREFIXES];

/* The name after such a prefix. */
const char *hr_name_without_prefix(const char *name);

/* The end of a path that is too long for a message. */
const char *hr_path_shown(const char *path);

/* The layer of a module, the first number among the parts of its name; -1: it is in none. */
int16_t hr_name_layer(const char *module);

/* The name after the number of the layer; of a module outside of layers its whole name. */
const char *hr_name_in_layer(const char *module);

#endif
