/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_value.c - reads the value of one key from text, as its row of the table says. */
#include "config/config_value.h"

#include <string.h>

#include "base/number.h"

/* Index of a word among words separated by one space; -1: not among them. */
static int32_t choice_index(const char *choices, const char *word)
{
    const size_t bytes = strlen(word);
    int32_t index = 0;
    for (const char *at = choices; at; index++) {
        const char *space = strchr(at, ' ');
        const size_t length = space ? (size_t)(space - at) : strlen(at);
        if (length == bytes && !memcmp(at, word, bytes)) return index;
        at = space ? space + 1 : NULL;
    }
    return -1;
}

static bool in_range(const hr_key *key, double value)
{
    return value >= key->low && (key->below_high ? value < key->high : value <= key->high);
}

static bool parse_number(const hr_key *key, const char *text, hr_config_member *value)
{
    if (key->zero_word && !strcmp(text, key->zero_word)) return true;
    if (key->type == HR_KEY_REAL)
        return hr_real_parse(text, &value->real) && in_range(key, value->real);
    const bool read = key->type == HR_KEY_BYTES
                          ? hr_bytes_parse(text, &value->integer, NULL) == HR_OK
                          : hr_integer_parse(text, &value->integer);
    /* Not rounded: 2^53 + 1 would be 2^53. */
    return read && in_range(key, (double)value->integer) &&
           (key->high > 0x1p62 || value->integer <= (int64_t)key->high);
}

static bool parse_text(const hr_config_row *row, const char *text, hr_config_member *value)
{
    const size_t length = strlen(text);
    if (row->key.choices && choice_index(row->key.choices, text) < 0) return false;
    if (length >= (size_t)row->bytes) return false;
    memcpy(value->text, text, length);
    return true;
}

bool hr_config_member_read(const hr_config_row *row, const char *text, hr_config_member *value)
{
    switch (row->key.type) {
    case HR_KEY_BOOL:
        value->truth = !strcmp(text, "true");
        return value->truth || !strcmp(text, "false");
    case HR_KEY_CHOICE:
        value->choice = choice_index(row->key.choices, text);
        return value->choice >= 0;
    case HR_KEY_TEXT: return parse_text(row, text, value);
    default: return parse_number(&row->key, text, value);
    }
}

bool hr_config_is_share(const hr_config_row *row, const char *text)
{
    double share;
    return row->key.type == HR_KEY_INTEGER && !strcmp(row->key.unit, "steps") &&
           hr_real_parse(text, &share) && share > 0 && share < 1;
}
