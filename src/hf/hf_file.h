/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_file.h - config.json as a list of entries, without a meaning. */
#ifndef HR_HF_HF_FILE_H
#define HR_HF_HF_FILE_H

#include <limits.h>

#include "base/json.h"
#include "base/writer.h"
#include "config/config.h"
#include "hf/hf_layers.h"

enum {
    HR_HF_FILE_BYTES = 65536,
    HR_HF_ENTRIES_MAX = 256,
    HR_HF_VALUE_BYTES = 64,
    HR_HF_NAME_BYTES = 128, /* of a section and an entry in it */
    HR_HF_NAME_SHOWN = 60
};

typedef struct {
    const char *section, *name, *value; /* section empty: top level */
    int64_t value_bytes;
    hr_json_kind kind;
} hr_hf_entry;

typedef struct {
    char path[PATH_MAX];
    char text[HR_HF_FILE_BYTES];
    hr_hf_entry entries[HR_HF_ENTRIES_MAX];
    int32_t entry_count;
    hr_hf_layers layers[HR_HF_LISTS];
    hr_writer token_ids; /* lines in the format of the file */
    char architecture[HR_HF_VALUE_BYTES], model_type[HR_HF_VALUE_BYTES]; /* empty: absent */
    int32_t made_by; /* row of hr_hf_architectures */
    int32_t weights; /* hr_weights_choice: the format that most matrices of layers have */
    hr_error *err;
} hr_hf_file;

/* Reads DIRECTORY/config.json. The caller has set `token_ids` and `err`.
 * Errors   USAGE    there is no such file
 *          CORRUPT  not JSON, too long, or an unsupported quantization. */
HR_MUST_CHECK hr_status hr_hf_file_read(hr_hf_file *r, const char *directory);

/* The end of the path, for messages. */
const char *hr_hf_shown(const hr_hf_file *r);

hr_status hr_hf_fail(const hr_hf_file *r, const char *sentence);

/* A name or value for an error message: one line, truncated. Returns text. */
const char *hr_hf_quote(const char *value, int64_t bytes, char text[HR_HF_VALUE_BYTES]);

/* The name of an entry with its section: "rope_scaling.factor". */
int hr_hf_spell(const hr_hf_entry *o, char name[HR_HF_NAME_BYTES]);

/* Whether an entry has one of the names of a row of the table (hf_table.h). */
bool hr_hf_spells(const char *names, const hr_hf_entry *o);

#endif
