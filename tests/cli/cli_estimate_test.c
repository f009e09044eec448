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

/* Low and high bytes of one estimate on a card, and its verdict: 0 fits, 1 may fit, 2 neither. */
static int32_t estimate_at(const char *value, int64_t range[2])
{
    char arguments[128];
    snprintf(arguments, sizeof arguments, "--as pytorch --device rtx-3060 %s", value);
    json_t *answer = answer_of(arguments);
    const char *verdict = json_string_value(
        json_object_get(json_object_get(answer, "estimate"), "verdict"));
    const int32_t found = !strcmp(verdict, "fits") ? 0 : !strcmp(verdict, "may fit") ? 1 : 2;
    range[0] = number(answer, "estimate", "low_bytes");
    range[1] = number(answer, "estimate", "high_bytes");
    json_decref(answer);
    return found;
}

static void the_largest_value_is_between_two_estimates(void **state)
{
    static const char *const keys[] = { "train.batch", "train.seq_len", "model.d_ff" };
    static const char *const names[] = { "fits", "may_fit", "does_not_fit" };
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        assert_int_equal(
            run("plan tiny.yaml --as pytorch --device rtx-3060 --largest %s --json", keys[k]),
            HR_OK);
        json_t *answer = out_json();
        const json_t *device = json_array_get(json_object_get(answer, "devices"), 0);
        for (int32_t i = 0; i < 3; i++) {
            json_t *end = json_object_get(device, names[i]);
            char value[64];
            int64_t range[2];
            const int64_t at = json_integer_value(json_object_get(end, "value"));
            snprintf(value, sizeof value, "%s=%lld", keys[k], (long long)at);
            assert_true(at > 0);
            assert_true(estimate_at(value, range) <= i);
            assert_int_equal(range[0], json_integer_value(json_object_get(end, "low_bytes")));
            assert_int_equal(range[1], json_integer_value(json_object_get(end, "high_bytes")));
            snprintf(value, sizeof value, "%s=%lld", keys[k], (long long)at + (i < 2));
            if (i < 2) assert_true(estimate_at(value, range) > i);
            else assert_int_equal(estimate_at(value, range), 2);
        }
        json_decref(answer);
    }
}

static void a_grid_of_estimates_has_a_row_for_each_value_and_device(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    assert_int_equal(run("plan tiny.yaml --as trl --grid train.batch,train.seq_len=2:64,4:128 "
                         "--grid model.d_ff=64,128 --devices t4,rtx-3060 --csv"),
                     HR_OK);
    int32_t lines = 0;
    for (const char *at = out; (at = strchr(at, '\n')); at++) lines++;
    assert_int_equal(lines, 1 + 2 * 2 * 2);
    assert_non_null(strstr(out, "\n4 x 128 x 64,rtx-3060,fits,"));
    assert_int_equal(run("plan tiny.yaml --as pytorch --grid train.batch=8 --budget 1MiB"),
                     HR_NO_FIT);
    assert_non_null(strstr(out, "the budget: 1.0 MiB of memory\n"));
    assert_non_null(strstr(out, " does not fit "));
    assert_int_equal(run("plan tiny.yaml --as pytorch --devices t4,rtx-3060"), HR_OK);
    assert_non_null(strstr(out, " rtx-3060 "));
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
        { "--as pytorch --largest train.batch", "--as with --largest, --grid or --devices needs" },
        { "--as pytorch --largest train.dtype --device t4", "takes a key with an integer" },
        { "--as pytorch --largest train.batch --device t4 --assume a=b", "is not an assumption" },
        { "--as pytorch --grid train.batch=8 --device t4 --tokens 1B", "--tokens is of plans" },
        { "--as pytorch --out x.json", "--as and --out exclude each other" },
        { "model.family=llama model.attention.kind=nsa train.seq_len=64 --as pytorch",
          "model.attention.kind nsa: what kernels of native sparse attention allocate" },
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
        IN_A_FOLDER(the_largest_value_is_between_two_estimates),
        IN_A_FOLDER(a_grid_of_estimates_has_a_row_for_each_value_and_device),
        IN_A_FOLDER(bad_questions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
