/* SPDX-License-Identifier: Apache-2.0 */
/* refuse_test.c - applies each suggestion, plans again, and expects the reported bytes and
 * seconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "headroom/plan.h"

enum { TEXT_BYTES = 1 << 16 };

/* A plan and its suggestions. */
typedef struct {
    hr_plan_answer answer;
    hr_plan_details details;
    char text[TEXT_BYTES];
    hr_status status;
    hr_error err;
} planned;

static planned *plan(const hr_config *config)
{
    planned *p = calloc(1, sizeof *p);
    assert_non_null(p);
    const hr_plan_outputs outputs = { .text = p->text,
                                      .text_bytes = sizeof p->text,
                                      .details = &p->details };
    p->status = hr_plan_make(config, &outputs, &p->answer, &p->err);
    if (p->status != HR_OK && p->status != HR_NO_FIT) fail_msg("%s", p->err.message);
    return p;
}

static hr_config small(void)
{
    hr_config config;
    hr_config_default(&config);
    config.model.d_model = 256;
    config.model.d_ff = 1024;
    config.model.n_layers = 3;
    config.model.vocab_size = 8192;
    config.train.batch = 8;
    config.train.threads = 1;
    return config;
}

static void set(hr_config *config, const char *key, const char *value)
{
    hr_error err;
    if (hr_config_set(config, key, value, &err) != HR_OK) fail_msg("%s", err.message);
}

/* Applies "key=value key=value". */
static void apply_words(hr_config *config, const char *what)
{
    char words[HR_PLAN_NAME_BYTES];
    snprintf(words, sizeof words, "%s", what);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value++ = 0;
        set(config, word, strcmp(value, "\"\"") ? value : "");
    }
}

static hr_config tried; /* static: the stack depth is part of a plan */

static int64_t least(const hr_config *config)
{
    tried = *config;
    tried.memory.budget = 0;
    planned *p = plan(&tried);
    const int64_t bytes = p->answer.minimum_bytes;
    free(p);
    return bytes;
}

/* Plans every suggested change of a refusal. Returns the number of changes. */
static int32_t check_changes(const hr_config *config)
{
    planned *refused = plan(config);
    tried = *config;
    tried.memory.budget = INT64_C(1) << 53;
    planned *unbounded = plan(&tried);
    const hr_plan_details *d = &refused->details;
    assert_int_equal(refused->status, HR_NO_FIT);
    assert_int_equal(unbounded->status, HR_OK);
    for (int32_t i = 0; i < d->change_count; i++) {
        const hr_plan_change *change = &d->changes[i];
        tried = *config;
        apply_words(&tried, change->what);
        planned *p = plan(&tried);
        print_message("  %s: %lld bytes, %g s; %s\n", change->what, (long long)change->bytes,
                      change->seconds_lost, change->price);
        if (p->status != HR_OK) fail_msg("%s: %s", change->what, p->err.message);
        assert_int_equal(p->answer.minimum_bytes, change->bytes);
        assert_int_equal(refused->answer.minimum_bytes - p->answer.minimum_bytes,
                         change->gained_bytes);
        const double lost = p->answer.step_seconds - unbounded->answer.step_seconds;
        if (!change->changes_mathematics) assert_true(change->seconds_lost == lost);
        else assert_true(change->seconds_lost == 0);
        /* The table begins with more memory; the cheapest change is also among the first lines. */
        const char *table = strstr(refused->text, "\n  --budget ");
        assert_non_null(table);
        assert_non_null(strstr(table, change->what));
        if (i == 0) assert_true(strstr(refused->text, change->what) < table);
        assert_non_null(strstr(refused->text, ", sorted by what they give up:\n"));
        if (i > 0) {
            const hr_plan_change *before = &d->changes[i - 1];
            assert_true(before->changes_mathematics <= change->changes_mathematics);
            if (!change->changes_mathematics)
                assert_true(before->seconds_lost <= change->seconds_lost);
        }
        free(p);
    }
    const int32_t count = d->change_count;
    free(unbounded);
    free(refused);
    return count;
}

static void every_suggested_change_fits_at_the_reported_cost(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    config.memory.budget = least(&config) - 65536;
    assert_true(check_changes(&config) > 3);
    config.memory.budget = config.memory.budget * 3 / 4;
    assert_true(check_changes(&config) > 0);
}

static void fixed_memory_keys_are_suggested_to_be_freed(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    config.train.batch = 32;
    config.memory.recompute = HR_RECOMPUTE_NONE;
    config.memory.micro_batch = 32;
    config.memory.loss_chunk = 4096;
    config.memory.budget = least(&config) * 7 / 10;
    planned *p = plan(&config);
    assert_int_equal(p->status, HR_NO_FIT);
    assert_true(p->details.change_count > 0);
    assert_false(p->details.changes[0].changes_mathematics);
    assert_int_equal(strncmp(p->details.changes[0].what, "memory.", 7), 0);
    free(p);
    assert_true(check_changes(&config) > 0);
}

