/* SPDX-License-Identifier: Apache-2.0 */
/* cli_spill_test.c - runs whose layer inputs are in a file between forward and backward: the same
 * bits, arenas as planned, plans that the judge accepts; a choice made by the search; and what is
 * refused. */
#include <jansson.h>

#include "headroom/status.h"
#include "mem/sanitize.h"
#include "support/program.h"

static void put_recipe(const char *spill)
{
    char text[768];
    require_program();
    put_tiny_and_text();
    assert_int_equal(system("cat text.txt text.txt text.txt >long.txt"), 0);
    snprintf(text, sizeof text,
             "model: {d_model: 48, n_layers: 6, n_heads: 4, d_ff: 96, vocab_size: 300}\n"
             "data: {train: long.txt}\n"
             "train: {steps: 3, batch: 2, seq_len: 600, threads: 3}\n"
             "memory: {spill: %s}\n",
             spill);
    put("recipe.yaml", text);
}

/* A strategy that keeps `keep` in the lower layers and `all` above. */
static void put_strategy(const char *knobs, const char *keep, const char *all)
{
    char text[768];
    snprintf(text, sizeof text,
             "%sbackward_order: weight_grad_first\nreorder: no\n"
             "layers:\n  - layers: 0-2\n    keep: [%s]\n  - layers: 3-5\n    keep: [%s]\n",
             knobs, keep, all);
    put("strategy.yaml", text);
}

static void runs(const char *folder, const char *way)
{
    if (run("train recipe.yaml memory.strategy=strategy.yaml --out %s %s", folder, way))
        fail_msg("%s: %s", way, err);
}

static void inputs_in_a_file_change_no_bit(void **state)
{
    static const struct {
        const char *way, *keeps, *model;
    } ways[] = {
        { "model.family=llama", "norm, q, k, v, attention, mlp_input, gate, up, activation" },
        { "model.family=qwen3 train.dtype=bf16 memory.moments=file",
          "norm, q, k, v, attention, mlp_input, gate, up, activation" },
        { "model.family=gpt2 model.positions=600 train.seq_len=597", "norm, q, k, v, attention" },
        { "model.family=gpt_neox model.d_model=64 train.dtype=bf16 train.optimizer.clip=0",
          "attention, up" },
        { "model.family=needle model.d_model=64 model.dropout=0.1", "norm" },
        { "model.family=yxanul model.embedding_rank=8 train.freeze='*layers.[01].*'", "up" },
        { "model.family=llama memory.recompute_again=true", "" },
        { "model.family=qwen3 model.attention.kind=nsa train.dtype=bf16 "
          "memory.recompute_again=true",
          "" },
        { "model.family=needle model.d_model=64 model.dropout=0.1 memory.recompute_again=true",
          "" },
        { "model.family=llama train.adapter.kind=lora train.adapter.rank=4", "gate, mlp_input",
          "adapter_model" },
    };
    static const char *const knobs[] = {
        "micro_batch: 1\nloss_chunk: 64\nmlp_tile: full\nattention_tile: full\n"
        "gradient_release: no\n",
        "micro_batch: full\nloss_chunk: full\nmlp_tile: 600\nattention_tile: 600\n"
        "gradient_release: yes\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (size_t k = 0; k < sizeof knobs / sizeof *knobs; k++) {
            char kept[64], spilled[64];
            const char *model = ways[i].model ? ways[i].model : "model";
            snprintf(kept, sizeof kept, "kept/%s.safetensors", model);
            snprintf(spilled, sizeof spilled, "spilled/%s.safetensors", model);
            assert_int_equal(system("rm -rf kept spilled"), 0);
            put_recipe("no");
            const bool odd = strstr(ways[i].way, "597") != NULL;
            if (odd && k == 1) continue; /* tiles of 600 tokens */
            const char *tiles = odd ? "micro_batch: 1\nloss_chunk: full\n" : knobs[k];
            put_strategy(tiles, "", ways[i].keeps);
            runs("kept", ways[i].way);
            put_recipe("auto");
            runs("spilled", ways[i].way);
            assert_arena_as_planned(ways[i].way);
            assert_same_file(kept, spilled);
            assert_int_equal(access("spilled/scratch.tmp", F_OK), -1);
            if (run("plan recipe.yaml memory.strategy=strategy.yaml --out plan.json %s",
                    ways[i].way) ||
                run("verify plan.json"))
                fail_msg("%s: %s", ways[i].way, err);
            assert_int_equal(system("grep -q spilled plan.json"), 0);
        }
}

