/* SPDX-License-Identifier: Apache-2.0 */
/* model/config_keys.h - the rows of the table of keys, with the place of each in hr_config. */
#ifndef HR_MODEL_CONFIG_KEYS_H
#define HR_MODEL_CONFIG_KEYS_H

#include "headroom/config.h"

typedef struct {
    hr_key key;
    int32_t offset, bytes; /* of the member of hr_config */
    const char *between;   /* a recipe may give a list, which is its entries with this between
                            * them; null: it may not */
} hr_config_row;

enum { HR_CONFIG_ROWS_MAX = 128 };

/* Rows of the table: [hr_config_row_count()], at most HR_CONFIG_ROWS_MAX. */
const hr_config_row *hr_config_rows(void);
int32_t hr_config_row_count(void);

/* Index of the row of that name, present or old, -1 when there is none. */
int32_t hr_config_row_find(const char *name);

/* Index of that old name in the table of renamed keys, -1 when it is none. */
int32_t hr_config_renamed_find(const char *name);

/* `value` as an error may show it: in quotes, at most 40 characters, no control characters. */
const char *hr_config_quote(const char *value, char text[48]);

/* How different a known key or section is from what a person wrote; INT32_MAX: too different. */
int32_t hr_config_distance(const char *wanted, const char *known);

/* The refusal of a key that is not in the table; names one that is near. USAGE. */
hr_status hr_config_fail_unknown(const char *key, hr_error *err);

/* hr_config_read of a file that is open at its beginning, and stays open. Errors USAGE, FAILURE. */
HR_MUST_CHECK hr_status hr_config_read_open(hr_config *config, int file, const char *path,
                                            hr_error *err);

#endif
