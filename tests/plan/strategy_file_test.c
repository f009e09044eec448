/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_file_test.c - a printed strategy reads back equal; a file that is not a legal strategy
 * for the recipe is refused with one sentence that has the line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/layer_schema.h"
#include "plan/strategy_file.h"
#include "support/folder.h"
#include "support/random_strategy.h"

enum { SEED = 20250403, LAYERS_MOST = 40, TEXT_BYTES = 8192 };

static const char *write_file(const hr_folder *folder, const char *text)
{
    const char *path = hr_folder_path(folder, "s.yaml");
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    return path;
}

static void must(hr_status status, const hr_error *err)
{
    if (status != HR_OK) fail_msg("%s", err->message);
}

static void a_printed_strategy_reads_back_equal(void **state)
{
    (void)state;
    const hr_folder folder = hr_folder_open();
    print_message("seed %d\n", SEED);
    for (uint64_t turn = 0; turn < 300 * HR_COUNT; turn++) {
        hr_config config = random_config(SEED, turn);
        config.model.n_layers = draw_layers(&config, SEED, turn, 30, LAYERS_MOST);
        hr_intermediates recompute_set[LAYERS_MOST], read[LAYERS_MOST];
        hr_strategy strategy = random_strategy(&config, SEED, turn, recompute_set);
        strategy.reorder = turn % 2;
        if (turn % 3 == 0) /* long runs */
            for (int32_t l = 1; l < strategy.layer_count; l++)
                if (l % 7) recompute_set[l] = recompute_set[l - 1];
        char text[TEXT_BYTES], again[TEXT_BYTES];
        hr_writer writer = { text, sizeof text }, other = { again, sizeof again };
        hr_strategy got = { .recompute_set = read };
        hr_error err;
        hr_strategy_print(&config, &strategy, &writer);
        assert_false(writer.cut);
        must(hr_strategy_read(&config, write_file(&folder, text), &got, &err), &err);
        assert_int_equal(got.micro_batch, strategy.micro_batch);
        assert_int_equal(got.loss_chunk, strategy.loss_chunk);
        assert_int_equal(got.mlp_tile, strategy.mlp_tile);
        assert_int_equal(got.attention_tile, strategy.attention_tile);
        assert_int_equal(got.dw_first, strategy.dw_first);
        assert_int_equal(got.consume, strategy.consume);
        assert_int_equal(got.reorder, strategy.reorder);
        assert_int_equal(got.layer_count, strategy.layer_count);
        assert_ptr_equal(got.recompute_set, read);
        assert_memory_equal(read, recompute_set, (size_t)strategy.layer_count * sizeof *read);
        hr_strategy_print(&config, &got, &other);
        assert_string_equal(text, again);
    }
    hr_folder_close(&folder);
}

static hr_config recipe(int32_t family)
{
    hr_config config;
    hr_config_default(&config);
    config.model.family = family;
    config.model.n_layers = 4;
    config.model.parallel_residual = false;
    config.train.batch = 6;
    config.train.seq_len = 128;
    return config;
}

static void adjacent_layers_with_one_set_share_an_entry(void **state)
{
    (void)state;
    const hr_config config = recipe(HR_FAMILY_GPT_NEOX);
    hr_intermediates recompute_set[] = { 0, 0,
                                         1u << HR_INTERMEDIATE_NORM | 1u << HR_INTERMEDIATE_MID,
                                         (1u << HR_INTERMEDIATES) - 2 };
    const hr_strategy strategy = {
        .micro_batch = 3, .loss_chunk = 64, .layer_count = 4, .recompute_set = recompute_set
    };
    char text[TEXT_BYTES];
    hr_writer writer = { text, sizeof text };
    hr_strategy_print(&config, &strategy, &writer);
    assert_string_equal(
        text,
        "micro_batch: 3                     # sequences per forward/backward pass; full: the "
        "batch\n"
        "loss_chunk: 64                     # tokens per chunk of logits and loss; full: the "
        "micro-batch\n"
        "mlp_tile: full                     # tokens per MLP tile; full: the micro-batch\n"
        "attention_tile: full               # tokens per attention tile; full: the micro-batch\n"
        "backward_order: input_grad_first   # of the two gradients of a linear layer\n"
        "gradient_release: no               # yes: update each weight during backward\n"
        "reorder: no                        # yes: move operations to lower the peak\n"
        "layers:                            # activations to keep; backward recomputes the others\n"
        "  - layers: 0-1\n"
        "    keep: [norm, q, k, v, attention, mlp_input, up, activation]\n"
        "  - layers: 2\n"
        "    keep: [q, k, v, attention, up, activation]\n"
        "  - layers: 3\n    keep: []\n");
}

#define ALL "layers:\n - { layers: 0-3, keep: [] }\n"