static void two_changes_are_suggested_if_no_single_one_helps(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    /* A budget that no single key reaches: planning needs memory for each layer. */
    planned *p = NULL;
    for (int64_t percent = 34; percent > 5; percent -= 2) {
        free(p);
        config.memory.budget = 0;
        config.memory.budget = least(&config) * percent / 100;
        p = plan(&config);
        assert_int_equal(p->status, HR_NO_FIT);
        if (!p->details.change_count || strchr(p->details.changes[0].what, ' ')) break;
    }
    print_message("budget %lld\n", (long long)config.memory.budget);
    assert_true(p->details.change_count > 0);
    free(p);
    assert_true(check_changes(&config) > 0);
}

static void memory_that_no_strategy_reduces_is_reported(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    config.memory.budget = 100000;
    planned *p = plan(&config);
    assert_int_equal(p->status, HR_NO_FIT);
    assert_string_equal(p->details.alone.name, "image");
    assert_true(p->details.alone.bytes > 100000);
    assert_non_null(strstr(p->text, "image alone: "));
    assert_int_equal(p->details.change_count, 0);
    assert_non_null(strstr(p->text, "\n  --budget "));
    assert_non_null(strstr(p->text, "  no change of one or two keys was found\n"));
    assert_null(strstr(p->text, "sorted by"));
    assert_null(strstr(p->err.message, "headroom plan"));
    free(p);
    config.model.vocab_size = 200000;
    config.memory.budget = 200 << 20;
    p = plan(&config);
    assert_int_equal(p->status, HR_NO_FIT);
    assert_string_equal(p->details.alone.name, "optimizer states");
    assert_true(p->details.alone.bytes >= INT64_C(4) * 200000 * 256 * 4);
    free(p);
}

/* Reads a number with thousands separators. */
static long long number_of(const char *text)
{
    long long number = 0;
    for (; (*text >= '0' && *text <= '9') || *text == ','; text++)
        if (*text != ',') number = 10 * number + (*text - '0');
    return number;
}

/* Writes the strategy of the plan with one line changed, or with words removed from every set. */
static void change_strategy(const char *strategy, const char *what, FILE *file)
{
    static const struct {
        const char *words, *line;
    } cuts[] = { { "micro-batch ", "micro_batch: " },
                 { "loss chunk of ", "loss_chunk: " },
                 { "MLP tile of ", "mlp_tile: " },
                 { "attention tile of ", "attention_tile: " } };
    static const struct {
        const char *words, *set; /* blanks around each word */
    } sets[] = {
        { "norm outputs", " norm " },
        { "queries, keys, values", " q k v " },
        { "queries", " q " },
        { "keys", " k " },
        { "values", " v " },
        { "attention outputs", " attention " },
        { "MLP inputs", " mlp_input " },
        { "MLP gates", " gate " },
        { "MLP pre-activations", " up " },
        { "MLP activations", " activation " },
    };
    static char copy[HR_STRATEGY_TEXT_BYTES];
    snprintf(copy, sizeof copy, "%s", strategy);
    for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n")) {
        bool written = false;
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts && !written; i++) {
            if (strncmp(what, cuts[i].words, strlen(cuts[i].words))) continue;
            if (strncmp(line, cuts[i].line, strlen(cuts[i].line))) continue;
            fprintf(file, "%s%lld\n", cuts[i].line, number_of(what + strlen(cuts[i].words)));
            written = true;
        }
        if (!strncmp(line, "backward_order: ", 16) && strstr(what, " gradients first")) {
            fprintf(file, "backward_order: %s\n",
                    strstr(what, "weight") ? "weight_grad_first" : "input_grad_first");
            written = true;
        }
        if (!strncmp(line, "gradient_release: ", 18) && !strncmp(what, "gradient release", 16)) {
            fprintf(file, "gradient_release: yes\n");
            written = true;
        }
        char *list = strstr(line, "keep: [");
        for (size_t i = 0; i < sizeof sets / sizeof *sets && list && !written; i++) {
            static const char again[] = "recompute ";
            const char *named = what +
                                (strncmp(what, again, sizeof again - 1) ? 0 : sizeof again - 1);
            if (strncmp(named, sets[i].words, strlen(sets[i].words))) continue;
            bool any = false;
            list += 6;
            fprintf(file, "%.*s[", (int)(list - line), line);
            for (char *at = list + 1; *at && *at != ']';) {
                const size_t length = strcspn(at, ",]");
                char word[32];
                snprintf(word, sizeof word, " %.*s ", (int)length, at);
                const bool left_out = strstr(sets[i].set, word);
                if (!left_out) fprintf(file, "%s%.*s", any ? ", " : "", (int)length, at);
                any |= !left_out;
                at += length;
                at += strspn(at, ", ");
            }
            fprintf(file, "]\n");
            written = true;
        }
        if (!written) fprintf(file, "%s\n", line);
    }
}

