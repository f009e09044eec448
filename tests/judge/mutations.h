/* SPDX-License-Identifier: Apache-2.0 */
/* tests/judge/mutations.h - random changes of a plan, one thing at a time. */
#ifndef HR_TESTS_JUDGE_MUTATIONS_H
#define HR_TESTS_JUDGE_MUTATIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <jansson.h>

#include "judge/two_judges.h"

/* Changes one thing; false if there was nothing to change. */
typedef bool mutation(json_t *plan);

static inline json_t *any(json_t *plan, const char *list)
{
    json_t *records = json_object_get(plan, list);
    return json_array_get(records, (size_t)draw(0, (int64_t)json_array_size(records) - 1));
}

/* Index of the same or of another record, for steps and storages. */
static inline int64_t any_index(json_t *plan, const char *list)
{
    return draw(0, count(plan, list) - 1);
}

static inline bool move_offset(json_t *plan)
{
    json_t *buffer = any(plan, "buffers");
    const int64_t offset = get(buffer, "offset");
    const int64_t to = draw(0, 1) ? offset + 64 * (draw(0, 1) ? draw(1, 4) : -draw(1, 4))
                                  : get(any(plan, "buffers"), "offset");
    return put(buffer, "offset", to < 0 ? 0 : to);
}

static inline bool change_life(json_t *plan)
{
    json_t *buffer = any(plan, "buffers");
    const char *key = draw(0, 1) ? "step_first" : "step_last";
    const int64_t to = get(buffer, key) + (draw(0, 1) ? 1 : -1) * draw(1, 3);
    return put(buffer, key, to < 0 ? 0 : to);
}

static inline bool change_bytes(json_t *plan)
{
    json_t *buffer = any(plan, "buffers");
    const int64_t bytes = get(buffer, "bytes");
    const int64_t to = draw(0, 3) ? bytes - 64 * draw(1, 2) : bytes + 64 * draw(1, 2);
    return put(buffer, "bytes", to < 64 ? 64 : to);
}

static inline bool share_storage(json_t *plan)
{
    json_t *buffer = any(plan, "buffers"), *other = any(plan, "buffers");
    bool changed = put(buffer, "storage", get(other, "storage"));
    if (draw(0, 1)) changed |= put(buffer, "offset", get(other, "offset"));
    return changed;
}

static inline bool swap_steps(json_t *plan)
{
    const int64_t a = any_index(plan, "steps"), near = a + (draw(0, 1) ? draw(1, 4) : -draw(1, 4));
    const int64_t b = draw(0, 3) ? near : any_index(plan, "steps");
    if (b < 0 || b == a || b >= count(plan, "steps")) return false;
    exchange(plan, a, b);
    return true;
}

static inline bool redirect_read(json_t *plan)
{
    json_t *reads = json_object_get(any(plan, "steps"), "reads");
    if (json_array_size(reads) == 0) return false;
    const size_t at = (size_t)draw(0, (int64_t)json_array_size(reads) - 1);
    const int64_t was = json_integer_value(json_array_get(reads, at));
    int64_t to = draw(0, 1) ? any_index(plan, "buffers") : was + (draw(0, 1) ? 1 : -1);
    if (to < 0 || to >= count(plan, "buffers")) to = 0;
    json_array_set_new(reads, at, json_integer(to));
    return to != was;
}

static inline bool add_read(json_t *plan)
{
    json_t *reads = json_object_get(any(plan, "steps"), "reads");
    return !json_array_append_new(reads, json_integer(any_index(plan, "buffers")));
}

static inline bool drop_read(json_t *plan)
{
    json_t *reads = json_object_get(any(plan, "steps"), "reads");
    if (json_array_size(reads) == 0) return false;
    return !json_array_remove(reads, (size_t)draw(0, (int64_t)json_array_size(reads) - 1));
}

static inline bool drop_write(json_t *plan)
{
    json_t *writes = json_object_get(any(plan, "steps"), "writes");
    if (json_array_size(writes) == 0) return false;
    return !json_array_remove(writes, (size_t)draw(0, (int64_t)json_array_size(writes) - 1));
}

static inline json_t *any_write(json_t *plan)
{
    json_t *writes = json_object_get(any(plan, "steps"), "writes");
    if (json_array_size(writes) == 0) return 0;
    return json_array_get(writes, (size_t)draw(0, (int64_t)json_array_size(writes) - 1));
}

static inline bool redirect_write(json_t *plan)
{
    json_t *pair = any_write(plan);
    const int64_t to = any_index(plan, "buffers");
    if (!pair || json_integer_value(json_array_get(pair, 0)) == to) return false;
    return !json_array_set_new(pair, 0, json_integer(to));
}

static inline bool change_access(json_t *plan)
{
    static const char *const kinds[] = { "write", "accumulate", "update" };
    json_t *pair = any_write(plan);
    const char *to = kinds[draw(0, 2)];
    if (!pair || !strcmp(json_string_value(json_array_get(pair, 1)), to)) return false;
    return !json_array_set_new(pair, 1, json_string(to));
}

static inline bool change_home(json_t *plan)
{
    return put(any(plan, "buffers"), "home", draw(-1, count(plan, "loops") - 1));
}

/* Widens a home to the next outer loop, or those of a view and its root together: consistent
 * changes. */
