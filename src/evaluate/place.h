/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/place.h - checks output paths of an evaluation: they must not overwrite input files, or
 * have a name that would be loaded as part of the model. */
#ifndef HR_EVALUATE_PLACE_H
#define HR_EVALUATE_PLACE_H

#include "headroom/evaluate.h"

/* Checks the path given with `option`; null is accepted.
 * Errors   USAGE    the path is an input file or any file of the model or tokenizer directory,
 *                   or a new file there with a name that loaders look for. As
 *                   hr_file_check_place and hr_directory_list. */
HR_MUST_CHECK hr_status hr_place_check(const hr_evaluate_request *request, const char *option,
                                       const char *path, hr_error *err);

#endif
