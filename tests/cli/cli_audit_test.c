/* SPDX-License-Identifier: Apache-2.0 */
/* cli_audit_test.c - `headroom audit`: exit codes, and files that cannot be read. */
#include "headroom/audit.h"
#include "support/program.h"

static void claims_have_their_exit_codes(void **state)
{
    (void)state;
    require_program();
    static const struct {
        const char *text;
        int code;
        const char *said; /* in the output or the error */
    } cases[] = {
        { "claim: 20 MB\nis: matrix(10000, 512)\n", HR_OK, "checked 1 of 1: 1 true" },
        { "- claim: 20 MB\n  is: matrix(10000, 512)\n", HR_OK, "20.48 MB" },
        { "{\"claims\": [{\"claim\": \"30 MB\", \"is\": \"matrix(10000, 512)\"}]}", HR_BROKEN,
          "1 of 1 claim is wrong" },
        { "claims:\n- claim: 37.09 GB\n  is: logits(T=131072, V=151936, dtype=bf16)\n", HR_BROKEN,
          "the digits are right in GiB" },
        { "claims:\n- claim: 3 Gb\n  is: matrix(1, 2)\n", HR_USAGE, ":2: \"3 Gb\": Gb is no unit" },
        { "claims:\n- claim: 3 GB\n  is: logit(1, 2)\n", HR_USAGE,
          ":3: logit is not a function; the nearest is logits" },
        { "claims:\n- claim: 3 GB\n", HR_USAGE, ":2: a claim without its formula" },
        { "claims:\n- claim: 3 GB\n  si: 4 GB\n", HR_USAGE,
          "si is no key of a claim; the nearest "
          "is is" },
        { "claims:\n- claim: 3\n  is: 4 GB\n", HR_USAGE, "give the claim a unit" },
        { "claims:\n- claim: 3 GB\n  is: 4\n", HR_USAGE, "its formula gives a plain number" },
        { "claims:\n- claim: 5.6 hours\n  is: 1B / 50000 / 3600\n", HR_USAGE,
          "the claim is a time, but its formula gives a plain number" },
        { "claims:\n- claim: 5.6 hours\n  is: 1B / 50000 * 1 s\n", HR_OK, "5.556 hours" },
        { "claims:\n- claim: 3 GB\n  is: 3 GB\n  where: \"\\e[31mred\"\n", HR_OK, "[?[31mred]" },
        { "claims:\n- claim: \"3\\e[31m\"\n  is: 3 GB\n", HR_USAGE, "?[31m" },
        { "claims:\n- claim: 3 GB\n  claim: 4 GB\n", HR_USAGE, "is given twice, first in line 2" },
        { "claims:\n- &a\n  claim: 2 GB\n  is: 2 GB\n- *a\n- <<: *a\n  claim: 3 GB\n", HR_BROKEN,
          "checked 3 of 3: 2 true, 0 in the wrong unit, 1 wrong" },
        { "per_device_train_batch_size: 1\nmodel_name_or_path: Qwen/Qwen2.5-0.5B\n"
          "1234567max_length: 77\n\"<<[abc\": 99\nbase: &b {x: 1}\n\"<<[c\": *b\n",
          HR_UNDECIDED, "no max_length is given: the default of TRL is 1024 tokens" },
        { "claims:\n- &a [*a]\n", HR_USAGE, "an alias inside of what it stands for" },
        { "claims:\n- *b\n", HR_USAGE, "an alias without an anchor" },
        { "claims:\n\t- claim: 1\n", HR_USAGE, "not YAML" },
        { "a: 1\n---\nb: 2\n", HR_USAGE, "a second document" },
        { "[1, 2, 3]", HR_USAGE, "is no file that an audit knows" },
        { "\x80\x04\x95 pickle", HR_USAGE, "is a pickle" },
        { "PK\x03\x04 zip", HR_USAGE, "is a zip archive" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("f.yaml", cases[i].text);
        const int code = run("audit f.yaml");
        if (code != cases[i].code || (!strstr(err, cases[i].said) && !strstr(out, cases[i].said)))
            fail_msg("case %d: %d, %s%s", (int)i, code, out, err);
        if (code == HR_USAGE) assert_string_equal(out, "");
        /* No text of the file controls the terminal. */
        assert_null(strchr(out, '\x1b'));
        assert_null(strchr(err, '\x1b'));
    }
}

static void a_file_without_content_is_one_sentence(void **state)
{
    (void)state;
    require_program();
    static const char *const empty[] = { "",
                                         "\n \t\n",
                                         "{}",
                                         "[]\n",
                                         "null\n",
                                         "~",
                                         "---\n",
                                         "# only\n  # comments\n",
                                         "\xef\xbb\xbf{ }" };
    static const char *const names[] = { "f.yaml", "f.json", "f.yaml --kind trl",
                                         "f.yaml --kind claims", "f.yaml --kind recipe" };
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        put("f.yaml", empty[i]);
        put("f.json", empty[i]);
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            const bool json = n == 1 && !strpbrk(empty[i], "{[") && strpbrk(empty[i], "n~#-");
            if (json && strcmp(empty[i], "null\n")) continue; /* YAML, and no JSON */
            assert_int_equal(run("audit %s", names[n]), HR_USAGE);
            assert_string_equal(out, "");
            if (!strstr(err, " is empty: it has no settings and no claims\n"))
                fail_msg("case %d, %s: %s", (int)i, names[n], err);
        }
    }
    put("f.md", "\n");
    assert_int_equal(run("audit f.md"), HR_USAGE);
    assert_string_equal(err, "headroom: f.md is empty: it has no settings and no claims\n");
    put("f.yaml", "hello\n");
    assert_int_equal(run("audit f.yaml"), HR_USAGE);
    assert_non_null(strstr(err, "f.yaml is a single value"));
    static const char *const without[] = { "claims: []", "claims:\n", "{\"claims\": []}" };
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        put("f.yaml", without[i]);
        assert_int_equal(run("audit f.yaml"), HR_USAGE);
        assert_string_equal(err, "headroom: f.yaml has no claims: its list is empty\n");
    }
}

