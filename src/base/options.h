/* SPDX-License-Identifier: Apache-2.0 */
/* base/options.h - options that callers of the library give in a struct of theirs. Its first member
 * is its size, so that a program of an older version, whose struct has fewer members, works with a
 * library that knows more: those are zero. */
#ifndef HR_BASE_OPTIONS_H
#define HR_BASE_OPTIONS_H

#include <stddef.h>

#include "headroom/status.h"

/* Copies options into a struct of this version, of own_size bytes.
 *   given  null: all zero
 * Errors   USAGE  its size is smaller than the member `size`, such as 0, or it is larger than
 *                 own_size and has something there, which this version does not know. */
HR_MUST_CHECK hr_status hr_options_take(void *own, size_t own_size, const void *given,
                                        hr_error *err);

#endif
