/* SPDX-License-Identifier: Apache-2.0 */
/* refuse_test.c - applies each suggestion, plans again, and expects the reported bytes and
 * seconds. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "config/config.h"
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
    const hr_plan_outputs outputs = { .size = sizeof outputs,
                                      .text = p->text,
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

/* Applies "key=value key='value'", as a shell reads it. */
static void apply_words(hr_config *config, const char *what)
{
    char words[HR_PLAN_CHANGE_BYTES];
    snprintf(words, sizeof words, "%s", what);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value++ = 0;
        const size_t length = strlen(value);
        if (*value == '"' || *value == '\'') {
            assert_true(length >= 2 && value[length - 1] == *value);
            value[length - 1] = 0;
            value++;
        } else assert_null(strpbrk(value, "*?[\\$ "));
        set(config, word, value);
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

/* Plans a change of a refusal and compares bytes and seconds with what was promised. */
static void check_change(const hr_config *config, const planned *refused, double free_seconds,
                         const hr_plan_change *change, bool fits)
{
    tried = *config;
    apply_words(&tried, change->what);
    planned *p = plan(&tried);
    print_message("  %s: %lld bytes, %g s; %s\n", change->what, (long long)change->bytes,
                  change->seconds_lost, change->price);
    if (p->status != (fits ? HR_OK : HR_NO_FIT)) fail_msg("%s: %s", change->what, p->err.message);
    if (p->answer.minimum_bytes != change->bytes)
        fail_msg("%s: %lld bytes, promised %lld", change->what, (long long)p->answer.minimum_bytes,
                 (long long)change->bytes);
    assert_int_equal(refused->answer.minimum_bytes - p->answer.minimum_bytes, change->gained_bytes);
    assert_non_null(strstr(refused->text, change->what));
    if (change->changes_mathematics || change->gained_bytes <= 0) assert_true(change->untimed);
    if (change->untimed) {
        assert_true(change->seconds_lost == 0);
        free(p);
        return;
    }
    if (!fits) { /* then both times are without a budget */
        free(p);
        tried.memory.budget = INT64_C(1) << 53;
        p = plan(&tried);
        assert_int_equal(p->status, HR_OK);
    }
    assert_true(change->seconds_lost == p->answer.step_seconds - free_seconds);
    free(p);
}

static void check_order(const hr_plan_change *changes, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        assert_true(changes[i - 1].changes_mathematics <= changes[i].changes_mathematics);
        if (!changes[i].changes_mathematics)
            assert_true(changes[i - 1].seconds_lost <= changes[i].seconds_lost);
    }
}

/* Plans every change of a refusal. Returns how many fit. `complete`: none is left at the limit of
 * work. */
static int32_t check_changes(const hr_config *config, bool complete)
{
    planned *refused = plan(config);
    tried = *config;
    tried.memory.budget = INT64_C(1) << 53;
    planned *unbounded = plan(&tried);
    const hr_plan_details *d = &refused->details;
    assert_int_equal(refused->status, HR_NO_FIT);
    assert_int_equal(unbounded->status, HR_OK);
    const double free_seconds = unbounded->answer.step_seconds;
    for (int32_t i = 0; i < d->change_count; i++) {
        check_change(config, refused, free_seconds, &d->changes[i], true);
        assert_true(strstr(refused->text, "\n  --budget ") <
                    strstr(strstr(refused->text, "changes that make it fit"), d->changes[i].what));
        assert_non_null(strstr(refused->text, ", sorted by what they give up:\n"));
        /* The cheapest change is also among the first lines. */
        if (i == 0)
            assert_true(strstr(refused->text, d->changes[i].what) <
                        strstr(refused->text, "\n  --budget "));
    }
    for (int32_t i = 0; i < d->partial_count; i++)
        check_change(config, refused, free_seconds, &d->partial[i], false);
    check_order(d->changes, d->change_count);
    check_order(d->partial, d->partial_count);
    if (complete) assert_string_equal(d->untried, "");
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
    assert_true(check_changes(&config, true) > 3);
    config.memory.budget = config.memory.budget * 3 / 4;
    assert_true(check_changes(&config, true) > 0);
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
    assert_true(check_changes(&config, true) > 0);
}

