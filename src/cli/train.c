/* SPDX-License-Identifier: Apache-2.0 */
/* cli/train.c - headroom train: prints the messages of a run. Nothing may allocate after the seal,
 * so standard output has a static buffer (main.c), and all else is system calls. */
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

static volatile sig_atomic_t saves, reports;

static void asked(int number)
{
    if (number == SIGUSR1) saves = saves + 1;
    else reports = reports + 1;
}

/* A closed terminal must not end the run. */
static void catch_requests(void)
{
    hr_cli_catch(asked, SIGUSR1, SIGUSR2);
    signal(SIGHUP, SIG_IGN);
}

typedef struct {
    hr_progress progress;
    hr_cli_work work;
    int64_t process_bytes;
    bool quiet, blocks;
    hr_progress_curve curve;
    double valid;                            /* of the last evaluation; 0: none */
    bool saves;                              /* the run has an output directory */
    char trouble[HR_ERROR_BYTES];            /* last reported problem */
    const char *refused[HR_CLI_REPEATS_MAX]; /* [refused_count] keys; they must outlive the run */
    int32_t refused_count;                   /* can exceed the capacity of `refused` */
} screen;

enum { LINES_A_RUN = 10 };

static void show_preparing(void *context, const char *work, int64_t bytes_done, int64_t bytes_total)
{
    screen *s = context;
    if (!s->quiet) hr_cli_show_bytes(&s->progress, work, bytes_done, bytes_total);
}

static void show_working(void *context, const char *work, int64_t done, int64_t total)
{
    screen *s = context;
    if (!s->quiet) hr_cli_show_work(&s->progress, &s->work, work, done, total);
}

static void show_plan(void *context, const hr_plan_answer *plan)
{
    screen *s = context;
    char process[64], arena[64];
    hr_progress_end(&s->progress);
    /* Before this point nothing had started, and the handlers of main.c applied. A second signal
     * may end the run at any time, because files get their names only when complete. */
    hr_cli_catch_signals(
        plan->file_bytes
            ? "\nheadroom: stopped at once; steps since the last checkpoint are lost, and the file "
              "of moments is left: scratch*.tmp, in memory.file_dir or --out\n"
            : "\nheadroom: stopped at once; steps since the last checkpoint are lost\n");
    s->process_bytes = plan->process_bytes;
    if (plan->trained_parameters != plan->parameters)
        printf("plan   %s of %s parameters are trained\n", hr_cli_count(plan->trained_parameters),
               hr_cli_count(plan->parameters));
    printf(
        "plan   %s parameters, micro-batch %lld, loss chunk %s tokens, %d thread%s, %s kernels\n",
        hr_cli_count(plan->parameters), (long long)plan->micro_batch,
        hr_cli_count(plan->loss_chunk), plan->threads, plan->threads == 1 ? "" : "s", plan->rung);
    printf("plan   process memory %s, of which arena %s\n",
           hr_bytes_print(plan->process_bytes, process), hr_bytes_print(plan->arena_bytes, arena));
    if (!s->saves) printf("out    none: no weights are saved; use --out DIR to save them\n");
    fflush(stdout);
}

static void show_text(void *context, const char *line)
{
    screen *s = context;
    hr_progress_end(&s->progress);
    printf("%s\n", line);
    fflush(stdout);
}

