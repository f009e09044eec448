/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/foreign.h - keys and flags of other trainers, and what replaces them here.
 *
 * One table for unknown keys of recipes, unknown options of commands, and recipes of other
 * software. */
#ifndef HEADROOM_FOREIGN_H
#define HEADROOM_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *names;  /* "max_grad_norm clip_grad": lower case, words joined by "_" */
    const char *key;    /* "train.optimizer.clip"; null: no key replaces it */
    const char *values; /* "true=bf16 false=fp32"; null: values have the same meaning */
    const char *form;   /* value here, with "{}" for the given one; null: the value itself */
    const char *remark; /* what differs, or why there is no such key; empty: nothing */
} hr_foreign_row;

/* Row `index` of the table, in the order of keys here; null past its end. Pure. */
const hr_foreign_row *hr_foreign_at(int32_t index);

/* The row of a name; null: there is none. Ignores case, sections ("training.batch_size"), leading
 * dashes, and whether words are joined by "-" or "_". Pure. */
const hr_foreign_row *hr_foreign_find(const char *name);

/* Writes the value here for a value there. A flag without a value ("") is true. Returns false,
 * with an empty text, if the row has no translation of this value. Whether the key accepts it is
 * for hr_config_set to say. Pure. */
enum { HR_FOREIGN_VALUE_BYTES = 128 };
bool hr_foreign_value(const hr_foreign_row *row, const char *value,
                      char text[HR_FOREIGN_VALUE_BYTES]);

/* What to use for an unknown key: "use train.batch=32", and the remark of its row. Also for keys
 * here without their section, or with another one.
 *   value  null: not known. Without a value, the advice has the key alone
 * Returns false, with an empty text, for a name that is in no table: hr_config_nearest then
 * compares spellings. Pure. */
enum { HR_ADVICE_BYTES = 384 };
bool hr_config_advise(const char *key, const char *value, char text[HR_ADVICE_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
