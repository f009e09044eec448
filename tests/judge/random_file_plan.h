/* SPDX-License-Identifier: Apache-2.0 */
/* tests/judge/random_file_plan.h - random valid plans of version 2: parameters with and without a
 * master, an average and moments in the file, updated in one piece or several, each fetched some
 * pieces ahead, the first perhaps in the section before. No bytes are reused, so that the sums are
 * easy to know. */
#ifndef HR_TESTS_JUDGE_RANDOM_FILE_PLAN_H
#define HR_TESTS_JUDGE_RANDOM_FILE_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "judge/two_judges.h"

enum {
    RUN,
    LOAD,
    STEP,
    UPDATE,
    SAVE,
    LOOPS,
    BLOCK = 4096,    /* bytes: what a file is aligned to */
    ELEMENTS = 1024, /* f32 of a block */
    PIECES_MAX = 4,
    MOMENTS_MAX = 2
};

typedef struct {
    json_t *buffers, *steps;
    int32_t first[LOOPS], last[LOOPS]; /* steps of each loop */
    int64_t host_bytes, file_bytes;
} draft;

typedef struct {
    int32_t weight, master, average, gradient, moments[MOMENTS_MAX];
    int32_t parts[PIECES_MAX][MOMENTS_MAX]; /* of moments in the file */
    int32_t windows[PIECES_MAX][MOMENTS_MAX];
    int64_t blocks; /* of f32 */
    int32_t moment_count, pieces, ahead, early;
    bool late, in_file[MOMENTS_MAX], split; /* split: the load spills in two halves */
} parameter;

static inline int32_t put_buffer(draft *d, json_t *record, const char *space)
{
    json_object_set_new(record, "space", json_string(space));
    json_array_append_new(d->buffers, record);
    return (int32_t)json_array_size(d->buffers) - 1;
}

static inline int32_t make_root(draft *d, const char *what, const char *role, int64_t elements,
                                bool in_file, int32_t home)
{
    char name[64];
    const bool half = !strcmp(role, "weight") && what[0] == 'h';
    const int64_t element = half ? 2 : 4, bytes = (elements * element + BLOCK - 1) / BLOCK * BLOCK;
    int64_t *used = in_file ? &d->file_bytes : &d->host_bytes;
    const int32_t index = (int32_t)json_array_size(d->buffers);
    snprintf(name, sizeof name, "%s %d", what, index);
    json_t *record = json_pack("{ss ss s[I] ss sI sI si si sn}", "name", name, "dtype",
                               half ? "bf16" : "f32", "shape", (json_int_t)elements, "role", role,
                               "bytes", (json_int_t)bytes, "offset", (json_int_t)*used, "home",
                               home, "storage", index, "view_of");
    *used += bytes;
    return put_buffer(d, record, in_file ? "file" : "host");
}

/* The elements [first, end) of a root, as far as it has them. All of it needs no view. */
static inline int32_t part_of(draft *d, int32_t root, int64_t first, int64_t end)
{
    char name[64];
    json_t *of = json_array_get(d->buffers, (size_t)root);
    const int64_t all = json_integer_value(json_array_get(json_object_get(of, "shape"), 0));
    const int64_t element = strcmp(json_string_value(json_object_get(of, "dtype")), "f32") ? 2 : 4;
    if (first == 0 && end >= all) return root;
    snprintf(name, sizeof name, "part %d", (int32_t)json_array_size(d->buffers));
    json_t *record = json_deep_copy(of);
    put(record, "offset", get(of, "offset") + first * element);
    put(record, "bytes", (end - first) * element);
    put(record, "view_of", root);
    json_object_set_new(record, "name", json_string(name));
    json_object_set_new(record, "shape",
                        json_pack("[I]", (json_int_t)((end < all ? end : all) - first)));
    json_array_append_new(d->buffers, record);
    return (int32_t)json_array_size(d->buffers) - 1;
}

