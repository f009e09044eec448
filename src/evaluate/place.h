/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/place.h - where an evaluation may write: never over what is read, nor beside it under a
 * name that the next reader of the model would take for a part of it. */
#ifndef HR_EVALUATE_PLACE_H
#define HR_EVALUATE_PLACE_H

#include "headroom/evaluate.h"

/* That a file may be put where the option says; a null path may.
 * Errors   USAGE    it is a file that is read, or any file of the model's folder or of the
 *                   tokenizer's; or in there, a new one named as their files are. As
 *                   hr_file_check_place and hr_directory_list. */
HR_MUST_CHECK hr_status hr_place_check(const hr_evaluate_request *request, const char *option,
                                       const char *path, hr_error *err);

#endif
