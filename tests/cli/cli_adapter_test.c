/* SPDX-License-Identifier: Apache-2.0 */
/* cli_adapter_test.c - low-rank adapters: trained as PEFT trains them, saved without their base,
 * resumed with it alone, read from PEFT folders; and what other folders are refused with. */
#define _GNU_SOURCE
#include <math.h>

#include "headroom/status.h"
#include "support/oracle.h"
#include "support/program.h"

/* Ten times the observed difference: two fp32 implementations, ten steps. */
#define LOSS_TOLERANCE 2e-6
#define TENSOR_TOLERANCE 1e-5
#define LOGITS_TOLERANCE 1e-5

/* Adapters that PEFT saved, and their base (tests/oracles/make_adapters.py). */
static const struct {
    const char *model, *adapter;
} folders[] = {
    { "llama_gqa", "lora_llama" },   { "mistral", "lora_mistral" },
    { "qwen2_mixed", "lora_qwen2" }, { "qwen3_tied", "lora_qwen3" },
    { "gpt2", "lora_gpt2" },         { "gpt_neox", "lora_gpt_neox" },
    { "gpt_neo", "lora_gpt_neo" },   { "opt", "lora_opt" },
    { "qwen3_tied", "patterns" },    { "llama_gqa", "dropped" },
    { "llama_gqa", "dora_dropped" }, { "gpt_neox", "layers" },
    { "llama_gqa", "dora_llama" },   { "gpt2", "dora_gpt2" },
    { "llama_gqa", "saved" },        { "qwen3_tied", "lookup" },
    { "gpt2", "lookup_gpt2" },
};
enum { CASES = sizeof folders / sizeof *folders };

static const char training[] =
    "train.dtype=fp32 train.optimizer.lr=1e-3 train.optimizer.beta2=0.95 train.optimizer.eps=1e-8 "
    "train.optimizer.weight_decay=0.1 train.optimizer.clip=1 train.schedule.kind=constant "
    "train.schedule.warmup_steps=0 train.sample_tokens=none";

static void shell(const char *command)
{
    if (system(command)) fail_msg("%s", command);
}

static void prepare(void)
{
    require_program();
    put_tiny_and_text();
    put("empty.yaml", "train: {threads: 2}\n");
    put("recipe.yaml", "model: {d_model: 64, n_layers: 2, n_heads: 2, d_ff: 165, vocab_size: 256}\n"
                       "model.family: llama\n"
                       "train: {batch: 4, seq_len: 32, threads: 2, steps: 6, dtype: fp32}\n"
                       "train.schedule.kind: constant\n");
}

/* Trains a base and then adapters of it. */
static void train_base(void)
{
    if (run("train recipe.yaml data.train=text.txt train.steps=2 --out base")) fail_msg("%s", err);
}

static int adapt(const char *settings, const char *folder)
{
    return run("train recipe.yaml data.train=text.txt model.from=base train.adapter.kind=lora "
               "train.adapter.rank=4 %s --out %s",
               settings, folder);
}

