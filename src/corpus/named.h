/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/named.h - corpora that a recipe names without a path: data.train=wikitext-2. */
#ifndef HR_CORPUS_NAMED_H
#define HR_CORPUS_NAMED_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

/* Finds the file of a corpus: FOLDER/NAME/train.txt or the name that its publisher gave it, in the
 * first of the folders that has it. Returns false, with `path` [bytes] unchanged, if the name is
 * none of a corpus, or no folder has it. */
bool hr_named_find(const char *name, bool validation, const char *const *folders, int32_t count,
                   char *path, int64_t bytes);

/* Refuses the name [bytes] of a corpus, which was in no folder, with where to get it. Other
 * spellings of a name may be those of files, which are accepted.
 *   alone  the name is all of the key, not a part of a mixture
 * Errors USAGE. */
HR_MUST_CHECK hr_status hr_named_check(const char *name, int64_t bytes, bool validation, bool alone,
                                       hr_error *err);

#endif
