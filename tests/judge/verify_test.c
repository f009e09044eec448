/* SPDX-License-Identifier: Apache-2.0 */
/* verify_test.c - the verifier accepts a valid plan and finds every single error, with its
 * sentence. */
#include "base/random.h"
#include "judge/edited_plan.h"

enum { SEED = 77 };

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
      "buffer 0 (w): step 0 (initialize) reads it before any step writes all of it" },
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
    { "version", "3", HR_CORRUPT,
      "plan file: version 3, only versions 1 and 2 are supported; write it again with "
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
    { "buffers/3/dtype", "'f8'", HR_CORRUPT, "buffer 3: dtype must be" },
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

/* A number without sizes has the bytes of one element, too. */
static void a_buffer_smaller_than_its_element_is_refused(void **state)
{
    (void)state;
    json_t *root = good_plan();
    set(root, "buffers/3/shape", "[]");
    set(root, "buffers/3/bytes", "1");
    refused(root, "buffer 3: shape must be sizes of at least 1 that fit");
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
    printf("seed %d\n", SEED);
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
        cmocka_unit_test(a_buffer_written_in_part_and_read_whole_is_refused),
        cmocka_unit_test(a_buffer_smaller_than_its_element_is_refused),
        cmocka_unit_test(a_gap_in_the_lifetime_of_a_storage_is_refused),
        cmocka_unit_test(a_step_of_many_reads_is_refused),
        cmocka_unit_test(a_gap_above_the_floor_is_reported_without_an_error),
        cmocka_unit_test(what_is_not_a_plan_file_is_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(flipped_bytes_never_crash_the_verifier),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
