/* SPDX-License-Identifier: Apache-2.0 */
/* config/advice.c - what to use instead of an unknown key: exact names first, of other software and
 * of keys here without their section. Only then are spellings compared. */
#include "headroom/foreign.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/config_keys.h"
#include "config/config_value.h"

/* The only key with this last word, such as train.seq_len for seq_len; null: none or several. */
static const char *key_of_word(const char *key)
{
    const char *dot = strrchr(key, '.'), *word = dot ? dot + 1 : key, *found = NULL;
    for (int32_t i = 0; i < hr_config_row_count(); i++) {
        const char *name = hr_config_rows()[i].key.name;
        if (strcmp(strrchr(name, '.') + 1, word) != 0) continue;
        if (found) return NULL;
        found = name;
    }
    return found;
}

/* Whether a key accepts a value. */
static bool accepts(const char *key, const char *value)
{
    hr_config_member member = { .text = { 0 } };
    return hr_config_member_read(&hr_config_rows()[hr_config_row_find(key)], value, &member);
}

static bool is_share_of_steps(const char *key, const char *value)
{
    return key && hr_config_is_share(&hr_config_rows()[hr_config_row_find(key)], value);
}

bool hr_config_advise(const char *key, const char *value, char text[HR_ADVICE_BYTES])
{
    char here[HR_FOREIGN_VALUE_BYTES] = "";
    const hr_foreign_row own = { key, key_of_word(key), NULL, NULL, "" };
    const hr_foreign_row *row = own.key ? &own : hr_foreign_find(key);
    *text = 0;
    if (!row) return false;
    if (value && !row->form && is_share_of_steps(row->key, value)) {
        snprintf(text, HR_ADVICE_BYTES,
                 "use %s = %.40s x train.steps: a number of steps, not a share", row->key, value);
        return true;
    }
    bool given = value && hr_foreign_value(row, value, here);
    if (value && !given && row->key && row->values && accepts(row->key, value))
        given = snprintf(here, sizeof here, "%s", value) < (int)sizeof here;
    const char *between = !given || (!row->form && !accepts(row->key, here)) ? NULL
                          : row->form                                        ? " = "
                                                                             : "=";
    snprintf(text, HR_ADVICE_BYTES, "%s%s%s%s%s%s", row->key ? "use " : "",
             row->key ? row->key : "", between ? between : "", between ? here : "",
             row->key && *row->remark ? ": " : "", row->remark);
    return true;
}

/* Another spelling of a truth value that the key accepts, or null. */
static const char *truth_of(const char *key, const char *value)
{
    static const char *const words[][2] = { { "true", "true" },   { "yes", "true" },
                                            { "on", "true" },     { "1", "true" },
                                            { "false", "false" }, { "no", "false" },
                                            { "off", "false" },   { "0", "false" } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(value, words[i][0]) && accepts(key, words[i][1])) return words[i][1];
    return NULL;
}

void hr_config_advise_value(const hr_config_row *row, const char *value, char text[HR_ADVICE_BYTES])
{
    char here[HR_FOREIGN_VALUE_BYTES];
    const hr_foreign_row *of;
    *text = 0;
    if (row->key.type != HR_KEY_CHOICE || !*value) return;
    const char *truth = truth_of(row->key.name, value);
    if (truth) snprintf(text, HR_ADVICE_BYTES, ": use %s", truth);
    if (truth) return;
    for (int32_t i = 0; (of = hr_foreign_at(i)); i++) {
        if (!of->key || !of->values || strcmp(of->key, row->key.name) != 0 ||
            !hr_foreign_value(of, value, here))
            continue;
        snprintf(text, HR_ADVICE_BYTES, ": use %s%s%s", here, *of->remark ? "; " : "", of->remark);
        return;
    }
}

const char *hr_config_nearest(const char *key)
{
    const char *nearest = key_of_word(key);
    const hr_foreign_row *row = hr_foreign_find(key);
    int32_t least = INT32_MAX;
    if (nearest || row) return nearest ? nearest : row->key;
    for (int32_t i = 0; i < hr_config_row_count(); i++) {
        const int32_t distance = hr_config_distance(key, hr_config_rows()[i].key.name);
        if (distance >= least) continue;
        nearest = hr_config_rows()[i].key.name;
        least = distance;
    }
    return nearest;
}

hr_status hr_config_fail_unknown(const char *key, const char *value, hr_error *err)
{
    char quoted[48], advice[HR_ADVICE_BYTES];
    const bool known = hr_config_advise(key, value, advice);
    const char *nearest = known ? NULL : hr_config_nearest(key);
    return hr_fail(err, HR_USAGE, "%s is not a key%s%s%s (headroom keys lists all)",
                   hr_config_quote(key, quoted),
                   nearest                       ? "; the nearest is "
                   : !known                      ? ""
                   : !strncmp(advice, "use ", 4) ? "; "
                                                 : ": ",
                   advice, nearest ? nearest : "");
}
