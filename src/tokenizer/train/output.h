/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/output.h - writes the files of a trained tokenizer, byte for byte like the
 * reference. */
#ifndef HR_TOKENIZER_TRAIN_OUTPUT_H
#define HR_TOKENIZER_TRAIN_OUTPUT_H

#include "tokenizer/train/engine.h"
#include "tokenizer/train/pipeline.h"

enum { HR_OUTPUT_BYTES = 1 << 16 };

/* Checks that tokenizer.json, vocab.json and merges.txt may be written to a folder, which need not
 * exist: existing files of these names must have the right kind of content. Errors as
 * hr_file_check_kind. */
HR_MUST_CHECK hr_status hr_output_check(const char *folder, hr_error *err);

/* Writes tokenizer.json, vocab.json and merges.txt to a folder.
 *
 *   special        [special_count] texts of the first ids
 *   buffer         [HR_OUTPUT_BYTES]
 *
 * Errors  FAILURE, USAGE  from creating and writing the files. */
HR_MUST_CHECK hr_status hr_output_write(const char *folder, const hr_engine *engine,
                                        const hr_pipeline *pipeline, const char *const *special,
                                        int32_t special_count, char *buffer, hr_error *err);

#endif
