/* SPDX-License-Identifier: Apache-2.0 */
/* tests/judge/two_judges.h - plans of random small recipes, and the verdicts of two independent
 * verifiers on modified plans: headroom verify and tools/soak, which share no code. */
#ifndef HR_TESTS_JUDGE_TWO_JUDGES_H
#define HR_TESTS_JUDGE_TWO_JUDGES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "headroom/verify.h"
#include "require.h"

enum { ANSWER_BYTES = 1024 };

static char path[64], strategy_path[80];
static uint64_t seeded, draws;

static inline int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)(hr_random_mix(seeded + ++draws) % (uint64_t)(high - low + 1));
}

/* ---- the second verifier, a process that answers line by line */

static FILE *to_judge, *from_judge;
static bool there_are_two;
static pid_t judge_id;

/* False without python3. */
static inline bool open_judge(void)
{
    int in[2], out[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    judge_id = fork();
    if (judge_id == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        for (int file = STDERR_FILENO + 1; file < 64; file++) close(file);
        execlp("python3", "python3", HR_SOURCE "/tools/soak", "--judge-lines", (char *)0);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_judge = fdopen(in[1], "w");
    from_judge = fdopen(out[0], "r");
    char answer[ANSWER_BYTES];
    fputs("{}\n", to_judge);
    return fflush(to_judge) == 0 && fgets(answer, sizeof answer, from_judge) && answer[0] == '4';
}

static inline bool second_judge_accepts(const char *text, char *answer)
{
    fputs(text, to_judge);
    fputc('\n', to_judge);
    assert_int_equal(fflush(to_judge), 0);
    assert_non_null(fgets(answer, ANSWER_BYTES, from_judge));
    answer[strcspn(answer, "\n")] = 0;
    return answer[0] == '0';
}

static inline void close_judge(void)
{
    int ended;
    fclose(to_judge);
    fclose(from_judge);
    waitpid(judge_id, &ended, 0);
}

/* Group setup and teardown. */
static inline int open_judges(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/headroom-mutation-XXXXXX", P_tmpdir);
    const int file = mkstemp(path);
    snprintf(strategy_path, sizeof strategy_path, "%s.yaml", path);
    signal(SIGPIPE, SIG_IGN); /* a failed start is noticed by the missing answer */
    there_are_two = open_judge();
    return file < 0 || close(file);
}

static inline int close_judges(void **state)
{
    (void)state;
    close_judge();
    unlink(strategy_path); /* of plans that needed a strategy */
    return unlink(path);
}

/* Starts a test, or skips it without the second verifier. */
static inline void begin(uint64_t seed)
{
    seeded = seed;
    draws = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    if (!there_are_two) hr_test_skip("python3", "the second judge is written in Python");
}

/* ---- verdicts */

typedef struct {
    int32_t tried, refused, split;
} tally;

/* Runs both verifiers on one plan. */
static inline void judge_twice(json_t *plan, const char *what, tally *counts)
{
    hr_verify_report report;
    hr_error err = { HR_OK, "" };
    char answer[ANSWER_BYTES];
    char *text = json_dumps(plan, JSON_COMPACT);
    assert_non_null(text);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    const hr_status status = hr_verify_file(path, &report, &err);
    const bool accepted = second_judge_accepts(text, answer);
    free(text);
    counts->tried++;
    counts->refused += status != HR_OK;
    if (accepted == (status == HR_OK)) return;
    counts->split++;
    print_error("%s: verify says: %s; the other judge: %s\n", what, status ? err.message : "good",
                answer);
}

/* ---- plans */

enum { ANY = -1, FAMILIES = 11 };

static const char *const families[FAMILIES] = { "needle", "gpt_neox", "llama",  "gpt2",
                                                "opt",    "mistral",  "qwen2",  "qwen3",
                                                "yxanul", "wide",     "gpt_neo" };

/* Writes a strategy that recomputes everything possible in every layer, with or without gradient
 * release. */
static inline void write_strategy(bool consumed, int64_t layers)
{
    FILE *file = fopen(strategy_path, "w");
    assert_non_null(file);
    fprintf(file, "gradients: %s\nlayers:\n - { layers: 0-%lld, keep: [] }\n",
            consumed ? "consumed" : "kept", (long long)(layers - 1));
    assert_int_equal(fclose(file), 0);
}

static const char *more_keys = ""; /* of the recipes of random_plan; they replace its own */

/* The plan of a random small recipe. `averaged` and `consumed` are true, false or ANY. */
static inline json_t *random_plan(const char *family, int32_t averaged, int32_t consumed)
{
    static const char *const formats[] = { "fp32", "bf16" };
    static const char *const recompute[] = { "none", "norms", "layers" };
    static const char *const kinds[] = { "adam", "adamw", "sgd", "lion", "adafactor" };
    const char *program = getenv("HEADROOM");
    char command[1024], how[256];
    assert_non_null(program);
    const int64_t heads = draw(1, 2), chunk = draw(0, 2), batch = 2 * draw(1, 3);
    const int64_t layers = draw(1, 2), parts = draw(0, 2) ? 2 : 1;
    if (averaged == ANY) averaged = draw(0, 2) == 0;
    if (consumed == ANY) consumed = draw(0, 3) == 0;
    write_strategy(consumed, layers);
    if (consumed) snprintf(how, sizeof how, "memory.strategy='%s'", strategy_path);
    else
        snprintf(how, sizeof how, "memory.micro_batch=%lld memory.recompute=%s",
                 (long long)(batch / parts), recompute[draw(0, 2)]);
    snprintf(command, sizeof command,
             "'%s' plan '%s/presets/quickstart.yaml' model.family=%s model.n_heads=%lld "
             "model.d_model=%lld model.n_layers=%lld model.d_ff=%lld model.vocab_size=%lld "
             "model.dropout=%s train.dtype=%s train.batch=%lld train.seq_len=%lld "
             "train.optimizer.kind=%s train.optimizer.clip=%s train.sample_tokens=%s "
             "train.ema_decay=%s %s memory.loss_chunk=%s %s%s --out '%s' >/dev/null",
             program, HR_SOURCE, family, (long long)heads, (long long)(heads * 8 * draw(1, 4)),
             (long long)layers, (long long)draw(1, 200), (long long)draw(256, 400),
             draw(0, 1) && strcmp(family, "wide") != 0 ? "0.1" : "0", formats[draw(0, 1)],
             (long long)batch, (long long)(draw(0, 1) ? draw(4, 60) : 64), kinds[draw(0, 4)],
             draw(0, 1) ? "none" : "1", draw(0, 1) ? "none" : "3", averaged ? "0.9" : "0", how,
             chunk == 0   ? "auto"
             : chunk == 1 ? "64"
                          : "10000",
             more_keys, SANITIZED_BUDGET, path);
    unlink(path); /* plan would not replace a file that is no plan */
    if (system(command)) fail_msg("%s", command);
    json_t *plan = json_load_file(path, 0, 0);
    assert_non_null(plan);
    return plan;
}

/* ---- records */

static inline int64_t get(json_t *record, const char *key)
{
    return json_integer_value(json_object_get(record, key));
}

static inline bool put(json_t *record, const char *key, int64_t value)
{
    const bool changes = get(record, key) != value;
    json_object_set_new(record, key, json_integer(value));
    return changes;
}

static inline int64_t count(json_t *plan, const char *list)
{
    return (int64_t)json_array_size(json_object_get(plan, list));
}

static inline json_t *at(json_t *plan, const char *list, int64_t index)
{
    return json_array_get(json_object_get(plan, list), (size_t)index);
}

/* Exchanges what two steps do; their numbers and loops stay. */
static inline void exchange(json_t *plan, int64_t a, int64_t b)
{
    static const char *const keys[] = { "op", "reads", "writes", "layer", "flops" };
    json_t *one = at(plan, "steps", a), *two = at(plan, "steps", b);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *kept = json_incref(json_object_get(one, keys[i]));
        json_object_set(one, keys[i], json_object_get(two, keys[i]));
        json_object_set_new(two, keys[i], kept);
    }
}

#endif
