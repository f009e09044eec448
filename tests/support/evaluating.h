/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/evaluating.h - models, tokens and results of `headroom eval`. */
#ifndef HR_TESTS_SUPPORT_EVALUATING_H
#define HR_TESTS_SUPPORT_EVALUATING_H

#include "headroom/status.h"
#include "mem/process.h"
#include "support/oracle.h" /* before program.h, whose `out` it would shadow */
#include "support/program.h"
#include "support/stored.h"

static __attribute__((unused)) double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value)) fail_msg("no number %s in: %s", name, out);
    return json_number_value(value);
}

/* Asserts that the process memory stayed within the plan. */
static __attribute__((unused)) json_t *kept_plan(void)
{
    json_t *facts = out_json();
    assert_true(!hr_process_is_exact() ||
                number(facts, "process_bytes_measured") <= number(facts, "process_bytes_planned"));
    assert_true(number(facts, "arena_bytes_used") == number(facts, "arena_bytes_planned"));
    return facts;
}

/* The output of `headroom eval <arguments> --json`. */
static __attribute__((format(printf, 1, 2), unused)) json_t *evaluated(const char *format, ...)
{
    char arguments[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    if (run("eval %s --json", arguments) != HR_OK) fail_msg("%s: %s", arguments, err);
    return kept_plan();
}

/* Writes a trained model to `model`, and `text.txt`. */
static __attribute__((unused)) void put_model(const char *family, int32_t positions,
                                              const char *sizes)
{
    char more[64] = "";
    require_program();
    put_tiny_and_text();
    if (positions) snprintf(more, sizeof more, "model.positions=%d", (int)positions);
    assert_int_equal(run("train tiny.yaml data.train=text.txt train.out=model train.seed=3 "
                         "model.family=%s %s %s train.sample_tokens=0",
                         family, more, sizes),
                     HR_OK);
}

/* Writes random ids [B, T] without labels. */
static __attribute__((unused)) void put_tokens(const char *name, int32_t B, int32_t T, int32_t V,
                                               bool wide)
{
    int64_t *ids = malloc((size_t)(B * T) * sizeof *ids);
    int32_t *narrow = malloc((size_t)(B * T) * sizeof *narrow);
    char shape[64];
    for (int64_t i = 0; i < B * T; i++) ids[i] = narrow[i] = (int32_t)((i * 7919 + i / 3) % V);
    snprintf(shape, sizeof shape, "[%d,%d]", (int)B, (int)T);
    stored_file file = stored_begin();
    stored_add(&file, "input_ids", wide ? "I64" : "I32", shape, wide ? (void *)ids : narrow,
               B * T * (wide ? 8 : 4));
    stored_end(&file, name);
    free(narrow);
    free(ids);
}

#endif
