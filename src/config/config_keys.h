/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_keys.h - rows of the table of keys, with the location of each in hr_config. */
#ifndef HR_CONFIG_CONFIG_KEYS_H
#define HR_CONFIG_CONFIG_KEYS_H

#include "config/config.h"

typedef struct {
    hr_key key;
    int32_t offset, bytes; /* of the member in hr_config */
    const char *between;   /* joins the entries of a recipe's list; null: no list allowed */
    bool takes_mappings;   /* entries may be mappings: "key=value key=value" */
} hr_config_row;

enum { HR_CONFIG_ROWS_MAX = 160 };

/* Rows of the table: [hr_config_row_count()], at most HR_CONFIG_ROWS_MAX. */
const hr_config_row *hr_config_rows(void);
int32_t hr_config_row_count(void);

/* Index of the row with this present or old name; -1: there is none. */
int32_t hr_config_row_find(const char *name);

/* Index of an old name in the table of renamed keys; -1: it is none. */
int32_t hr_config_renamed_find(const char *name);

/* `value` for an error message: quoted, at most 40 characters, no control characters. */
const char *hr_config_quote(const char *value, char text[48]);

/* Edit distance between a given name and a known key or section; INT32_MAX: unrelated. */
int32_t hr_config_distance(const char *wanted, const char *known);

/* Error for an unknown key, with what to use instead, or the nearest known key. USAGE.
 *   value  null: not known */
hr_status hr_config_fail_unknown(const char *key, const char *value, hr_error *err);

/* The part of hr_config_check about the data: their vocabulary, the fields and ends of documents.
 * Errors USAGE. */
HR_MUST_CHECK hr_status hr_config_check_data(const hr_config *config, hr_error *err);

/* hr_config_read of an open file, from its current position at the start. The file stays open.
 * Errors USAGE, FAILURE. */
HR_MUST_CHECK hr_status hr_config_read_open(hr_config *config, int file, const char *path,
                                            hr_error *err);

#endif
