/* SPDX-License-Identifier: Apache-2.0 */
/* cli/prove.c - headroom prove: prints a line for each proof. */
#include "headroom/prove.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

typedef struct {
    hr_progress progress;
    hr_cli_work work;
    bool json;
} screen;

static const char *const outcomes[] = { [HR_PROOF_PASSED] = "pass",
                                        [HR_PROOF_FAILED] = "FAIL",
                                        [HR_PROOF_DOES_NOT_APPLY] = "does not apply",
                                        [HR_PROOF_NOT_RUN] = "not run" };

static void show_begun(void *context, const hr_prove_report *report)
{
    screen *s = context;
    char time[HR_COUNT_BYTES];
    hr_progress_end(&s->progress);
    if (s->json) return;
    printf("prove  %s\n", report->configuration);
    if (*report->reduced) printf("       %s\n", report->reduced);
    printf("data   %s\n", report->data);
    if (*report->note) printf("note   %s\n", report->note);
    if (report->runs)
        printf("time   %d run%s of %lld step%s, about %s in training steps\n\n", report->runs,
               report->runs == 1 ? "" : "s", (long long)report->steps,
               report->steps == 1 ? "" : "s", hr_duration_print(report->predicted_seconds, time));
    fflush(stdout);
}

/* "every bit equal", or "largest relative difference 3.1e-07, bound 1e-04". */
static void print_comparison(const hr_proof *proof)
{
    printf("%15s %d tensors, %s elements over %d step%s: ", "", proof->tensors,
           hr_cli_count(proof->elements), proof->steps, proof->steps == 1 ? "" : "s");
    if (proof->bound > 0)
        printf("largest relative difference %.1e, bound %.0e\n", proof->largest_relative,
               proof->bound);
    else if (proof->outcome == HR_PROOF_PASSED) printf("every bit is equal\n");
    else
        printf("largest difference %.2e, %s ulp, relative %.1e; every bit must be equal\n",
               proof->largest_absolute, hr_cli_count(proof->largest_ulps), proof->largest_relative);
}

static void show_proved(void *context, const hr_proof *proof)
{
    screen *s = context;
    hr_progress_end(&s->progress);
    if (s->json) return;
    const bool compared = proof->outcome == HR_PROOF_PASSED || proof->outcome == HR_PROOF_FAILED;
    if (proof->outcome == HR_PROOF_DOES_NOT_APPLY) {
        printf("%-15s does not apply: %s\n", proof->name, proof->reason);
    } else {
        printf("%-15s %s  %s\n", proof->name, outcomes[proof->outcome], proof->compared);
        if (compared) print_comparison(proof);
        if (proof->outcome != HR_PROOF_PASSED) printf("%15s %s\n", "", proof->reason);
    }
    fflush(stdout);
}

static void show_working(void *context, const char *proof, const char *work, int64_t done,
                         int64_t total)
{
    screen *s = context;
    char name[HR_CLI_WORK_BYTES];
    snprintf(name, sizeof name, "%.20s, %.36s", proof, work);
    hr_cli_show_work(&s->progress, &s->work, name, done, total);
}