static inline json_t *make_step(draft *d, int32_t loop, const char *op)
{
    const int32_t index = (int32_t)json_array_size(d->steps);
    json_array_append_new(d->steps,
                          json_pack("{si si si ss s[] s[] si}", "index", index, "loop", loop,
                                    "layer", -1, "op", op, "reads", "writes", "flops", 0));
    if (d->first[loop] < 0) d->first[loop] = index;
    d->last[loop] = index;
    return json_array_get(d->steps, (size_t)index);
}

static inline void reads(json_t *step, int32_t buffer)
{
    if (buffer >= 0) json_array_append_new(json_object_get(step, "reads"), json_integer(buffer));
}

static inline void writes(json_t *step, int32_t buffer, const char *access)
{
    if (buffer >= 0)
        json_array_append_new(json_object_get(step, "writes"), json_pack("[is]", buffer, access));
}

/* The bounds of a piece in elements, whole blocks. */
static inline int64_t bound_of(const parameter *p, int32_t piece)
{
    return p->blocks * piece / p->pieces * ELEMENTS;
}

/* ---- sections */

static inline void make_parameter(draft *d, parameter *p, bool averaged)
{
    const bool master = draw(0, 1);
    p->blocks = draw(1, 6);
    p->pieces = (int32_t)draw(1, p->blocks < PIECES_MAX ? p->blocks : PIECES_MAX);
    p->moment_count = (int32_t)draw(1, MOMENTS_MAX);
    p->split = p->blocks > 1 && draw(0, 1);
    const int64_t elements = p->blocks * ELEMENTS - (draw(0, 1) ? draw(1, ELEMENTS - 1) : 0);
    p->weight = make_root(d, master ? "half" : "weight", "weight", elements, false, -1);
    p->master = master ? make_root(d, "master", "master", elements, false, -1) : -1;
    p->average = averaged ? make_root(d, "average", "moment", elements, false, -1) : -1;
    p->gradient = make_root(d, "grad", "gradient", elements, false, RUN);
    for (int32_t i = 0; i < p->moment_count; i++) {
        p->in_file[i] = draw(0, 3) > 0;
        p->moments[i] = make_root(d, "moment", "moment", elements, p->in_file[i], -1);
    }
}

static inline void load(draft *d, const parameter *p)
{
    json_t *step = make_step(d, LOAD, "initialize");
    writes(step, p->weight, "write");
    writes(step, p->master, "write");
    writes(step, p->average, "write");
    for (int32_t i = 0; i < p->moment_count; i++)
        if (!p->in_file[i]) writes(step, p->moments[i], "write");
    for (int32_t i = 0; i < p->moment_count; i++) {
        if (!p->in_file[i]) continue;
        const int64_t all = p->blocks * ELEMENTS;
        const int32_t window = make_root(d, "load", "moment", all, false, LOAD);
        writes(make_step(d, LOAD, "initialize"), window, "write");
        for (int32_t k = 0; k <= p->split; k++) {
            const int64_t from = p->split ? k * ELEMENTS : 0;
            const int64_t to = p->split && k == 0 ? ELEMENTS : all;
            const int32_t part = part_of(d, window, from, to);
            step = make_step(d, LOAD, "spill_begin");
            reads(step, part);
            writes(step, part_of(d, p->moments[i], from, to), "write");
            reads(make_step(d, LOAD, "spill_wait"), part);
        }
    }
}

/* A begin or a wait of all moments of a piece in the file. */
static inline void move(draft *d, const parameter *p, int32_t piece, int32_t loop, const char *op)
{
    json_t *step = NULL;
    for (int32_t i = 0; i < p->moment_count; i++) {
        if (!p->in_file[i]) continue;
        if (!step) step = make_step(d, loop, op);
        const int32_t window = p->windows[piece][i], part = p->parts[piece][i];
        if (!strcmp(op, "fetch_begin")) {
            reads(step, part);
            writes(step, window, "write");
        } else {
            reads(step, window);
            if (!strcmp(op, "spill_begin")) writes(step, part, "write");
        }
    }
}

