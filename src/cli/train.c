/* SPDX-License-Identifier: Apache-2.0 */
/* cli/train.c - headroom train: prints what the run tells. After the seal nothing may allocate:
 * standard output has a buffer of its own (main.c), and the rest is system calls. */
#include "headroom/train.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "headroom/progress.h"

static volatile sig_atomic_t interrupts, last_signal, saves, reports;

/* The first lets the run save and end; the second does not wait for that. What is half written has
 * no name yet. But timeout(1) and batch queues send SIGTERM to a process and once more to its
 * group: that is one request. */
static void interrupted(int number)
{
    static const char said[] = "\nheadroom: stopped at once; what was not saved yet is lost\n";
    if (number == SIGTERM && last_signal == SIGTERM) return;
    last_signal = number;
    interrupts = interrupts + 1;
    if (interrupts <= 1) return;
    (void)!write(STDERR_FILENO, said, sizeof said - 1);
    _exit(128 + number);
}

static void asked(int number)
{
    if (number == SIGUSR1) saves = saves + 1;
    else reports = reports + 1;
}

/* One after the other: they are counted. */
static void catch_two(void (*handler)(int), int first, int second)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, first);
    sigaddset(&action.sa_mask, second);
    sigaction(first, &action, NULL);
    sigaction(second, &action, NULL);
}

/* A terminal that goes away takes nothing with it. */
static void catch_requests(void)
{
    catch_two(asked, SIGUSR1, SIGUSR2);
    signal(SIGHUP, SIG_IGN);
}

typedef struct {
    hr_progress progress;
    int64_t process_bytes;
    char trouble[HR_ERROR_BYTES]; /* told last */
} screen;

enum { LINES_A_RUN = 10 };

static void show_preparing(void *context, const char *work, int64_t bytes_done, int64_t bytes_total)
{
    screen *s = context;
    char text[HR_PROGRESS_BYTES];
    snprintf(text, sizeof text, "%s: %.0f of %.0f MB", work, (double)bytes_done / 1e6,
             (double)bytes_total / 1e6);
    hr_progress_note(&s->progress, text, hr_cli_now_ns());
}

static void show_plan(void *context, const hr_plan_answer *plan)
{
    screen *s = context;
    char process[64], arena[64];
    catch_two(interrupted, SIGINT, SIGTERM); /* until here nothing was begun: main.c answered */
    s->process_bytes = plan->process_bytes;
    if (plan->trained_parameters != plan->parameters)
        printf("plan   %lld of %lld parameters train\n", (long long)plan->trained_parameters,
               (long long)plan->parameters);
    printf("plan   %lld parameters, micro-batch %lld, loss chunk %lld tokens, %d thread%s, %s "
           "kernels\n",
           (long long)plan->parameters, (long long)plan->micro_batch, (long long)plan->loss_chunk,
           plan->threads, plan->threads == 1 ? "" : "s", plan->rung);
    printf("plan   process %s, of which arena %s\n", hr_bytes_print(plan->process_bytes, process),
           hr_bytes_print(plan->arena_bytes, arena));
    fflush(stdout);
}

static void show_text(void *context, const char *line)
{
    screen *s = context;
    hr_progress_end(&s->progress);
    printf("%s\n", line);
    fflush(stdout);
}

/* Seconds that the steps to come take at the mean speed so far. */
static double seconds_left(const hr_train_step *step)
{
    return step->seconds / (double)step->step * (double)(step->steps - step->step);
}

static void show_step(void *context, const hr_train_step *step)
{
    screen *s = context;
    const hr_progress_line line = { .step = step->step,
                                    .steps = step->steps,
                                    .loss = step->loss,
                                    .tokens_per_second = step->tokens_per_second,
                                    .seconds_left = seconds_left(step),
                                    .used_bytes = hr_progress_resident_bytes(),
                                    .planned_bytes = s->process_bytes };
    const int64_t every = step->steps > LINES_A_RUN ? step->steps / LINES_A_RUN : 1;
    const bool kept = step->step == 1 || step->step % every == 0 || step->step == step->steps;
    if (!kept) {
        hr_progress_show(&s->progress, &line, hr_cli_now_ns());
        return;
    }
    char text[HR_PROGRESS_BYTES];
    hr_progress_print(&line, text);
    show_text(context, text);
}