/* The bytes that the refusal of the last command names. */
static long long needed_bytes(void)
{
    char digits[32] = "";
    const char *least = strstr(out, "needs at least");
    assert_non_null(least);
    least += strcspn(least, "0123456789");
    for (char *to = digits; strchr("0123456789,", *least); least++)
        if (*least != ',') *to++ = *least;
    return atoll(digits);
}

/* A larger budget for each plan that does not fit, and a smaller one than any other key allows. */
static void the_search_spills_where_nothing_else_fits(void **state)
{
    static const char sizes[] = "model.family=llama train.batch=1 train.seq_len=4096 "
                                "train.optimizer.kind=sgd train.threads=1";
    (void)state;
    if (HR_THREAD_SANITIZER) return; /* the budgets below are not for its memory */
    put_recipe("no");
    assert_int_equal(run("plan recipe.yaml %s --budget 1MiB", sizes), HR_NO_FIT);
    assert_non_null(strstr(out, "memory.spill=auto"));
    const long long bytes = needed_bytes();
    assert_int_equal(run("plan recipe.yaml %s --budget %lld", sizes, bytes), HR_OK);
    const long long less = bytes - 300000;
    assert_int_equal(run("plan recipe.yaml %s --budget %lld", sizes, less), HR_NO_FIT);
    put_recipe("auto");
    if (run("train recipe.yaml %s train.steps=1 --budget %lld --out run", sizes, less))
        fail_msg("%s", err);
    assert_arena_as_planned(sizes);
    assert_int_equal(run("plan recipe.yaml %s --budget %lld", sizes, less), HR_OK);
    assert_non_null(strstr(out, "layer inputs"));
}

static void what_a_file_cannot_hold_is_refused(void **state)
{
    (void)state;
    put_recipe("auto");
    put_strategy("micro_batch: full\n", "", "");
    assert_int_equal(run("train recipe.yaml model.family=llama memory.strategy=strategy.yaml"),
                     HR_USAGE);
    assert_says("memory.spill=auto needs a directory for the file");
    assert_int_equal(run("plan recipe.yaml model.family=llama memory.strategy=strategy.yaml "
                         "memory.file_budget=64KiB"),
                     HR_NO_FIT);
    assert_says("the layer inputs need a file of");
    if (HR_THREAD_SANITIZER) return; /* the budgets below are not for its memory */
    static const char sizes[] = "model.family=llama train.batch=1 train.seq_len=4096";
    assert_int_equal(run("plan recipe.yaml %s memory.spill=no --budget 1MiB", sizes), HR_NO_FIT);
    const long long least = needed_bytes();
    assert_int_equal(run("plan recipe.yaml %s --budget %lld --json", sizes, least), HR_OK);
    assert_non_null(strstr(out, "\"name\": \"file\""));
    assert_int_equal(
        run("plan recipe.yaml %s --budget %lld memory.file_budget=64KiB --json", sizes, least),
        HR_OK);
    assert_null(strstr(out, "\"name\": \"file\""));
    assert_int_equal(run("plan recipe.yaml %s --budget %lld memory.file_budget=64KiB "
                         "memory.weights=auto --json",
                         sizes, least),
                     HR_OK);
    assert_null(strstr(out, "\"name\": \"file\""));
}

