/* SPDX-License-Identifier: Apache-2.0 */
/* verify_test.c - the verifier accepts a valid plan and finds every single error, with its
 * sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/random.h"
#include "headroom/verify.h"
#include "plan/plan_text.h"

enum { SEED = 77 };

static char path[64];
static char good[sizeof plan_text];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/headroom-verify-XXXXXX", P_tmpdir);
    const int file = mkstemp(path);
    for (size_t i = 0; i < sizeof plan_text; i++)
        good[i] = plan_text[i] == '\'' ? '"' : plan_text[i];
    printf("seed %d\n", SEED);
    return file < 0 || close(file);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

static hr_status judge_bytes(const char *bytes, size_t count, hr_verify_report *report,
                             hr_error *err)
{
    unlink(path); /* rewriting a truncated file would flush it to disk at close */
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    *err = (hr_error){ HR_OK, "" };
    return hr_verify_file(path, report, err);
}

static json_t *parse(const char *text)
{
    char json[512];
    snprintf(json, sizeof json, "%s", text);
    for (char *at = json; *at; at++)
        if (*at == '\'') *at = '"';
    json_t *value = json_loads(json, JSON_DECODE_ANY, 0);
    assert_non_null(value);
    return value;
}

/* Sets the value at a path such as "buffers/3/offset"; "-" removes it. */
static void set(json_t *root, const char *where, const char *value)
{
    char parts[128], *part = parts, *slash;
    snprintf(parts, sizeof parts, "%s", where);
    json_t *at = root;
    for (; (slash = strchr(part, '/')); part = slash + 1) {
        *slash = 0;
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(part)) : json_object_get(at, part);
        assert_non_null(at);
    }
    if (!strcmp(value, "-")) {
        assert_int_equal(json_is_array(at) ? json_array_remove(at, (size_t)atoi(part))
                                           : json_object_del(at, part),
                         0);
        return;
    }
    json_t *made = parse(value);
    assert_int_equal(json_is_array(at) ? json_array_set_new(at, (size_t)atoi(part), made)
                                       : json_object_set_new(at, part, made),
                     0);
}

static hr_status judge(json_t *root, hr_verify_report *report, hr_error *err)
{
    char *text = json_dumps(root, 0);
    assert_non_null(text);
    const hr_status status = judge_bytes(text, strlen(text), report, err);
    free(text);
    return status;
}

static json_t *good_plan(void)
{
    json_t *root = json_loads(good, 0, 0);
    assert_non_null(root);
    return root;
}

static void a_valid_plan_passes_with_its_report(void **state)
{
    (void)state;
    hr_verify_report report;
    hr_error err;
    assert_int_equal(judge_bytes(good, strlen(good), &report, &err), HR_OK);
    assert_int_equal(report.loop_count, 6);
    assert_int_equal(report.buffer_count, 11);
    assert_int_equal(report.storage_count, 7);
    assert_int_equal(report.step_count, 8);
    assert_int_equal(report.arena_bytes, 1088);
    assert_int_equal(report.floor_bytes, 1088);
    assert_int_equal(report.gap_bytes, 0);
    assert_int_equal(report.process_bytes, 12096);
    assert_int_equal(report.peak_step, 4);
    assert_string_equal(report.peak_op, "loss");
    assert_int_equal(report.alive_count, 6);
    assert_int_equal(report.alive_listed, 6);
    assert_string_equal(report.alive[0].name, "w");
    assert_string_equal(report.alive[3].name, "y");
    assert_string_equal(report.alive[5].role, "sum");
    assert_int_equal(report.alive[5].bytes, 64);
}

typedef struct {
    const char *where, *value;
    hr_status status;
    const char *sentence; /* a part of it */
} lie;

