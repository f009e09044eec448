/* SPDX-License-Identifier: Apache-2.0 */
/* tests/judge/edited_plan.h - a valid plan file, changed at one place and given to the verifier. */
#ifndef HR_TESTS_JUDGE_EDITED_PLAN_H
#define HR_TESTS_JUDGE_EDITED_PLAN_H

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

#include "headroom/verify.h"
#include "judge/edit.h"
#include "judge/plan_text.h"

static char path[64];
static char good[sizeof plan_text];

static inline int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/headroom-verify-XXXXXX", P_tmpdir);
    const int file = mkstemp(path);
    for (size_t i = 0; i < sizeof plan_text; i++)
        good[i] = plan_text[i] == '\'' ? '"' : plan_text[i];
    return file < 0 || close(file);
}

static inline int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

static inline hr_status judge_bytes(const char *bytes, size_t count, hr_verify_report *report,
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

static inline hr_status judge(json_t *root, hr_verify_report *report, hr_error *err)
{
    char *text = json_dumps(root, 0);
    assert_non_null(text);
    const hr_status status = judge_bytes(text, strlen(text), report, err);
    free(text);
    return status;
}

static inline json_t *good_plan(void)
{
    json_t *root = json_loads(good, 0, 0);
    assert_non_null(root);
    return root;
}

static inline void refused(json_t *root, const char *sentence)
{
    hr_verify_report report;
    hr_error err;
    assert_int_equal(judge(root, &report, &err), HR_CORRUPT);
    if (!strstr(err.message, sentence)) fail_msg("%s", err.message);
    json_decref(root);
}

#endif