/* ||a - b|| / ||b|| of a tensor and the golden one. */
static double difference(const oracle_file *own, const char *own_name, const oracle_file *golden,
                         const char *name)
{
    int64_t bytes = 0, golden_bytes = 0;
    const float *a = oracle_tensor(own, "", own_name, &bytes);
    const float *b = oracle_tensor(golden, "", name, &golden_bytes);
    double sum = 0, norm = 0;
    if (!a || !b || bytes != golden_bytes) fail_msg("%s", name);
    for (int64_t i = 0; i < bytes / 4; i++) {
        sum += pow((double)a[i] - (double)b[i], 2);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(sum / norm);
}

/* Each step's loss of the log. */
static void check_losses(const char *folder, const float *golden)
{
    char path[64], line[4096];
    int step = 0;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    FILE *log = fopen(path, "r");
    assert_non_null(log);
    while (step < 10 && fgets(line, sizeof line, log)) {
        const char *loss = strstr(line, "\"loss\":");
        if (!loss) continue;
        const double value = strtod(loss + 7, NULL), expected = (double)golden[step++];
        if (fabs(value - expected) > LOSS_TOLERANCE * expected)
            fail_msg("%s, step %d: %.9g, PEFT %.9g", folder, step, value, expected);
    }
    fclose(log);
    assert_int_equal(step, 10);
}

/* Paths of a case, and its golden values. */
static void open_case(int c, char base[256], char adapter[300], oracle_file *golden)
{
    char path[340];
    snprintf(base, 256, "%s/hf/%s", HR_ORACLES, folders[c].model);
    snprintf(adapter, 300, "%s/%s", base, folders[c].adapter);
    snprintf(path, sizeof path, "%s/golden.safetensors", adapter);
    assert_true(oracle_open(golden, path));
}

static void logits_are_those_of_peft(void **state)
{
    (void)state;
    prepare();
    for (int c = 0; c < CASES; c++) {
        char base[256], adapter[300];
        oracle_file golden = { 0 }, own = { 0 };
        open_case(c, base, adapter, &golden);
        if (run("eval %s --adapter %s --tokens %s/batch.safetensors --logits-out logits", base,
                adapter, adapter))
            fail_msg("%s: %s", folders[c].adapter, err);
        assert_true(oracle_open(&own, "logits"));
        const double apart = difference(&own, "logits", &golden, "logits");
        print_message("%s: %.2e\n", folders[c].adapter, apart);
        assert_true(apart < LOGITS_TOLERANCE);
        oracle_close(&golden);
        oracle_close(&own);
        assert_int_equal(remove("logits"), 0);
    }
}

static void adapters_train_as_in_peft(void **state)
{
    (void)state;
    prepare();
    for (int c = 0; c < CASES; c++) {
        char base[256], adapter[300], path[340];
        oracle_file golden = { 0 }, own = { 0 };
        int64_t bytes;
        open_case(c, base, adapter, &golden);
        if (run("train empty.yaml model.from=%s train.adapter.from=%s "
                "data.fixed_batch=%s/batch.safetensors %s train.adapter.dropout=%s train.steps=10 "
                "--out %s",
                base, adapter, adapter, training,
                strstr(folders[c].adapter, "dropped") ? "0.25" : "0", folders[c].adapter))
            fail_msg("%s: %s", folders[c].adapter, err);
        snprintf(path, sizeof path, "%s/adapter_model.safetensors", folders[c].adapter);
        assert_true(oracle_open(&own, path));
        const char *name;
        json_t *entry;
        int count = 0;
        double most = 0;
        json_object_foreach(golden.header, name, entry)
        {
            if (strncmp(name, "final.", 6) || strstr(name, ".base_layer.")) continue;
            const double apart = difference(&own, name + 6, &golden, name);
            if (apart > TENSOR_TOLERANCE) fail_msg("%s %s: %.3g", folders[c].adapter, name, apart);
            most = fmax(most, apart);
            count++;
        }
        print_message("%s: %d tensors, at most %.2e\n", folders[c].adapter, count, most);
        /* nothing else is in the file, besides its metadata */
        assert_int_equal(json_object_size(own.header), count + 1);
        check_losses(folders[c].adapter, oracle_tensor(&golden, "", "losses", &bytes));
        oracle_close(&golden);
        oracle_close(&own);
        /* what it wrote is read as the same adapters */
        if (run("train empty.yaml model.from=%s train.adapter.from=%s "
                "data.fixed_batch=%s/batch.safetensors %s train.steps=1 train.optimizer.lr=0 --out "
                "again",
                base, folders[c].adapter, adapter, training))
            fail_msg("%s: %s", folders[c].adapter, err);
        snprintf(path, sizeof path, "cmp again/%s %s/%s && rm -r again",
                 "adapter_model.safetensors", folders[c].adapter, "adapter_model.safetensors");
        shell(path);
    }
}

static void a_run_saves_adapters_alone_and_resumes_with_its_base(void **state)
{
    (void)state;
    prepare();
    train_base();
    assert_int_equal(adapt("train.adapter.dropout=0.1 train.ema_decay=0.9", "whole"), HR_OK);
    assert_int_equal(adapt("train.adapter.dropout=0.1 train.ema_decay=0.9 train.steps=3", "parts"),
                     HR_OK);
    shell("mv base elsewhere");
    assert_int_equal(run("train recipe.yaml data.train=text.txt model.from=elsewhere "
                         "train.adapter.kind=lora train.adapter.rank=4 train.threads=1 "
                         "train.adapter.dropout=0.1 train.ema_decay=0.9 memory.micro_batch=1 "
                         "--allow-change memory.micro_batch --out parts"),
                     HR_OK);
    shell("for file in whole/checkpoints/step-000000000006/*.safetensors; do "
          "cmp $file parts/checkpoints/step-000000000006/${file##*/} || exit 1; done");
    shell("cmp whole/average/adapter_model.safetensors parts/average/adapter_model.safetensors");
    shell("test ! -e whole/model.safetensors -a ! -e whole/config.json");
    shell("grep -q elsewhere parts/checkpoints/step-000000000006/base.json");
}

/* A base that stays in memory as its files have it gives the bits of one that is widened. */
static void the_stored_format_of_a_base_changes_no_bit(void **state)
{
    static const char *const dtypes[] = { "f16", "f8_e4m3", "bf16" };
    (void)state;
    prepare();
    train_base();
    shell("mv base wide");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const char *computes = i == 2 ? "train.dtype=bf16" : "train.dtype=fp32";
        char settings[96];
        shell("rm -rf base stored computed");
        if (run("convert wide base --dtype %s", dtypes[i])) fail_msg("%s", err);
        snprintf(settings, sizeof settings, "%s model.weights=auto", computes);
        assert_int_equal(adapt(settings, "stored"), HR_OK);
        assert_int_equal(adapt(computes, "computed"), HR_OK);
        shell("cmp stored/adapter_model.safetensors computed/adapter_model.safetensors");
        assert_int_equal(run("eval base --adapter stored --file text.txt --weights auto"), HR_OK);
    }
}