static const lie lies[] = {
    /* overlapping bytes */
    { "buffers/8/offset", "896", HR_BROKEN,
      "buffers 4 (y) and 8 (dy) are both in use at step 4 (loss) and share bytes: 832 to 960 and "
      "896 "
      "to 1024" },
    { "buffers/7/offset", "704", HR_BROKEN,
      "buffers 7 (loss) and 10 (dw) are both in use at step 2" },
    { "buffers/0/offset", "64", HR_BROKEN, "buffers 0 (w) and 1 (ids) are both in use at step 1" },
    { "buffers/5/offset", "0", HR_BROKEN, "buffers 0 (w) and 5 (work) are both in use at step 3" },
    { "buffers/5/bytes", "1024", HR_CORRUPT, "but the buffers end at 1984" },
    { "buffers/1/bytes", "320", HR_BROKEN,
      "buffers 1 (ids) and 10 (dw) are both in use at step 2" },
    { "steps/3/reads", "[3,3]", HR_BROKEN,
      "; they share a storage, but the step does not hand it over" },
    { "steps/3/writes/0/1", "'accumulate'", HR_BROKEN,
      "; they share a storage, but the step does not hand it over" },
    { "steps/5/reads", "[8,3]", HR_BROKEN, "buffers 3 (x) and 4 (y) are both in use at step 3" },
    { "buffers/4/storage", "9", HR_BROKEN, "buffers 3 (x) and 4 (y) are both in use at step 3" },
    { "loops/3", "{'name':'micro-batch','parent':2,'step_first':2,'step_last':6,'repeats':4}",
      HR_CORRUPT, "step 6: loop is 2 (step), the innermost loop around it is 3 (micro-batch)" },
    /* lifetimes */
    { "buffers/10/step_last", "5", HR_CORRUPT,
      "buffer 10 (dw): declared live from step 2 to 5, but its reads and writes "
      "span 2 to 6" },
    { "buffers/10/step_first", "5", HR_CORRUPT, "declared live from step 5 to 6" },
    { "buffers/0/step_first", "1", HR_CORRUPT, "buffer 0 (w): declared live from step 1 to 7" },
    { "buffers/8/step_last", "7", HR_CORRUPT, "buffer 8 (dy): declared live from step 4 to 7" },
    { "buffers/6/step_last", "3", HR_CORRUPT,
      "buffer 6 (y slice): declared live from step 3 to 3" },
    { "loops/3/repeats", "1", HR_CORRUPT, "buffer 7 (loss): declared live from step 2 to 6" },
    { "buffers/10/home", "3", HR_CORRUPT,
      "buffer 10 (dw): step 6 uses it outside its home loop 3 (micro-batch)" },
    { "buffers/1/home", "0", HR_CORRUPT, "a view has the storage and home of its buffer 1 (ids)" },
    { "buffers/7/home", "0", HR_CORRUPT,
      "buffer 7 (loss): step 6 (update) reads a sum to which step 4 (loss) adds in the next "
      "iteration "
      "of loop 2 (step)" },
    { "buffers/5/home", "-1", HR_BROKEN, "buffers 5 (work) and 8 (dy) are both in use at step 4" },
    { "buffers/5/home", "4", HR_CORRUPT, "step 3 uses it outside its home loop 4 (chunk)" },
    { "buffers/2/home", "3", HR_CORRUPT, "a view has the storage and home of its buffer 1 (ids)" },
    { "steps/6/reads", "[10]", HR_CORRUPT, "buffer 7 (loss): declared live from step 2 to 6" },
    /* unwritten values */
    { "steps/1/writes", "[]", HR_CORRUPT,
      "buffer 2 (ids slice): step 2 (embed) reads it before any step" },
    { "steps/2/writes", "[]", HR_CORRUPT,
      "buffer 3 (x): step 3 (scale) reads it before any step of "
      "its home, loop 3 (micro-batch), writes all of it" },
    { "steps/5/writes/0/1", "'update'", HR_CORRUPT,
      "buffer 10 (dw): step 5 (scale_backward) reads it before any step" },
    { "steps/3/writes", "[[4,'write']]", HR_CORRUPT,
      "buffer 5 (work): no step reads or writes it" },
    { "loops/4/repeats", "1", HR_CORRUPT,
      "buffer 8 (dy): step 5 (scale_backward) reads it before any step of its home, loop 3 "
      "(micro-batch), writes all of it" },
    { "steps/0/writes", "[]", HR_CORRUPT,
      "buffer 0 (w): step 2 (embed) reads it before any step writes all of it" },
    { "steps/0/writes/0/1", "'accumulate'", HR_CORRUPT,
      "buffer 0 (w): step 0 (initialise) reads it before any step writes all of it" },
    { "steps/7/reads", "[0,5]", HR_CORRUPT, "buffer 5 (work): step 7 uses it outside its home" },
    { "steps/3/writes/1/1", "'accumulate'", HR_CORRUPT,
      "buffer 5 (work): scratch is written by one step and read by none, step 3 (scale) uses it" },
    { "steps/3/writes", "[[4,'write'],[5,'write'],[5,'write']]", HR_CORRUPT,
      "buffer 5 (work): scratch is written by one step and read by none" },
    /* state, updates, gradients */
    { "steps/6/writes/0/1", "'write'", HR_CORRUPT,
      "buffer 0 (w): step 6 (update) overwrites it, but it outlives the run: after loop 1 (load) "
      "it may only be updated" },
    { "steps/5/writes", "[[10,'accumulate'],[0,'update']]", HR_CORRUPT,
      "buffer 0 (w): step 5 (scale_backward) updates it in each iteration of loop 3 "
      "(micro-batch)" },
    { "steps/6/writes", "[[0,'update'],[0,'update']]", HR_CORRUPT,
      "buffer 0 (w): step 6 (update) updates it twice" },
    { "steps/5/writes/0/1", "'write'", HR_CORRUPT,
      "buffer 10 (dw): step 5 (scale_backward) overwrites a gradient in each iteration of loop 3 "
      "(micro-batch)" },
    { "steps/6/writes", "[[0,'update'],[10,'accumulate']]", HR_CORRUPT,
      "buffer 10 (dw): step 6 (update) adds to a gradient that step 6 (update) has read" },
    { "steps/4/writes/0/1", "'write'", HR_CORRUPT,
      "buffer 7 (loss): step 4 (loss) overwrites a sum in each iteration of loop 3 (micro-batch)" },
    { "steps/7/writes", "[[0,'update']]", HR_CORRUPT,
      "buffer 0 (w): step 6 (update) updates it, and step 7 (save) too" },
    /* names */
    { "buffers/3/name", "'w'", HR_CORRUPT, "buffers 0 and 3 have one name, w" },
    /* places */
    { "buffers/6/offset", "768", HR_CORRUPT,
      "buffer 6 (y slice): bytes 768 to 832 lie outside buffer 4 (y), which it is a view of" },
    { "buffers/6/bytes", "192", HR_CORRUPT, "bytes 832 to 1024 lie outside buffer 4 (y)" },
    { "buffers/5/offset", "961", HR_CORRUPT,
      "buffer 5 (work): offset 961 and bytes 64 must be multiples of 64" },
    { "buffers/3/storage", "6", HR_BROKEN, "buffers 3 (x) and 4 (y) are both in use at step 3" },
    { "buffers/2/storage", "3", HR_CORRUPT, "a view has the storage and home" },
    { "buffers/9/view_of", "4", HR_CORRUPT,
      "buffer 9 (dy slice): a view has the storage and home of its buffer 4 (y)" },
    { "steps/4/writes/1/0", "4", HR_CORRUPT,
      "buffer 8 (dy): step 5 (scale_backward) reads it before" },
    { "buffers/1/view_of", "2", HR_CORRUPT, "its chain of views reaches no buffer of its own" },
    { "buffers/7/storage", "5", HR_CORRUPT,
      "buffer 7 (loss) and buffer 8 (dy) have storage 5, but not the same offset and bytes" },
    /* sums */
    { "arena_bytes", "1024", HR_CORRUPT, "arena_bytes is 1024, but the buffers end at 1088" },
    { "floor_bytes", "1024", HR_CORRUPT,
      "floor_bytes is 1024, but the most live bytes are 1088, at step 4" },
    { "process_bytes", "9000", HR_CORRUPT,
      "process_bytes is 9000, but the process lines add up to 12096" },
    { "process/0/bytes", "8001", HR_CORRUPT, "but the process lines add up to 12097" },
    { "process", "[{'name':'arena','bytes':8192},{'name':'image','bytes':3904}]", HR_CORRUPT,
      "process line arena is 8192 bytes, arena_bytes 1088 in pages of 4096 are 4096" },
    { "process", "[{'name':'arena','bytes':0},{'name':'image','bytes':12096}]", HR_CORRUPT,
      "process line arena is 0 bytes, arena_bytes 1088 in pages of 4096 are 4096" },
    { "process", "[{'name':'image','bytes':12096}]", HR_CORRUPT,
      "process has 0 lines named arena, exactly one is needed" },
    { "process/0/name", "'arena'", HR_CORRUPT, "process has 2 lines named arena" },
    /* loops */
    { "loops/3/parent", "0", HR_CORRUPT,
      "loop 3 (micro-batch) covers step 2, which lies in loop 2 (step) and not in its parent" },
    { "loops/3/parent", "4", HR_CORRUPT, "is not inside the run" },
    { "loops/0/parent", "0", HR_CORRUPT, "loop 0: parent must be an integer from -1 to -1" },
    { "loops/0/step_last", "6", HR_CORRUPT, "loop 0 is the run and must cover steps 0 to 7" },
    { "loops/4/step_last", "6", HR_CORRUPT, "loop 4 (chunk) covers step 6" },
    { "loops/5/step_first", "6", HR_CORRUPT, "loop 5 (save) covers step 6" },
    { "loops/2/repeats", "0", HR_CORRUPT, "loop 2: repeats must be an integer from 1" },
    { "steps/4/loop", "3", HR_CORRUPT, "the innermost loop around it is 4 (chunk)" },
    /* forms */
    { "version", "2", HR_CORRUPT,
      "plan file: version 2, only version 1 is supported; write it again with "
      "headroom plan --out" },
    { "machine", "-", HR_CORRUPT, "plan file: machine must be an object" },
    { "machine/threads", "0", HR_CORRUPT, "machine: threads must be" },
    { "loops", "[]", HR_CORRUPT, "plan file: loops must be a list of at least one record" },
    { "steps", "{}", HR_CORRUPT, "plan file: steps must be a list" },
    { "steps/2/index", "3", HR_CORRUPT, "step 2: index must be an integer from 2 to 2" },
    { "steps/2/reads/0", "11", HR_CORRUPT, "step 2: reads must be buffers by their index" },
    { "steps/2/reads/0", "-1", HR_CORRUPT, "step 2: reads must be buffers by their index" },
    { "steps/2/writes/0", "3", HR_CORRUPT, "step 2: writes must be pairs [buffer, access]" },
    { "steps/2/writes/0/1", "'append'", HR_CORRUPT, "access must be write, accumulate or update" },
    { "steps/2/flops", "1.5", HR_CORRUPT, "step 2: flops must be an integer" },
    { "buffers/3/bytes", "0", HR_CORRUPT, "buffer 3: bytes must be an integer from 1" },
    { "buffers/3/bytes", "'128'", HR_CORRUPT, "buffer 3: bytes must be an integer" },
    { "buffers/3/bytes", "4611686018427387904", HR_CORRUPT, "buffer 3: bytes must be an integer" },
    { "buffers/3/offset", "-64", HR_CORRUPT, "buffer 3: offset must be an integer from 0" },
    { "buffers/3/dtype", "'f16'", HR_CORRUPT, "buffer 3: dtype must be" },
    { "buffers/3/role", "'thing'", HR_CORRUPT, "buffer 3: role must be one of" },
    { "buffers/3/shape", "[8,9]", HR_CORRUPT,
      "buffer 3: shape must be sizes of at least 1 that fit" },
    { "buffers/3/shape/0", "9223372036854775807", HR_CORRUPT, "buffer 3: shape must be" },
    { "buffers/3/name", "'a\\nb'", HR_CORRUPT, "buffer 3: name must be a string" },
    { "buffers/3/step_last", "8", HR_CORRUPT,
      "buffer 3: step_last must be an integer from 2 to 7" },
    { "buffers/3/home", "6", HR_CORRUPT, "buffer 3: home must be an integer from -1 to 5" },
    { "buffers/3/storage", "-", HR_CORRUPT, "buffer 3: storage must be" },
};