/* NaN and infinity have no form in JSON. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *proof_json(const hr_proof *proof)
{
    static const char *const names[] = { [HR_PROOF_PASSED] = "pass",
                                         [HR_PROOF_FAILED] = "fail",
                                         [HR_PROOF_DOES_NOT_APPLY] = "does_not_apply",
                                         [HR_PROOF_NOT_RUN] = "not_run" };
    return json_pack(
        "{ss ss ss so sf si si sI so so sI ss sf}", "name", proof->name, "compared",
        proof->compared, "outcome", names[proof->outcome], "reason",
        hr_cli_json_string(proof->reason), "bound", proof->bound, "steps", proof->steps, "tensors",
        proof->tensors, "elements", (json_int_t)proof->elements, "largest_absolute",
        number(proof->largest_absolute), "largest_relative", number(proof->largest_relative),
        "largest_ulps", (json_int_t)proof->largest_ulps, "tensor", proof->tensor, "seconds",
        proof->seconds);
}

static void print_json(const hr_prove_report *report)
{
    json_t *proofs = json_array();
    for (int32_t i = 0; i < report->proof_count; i++)
        json_array_append_new(proofs, proof_json(&report->proofs[i]));
    json_t *object = json_pack(
        "{so ss so so sI si sf si si si si so}", "configuration",
        hr_cli_json_string(report->configuration), "reduced", report->reduced, "data",
        hr_cli_json_string(report->data), "note", hr_cli_json_string(report->note), "steps",
        (json_int_t)report->steps, "runs", report->runs, "predicted_seconds",
        report->predicted_seconds, "passed", report->passed, "failed", report->failed,
        "not_applicable", report->not_applicable, "not_run", report->not_run, "proofs", proofs);
    (void)hr_cli_print_json(object, 0);
}

static void print_end(const hr_prove_report *report)
{
    const int32_t applied = report->passed + report->failed + report->not_run;
    printf("\n%d of %d proof%s passed", report->passed, applied, applied == 1 ? "" : "s");
    if (report->failed) printf(", %d failed", report->failed);
    if (report->not_run) printf(", %d not run", report->not_run);
    if (report->not_applicable)
        printf("; %d do%s not apply to this recipe", report->not_applicable,
               report->not_applicable == 1 ? "es" : "");
    printf("\n");
}

static hr_status read_steps(const hr_cli_arguments *arguments, int64_t *steps, hr_error *err)
{
    const char *text = arguments->values[HR_OPTION_STEPS];
    if (!text) return HR_OK;
    char *end;
    const long value = strtol(text, &end, 10);
    if (*text && !*end && value >= 1 && value <= HR_PROVE_STEPS_MOST) {
        *steps = value;
        return HR_OK;
    }
    return hr_fail(err, HR_USAGE, "--steps takes a number from 1 to %d; got \"%.40s\"",
                   HR_PROVE_STEPS_MOST, text);
}

static const char *directory_of(const hr_cli_arguments *arguments)
{
    const char *given = arguments->values[HR_OPTION_DIR], *temporary = getenv("TMPDIR");
    if (given) return given;
    return temporary && *temporary ? temporary : "/var/tmp";
}

/* What is larger than a frame should be, for the deepest calls are those of a run. */
typedef struct {
    hr_config *config;
    hr_prove_report report;
} proving;

static int prove(const hr_cli_arguments *arguments, proving *p)
{
    hr_error err;
    char calibrations[HR_PATH_BYTES];
    screen s = { .progress = hr_progress_begin(STDERR_FILENO),
                 .json = arguments->values[HR_OPTION_JSON] };
    hr_prove_options options = {
        .size = sizeof options,
        .events = { .context = &s,
                    .begun = show_begun,
                    .proved = show_proved,
                    .working = show_working },
        .only = arguments->values[HR_OPTION_ONLY],
        .directory = directory_of(arguments),
    };
    if (hr_cli_recipe(arguments, p->config, &err) != HR_OK ||
        hr_cli_take_cache(p->config, &options.cache_limit_bytes, &err) != HR_OK ||
        read_steps(arguments, &options.steps, &err) != HR_OK ||
        hr_cli_leave_stages(p->config, &err) != HR_OK)
        return hr_cli_fail(&err);
    options.calibrations = hr_cli_calibrations(calibrations, sizeof calibrations);
    options.interrupts = hr_cli_catch_signals("\nheadroom: stopped at once; the temporary "
                                              "directory headroom-prove-* is left\n");
    const hr_status status = hr_prove(p->config, &options, &p->report, &err);
    hr_progress_end(&s.progress);
    if (s.json && p->report.proof_count) print_json(&p->report);
    else if (p->report.proof_count) print_end(&p->report);
    if (status == HR_OK) return HR_OK;
    fflush(stdout);
    const int code = hr_cli_fail(&err);
    return status == HR_INTERRUPTED ? hr_cli_signal_code() : code;
}

static int with_report(const hr_cli_arguments *arguments, hr_config *config)
{
    hr_error err;
    proving *p = malloc(sizeof *p);
    if (!p) {
        (void)hr_fail(&err, HR_FAILURE, "out of memory for the report of %d proofs",
                      HR_PROOFS_MOST);
        return hr_cli_fail(&err);
    }
    p->config = config;
    const int code = prove(arguments, p);
    free(p);
    return code;
}

int hr_cli_prove(const hr_cli_arguments *arguments)
{
    return hr_cli_with_config(arguments, with_report);
}
