/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/child.h - runs a whole training run in a child process and returns its outcome.
 *
 * The child is the test program itself, started again, so that its heap holds nothing of the test.
 * Its main() calls child_main when it gets a word and a number as arguments. */
#ifndef HR_TESTS_SUPPORT_CHILD_H
#define HR_TESTS_SUPPORT_CHILD_H

#include <alloca.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "headroom/train.h"

enum { CHILD_STEPS = 64, CHILD_SAMPLE_BYTES = 4096, CHILD_FLAGS = 0x3f /* of exceptions */ };

/* Options of the child. Zeros: plain training. */
typedef struct {
    char metrics[512];
    int64_t interrupt_after; /* steps; -1: before the start */
    int64_t file_bytes_most; /* RLIMIT_FSIZE */
    int64_t preparing_ms;    /* delay at each progress report */
    int64_t host_bytes;      /* of heap and of stack, half each, that its program has used before */
    bool goes_on;            /* from existing checkpoints */
    bool trapped;            /* run under the program named by HR_TRAP; `said` is its output */
} child_wishes;

/* Shared with the child. */
typedef struct {
    hr_config config;
    child_wishes wishes;
    hr_status status;
    hr_error err;
    hr_train_result result;
    hr_train_step steps[CHILD_STEPS];
    int32_t step_count, evaluated_count, saved_count;
    int32_t planning_count; /* signs of progress while planning */
    char sample[CHILD_SAMPLE_BYTES];
    int64_t sample_bytes;
    unsigned mode_before, mode_after; /* of floating point */
    char said[512];                   /* standard error */
} child_outcome;

static child_outcome *child_told;
static volatile sig_atomic_t child_interrupts;

static inline void child_preparing(void *context, const char *work, int64_t bytes_done,
                                   int64_t bytes_total)
{
    (void)context, (void)work, (void)bytes_done, (void)bytes_total;
    poll(NULL, 0, (int)child_told->wishes.preparing_ms);
}

static inline void child_working(void *context, const char *work, int64_t done, int64_t total)
{
    (void)context, (void)total;
    child_told->planning_count += !strcmp(work, "planning") && done > 0;
}

static inline void child_step(void *context, const hr_train_step *step)
{
    (void)context;
    if (child_told->step_count < CHILD_STEPS) child_told->steps[child_told->step_count] = *step;
    child_told->step_count++;
    if (step->step == child_told->wishes.interrupt_after) child_interrupts = 1;
}

static inline void child_evaluated(void *context, int64_t step, double loss, int64_t tokens)
{
    (void)context, (void)step, (void)loss, (void)tokens;
    child_told->evaluated_count++;
}

static inline void child_sample(void *context, const char *text, int64_t bytes)
{
    (void)context;
    child_told->sample_bytes = bytes;
    memcpy(child_told->sample, text,
           (size_t)(bytes < CHILD_SAMPLE_BYTES ? bytes : CHILD_SAMPLE_BYTES));
}

static inline void child_saved(void *context, int64_t step, const char *path)
{
    (void)context, (void)step, (void)path;
    child_told->saved_count++;
}

static void *child_blocks; /* each has the address of the one before it */

/* As a larger program would: blocks that stay, and a stack that has been deep. */
static __attribute__((noinline)) void child_use_memory(int64_t bytes)
{
    volatile char *const deep = alloca((size_t)bytes);
    for (int64_t i = 0; i < bytes; i += 512) deep[i] = 1;
    for (int64_t i = 0; i < bytes; i += 16 << 10) {
        void **block = malloc(16 << 10);
        if (!block) abort();
        *block = child_blocks;
        child_blocks = block;
    }
}

static inline void child_train(void)
{
    const child_wishes *wishes = &child_told->wishes;
    const hr_train_options options = { .size = sizeof options,
                                       .events = { .preparing = child_preparing,
                                                   .working = child_working,
                                                   .step = child_step,
                                                   .evaluated = child_evaluated,
                                                   .sample = child_sample,
                                                   .saved = child_saved },
                                       .metrics = wishes->metrics[0] ? wishes->metrics : NULL,
                                       .fresh = !wishes->goes_on,
                                       .interrupts = &child_interrupts };
    child_interrupts = wishes->interrupt_after < 0;
    if (wishes->file_bytes_most) {
        const rlim_t most = (rlim_t)wishes->file_bytes_most;
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){ most, most })) abort();
    }
    if (wishes->host_bytes) child_use_memory(wishes->host_bytes / 2);
    child_told->mode_before = _mm_getcsr() & ~CHILD_FLAGS;
    child_told->status = hr_train(&child_told->config, &options, &child_told->result,
                                  &child_told->err);
    child_told->mode_after = _mm_getcsr() & ~CHILD_FLAGS;
}

static inline void child_plan_only(void)
{
    const hr_plan_outputs outputs = { .size = sizeof outputs };
    child_told->status = hr_plan_make(&child_told->config, &outputs, &child_told->result.plan,
                                      &child_told->err);
}

static inline void child_map(int memory)
{
    child_told = mmap(0, sizeof *child_told, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (child_told == MAP_FAILED) abort();
}

/* The child's main(). */
static inline int child_main(char **argv)
{
    child_map(atoi(argv[2]));
    if (!strcmp(argv[1], "plan")) child_plan_only();
    else child_train();
    return child_told->status;
}

/* Runs this program again with one word of work. The outcome is valid until the next call. The test
 * fails if the child is killed. */
static inline const child_outcome *child_run_word(const char *word, const hr_config *config,
                                                  child_wishes wishes)
{
    static int memory = -1;
    char number[16], preload[600];
    int ends[2], status = 0;
    if (memory < 0) {
        memory = memfd_create("outcome", 0);
        if (memory < 0 || ftruncate(memory, sizeof *child_told)) abort();
        child_map(memory);
    }
    memset(child_told, 0, sizeof *child_told);
    child_told->config = *config;
    child_told->wishes = wishes;
    snprintf(number, sizeof number, "%d", memory);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", wishes.trapped ? getenv("HR_TRAP") : "");
    if (pipe(ends)) abort();
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execle("/proc/self/exe", "child", word, number, (char *)0, (char *[]){ preload, 0 });
        _exit(127);
    }
    close(ends[1]);
    for (size_t length = 0;;) {
        const ssize_t got = read(ends[0], child_told->said + length,
                                 sizeof child_told->said - 1 - length);
        if (got <= 0) break;
        length += (size_t)got;
    }
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != (int)child_told->status) {
        fprintf(stderr, "the run ended with wait status %d: %s%s\n", status, child_told->said,
                child_told->err.message);
        abort();
    }
    return child_told;
}

static inline const child_outcome *child_run(const hr_config *config, child_wishes wishes)
{
    return child_run_word("train", config, wishes);
}

/* Plans in a child process. */
static inline const child_outcome *child_plan(const hr_config *config)
{
    return child_run_word("plan", config, (child_wishes){ 0 });
}

#endif
