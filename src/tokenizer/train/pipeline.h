/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/pipeline.h - everything in a tokenizer.json except the model: the pre-tokenizer
 * for training, and the sections that the output file copies. */
#ifndef HR_TOKENIZER_TRAIN_PIPELINE_H
#define HR_TOKENIZER_TRAIN_PIPELINE_H

#include "base/region.h"
#include "base/writer.h"
#include "headroom/status.h"
#include "tokenizer/pretokenizer.h"

enum { HR_PIPELINE_SECTIONS = 6, HR_PIPELINE_FLAGS = 5 };

/* Points into its region. */
typedef struct {
    hr_pretokenizer_desc cut;
    bool prefix_space; /* add_prefix_space: a line gets a leading space if it has none */
    const char *sections[HR_PIPELINE_SECTIONS]; /* truncation, padding, normalizer, pre_tokenizer,
                                                   post_processor, decoder, as written */
    const char *flags
        /* of the model: dropout, unk_token, fuse_unk, byte_fallback, ignore_merges */
        [HR_PIPELINE_FLAGS];
} hr_pipeline;

extern const char *const hr_pipeline_section_names[HR_PIPELINE_SECTIONS];
extern const char *const hr_pipeline_flag_names[HR_PIPELINE_FLAGS];

/* Bytes for a pipeline whose file has `text_bytes` bytes without the model. Pure. */
int64_t hr_pipeline_bytes(int64_t text_bytes);

/* The byte-level pipeline of a pattern: gpt2, cl100k, qwen, o200k, super, super-paper or a regular
 * expression. `stage` 1 or 2 selects the half of super. Null: gpt2. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_pipeline_name(hr_pipeline *pipeline, hr_region *region,
                                         const char *pattern, int32_t stage, bool prefix_space,
                                         hr_error *err);

/* Reads the pipeline of a tokenizer.json. text [bytes] is overwritten.
 * Errors  CORRUPT  not a tokenizer.json, or a feature that training does not support, by name. */
HR_MUST_CHECK hr_status hr_pipeline_read(hr_pipeline *pipeline, hr_region *region, const char *path,
                                         char *text, int64_t bytes, hr_error *err);

/* Appends text [bytes] as a quoted JSON string, escaped like the reference. */
void hr_json_quote(hr_writer *writer, const char *text, int64_t bytes);

#endif
