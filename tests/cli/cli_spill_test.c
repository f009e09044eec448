/* SPDX-License-Identifier: Apache-2.0 */
/* cli_spill_test.c - runs whose layer inputs are in a file between forward and backward: the same
 * bits, arenas as planned, plans that the judge accepts; a choice made by the search; and what is
 * refused. */
#include "headroom/status.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(inputs_in_a_file_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
