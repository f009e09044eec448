/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/opening.c - helpers shared by the readers of headers and of the index. */
#include "checkpoint/opening.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/path.h"

hr_status hr_opening_place(hr_opening *o, int32_t index)
{
    const char *name = o->stored->files[index].name;
    if (o->folder) return hr_path_join(o->folder, name, o->place, sizeof o->place, o->err);
    snprintf(o->place, sizeof o->place, "%s", name); /* fits: the path was checked before */
    return HR_OK;
}

hr_status hr_opening_no_room(const hr_opening *o)
{
    return hr_fail(o->err, HR_FAILURE, "%s: out of memory for its tensors",
                   hr_path_shown(o->stored->path));
}

void *hr_opening_add_row(hr_region *region, void **table, int32_t count, int64_t bytes)
{
    if (!count) return *table = hr_region_take(region, 1, bytes);
    if (bytes > region->bytes - region->used) return NULL;
    region->used += bytes;
    region->used_most = hr_max(region->used_most, region->used);
    return memset(region->base + region->used - bytes, 0, (size_t)bytes);
}

bool hr_opening_is_plain(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name < ' ' || *name == 127) return false;
    return true;
}

hr_status hr_opening_not_json(const hr_opening *o, const hr_json *json, const char *what,
                              int64_t at)
{
    if (json->problem)
        return hr_fail(o->err, HR_CORRUPT, "%s: %s, byte %lld: not JSON: %s",
                       hr_path_shown(o->place), what, (long long)(at + json->at), json->problem);
    return hr_fail(o->err, HR_CORRUPT, "%s: %s, byte %lld: wrong type of value",
                   hr_path_shown(o->place), what, (long long)(at + json->at));
}