static void what_is_no_json_has_its_line_and_column(void **state)
{
    (void)state;
    require_program();
    static const char *const cases[][2] = {
        { "{\"a\": 1,}", "f.json:1: not JSON at column 9: a comma stands before the closing "
                         "bracket; remove it" },
        { "{\n \"a\": [1, 2,\n ]}", "f.json:3: not JSON at column 2: a comma stands before" },
        { "{\n \"a\": True}", "f.json:2: not JSON at column 7: JSON writes True as true" },
        { "{\n \"a\": 1 // x\n}", "f.json:2: not JSON at column 9: JSON has no comments" },
        { "{'a': 1}", "f.json:1: not JSON at column 2: a text stands in double quotes" },
        { "{\"a\": NaN}", "f.json:1: not JSON at column 7: JSON has no NaN; write null" },
        { "{\n\n \"a\" 1}", "f.json:3: not JSON at column 6: no colon after a key" },
        { "{\"a\": 1} x", "f.json:1: not JSON at column 10: more text after the value" },
        { "{\"a\": [1, 2", "f.json:1: not JSON at column 12: neither a comma nor" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("f.json", cases[i][0]);
        assert_int_equal(run("audit f.json"), HR_USAGE);
        if (!strstr(err, cases[i][1])) fail_msg("%s: %s", cases[i][0], err);
    }
}

static void a_text_is_known_by_its_name(void **state)
{
    (void)state;
    require_program();
    put("notes.md", "# Memory\n2 \xc3\x97 3 bytes = 7 bytes\n4 GB are free\n");
    assert_int_equal(run("audit notes.md"), HR_BROKEN);
    assert_non_null(strstr(out, "checked 1 of 2: 0 true, 0 in the wrong unit, 1 wrong"));
    assert_non_null(strstr(out, "line 3    4 GB are free"));
    put("open.md", "# Memory\n2 x 4 bytes = 8 bytes\n4 GB are free\n");
    assert_int_equal(run("audit open.md"), HR_UNDECIDED);
    assert_says("1 of 2 claims were checked");
    put("latin.txt", "# caf\xe9\n2 x 4 bytes = 8 bytes\n");
    assert_int_equal(run("audit latin.txt"), HR_USAGE);
    assert_says("latin.txt:1: byte 0xe9 is not UTF-8");
    assert_int_equal(run("audit notes.md --json"), HR_BROKEN);
    assert_non_null(strstr(out, "\"right\": 6,"));
    assert_int_equal(run("audit notes.md --kind axolotel"), HR_USAGE);
    assert_non_null(strstr(err, "the nearest is axolotl"));
    assert_int_equal(run("audit nothing.md"), HR_USAGE);
}

static void long_files_are_refused(void **state)
{
    (void)state;
    require_program();
    static char text[11 << 20];
    memset(text, '#', sizeof text - 1);
    put("long.yaml", text);
    assert_int_equal(run("audit long.yaml"), HR_USAGE);
    assert_non_null(strstr(err, "has 11534335 bytes; an audit reads at most 1048576"));
    text[0] = '\x80', text[1] = 2;
    put("training_args.bin", text);
    assert_int_equal(run("audit training_args.bin"), HR_USAGE);
    assert_non_null(strstr(err, "is a pickle, which runs code"));
}

#define FACTORY "model_name_or_path: Qwen/Qwen2.5-0.5B\n"
#define DEEPSPEED_BATCH(all) \
    "{\"zero_optimization\": {\"stage\": 2}, \"train_micro_batch_size_per_gpu\": 4, " \
    "\"gradient_accumulation_steps\": 2, \"train_batch_size\": " all "}"

#define TUNE "model:\n  _component_: torchtune.models.qwen2_5.qwen2_5_0_5b\n"

static void training_files_have_their_sentences(void **state)
{
    (void)state;
    require_program();
    static const struct {
        const char *file, *text, *options;
        int code;
        const char *said;
    } cases[] = {
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nsequence_len: 512\n", "", HR_OK,
          "keys: 2 read, 0 without effect on a training step, 0 not read" },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nmicro_batch_sise: 4\n", "", HR_UNDECIDED,
          "line 2    micro_batch_sise: 4 is not known here   (did you mean micro_batch_size?)" },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nmicro_batch_size: four\n", "", HR_USAGE,
          "a.yml:2: micro_batch_size takes a whole number from 1 to 1e9, not \"four\"" },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nbf16: maybe\n", "", HR_USAGE,
          "a.yml:2: bf16 takes true or false" },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nlearning_rate: -1\n", "", HR_USAGE,
          "a.yml:2: learning_rate: " },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nadapter: \"\\e[31mred\"\n", "", HR_USAGE,
          "?[31mred" },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\noptimizer: \"\\e[31mred\"\n", "", HR_UNDECIDED,
          "?[31mred" },
        { "a.yml", "base_model: acme/Fancy-9B\n", "", HR_USAGE,
          "acme/Fancy-9B is not a known model; the nearest is" },
        { "a.yml", "base_model: acme/Fancy-9B\n", "--model Qwen/Qwen2.5-0.5B", HR_OK,
          "494,032,768 parameters" },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nrl: grpo\n", "", HR_USAGE,
          "nothing else can be estimated, not \"grpo\"" },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nsequence_len: 512\n", "--device rtx-9999",
          HR_USAGE, "\"rtx-9999\" is not a known device" },
        { "a.yml", "base_model: Qwen/Qwen2.5-7B\nsequence_len: 512\n", "--device gtx-1650",
          HR_NO_FIT, "is estimated to need at least" },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nsequence_len: 512\nbf16: true\n", "--device t4",
          HR_NO_FIT, "  line 3    NVIDIA T4 16 GB has no bf16, which the file asks for" },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nsequence_len: 512\nbf16: true\n",
          "--device t4 --json", HR_NO_FIT, "\"missing_format\": \"bf16\"" },
        { "f.yml", FACTORY "finetuning_type: oft\n", "", HR_USAGE,
          "f.yml:2: finetuning_type takes full, freeze or lora: nothing else can be estimated" },
        { "f.yml", FACTORY "finetuning_type: freeze\nfreeze_trainable_layers: 0\n", "", HR_USAGE,
          "freeze_trainable_layers takes a number of layers" },
        { "f.yml", FACTORY "adapter_name_or_path: a\ntemplate: qwen\ninfer_backend: vllm\n", "",
          HR_USAGE, "f.yml runs a model with LLaMA-Factory and trains nothing" },
        { "f.yml", FACTORY "template: qwen\nexport_dir: out\n", "", HR_USAGE,
          "f.yml merges and exports a model with LLaMA-Factory and trains nothing" },
        { "f.yml", FACTORY "template: qwen\nstage: sft\ndo_predict: true\n", "", HR_USAGE,
          "f.yml evaluates a model with LLaMA-Factory and trains nothing" },
        { "f.yml", FACTORY "template: qwen\nauto_find_batch_size: true\n", "", HR_UNDECIDED,
          "line 3    auto_find_batch_size: the trainer lowers the batch until it fits" },
        { "f.yml", FACTORY "template: qwen\nuse_galore: true\nuse_badam: false\n", "", HR_UNDECIDED,
          "line 3    use_galore: true changes what is in memory" },
        { "f.yml", FACTORY "finetuning_type: lora\nlora_target: proj\n", "", HR_USAGE,
          "f.yml: no module of the model is named \"proj\"" },
        { "f.yml", FACTORY "finetuning_type: full\nfp16: true\ndeepspeed: conf/ds3/zero1.json\n",
          "", HR_UNDECIDED, "conf/ds3/zero1.json is not here; by its name it is ZeRO stage 1" },
        { "f.yml", FACTORY "finetuning_type: full\ndeepspeed: my.json\n", "", HR_UNDECIDED,
          "my.json is not here, and its name has no stage: taken as ZeRO stage 1" },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nreward_model: true\n", "", HR_USAGE,
          "a.yml:2: reward_model: the file trains a model that rates answers" },
        { "a.yml",
          "base_model: Qwen/Qwen2.5-0.5B\nfsdp_config:\n  transformer_layer_cls_to_wrap: "
          "Qwen2DecoderLayer\n",
          "", HR_OK, "0 not read" },
        { "h.json", "{\"per_device_train_batch_size\": 1, \"fp16\": true}",
          "--model EleutherAI/pythia-70m", HR_UNDECIDED,
          "line 1    fp16: true scales the loss and refuses gradients of weights in fp16" },
        { "h.json",
          "{\"per_device_train_batch_size\": 1, \"optim\": \"sgd\", \"fp16\": true, "
          "\"gradient_checkpointing\": true}",
          "--model EleutherAI/pythia-1.4b --json", HR_UNDECIDED, "\"peak\": \"backward" },
        { "t.yml", TUNE "max_new_tokens: 300\n", "", HR_USAGE,
          "t.yml generates text with torchtune and trains nothing" },
        { "t.yml", TUNE "tasks: [mmlu]\n", "", HR_USAGE, "t.yml evaluates a model with torchtune" },
        { "t.yml", TUNE "optimizer:\n  lr: 1e-5\ngrpo_samples: 16\n", "", HR_USAGE,
          "t.yml:5: grpo_samples: the file trains with answers that it generates" },
        { "t.yml", TUNE "optimizer:\n  lr: 1e-5\nteacher_model:\n  _component_: a.b\n", "",
          HR_USAGE, "the file distills a second model" },
        { "t.yml",
          TUNE "optimizer:\n  lr: 1e-5\nloss:\n  _component_: torchtune.rlhf.loss.DPOLoss\n", "",
          HR_UNDECIDED, "2 pairs are 4 sequences at a time; the reference model is in memory too" },
        { "t.yml", TUNE "optimizer:\n  lr: 1e-5\n", "--processes 8", HR_UNDECIDED,
          "on 8 processes the recipes of torchtune shard weights" },
        { "r.yml", "model_name_or_path: Qwen/Qwen2.5-0.5B\nmax_length: null\n", "", HR_UNDECIDED,
          "line 2    no length cuts a text, so the longest one decides: taken as 1024 tokens" },
        { "r.yml", "model_name_or_path: Qwen/Qwen2.5-0.5B\nmax_length: 64\nnum_generations: 8\n",
          "", HR_USAGE,
          "r.yml:3: num_generations: the file trains with answers that it generates" },
        { "r.yml",
          "model_name_or_path: Qwen/Qwen2.5-0.5B\nmax_length: 64\nper_device_train_batch_size: 1\n",
          "", HR_OK, "an update is 1 x 1 x 1 = 1 sequence (batch" },
        { "ds.json", "{\"zero_optimization\": {\"stage\": 3}}", "", HR_USAGE,
          "ds.json names no model; give one with --model" },
        { "ds.json", "{\"zero_optimization\": {\"stage\": 4}}", "--model gpt2", HR_USAGE,
          "zero_optimization.stage takes 0, 1, 2 or 3" },
        { "ds.json", "{\"zero_optimization\": {\"stage\": 3}, \"bf16\": {\"enabled\": \"auto\"}}",
          "--model gpt2 --processes 4", HR_UNDECIDED,
          "bf16.enabled: auto is what the file of the trainer says, which is not given" },
        { "ds.json", DEEPSPEED_BATCH("64"), "--model gpt2", HR_UNDECIDED,
          "train_batch_size 64 / (4 sequences x 2 accumulation) = 8 processes" },
        { "ds.json", DEEPSPEED_BATCH("8"), "--model gpt2", HR_UNDECIDED,
          "accumulation) = 1 process\n" },
        { "ds.json", DEEPSPEED_BATCH("64"), "--model gpt2 --processes 4", HR_USAGE,
          "2 accumulation x 8 processes, so --processes 4 contradicts it" },
        { "ds.json", DEEPSPEED_BATCH("60"), "--model gpt2", HR_UNDECIDED,
          "train_batch_size 60 is not 4 sequences" },
        { "ds.json", DEEPSPEED_BATCH("\"auto\""), "--model gpt2 --processes 4", HR_UNDECIDED,
          "an update is 4 x 2 x 4 = 32 sequences" },
        { "ta.json",
          "{\"model_name_or_path\": \"gpt2\", \"dataset_name\": \"d\", \"num_train_epochs\": 1,"
          " \"block_size\": 512}",
          "", HR_OK, "Hugging Face Trainer: estimate" },
        { "ta.json", "{\"model_name_or_path\": \"gpt2\", \"block_size\": 512}", "", HR_OK,
          "8 x 512 x 50257" },
        { "sft.yaml", "model_name_or_path: gpt2\ndataset_name: d\nnum_train_epochs: 1\n", "", HR_OK,
          "TRL: estimate" },
        { "acc.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n", "", HR_USAGE,
          "configures accelerate" },
        { "config.json", "{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 64}", "",
          HR_USAGE, "describes a model and no training" },
        { "t.toml", "[model]\nname = \"llama3\"\n", "", HR_USAGE, "is TOML" },
        { "c.yaml", "claim: 20 MB\nis: matrix(10000, 512)\n", "--device h100", HR_USAGE,
          "--device is for training files" },
        { "a.yml", "base_model: Qwen/Qwen2.5-0.5B\nsequence_len: 512\n", "--processes x", HR_USAGE,
          "--processes" },
        { "m.md", "# Sizes\n\nThe \xe2\x80\xaeweights\xe2\x81\xa9 are 26 GB.\n", "", HR_UNDECIDED,
          "The ?weights? are 26 GB" },
        { "l.yaml", "model: Qwen/Qwen2.5-0.5B\nfinetuning_type: full\ncutoff_len: 512\n", "", HR_OK,
          "(LLaMA-Factory): " },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put(cases[i].file, cases[i].text);
        const int code = run("audit %s %s", cases[i].file, cases[i].options);
        if (code != cases[i].code || (!strstr(err, cases[i].said) && !strstr(out, cases[i].said)))
            fail_msg("case %d: %d, %s%s", (int)i, code, out, err);
        if (code == HR_USAGE) assert_string_equal(out, "");
        /* No text of the file controls the terminal. */
        assert_null(strchr(out, '\x1b'));
        assert_null(strchr(err, '\x1b'));
    }
}

