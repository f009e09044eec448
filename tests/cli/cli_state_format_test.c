/* SPDX-License-Identifier: Apache-2.0 */
/* cli_state_format_test.c - moments as 8-bit codes or in bf16, and weights without fp32 masters: a
 * resumed run has the bytes of one that was never stopped, on any number of threads. It goes on in
 * another format if that is allowed. Adafactor has neither. */
#define _GNU_SOURCE
#include "headroom/status.h"
#include "mem/sanitize.h"
#include "support/program.h"

/* Matrices with an odd number of rows and columns have padding in their panels. */
static const char recipe[] =
    "model: {d_model: 80, n_layers: 1, n_heads: 2, d_ff: 165, vocab_size: 300}\n"
    "train: {batch: 4, seq_len: 64, threads: 2, checkpoint_every: end}\n"
    "train.schedule.kind: constant\n";

static void shell(const char *command)
{
    if (system(command)) fail_msg("%s", command);
}

static void train(const char *settings, int steps, const char *out_folder)
{
    if (run("train recipe.yaml data.train=text.txt %s train.steps=%d --out %s", settings, steps,
            out_folder))
        fail_msg("%s", err);
}

static void prepare(void)
{
    require_program();
    put_tiny_and_text();
    put("recipe.yaml", recipe);
}

static void a_resumed_run_has_the_bytes_of_one_that_was_never_stopped(void **state)
{
    static const char *const settings[] = {
        "train.state.moments=int8",
        "train.state.moments=int8 train.dtype=bf16 train.ema_decay=0.9",
        "train.state.moments=int8 train.optimizer.kind=sgd",
        "train.state.moments=bf16",
        "train.state.moments=bf16 train.optimizer.kind=lion train.dtype=bf16",
        "train.state.moments=int8 model.family=gpt2 model.tie_embeddings=true",
        "train.state.moments=bf16 model.family=gpt2 model.tie_embeddings=true",
        "train.dtype=bf16 train.state.master=residual16 train.ema_decay=0.9",
        "train.dtype=bf16 train.state.master=none train.ema_decay=0.9",
        "train.dtype=bf16 train.state.master=residual16 train.state.moments=int8",
        "train.dtype=bf16 train.state.master=residual8 train.state.moments=int8 "
        "train.ema_decay=0.9",
        "train.dtype=bf16 train.state.master=none train.optimizer.kind=lion "
        "train.state.moments=int8",
        "train.dtype=bf16 train.state.master=none model.family=gpt2 model.tie_embeddings=true "
        "memory.micro_batch=1",
        "train.dtype=bf16 train.state.master=residual16 train.optimizer.kind=adafactor "
        "train.optimizer.adafactor.beta1=0.9",
        "train.dtype=bf16 train.state.master=none train.optimizer.kind=adafactor",
        "train.optimizer.kind=muon train.optimizer.muon.scale=original",
        "train.optimizer.kind=muon train.dtype=bf16 train.state.moments=int8 "
        "train.state.master=residual16 memory.micro_batch=1",
    };
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char other[256];
        print_message("%s\n", settings[i]);
        shell("rm -rf whole parts");
        train(settings[i], 5, "whole");
        snprintf(other, sizeof other, "%s train.threads=1", settings[i]);
        train(other, 2, "parts");
        train(other, 5, "parts");
        shell("for file in whole/checkpoints/step-000000000005/*.safetensors; do "
              "cmp $file parts/checkpoints/step-000000000005/${file##*/} || exit 1; done");
        shell("cmp whole/model.safetensors parts/model.safetensors");
    }
}