static void each_single_error_is_found_with_its_sentence(void **state)
{
    (void)state;
    int32_t missed = 0;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        hr_verify_report report;
        hr_error err;
        json_t *root = good_plan();
        set(root, lies[i].where, lies[i].value);
        const hr_status status = judge(root, &report, &err);
        json_decref(root);
        assert_int_equal(err.status, status);
        assert_null(strchr(err.message, '\n'));
        if (status == lies[i].status && strstr(err.message, lies[i].sentence)) continue;
        print_error("%s = %s: status %d: %s\n", lies[i].where, lies[i].value, status, err.message);
        missed++;
    }
    assert_int_equal(missed, 0);
    printf("%zu lies found\n", sizeof lies / sizeof *lies);
}

static void a_plan_made_without_loops_is_refused(void **state)
{
    (void)state;
    /* Lifetimes as if every loop ran once, with bytes reused accordingly: the labels end at step
     * 2. */
    json_t *root = good_plan();
    hr_verify_report report;
    hr_error err;
    set(root, "buffers/1/step_last", "2");
    set(root, "buffers/2/step_last", "2");
    set(root, "buffers/10/offset", "256");
    set(root, "buffers/10/step_first", "5");
    set(root, "steps/5/reads", "[8]");
    assert_int_equal(judge(root, &report, &err), HR_BROKEN);
    assert_non_null(strstr(err.message, "buffers 1 (ids) and 10 (dw) are both in use at step 2"));
    json_decref(root);
}