static inline void update_piece(draft *d, const parameter *p, int32_t piece)
{
    const int64_t first = bound_of(p, piece), end = bound_of(p, piece + 1);
    json_t *step = make_step(d, UPDATE, "adamw");
    reads(step, part_of(d, p->gradient, first, end));
    if (p->master >= 0) writes(step, part_of(d, p->master, first, end), "update");
    writes(step, part_of(d, p->weight, first, end), p->master >= 0 ? "write" : "update");
    for (int32_t i = 0; i < p->moment_count; i++)
        writes(step, p->in_file[i] ? p->windows[piece][i] : part_of(d, p->moments[i], first, end),
               "update");
}

/* Chooses how far ahead pieces are fetched, and how many in the section before. */
static inline void make_windows(draft *d, parameter *p)
{
    p->ahead = (int32_t)draw(0, 2);
    p->early = (int32_t)draw(0, p->ahead < p->pieces ? p->ahead : p->pieces);
    p->late = draw(0, 1); /* waits for all spills at the end */
    const bool again = p->ahead == 0 && !p->late && p->blocks % p->pieces == 0;
    for (int32_t k = 0; k < p->pieces; k++)
        for (int32_t i = 0; i < p->moment_count; i++) {
            if (!p->in_file[i]) continue;
            const int64_t first = bound_of(p, k), end = bound_of(p, k + 1);
            p->parts[k][i] = part_of(d, p->moments[i], first, end);
            p->windows[k][i] = again && k ? p->windows[0][i] /* one window for all pieces */
                                          : make_root(d, "window", "moment", end - first, false,
                                                      k < p->early ? RUN : UPDATE);
        }
}

static inline void update(draft *d, const parameter *p)
{
    for (int32_t k = -p->ahead; k < p->pieces; k++) {
        const int32_t begun = k + p->ahead;
        if (begun >= p->early && begun < p->pieces) move(d, p, begun, UPDATE, "fetch_begin");
        if (k < 0) continue;
        move(d, p, k, UPDATE, "fetch_wait");
        update_piece(d, p, k);
        move(d, p, k, UPDATE, "spill_begin");
        if (!p->late) move(d, p, k, UPDATE, "spill_wait");
    }
    for (int32_t k = 0; k < p->pieces && p->late; k++) move(d, p, k, UPDATE, "spill_wait");
    if (p->average < 0) return;
    json_t *step = make_step(d, UPDATE, "average");
    reads(step, p->master >= 0 ? p->master : p->weight);
    writes(step, p->average, "update");
}

static inline void save(draft *d, const parameter *p)
{
    int32_t windows[MOMENTS_MAX];
    for (int32_t i = 0; i < p->moment_count; i++) {
        if (!p->in_file[i]) continue;
        windows[i] = make_root(d, "saved", "moment", p->blocks * ELEMENTS, false, SAVE);
        json_t *step = make_step(d, SAVE, "fetch_begin");
        reads(step, p->moments[i]);
        writes(step, windows[i], "write");
        reads(make_step(d, SAVE, "fetch_wait"), windows[i]);
    }
    json_t *step = make_step(d, SAVE, "save");
    reads(step, p->weight);
    for (int32_t i = 0; i < p->moment_count; i++)
        reads(step, p->in_file[i] ? windows[i] : p->moments[i]);
}

/* ---- lifetimes and sums */

static inline json_t *root_of(draft *d, json_t *buffer)
{
    json_t *of = json_object_get(buffer, "view_of");
    return json_is_null(of) ? buffer : json_array_get(d->buffers, (size_t)json_integer_value(of));
}

