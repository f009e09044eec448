/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_table.h - the options of a Hugging Face config.json and their keys. hf_config_read.c and
 * hf_config_write.c use it.
 *
 * A new family is a row of architectures, and its letter in the rows of its options. A row without
 * a key accepts only the row's value. */
#ifndef HR_HF_HF_TABLE_H
#define HR_HF_HF_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum { HR_HF_ARCHITECTURES = 11, HR_HF_OPTIONS = 100, HR_HF_WRITTEN = 86 };

typedef struct {
    char letter;
    const char *architecture, *family; /* architecture null: unknown to transformers */
} hr_hf_architecture;

typedef struct {
    const char *letters; /* of the architectures with this option */
    const char *names;   /* spellings, the written one first; section.name if nested. The prefix
                            = marks an option that sets nothing and must equal the resulting key */
    const char *key;     /* of the recipe; null: only `value` is supported */
    const char *value;   /* default: "" means required; null is the default of the key, or false,
                            or none */
} hr_hf_option;

extern const hr_hf_architecture hr_hf_architectures[HR_HF_ARCHITECTURES];
extern const hr_hf_option hr_hf_options[HR_HF_OPTIONS]; /* the first HR_HF_WRITTEN are written */

/* Returns whether an architecture, by its row, has an option. */
bool hr_hf_has(const hr_hf_option *option, int32_t architecture);

/* Returns whether an option has no effect on the computed values. */
bool hr_hf_has_no_effect(const char *name);

#endif