static void another_base_is_refused(void **state)
{
    (void)state;
    prepare();
    train_base();
    assert_int_equal(adapt("train.steps=3", "run"), HR_OK);
    oracle_spoil("base/model.safetensors", "model.norm.weight", 0.5F, 3);
    assert_int_equal(adapt("", "run"), HR_USAGE);
    assert_non_null(strstr(err, "base/model.safetensors is not the file that the run began with"));
    assert_int_equal(adapt("model.from=", "run"), HR_USAGE);
}

/* The run ends at the checkpoint after the change, long before its last step. */
static void a_base_that_changes_ends_the_run(void **state)
{
    static const char *const changes[][2] = {
        { "printf x | dd of=base/model.safetensors bs=1 seek=9000 conv=notrunc 2>/dev/null",
          "has changed" },
        { "rm base/model.safetensors", "was removed" },
    };
    (void)state;
    prepare();
    train_base();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char command[1024];
        snprintf(command, sizeof command,
                 "$HEADROOM train recipe.yaml data.train=text.txt model.from=base "
                 "train.adapter.kind=lora train.steps=10000000 train.checkpoint_every=10 "
                 "--out run%d >/dev/null 2>err & "
                 "until ls run%d/checkpoints/step-* >/dev/null 2>&1; do sleep 0.05; done; %s; "
                 "wait $!; test $? = 5 && "
                 "grep -q 'base/model.safetensors %s since the run' err && "
                 "grep -q 'the adapters after step' err",
                 (int)i, (int)i, changes[i][0], changes[i][1]);
        shell(command);
    }
}

/* Factor 0 gives the base's loss, and 1 that of the last evaluation of the run. */
static void adapters_are_added_to_their_base(void **state)
{
    double base, none, one;
    (void)state;
    prepare();
    train_base();
    assert_int_equal(adapt("train.optimizer.lr=1e-2", "run"), HR_OK);
    assert_int_equal(run("eval base --file text.txt --json"), HR_OK);
    base = strtod(strstr(out, "\"loss\":") + 7, NULL);
    assert_int_equal(run("eval base --adapter run=0 --file text.txt --json"), HR_OK);
    none = strtod(strstr(out, "\"loss\":") + 7, NULL);
    assert_int_equal(run("eval base --adapter run --file text.txt --json"), HR_OK);
    one = strtod(strstr(out, "\"loss\":") + 7, NULL);
    print_message("base %.6f, factor 0 %.6f, factor 1 %.6f\n", base, none, one);
    assert_true(base == none && one < base - 0.01);
    assert_int_equal(run("generate base --adapter run --prompt a --max-tokens 4"), HR_OK);
    assert_int_equal(run("generate base --adapter base --prompt a"), HR_USAGE);
    assert_int_equal(run("generate run --prompt a"), HR_USAGE);
    assert_non_null(strstr(err, "run has adapters and no model; name the folder of their base"));
}

static double loss_of(const char *model, const char *options)
{
    if (run("eval %s %s --json", model, options)) fail_msg("%s %s: %s", model, options, err);
    return strtod(strstr(out, "\"loss\":") + 7, NULL);
}