static void a_plan_without_reuse_is_refused(void **state)
{
    (void)state;
    json_t *root = good_plan(), *buffer;
    hr_verify_report report;
    hr_error err;
    size_t index;
    int64_t offset = 0;
    json_array_foreach(json_object_get(root, "buffers"), index, buffer)
    {
        json_object_set_new(buffer, "step_first", json_integer(0));
        json_object_set_new(buffer, "step_last", json_integer(7));
        json_t *of = json_object_get(buffer, "view_of");
        if (!json_is_null(of)) {
            json_t *owner = json_array_get(json_object_get(root, "buffers"),
                                           (size_t)json_integer_value(of));
            json_object_set(buffer, "offset", json_object_get(owner, "offset"));
            continue;
        }
        json_object_set_new(buffer, "storage", json_integer((json_int_t)index));
        json_object_set_new(buffer, "offset", json_integer(offset));
        offset += json_integer_value(json_object_get(buffer, "bytes"));
    }
    set(root, "buffers/6/storage", "4");
    set(root, "buffers/9/storage", "8");
    json_object_set_new(root, "arena_bytes", json_integer(offset));
    json_object_set_new(root, "floor_bytes", json_integer(offset));
    assert_int_equal(judge(root, &report, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "buffer 1 (ids): declared live from step 0 to 7"));
    json_decref(root);
}