static void several_changes_are_suggested_if_no_single_one_helps(void **state)
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
    assert_true(check_changes(&config, true) > 0);
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
    assert_non_null(strstr(p->text, "  no other change was found\n"));
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
    for (int32_t i = 0; i < 2; i++) {
        const int descriptor = mkstemp(path[i]);
        assert_true(descriptor >= 0);
        planned *p = calloc(1, sizeof *p);
        assert_non_null(p);
        const hr_plan_outputs outputs = { .size = sizeof outputs,
                                          .file = path[i],
                                          .details = i ? &p->details : NULL };
        assert_int_equal(hr_plan_make(&config, &outputs, &p->answer, &p->err), HR_OK);
        if (i) assert_true(p->details.removal_count > 0);
        free(p);
        close(descriptor);
    }
    char command[160]; /* the bytes of both would count as heap of the second plan */
    snprintf(command, sizeof command, "test -s %s && cmp %s %s", path[0], path[0], path[1]);
    assert_int_equal(system(command), 0);
    unlink(path[0]);
    unlink(path[1]);
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

/* ---- the questions of those who reported running out of memory */

enum { LEVERS_ASKED = 8, SETTINGS = 8 };

/* A run as its authors set it, a budget, what they would think of first, and the largest tensor of
 * the run without any saving. */
static const struct {
    const char *preset, *settings[SETTINGS];
    int64_t budget;
    const char *levers[LEVERS_ASKED]; /* keys of changes, or words of what is done already */
    const char *largest;
    int64_t largest_bytes;
} questions[] = {
    { "needle-70m-50k",
      { NULL },
      600 << 20,
      { "model.vocab_size", "train.batch", "train.seq_len", "model.attention.pattern" },
      "[4,096 x 50,000] fp32 = B x T x V x 4",
      INT64_C(4096) * 50000 * 4 },
    { "llama-3.1-8b",
      { NULL },
      INT64_C(80000000000),
      { "train.freeze", "train.dtype", "memory.moments", "train.optimizer.kind", "recompute" },
      "[16,384 x 128,256] bf16 = B x T x V x 2",
      INT64_C(16384) * 128256 * 2 },
    { "neurogen-original-fp32",
      { "train.optimizer.kind=adam" },
      INT64_C(3900000000),
      { "model.expansion", "model.decoder_rank", "train.optimizer.kind", "train.seq_len",
        "train.dtype" },
      "[32,768 x 32,000] fp32 = X x V x 4",
      INT64_C(4194304000) },
    { "long-4b-131k",
      { "train.batch=1" },
      INT64_C(48) << 30,
      { "loss chunk", "recompute", "train.seq_len", "model.n_kv_heads", "memory.moments",
        "gradient release", "model.attention.sliding_window" },
      "[131,072 x 151,936] bf16 = T x V x 2",
      INT64_C(39829110784) },
    { "yxanul-stage-8",
      { NULL },
      INT64_C(3) << 30,
      { "loss chunk", "train.batch", "model.embedding_rank", "recompute", "train.seq_len",
        "memory.moments" },
      "[98,304 x 200,005] bf16 = B x T x V x 2",
      INT64_C(98304) * 200005 * 2 },
    { "npt-llama-3.1-8b",
      { NULL },
      INT64_C(4) << 30,
      { "memory.weights=file", "model.weights=f8_e4m3", "model.n_layers", "model.d_model" },
      "[128,256 x 4,096] bf16 = V x d x 2",
      INT64_C(128256) * 4096 * 2 },
};

static bool has_lever(const hr_plan_details *d, const char *lever)
{
    for (int32_t i = 0; i < d->change_count; i++)
        if (!strncmp(d->changes[i].what, lever, strlen(lever))) return true;
    for (int32_t i = 0; i < d->partial_count; i++)
        if (!strncmp(d->partial[i].what, lever, strlen(lever))) return true;
    for (int32_t i = 0; i < d->used_count; i++)
        if (!strncmp(d->used[i].name, lever, strlen(lever))) return true;
    return false;
}