/* What is merged into a map gives way to what stands in it. */
static void merge_keys_are_read(void **state)
{
    (void)state;
    require_program();
    put("a.yml", "defaults: &d\n  stage: 2\n  overlap_comm: true\nbase_model: Qwen/Qwen2.5-0.5B\n"
                 "sequence_len: 512\ndeepspeed:\n  zero_optimization:\n    <<: *d\n    stage: 3\n");
    assert_int_equal(run("audit a.yml --json --processes 2"), HR_UNDECIDED); /* defaults.stage */
    assert_non_null(strstr(out, "\"zero_stage\": 3"));
    assert_non_null(strstr(out, "deepspeed.zero_optimization.overlap_comm"));
}

static long long number_after(const char *key)
{
    const char *at = strstr(out, key);
    if (!at) fail_msg("no %s in %s%s", key, out, err);
    return strtoll(at + strlen(key), NULL, 10);
}

/* Reading the file costs memory, which must not count. */
static void a_recipe_has_the_plan_of_plan(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("plan tiny.yaml --json"), HR_OK);
    const long long bytes = number_after("\"process_bytes\": ");
    assert_int_equal(run("audit tiny.yaml --json"), HR_OK);
    assert_int_equal(number_after("\"process_bytes\": "), bytes);
    assert_int_equal(run("audit tiny.yaml --model gpt2"), HR_USAGE);
    assert_non_null(strstr(err, "--model is for training files, and tiny.yaml is a recipe"));
}