static void refused(json_t *root, const char *sentence)
{
    hr_verify_report report;
    hr_error err;
    assert_int_equal(judge(root, &report, &err), HR_CORRUPT);
    if (!strstr(err.message, sentence)) fail_msg("%s", err.message);
    json_decref(root);
}

static void a_weight_that_is_read_after_its_update_is_refused(void **state)
{
    (void)state;
    json_t *root = good_plan();
    set(root, "loops/2/step_last", "7"); /* the save becomes part of the step */
    set(root, "loops/5", "-");
    set(root, "steps/7/loop", "2");
    refused(root, "buffer 0 (w): step 7 (save) reads it after step 6 (update) has updated it, in "
                  "one iteration of loop 2 (step)");
}

static void a_moment_that_is_not_updated_with_its_weight_is_refused(void **state)
{
    (void)state;
    json_t *root = good_plan();
    json_array_append_new(json_object_get(root, "buffers"),
                          parse("{'name':'m','dtype':'f32','shape':[8,8],'role':'moment',"
                                "'bytes':256,'offset':1088,'step_first':0,'step_last':7,"
                                "'home':-1,'storage':7,'view_of':null}"));
    set(root, "arena_bytes", "1344");
    set(root, "floor_bytes", "1344");
    set(root, "steps/0/writes", "[[0,'write'],[11,'write']]");
    set(root, "steps/6/writes", "[[0,'update'],[11,'update']]");
    hr_verify_report report;
    hr_error err;
    assert_int_equal(judge(root, &report, &err), HR_OK);
    set(root, "steps/6/writes", "[[0,'update']]");
    refused(root, "buffers 0 (w) and 11 (m) belong to one parameter, but no step updates both");
}