/* In fp32 the losses agree to the rounding of a sum; half of an adapter can be merged too. */
static void a_merged_model_is_the_base_with_its_adapters(void **state)
{
    (void)state;
    prepare();
    for (int c = 0; c < CASES; c++) {
        char folder[256], adapter[300], options[700];
        oracle_file golden = { 0 };
        open_case(c, folder, adapter, &golden);
        oracle_close(&golden);
        for (int half = 0; half < 2; half++) {
            const char *factor = half ? "=0.5" : "";
            snprintf(options, sizeof options, "--adapter %s%s --tokens %s/batch.safetensors",
                     adapter, factor, adapter);
            const double added = loss_of(folder, options);
            shell("rm -rf merged");
            const int merges = run("adapter merge %s %s%s merged", folder, adapter, factor);
            if (merges == HR_USAGE && strstr(err, "is the output head too")) {
                shell("test ! -e merged");
                continue;
            }
            if (merges) fail_msg("%s: %s", folders[c].adapter, err);
            snprintf(options, sizeof options, "--tokens %s/batch.safetensors", adapter);
            const double merged = loss_of("merged", options), base = loss_of(folder, options);
            print_message("%s%s: base %.7f, added %.7f, merged %.7f\n", folders[c].adapter, factor,
                          base, added, merged);
            assert_true(fabs(merged - added) < 1e-6 * added && fabs(base - added) > 1e-3);
            shell("rm -rf merged8");
            assert_int_equal(
                run("adapter merge %s %s%s merged8 --dtype f8_e4m3", folder, adapter, factor),
                HR_OK);
            const double eighth = loss_of("merged8", options);
            if (fabs(eighth - added) > 0.02 * added)
                fail_msg("%s%s in fp8: %.7f", folders[c].adapter, factor, eighth);
        }
    }
    assert_int_equal(run("adapter merge merged merged elsewhere"), HR_USAGE);
    shell("test ! -e elsewhere");
}

/* The sum of two adapters is the second on a model that has the first. */
static void several_adapters_add_up(void **state)
{
    static const struct {
        const char *model, *first, *second;
    } pairs[] = { { "qwen3_tied", "lora_qwen3", "patterns" },
                  { "gpt_neox", "layers", "lora_gpt_neox" } };
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char folder[256], options[1600];
        snprintf(folder, sizeof folder, "%s/hf/%s", HR_ORACLES, pairs[i].model);
        snprintf(options, sizeof options,
                 "--adapter %s/%s=0.5 --adapter %s/%s --tokens %s/%s/batch.safetensors", folder,
                 pairs[i].first, folder, pairs[i].second, folder, pairs[i].first);
        const double both = loss_of(folder, options);
        shell("rm -rf merged");
        if (run("adapter merge %s %s/%s=0.5 merged", folder, folder, pairs[i].first))
            fail_msg("%s", err);
        snprintf(options, sizeof options, "--adapter %s/%s --tokens %s/%s/batch.safetensors",
                 folder, pairs[i].second, folder, pairs[i].first);
        const double one = loss_of("merged", options);
        print_message("%s + %s: %.7f, on the merged model %.7f\n", pairs[i].first, pairs[i].second,
                      both, one);
        assert_true(fabs(both - one) < 1e-6 * one);
    }
    assert_int_equal(run("eval %s/hf/gpt2 --adapter %s/hf/gpt2/dora_gpt2 --adapter "
                         "%s/hf/gpt2/lora_gpt2 --file text.txt",
                         HR_ORACLES, HR_ORACLES, HR_ORACLES),
                     HR_USAGE);
    assert_non_null(strstr(err, "several adapters add up only if none has magnitudes"));
}

/* Eight eighths of an adapter of all matrices are that adapter. */
static void eight_adapters_add_up(void **state)
{
    char folder[256], options[4096];
    (void)state;
    prepare();
    snprintf(folder, sizeof folder, "%s/hf/qwen3_tied", HR_ORACLES);
    int length = snprintf(options, sizeof options, "--tokens %s/lora_qwen3/batch.safetensors",
                          folder);
    snprintf(options + length, sizeof options - (size_t)length, " --adapter %s/lora_qwen3", folder);
    const double one = loss_of(folder, options);
    for (int32_t i = 0; i < 8; i++)
        length += snprintf(options + length, sizeof options - (size_t)length,
                           " --adapter %s/lora_qwen3=0.125", folder);
    assert_true(fabs(loss_of(folder, options) - one) < 1e-6 * one);
}