static void the_levers_that_its_authors_think_of_are_listed(void **state)
{
    (void)state;
    static hr_config config;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        char path[256];
        hr_error err;
        snprintf(path, sizeof path, HR_SOURCE "/presets/%s.yaml", questions[i].preset);
        hr_config_default(&config);
        if (hr_config_read(&config, path, &err) != HR_OK) fail_msg("%s", err.message);
        for (int32_t k = 0; k < SETTINGS && questions[i].settings[k]; k++)
            if (hr_config_set_word(&config, questions[i].settings[k], &err) != HR_OK)
                fail_msg("%s", err.message);
        config.train.threads = 2;
        config.memory.budget = questions[i].budget;
        print_message("%s\n", questions[i].preset);
        planned *p = plan(&config);
        assert_int_equal(p->status, HR_NO_FIT);
        for (int32_t k = 0; k < LEVERS_ASKED && questions[i].levers[k]; k++)
            if (!has_lever(&p->details, questions[i].levers[k]))
                fail_msg("%s is not listed\n%s", questions[i].levers[k], p->text);
        assert_string_equal(p->details.whole_largest.shape, questions[i].largest);
        assert_int_equal(p->details.whole_largest.bytes, questions[i].largest_bytes);
        assert_non_null(strstr(p->text, questions[i].largest));
        assert_true(p->details.whole_bytes > p->answer.minimum_bytes);
        free(p);
        const bool small_model = i == 0 || i == 2; /* plans of the others take 20 seconds */
        if (small_model || HR_COUNT > 1) assert_true(check_changes(&config, small_model) > 0);
    }
}

/* Each is taken back with a strategy file, and costs the bytes that it is said to save. */
static void savings_of_the_smallest_plan_are_those_of_its_strategy(void **state)
{
    (void)state;
    static const struct {
        const char *name, *key;
    } cuts[] = { { "micro-batch: ", "micro_batch: " },
                 { "loss chunk: ", "loss_chunk: " },
                 { "MLP tile: ", "mlp_tile: " },
                 { "attention tile: ", "attention_tile: " },
                 { "gradient release", "gradient_release: " } };
    static hr_config config;
    static char strategy[HR_STRATEGY_TEXT_BYTES];
    int32_t compared = 0;
    config = small();
    config.train.batch = 2;
    config.train.seq_len = 1024;
    config.model.d_ff = 8192;
    config.memory.budget = least(&config) - 65536;
    planned *p = plan(&config);
    assert_int_equal(p->status, HR_NO_FIT);
    for (int32_t i = 0; i < p->details.used_count; i++)
        for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
            const hr_plan_part *used = &p->details.used[i];
            if (strncmp(used->name, cuts[k].name, strlen(cuts[k].name))) continue;
            char path[64] = "/tmp/headroom-refuse-XXXXXX";
            const int descriptor = mkstemp(path);
            FILE *file = fdopen(descriptor, "w");
            assert_non_null(file);
            snprintf(strategy, sizeof strategy, "%s", p->answer.strategy);
            for (char *line = strtok(strategy, "\n"); line; line = strtok(NULL, "\n")) {
                const bool mine = !strncmp(line, cuts[k].key, strlen(cuts[k].key));
                const bool release = !strcmp(cuts[k].key, "gradient_release: ");
                if (mine) fprintf(file, "%s%s\n", cuts[k].key, release ? "no" : "full");
                else fprintf(file, "%s\n", line);
            }
            fclose(file);
            tried = config;
            set(&tried, "memory.strategy", path);
            tried.memory.budget = 0;
            planned *without = plan(&tried);
            print_message("  %s: %lld bytes\n", used->name, (long long)used->bytes);
            assert_int_equal(without->status, HR_OK);
            /* the plan without it is packed, and may be a little above its floor */
            const int64_t more = without->answer.process_bytes - p->answer.minimum_bytes;
            assert_true(more >= used->bytes && more - used->bytes <= more / 64);
            free(without);
            unlink(path);
            compared++;
        }
    assert_true(compared >= 2);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_suggested_change_fits_at_the_reported_cost),
        cmocka_unit_test(fixed_memory_keys_are_suggested_to_be_freed),
        cmocka_unit_test(several_changes_are_suggested_if_no_single_one_helps),
        cmocka_unit_test(memory_that_no_strategy_reduces_is_reported),
        cmocka_unit_test(every_removal_saves_the_reported_bytes_and_time),
        cmocka_unit_test(searching_for_removals_does_not_change_the_plan),
        cmocka_unit_test(the_largest_parts_of_process_and_arena_are_reported),
        cmocka_unit_test(a_budget_beyond_the_machine_is_reported),
        cmocka_unit_test(outputs_and_the_answer_may_be_null),
        cmocka_unit_test(the_levers_that_its_authors_think_of_are_listed),
        cmocka_unit_test(savings_of_the_smallest_plan_are_those_of_its_strategy),
    };
    mallopt(M_MMAP_MAX, 0); /* a mapping for a large block would count as part of the image */
    return cmocka_run_group_tests(tests, 0, 0);
}