/* The valid plan with a moment, an average of w and one more step, 7, that updates it. */
static json_t *averaged_plan(void)
{
    json_t *root = good_plan();
    static const char *const state[] = { "m", "average w" };
    for (int i = 0; i < 2; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{'name':'%s','dtype':'f32','shape':[8,8],'role':'moment','bytes':256,"
                 "'offset':%d,'step_first':0,'step_last':8,'home':-1,'storage':%d,'view_of':null}",
                 state[i], 1088 + 256 * i, 7 + i);
        json_array_append_new(json_object_get(root, "buffers"), parse(text));
    }
    json_array_insert_new(json_object_get(root, "steps"), 7,
                          parse("{'index':7,'loop':2,'layer':-1,'op':'average','reads':[0],"
                                "'writes':[[12,'update']],'flops':0}"));
    set(root, "arena_bytes", "1600");
    set(root, "floor_bytes", "1600");
    set(root, "buffers/0/step_last", "8");
    set(root, "steps/0/writes", "[[0,'write'],[11,'write'],[12,'write']]");
    set(root, "steps/6/writes", "[[0,'update'],[11,'update']]");
    set(root, "steps/8/index", "8");
    set(root, "loops/0/step_last", "8");
    set(root, "loops/2/step_last", "7");
    set(root, "loops/5/step_first", "8");
    set(root, "loops/5/step_last", "8");
    return root;
}

