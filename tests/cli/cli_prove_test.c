/* SPDX-License-Identifier: Apache-2.0 */
/* cli_prove_test.c - the output of prove, what it refuses, and its end after a signal. */
#include "headroom/prove.h"
#include "headroom/status.h"
#include "support/program.h"

static int32_t count_of(const char *text, const char *word)
{
    int32_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) count++;
    return count;
}

static bool is_empty(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "test -z \"$(ls -A %s)\"", folder);
    return system(command) == 0;
}

/* The process stays within the budget: each run checks its peak against its plan. */
static void text_and_json_list_every_proof(void **state)
{
    (void)state;
    const char *budget = *SANITIZED_BUDGET ? SANITIZED_BUDGET : " --budget 64MiB";
    require_program();
    put_tiny_and_text();
    assert_int_equal(system("mkdir kept"), 0);
    assert_int_equal(run("prove tiny.yaml --dir kept data.train=text.txt%s", budget), HR_OK);
    assert_string_equal(err, "");
    assert_ptr_equal(strstr(out, "prove  gpt_neox, "), out);
    assert_non_null(strstr(out, "\ndata   text.txt\n"));
    const int32_t passed = count_of(out, " pass  "), none = count_of(out, " does not apply: ");
    assert_int_equal(count_of(out, ": every bit is equal\n"), passed);
    assert_int_equal(passed + none, 22);
    assert_true(passed >= 10);
    assert_true(is_empty("kept"));
    assert_int_equal(run("prove tiny.yaml --dir kept --json --steps 3"), HR_OK);
    json_t *answer = out_json();
    const json_t *proofs = json_object_get(answer, "proofs");
    assert_int_equal(json_array_size(proofs), 22);
    assert_int_equal(json_integer_value(json_object_get(answer, "passed")), passed);
    assert_int_equal(json_integer_value(json_object_get(answer, "steps")), 3);
    assert_string_equal(json_string_value(json_object_get(answer, "data")),
                        "random tokens: the recipe names no data.train");
    const json_t *first = json_array_get(proofs, 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "plan");
    assert_string_equal(json_string_value(json_object_get(first, "outcome")), "pass");
    assert_true(json_integer_value(json_object_get(first, "elements")) > 1000);
    json_decref(answer);
}

/* 100 bytes are one batch of 4 x 16 tokens. */
static void a_text_of_one_step_is_proven_on_one_step(void **state)
{
    (void)state;
    require_program();
    put("short.yaml", "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32}\n"
                      "train: {batch: 4, seq_len: 16, steps: auto, epochs: 1, threads: 1}\n");
    FILE *file = fopen("short.txt", "w");
    assert_non_null(file);
    for (int32_t i = 0; i < 100; i++) fputc('a' + i % 17, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(run("prove short.yaml data.train=short.txt --dir . --json"), HR_OK);
    json_t *answer = out_json();
    assert_int_equal(json_integer_value(json_object_get(answer, "steps")), 1);
    assert_true(json_integer_value(json_object_get(answer, "passed")) >= 10);
    json_decref(answer);
    assert_int_equal(run("prove short.yaml data.train=short.txt --dir . --only resume"), HR_USAGE);
    assert_non_null(strstr(out, "does not apply: it takes two steps, and there is one\n"));
    assert_string_equal(err, "headroom: resume does not apply to this recipe: it takes two steps, "
                             "and there is one\n");
}

static void help_and_documentation_list_every_proof(void **state)
{
    (void)state;
    require_program();
    static char page[PROGRAM_TEXT_BYTES];
    const char *name;
    get(HR_SOURCE "/docs/proving.md", page);
    assert_int_equal(run("help prove"), HR_OK);
    for (int32_t i = 0; (name = hr_proof_name(i)); i++) {
        char row[64];
        snprintf(row, sizeof row, "\n| `%s` | ", name);
        if (!strstr(page, row)) fail_msg("docs/proving.md has no row for %s", name);
        if (!strstr(out, name)) fail_msg("the help of prove does not list %s", name);
    }
}

static void what_cannot_be_proven_is_one_sentence(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("prove tiny.yaml --only micro-bach"), HR_USAGE);
    assert_string_equal(err,
                        "headroom: there is no proof micro-bach; the nearest is micro-batch\n");
    assert_int_equal(run("prove tiny.yaml --steps 0"), HR_USAGE);
    assert_string_equal(err, "headroom: --steps takes a number from 1 to 16; got \"0\"\n");
    assert_int_equal(run("prove tiny.yaml --steps 2x"), HR_USAGE);
    assert_int_equal(run("prove tiny.yaml --dir none"), HR_USAGE);
    assert_string_equal(err, "headroom: none: no such directory; create it, or give another\n");
    assert_int_equal(run("prove tiny.yaml --budget 1MiB"), HR_NO_FIT);
    assert_non_null(strstr(err, "the reference keeps everything and does not fit"));
    assert_int_equal(run("verify tiny.yaml"), HR_USAGE);
    assert_string_equal(
        err, "headroom: tiny.yaml is a recipe, and verify checks a plan file (headroom "
             "plan tiny.yaml --out plan.json); to check the training of the recipe, type "
             "headroom prove tiny.yaml\n");
    assert_int_equal(count_of(err, "\n"), 1);
    assert_int_equal(run("verify needle-70m"), HR_USAGE);
    assert_string_equal(
        err, "headroom: needle-70m is a preset, and verify checks a plan file (headroom plan "
             "needle-70m --out plan.json); to check the training of the recipe, type headroom "
             "prove needle-70m\n");
    assert_int_equal(run("verify needle-71m"), HR_USAGE);
    assert_non_null(strstr(err, "No such file"));
}

