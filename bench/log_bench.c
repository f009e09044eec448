/* SPDX-License-Identifier: Apache-2.0 */
/* bench/log_bench.c - the cost of logging a step: a line of metrics.jsonl and an event for
 * TensorBoard. Best of a few rounds.
 *
 *     log_bench [folder [steps]]
 *
 * Leaves metrics.jsonl and tensorboard/ in the folder (/tmp/log-bench), as of a run that was killed
 * at three quarters and resumed from a half: input for tools/tensorboard-check. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/random.h"
#include "telemetry/metrics.h"
#include "telemetry/tensorboard.h"

enum { ROUNDS = 5 };

typedef struct {
    hr_metrics metrics;
    hr_tensorboard board;
    char metrics_path[512], board_path[512];
    char line[HR_METRICS_BYTES], buffer[HR_TENSORBOARD_BYTES];
    int64_t line_ns, event_ns; /* total time of each */
} bench;

static void good(hr_status status, const hr_error *err)
{
    if (status == HR_OK) return;
    fprintf(stderr, "%s\n", err->message);
    exit(status);
}

static double wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void open_logs(bench *b, int64_t keep_bytes, int64_t first_step)
{
    hr_error err;
    if (keep_bytes)
        good(hr_metrics_continue(&b->metrics, b->metrics_path, keep_bytes, b->line, &err), &err);
    else good(hr_metrics_open(&b->metrics, b->metrics_path, b->line, &err), &err);
    good(hr_tensorboard_open(&b->board, b->board_path, first_step, wall_seconds(), b->buffer, &err),
         &err);
}

/* Realistic numbers; those that are computed depend only on the step. */
static hr_metrics_step step_of(int64_t step, double start)
{
    const double noise = (double)(hr_random_mix((uint64_t)step) >> 11) * 0x1p-53;
    return (hr_metrics_step){ .step = step,
                              .loss = 2.5 + 8.5 / (1 + (double)step / 200) + 0.1 * noise,
                              .lr = 3e-4 / sqrt((double)step),
                              .grad_norm = step % 97 ? 0.5 + noise : (double)NAN,
                              .tokens = step * 2048,
                              .tokens_per_second = 9000 + wall_seconds() - start,
                              .seconds = wall_seconds() - start,
                              .pulls = true,
                              .z_loss = 1e-4 * noise,
                              .fraction_of_ceiling = 0.4 + 0.1 * noise };
}

static void write_steps(bench *b, int64_t first, int64_t last)
{
    hr_error err;
    const double start = wall_seconds();
    for (int64_t i = first; i <= last; i++) {
        const hr_metrics_step step = step_of(i, start);
        const int64_t before_ns = hr_clock_ns();
        good(hr_metrics_write_step(&b->metrics, &step, &err), &err);
        const int64_t between_ns = hr_clock_ns();
        good(hr_tensorboard_write_step(&b->board, wall_seconds(), &step, &err), &err);
        b->event_ns += hr_clock_ns() - between_ns;
        b->line_ns += between_ns - before_ns;
        if (i % 100) continue;
        good(hr_metrics_write_evaluation(&b->metrics, i, step.loss + 0.1, 4096, &err), &err);
        good(hr_tensorboard_write_evaluation(&b->board, wall_seconds(), i, step.loss + 0.1, &err),
             &err);
    }
}

/* A checkpoint at a half, and a kill at three quarters that the checkpoint does not include. */
static void one_round(bench *b, int64_t steps)
{
    hr_error err;
    open_logs(b, 0, 1);
    write_steps(b, 1, steps / 2);
    good(hr_tensorboard_push(&b->board, &err), &err);
    const int64_t keep_bytes = b->metrics.bytes;
    write_steps(b, steps / 2 + 1, steps * 3 / 4);
    good(hr_metrics_close(&b->metrics, &err), &err);
    good(hr_tensorboard_close(&b->board, &err), &err);
    open_logs(b, keep_bytes, steps / 2 + 1);
    write_steps(b, steps / 2 + 1, steps);
    good(hr_metrics_close(&b->metrics, &err), &err);
    good(hr_tensorboard_close(&b->board, &err), &err);
}

int main(int argc, char **argv)
{
    static bench b;
    const char *folder = argc > 1 ? argv[1] : "/tmp/log-bench";
    const int64_t steps = argc > 2 ? atoll(argv[2]) : 10000;
    int64_t line_ns = INT64_MAX, event_ns = INT64_MAX;
    mkdir(folder, 0777);
    snprintf(b.metrics_path, sizeof b.metrics_path, "%.400s/metrics.jsonl", folder);
    snprintf(b.board_path, sizeof b.board_path, "%.400s/tensorboard", folder);
    for (int32_t i = 0; i < ROUNDS; i++) {
        b.line_ns = b.event_ns = 0;
        one_round(&b, steps);
        line_ns = hr_min(line_ns, b.line_ns);
        event_ns = hr_min(event_ns, b.event_ns);
    }
    const double written = (double)(steps + steps / 4);
    const double line_us = (double)line_ns * 1e-3 / written;
    const double event_us = (double)event_ns * 1e-3 / written;
    printf("a line %.2f us, an event %.2f us: at most 0.5 %% of steps of %.2f ms and more\n",
           line_us, event_us, (line_us + event_us) / 0.005 * 1e-3);
}
