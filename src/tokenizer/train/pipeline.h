/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/pipeline.h - what surrounds the model in a tokenizer.json: how text is cut for
 * training, and the sections as the file that comes out has them. */
#ifndef HR_TOKENIZER_TRAIN_PIPELINE_H
#define HR_TOKENIZER_TRAIN_PIPELINE_H

#include "base/region.h"
#include "base/writer.h"
#include "headroom/status.h"
#include "tokenizer/pretokenizer.h"

enum { HR_PIPELINE_SECTIONS = 6, HR_PIPELINE_FLAGS = 5 };

/* Lives where its region lies. */
typedef struct {
    hr_pretokenizer_desc cut;
    bool prefix_space; /* a line that does not begin with a space gets one */
    const char *sections[HR_PIPELINE_SECTIONS]; /* truncation, padding, normalizer, pre_tokenizer,
                                                   post_processor, decoder, as written */
    const char *flags[HR_PIPELINE_FLAGS];       /* of the model: dropout, unk_token, fuse_unk,
                                             byte_fallback, ignore_merges */
} hr_pipeline;

extern const char *const hr_pipeline_section_names[HR_PIPELINE_SECTIONS];
extern const char *const hr_pipeline_flag_names[HR_PIPELINE_FLAGS];

/* Room for a pipeline of so many bytes without the model. Pure. */
int64_t hr_pipeline_bytes(int64_t text_bytes);

/* The byte-level pipeline of a pattern: gpt2, cl100k, qwen, o200k, super, super-paper or a regular
 * expression; `stage` 1 or 2 says which half of super. Null: gpt2. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_pipeline_name(hr_pipeline *pipeline, hr_region *region,
                                         const char *pattern, int32_t stage, bool prefix_space,
                                         hr_error *err);

/* The pipeline of a tokenizer.json, text [bytes], which is written over.
 * Errors  CORRUPT  no such file, or something in it that training does not do: names it. */
HR_MUST_CHECK hr_status hr_pipeline_read(hr_pipeline *pipeline, hr_region *region, const char *path,
                                         char *text, int64_t bytes, hr_error *err);

/* Appends text [bytes] as a JSON string, quotes and all, escaped as the field's reference does. */
void hr_json_quote(hr_writer *writer, const char *text, int64_t bytes);

#endif
