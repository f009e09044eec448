/* SPDX-License-Identifier: Apache-2.0 */
/* model/hf_table.h - the options of a Hugging Face config.json and what they are here; a reader and
 * a writer follow it.
 *
 * A new family is a row of architectures and its letter in the rows of the options that it has. A
 * row whose key headroom does not have yet takes the row's value alone. */
#ifndef HR_MODEL_HF_TABLE_H
#define HR_MODEL_HF_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum { HR_HF_ARCHITECTURES = 10, HR_HF_OPTIONS = 75, HR_HF_WRITTEN = 63 };

typedef struct {
    char letter;
    const char *architecture, *family; /* architecture null: transformers does not have it */
} hr_hf_architecture;

typedef struct {
    const char *letters; /* of the architectures that have it */
    const char *names;   /* its spellings, that which is written first; section.name where nested;
                            with a = before it, one that sets nothing and has to be what the others
                            make of the key */
    const char *key;     /* of the recipe; null: `value` is the only one that is computed with */
    const char *value;   /* where it is left out: "" it has to be there; null what the key's own
                            default makes of the others, or false, or none */
} hr_hf_option;

extern const hr_hf_architecture hr_hf_architectures[HR_HF_ARCHITECTURES];
extern const hr_hf_option hr_hf_options[HR_HF_OPTIONS]; /* the first HR_HF_WRITTEN are written */

/* Whether an architecture, by its row, has an option. */
bool hr_hf_has(const hr_hf_option *option, int32_t architecture);

/* Whether an option changes nothing that is computed. */
bool hr_hf_has_no_effect(const char *name);

#endif
