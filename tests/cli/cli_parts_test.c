/* SPDX-License-Identifier: Apache-2.0 */
/* cli_parts_test.c - runs whose attention works on a part of a sequence at a time: the same bits,
 * arenas as planned, plans that the judge accepts; and what is refused. */
#include "headroom/status.h"
#include "support/program.h"

#define NSA \
    "model.family=llama model.attention.kind=nsa model.attention.nsa.select_count=5 " \
    "model.attention.nsa.window=100"

static void put_recipe(void)
{
    require_program();
    put_tiny_and_text();
    assert_int_equal(system("cat text.txt text.txt text.txt >long.txt"), 0);
    put("recipe.yaml",
        "model: {d_model: 32, n_layers: 2, n_heads: 4, n_kv_heads: 2, d_ff: 64, vocab_size: 300}\n"
        "data: {train: long.txt}\n"
        "train: {steps: 2, batch: 2, seq_len: 1300, threads: 3}\n"
        "memory: {micro_batch: 1}\n");
}

/* A strategy with a tile of attention, and all or nothing recomputed. */
static void put_strategy(const char *tile, bool recomputes)
{
    char text[512];
    snprintf(text, sizeof text,
             "micro_batch: 1\nloss_chunk: full\nmlp_tile: full\nattention_tile: %s\n"
             "backward_order: weight_grad_first\ngradient_release: no\nreorder: no\n"
             "layers:\n  - layers: 0-1\n    keep: [%s]\n",
             tile, recomputes ? "" : "norm, q, k, v, attention, mlp_input, gate, up, activation");
    put("strategy.yaml", text);
}

static void parts_of_sequences_change_no_bit(void **state)
{
    static const char *const ways[] = {
        "model.family=llama",
        "model.family=qwen3 train.dtype=bf16",
        "model.family=mistral model.attention.sliding_window=600",
        "model.family=qwen2 data.documents=separate",
        "model.family=yxanul model.embedding_rank=8 model.dropout=0.1 train.dtype=bf16",
        "model.family=llama model.attention.pattern=mixed model.attention.stride=3",
        NSA,
        NSA " train.dtype=bf16 model.attention.nsa.own_keys=true",
        NSA " model.attention.nsa.branches=selected,window",
    };
    static const char *const tiles[] = { "512", "1024" };
    (void)state;
    put_recipe();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (int recomputes = 0; recomputes < 2; recomputes++) {
            put_strategy("full", recomputes);
            if (run("train recipe.yaml memory.strategy=strategy.yaml --fresh --out whole %s",
                    ways[i]))
                fail_msg("%s: %s", ways[i], err);
            for (int t = 0; t < 2; t++) {
                put_strategy(tiles[t], recomputes);
                if (run("train recipe.yaml memory.strategy=strategy.yaml --fresh --out parts %s",
                        ways[i]))
                    fail_msg("%s: %s", ways[i], err);
                assert_arena_as_planned(ways[i]);
                assert_same_file("whole/model.safetensors", "parts/model.safetensors");
                if (run("plan recipe.yaml memory.strategy=strategy.yaml --out plan.json %s",
                        ways[i]) ||
                    run("verify plan.json"))
                    fail_msg("%s: %s", ways[i], err);
                assert_int_equal(system("grep -q '\"attention tile\"' plan.json"), 0);
            }
        }
}

static void parts_that_cannot_be_are_refused(void **state)
{
    (void)state;
    put_recipe();
    put_strategy("700", false);
    assert_int_equal(run("plan recipe.yaml memory.strategy=strategy.yaml model.family=llama"),
                     HR_USAGE);
    assert_says(
        "attention_tile is in tokens: 700 is no multiple of train.seq_len 1300, nor of 512");
    put_strategy("512", true);
    assert_int_equal(run("plan recipe.yaml memory.strategy=strategy.yaml model.family=gpt2 "
                         "model.n_kv_heads=auto model.positions=1300"),
                     HR_USAGE);
    assert_says("attention_tile is in tokens: 512 is no multiple of train.seq_len 1300");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(parts_of_sequences_change_no_bit),
        IN_A_FOLDER(parts_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