/* Each proof alone on a recipe that has what it proves, and those that a plain recipe lacks. */
static void one_proof_alone_passes_or_says_that_it_does_not_apply(void **state)
{
    (void)state;
    require_program();
    static const struct {
        const char *name, *keys, *lacks;
    } proofs[] = {
        { "plan", "", NULL },
        { "micro-batch", "", NULL },
        { "loss-chunk", "train.seq_len=64", NULL },
        { "mlp-tile", "train.seq_len=128", NULL },
        { "attention-tile", "", NULL },
        { "recompute", "", NULL },
        { "again", "", NULL },
        { "release", "", NULL },
        { "order", "", NULL },
        { "together", "train.seq_len=128", NULL },
        { "threads", "", NULL },
        { "resume", "", NULL },
        { "moments", "model.d_model=256", "below 64 KiB" },
        { "spill", "model.family=llama", NULL },
        { "base", "model.from=small model.family=llama model.d_model=256 train.adapter.kind=lora",
          "no frozen model" },
        { "masters", "train.dtype=bf16 train.state.master=residual16", "residual" },
        { "pattern", "model.attention.pattern=local model.attention.block=4", NULL },
        { "nsa",
          "model.family=llama model.attention.kind=nsa model.attention.nsa.compress_block=8 "
          "model.attention.nsa.compress_stride=4 model.attention.nsa.select_block=8",
          "is not nsa" },
        { "factors", "model.family=yxanul model.embedding_rank=8", "no factorized matrix" },
        { "adapter", "model.family=llama train.adapter.kind=lora", "trains no low-rank" },
        { "npt", "model.family=llama train.adapter.kind=npt", "trains no NPT" },
        { "weights", "model.weights=f16 train.freeze=*.layers.0.*", "stored in another format" },
    };
    put_tiny_and_text();
    if (run("train tiny.yaml model.family=llama model.d_model=256 train.steps=1 "
            "data.train=text.txt "
            "train.sample_tokens=none --out small"))
        fail_msg("%s", err);
    for (size_t i = 0; i < sizeof proofs / sizeof *proofs; i++) {
        const char *name = proofs[i].name;
        assert_string_equal(hr_proof_name((int32_t)i), name);
        if (run("prove tiny.yaml --dir . --only %s %s", name, proofs[i].keys) != HR_OK)
            fail_msg("%s: %s%s", name, out, err);
        assert_non_null(strstr(out, "\n1 of 1 proof passed\n"));
        assert_int_equal(count_of(out, " pass  "), 1);
        if (!proofs[i].lacks) continue;
        assert_int_equal(run("prove tiny.yaml --dir . --only %s", name), HR_USAGE);
        if (!strstr(err, " does not apply to this recipe: ") || !strstr(err, proofs[i].lacks))
            fail_msg("%s: %s", name, err);
        assert_int_equal(count_of(err, "\n"), 1);
        assert_int_equal(run("prove tiny.yaml --dir . --json --only %s", name), HR_USAGE);
        assert_non_null(strstr(out, "\"outcome\": \"does_not_apply\""));
    }
    assert_null(hr_proof_name((int32_t)(sizeof proofs / sizeof *proofs)));
    if (run("train tiny.yaml model.family=llama train.steps=1 data.train=text.txt "
            "train.sample_tokens=none --out tiny"))
        fail_msg("%s", err);
    assert_int_equal(run("prove tiny.yaml --dir . --only base model.from=tiny model.family=llama "
                         "train.adapter.kind=lora"),
                     HR_USAGE);
    assert_says("does not apply to this recipe: no frozen matrix has 64 KiB or more");
}

/* Their queries have no gradient but rounding: a softmax over one key is 1. */
static void sequences_of_one_token_are_proven(void **state)
{
    (void)state;
    require_program();
    static const char *const keys[] = { "plan model.family=llama",
                                        "factors model.family=yxanul model.embedding_rank=8",
                                        "adapter model.family=llama train.adapter.kind=lora" };
    put_tiny_and_text();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (run("prove tiny.yaml --dir . train.seq_len=1 --only %s", keys[i]) != HR_OK)
            fail_msg("%s: %s%s", keys[i], out, err);
}

static void stop(pid_t child, const void *context)
{
    (void)context;
    kill(child, SIGINT);
}

static void an_interrupt_ends_it_and_leaves_no_file(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(system("mkdir kept"), 0);
    /* Long enough to be interrupted between its first line and its end. */
    assert_int_equal(run_acting("prove tiny.yaml --dir kept model.n_layers=6 train.seq_len=512 "
                                "train.batch=16 --steps 3",
                                "prove ", stop, NULL),
                     128 + SIGINT);
    assert_non_null(strstr(err, "headroom: interrupted in the proof "));
    assert_true(is_empty("kept"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(text_and_json_list_every_proof),
        IN_A_FOLDER(a_text_of_one_step_is_proven_on_one_step),
        IN_A_FOLDER(help_and_documentation_list_every_proof),
        IN_A_FOLDER(what_cannot_be_proven_is_one_sentence),
        IN_A_FOLDER(one_proof_alone_passes_or_says_that_it_does_not_apply),
        IN_A_FOLDER(sequences_of_one_token_are_proven),
        IN_A_FOLDER(an_interrupt_ends_it_and_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