static void show_step(void *context, const hr_train_step *step)
{
    screen *s = context;
    hr_progress_line line = { .step = step->step,
                              .steps = step->steps,
                              .loss = step->loss,
                              .no_targets = step->targets == 0,
                              .tokens_per_second = step->tokens_per_second,
                              .seconds_left = step->seconds_left,
                              .used_bytes = hr_progress_resident_bytes(),
                              .planned_bytes = s->process_bytes,
                              .fraction_of_ceiling = step->fraction_of_ceiling };
    if (s->quiet) return;
    hr_progress_curve_add(&s->curve, step->loss);
    const int64_t every = step->steps > LINES_A_RUN ? step->steps / LINES_A_RUN : 1;
    const bool kept = step->step == 1 || step->step % every == 0 || step->step == step->steps;
    if (!kept) { /* what else is known, in the line that is rewritten */
        line.valid = s->valid;
        line.saved = step->saved_step;
        line.curve = s->blocks ? &s->curve : NULL;
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
    screen *s = context;
    s->valid = tokens ? loss : 0;
    if (tokens)
        snprintf(line, sizeof line, "step %lld  validation loss %.4f over %s tokens",
                 (long long)step, loss, hr_cli_count(tokens));
    else
        snprintf(line, sizeof line, "step %lld  no validation loss: no token was a target",
                 (long long)step);
    show_text(context, line);
}

static void show_sample(void *context, const char *text, int64_t bytes)
{
    show_text(context, "sample");
    hr_cli_put_text(text, bytes);
    show_text(context, "");
}

static void show_saved(void *context, int64_t step, const char *path)
{
    char line[1100];
    snprintf(line, sizeof line, "saved  %s at step %lld", path, (long long)step);
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

static void note_refused(void *context, const char *key)
{
    screen *s = context;
    for (int32_t i = 0; i < s->refused_count && i < HR_CLI_REPEATS_MAX; i++)
        if (!strcmp(s->refused[i], key)) return;
    if (s->refused_count < HR_CLI_REPEATS_MAX) s->refused[s->refused_count] = key;
    s->refused_count++;
}

/* Prints the complete command that resumes the run with the refused changes. */
static void print_command(const screen *s, const hr_cli_arguments *arguments)
{
    const int32_t count = arguments->repeated_count + s->refused_count;
    if (!s->refused_count || count > HR_CLI_REPEATS_MAX) return;
    fprintf(stderr, "headroom: to go on with %s, type:\n  ",
            s->refused_count == 1 ? "this change" : "these changes");
    hr_cli_put_command(stderr, arguments);
    for (int32_t i = 0; i < s->refused_count; i++)
        fprintf(stderr, " --%s %s", hr_cli_option_at(HR_OPTION_ALLOW_CHANGE)->name, s->refused[i]);
    fputc('\n', stderr);
}

/* Reports the error, unless the run has already reported it as a problem. */
static int fail(const screen *s, const hr_error *err)
{
    return strcmp(s->trouble, err->message) ? hr_cli_fail(err) : (int)err->status;
}

static void print_result(const screen *s, const hr_train_result *result)
{
    char planned[64], measured[64];
    if (result->steps == 0 || result->process_bytes_measured <= 0) return;
    if (!s->saves) printf("saved  nothing: the run had no --out DIR\n");
    printf("memory planned %s, measured %s\narena  planned %s bytes, used %s bytes\n",
           hr_bytes_print(result->process_bytes_planned, planned),
           hr_bytes_print(result->process_bytes_measured, measured),
           hr_cli_count(result->arena_bytes_planned), hr_cli_count(result->arena_bytes_used));
    if (result->read_bytes)
        hr_cli_put_reads(stdout, result->read_bytes, result->read_seconds,
                         result->read_waited_seconds);
}

/* Ignores write errors of standard output if the reader is gone: the run itself succeeded. */
static void ignore_closed_reader(void)
{
    if (fflush(stdout) == 0 || (errno != EPIPE && errno != EIO)) return;
    __fpurge(stdout);
    clearerr(stdout);
}

static int train(const hr_cli_arguments *arguments, hr_config *config)
{
    hr_error err;
    hr_train_result result;
    char calibrations[HR_PATH_BYTES];
    int64_t cache_limit_bytes;
    screen s = { .progress = hr_progress_begin(STDERR_FILENO) };
    catch_requests();
    if (hr_cli_recipe(arguments, config, &err) != HR_OK ||
        hr_cli_take_cache(config, &cache_limit_bytes, &err) != HR_OK)
        return hr_cli_fail(&err);
    s.saves = *hr_config_text(config, "train.out") != 0;
    s.quiet = arguments->values[HR_OPTION_QUIET];
    s.blocks = hr_cli_has_blocks();
    for (int32_t i = 0; i < arguments->repeated_count; i++)
        (void)hr_cli_key_name(arguments->repeated[i]); /* warns if the name is deprecated */
    const hr_cli_signals *signals = hr_cli_received_signals();
    const hr_train_options options = {
        .size = sizeof options,
        .events = { .context = &s,
                    .preparing = show_preparing,
                    .working = show_working,
                    .planned = show_plan,
                    .text = show_text,
                    .step = show_step,
                    .evaluated = show_evaluated,
                    .sample = show_sample,
                    .saved = show_saved,
                    .trouble = show_trouble,
                    .refused = note_refused },
        .calibrations = hr_cli_calibrations(calibrations, sizeof calibrations),
        .cache_limit_bytes = cache_limit_bytes,
        .metrics = arguments->values[HR_OPTION_METRICS],
        .fresh = arguments->values[HR_OPTION_FRESH],
        .allowed = arguments->repeated,
        .allowed_count = arguments->repeated_count,
        .interrupts = &signals->interrupts,
        .signal = &signals->number,
        .saves = &saves,
        .reports = &reports,
    };
    const hr_status status = hr_train(config, &options, &result, &err);
    hr_progress_end(&s.progress);
    print_result(&s, &result);
    ignore_closed_reader();
    if (status == HR_OK) return HR_OK;
    fflush(stdout);
    const int code = fail(&s, &err);
    print_command(&s, arguments);
    /* Without a signal, the time limit ended the run; the exit code is that of SIGTERM. */
    return status == HR_INTERRUPTED && !result.saved
               ? 128 + (signals->number ? (int)signals->number : SIGTERM)
               : code;
}

int hr_cli_train(const hr_cli_arguments *arguments)
{
    return hr_cli_with_config(arguments, train);
}
