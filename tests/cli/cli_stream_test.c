/* SPDX-License-Identifier: Apache-2.0 */
/* cli_stream_test.c - bases whose weights stay in their files: adapters of every family train to
 * the same bits as with a base in memory, within their plan; and what is refused. */
#define _GNU_SOURCE
#include "headroom/status.h"
#include "support/oracle.h"
#include "support/program.h"

static void prepare(const char *family, int vocabulary)
{
    char recipe[512];
    require_program();
    put_tiny_and_text();
    snprintf(recipe, sizeof recipe,
             "model: {family: %s, d_model: 128, n_layers: 3, n_heads: 2, d_ff: 384, "
             "vocab_size: %d}\n"
             "train: {batch: 4, seq_len: 32, threads: 2, steps: 4, dtype: fp32}\n"
             "train.optimizer.lr: 1e-2\ntrain.schedule.kind: constant\ndata.train: text.txt\n"
             "data.valid: text.txt\ntrain.eval_batches: 2\ntrain.sample_tokens: 4\n",
             family, vocabulary);
    put("recipe.yaml", recipe);
    if (run("train recipe.yaml train.steps=2 --out base --fresh")) fail_msg("%s", err);
}

static int adapt(const char *folder, const char *settings)
{
    return run("train recipe.yaml model.from=base train.adapter.rank=5 --out %s --fresh %s", folder,
               settings);
}

/* "validation loss 4.5716 over" of the last run. */
static void note_loss(char to[32])
{
    const char *line = strstr(out, "validation loss ");
    assert_non_null(line);
    snprintf(to, 32, "%s", line);
}

/* Trains both ways, the second in other cuts, and compares the adapters. */
static void must_agree(const char *settings, const char *cuts, const char *name)
{
    char both[640], resident[16], file[16], one[64], two[64], first[32], second[32];
    snprintf(resident, sizeof resident, "resident_%c", *name);
    snprintf(file, sizeof file, "file_%c", *name);
    if (adapt(resident, settings)) fail_msg("%s: %s", settings, *err ? err : out);
    note_loss(first);
    snprintf(both, sizeof both, "%s memory.weights=file %s", settings, cuts);
    if (adapt(file, both)) fail_msg("%s: %s", both, *err ? err : out);
    assert_arena_as_planned(both);
    snprintf(one, sizeof one, "%s/%s", resident, name);
    snprintf(two, sizeof two, "%s/%s", file, name);
    assert_same_file(one, two);
    note_loss(second);
    assert_string_equal(first, second);
}

static void streamed_bases_train_to_the_same_bits(void **state)
{
    static const char *const families[] = { "llama", "mistral", "qwen2",    "qwen3", "yxanul",
                                            "gpt2",  "gpt_neo", "gpt_neox", "opt",   "needle" };
    static const struct {
        const char *settings, *cuts, *name;
    } ways[] = {
        { "train.adapter.kind=lora", "memory.micro_batch=1 memory.loss_chunk=32 train.threads=1",
          "adapter_model.safetensors" },
        { "train.adapter.kind=lora train.dtype=bf16 train.adapter.targets=all-linear",
          "memory.recompute=layers", "adapter_model.safetensors" },
        { "train.adapter.kind=npt train.adapter.inputs=student train.adapter.layers=\"1 2\"",
          "memory.micro_batch=2", "npt_model.safetensors" },
        { "train.adapter.kind=lora train.adapter.dora=true train.adapter.dropout=0.25",
          "memory.micro_batch=2 memory.recompute=norms", "adapter_model.safetensors" },
        { "train.adapter.kind=npt train.adapter.objective=lm", "memory.loss_chunk=64",
          "npt_model.safetensors" },
    };
    enum { FAMILIES = sizeof families / sizeof *families, WAYS = sizeof ways / sizeof *ways };
    (void)state;
    for (int f = 0; f < FAMILIES; f++) {
        prepare(families[f], 256);
        for (int i = 0; i < 2; i++) {
            const int way = (f + 2 * i) % WAYS;
            must_agree(ways[way].settings, ways[way].cuts, ways[way].name);
        }
    }
}

/* 5,000 columns are three strips; those of a tied table too. */
static void heads_in_strips_train_to_the_same_bits(void **state)
{
    static const char *const settings[] = {
        "train.adapter.kind=lora",
        "train.adapter.kind=lora train.dtype=bf16 train.z_loss=1e-4",
        "train.adapter.kind=lora train.adapter.targets=all-linear train.dtype=bf16 "
        "memory.micro_batch=1",
    };
    static const char *const families[] = { "llama", "gpt2", "gpt_neox" };
    (void)state;
    for (int f = 0; f < 3; f++) {
        prepare(families[f], 5000);
        must_agree(settings[f], f == 1 ? "memory.loss_chunk=32 train.threads=1" : "",
                   "adapter_model.safetensors");
        if (run("plan recipe.yaml model.from=base train.adapter.rank=5 memory.weights=file %s "
                "--out plan.json",
                settings[f]) ||
            run("verify plan.json"))
            fail_msg("%s%s", out, err);
    }
}

