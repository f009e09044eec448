/* SPDX-License-Identifier: Apache-2.0 */
/* tests/judge/plan_with_file.h - a small valid plan of version 2, written by hand: the two moments
 * of w are in a file. The load spills them whole; each step updates them in two pieces, through two
 * windows each; the save fetches one. The weight b keeps its moment in the host. */
#ifndef HR_TESTS_JUDGE_PLAN_WITH_FILE_H
#define HR_TESTS_JUDGE_PLAN_WITH_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "judge/edit.h"

enum {
    W,
    W_A,
    W_B,
    MASTER,
    MASTER_A,
    MASTER_B,
    M1,
    M1_A,
    M1_B,
    M2,
    M2_A,
    M2_B,
    SMALL,
    SMALL_MOMENT,
    LOAD_1,
    LOAD_2,
    GRAD,
    GRAD_A,
    GRAD_B,
    WINDOW_1A,
    WINDOW_2A,
    WINDOW_1B,
    WINDOW_2B,
    SMALL_GRAD,
    SAVED
};

static const struct {
    const char *name, *dtype, *role, *space;
    int64_t elements, bytes, offset;
    int32_t first, last, home, storage, view_of;
} buffers_of_file[] = {
    { "w", "bf16", "weight", "host", 2048, 4096, 0, 0, 22, -1, 0, -1 },
    { "w.a", "bf16", "weight", "host", 1024, 2048, 0, 0, 22, -1, 0, W },
    { "w.b", "bf16", "weight", "host", 1024, 2048, 2048, 0, 22, -1, 0, W },
    { "master w", "f32", "master", "host", 2048, 8192, 4096, 0, 22, -1, 1, -1 },
    { "master w.a", "f32", "master", "host", 1024, 4096, 4096, 0, 22, -1, 1, MASTER },
    { "master w.b", "f32", "master", "host", 1024, 4096, 8192, 0, 22, -1, 1, MASTER },
    { "moment 1 w", "f32", "moment", "file", 2048, 8192, 0, 0, 22, -1, 2, -1 },
    { "moment 1 w.a", "f32", "moment", "file", 1024, 4096, 0, 0, 22, -1, 2, M1 },
    { "moment 1 w.b", "f32", "moment", "file", 1024, 4096, 4096, 0, 22, -1, 2, M1 },
    { "moment 2 w", "f32", "moment", "file", 2048, 8192, 8192, 0, 22, -1, 3, -1 },
    { "moment 2 w.a", "f32", "moment", "file", 1024, 4096, 8192, 0, 22, -1, 3, M2 },
    { "moment 2 w.b", "f32", "moment", "file", 1024, 4096, 12288, 0, 22, -1, 3, M2 },
    { "b", "f32", "weight", "host", 16, 64, 12288, 0, 22, -1, 4, -1 },
    { "moment 1 b", "f32", "moment", "host", 16, 64, 12352, 0, 22, -1, 5, -1 },
    { "load 1", "f32", "moment", "host", 2048, 8192, 16384, 1, 3, 1, 6, -1 },
    { "load 2", "f32", "moment", "host", 2048, 8192, 16384, 4, 6, 1, 7, -1 },
    { "grad w", "f32", "gradient", "host", 2048, 8192, 32768, 8, 15, 2, 8, -1 },
    { "grad w.a", "f32", "gradient", "host", 1024, 4096, 32768, 8, 15, 2, 8, GRAD },
    { "grad w.b", "f32", "gradient", "host", 1024, 4096, 36864, 8, 15, 2, 8, GRAD },
    { "window 1a", "f32", "moment", "host", 1024, 4096, 16384, 9, 17, 2, 9, -1 },
    { "window 2a", "f32", "moment", "host", 1024, 4096, 20480, 9, 17, 2, 10, -1 },
    { "window 1b", "f32", "moment", "host", 1024, 4096, 24576, 10, 18, 2, 11, -1 },
    { "window 2b", "f32", "moment", "host", 1024, 4096, 28672, 10, 18, 2, 12, -1 },
    { "grad b", "f32", "gradient", "host", 16, 64, 12416, 8, 19, 2, 13, -1 },
    { "saved 1 w", "f32", "moment", "host", 2048, 8192, 16384, 20, 22, 3, 14, -1 },
};