static void a_folder_is_listed(void **state)
{
    char base[256], adapter[300];
    oracle_file golden = { 0 };
    (void)state;
    prepare();
    for (int c = 0; c < CASES; c++) {
        open_case(c, base, adapter, &golden);
        const int64_t loss_and_logits = 2;
        if (run("adapter info %s --json", adapter)) fail_msg("%s: %s", adapter, err);
        json_t *all = json_loads(out, 0, NULL);
        int64_t sum = 0, copies = 0;
        size_t i;
        json_t *module, *entry;
        const char *name;
        json_array_foreach(json_object_get(all, "modules"), i, module)
            sum += json_integer_value(json_object_get(module, "parameters"));
        json_object_foreach(golden.header, name, entry) copies += !!strstr(name, ".base_layer.");
        assert_int_equal(json_integer_value(json_object_get(all, "tensors")),
                         (int64_t)json_object_size(golden.header) - loss_and_logits - copies);
        assert_int_equal(json_integer_value(json_object_get(all, "parameters")), sum);
        assert_int_equal(json_integer_value(json_object_get(all, "bytes")), 4 * sum);
        assert_string_equal(json_string_value(json_object_get(all, "base")), folders[c].model);
        json_decref(all);
        oracle_close(&golden);
    }
    assert_int_equal(run("adapter info %s", base), HR_USAGE);
    assert_int_equal(run("adapter info %s", adapter), HR_OK);
    assert_non_null(strstr(out, "wte "));
}

/* tools/peft-check reads such files with the package gguf. */
static void adapters_become_gguf_where_it_has_them(void **state)
{
    static const struct {
        const char *model, *adapter, *message; /* null: written */
        int tensors;
    } cases[] = {
        { "mistral", "lora_mistral", NULL, 28 },
        { "qwen3_tied", "patterns", NULL, 16 },
        { "gpt_neox", "layers", NULL, 4 },
        { "llama_gqa", "lora_llama", "GGUF has no adapter such as base_model.model.lm_he", 0 },
        { "gpt2", "lookup_gpt2", "GGUF has no adapter such as", 0 },
        { "gpt2", "dora_gpt2", "has magnitudes (DoRA), which GGUF adapters do not have", 0 },
        { "opt", "lora_opt", "GGUF has no adapters of the opt family", 0 }
    };
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t head[24];
        const int code = run("adapter gguf %s/hf/%s %s/hf/%s/%s file.gguf", HR_ORACLES,
                             cases[i].model, HR_ORACLES, cases[i].model, cases[i].adapter);
        FILE *file = fopen("file.gguf", "rb");
        if (cases[i].message) {
            assert_int_equal(code, HR_USAGE);
            if (!strstr(err, cases[i].message)) fail_msg("%s", err);
            assert_null(file);
            continue;
        }
        assert_int_equal(code, HR_OK);
        assert_int_equal(fread(head, 1, sizeof head, file), sizeof head);
        assert_memory_equal(head, "GGUF\3\0\0\0", 8);
        assert_int_equal(head[8], cases[i].tensors);
        fclose(file);
        assert_int_equal(remove("file.gguf"), 0);
    }
    /* adapters of another base: of the same names and another width */
    train_base();
    assert_int_equal(adapt("", "run"), HR_OK);
    assert_int_equal(run("adapter gguf base run file.gguf"), HR_OK);
    assert_int_equal(run("adapter gguf base run file.gguf"), HR_OK);
    assert_int_equal(run("adapter gguf base run base/model.safetensors"), HR_USAGE);
    assert_non_null(strstr(err, "exists and is not a GGUF file of adapters"));
    if (run("train recipe.yaml data.train=text.txt model.d_model=32 train.steps=1 --out other"))
        fail_msg("%s", err);
    assert_int_equal(run("adapter gguf other run other.gguf"), HR_CORRUPT);
    assert_non_null(strstr(err, "self_attn.q_proj.weight has another shape"));
    shell("test ! -e other.gguf");
}

