/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_handle.c - settings on the heap for callers of the library, to whom hr_config is
 * opaque, and the values of its keys by their type. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "config/config.h"
#include "config/config_keys.h"

hr_config *hr_config_new(void)
{
    hr_config *config = malloc(sizeof *config);
    if (config) hr_config_default(config);
    return config;
}

hr_config *hr_config_copy(const hr_config *config)
{
    hr_config *copy = malloc(sizeof *copy);
    if (copy) *copy = *config;
    return copy;
}

void hr_config_free(hr_config *config)
{
    free(config);
}

void hr_config_assign(hr_config *to, const hr_config *from)
{
    *to = *from;
}

static const void *member(const hr_config *config, const char *key, hr_key_type *type)
{
    const int32_t index = hr_config_row_find(key);
    HR_ASSERT(index >= 0);
    *type = hr_config_rows()[index].key.type;
    return (const char *)config + hr_config_rows()[index].offset;
}

int64_t hr_config_integer(const hr_config *config, const char *key)
{
    hr_key_type type;
    const void *value = member(config, key, &type);
    HR_ASSERT(type != HR_KEY_REAL && type != HR_KEY_TEXT);
    if (type == HR_KEY_BOOL) return *(const bool *)value;
    return type == HR_KEY_CHOICE ? *(const int32_t *)value : *(const int64_t *)value;
}

double hr_config_real(const hr_config *config, const char *key)
{
    hr_key_type type;
    const double *value = member(config, key, &type);
    HR_ASSERT(type == HR_KEY_REAL);
    return *value;
}

const char *hr_config_text(const hr_config *config, const char *key)
{
    hr_key_type type;
    const char *value = member(config, key, &type);
    HR_ASSERT(type == HR_KEY_TEXT);
    return value;
}

static bool has_bit(const uint64_t *bits, int32_t index)
{
    return bits[index / 64] >> index % 64 & 1;
}

bool hr_config_from_recipe(const hr_config *config, const char *key)
{
    const int32_t index = hr_config_row_find(key);
    return index >= 0 && has_bit(config->from_recipe, index);
}

bool hr_config_used_old_name(const hr_config *config, int32_t index)
{
    return has_bit(&config->old_names, index);
}