static inline bool widen_home(json_t *plan)
{
    json_t *buffer = any(plan, "buffers"), *other;
    json_t *loops = json_object_get(plan, "loops");
    const int64_t storage = get(buffer, "storage"), home = get(buffer, "home");
    size_t i;
    if (home < 0) return false;
    const int64_t to = get(json_array_get(loops, (size_t)home), "parent");
    json_array_foreach(json_object_get(plan, "buffers"), i,
                       other) if (get(other, "storage") == storage) put(other, "home", to);
    return true;
}

static inline bool change_view(json_t *plan)
{
    json_t *buffer = any(plan, "buffers");
    if (!json_is_null(json_object_get(buffer, "view_of")) && draw(0, 1))
        return !json_object_set_new(buffer, "view_of", json_null());
    return put(buffer, "view_of", any_index(plan, "buffers"));
}

static inline bool change_sum(json_t *plan)
{
    static const char *const keys[] = { "floor_bytes", "arena_bytes", "process_bytes" };
    const char *key = keys[draw(0, 2)];
    return put(plan, key, get(plan, key) + (draw(0, 1) ? 64 : -64) * draw(1, 70));
}

static inline bool change_process(json_t *plan)
{
    json_t *line = any(plan, "process"), *other = any(plan, "process");
    const int64_t by = 4096 * draw(0, 3);
    if (draw(0, 1)) put(other, "bytes", get(other, "bytes") + by); /* the sum may stay equal */
    return put(line, "bytes", get(line, "bytes") - by);
}

static inline bool change_repeats(json_t *plan)
{
    return put(any(plan, "loops"), "repeats", draw(0, 3));
}

static inline bool change_range(json_t *plan)
{
    json_t *loop = any(plan, "loops");
    const char *key = draw(0, 1) ? "step_first" : "step_last";
    const int64_t to = get(loop, key) + (draw(0, 1) ? 1 : -1) * draw(1, 2);
    return put(loop, key, to < 0 ? 0 : to);
}

static inline bool change_parent(json_t *plan)
{
    return put(any(plan, "loops"), "parent", draw(-1, count(plan, "loops") - 1));
}

static inline bool change_loop(json_t *plan)
{
    return put(any(plan, "steps"), "loop", any_index(plan, "loops"));
}

static inline bool change_role(json_t *plan)
{
    static const char *const roles[] = { "weight", "gradient", "scratch", "master", "moment" };
    json_t *buffer = any(plan, "buffers");
    const char *to = roles[draw(0, 4)];
    if (!strcmp(json_string_value(json_object_get(buffer, "role")), to)) return false;
    return !json_object_set_new(buffer, "role", json_string(to));
}

/* Moves an update into the section before, like a released gradient. This is wrong if the step
 * reads the weight, or adds to its gradient, later. */
static inline bool update_early(json_t *plan)
{
    json_t *steps = json_object_get(plan, "steps"), *step, *pair;
    size_t s, k;
    for (int32_t tries = 0; tries < 200; tries++) {
        step = any(plan, "steps");
        json_t *writes = json_object_get(step, "writes");
        json_array_foreach(writes, k, pair)
        {
            if (strcmp(json_string_value(json_array_get(pair, 1)), "update") != 0) continue;
            s = (size_t)draw(0, get(step, "index"));
            json_t *to = json_object_get(json_array_get(steps, s), "writes");
            json_array_append(to, pair);
            return !json_array_remove(writes, k);
        }
    }
    return false;
}

/* Moves a buffer, or a root and its views together, to another space. */
static inline bool change_space(json_t *plan)
{
    static const char *const spaces[] = { "host", "device", "pinned", "file" };
    json_t *buffer = any(plan, "buffers"), *other;
    const char *to = spaces[draw(0, 3)];
    const int64_t storage = get(buffer, "storage");
    size_t i;
    if (!json_object_get(buffer, "space")) return false; /* version 1 */
    if (!strcmp(json_string_value(json_object_get(buffer, "space")), to)) return false;
    if (draw(0, 1)) return !json_object_set_new(buffer, "space", json_string(to));
    json_array_foreach(json_object_get(plan, "buffers"), i,
                       other) if (get(other, "storage") == storage)
        json_object_set_new(other, "space", json_string(to));
    return true;
}

static inline bool change_operation(json_t *plan)
{
    static const char *const ops[] = { "fetch_begin", "fetch_wait", "spill_begin", "spill_wait",
                                       "other" };
    json_t *step = any(plan, "steps");
    const char *to = ops[draw(0, 4)];
    if (!strcmp(json_string_value(json_object_get(step, "op")), to)) return false;
    return !json_object_set_new(step, "op", json_string(to));
}

static const struct {
    const char *name;
    mutation *apply;
} mutations[] = {
    { "offset moved", move_offset },
    { "life changed", change_life },
    { "bytes changed", change_bytes },
    { "storage shared", share_storage },
    { "steps swapped", swap_steps },
    { "read redirected", redirect_read },
    { "read added", add_read },
    { "read dropped", drop_read },
    { "write redirected", redirect_write },
    { "write dropped", drop_write },
    { "access changed", change_access },
    { "home changed", change_home },
    { "home widened", widen_home },
    { "view_of changed", change_view },
    { "floor, arena, process", change_sum },
    { "line of process", change_process },
    { "repeats changed", change_repeats },
    { "range of a loop", change_range },
    { "parent of a loop", change_parent },
    { "loop of a step", change_loop },
    { "role changed", change_role },
    { "update moved early", update_early },
    { "space changed", change_space },
    { "operation changed", change_operation },
};

enum { KINDS = sizeof mutations / sizeof *mutations };

#endif
