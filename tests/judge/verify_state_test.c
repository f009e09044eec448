/* SPDX-License-Identifier: Apache-2.0 */
/* verify_state_test.c - weights, optimizer states, averages and gradients are read and updated in
 * the only valid order. */
#include "judge/edited_plan.h"

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

/* One more step, 7, after the update of w, and an arena of so many bytes. */
static void add_step(json_t *root, const char *step, const char *bytes)
{
    json_array_insert_new(json_object_get(root, "steps"), 7, parse(step));
    set(root, "arena_bytes", bytes);
    set(root, "floor_bytes", bytes);
    set(root, "buffers/0/step_last", "8");
    set(root, "steps/8/index", "8");
    set(root, "loops/0/step_last", "8");
    set(root, "loops/2/step_last", "7");
    set(root, "loops/5/step_first", "8");
    set(root, "loops/5/step_last", "8");
}

/* The valid plan with a table of w, and a step that updates it. */
static json_t *plan_with_a_table(void)
{
    json_t *root = good_plan();
    json_array_append_new(json_object_get(root, "buffers"),
                          parse("{'name':'lengths of w','dtype':'f32','shape':[8,8],'role':'table',"
                                "'bytes':256,'offset':1088,'step_first':0,'step_last':8,"
                                "'home':-1,'storage':7,'view_of':null}"));
    add_step(root,
             "{'index':7,'loop':2,'layer':-1,'op':'length','reads':[0],'writes':[[11,'update']],"
             "'flops':0}",
             "1344");
    set(root, "steps/0/writes", "[[0,'write'],[11,'write']]");
    return root;
}

/* As the lengths of columns of DoRA are. */
static void a_table_of_weights_is_computed_anew_after_their_update(void **state)
{
    (void)state;
    json_t *root = plan_with_a_table();
    hr_verify_report report;
    hr_error err;
    if (judge(root, &report, &err) != HR_OK) fail_msg("%s", err.message);
    set(root, "steps/7/writes", "[[11,'update'],[0,'update']]");
    refused(root, "buffer 0 (w): step 7 (length) reads it after step 6 (update) has updated it, in "
                  "one iteration of loop 2 (step)");
    root = plan_with_a_table();
    set(root, "steps/0/writes", "[[0,'write']]");
    refused(root, "buffer 11 (lengths of w): step 7 (length) reads it before any step writes all "
                  "of it");
}

/* The valid plan with a moment, an average of w, and a step that updates it. */
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
    add_step(root,
             "{'index':7,'loop':2,'layer':-1,'op':'average','reads':[0],'writes':[[12,'update']],"
             "'flops':0}",
             "1600");
    set(root, "steps/0/writes", "[[0,'write'],[11,'write'],[12,'write']]");
    set(root, "steps/6/writes", "[[0,'update'],[11,'update']]");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_of_weights_is_computed_anew_after_their_update),
        cmocka_unit_test(a_weight_that_is_read_after_its_update_is_refused),
        cmocka_unit_test(a_moment_that_is_not_updated_with_its_weight_is_refused),
        cmocka_unit_test(an_average_must_follow_the_update_of_its_weight),
        cmocka_unit_test(a_gradient_that_is_read_before_it_is_complete_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
