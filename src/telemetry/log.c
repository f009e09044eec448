/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry/log.c - sends each event to all outputs. */
#include "telemetry/log.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "checkpoint/checkpoint_store.h"

const char hr_log_name[] = "metrics.jsonl";

int64_t hr_log_bytes(void)
{
    return HR_METRICS_BYTES + HR_TENSORBOARD_BYTES + 2 * 64;
}

/* If the file of a resumed run is missing, reports it and starts a new one. */
static hr_status open_lines(hr_metrics *lines, const char *path, int64_t kept_bytes,
                            const hr_train_events *events, hr_error *err)
{
    char line[HR_PATH_BYTES + 128];
    const bool is_there = hr_file_exists(path);
    if (kept_bytes && !is_there && events->trouble) {
        snprintf(line, sizeof line, "%.1000s: is missing (it had %lld bytes) and is started anew",
                 path, (long long)kept_bytes);
        events->trouble(events->context, line);
    }
    if (kept_bytes && is_there)
        return hr_metrics_continue(lines, path, kept_bytes, lines->line, err);
    const hr_status status = hr_metrics_check(path, lines->line, err);
    return status == HR_OK ? hr_metrics_open(lines, path, lines->line, err) : status;
}

static hr_status open_folder(hr_log *log, const char *out, const hr_run_state *from, char *buffer,
                             hr_error *err)
{
    const int64_t first_step = from ? from->step + 1 : 1;
    hr_status status = hr_path_join(out, hr_log_name, log->path, sizeof log->path, err);
    if (status == HR_OK)
        status = hr_path_join(out, "tensorboard", log->directory, sizeof log->directory, err);
    if (status == HR_OK)
        status = open_lines(&log->log, log->path, from ? from->log_bytes : 0, log->events, err);
    if (status != HR_OK) return status;
    return hr_tensorboard_open(&log->board, log->directory, first_step, hr_clock_wall_seconds(),
                               buffer, err);
}

hr_status hr_log_check_metrics(const char *out, const char *metrics, hr_error *err)
{
    char own[HR_PATH_BYTES + 32];
    if (!metrics || !hr_metrics_has_save(metrics)) return HR_OK;
    if (*out) {
        const hr_status status = hr_path_join(out, hr_log_name, own, sizeof own, err);
        if (status != HR_OK || hr_file_is_one(own, metrics)) return status;
    }
    return hr_fail(err, HR_USAGE, "--metrics %s: is the log of another run; give another file",
                   metrics);
}

hr_status hr_log_open(hr_log *log, const hr_train_events *events, const char *out,
                      const char *metrics, const hr_run_state *from, int64_t room,
                      hr_region *region, hr_error *err)
{
    char *line = hr_region_take(region, HR_METRICS_BYTES, 1);
    char *buffer = hr_region_take(region, HR_TENSORBOARD_BYTES, 1);
    if (!line || !buffer) return hr_fail(err, HR_FAILURE, "out of memory for the log");
    log->events = events;
    log->log = log->metrics = (hr_metrics){ .fd = -1, .line = line };
    log->board = (hr_tensorboard){ .fd = -1 };
    hr_status status = *out ? open_folder(log, out, from, buffer, err) : HR_OK;
    if (status == HR_OK && metrics)
        status = open_lines(&log->metrics, metrics, from ? from->metrics_bytes : 0, events, err);
    if (status == HR_OK && hr_metrics_are_one(&log->log, &log->metrics))
        status = hr_fail(err, HR_USAGE, "--metrics %s: is the log of --out; give another file",
                         metrics);
    log->most_bytes = room < 0 ? INT64_MAX : log->log.bytes + log->board.bytes + room;
    if (status == HR_OK) status = hr_metrics_claim(&log->log, err);
    return status == HR_OK ? hr_metrics_claim(&log->metrics, err) : status;
}

static void report_failure(hr_log *log, hr_status status, const hr_error *err)
{
    if (status == HR_OK) return;
    if (!log->failure_reported && log->events->trouble)
        log->events->trouble(log->events->context, err->message);
    log->failure_reported = true;
}

/* Whether the files in train.out may grow by a line; they keep a block for the last ones. */
static bool has_room(hr_log *log)
{
    enum { LAST_BYTES = 4096 };
    hr_error err;
    const int64_t bytes = log->log.bytes + log->board.bytes + log->board.used;
    if (!log->events || log->most_bytes - bytes > LAST_BYTES) return true;
    report_failure(log,
                   hr_fail(&err, HR_FAILURE,
                           "%.1000s: has no more room beside the checkpoints: later steps are "
                           "left out",
                           log->path),
                   &err);
    return false;
}

