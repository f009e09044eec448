/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/place.h - checks output paths of an evaluation: they must not overwrite input files, or
 * have a name that would be loaded as part of the model. */
#ifndef HR_EVALUATE_PLACE_H
#define HR_EVALUATE_PLACE_H

#include "headroom/evaluate.h"

/* By what a file of an earlier evaluation, which may be replaced, is known: a text at `at`. */
typedef struct {
    int64_t at;
    const char *is, *name;
} hr_place_kind;

/* Checks the path given with `option`; null is accepted.
 * Errors   USAGE    the path is an input file or any file of the model or tokenizer directory,
 *                   or a new file there with a name that loaders look for, or a file of
 *                   another kind. As hr_file_check_place and hr_directory_list. */
HR_MUST_CHECK hr_status hr_place_check(const hr_evaluate_request *request, const char *option,
                                       const char *path, hr_place_kind kind, hr_error *err);

#endif