static void folders_that_would_change_results_are_refused(void **state)
{
    static const struct {
        const char *edit, *message;
        int code;
    } cases[] = {
        { "s/\"use_dora\": false/\"use_dora\": true/",
          "has no tensor base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector",
          HR_CORRUPT },
        { "s/\"use_dora\": false/\"use_qalora\": true/", "\"use_qalora\" is set, which is not",
          HR_CORRUPT },
        { "s/\"bias\": \"none\"/\"bias\": \"all\"/", "\"bias\" is set", HR_CORRUPT },
        { "s/\"LORA\"/\"IA3\"/", "\"peft_type\" is not LORA", HR_CORRUPT },
        { "s/\"r\": 4/\"r\": 0/", "\"r\" is not an integer from 1", HR_CORRUPT },
        { "s/\"r\": 4/\"r\": 5/", "is [4, 64], the configuration implies [5, 64]", HR_CORRUPT },
        { "s/\"lora_alpha\": 32/\"lora_alpha\": \"x\"/", "\"lora_alpha\" is not a number",
          HR_CORRUPT },
        { "s/\"modules_to_save\": null/\"modules_to_save\": [\"lm_head\"]/",
          "has no tensor base_model.model.lm_head.weight", HR_CORRUPT },
        { "s/\"layers_to_transform\": null/\"layers_to_transform\": [-1]/",
          "\"layers_to_transform\" is not a list of layers", HR_CORRUPT },
        { "s/\"rank_pattern\": {}/\"rank_pattern\": {\"(\": 4}/", "is a name that is not read",
          HR_CORRUPT },
        { "s/\"alpha_pattern\": {}/\"alpha_pattern\": {\"q_proj\": \"a\"}/",
          "has a value that is not read", HR_CORRUPT },
        { "s/\"task_type\"/\"strange\"/", "\"strange\" is set, which is not read", HR_CORRUPT },
        { "s/\"k_proj\",//", "does not belong to this model", HR_CORRUPT },
        { "s/\"q_proj\",/\"q_prj\",/", "does not belong to this model", HR_CORRUPT },
        { "s/}//", "adapter_config.json: ", HR_CORRUPT },
    };
    (void)state;
    prepare();
    train_base();
    assert_int_equal(adapt("", "run"), HR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[256];
        snprintf(command, sizeof command,
                 "rm -rf other && mkdir other && cp run/adapter_* other && "
                 "sed -i '%s' other/adapter_config.json",
                 cases[i].edit);
        shell(command);
        print_message("%s\n", cases[i].edit);
        assert_int_equal(run("generate base --adapter other --prompt a"), cases[i].code);
        if (!strstr(err, cases[i].message)) fail_msg("%s", err);
    }
}

static void a_pickle_is_never_read(void **state)
{
    (void)state;
    prepare();
    train_base();
    assert_int_equal(adapt("train.steps=1", "run"), HR_OK);
    shell(
        "mkdir pickled && cp run/adapter_config.json pickled && echo > pickled/adapter_model.bin");
    assert_int_equal(run("generate base --adapter pickled --prompt a"), HR_USAGE);
    assert_non_null(strstr(err, "adapter_model.bin: a pickle, which is never read"));
    assert_int_equal(run("adapter merge base pickled merged"), HR_USAGE);
    assert_int_equal(run("adapter info pickled"), HR_USAGE);
    assert_non_null(strstr(err, "a pickle"));
}

static void refusals_offer_adapters_for_a_model_that_is_tuned(void **state)
{
    static const char large[] = "model.d_model=256 model.n_layers=4 model.d_ff=1024";
    (void)state;
    prepare();
    if (run("train recipe.yaml data.train=text.txt %s train.steps=1 --out base", large))
        fail_msg("%s", err);
    assert_int_equal(run("plan recipe.yaml %s --budget 50MB", large), HR_NO_FIT);
    assert_null(strstr(out, "train.adapter.kind=lora"));
    assert_int_equal(run("plan recipe.yaml %s model.from=base --budget 50MB", large), HR_NO_FIT);
    assert_non_null(strstr(out, "train.adapter.kind=lora"));
    assert_int_equal(run("plan recipe.yaml %s model.from=base train.adapter.kind=lora "
                         "train.adapter.rank=256 --budget 50MB",
                         large),
                     HR_NO_FIT);
    assert_non_null(strstr(out, "train.adapter.rank="));
    assert_non_null(strstr(out, "train.adapter.layers="));
    assert_non_null(strstr(out, "train.adapter.targets='*att*'"));
    assert_int_equal(run("plan recipe.yaml train.adapter.kind=lora train.adapter.rank=65 "
                         "train.adapter.targets=q_proj"),
                     HR_OK);
    assert_non_null(strstr(out, "2 adapters have a rank above the smaller side of the matrix"));
}

/* Nothing can use such adapters, but their bytes and times are those of a trained base. */
static void a_random_base_is_warned_of(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("train tiny.yaml data.train=text.txt train.adapter.kind=lora --out run"),
                     HR_OK);
    assert_non_null(strstr(err, "the model under the adapters has random weights, which are not "
                                "saved: model.from=FOLDER adapts a trained one"));
}

