/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/program.h - runs the headroom program with /bin/sh in a test folder, and reads its
 * exit code and output. Can send it a signal at a line of its output. HEADROOM names the program;
 * without it the tests are skipped. */
#ifndef HR_TESTS_SUPPORT_PROGRAM_H
#define HR_TESTS_SUPPORT_PROGRAM_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "require.h"

enum { PROGRAM_TEXT_BYTES = 1 << 18, PROGRAM_COMMAND_BYTES = 4096 };

static char program_folder[64];
static char out[PROGRAM_TEXT_BYTES], err[PROGRAM_TEXT_BYTES]; /* of the last run */

/* A tiny model: a plan takes about a millisecond, a run little more. */
static const char tiny[] = "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32}\n"
                           "train: {batch: 4, seq_len: 16, steps: 3, threads: 1}\n";

static inline int make_folder(void **state)
{
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(program_folder, sizeof program_folder, "%.40s/cli_XXXXXX", parent ? parent : P_tmpdir);
    return mkdtemp(program_folder) && chdir(program_folder) == 0 ? 0 : -1;
}

static inline int drop_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", program_folder);
    return chdir("/") == 0 ? system(command) : -1;
}

#define IN_A_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)

static inline void put_bytes(const char *name, const char *bytes, size_t count)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static inline void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static inline void get(const char *name, char *text)
{
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    const size_t length = fread(text, 1, PROGRAM_TEXT_BYTES - 1, file);
    text[length] = 0;
    fclose(file);
}

static inline void require_program(void)
{
    if (!getenv("HEADROOM")) hr_test_skip("program", "HEADROOM does not name the program");
}

/* Runs `headroom <arguments>` in the folder; returns its exit code. */
static inline __attribute__((format(printf, 1, 2))) int run(const char *format, ...)
{
    char arguments[PROGRAM_COMMAND_BYTES - 64], command[PROGRAM_COMMAND_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    snprintf(command, sizeof command, "\"$HEADROOM\" %s >out.txt 2>err.txt", arguments);
    const int status = system(command);
    get("out.txt", out);
    get("err.txt", err);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Writes the tiny recipe and a text of some thousand bytes to the folder. */
static inline void put_tiny_and_text(void)
{
    put("tiny.yaml", tiny);
    assert_int_equal(run("keys"), 0);
    put("text.txt", out);
}

/* The same with a repetitive text that has one random stretch. */
static inline void put_tiny_and_blot(void)
{
    put("tiny.yaml", tiny);
    FILE *file = fopen("text.txt", "w");
    assert_non_null(file);
    uint32_t draw = 1;
    for (int32_t i = 0; i < 16384; i++) {
        draw = draw * 1664525 + 1013904223;
        fputc(i / 512 == 25 ? (int)(draw >> 24) : "abcdefgh"[i % 8], file);
    }
    assert_int_equal(fclose(file), 0);
}

/* Runs the program, and acts once at the first line that starts with `line`. The program replaces
 * the shell, so `child` is the program itself. */
static inline int run_acting(const char *arguments, const char *line,
                             void (*act)(pid_t child, const void *context), const void *context)
{
    char command[PROGRAM_COMMAND_BYTES], text[1024];
    int ends[2], status;
    size_t length = 0;
    bool waiting = true;
    snprintf(command, sizeof command, "exec \"$HEADROOM\" %s 2>err.txt", arguments);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", command, (char *)0);
        _exit(127);
    }
    close(ends[1]);
    FILE *told = fdopen(ends[0], "r");
    assert_non_null(told);
    while (fgets(text, sizeof text, told)) {
        if (waiting && !strncmp(text, line, strlen(line))) {
            waiting = false;
            act(child, context);
        }
        length += (size_t)snprintf(out + length, sizeof out - length, "%s", text);
        assert_true(length < sizeof out);
    }
    fclose(told);
    assert_int_equal(waitpid(child, &status, 0), child);
    get("err.txt", err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Signals to send. */
typedef struct {
    const int *signals;
    int32_t count;
} program_signals;

/* For different signals the program is stopped first, so that all are pending; the same signal is
 * sent again after 20 ms. */
static inline void send_signals(pid_t child, const void *context)
{
    const program_signals *send = context;
    const bool pending = send->count > 1 && send->signals[0] != send->signals[1];
    if (pending) assert_int_equal(kill(child, SIGSTOP), 0);
    for (int32_t i = 0; i < send->count; i++) {
        if (i && !pending) usleep(20000);
        assert_int_equal(kill(child, send->signals[i]), 0);
    }
    if (pending) assert_int_equal(kill(child, SIGCONT), 0);
}

/* Runs the program and sends signals [count] at the first line that starts with `line`. */
static inline int run_signalled(const char *arguments, const char *line, const int *signals,
                                int32_t count)
{
    const program_signals send = { signals, count };
    const int code = run_acting(arguments, line, send_signals, &send);
    if (code < 0) fail_msg("ended by signal %d: %s", -code, err);
    return code;
}

/* SIGINT alone, or followed by SIGTERM. */
static inline int run_interrupted(const char *arguments, const char *line, bool twice)
{
    static const int signals[] = { SIGINT, SIGTERM };
    return run_signalled(arguments, line, signals, twice ? 2 : 1);
}

/* Asserts that standard error of the last run is exactly `sentence`. */
static inline void assert_said(const char *sentence)
{
    char expected[1024];
    snprintf(expected, sizeof expected, "headroom: %s\n", sentence);
    assert_string_equal(err, expected);
}

/* The last run's standard error has these words. */
static inline void assert_says(const char *words)
{
    if (!strstr(err, words)) fail_msg("no \"%s\" in %s", words, err);
}

/* The two numbers of "arena  planned N bytes, used N bytes" of the last run. */
static inline void assert_arena_as_planned(const char *settings)
{
    char planned[32], used[32];
    const char *line = strstr(out, "arena  planned ");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "arena  planned %31s bytes, used %31s bytes", planned, used), 2);
    if (strcmp(planned, used)) fail_msg("%s: planned %s, used %s", settings, planned, used);
}

static inline void assert_same_file(const char *one, const char *two)
{
    char command[PROGRAM_COMMAND_BYTES];
    snprintf(command, sizeof command, "cmp '%s' '%s'", one, two);
    if (system(command)) fail_msg("%s and %s differ", one, two);
}

static inline json_t *out_json(void)
{
    json_error_t problem;
    json_t *value = json_loads(out, 0, &problem);
    if (!value) fail_msg("%s in: %s", problem.text, out);
    return value;
}

#endif