void hr_log_step(hr_log *log, const hr_metrics_step *step)
{
    hr_error err;
    report_failure(log, hr_metrics_write_step(&log->metrics, step, &err), &err);
    if (!has_room(log)) return;
    report_failure(log, hr_metrics_write_step(&log->log, step, &err), &err);
    report_failure(log, hr_tensorboard_write_step(&log->board, hr_clock_wall_seconds(), step, &err),
                   &err);
}

void hr_log_evaluation(hr_log *log, int64_t step, double valid_loss, int64_t tokens)
{
    hr_error err;
    if (!has_room(log)) return;
    report_failure(log, hr_metrics_write_evaluation(&log->log, step, valid_loss, tokens, &err),
                   &err);
    if (tokens == 0) return; /* without a loss there is no point to plot */
    report_failure(log,
                   hr_tensorboard_write_evaluation(&log->board, hr_clock_wall_seconds(), step,
                                                   valid_loss, &err),
                   &err);
}

void hr_log_sample(hr_log *log, int64_t step, const char *text, int64_t bytes)
{
    hr_error err;
    if (!has_room(log)) return;
    report_failure(log, hr_metrics_write_sample(&log->log, step, text, bytes, &err), &err);
}

void hr_log_save(hr_log *log, int64_t step, double seconds)
{
    hr_error err;
    char name[HR_STEP_NAME_BYTES];
    report_failure(
        log, hr_metrics_write_save(&log->log, step, hr_step_name(step, name), seconds, &err), &err);
}

void hr_log_signal(hr_log *log, int64_t step, const char *signal)
{
    hr_error err;
    if (!log->events) return;
    report_failure(log, hr_metrics_write_signal(&log->log, step, signal, &err), &err);
}

void hr_log_trouble(hr_log *log, int64_t step, const char *what)
{
    hr_error err;
    if (!log->events) return;
    report_failure(log, hr_metrics_write_trouble(&log->log, step, what, &err), &err);
}

void hr_log_note(hr_log *log, hr_run_state *state)
{
    hr_error err;
    report_failure(log, hr_tensorboard_push(&log->board, &err), &err);
    report_failure(log, hr_metrics_check_name(&log->log, &err), &err);
    report_failure(log, hr_metrics_check_name(&log->metrics, &err), &err);
    state->log_bytes = log->log.bytes;
    state->metrics_bytes = log->metrics.bytes;
}

hr_status hr_log_flush(const hr_log *log, hr_error *err)
{
    hr_status status = hr_metrics_flush(&log->log, err);
    if (status == HR_OK) status = hr_metrics_flush(&log->metrics, err);
    return status == HR_OK ? hr_tensorboard_flush(&log->board, err) : status;
}

hr_status hr_log_follow(hr_log *log, int64_t first_step, hr_error *err)
{
    int file;
    int64_t bytes = 0;
    hr_error ignored;
    hr_metrics lines = { .fd = -1, .line = log->log.line };
    if (hr_file_open(log->path, &file, &bytes, &ignored) == HR_OK) hr_file_close(&file);
    const hr_status status = open_lines(&lines, log->path, bytes, log->events, err);
    if (status != HR_OK) return status;
    (void)!hr_metrics_close(&log->log, &ignored);
    (void)!hr_tensorboard_close(&log->board, &ignored);
    log->log = lines;
    return hr_tensorboard_open(&log->board, log->directory, first_step, hr_clock_wall_seconds(),
                               log->board.buffer, err);
}

void hr_log_rewind(hr_log *log, const hr_run_state *state)
{
    hr_error err;
    hr_metrics_cut(&log->log, state->log_bytes);
    hr_metrics_cut(&log->metrics, state->metrics_bytes);
    report_failure(
        log, hr_tensorboard_restart(&log->board, hr_clock_wall_seconds(), state->step + 1, &err),
        &err);
}

hr_status hr_log_end(hr_log *log, const hr_metrics_last *last, hr_error *err)
{
    hr_status status = hr_metrics_write_last(&log->log, last, err);
    if (status == HR_OK) status = hr_metrics_write_last(&log->metrics, last, err);
    if (status == HR_OK) status = hr_metrics_close(&log->log, err);
    if (status == HR_OK) status = hr_metrics_close(&log->metrics, err);
    return status == HR_OK ? hr_tensorboard_close(&log->board, err) : status;
}

void hr_log_close(hr_log *log)
{
    hr_error ignored;
    if (!log->events) return;
    (void)!hr_metrics_close(&log->log, &ignored);
    (void)!hr_metrics_close(&log->metrics, &ignored);
    (void)!hr_tensorboard_close(&log->board, &ignored);
}
