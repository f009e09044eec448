/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_value.h - reads the value of one key from text. */
#ifndef HR_CONFIG_CONFIG_VALUE_H
#define HR_CONFIG_CONFIG_VALUE_H

#include "config/config_keys.h"
#include "headroom/foreign.h"

/* Every member of hr_config that a key can name has one of these types. */
typedef union {
    int64_t integer; /* HR_KEY_INTEGER, HR_KEY_BYTES */
    double real;
    bool truth;
    int32_t choice;
    char text[HR_VALUE_BYTES];
} hr_config_member;

/* Reads a value; false: it is not one that the key takes. `value` in: zero. Pure. */
bool hr_config_member_read(const hr_config_row *row, const char *text, hr_config_member *value);

/* Writes ": use bf16" and the remark of its row for a word of other trainers, such as float16; an
 * empty text for others. Pure. */
void hr_config_advise_value(const hr_config_row *row, const char *value,
                            char text[HR_ADVICE_BYTES]);

/* Whether a value for a number of steps is a share of all steps, such as 0.03, which transformers
 * accepts. Pure. */
bool hr_config_is_share(const hr_config_row *row, const char *text);

#endif
