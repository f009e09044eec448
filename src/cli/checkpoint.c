/* SPDX-License-Identifier: Apache-2.0 */
/* cli/checkpoint.c - headroom checkpoint list, verify and prune. */
#include "headroom/checkpoint.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "cli.h"
#include "headroom/progress.h"

typedef struct {
    hr_progress progress;
    json_t *all; /* null: print text */
    bool thorough;
    int64_t printed;
} screen;

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void add(screen *s, const hr_checkpoint *c)
{
    json_t *one = json_pack("{s:I, s:b}", "step", (json_int_t)c->step,
                            s->thorough ? "whole" : "readable", !c->problem);
    if (c->problem) {
        json_object_set_new(one, "problem", hr_cli_json_string(c->problem));
    } else {
        json_object_set_new(one, "steps", json_integer(c->steps));
        json_object_set_new(one, "tokens", json_integer(c->tokens));
        json_object_set_new(one, "bytes", json_integer(c->bytes));
        json_object_set_new(one, "loss", real(c->last_loss));
        json_object_set_new(one, "valid_loss", real(c->valid_loss));
        json_object_set_new(one, "best", json_boolean(c->is_best));
        json_object_set_new(one, "kernels", json_string(c->kernels));
    }
    json_array_append_new(s->all, one);
}

static void print(screen *s, const hr_checkpoint *c)
{
    char valid[32] = "-", loss[32] = "-";
    if (!s->printed++)
        printf("%12s %17s %17s %11s %11s\n", "step", "tokens", "bytes", "train loss", "valid loss");
    if (c->problem) {
        printf("%12s  damaged: %s\n", hr_cli_count(c->step), c->problem);
        return;
    }
    if (isfinite(c->valid_loss)) snprintf(valid, sizeof valid, "%.4f", c->valid_loss);
    if (isfinite(c->last_loss)) snprintf(loss, sizeof loss, "%.4f", c->last_loss);
    printf("%12s %17s %17s %11s %11s%s%s\n", hr_cli_count(c->step), hr_cli_count(c->tokens),
           hr_cli_count(c->bytes), loss, valid, c->is_best ? "  best" : "",
           s->thorough ? "  intact" : "");
}

static void show(void *context, const hr_checkpoint *checkpoint)
{
    screen *s = context;
    hr_progress_end(&s->progress);
    if (s->all) add(s, checkpoint);
    else print(s, checkpoint);
}

static void show_reading(void *context, int64_t bytes_done, int64_t bytes_total)
{
    screen *s = context;
    char text[HR_PROGRESS_BYTES];
    hr_cli_progress_text("reading", bytes_done, bytes_total, text);
    hr_progress_note(&s->progress, text, hr_cli_now_ns());
}

static void show_removed(void *context, const char *name)
{
    screen *s = context;
    hr_progress_end(&s->progress);
    printf("removed  %s\n", name);
}

static int end(hr_status status, const hr_error *err)
{
    if (status == HR_INTERRUPTED) return hr_cli_signal_code();
    return status == HR_OK ? HR_OK : hr_cli_fail(err);
}

static int list(const hr_cli_arguments *arguments, bool thorough)
{
    hr_error err;
    screen s = { .progress = hr_progress_begin(STDERR_FILENO), .thorough = thorough };
    const hr_checkpoint_events events = { .context = &s, .found = show, .reading = show_reading };
    if (arguments->values[HR_OPTION_JSON]) s.all = json_array();
    const hr_status status = hr_checkpoint_list(arguments->operands[0], thorough, &events,
                                                hr_cli_catch_signals(NULL), &err);
    hr_progress_end(&s.progress);
    if (s.all && (status == HR_OK || status == HR_CORRUPT)) {
        json_dumpf(s.all, stdout, JSON_INDENT(2));
        printf("\n");
    }
    json_decref(s.all);
    return end(status, &err);
}

int hr_cli_checkpoint_list(const hr_cli_arguments *arguments)
{
    return list(arguments, false);
}

int hr_cli_checkpoint_verify(const hr_cli_arguments *arguments)
{
    return list(arguments, true);
}

int hr_cli_checkpoint_prune(const hr_cli_arguments *arguments)
{
    hr_error err;
    screen s = { .progress = hr_progress_begin(STDERR_FILENO) };
    const hr_checkpoint_events events = {
        .context = &s, .found = show, .reading = show_reading, .removed = show_removed
    };
    const hr_status status = hr_checkpoint_prune(arguments->operands[0], arguments->operands + 1,
                                                 arguments->operand_count - 1, &events,
                                                 hr_cli_catch_signals(NULL), &err);
    hr_progress_end(&s.progress);
    return end(status, &err);
}