static inline void live_at(draft *d, json_t *index, int32_t s)
{
    json_t *root = root_of(d, json_array_get(d->buffers, (size_t)json_integer_value(index)));
    if (!json_object_get(root, "step_first")) put(root, "step_first", -1);
    if (get(root, "step_first") < 0) put(root, "step_first", s);
    put(root, "step_last", s);
}

/* Declares all lifetimes; returns the floor of the host. */
static inline int64_t declare_lives(draft *d)
{
    size_t s, k, b;
    json_t *step, *value;
    const int64_t steps = (int64_t)json_array_size(d->steps);
    int64_t floor = 0;
    json_array_foreach(d->steps, s, step)
    {
        json_array_foreach(json_object_get(step, "reads"), k, value) live_at(d, value, (int32_t)s);
        json_array_foreach(json_object_get(step, "writes"), k, value)
            live_at(d, json_array_get(value, 0), (int32_t)s);
    }
    json_array_foreach(d->buffers, b, value)
    {
        json_t *root = root_of(d, value);
        const bool ever = get(root, "home") < 0;
        put(value, "step_first", ever ? 0 : get(root, "step_first"));
        put(value, "step_last", ever ? steps - 1 : get(root, "step_last"));
    }
    for (int64_t at = 0; at < steps; at++) {
        int64_t alive = 0;
        json_array_foreach(
            d->buffers, b,
            value) if (root_of(d, value) == value && get(value, "step_first") <= at &&
                       at <= get(value, "step_last") &&
                       !strcmp(json_string_value(json_object_get(value, "space")), "host"))
            alive += get(value, "bytes");
        floor = alive > floor ? alive : floor;
    }
    return floor;
}

static inline json_t *random_file_plan(void)
{
    static const char *const names[] = { "run", "load", "step", "update", "save" };
    draft d = { json_array(), json_array(), { 0, -1, -1, -1, -1 }, { 0 }, 0, 0 };
    parameter params[3];
    const int64_t count = draw(1, 3);
    const bool averaged = draw(0, 1);
    for (int64_t i = 0; i < count; i++) make_parameter(&d, &params[i], averaged);
    for (int64_t i = 0; i < count; i++) load(&d, &params[i]);
    for (int64_t i = 0; i < count; i++) make_windows(&d, &params[i]);
    json_t *step = make_step(&d, STEP, "backward"), *loops = json_array();
    for (int64_t i = 0; i < count; i++) {
        reads(step, params[i].weight);
        writes(step, params[i].gradient, "write");
    }
    for (int64_t i = 0; i < count; i++)
        for (int32_t k = 0; k < params[i].early; k++) move(&d, &params[i], k, STEP, "fetch_begin");
    for (int64_t i = 0; i < count; i++) update(&d, &params[i]);
    for (int64_t i = 0; i < count; i++) save(&d, &params[i]);
    d.last[RUN] = (int32_t)json_array_size(d.steps) - 1;
    for (int32_t l = RUN; l <= SAVE; l++)
        json_array_append_new(loops, json_pack("{ss si si si si}", "name", names[l], "parent",
                                               l ? 0 : -1, "step_first", d.first[l], "step_last",
                                               d.last[l], "repeats", l ? 1 : INT32_MAX));
    const json_int_t floor = declare_lives(&d), bytes = d.host_bytes, file = d.file_bytes;
    json_t *spaces = file ? json_pack("[{ss sI sI}]", "name", "file", "bytes", file, "floor_bytes",
                                      file)
                          : json_array();
    return json_pack("{si s{ss si si} sI sI sI s[{ss sI}] so so so so}", "version", 2, "machine",
                     "kernels", "avx2", "threads", 1, "page_bytes", BLOCK, "arena_bytes", bytes,
                     "floor_bytes", floor, "process_bytes", bytes, "process", "name", "arena",
                     "bytes", bytes, "spaces", spaces, "loops", loops, "buffers", d.buffers,
                     "steps", d.steps);
}

#endif
