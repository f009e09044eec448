/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/names.c - the list of prefixes. */
#include "checkpoint/names.h"

#include <stdlib.h>
#include <string.h>

enum { PATH_SHOWN = 160 };

const char *const hr_prefixes[HR_PREFIXES] = { "", "model.", "transformer.", "gpt_neox." };

const char *hr_name_without_prefix(const char *name)
{
    for (int32_t i = 1; i < HR_PREFIXES; i++) {
        const size_t bytes = strlen(hr_prefixes[i]);
        if (!strncmp(name, hr_prefixes[i], bytes)) return name + bytes;
    }
    return name;
}

const char *hr_path_shown(const char *path)
{
    const size_t length = strlen(path);
    return length > PATH_SHOWN ? path + length - PATH_SHOWN : path;
}

/* The dot before the number of the layer; null: there is none. */
static const char *layer_at(const char *module)
{
    const char *dot = strchr(module, '.');
    while (dot && (dot[1] < '0' || dot[1] > '9')) dot = strchr(dot + 1, '.');
    return dot;
}

int16_t hr_name_layer(const char *module)
{
    const char *dot = layer_at(module);
    return dot ? (int16_t)strtol(dot + 1, NULL, 10) : -1;
}

const char *hr_name_in_layer(const char *module)
{
    const char *dot = layer_at(module), *end = dot ? strchr(dot + 1, '.') : NULL;
    return end ? end + 1 : module;
}