static void words_of_earlier_versions_are_accepted(void **state)
{
    (void)state;
    static const char old_text[] = "micro_batch: whole\norder: dx_first\ngradients: consumed\n"
                                   "layers:\n - { layers: 0-3, keep: [norm, mid] }\n";
    static const char text[] = "micro_batch: full\nbackward_order: input_grad_first\n"
                               "gradient_release: yes\n"
                               "layers:\n - { layers: 0-3, keep: [norm, mlp_input] }\n";
    const hr_folder folder = hr_folder_open();
    const hr_config config = recipe(HR_FAMILY_NEEDLE);
    hr_intermediates recompute_set[2][4];
    hr_strategy got[2] = { { .recompute_set = recompute_set[0] },
                           { .recompute_set = recompute_set[1] } };
    hr_error err;
    must(hr_strategy_read(&config, write_file(&folder, old_text), &got[0], &err), &err);
    must(hr_strategy_read(&config, write_file(&folder, text), &got[1], &err), &err);
    char printed[2][TEXT_BYTES];
    for (int32_t i = 0; i < 2; i++) {
        hr_writer writer = { printed[i], TEXT_BYTES };
        hr_strategy_print(&config, &got[i], &writer);
        assert_true(got[i].consume && !got[i].dw_first);
    }
    assert_string_equal(printed[0], printed[1]);
    assert_memory_equal(recompute_set[0], recompute_set[1], sizeof recompute_set[0]);
    hr_folder_close(&folder);
}

static void omitted_tiles_are_full(void **state)
{
    (void)state;
    const hr_folder folder = hr_folder_open();
    const hr_config config = recipe(HR_FAMILY_NEEDLE);
    hr_intermediates recompute_set[4];
    hr_strategy got = { .recompute_set = recompute_set };
    hr_error err;
    must(hr_strategy_read(&config, write_file(&folder, ALL), &got, &err), &err);
    assert_int_equal(got.micro_batch + got.loss_chunk + got.mlp_tile + got.attention_tile, 0);
    assert_true(got.dw_first);
    assert_false(got.consume);
    for (int32_t l = 0; l < 4; l++)
        assert_int_equal(recompute_set[l], hr_layer_schema_of(&config).present);
    hr_folder_close(&folder);
}

