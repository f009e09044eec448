/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of other trainers are answered with the keys of headroom, and never with a wrong one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/training.h"
#include "config/config.h"
#include "headroom/foreign.h"

static bool has_key(const char *name)
{
    for (int32_t i = 0; hr_config_key(i); i++)
        if (!strcmp(hr_config_key(i)->name, name)) return true;
    return false;
}

/* Copies the next of a row's names; null after the last. */
static const char *next_name(const char *names, char name[HR_FOREIGN_VALUE_BYTES])
{
    const size_t bytes = strcspn(names, " ");
    if (!bytes) return NULL;
    assert_true(bytes < HR_FOREIGN_VALUE_BYTES);
    memcpy(name, names, bytes);
    name[bytes] = 0;
    return names + bytes + strspn(names + bytes, " ");
}

static void every_row_has_a_name_of_its_own_and_a_key_or_a_reason(void **state)
{
    (void)state;
    const hr_foreign_row *row;
    int32_t count = 0;
    for (int32_t i = 0; (row = hr_foreign_at(i)); i++) {
        char name[HR_FOREIGN_VALUE_BYTES], advice[HR_ADVICE_BYTES];
        if (row->key && !has_key(row->key)) fail_msg("%s: %s is not a key", row->names, row->key);
        if (!row->key && !*row->remark) fail_msg("%s: neither key nor reason", row->names);
        if (row->form && !strstr(row->form, "{}")) fail_msg("%s: form without {}", row->names);
        for (const char *at = row->names; (at = next_name(at, name)); count++) {
            if (hr_foreign_find(name) != row) fail_msg("%s is in two rows", name);
            assert_true(hr_config_advise(name, "1", advice));
            /* Long remarks are not cut. */
            assert_true(strlen(advice) + 1 < HR_ADVICE_BYTES);
        }
    }
    assert_null(hr_foreign_at(-1));
    assert_true(count >= 400);
}

static void every_translated_word_is_one_that_the_key_accepts(void **state)
{
    (void)state;
    const hr_foreign_row *row;
    int32_t pairs = 0;
    for (int32_t i = 0; (row = hr_foreign_at(i)); i++) {
        for (const char *at = row->values ? row->values : ""; *at; at += strspn(at, " ")) {
            hr_config config;
            hr_error err;
            char word[64], here[HR_FOREIGN_VALUE_BYTES];
            snprintf(word, sizeof word, "%.*s", (int)strcspn(at, "="), at);
            hr_config_default(&config);
            assert_true(hr_foreign_value(row, word, here));
            if (hr_config_set(&config, row->key, here, &err) != HR_OK)
                fail_msg("%s: %s: %s", row->names, word, err.message);
            at += strcspn(at, " ");
            pairs++;
        }
    }
    assert_true(pairs > 50);
}

typedef struct {
    const char *key, *value, *advice;
} answer;