static void a_preset_is_audited_by_its_name(void **state)
{
    (void)state;
    require_program();
    assert_int_equal(run("audit needle-70m --device rtx-4090"), HR_OK);
    assert_non_null(strstr(out, "needle-70m (recipe): fits"));
    assert_int_equal(run("audit needle-70m --model gpt2"), HR_USAGE);
    /* A file of that name is given with its folder, as for a plan. */
    put("needle-70m", "claim: 20 MB\nis: matrix(10000, 512)\n");
    assert_int_equal(run("audit ./needle-70m"), HR_OK);
    assert_non_null(strstr(out, "checked 1 of 1: 1 true"));
}

static void a_folder_has_the_dtype_of_its_config(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("train tiny.yaml data.train=text.txt train.steps=1 --out m"), HR_OK);
    put("t.json", "{\"per_device_train_batch_size\": 4, \"output_dir\": \"x\"}");
    assert_int_equal(run("audit t.json --model m --length 8"), HR_OK);
    assert_non_null(strstr(out, "the dtype of the file (fp32)"));
    assert_int_equal(system("sed -i s/float32/bfloat16/ m/config.json"), 0);
    assert_int_equal(run("audit t.json --model m --length 8"), HR_OK);
    assert_non_null(strstr(out, "the dtype of the file (bf16)"));
}