/* tests/checkpoint/check_moments.py compares the moments that such a run goes on with. */
static void a_run_goes_on_with_moments_in_another_format_if_that_is_allowed(void **state)
{
    static const char *const formats[] = { "fp32", "bf16", "int8" };
    static const char command[] = "train recipe.yaml data.train=text.txt train.state.moments=%s "
                                  "train.steps=3 --out run %s";
    (void)state;
    prepare();
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++) {
            char settings[64];
            if (from == to) continue;
            snprintf(settings, sizeof settings, "train.state.moments=%s", formats[from]);
            shell("rm -rf run");
            train(settings, 2, "run");
            assert_int_equal(run(command, formats[to], ""), HR_USAGE);
            assert_non_null(strstr(err, "1 change is not allowed"));
            assert_int_equal(run(command, formats[to], "--allow-change train.state.moments"),
                             HR_OK);
            char said[128];
            snprintf(said, sizeof said, "moment_1.safetensors of the checkpoint: from %s to %s, ",
                     formats[from], formats[to]);
            assert_non_null(strstr(err, said));
            shell("test $(ls -A run/checkpoints | grep -c partial) = 0");
        }
}

/* Only fp32 to bf16 loses bits: residuals are those of fp32 weights. */
static void weights_go_on_with_other_masters_if_that_is_allowed(void **state)
{
    static const char *const masters[] = { "fp32", "none", "residual16", "none", "fp32" };
    static const char command[] = "train recipe.yaml data.train=text.txt train.dtype=bf16 "
                                  "train.state.master=%s train.steps=%d --out run %s";
    (void)state;
    prepare();
    train("train.dtype=bf16 train.state.master=fp32", 2, "run");
    for (int i = 1; i < 5; i++) {
        const bool narrower = i % 2;
        assert_int_equal(run(command, masters[i], 2 * i + 2, ""), HR_USAGE);
        assert_int_equal(run(command, masters[i], 2 * i + 2, "--allow-change train.state.master"),
                         HR_OK);
        assert_non_null(strstr(err, narrower ? "model.safetensors of the checkpoint: from fp32 to "
                                               "bf16, which keeps 8 of 24 significant bits"
                                             : "model.safetensors of the checkpoint: from bf16 to "
                                               "fp32, which loses nothing"));
    }
}

/* The formats that give up least are chosen, and a resumed run keeps them. */
static void formats_are_chosen_by_what_fits(void **state)
{
    static const char recipe_auto[] = "recipe.yaml train.dtype=bf16 train.state.master=auto "
                                      "train.state.moments=auto model.d_ff=1600";
    static const struct {
        const char *allow, *chosen;
    } cases[] = {
        { "''", "train.state.master=residual16 train.state.moments=fp32: the smallest of 2" },
        { "bf16", "train.state.master=residual16 train.state.moments=bf16: the smallest of 4" },
        { "'int8 none'", "train.state.master=none train.state.moments=int8: the smallest of 6" },
        { "'residual8, int8'", "train.state.master=residual8 train.state.moments=int8: the small" },
    };
    long long whole, half;
    (void)state;
    prepare();
    assert_int_equal(run("plan %s", recipe_auto), HR_OK);
    assert_non_null(strstr(err, "train.state.master=fp32 train.state.moments=fp32: number 1 "
                                "of 2 allowed, the first that fits; it trains as with fp32 "
                                "states\n"));
    /* What is given is not changed. */
    assert_int_equal(run("plan recipe.yaml train.state.master=residual16 train.state.moments=auto"),
                     HR_USAGE);
    assert_non_null(strstr(err, "train.state.master is for bf16 weights"));
    assert_int_equal(run("plan %s train.state.moments=int8", recipe_auto), HR_OK);
    assert_non_null(strstr(err, "train.state.master=fp32 train.state.moments=int8: number 1 of 2 "
                                "allowed, the first that fits; loss "));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("plan %s model.d_ff=100000 memory.allow=%s --budget 1MiB", recipe_auto,
                             cases[i].allow),
                         HR_NO_FIT);
        assert_non_null(strstr(err, cases[i].chosen));
    }
    /* Planning needs most of this one, and least with fp32. */
    assert_int_equal(run("plan %s memory.allow='int8 none' --budget 1MiB", recipe_auto), HR_NO_FIT);
    if (!HR_THREAD_SANITIZER) /* it plans with another heap */
        assert_non_null(
            strstr(err, "train.state.master=fp32 train.state.moments=fp32: the smallest"));
    assert_int_equal(run("plan %s memory.allow=int9", recipe_auto), HR_USAGE);
    assert_non_null(strstr(err, "memory.allow takes formats of train.state: "));
    assert_int_equal(run("plan %s --grid train.batch=2,4", recipe_auto), HR_USAGE);
    assert_non_null(strstr(err, "train.state.master=auto is chosen by headroom plan and train"));

    /* Between the least bytes of fp32 states and of others: the first that fits in the middle. */
    static const char words[] = "plan recipe.yaml train.dtype=bf16 model.d_ff=1600 "
                                "train.state.master=%s --json";
    assert_int_equal(run(words, "fp32"), HR_OK);
    sscanf(strstr(out, "\"minimum_bytes\":"), "\"minimum_bytes\": %lld", &whole);
    assert_int_equal(run(words, "residual16"), HR_OK);
    sscanf(strstr(out, "\"minimum_bytes\":"), "\"minimum_bytes\": %lld", &half);
    assert_true(half < whole);
    assert_int_equal(run("train %s data.train=text.txt train.steps=2 --out run --budget %lld",
                         recipe_auto, (whole + half) / 2),
                     HR_OK);
    assert_non_null(strstr(err,
                           "train.state.master=residual16 train.state.moments=fp32: number 2 "
                           "of 2 allowed, the first that fits; it trains as with fp32 states\n"));
    assert_int_equal(run("train %s data.train=text.txt train.steps=3 --out run", recipe_auto),
                     HR_OK);
    assert_non_null(strstr(err, "train.state.master=residual16 train.state.moments=fp32: the "
                                "formats of the checkpoint\n"));
}

