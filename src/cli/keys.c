/* SPDX-License-Identifier: Apache-2.0 */
/* cli/keys.c - headroom keys: lists all keys of recipes. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

static void print_text(void)
{
    int columns = 0;
    for (int32_t i = 0; hr_config_key(i); i++) {
        const int length = (int)strlen(hr_config_key(i)->name);
        columns = length > columns ? length : columns;
    }
    printf("%-*s  %-10s  %s\n    %s\n\n", columns, "key", "default", "accepted values",
           "meaning; a word before a colon is the value for which it holds");
    for (int32_t i = 0; hr_config_key(i); i++) {
        const hr_key *key = hr_config_key(i);
        char takes[HR_TAKES_BYTES];
        printf("%-*s  %-10s  %s\n    %s\n", columns, key->name,
               *key->default_text ? key->default_text : "unset", hr_key_takes(key, takes),
               key->text);
    }
    const hr_renamed_key *old;
    for (int32_t i = 0; (old = hr_config_renamed(i)); i++)
        printf("%s  %-*s  now %s\n", i ? "" : "\ndeprecated\n", columns, old->old_name, old->name);
}

static const char *type_name(hr_key_type type)
{
    static const char *const names[] = { "integer", "real", "bool", "choice", "bytes", "text" };
    return names[type];
}

static int print_json(void)
{
    json_t *list = json_array();
    for (int32_t i = 0; hr_config_key(i); i++) {
        const hr_key *key = hr_config_key(i);
        char takes[HR_TAKES_BYTES];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s?, s:f, s:f, s:b, s:s, s:s}", "name",
                            key->name, "type", type_name(key->type), "default", key->default_text,
                            "unit", key->unit, "choices", key->choices, "zero_word", key->zero_word,
                            "low", key->low, "high", key->high, "below_high", key->below_high,
                            "takes", hr_key_takes(key, takes), "text", key->text));
    }
    return hr_cli_print_json(list, 0);
}

int hr_cli_keys(const hr_cli_arguments *arguments)
{
    if (arguments->values[HR_OPTION_JSON]) return print_json();
    print_text();
    return HR_OK;
}