/* The keys and flags of the scripts that docs/five-documents.md is about, and common ones. */
static const answer answers[] = {
    { "embedding_dim", "768", "use model.d_model=768" },
    { "output_dim", "8192", "use model.expansion=8192: wide: input width of the output head" },
    { "broca_output_dim", "8192",
      "use model.expansion=8192: wide: input width of the output head" },
    { "max_seq_length", "256", "use train.seq_len=256" },
    { "max_sequence_length", "256", "use train.seq_len=256" },
    { "seq_len", "128", "use train.seq_len=128" },
    { "context_length", "131072", "use train.seq_len=131072" },
    { "batch_size", "32", "use train.batch=32" },
    { "vocab_size", "10000", "use model.vocab_size=10000" },
    { "data.vocab_size", "10000", "use model.vocab_size=10000" },
    { "epochs", "10", "use train.epochs=10" },
    { "num_train_epochs", "3", "use train.epochs=3" },
    { "dataset", "wikitext-2", "use data.train=wikitext-2" },
    { "lr", "3e-4", "use train.optimizer.lr=3e-4" },
    { "learning_rate", "3e-4", "use train.optimizer.lr=3e-4" },
    { "weight_decay", "0.1", "use train.optimizer.weight_decay=0.1" },
    { "warmup_steps", "100", "use train.schedule.warmup_steps=100" },
    { "max_grad_norm", "1.0", "use train.optimizer.clip=1.0" },
    { "num_layers", "6", "use model.n_layers=6" },
    { "hidden_size", "512", "use model.d_model=512" },
    { "pattern", "mixed", "use model.attention.pattern=mixed" },
    { "sparse", "true", "use model.attention.pattern=local" },
    { "--sparse", "", "use model.attention.pattern=local" },
    { "use_sparse_attention", "False", "use model.attention.pattern=dense" },
    { "attention_type", "dense",
      "use model.attention.pattern=dense: model.attention.kind=nsa is native sparse attention" },
    { "attention_type", "nsa",
      "use model.attention.pattern: model.attention.kind=nsa is native sparse attention" },
    { "bf16", "true", "use train.dtype=bf16" },
    { "bf16", NULL, "use train.dtype" },
    { "accumulation_steps", "0",
      "use memory.micro_batch: train.batch counts the sequences of one update, over all its "
      "micro-batches" },
    { "fp16", "true",
      "use train.dtype=fp16: fp16 keeps fp32 weights and scales the loss; bf16 needs no scaling, "
      "and is faster here" },
    { "mixed_precision", "fp16",
      "use train.dtype=fp16: fp16 keeps fp32 weights and scales the loss; bf16 needs no scaling, "
      "and is faster here; fp8 arithmetic is not supported" },
    { "mixed_precision", "no",
      "use train.dtype=fp32: fp16 keeps fp32 weights and scales the loss; bf16 needs no scaling, "
      "and is faster here; fp8 arithmetic is not supported" },
    { "use_8bit", "true",
      "use train.state.moments=int8: 8-bit codes in blocks of 256 elements; model.weights=f8_e4m3 "
      "is for frozen layers" },
    { "load_in_8bit", "true",
      "use model.weights=f8_e4m3: for frozen layers; train.state.moments=int8 is for "
      "optimizer states" },
    { "use_8bit_adam", "true",
      "use train.state.moments=int8: 8-bit codes in blocks of 256 elements" },
    { "use_cpu_offload", "true",
      "use memory.moments=file: training runs in the memory of the CPU; optimizer moments can be "
      "in a file instead" },
    { "accumulation_steps", "4",
      "use memory.micro_batch = train.batch / 4: train.batch counts the sequences of one update, "
      "over all its micro-batches" },
    { "gradient_accumulation_steps", "8",
      "use memory.micro_batch = train.batch / 8: train.batch counts the sequences of one update, "
      "over all its micro-batches" },
    { "per_device_train_batch_size", "2",
      "use train.batch = 2 x accumulation steps: train.batch counts the sequences of one update; "
      "memory.micro_batch divides it" },
    { "gradient_checkpointing", "true",
      "use memory.recompute=layers: auto recomputes only as much as the budget requires" },
    { "chunk_size", "4096", "use memory.loss_chunk=4096: tokens per chunk of logits and loss" },
    { "max_tokens", "1000000", "use train.steps = 1000000 / (train.batch x train.seq_len)" },
    { "model_size", "4B", "presets are models of known sizes (headroom presets lists them)" },
    { "device", "cuda",
      "training runs on the CPU; headroom plan --device NAME plans for other machines" },
    { "nproc_per_node", "8",
      "one process trains, on the CPU; training on several machines is not supported" },
    { "lora_rank", "16", "use train.adapter.rank=16" },
    { "finetuning_type", "lora", "use train.adapter.kind=lora" },
    { "training", NULL, "the sections are model, data, train and memory" },
    { "attention.window_size", "512",
      "use model.attention.sliding_window=512: in tokens; model.attention.window counts blocks" },
    { "curriculum_stages", NULL,
      "use train.stages: a list of {at_step, seq_len, batch, lr_scale, clip}; micro_batch is batch "
      "/ accumulation steps" },
    { "training.Batch-Size", "32", "use train.batch=32" },
    { "batch_size", "many", "use train.batch" },
    { "optim", "adamw_torch_fused",
      "use train.optimizer.kind=adamw: train.state.moments=int8 stores its moments in 8 bits" },
    { "optim", "adafactor",
      "use train.optimizer.kind=adafactor: train.state.moments=int8 stores its moments in 8 bits" },
    { "relative_step", "false", "use train.optimizer.adafactor.relative_step=false" },
    { "warmup_init", "true",
      "use train.schedule.warmup_steps: the learning rate rises in these steps" },
    { "optim", "adamw_bnb_8bit",
      "use train.optimizer.kind=adamw: train.state.moments=int8 stores its moments in 8 bits" },
    { "optim", "adamw_8bit",
      "use train.optimizer.kind=adamw: train.state.moments=int8 stores its moments in 8 bits" },
    { "optimizer", "paged_adamw_8bit",
      "use train.optimizer.kind=adamw: train.state.moments=int8 stores its moments in 8 bits" },
    { "lr_scheduler_type", "constant_with_warmup",
      "use train.schedule.kind=constant: a polynomial of power 1 is linear; "
      "train.schedule.final_fraction=0 decays to 0, as transformers does" },
    { "lr_scheduler_type", "polynomial",
      "use train.schedule.kind=linear: a polynomial of power 1 is linear; "
      "train.schedule.final_fraction=0 decays to 0, as transformers does" },
    { "lr_scheduler", "wsd",
      "use train.schedule.kind=wsd: a polynomial of power 1 is linear; "
      "train.schedule.final_fraction=0 decays to 0, as transformers does" },
    { "lr_decay_style", "polynomial",
      "use train.schedule.kind: there are constant, linear, cosine and wsd" },
    { "train.optimizer.use_8bit", "true",
      "use train.state.moments=int8: 8-bit codes in blocks of 256 elements" },
    { "optimizer.use_8bit", NULL,
      "use train.state.moments: 8-bit codes in blocks of 256 elements" },
    { "model.use_8bit", "true",
      "use model.weights=f8_e4m3: for frozen layers; train.state.moments=int8 is for "
      "optimizer states" },
    { "warmup_steps", "0.03",
      "use train.schedule.warmup_steps = 0.03 x train.steps: a number of steps, not a share" },
    { "num_warmup_steps", "0.03",
      "use train.schedule.warmup_steps = 0.03 x train.steps: a number of steps, not a share" },
    { "save_steps", "0.1",
      "use train.checkpoint_every = 0.1 x train.steps: a number of steps, not a share" },
    { "warmup_ratio", "0.03",
      "use train.schedule.warmup_steps = 0.03 x train.steps: a number of steps, not a share" },
    { "warmup_steps", "1.5", "use train.schedule.warmup_steps" },
    { "tf32", "true", "tf32 changes no bytes; train.dtype is fp32, bf16 or fp16" },
    { "rope_scaling", "linear",
      "use model.rope_scaling.kind=linear: longrope is not supported; a "
      "section: kind, factor" },
    { "model.rope_scaling.type", "longrope",
      "use model.rope_scaling.kind: longrope is not supported; a section: "
      "kind, factor" },
    { "hidden_act", "silu", "model.family decides it (headroom help keys describes each)" },
    { "zero_stage", "3",
      "one process trains, so nothing is sharded; headroom plan --as deepspeed-z2 or deepspeed-z3 "
      "estimates DeepSpeed" },
    { "offload", "true",
      "use memory.moments=file: training runs in the memory of the CPU; optimizer moments can be "
      "in a file instead" },
    { "n_embd", "768", "use model.d_model=768" },
    { "n_head", "12", "use model.n_heads=12" },
    { "block_size", "1024", "use train.seq_len=1024" },
    { "d_ff", "2048", "use model.d_ff=2048" },
    { "ffn_hidden_size", "11008", "use model.d_ff=11008" },
    { "micro_batch_size", "4",
      "use memory.micro_batch=4: train.batch is this x accumulation steps" },
    { "global_batch_size", "64", "use train.batch=64" },
    { "train_samples", "1000", "use train.steps = 1000 / train.batch: train.steps counts updates" },
    { "weight_tying", "true", "use model.tie_embeddings=true" },
    { "untie_embeddings_and_output_weights", "", "use model.tie_embeddings=false" },
    { "disable_gradient_checkpointing", "true",
      "use memory.recompute=none: auto recomputes only as much as the budget requires" },
    { "num_output_chunks", "8",
      "use memory.loss_chunk = train.batch x train.seq_len / 8: tokens per chunk of logits and "
      "loss" },
    { "mixed_precision", "fp8",
      "use train.dtype=bf16: fp16 keeps fp32 weights and scales the loss; bf16 needs no scaling, "
      "and is faster here; fp8 arithmetic is not supported" },
    { "embd_pdrop", "0.1", "the embedding has no dropout; model.dropout is that of the layers" },
    { "d_model", "64", "use model.d_model=64" },
};

