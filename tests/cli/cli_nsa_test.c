/* SPDX-License-Identifier: Apache-2.0 */
/* cli_nsa_test.c - runs with native sparse attention: arenas as planned, plans that the judge
 * accepts, the same bits for any plan, a model that is evaluated and trained on; and what is
 * refused. */
#include "headroom/status.h"
#include "support/program.h"

static void put_recipe(void)
{
    require_program();
    put_tiny_and_text();
    assert_int_equal(system("cat text.txt text.txt text.txt >long.txt"), 0);
    put("recipe.yaml",
        "model: {family: llama, d_model: 32, n_layers: 2, n_heads: 4, n_kv_heads: 2, d_ff: 64,\n"
        "  vocab_size: 300, attention: {kind: nsa, nsa: {compress_block: 16, compress_stride: 8,\n"
        "  select_block: 16, select_count: 4, window: 40}}}\n"
        "data: {train: long.txt, tokenizer: bytes}\n"
        "train: {steps: 3, batch: 2, seq_len: 333, threads: 3}\n");
}

static void plans_are_exact_and_judged(void **state)
{
    static const char *const ways[] = {
        "model.family=llama",
        "model.family=qwen3 train.dtype=bf16 model.attention.nsa.branches=selected,window",
        "model.family=mistral model.attention.nsa.own_keys=true",
        "model.family=qwen2 memory.micro_batch=1 train.seq_len=100",
        "model.family=llama memory.recompute=layers train.dtype=bf16 memory.spill=auto",
        "model.family=llama train.adapter.kind=lora train.adapter.rank=2",
    };
    (void)state;
    put_recipe();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_int_equal(system("rm -rf run"), 0);
        if (run("train recipe.yaml --out run %s", ways[i])) fail_msg("%s: %s", ways[i], err);
        assert_arena_as_planned(ways[i]);
        if (run("plan recipe.yaml --out plan.json %s", ways[i]) || run("verify plan.json"))
            fail_msg("%s: %s", ways[i], err);
    }
}

static void a_model_is_read_again(void **state)
{
    (void)state;
    put_recipe();
    if (run("train recipe.yaml --out run model.attention.nsa.compress_hidden=24"))
        fail_msg("%s", err);
    if (run("eval run --file text.txt --context 300 --tokenizer bytes")) fail_msg("%s", err);
    if (run("train recipe.yaml model.from=run --out again train.steps=1")) fail_msg("%s", err);
    if (run("eval run --file text.txt --context 9 --tokenizer bytes")) fail_msg("%s", err);
}

static void what_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *keys, *says;
    } wrong[] = {
        { "model.attention.nsa.compress_stride=3", "compress_stride 3 must divide compress_block" },
        { "model.attention.nsa.select_block=24", "power of 2" },
        { "model.attention.nsa.window=0", "window" },
        { "model.attention.nsa.select_count=2",
          "has no room for select_first 1 and select_local 2: use select_count 3" },
        { "model.attention.nsa.branches=window", "\"selected, window\", not \"window\"" },
        { "train.seq_len=12", "train.seq_len 12 is below model.attention.nsa.compress_block 16" },
        { "model.n_kv_heads=3", "does not divide model.n_heads 4" },
        { "model.attention.sliding_window=8", "windows and blocks of its own" },
        { "data.documents=separate", "data.documents must be joined" },
        { "model.dropout=0.1", "has no dropout" },
        { "model.family=gpt2 model.n_kv_heads=auto", "gpt2 has no model.attention.kind nsa" },
    };
    (void)state;
    put_recipe();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (run("plan recipe.yaml %s", wrong[i].keys) != HR_USAGE)
            fail_msg("%s is not refused", wrong[i].keys);
        assert_says(wrong[i].says);
    }
}

static void a_plan_says_what_it_keeps(void **state)
{
    (void)state;
    put_recipe();
    assert_int_equal(run("plan recipe.yaml"), HR_OK);
    assert_non_null(strstr(out, "native sparse attention: 4 of 21 blocks of 16 tokens, window 40"));
    assert_int_equal(run("plan recipe.yaml model.attention.nsa.select_count=32 "
                         "model.attention.nsa.window=400"),
                     HR_OK);
    assert_non_null(strstr(out, "the selection keeps every block, the window every token"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(plans_are_exact_and_judged),
        IN_A_FOLDER(a_model_is_read_again),
        IN_A_FOLDER(what_cannot_be_is_refused),
        IN_A_FOLDER(a_plan_says_what_it_keeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