static void wrong_keys_are_refused(void **state)
{
    (void)state;
    prepare();
    train_base();
    assert_int_equal(adapt("train.adapter.targets=q_prj", "run"), HR_USAGE);
    assert_non_null(strstr(err, "is named \"q_prj\"; the nearest is q_proj"));
    assert_int_equal(adapt("train.adapter.rank=0", "run"), HR_USAGE);
    assert_int_equal(adapt("train.adapter.targets='q_proj; v_proj'", "run"), HR_USAGE);
    assert_non_null(strstr(err, "separated by blanks or commas"));
    assert_int_equal(adapt("train.adapter.layers=1-2", "run"), HR_USAGE);
    assert_non_null(
        strstr(err, "\"1-2\" is neither all, upper_half, lower_half nor layers from 0"));
    assert_int_equal(adapt("train.adapter.targets='/.*(q_proj/'", "run"), HR_USAGE);
    assert_non_null(strstr(err, "is not a regular expression between slashes"));
    assert_int_equal(adapt("train.adapter.groups='k_proj rank=0'", "run"), HR_USAGE);
    assert_int_equal(adapt("train.adapter.groups=k_proj", "run"), HR_USAGE);
    assert_non_null(strstr(err, "a group has names but neither rank= nor alpha="));
    assert_int_equal(adapt("train.adapter.groups='k_prj rank=2'", "run"), HR_USAGE);
    assert_non_null(strstr(err, "is named \"k_prj\"; the nearest is k_proj"));
    assert_int_equal(adapt("train.adapter.alpha=nan", "run"), HR_USAGE);
    assert_int_equal(adapt("train.adapter.modules_to_save=lm_hed", "run"), HR_USAGE);
    assert_non_null(strstr(err, "no module is named \"lm_hed\""));
    assert_int_equal(adapt("train.adapter.dora=true train.adapter.targets=embed_tokens", "run"),
                     HR_USAGE);
    assert_non_null(strstr(err, "adapters of an embedding have no magnitudes"));
    static const char *const families[] = { "opt", "qwen3", "needle", "gpt2" };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        assert_int_equal(run("plan recipe.yaml model.family=%s train.adapter.kind=lora "
                             "train.adapter.dora=true train.adapter.targets='*'",
                             families[i]),
                         HR_USAGE);
        assert_non_null(strstr(err, "adapters of an embedding have no magnitudes"));
    }
    assert_int_equal(adapt("train.freeze='*norm*'", "run"), HR_USAGE);
    assert_non_null(strstr(err, "all other weights are frozen; leave train.freeze out"));
    assert_int_equal(adapt("train.adapter.form=dual", "run"), HR_USAGE);
    assert_non_null(strstr(err, "train.adapter.form is a key of kind npt"));
    assert_int_equal(run("plan recipe.yaml train.adapter.rank=4"), HR_USAGE);
    assert_non_null(strstr(err, "train.adapter.rank does nothing with train.adapter.kind=none"));
    assert_int_equal(run("plan recipe.yaml train.adapter.rank=16"), HR_OK); /* the default */
}

/* Keys of a recipe that the command line overrides, with another kind or a folder of adapters. */
static void overridden_keys_of_a_recipe_do_not_count(void **state)
{
    (void)state;
    prepare();
    train_base();
    assert_int_equal(adapt("train.steps=1 train.adapter.rank=3", "low"), HR_OK);
    shell("{ cat recipe.yaml; printf 'train.adapter.kind: lora\\ntrain.adapter.rank: 5\\n"
          "train.adapter.dora: true\\n'; } >own.yaml");
    assert_int_equal(run("plan own.yaml train.adapter.kind=none"), HR_OK);
    assert_int_equal(run("plan own.yaml model.from=base train.adapter.from=low"), HR_OK);
    assert_non_null(strstr(err, "using the adapter in low; the recipe's train.adapter.rank=5 and "
                                "1 other adapter key are ignored\n"));
    assert_non_null(strstr(out, "rank 3, "));
    assert_int_equal(run("plan recipe.yaml model.from=base train.adapter.from=low "
                         "train.adapter.layers=0"),
                     HR_USAGE);
    assert_non_null(strstr(err, "train.adapter.layers is 0, but the adapter in low has none;"));
    assert_int_equal(run("train recipe.yaml data.train=text.txt model.from=base train.steps=1 "
                         "train.adapter.kind=npt train.adapter.rank=3 --out npt"),
                     HR_OK);
    shell("echo 'train.adapter.alpha: 5' >>own.yaml && sed -i '/dora/d' own.yaml");
    assert_int_equal(run("train own.yaml data.train=text.txt model.from=base train.steps=1 "
                         "train.adapter.from=npt --out more"),
                     HR_OK);
    assert_int_equal(run("plan more/checkpoints/*/recipe.yaml"), HR_OK); /* of the kind it has */
    /* A module of other models, as PEFT reads it. */
    shell("sed -i 's/\"target_modules\": \\[/&\"zz\",/' low/adapter_config.json && "
          "grep -q zz low/adapter_config.json");
    assert_int_equal(run("eval base --adapter low --file text.txt"), HR_OK);
    assert_int_equal(run("train recipe.yaml data.train=text.txt train.steps=1 model.from=base "
                         "train.adapter.from=low"),
                     HR_OK);
    assert_int_equal(adapt("train.adapter.targets=zz", "no"), HR_USAGE);
}