static void the_keys_of_the_documents_are_answered(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        hr_config config;
        hr_error err;
        char advice[HR_ADVICE_BYTES], expected[640];
        assert_true(hr_config_advise(answers[i].key, answers[i].value, advice));
        assert_string_equal(advice, answers[i].advice);
        if (!answers[i].value) continue;
        const bool use = !strncmp(advice, "use ", 4);
        hr_config_default(&config);
        assert_int_equal(hr_config_set(&config, answers[i].key, answers[i].value, &err), HR_USAGE);
        snprintf(expected, sizeof expected, "\"%s\" is not a key%s %s (headroom keys lists all)",
                 answers[i].key, use ? ";" : ":", advice);
        assert_string_equal(err.message, expected);
    }
    assert_true(sizeof answers / sizeof *answers >= 32);
}

static void a_word_of_another_trainer_for_a_key_is_translated(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        { "train.dtype", "float16",
          "train.dtype takes one of fp32, bf16, fp16; got \"float16\": use fp16; fp16 keeps fp32 "
          "weights and scales the loss; bf16 needs no scaling, and is faster here; fp8 arithmetic "
          "is not supported" },
        { "train.dtype", "bfloat16",
          "train.dtype takes one of fp32, bf16, fp16; got \"bfloat16\": use bf16; fp16 keeps fp32 "
          "weights and scales the loss; bf16 needs no scaling, and is faster here; fp8 arithmetic "
          "is not supported" },
        { "train.dtype", "int4", "train.dtype takes one of fp32, bf16, fp16; got \"int4\"" },
        { "train.schedule.kind", "polynomial",
          "train.schedule.kind takes one of constant, linear, cosine, wsd; got \"polynomial\": use "
          "linear; a polynomial of power 1 is linear; train.schedule.final_fraction=0 decays to "
          "0, as transformers does" },
        { "memory.moments", "cpu",
          "memory.moments takes one of host, file; got \"cpu\": use file; training runs in the "
          "memory of the CPU; optimizer moments can be in a file instead" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_config config;
        hr_error err;
        hr_config_default(&config);
        assert_int_equal(hr_config_set(&config, cases[i][0], cases[i][1], &err), HR_USAGE);
        assert_string_equal(err.message, cases[i][2]);
    }
}

