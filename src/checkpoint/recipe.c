/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/recipe.c - prints and compares recipes with the table of keys. */
#include "checkpoint/recipe.h"

#include <string.h>

#include "base/assert.h"

const char hr_recipe_name[] = "recipe.yaml";

/* Prints a double-quoted YAML string; control characters as \xNN. */
static void put_quoted(hr_writer *writer, const char *text)
{
    hr_put(writer, "\"");
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') hr_put(writer, "\\%c", c);
        else if (c < 0x20 || c == 0x7f) hr_put(writer, "\\x%02x", c);
        else hr_put(writer, "%c", c);
    }
    hr_put(writer, "\"");
}

static void get(const hr_config *config, const char *key, char text[HR_VALUE_BYTES])
{
    hr_error err;
    const hr_status status = hr_config_get(config, key, text, HR_VALUE_BYTES, &err);
    /* the key is from the table, and the buffer fits the longest value */
    HR_ASSERT(status == HR_OK);
}

static void put_line(hr_writer *writer, const hr_key *key, const char *value)
{
    hr_put(writer, "%s: ", key->name);
    if (key->type == HR_KEY_TEXT) put_quoted(writer, value);
    else hr_put(writer, "%s", value);
    hr_put(writer, "\n");
}

void hr_recipe_print(const hr_config *config, hr_writer *writer)
{
    char value[HR_VALUE_BYTES];
    const hr_key *key;
    for (int32_t i = 0; (key = hr_config_key(i)); i++) {
        get(config, key->name, value);
        put_line(writer, key, value);
    }
}

int64_t hr_recipe_bytes(const hr_config *config)
{
    enum { LINE_BYTES = 4 * HR_VALUE_BYTES + 256 }; /* a path in which every byte is escaped */
    char value[HR_VALUE_BYTES], line[LINE_BYTES];
    int64_t sum = 0;
    const hr_key *key;
    for (int32_t i = 0; (key = hr_config_key(i)); i++) {
        hr_writer writer = { line, sizeof line };
        get(config, key->name, value);
        put_line(&writer, key, value);
        HR_ASSERT(!writer.cut);
        sum += writer.used;
    }
    return sum;
}

/* Keys, or whole sections, that may change without changing the results of a run. */
static const char *const free_keys[] = {
    "memory.",        "train.threads",   "train.out",       "train.kernels",    "data.cache",
    "data.words_max", "train.keep_last", "train.keep_best", "train.keep_every", "train.max_seconds",
};

bool hr_recipe_matters(const char *key)
{
    for (size_t i = 0; i < sizeof free_keys / sizeof *free_keys; i++) {
        const size_t length = strlen(free_keys[i]);
        const bool section = free_keys[i][length - 1] == '.';
        if (section ? !strncmp(key, free_keys[i], length) : !strcmp(key, free_keys[i]))
            return false;
    }
    return true;
}

bool hr_recipe_differs(const hr_config *before, const hr_config *now, int32_t *index,
                       hr_recipe_change *change)
{
    const hr_key *key;
    while ((key = hr_config_key((*index)++))) {
        if (!hr_recipe_matters(key->name)) continue;
        change->key = key->name;
        get(before, key->name, change->before);
        get(now, key->name, change->now);
        if (strcmp(change->before, change->now)) return true;
    }
    return false;
}