static void show_evaluated(void *context, int64_t step, double loss, int64_t tokens)
{
    char line[128];
    snprintf(line, sizeof line, "step %lld  validation loss %.4f over %lld tokens", (long long)step,
             loss, (long long)tokens);
    show_text(context, line);
}

static void show_sample(void *context, const char *text, int64_t bytes)
{
    show_text(context, "sample");
    hr_cli_put_text(text, bytes);
    show_text(context, "");
}

static void show_saved(void *context, const char *path)
{
    char line[1100];
    snprintf(line, sizeof line, "saved  %s", path);
    show_text(context, line);
}

static void show_trouble(void *context, const char *line)
{
    screen *s = context;
    hr_progress_end(&s->progress);
    fflush(stdout);
    fprintf(stderr, "headroom: %s\n", line);
    snprintf(s->trouble, sizeof s->trouble, "%s", line);
}

/* What ended the run may have been told while it went on: once is enough. */
static int fail(const screen *s, const hr_error *err)
{
    return strcmp(s->trouble, err->message) ? hr_cli_fail(err) : (int)err->status;
}

static void print_result(const hr_train_result *result)
{
    char planned[64], measured[64];
    if (result->steps == 0 || result->process_bytes_measured <= 0) return;
    printf("memory planned %s, measured %s; arena planned %lld, used %lld\n",
           hr_bytes_print(result->process_bytes_planned, planned),
           hr_bytes_print(result->process_bytes_measured, measured),
           (long long)result->arena_bytes_planned, (long long)result->arena_bytes_used);
}

/* Nobody may be there any more to read how the run went, and it went all the same. */
static void forgive_reader(void)
{
    if (fflush(stdout) == 0 || (errno != EPIPE && errno != EIO)) return;
    __fpurge(stdout);
    clearerr(stdout);
}

int hr_cli_train(const hr_cli_arguments *arguments)
{
    hr_config config;
    hr_error err;
    hr_train_result result;
    char calibrations[HR_PATH_BYTES];
    int64_t cache_limit_bytes;
    screen s = { .progress = hr_progress_begin(STDERR_FILENO) };
    catch_requests();
    if (hr_cli_recipe(arguments, &config, &err) != HR_OK ||
        hr_cli_take_cache(&config, &cache_limit_bytes, &err) != HR_OK)
        return hr_cli_fail(&err);
    const hr_train_options options = {
        .events = { .context = &s,
                    .preparing = show_preparing,
                    .planned = show_plan,
                    .text = show_text,
                    .step = show_step,
                    .evaluated = show_evaluated,
                    .sample = show_sample,
                    .saved = show_saved,
                    .trouble = show_trouble },
        .calibrations = hr_cli_calibrations(calibrations, sizeof calibrations),
        .cache_limit_bytes = cache_limit_bytes,
        .metrics = arguments->values[HR_OPTION_METRICS],
        .fresh = arguments->values[HR_OPTION_FRESH],
        .allowed = arguments->repeated,
        .allowed_count = arguments->repeated_count,
        .interrupts = &interrupts,
        .signal = &last_signal,
        .saves = &saves,
        .reports = &reports,
    };
    const hr_status status = hr_train(&config, &options, &result, &err);
    hr_progress_end(&s.progress);
    print_result(&result);
    forgive_reader();
    if (status == HR_OK) return HR_OK;
    fflush(stdout);
    const int code = fail(&s, &err);
    /* Without a signal its time was over, which is as SIGTERM. */
    return status == HR_INTERRUPTED && !result.saved
               ? 128 + (last_signal ? (int)last_signal : SIGTERM)
               : code;
}