static void make(const char *command)
{
    if (run("%s", command)) fail_msg("%s: %s", command, err);
}

/* The first step of an operation that reads weights of the base through windows. */
static json_t *step_of(json_t *plan, const char *op)
{
    size_t i;
    json_t *step, *found = NULL;
    bool reads_base = false;
    json_array_foreach(json_object_get(plan, "steps"), i, step)
    {
        const char *name = json_string_value(json_object_get(step, "op"));
        reads_base |= !strcmp(name, "fetch_begin");
        if (reads_base && !found && !strcmp(name, op)) found = step;
    }
    assert_non_null(found);
    return found;
}

static json_t *reads_of(json_t *plan, const char *op)
{
    return json_object_get(step_of(plan, op), "reads");
}

static void read_the_file(json_t *plan)
{
    json_array_set(reads_of(plan, "linear"), 1, json_array_get(reads_of(plan, "fetch_begin"), 0));
}

static void wait_for_another(json_t *plan)
{
    json_t *windows = reads_of(plan, "fetch_wait");
    json_array_set_new(windows, 0,
                       json_integer(json_integer_value(json_array_get(windows, 0)) + 2));
}

static void write_the_base(json_t *plan)
{
    json_t *writes = json_object_get(step_of(plan, "linear"), "writes");
    json_array_append_new(
        writes, json_pack("[O, s]", json_array_get(reads_of(plan, "fetch_begin"), 0), "write"));
}

static void read_less(json_t *plan)
{
    const json_int_t from = json_integer_value(json_array_get(reads_of(plan, "fetch_begin"), 0));
    json_t *base = json_array_get(json_object_get(plan, "buffers"), (size_t)from);
    const json_int_t bytes = json_integer_value(json_object_get(base, "bytes"));
    json_object_set_new(base, "bytes", json_integer(bytes - 64));
}

static void both_judges_find_lies_about_a_base(void **state)
{
    static void (*const lies[])(json_t *) = { read_the_file, wait_for_another, write_the_base,
                                              read_less };
    static const char *const sentences[] = { "accesses it in the space base",
                                             "waits for a transfer that has not begun",
                                             "the space base is only read", "fit in its bytes" };
    (void)state;
    prepare("llama", 5000);
    make("plan recipe.yaml model.from=base train.adapter.kind=lora memory.weights=file "
         "--out plan.json");
    make("verify plan.json");
    for (int i = 0; i < 4; i++) {
        char command[512];
        json_t *plan = json_load_file("plan.json", 0, NULL);
        assert_non_null(plan);
        lies[i](plan);
        assert_int_equal(json_dump_file(plan, "lie.json", 0), 0);
        json_decref(plan);
        if (!run("verify lie.json")) fail_msg("lie %d: %s", i, out);
        if (!strstr(out, sentences[i]) && !strstr(err, sentences[i]))
            fail_msg("lie %d: no \"%s\" in %s%s", i, sentences[i], out, err);
        snprintf(command, sizeof command,
                 "python3 " HR_SOURCE "/tools/soak --judge lie.json "
                 ">judge.txt 2>&1");
        if (!system(command)) fail_msg("the second judge believes lie %d", i);
    }
}

/* Two steps of every tensor: the plan with weights in files, and whole, tiled and in memory. */
static void proofs_pass_with_weights_in_files(void **state)
{
    (void)state;
    prepare("llama", 5000);
    make("prove recipe.yaml model.from=base train.adapter.kind=lora memory.weights=auto --only "
         "base");
    /* both places are tried, and the first one has less to plan */
    make("train recipe.yaml model.from=base train.adapter.kind=lora train.adapter.layers=1 "
         "memory.weights=auto");
    make("prove recipe.yaml model.from=base train.adapter.kind=lora memory.weights=file --only "
         "plan");
    make("prove recipe.yaml model.from=base train.adapter.kind=lora memory.weights=file "
         "--only adapter");
}

/* Waits until a run has a checkpoint, for a minute at most. */
static void wait_for_checkpoint(const char *folder)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s/checkpoints/step-000000000002/manifest.json", program_folder,
             folder);
    for (int i = 0; i < 6000 && access(path, F_OK) != 0; i++) usleep(10000);
}

/* A run that is killed goes on to the bits of one that was not. */
static void kill_it(pid_t child, const void *context)
{
    (void)context;
    wait_for_checkpoint("killed");
    assert_int_equal(kill(child, SIGKILL), 0);
}