static void an_invalid_strategy_file_is_refused_with_one_sentence(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "", "a strategy is a mapping of" },
        { "3", ":1: a strategy is a mapping of" },
        { "[]", "a strategy is a mapping of" },
        { "layers: 3\n", "a strategy is a mapping of" },
        { "layers:\n - 3\n", "a strategy is a mapping of" },
        { "order: [dw_first]\n" ALL, "a strategy is a mapping of" },
        { "micro_batch: {}\n" ALL, "a strategy is a mapping of" },
        { ALL "---\n" ALL, "a strategy is a mapping of" },
        { "micro_batch: &a 3\n" ALL, "a strategy is a mapping of" },
        { "micro_batch: !x 3\n" ALL, "a strategy is a mapping of" },
        { "micro_batch: *a\n" ALL, "a strategy is a mapping of" },
        { "layers:\n - { layers: 0-3, keep: [[norm]] }\n", "a strategy is a mapping of" },
        { "layers:\n - { layers: 0-3, keep: norm }\n", "a strategy is a mapping of" },
        { "micro_batch: 3\nmicrobatch: 2\n" ALL, ":2: microbatch is not a key of a strategy" },
        { "micro_batch: 3\nmicro_batch: 3\n" ALL, ":2: micro_batch is given twice" },
        { "order: first\n" ALL,
          ":1: backward_order is weight_grad_first or input_grad_first, not first" },
        { "gradients: eaten\n" ALL, ":1: gradient_release is yes or no, not eaten" },
        { "gradients: kept\ngradients: kept\n" ALL, ":2: gradient_release is given twice" },
        { "reorder: maybe\n" ALL, ":1: reorder is yes or no, not maybe" },
        { "gradients: [kept]\n" ALL, "a strategy is a mapping of" },
        { "gradients: consumed\nmicro_batch: 3\n" ALL,
          "micro_batch 3 accumulates gradients over 2 micro-batches: gradient_release "
          "needs one" },
        { "mlp_tile: 0\n" ALL, "it takes an integer from 1 or the word full, not 0" },
        { "mlp_tile: -64\n" ALL, "it takes an integer from 1 or the word full, not -64" },
        { "mlp_tile: 1e3\n" ALL, "it takes an integer from 1 or the word full, not 1e3" },
        { "mlp_tile: 99999999999999999999\n" ALL, "not 99999999999999999999" },
        { "micro_batch: 4\n" ALL, "micro_batch 4 does not divide train.batch 6" },
        { "micro_batch: 12\n" ALL, "micro_batch 12 does not divide train.batch 6" },
        { "mlp_tile: 100\n" ALL, "with train.seq_len 128 it must be a multiple of 64" },
        { "layers:\n - { layers: 0-2, keep: [] }\n",
          "layer 3 has no entry; each of the 4 layers needs one" },
        { "layers: []\n", "layer 0 has no entry" },
        { "micro_batch: 3\n", "layer 0 has no entry" },
        { "layers:\n - { layers: 0-3, keep: [] }\n - { layers: 2, keep: [] }\n",
          ":3: layer 2 is given twice" },
        { "layers:\n - { layers: 0-4, keep: [] }\n",
          ":2: there is no layer 4: model.n_layers is 4" },
        { "layers:\n - { layers: 3-0, keep: [] }\n",
          "layers takes a layer or a range such as 0-5" },
        { "layers:\n - { layers: all, keep: [] }\n",
          "layers takes a layer or a range such as 0-5" },
        { "layers:\n - { layers: -1, keep: [] }\n", "layers takes a layer or a range such as 0-5" },
        { "layers:\n - { layers: 0-3 }\n", "an entry needs both layers and keep" },
        { "layers:\n - { keep: [] }\n", "an entry needs both layers and keep" },
        { "layers:\n - { layers: 0-3, layers: 0-3, keep: [] }\n", "layers is given twice" },
        { "layers:\n - { layers: 0-3, keep: [], keep: [] }\n", "keep is given twice" },
        { "layers:\n - { layers: 0-3, drop: [] }\n", "drop is not a key of an entry of layers" },
        { "layers:\n - { layers: 0-3, keep: [gate] }\n", "a layer of this model has no gate" },
        { "layers:\n - { layers: 0-3, keep: [door] }\n", "door is no activation of a layer" },
        { "layers:\n - { layers: 0-3, keep: [qkv] }\n", ":2: write q, k, v instead of qkv" },
        { "layers:\n - { layers: 0-3, keep: [norm, norm] }\n", "norm is given twice" },
        { "layers:\n - { layers: 0-3, keep: [up] }\n", "a layer of this model has no up" },
        { "micro_batch: \"3\n", "not YAML: " },
        { "\x01", "not YAML: " },
    };
    (void)state;
    const hr_folder folder = hr_folder_open();
    const hr_config config = recipe(HR_FAMILY_NEEDLE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_intermediates recompute_set[4];
        hr_strategy got = { .micro_batch = 77, .recompute_set = recompute_set };
        hr_error err;
        const char *path = write_file(&folder, cases[i].text);
        if (hr_strategy_read(&config, path, &got, &err) != HR_USAGE)
            fail_msg("taken: %s", cases[i].text);
        if (!strstr(err.message, cases[i].says) || !strstr(err.message, "s.yaml"))
            fail_msg("%s\nsays: %s\nnot: %s", cases[i].text, err.message, cases[i].says);
        assert_int_equal(got.micro_batch, 77);
        assert_ptr_equal(got.recompute_set, recompute_set);
    }
    hr_intermediates recompute_set[4];
    hr_strategy got = { .recompute_set = recompute_set };
    hr_error err;
    const hr_config fused = recipe(HR_FAMILY_GPT_NEOX);
    const char *path = write_file(&folder, "layers:\n - { layers: 0-3, keep: [norm, q, v] }\n");
    assert_int_equal(hr_strategy_read(&config, path, &got, &err), HR_OK);
    assert_int_equal(hr_strategy_read(&fused, path, &got, &err), HR_USAGE);
    assert_non_null(strstr(err.message,
                           ":2: q, k, v are one buffer in this model: keep all of them "
                           "or none"));
    assert_int_equal(hr_strategy_read(&config, "/none/such", &got, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "strategy /none/such: no such file"));
    assert_int_equal(hr_strategy_read(&config, "/", &got, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "strategy /: is a directory, a file is needed"));
    hr_folder_close(&folder);
}

/* Random bytes: the reader always ends with an answer. */
static void random_bytes_never_break_the_reader(void **state)
{
    static const char seeds[] =
        "micro_batch: 3\nlayers:\n  - layers: 0-3\n    keep: [norm, q, v]\n";
    (void)state;
    const hr_folder folder = hr_folder_open();
    const hr_config config = recipe(HR_FAMILY_NEEDLE);
    int64_t refused = 0;
    for (uint64_t turn = 0; turn < 2000 * HR_COUNT; turn++) {
        char text[sizeof seeds];
        hr_intermediates recompute_set[4];
        hr_strategy got = { .recompute_set = recompute_set };
        hr_error err;
        memcpy(text, seeds, sizeof seeds);
        for (uint32_t k = 0; k < 1 + turn % 4; k++)
            text[between(SEED, turn, 60 + 2 * k, 0, sizeof seeds - 2)] = (char)between(
                SEED, turn, 61 + 2 * k, 1, 255);
        const hr_status status = hr_strategy_read(&config, write_file(&folder, text), &got, &err);
        assert_true(status == HR_OK || status == HR_USAGE);
        if (status != HR_OK) assert_int_equal(err.status, status);
        if (status != HR_OK) assert_null(strchr(err.message, '\n'));
        refused += status != HR_OK;
    }
    assert_in_range(refused, 1, 2000 * HR_COUNT - 1);
    hr_folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_printed_strategy_reads_back_equal),
        cmocka_unit_test(adjacent_layers_with_one_set_share_an_entry),
        cmocka_unit_test(words_of_earlier_versions_are_accepted),
        cmocka_unit_test(omitted_tiles_are_full),
        cmocka_unit_test(an_invalid_strategy_file_is_refused_with_one_sentence),
        cmocka_unit_test(random_bytes_never_break_the_reader),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