/* The middle stage fits only with layer inputs in the file, and the run resumes in it. */
static void one_file_serves_all_stages(void **state)
{
    static const char *const ways[] = { "model.family=llama memory.moments=file",
                                        "model.family=qwen3 train.dtype=bf16" };
    static const char sizes[] =
        "train.batch=1 train.seq_len=512 train.threads=1 train.checkpoint_every=1 "
        "train.keep_last=9 train.steps=6 "
        "'train.stages=seq_len=512; at_step=2 seq_len=4096; at_step=4 seq_len=1024'";
    (void)state;
    if (HR_THREAD_SANITIZER) return; /* the budgets below are not for its memory */
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_int_equal(system("rm -rf kept spilled"), 0);
        put_recipe("auto");
        assert_int_equal(run("plan recipe.yaml %s %s --budget 1MiB", sizes, ways[i]), HR_NO_FIT);
        const long long budget = needed_bytes();
        if (run("plan recipe.yaml %s %s --budget %lld --out plan.json", sizes, ways[i], budget))
            fail_msg("%s: %s", ways[i], err);
        assert_non_null(strstr(out, "layer inputs"));
        if (i > 0) {
            assert_int_equal(run("plan recipe.yaml %s %s --budget %lld memory.file_budget=64KiB",
                                 sizes, ways[i], budget),
                             HR_NO_FIT);
            assert_says("stage 2 of 3, 1 x 4096 tokens from step 2: the layer inputs need a file");
        }
        if (run("verify plan-1.json") || run("verify plan-2.json") || run("verify plan-3.json"))
            fail_msg("%s: %s", ways[i], err);
        assert_int_equal(system("grep -q spilled plan-2.json"), 0);
        for (int32_t again = 0; again < 2; again++) {
            if (run("train recipe.yaml %s %s --budget %lld --out spilled", sizes, ways[i], budget))
                fail_msg("%s: %s", ways[i], err);
            assert_arena_as_planned(ways[i]);
            assert_int_equal(system("rm -r spilled/checkpoints/step-*[456]"), 0);
        }
        put_recipe("no");
        assert_int_equal(run("plan recipe.yaml %s %s --budget %lld", sizes, ways[i], budget),
                         HR_NO_FIT);
        if (run("train recipe.yaml %s %s --out kept", sizes, ways[i])) fail_msg("%s", err);
        assert_same_file("kept/model.safetensors", "spilled/model.safetensors");
    }
}

/* Changes a plan: a member of every value in the file, or of every step of an operation. */
static void lie(const char *list, const char *member, const char *ends, const char *changed,
                json_t *value)
{
    json_t *plan = json_load_file("plan.json", 0, NULL), *item;
    size_t i, count = 0;
    json_array_foreach(json_object_get(plan, list), i, item)
    {
        const char *name = json_string_value(json_object_get(item, member));
        const size_t length = strlen(name), wanted = strlen(ends);
        if (length < wanted || strcmp(name + length - wanted, ends)) continue;
        json_object_set(item, changed, value);
        count++;
    }
    assert_true(count > 0);
    assert_int_equal(json_dump_file(plan, "lie.json", 0), 0);
    json_decref(plan);
    json_decref(value);
    if (run("verify lie.json") == HR_OK) fail_msg("%s of %s is not found", changed, ends);
}

static void the_judge_finds_wrong_spills(void **state)
{
    (void)state;
    put_recipe("auto");
    put_strategy("micro_batch: full\n", "", "");
    assert_int_equal(run("plan recipe.yaml model.family=llama memory.strategy=strategy.yaml "
                         "--out plan.json"),
                     HR_OK);
    assert_int_equal(run("verify plan.json"), HR_OK);
    lie("buffers", "name", ", spilled", "home", json_integer(-1));
    lie("buffers", "name", ", spilled", "role", json_string("sum"));
    lie("buffers", "name", ", spilled", "offset", json_integer(0));
    lie("buffers", "name", ", fetched", "bytes", json_integer(4096));
    lie("steps", "op", "fetch_wait", "op", json_string("norm"));
    lie("steps", "op", "spill_begin", "op", json_string("fetch_begin"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(inputs_in_a_file_change_no_bit),
        IN_A_FOLDER(the_search_spills_where_nothing_else_fits),
        IN_A_FOLDER(one_file_serves_all_stages),
        IN_A_FOLDER(what_a_file_cannot_hold_is_refused),
        IN_A_FOLDER(the_judge_finds_wrong_spills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