static void every_removal_saves_the_reported_bytes_and_time(void **state)
{
    int32_t held = 0;
    (void)state;
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        static hr_config config;
        config = small();
        config.model.family = family;
        config.train.seq_len = 256;
        planned *p = plan(&config);
        assert_int_equal(p->status, HR_OK);
        for (int32_t i = 0; i < p->details.removal_count; i++) {
            const hr_plan_change *removal = &p->details.removals[i];
            char path[64] = "/tmp/headroom-refuse-XXXXXX";
            const int descriptor = mkstemp(path);
            assert_true(descriptor >= 0);
            FILE *file = fdopen(descriptor, "w");
            assert_non_null(file);
            change_strategy(p->answer.strategy, removal->what, file);
            fclose(file);
            tried = config;
            set(&tried, "memory.strategy", path);
            planned *changed = plan(&tried);
            print_message("  %s: %lld bytes, %g s\n", removal->what, (long long)removal->bytes,
                          removal->seconds_lost);
            if (changed->status != HR_OK) fail_msg("%s: %s", removal->what, changed->err.message);
            assert_int_equal(changed->answer.process_bytes, removal->bytes);
            assert_int_equal(p->answer.process_bytes - removal->bytes, removal->gained_bytes);
            assert_true(removal->gained_bytes > 0);
            const double lost = changed->answer.step_seconds - p->answer.step_seconds;
            assert_true(removal->seconds_lost == lost);
            free(changed);
            unlink(path);
            held++;
        }
        free(p);
    }
    assert_true(held > 3);
}

/* The plan file after a search for removals is that of the reported plan. */
static void searching_for_removals_does_not_change_the_plan(void **state)
{
    char path[2][64] = { "/tmp/headroom-plan-XXXXXX", "/tmp/headroom-plan-XXXXXX" };
    static hr_config config;
    config = small();
    (void)state;
    planned *plenty = plan(&config);
    config.memory.budget = (plenty->answer.process_bytes + least(&config)) / 2;
    free(plenty);
    char *bytes[2];
    for (int32_t i = 0; i < 2; i++) {
        const int descriptor = mkstemp(path[i]);
        assert_true(descriptor >= 0);
        planned *p = calloc(1, sizeof *p);
        assert_non_null(p);
        const hr_plan_outputs outputs = { .file = path[i], .details = i ? &p->details : NULL };
        assert_int_equal(hr_plan_make(&config, &outputs, &p->answer, &p->err), HR_OK);
        if (i) assert_true(p->details.removal_count > 0);
        free(p);
        bytes[i] = calloc(1, 1 << 24);
        assert_non_null(bytes[i]);
        close(descriptor);
        FILE *file = fopen(path[i], "r");
        assert_non_null(file);
        assert_true(fread(bytes[i], 1, (1 << 24) - 1, file) > 1000);
        fclose(file);
        unlink(path[i]);
    }
    assert_string_equal(bytes[0], bytes[1]);
    free(bytes[0]);
    free(bytes[1]);
}

/* The image is larger than the arena of such a small model. */
static void the_largest_parts_of_process_and_arena_are_reported(void **state)
{
    (void)state;
    hr_config config = small();
    config.model.d_model = config.model.d_ff = 32;
    config.model.n_heads = 2;
    config.model.n_layers = 1;
    config.model.vocab_size = 512;
    config.memory.budget = 1 << 20;
    planned *p = plan(&config);
    assert_int_equal(p->status, HR_NO_FIT);
    assert_non_null(strstr(p->text, "  largest part of the process "));
    assert_non_null(strstr(p->text, "  largest part of the arena "));
    free(p);
}

static void a_budget_beyond_the_machine_is_reported(void **state)
{
    (void)state;
    hr_config config = small();
    config.memory.budget = INT64_C(1) << 52;
    planned *p = plan(&config);
    assert_int_equal(p->status, HR_OK);
    assert_true(p->answer.memory_bytes > 0);
    assert_non_null(strstr(p->text, "memory of this machine"));
    assert_non_null(strstr(p->text, "less than the budget"));
    assert_null(strstr(p->text, "headroom train refuses it here"));
    free(p);
    config.model.d_model = 16384;
    config.model.n_heads = 128;
    config.model.d_ff = 65536;
    config.model.n_layers = 126;
    p = plan(&config);
    assert_int_equal(p->status, HR_OK);
    assert_non_null(strstr(p->text, "note: the plan needs more memory than this machine has: "
                                    "headroom train refuses it here"));
    free(p);
}

static void outputs_and_the_answer_may_be_null(void **state)
{
    (void)state;
    hr_config config = small();
    assert_int_equal(hr_plan_make(&config, NULL, NULL, NULL), HR_OK);
    config.memory.budget = 1;
    assert_int_equal(hr_plan_make(&config, NULL, NULL, NULL), HR_NO_FIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_suggested_change_fits_at_the_reported_cost),
        cmocka_unit_test(fixed_memory_keys_are_suggested_to_be_freed),
        cmocka_unit_test(two_changes_are_suggested_if_no_single_one_helps),
        cmocka_unit_test(memory_that_no_strategy_reduces_is_reported),
        cmocka_unit_test(every_removal_saves_the_reported_bytes_and_time),
        cmocka_unit_test(searching_for_removals_does_not_change_the_plan),
        cmocka_unit_test(the_largest_parts_of_process_and_arena_are_reported),
        cmocka_unit_test(a_budget_beyond_the_machine_is_reported),
        cmocka_unit_test(outputs_and_the_answer_may_be_null),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