static void the_page_has_every_row(void **state)
{
    (void)state;
    static char page[1 << 16];
    FILE *file = fopen(HR_SOURCE "/docs/other-trainers.md", "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = 0;
    fclose(file);
    const hr_foreign_row *row;
    for (int32_t i = 0; (row = hr_foreign_at(i)); i++) {
        char word[HR_FOREIGN_VALUE_BYTES], name[HR_FOREIGN_VALUE_BYTES + 2], key[80];
        for (const char *at = row->names; (at = next_name(at, word));) {
            snprintf(name, sizeof name, "`%s`", word);
            snprintf(key, sizeof key, row->key ? "| `%s` |" : "| none |", row->key);
            const char *line = strstr(strstr(page, "| --- |"), name);
            const char *end = line ? strchr(line, '\n') : NULL;
            const char *found = line ? strstr(line, key) : NULL;
            if (!found || found > end) fail_msg("docs/other-trainers.md: %s, %s", name, key);
            const char *remark = strstr(line, row->remark);
            if (!remark || remark > end) fail_msg("docs/other-trainers.md: %s", row->remark);
        }
    }
}

/* Names whose key depends on what is asked, a recipe that is written or bytes that are counted: the
 * batch of a device is one of several in train.batch, and accumulation sets both. */
static bool differs_by_question(hr_meaning meaning)
{
    return meaning == HR_MEANS_MICRO_BATCH || meaning == HR_MEANS_ACCUMULATION ||
           meaning == HR_MEANS_LAYERS;
}

/* The audit of a training file and the advice for a recipe name the same key. */
static void an_audit_means_the_same_keys(void **state)
{
    (void)state;
    static const hr_foreign *const programs[] = {
        &hr_foreign_hf,        &hr_foreign_trl,
        &hr_foreign_axolotl,   &hr_foreign_llama_factory,
        &hr_foreign_torchtune, &hr_foreign_deepspeed,
        &hr_foreign_mlx,
    };
    int32_t shared = 0;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        for (int32_t t = 0; t < HR_FOREIGN_TABLES && programs[i]->tables[t]; t++)
            for (const hr_foreign_keys *keys = programs[i]->tables[t]; keys->names; keys++) {
                const char *key = hr_meaning_key(keys->meaning);
                char name[HR_FOREIGN_VALUE_BYTES];
                if (!key || differs_by_question(keys->meaning)) continue;
                for (const char *at = keys->names; (at = next_name(at, name));) {
                    const hr_foreign_row *row = hr_foreign_find(name);
                    if (!row || !row->key) continue;
                    if (strcmp(row->key, key) != 0)
                        fail_msg("%s: %s in the audit, %s in advice", name, key, row->key);
                    shared++;
                }
            }
    assert_true(shared > 100);
}

static void an_unknown_word_has_no_advice(void **state)
{
    (void)state;
    static const char *const words[] = { "", ".", "foo", "train.bacth", "stride.", "window_" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char advice[HR_ADVICE_BYTES] = "old";
        assert_false(hr_config_advise(words[i], "1", advice));
        assert_string_equal(advice, "");
    }
    char longest[4096];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_null(hr_foreign_find(longest));
    char value[HR_FOREIGN_VALUE_BYTES];
    assert_false(hr_foreign_value(hr_foreign_find("batch_size"), longest, value));
    assert_string_equal(value, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_a_name_of_its_own_and_a_key_or_a_reason),
        cmocka_unit_test(every_translated_word_is_one_that_the_key_accepts),
        cmocka_unit_test(the_keys_of_the_documents_are_answered),
        cmocka_unit_test(a_word_of_another_trainer_for_a_key_is_translated),
        cmocka_unit_test(the_page_has_every_row),
        cmocka_unit_test(an_audit_means_the_same_keys),
        cmocka_unit_test(an_unknown_word_has_no_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