/* With an odd number of inputs the blocks are others. */
static void codes_go_on_in_another_dtype(void **state)
{
    static const char *const dtypes[] = { "fp32", "bf16" };
    static const int d_ff[] = { 168, 165 };
    (void)state;
    prepare();
    for (int odd = 0; odd < 2; odd++)
        for (int from = 0; from < 2; from++) {
            char settings[96];
            snprintf(settings, sizeof settings, "train.state.moments=int8 model.d_ff=%d",
                     d_ff[odd]);
            shell("rm -rf run");
            assert_int_equal(run("train recipe.yaml data.train=text.txt %s train.dtype=%s "
                                 "train.steps=2 --out run",
                                 settings, dtypes[from]),
                             HR_OK);
            assert_int_equal(run("train recipe.yaml data.train=text.txt %s train.dtype=%s "
                                 "train.steps=4 --allow-change train.dtype --out run",
                                 settings, dtypes[!from]),
                             HR_OK);
            assert_int_equal(!!strstr(err, "from int8 to int8, in other blocks"), odd);
        }
}

static void adafactor_keeps_its_states_in_fp32_and_in_memory(void **state)
{
    static const char plan[] = "plan recipe.yaml train.optimizer.kind=adafactor";
    (void)state;
    prepare();
    assert_int_equal(run("%s train.state.moments=int8", plan), HR_USAGE);
    assert_non_null(strstr(err, "train.optimizer.kind adafactor keeps its states in fp32: use "
                                "train.state.moments=fp32"));
    assert_int_equal(run("%s memory.moments=file --out run", plan), HR_USAGE);
    assert_non_null(strstr(err, "updates whole matrices, so its states stay in memory"));
    assert_int_equal(run("%s", plan), HR_OK);
}

/* Residuals are exact, in memory and in files, from loaded weights on, and with everything that
 * reads a weight. */
