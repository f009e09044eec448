/* SPDX-License-Identifier: Apache-2.0 */
/* cli_estimate_test.c - plan --as: what is printed, and what is refused. */
#include "headroom/status.h"
#include "support/program.h"

static json_t *answer_of(const char *arguments)
{
    assert_int_equal(run("plan tiny.yaml --json %s", arguments), HR_OK);
    return out_json();
}

static int64_t number(json_t *answer, const char *part, const char *name)
{
    const json_t *value = json_object_get(json_object_get(answer, part), name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void the_first_lines_have_both_answers(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    assert_int_equal(run("plan tiny.yaml --as pytorch --device rtx-4090"), HR_OK);
    assert_int_equal(strncmp(out, "pytorch: ", strlen("pytorch: ")), 0);
    assert_non_null(strstr(out, "estimate: tensors "));
    assert_non_null(strstr(out, "\nheadroom: "));
    assert_non_null(strstr(out, "\nrtx-4090 has 23.6 GiB: pytorch fits, headroom fits\n"));
    assert_non_null(strstr(out, "\npeak: "));
    assert_non_null(strstr(out, "\n  device=cuda "));
    assert_non_null(strstr(out, "\n  update=foreach "));
    assert_null(strstr(out, "plan for pytorch"));
}

static void json_has_the_estimate_beside_the_plan(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    json_t *answer = answer_of("--as hf-trainer --assume checkpointing=on --budget 1GiB");
    const json_t *estimate = json_object_get(answer, "estimate");
    const json_t *assumptions = json_object_get(estimate, "assumptions");
    assert_string_equal(json_string_value(json_object_get(estimate, "framework")), "hf-trainer");
    assert_string_equal(json_string_value(json_object_get(assumptions, "checkpointing")), "on");
    int64_t sum = 0;
    const char *name;
    json_t *bytes;
    json_object_foreach(json_object_get(estimate, "at_peak"), name, bytes)
        sum += json_integer_value(bytes);
    assert_int_equal(sum, number(answer, "estimate", "tensor_bytes"));
    assert_true(number(answer, "estimate", "low_bytes") < number(answer, "estimate", "high_bytes"));
    assert_true(json_is_true(json_object_get(json_object_get(answer, "plan"), "fits")));
    assert_true(number(answer, "plan", "process_bytes") > 0);
    json_decref(answer);
}

static void an_estimate_exists_where_no_plan_fits(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    assert_int_equal(run("plan tiny.yaml --as trl --budget 1MiB"), HR_OK);
    assert_non_null(strstr(out, "\nthe budget is 1.0 MiB: trl does not fit, headroom does not "
                                "fit\n"));
    assert_null(strstr(out, "this machine has"));
}

/* A trainer is estimated on a GPU, which memory of the host does not hold. */
static void without_a_device_a_trainer_is_not_held_against_the_host(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    assert_int_equal(run("plan tiny.yaml --as hf-trainer"), HR_OK);
    assert_non_null(strstr(out, "\nthis machine has "));
    assert_non_null(strstr(out, ": headroom fits; hf-trainer is estimated on a GPU, --device NAME "
                                "names one\n"));
    assert_int_equal(run("plan tiny.yaml --as hf-trainer --json"), HR_OK);
    json_t *answer = out_json();
    const json_t *estimate = json_object_get(answer, "estimate");
    assert_string_equal(json_string_value(json_object_get(estimate, "verdict")), "no device");
    json_decref(answer);
    assert_int_equal(run("plan tiny.yaml --as hf-trainer --device t4"), HR_OK);
    assert_non_null(strstr(out, ": hf-trainer fits, headroom fits\n"));
    assert_int_equal(run("plan tiny.yaml --as hf-trainer --assume device=cpu"), HR_OK);
    assert_non_null(strstr(out, ": hf-trainer fits, headroom fits\n"));
}

static void sizes_beside_each_other_have_one_unit(void **state)
{
    (void)state;
    require_program();
    assert_int_equal(run("plan needle-70m train.batch=8 train.seq_len=512 --as pytorch --assume "
                         "attention=broadcast --device a100-80gb"),
                     HR_OK);
    assert_non_null(strstr(out, "\nheadroom: 0.45 GiB at the least (plan), "));
    assert_non_null(strstr(out, "; 1.18 GiB for the fastest plan that fits\n"));
}

static void bad_questions_are_refused(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    static const struct {
        const char *arguments, *message;
    } cases[] = {
        { "--as jax", "--as: \"jax\" is not a known framework" },
        { "--assume attention=eager", "--assume needs --as" },
        { "--as pytorch --assume attention=flash", "--assume attention takes one of sdpa" },
        { "--as deepspeed-z2 --assume zero=0 --assume world=8",
          "--assume world=8: with zero=0 nothing is shared" },
        { "--as pytorch --assume attn=eager",
          "--assume: \"attn\" is not an assumption; headroom plan --as" },
        { "--as pytorch --smallest", "--as and --smallest exclude each other" },
        { "--as pytorch --out x.json", "--as and --out exclude each other" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("plan tiny.yaml %s", cases[i].arguments), HR_USAGE);
        if (!strstr(err, cases[i].message)) fail_msg("%s: %s", cases[i].arguments, err);
        assert_string_equal(out, "");
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        IN_A_FOLDER(the_first_lines_have_both_answers),
        IN_A_FOLDER(json_has_the_estimate_beside_the_plan),
        IN_A_FOLDER(an_estimate_exists_where_no_plan_fits),
        IN_A_FOLDER(without_a_device_a_trainer_is_not_held_against_the_host),
        IN_A_FOLDER(sizes_beside_each_other_have_one_unit),
        IN_A_FOLDER(bad_questions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