/* The range of an estimate may contain the bytes of the device. */
static void a_file_that_may_fit_says_so(void **state)
{
    (void)state;
    require_program();
    put("a.yml", "base_model: meta-llama/Llama-3.1-8B\nload_in_4bit: true\nadapter: qlora\n"
                 "lora_r: 16\nlora_target_linear: true\nsequence_len: 1024\nbf16: true\n"
                 "gradient_checkpointing: true\n");
    assert_int_equal(run("audit a.yml --json"), HR_OK);
    assert_non_null(strstr(out, "\"fits\": null"));
    const char *low = strstr(out, "\"low_bytes\": "), *high = strstr(out, "\"high_bytes\": ");
    assert_true(low && high);
    const long long middle = (strtoll(low + 13, NULL, 10) + strtoll(high + 14, NULL, 10)) / 2;
    char device[200];
    snprintf(device, sizeof device,
             "mine:\n  usable: %lld\n  bandwidth: 900GB/s\n  peak_tflops: {fp32: 90, bf16: 90}\n",
             middle);
    put("d.yaml", device);
    assert_int_equal(run("audit a.yml --device mine --device-file d.yaml --json"), HR_NO_FIT);
    assert_non_null(strstr(out, "\"fits\": \"may\""));
    assert_non_null(strstr(err, "may not fit: it is estimated to need"));
    assert_int_equal(run("audit a.yml --device mine --device-file d.yaml"), HR_NO_FIT);
    assert_non_null(strstr(out, "may fit mine"));
    assert_int_equal(run("audit a.yml --device h200 --json"), HR_OK);
    assert_non_null(strstr(out, "\"fits\": \"yes\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(claims_have_their_exit_codes),
        IN_A_FOLDER(a_file_without_content_is_one_sentence),
        IN_A_FOLDER(what_is_no_json_has_its_line_and_column),
        IN_A_FOLDER(a_text_is_known_by_its_name),
        IN_A_FOLDER(long_files_are_refused),
        IN_A_FOLDER(training_files_have_their_sentences),
        IN_A_FOLDER(merge_keys_are_read),
        IN_A_FOLDER(a_recipe_has_the_plan_of_plan),
        IN_A_FOLDER(a_preset_is_audited_by_its_name),
        IN_A_FOLDER(a_folder_has_the_dtype_of_its_config),
        IN_A_FOLDER(a_file_that_may_fit_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