static void residuals_train_the_weights_of_fp32_masters(void **state)
{
    static const char *const settings[] = {
        "train.ema_decay=0.9",
        "train.state.moments=int8 train.ema_decay=0.9 memory.micro_batch=1",
        "train.optimizer.kind=lion memory.moments=file model.d_ff=400",
        "train.optimizer.kind=sgd train.freeze='*embed*' train.kernels=avx2",
        "train.optimizer.kind=adam model.from=first",
    };
    (void)state;
    prepare();
    train("train.dtype=bf16", 1, "first");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char other[256];
        print_message("%s\n", settings[i]);
        shell("rm -rf wide half");
        snprintf(other, sizeof other, "%s train.dtype=bf16", settings[i]);
        train(other, 4, "wide");
        snprintf(other, sizeof other, "%s train.dtype=bf16 train.state.master=residual16",
                 settings[i]);
        train(other, 4, "half");
        shell("for file in wide/checkpoints/step-000000000004/*.safetensors; do "
              "cmp $file half/checkpoints/step-000000000004/${file##*/} || exit 1; done");
    }
}

/* The file of residuals is that of fp32 masters, so a run may change between them; weights without
 * masters have fewer bits. */
/* Matrices of this size have strips: their residuals move with them, and the bits that round belong
 * to elements of the whole weight. */
static void released_strips_keep_every_bit_without_masters(void **state)
{
    static const char *const masters[] = { "residual16", "none" };
    static const char *const settings[] = { "", "train.optimizer.clip=0",
                                            "train.optimizer.kind=sgd",
                                            "train.optimizer.kind=lion train.optimizer.clip=0.1",
                                            "train.state.moments=int8 train.ema_decay=0.9" };
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (size_t k = 0; k < sizeof masters / sizeof *masters; k++) {
            if (run("prove recipe.yaml data.train=text.txt model.d_model=256 model.d_ff=1024 "
                    "train.dtype=bf16 train.state.master=%s %s --only release",
                    masters[k], settings[i]))
                fail_msg("%s, %s: %s", masters[k], settings[i], err);
            assert_non_null(strstr(out, "\nrelease         pass "));
            assert_non_null(strstr(out, ": every bit is equal\n"));
        }
}

/* At the smallest budget the output matrix is updated in strips. Its residual has more elements
 * than a strip of its gradient, and is no mistake. */
static void a_plan_with_strips_of_residuals_is_verified(void **state)
{
    long long budget = 0;
    (void)state;
    prepare();
    put("wide.yaml", "model: {d_model: 256, n_layers: 1, n_heads: 2, d_ff: 1024}\n"
                     "model.vocab_size: 2048\n"
                     "train: {batch: 4, seq_len: 64, threads: 2, dtype: bf16}\n"
                     "train.state.master: residual16\n"
                     "train.optimizer: {kind: lion, clip: 0}\n");
    assert_int_equal(run("plan wide.yaml --json"), HR_OK);
    const char *least = strstr(out, "\"minimum_bytes\":");
    assert_non_null(least);
    sscanf(least, "\"minimum_bytes\": %lld", &budget);
    assert_int_equal(run("plan wide.yaml --budget %lld --out plan.json", budget), HR_OK);
    if (run("verify plan.json")) fail_msg("%s", err);
    shell("grep -q strip plan.json");
}

static void masters_are_refused_where_there_are_none(void **state)
{
    (void)state;
    prepare();
    assert_int_equal(run("plan recipe.yaml train.state.master=none"), HR_USAGE);
    assert_non_null(strstr(
        err, "train.state.master is for bf16 weights, and with train.dtype=fp32 they are fp32: "
             "use train.dtype=bf16, or train.state.master=fp32\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_resumed_run_has_the_bytes_of_one_that_was_never_stopped),
        IN_A_FOLDER(a_run_goes_on_with_moments_in_another_format_if_that_is_allowed),
        IN_A_FOLDER(weights_go_on_with_other_masters_if_that_is_allowed),
        IN_A_FOLDER(formats_are_chosen_by_what_fits),
        IN_A_FOLDER(codes_go_on_in_another_dtype),
        IN_A_FOLDER(residuals_train_the_weights_of_fp32_masters),
        IN_A_FOLDER(released_strips_keep_every_bit_without_masters),
        IN_A_FOLDER(a_plan_with_strips_of_residuals_is_verified),
        IN_A_FOLDER(masters_are_refused_where_there_are_none),
        IN_A_FOLDER(adafactor_keeps_its_states_in_fp32_and_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