static void a_killed_run_goes_on_with_the_same_bits(void **state)
{
    static char a[PROGRAM_TEXT_BYTES], b[PROGRAM_TEXT_BYTES];
    static const char recipe[] = "train recipe.yaml model.from=base train.adapter.kind=lora "
                                 "memory.weights=file train.steps=12 train.checkpoint_every=2 "
                                 "train.keep_every=2 --out ";
    char command[512];
    (void)state;
    prepare("gpt2", 5000);
    snprintf(command, sizeof command, "%swhole --fresh", recipe);
    if (run("%s", command)) fail_msg("%s", err);
    snprintf(command, sizeof command, "%skilled --fresh", recipe);
    run_acting(command, "step 1/", kill_it, NULL);
    snprintf(command, sizeof command, "%skilled", recipe);
    if (run("%s", command)) fail_msg("%s", err);
    get("whole/adapter_model.safetensors", a);
    get("killed/adapter_model.safetensors", b);
    if (memcmp(a, b, sizeof a)) fail_msg("the adapters differ");
}

/* The same text and loss with matrices in files; the bytes that were read are said. */
static void must_answer_alike(const char *folder, const char *options)
{
    static char text[PROGRAM_TEXT_BYTES];
    const char *const commands[] = {
        "generate %s --prompt \"the \" --tokenizer bytes --max-tokens 6 --seed 3 %s %s",
        "eval %s --file text.txt --tokenizer bytes --context 32 %s %s"
    };
    for (int i = 0; i < 2; i++) {
        char command[256];
        snprintf(command, sizeof command, commands[i], folder, options, "");
        make(command);
        memcpy(text, out, sizeof text);
        snprintf(command, sizeof command, commands[i], folder, options, "--weights-in file");
        make(command);
        /* the line of memory differs */
        const size_t length = strcspn(text, "\n");
        if (strncmp(text, out, length + 1)) fail_msg("%s: %s and %s", command, text, out);
        if (!strstr(out, "base   read ") && !strstr(err, "base   read "))
            fail_msg("%s: nothing was read: %s%s", command, out, err);
    }
    assert_says("weights stay in their files: each pass reads ");
}

static void inference_with_weights_in_files_is_the_same(void **state)
{
    (void)state;
    prepare("llama", 5000);
    must_answer_alike("base", "");
    must_answer_alike("base", "--dtype bf16 --threads 1");
    make("convert base f16 --dtype f16");
    make("convert base f8 --dtype f8_e4m3");
    must_answer_alike("f16", "--weights auto");
    must_answer_alike("f8", "--weights auto");
    must_answer_alike("f8", "--dtype bf16");
    prepare("wide", 300);
    must_answer_alike("base", "--dtype bf16");
}

static void stored_bases_train_to_the_same_bits(void **state)
{
    (void)state;
    prepare("llama", 5000);
    make("convert base f8 --dtype f8_e4m3");
    must_agree("train.adapter.kind=lora model.weights=auto model.from=f8", "",
               "adapter_model.safetensors");
    make("convert base f16 --dtype f16");
    must_agree("train.adapter.kind=lora train.dtype=bf16 model.weights=auto model.from=f16",
               "memory.micro_batch=2", "adapter_model.safetensors");
}

/* Once there is a checkpoint, takes the end of a file away. */
static void cut_the_file(pid_t child, const void *context)
{
    char path[128];
    (void)child;
    wait_for_checkpoint("cut");
    snprintf(path, sizeof path, "%s/%s", program_folder, (const char *)context);
    assert_int_equal(truncate(path, 4096), 0);
}

static void a_file_that_loses_its_end_ends_the_run(void **state)
{
    (void)state;
    prepare("llama", 256);
    const int code = run_acting(
        "train recipe.yaml model.from=base train.adapter.kind=lora memory.weights=file "
        "train.steps=4000 train.checkpoint_every=2 train.keep_every=2 --out cut --fresh",
        "step 1/", cut_the_file, "base/model.safetensors");
    assert_int_equal(code, HR_CORRUPT);
    assert_says("base/model.safetensors: has 4096 bytes, ");
    assert_int_equal(run("checkpoint verify cut"), 0);
}

static void recipes_without_files_or_frozen_weights_are_refused(void **state)
{
    (void)state;
    prepare("llama", 256);
    assert_int_equal(run("train recipe.yaml train.adapter.kind=lora memory.weights=file"),
                     HR_USAGE);
    assert_says("give its folder with model.from");
    assert_int_equal(run("train recipe.yaml model.from=base memory.weights=file"), HR_USAGE);
    assert_says("give train.adapter.kind");
    if (run("train recipe.yaml model.d_model=32 model.d_ff=64 train.steps=2 --out tiny --fresh"))
        fail_msg("%s", err);
    assert_int_equal(run("train recipe.yaml model.d_model=32 model.d_ff=64 model.from=tiny "
                         "train.adapter.kind=lora memory.weights=file"),
                     HR_USAGE);
    assert_says("no frozen matrix has 64 KiB or more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(streamed_bases_train_to_the_same_bits, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(heads_in_strips_train_to_the_same_bits, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(both_judges_find_lies_about_a_base, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(proofs_pass_with_weights_in_files, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(a_killed_run_goes_on_with_the_same_bits, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(inference_with_weights_in_files_is_the_same, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(stored_bases_train_to_the_same_bits, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(a_file_that_loses_its_end_ends_the_run, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(recipes_without_files_or_frozen_weights_are_refused,
                                        make_folder, drop_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