static void every_strategy_has_the_same_bits_and_verifies(void **state)
{
    static const char *const settings[] = {
        "train.adapter.dropout=0.1",
        "model.family=gpt2 train.adapter.targets=mlp.c_proj,c_fc",
        "model.family=opt train.dtype=bf16",
        "train.adapter.targets=embed_tokens,q_proj train.adapter.modules_to_save=lm_head "
        "model.tie_embeddings=false",
        "train.adapter.dora=true",
        "train.dtype=bf16 train.state.master=residual8 train.adapter.modules_to_save=lm_head "
        "model.tie_embeddings=false",
        "train.dtype=bf16 train.state.master=residual16",
        "train.adapter.dora=true train.adapter.dropout=0.1 model.family=qwen3",
        "train.adapter.dora=true train.dtype=bf16 model.family=gpt2 train.adapter.dropout=0.1",
        "train.adapter.dora=true train.adapter.dropout=0.1 model.family=qwen2 train.seq_len=64 "
        "model.attention.kind=nsa model.attention.nsa.compress_block=8 "
        "model.attention.nsa.compress_stride=4 model.attention.nsa.select_block=8 "
        "model.attention.nsa.own_keys=true train.dtype=bf16",
        "train.adapter.layers=1 train.adapter.groups='down_proj rank=3 alpha=2; k_proj rank=9'",
        "model.family=gpt_neox train.adapter.dropout=0.2 train.adapter.targets=dense_4h_to_h"
    };
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char keys[512];
        snprintf(keys, sizeof keys,
                 "recipe.yaml data.train=text.txt train.adapter.kind=lora train.adapter.rank=4 "
                 "model.vocab_size=256 %s",
                 settings[i]);
        if (run("prove %s", keys)) fail_msg("%s: %s", settings[i], err);
        assert_non_null(strstr(out, " proofs passed"));
        if (run("plan %s --out plan.json", keys) || run("verify plan.json"))
            fail_msg("%s: %s", settings[i], err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(logits_are_those_of_peft),
        IN_A_FOLDER(adapters_train_as_in_peft),
        IN_A_FOLDER(a_run_saves_adapters_alone_and_resumes_with_its_base),
        IN_A_FOLDER(the_stored_format_of_a_base_changes_no_bit),
        IN_A_FOLDER(another_base_is_refused),
        IN_A_FOLDER(a_base_that_changes_ends_the_run),
        IN_A_FOLDER(adapters_are_added_to_their_base),
        IN_A_FOLDER(a_merged_model_is_the_base_with_its_adapters),
        IN_A_FOLDER(several_adapters_add_up),
        IN_A_FOLDER(eight_adapters_add_up),
        IN_A_FOLDER(a_folder_is_listed),
        IN_A_FOLDER(adapters_become_gguf_where_it_has_them),
        IN_A_FOLDER(folders_that_would_change_results_are_refused),
        IN_A_FOLDER(a_pickle_is_never_read),
        IN_A_FOLDER(refusals_offer_adapters_for_a_model_that_is_tuned),
        IN_A_FOLDER(a_random_base_is_warned_of),
        IN_A_FOLDER(wrong_keys_are_refused),
        IN_A_FOLDER(overridden_keys_of_a_recipe_do_not_count),
        IN_A_FOLDER(every_strategy_has_the_same_bits_and_verifies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