/* Buffers by the numbers above; the last number of a list is -1. */
static const struct {
    int32_t loop;
    const char *op;
    int32_t reads[5], writes[5];
    const char *accesses; /* of the writes: w, a, u */
} steps_of_file[] = {
    /* 0 */ { 1, "initialize", { -1 }, { W, MASTER, -1 }, "ww" },
    /* 1 */ { 1, "initialize", { -1 }, { LOAD_1, -1 }, "w" },
    /* 2 */ { 1, "spill_begin", { LOAD_1, -1 }, { M1, -1 }, "w" },
    /* 3 */ { 1, "spill_wait", { LOAD_1, -1 }, { -1 }, "" },
    /* 4 */ { 1, "initialize", { -1 }, { LOAD_2, -1 }, "w" },
    /* 5 */ { 1, "spill_begin", { LOAD_2, -1 }, { M2, -1 }, "w" },
    /* 6 */ { 1, "spill_wait", { LOAD_2, -1 }, { -1 }, "" },
    /* 7 */ { 1, "initialize", { -1 }, { SMALL, SMALL_MOMENT, -1 }, "ww" },
    /* 8 */ { 2, "backward", { W, SMALL, -1 }, { GRAD, SMALL_GRAD, -1 }, "ww" },
    /* 9 */ { 2, "fetch_begin", { M1_A, M2_A, -1 }, { WINDOW_1A, WINDOW_2A, -1 }, "ww" },
    /* 10 */ { 2, "fetch_begin", { M1_B, M2_B, -1 }, { WINDOW_1B, WINDOW_2B, -1 }, "ww" },
    /* 11 */ { 2, "fetch_wait", { WINDOW_1A, WINDOW_2A, -1 }, { -1 }, "" },
    /* 12 */
    { 2, "adamw", { GRAD_A, -1 }, { MASTER_A, WINDOW_1A, WINDOW_2A, W_A, -1 }, "uuuw" },
    /* 13 */ { 2, "spill_begin", { WINDOW_1A, WINDOW_2A, -1 }, { M1_A, M2_A, -1 }, "ww" },
    /* 14 */ { 2, "fetch_wait", { WINDOW_1B, WINDOW_2B, -1 }, { -1 }, "" },
    /* 15 */
    { 2, "adamw", { GRAD_B, -1 }, { MASTER_B, WINDOW_1B, WINDOW_2B, W_B, -1 }, "uuuw" },
    /* 16 */ { 2, "spill_begin", { WINDOW_1B, WINDOW_2B, -1 }, { M1_B, M2_B, -1 }, "ww" },
    /* 17 */ { 2, "spill_wait", { WINDOW_1A, WINDOW_2A, -1 }, { -1 }, "" },
    /* 18 */ { 2, "spill_wait", { WINDOW_1B, WINDOW_2B, -1 }, { -1 }, "" },
    /* 19 */ { 2, "adamw", { SMALL_GRAD, -1 }, { SMALL, SMALL_MOMENT, -1 }, "uu" },
    /* 20 */ { 3, "fetch_begin", { M1, -1 }, { SAVED, -1 }, "w" },
    /* 21 */ { 3, "fetch_wait", { SAVED, -1 }, { -1 }, "" },
    /* 22 */ { 3, "save", { MASTER, SAVED, SMALL, SMALL_MOMENT, -1 }, { -1 }, "" },
};

static inline json_t *buffer_of_file(size_t i)
{
    json_t *view = buffers_of_file[i].view_of < 0 ? json_null()
                                                  : json_integer(buffers_of_file[i].view_of);
    return json_pack(
        "{ss ss s[I] ss ss sI sI si si si si so}", "name", buffers_of_file[i].name, "dtype",
        buffers_of_file[i].dtype, "shape", (json_int_t)buffers_of_file[i].elements, "role",
        buffers_of_file[i].role, "space", buffers_of_file[i].space, "bytes",
        (json_int_t)buffers_of_file[i].bytes, "offset", (json_int_t)buffers_of_file[i].offset,
        "step_first", buffers_of_file[i].first, "step_last", buffers_of_file[i].last, "home",
        buffers_of_file[i].home, "storage", buffers_of_file[i].storage, "view_of", view);
}

static inline json_t *step_of_file(size_t s)
{
    json_t *reads = json_array(), *writes = json_array();
    for (const int32_t *b = steps_of_file[s].reads; *b >= 0; b++)
        json_array_append_new(reads, json_integer(*b));
    for (size_t i = 0; steps_of_file[s].writes[i] >= 0; i++) {
        const char letter = steps_of_file[s].accesses[i];
        json_array_append_new(writes, json_pack("[is]", steps_of_file[s].writes[i],
                                                letter == 'u'   ? "update"
                                                : letter == 'a' ? "accumulate"
                                                                : "write"));
    }
    return json_pack("{si si si ss so so si}", "index", (int)s, "loop", steps_of_file[s].loop,
                     "layer", -1, "op", steps_of_file[s].op, "reads", reads, "writes", writes,
                     "flops", 0);
}

static inline json_t *plan_with_file(void)
{
    json_t *plan = parse("{'version':2,'machine':{'kernels':'avx2','threads':2,'page_bytes':4096},"
                         "'arena_bytes':40960,'floor_bytes':37056,'process_bytes':49152,"
                         "'process':[{'name':'image','bytes':8192},{'name':'arena','bytes':40960}],"
                         "'spaces':[{'name':'file','bytes':16384,'floor_bytes':16384}]}");
    json_object_set_new(
        plan, "loops",
        parse("[{'name':'run','parent':-1,'step_first':0,'step_last':22,'repeats':1},"
              "{'name':'load','parent':0,'step_first':0,'step_last':7,'repeats':1},"
              "{'name':'step','parent':0,'step_first':8,'step_last':19,'repeats':100},"
              "{'name':'save','parent':0,'step_first':20,'step_last':22,'repeats':1}]"));
    json_t *buffers = json_array(), *steps = json_array();
    for (size_t i = 0; i < sizeof buffers_of_file / sizeof *buffers_of_file; i++)
        json_array_append_new(buffers, buffer_of_file(i));
    for (size_t s = 0; s < sizeof steps_of_file / sizeof *steps_of_file; s++)
        json_array_append_new(steps, step_of_file(s));
    json_object_set_new(plan, "buffers", buffers);
    json_object_set_new(plan, "steps", steps);
    return plan;
}

#endif