/* Pairs of a change and the verifier's sentence. */
static void an_average_must_follow_the_update_of_its_weight(void **state)
{
    (void)state;
    static const char no_step[] = "buffer 12 (average w): after the update of buffer 0 (w), no "
                                  "step in the same iteration reads it and updates only this "
                                  "average";
    static const struct {
        const char *where, *value, *where_too, *value_too, *sentence;
    } cases[] = {
        { "steps/7/reads", "[]", "steps/7/op", "'none'", no_step },
        { "steps/7/writes", "[]", "steps/7/reads", "[]", no_step },
        { "steps/7/reads", "[11]", "steps/7/op", "'other'", no_step },
        { "steps/7/reads", "[]", "steps/6/writes", "[[0,'update'],[11,'update']]", no_step },
        { "steps/7/reads", "[0,0]", "steps/7/op", "'twice'",
          "buffer 0 (w): step 7 (twice) reads it after step 6 (update) has updated it" },
        { "steps/7/reads", "[0,7]", "steps/7/op", "'more'",
          "buffer 0 (w): step 7 (more) reads it after step 6 (update) has updated it" },
        { "steps/7/writes", "[[12,'update'],[11,'update']]", "steps/6/writes", "[[0,'update']]",
          "buffer 0 (w): step 7 (average) reads it after step 6 (update) has updated it" },
        { "steps/7/writes", "[]", "steps/5/writes", "[[10,'accumulate'],[12,'update']]",
          "buffer 0 (w): step 7 (average) reads it after step 6 (update) has updated it" },
        { "steps/7/writes", "[[11,'update']]", "steps/6/writes", "[[0,'update'],[12,'update']]",
          "buffer 0 (w): step 7 (average) reads it after step 6 (update) has updated it" },
        { "steps/8/writes", "[[12,'update']]", "steps/8/op", "'save'",
          "buffer 12 (average w): step 7 (average) updates it, and step 8 (save) too" },
        { "steps/7/loop", "5", "loops/2/step_last", "6", no_step },
        { "buffers/12/name", "'mean w'", "steps/7/op", "'average'",
          "buffer 0 (w): step 7 (average) reads it after step 6 (update) has updated it" },
        { "buffers/11/name", "'average m'", "steps/0/op", "'load'",
          "buffer 12 (average w): step 0 (load) must make this average alone, with the one weight "
          "that it is of" },
        { "buffers/0/role", "'table'", "steps/0/op", "'load'",
          "buffer 12 (average w): step 0 (load) must make this average alone" },
        { "steps/0/writes", "[[0,'write'],[11,'write']]", "buffers/12/home", "2", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *root = averaged_plan();
        hr_verify_report report;
        hr_error err;
        if (judge(root, &report, &err) != HR_OK) fail_msg("%s", err.message);
        set(root, cases[i].where, cases[i].value);
        set(root, cases[i].where_too, cases[i].value_too);
        if (!strcmp(cases[i].where, "steps/7/loop")) set(root, "loops/5/step_first", "7");
        refused(root, cases[i].sentence ? cases[i].sentence : "");
    }
    /* Exchanges the average and the update. */
    json_t *root = averaged_plan();
    set(root, "steps/6/reads", "[0]");
    set(root, "steps/6/writes", "[[12,'update']]");
    set(root, "steps/7/reads", "[10,7]");
    set(root, "steps/7/writes", "[[0,'update'],[11,'update']]");
    set(root, "buffers/7/step_last", "7");
    set(root, "buffers/10/step_last", "7");
    refused(root, no_step);
    /* Adds a repeating loop around the average. */
    root = averaged_plan();
    json_array_append_new(json_object_get(root, "loops"),
                          parse("{'name':'again','parent':2,'step_first':7,'step_last':7,"
                                "'repeats':2}"));
    set(root, "steps/7/loop", "6");
    refused(root, no_step);
    /* Adds a second reader of the new weight, after the average. */
    root = averaged_plan();
    set(root, "steps/8/loop", "2");
    set(root, "loops/2/step_last", "8");
    set(root, "loops/5", "-");
    refused(root, "buffer 0 (w): step 8 (save) reads it after step 6 (update) has updated it");
}

static void a_gradient_that_is_read_before_it_is_complete_is_refused(void **state)
{
    (void)state;
    json_t *root = good_plan();
    set(root, "steps/2/writes", "[[3,'write'],[10,'accumulate']]");
    set(root, "steps/3/reads", "[3,0,10]");
    set(root, "steps/5/writes", "[]");
    refused(root, "buffer 10 (dw): step 3 (scale) reads a gradient to which step 2 (embed) adds in "
                  "the next iteration of loop 3 (micro-batch)");
}

static void a_buffer_written_in_part_and_read_whole_is_refused(void **state)
{
    (void)state;
    json_t *root = good_plan();
    set(root, "steps/1/writes", "[[2,'write']]"); /* 64 bytes of ids; step 2 reads only these */
    hr_verify_report report;
    hr_error err;
    assert_int_equal(judge(root, &report, &err), HR_OK);
    set(root, "steps/5/reads", "[8,1]");
    refused(root, "buffer 1 (ids): step 5 (scale_backward) reads it before any step of its home, "
                  "loop 2 (step), writes all of it");
}

static void a_gap_in_the_lifetime_of_a_storage_is_refused(void **state)
{
    (void)state;
    json_t *root = good_plan();
    json_array_append_new(json_object_get(root, "buffers"),
                          parse("{'name':'work 0','dtype':'u8','shape':[64],'role':'scratch',"
                                "'bytes':64,'offset':960,'step_first':0,'step_last':0,'home':1,"
                                "'storage':3,'view_of':null}"));
    set(root, "steps/0/writes", "[[0,'write'],[11,'write']]");
    refused(root, "buffer 5 (work): storage 3 is not handed from buffer to buffer without a gap, "
                  "from step 0 to 3");
}

static void a_step_of_many_reads_is_refused(void **state)
{
    (void)state;
    json_t *root = good_plan(),
           *reads = json_object_get(json_array_get(json_object_get(root, "steps"), 7), "reads");
    hr_verify_report report;
    hr_error err;
    while (json_array_size(reads) < 64) json_array_append_new(reads, json_integer(0));
    assert_int_equal(judge(root, &report, &err), HR_OK);
    json_array_append_new(reads, json_integer(0));
    refused(root, "step 7: reads and writes must be lists of at most 64");
}

static void a_gap_above_the_floor_is_reported_without_an_error(void **state)
{
    (void)state;
    json_t *root = good_plan();
    hr_verify_report report;
    hr_error err;
    set(root, "buffers/5/offset", "1088");
    set(root, "arena_bytes", "1152");
    set(root, "process", "[{'name':'arena','bytes':4096},{'name':'image','bytes':8000}]");
    assert_int_equal(judge(root, &report, &err), HR_OK);
    assert_int_equal(report.gap_bytes, 64);
    json_decref(root);
}

static void what_is_not_a_plan_file_is_refused(void **state)
{
    (void)state;
    hr_verify_report report;
    hr_error err;
    assert_int_equal(hr_verify_file("no/such/plan.json", &report, &err), HR_USAGE);
    assert_string_equal(err.message, "plan file no/such/plan.json: No such file or directory");
    assert_int_equal(hr_verify_file(HR_SOURCE, &report, &err), HR_USAGE);
    assert_int_equal(judge_bytes("", 0, &report, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "not JSON"));
    assert_int_equal(judge_bytes("[]", 2, &report, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "its content must be an object"));
    assert_int_equal(judge_bytes("{}", 2, &report, &err), HR_CORRUPT);
    assert_int_equal(judge_bytes(good, strlen(good) / 2, &report, &err), HR_CORRUPT);
    assert_int_equal(judge_bytes("{\"version\":1,\"version\":1}", 25, &report, &err), HR_CORRUPT);
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    char *text = malloc(DEPTH);
    hr_verify_report report;
    hr_error err;
    assert_non_null(text);
    memset(text, '[', DEPTH);
    assert_int_equal(judge_bytes(text, DEPTH, &report, &err), HR_CORRUPT);
    free(text);
}

static void flipped_bytes_never_crash_the_verifier(void **state)
{
    (void)state;
    const size_t length = strlen(good);
    static char text[sizeof good];
    int32_t accepted = 0;
    for (uint64_t i = 0; i < 4000 * (uint64_t)HR_COUNT; i++) {
        hr_verify_report report;
        hr_error err;
        memcpy(text, good, sizeof good);
        for (uint64_t k = 0; k <= i % 3; k++) {
            const uint64_t bits = hr_random_mix(SEED + 8 * i + k);
            /* Half of the changes keep the file valid JSON: a digit replaces a digit. */
            const size_t at = bits % length;
            if (text[at] >= '0' && text[at] <= '9') text[at] = (char)('0' + (bits >> 40) % 10);
            else if (bits >> 63) text[at] = (char)(bits >> 32);
        }
        const hr_status status = judge_bytes(text, length, &report, &err);
        assert_true(status == HR_OK || status == HR_BROKEN || status == HR_CORRUPT);
        assert_int_equal(err.status, status);
        accepted += status == HR_OK;
    }
    printf("%d of %d flipped files still hold a good plan\n", accepted, 4000 * HR_COUNT);
    assert_in_range(accepted, 1, 4000 * HR_COUNT - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_valid_plan_passes_with_its_report),
        cmocka_unit_test(each_single_error_is_found_with_its_sentence),
        cmocka_unit_test(a_plan_made_without_loops_is_refused),
        cmocka_unit_test(a_plan_without_reuse_is_refused),
        cmocka_unit_test(a_weight_that_is_read_after_its_update_is_refused),
        cmocka_unit_test(a_moment_that_is_not_updated_with_its_weight_is_refused),
        cmocka_unit_test(an_average_must_follow_the_update_of_its_weight),
        cmocka_unit_test(a_gradient_that_is_read_before_it_is_complete_is_refused),
        cmocka_unit_test(a_buffer_written_in_part_and_read_whole_is_refused),
        cmocka_unit_test(a_gap_in_the_lifetime_of_a_storage_is_refused),
        cmocka_unit_test(a_step_of_many_reads_is_refused),
        cmocka_unit_test(a_gap_above_the_floor_is_reported_without_an_error),
        cmocka_unit_test(what_is_not_a_plan_file_is_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(flipped_bytes_never_crash_the_verifier),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
