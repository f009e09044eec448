/* SPDX-License-Identifier: Apache-2.0 */
/* audit/training.h - reads the training files of other programs with one table of keys for each.
 *
 * Every key of a file is in one of three states: read, without effect on a training step, or not
 * read. The report lists them all. */
#ifndef HR_AUDIT_TRAINING_H
#define HR_AUDIT_TRAINING_H

#include "audit/findings.h"

/* What a key means. The rest of a row of a table is the same for all programs. */
typedef enum {
    HR_MEANS_NOTHING,   /* no effect on a step */
    HR_MEANS_UNMODELED, /* unless it is off, it changes what is in memory, and no estimate has it */
    HR_MEANS_BUFFER,    /* elements of a buffer of DeepSpeed; as UNMODELED above its default */
    HR_MEANS_MODEL,
    HR_MEANS_MICRO_BATCH,
    HR_MEANS_ACCUMULATION,
    HR_MEANS_GLOBAL_BATCH,
    HR_MEANS_LENGTH,
    HR_MEANS_CHECKPOINTING,
    HR_MEANS_NO_CHECKPOINTING,
    HR_MEANS_BF16,
    HR_MEANS_FP16,
    HR_MEANS_PURE_BF16,
    HR_MEANS_DTYPE,
    HR_MEANS_OPTIMIZER,
    HR_MEANS_RATE,
    HR_MEANS_DECAY,
    HR_MEANS_BETA1,
    HR_MEANS_BETA2,
    HR_MEANS_EPS,
    HR_MEANS_CLIP,
    HR_MEANS_SCHEDULE,
    HR_MEANS_WARMUP,
    HR_MEANS_WARMUP_RATIO,
    HR_MEANS_EPOCHS,
    HR_MEANS_STEPS,
    HR_MEANS_SEED,
    HR_MEANS_4BIT,
    HR_MEANS_8BIT,
    HR_MEANS_BITS,
    HR_MEANS_DOUBLE_QUANT,
    HR_MEANS_ADAPTER, /* lora, qlora, full */
    HR_MEANS_PEFT,    /* true: an adapter */
    HR_MEANS_RANK,
    HR_MEANS_ALPHA,
    HR_MEANS_SCALE, /* alpha / rank */
    HR_MEANS_ADAPTER_DROPOUT,
    HR_MEANS_TARGETS,
    HR_MEANS_SAVED,          /* modules that are trained whole beside adapters */
    HR_MEANS_FREEZE_LAYERS,  /* how many of the last layers are trained; negative: first */
    HR_MEANS_FREEZE_MODULES, /* of these layers */
    HR_MEANS_FREEZE_EXTRA,   /* modules outside of layers that are trained */
    HR_MEANS_ALL_LINEAR,
    HR_MEANS_MLP_TARGETS,
    HR_MEANS_PACKING,
    HR_MEANS_CHUNKED_LOSS,    /* true: in chunks that autograd keeps */
    HR_MEANS_FUSED_LOSS,      /* true: the loss keeps no logits */
    HR_MEANS_CUT_LOSS,        /* the same; the plugin of axolotl has it as its default */
    HR_MEANS_PREFERENCE_LOSS, /* true: the preference loss keeps no logits */
    HR_MEANS_PLUGIN,          /* axolotl: the name of a plugin */
    HR_MEANS_FUSED_UPDATE,    /* true: one kernel updates a weight */
    HR_MEANS_LOSS,            /* a name */
    HR_MEANS_STAGE,           /* sft, dpo */
    HR_MEANS_PREFERENCE,      /* a key that only preference training has */
    HR_MEANS_DEEPSPEED,       /* a file, or settings */
    HR_MEANS_FSDP,
    HR_MEANS_FSDP_CHECKPOINTING, /* true: also switches checkpointing on */
    HR_MEANS_ZERO,
    HR_MEANS_OFFLOAD_OPTIMIZER,
    HR_MEANS_OFFLOAD_WEIGHTS,
    HR_MEANS_IN_BACKWARD,
    HR_MEANS_HALF_MASTERS,
    HR_MEANS_HALF_STATES,
    HR_MEANS_ATTENTION,   /* eager, sdpa, flash_attention_2 */
    HR_MEANS_FLASH,       /* true: a fused kernel */
    HR_MEANS_CPU_OFFLOAD, /* true: weights and states of FSDP are in host memory */
    HR_MEANS_COMPONENT,   /* torchtune: a model builder */
    HR_MEANS_LAYERS,      /* mlx-lm: how many of the last layers are trained */
    HR_MEANS_FINDS_BATCH, /* true: the trainer lowers the batch until it fits */
    HR_MEANS_BLOCKS,      /* true: weights are trained block by block */
    HR_MEANS_GENERATES,   /* a key of training with generated answers */
    HR_MEANS_TEACHER,     /* a key of distillation */
    HR_MEANS_REWARDS      /* true: a model that rates answers is trained */
} hr_meaning;

/* Keys of a program with one meaning: names with blanks between, each with one "*" at most, which
 * stands for any text. */
typedef struct {
    hr_meaning meaning;
    const char *names; /* null: the end of a table */
} hr_foreign_keys;

enum { HR_FOREIGN_TABLES = 6 };

/* The keys and defaults of a program. The first row that has a key decides. */
typedef struct {
    const hr_foreign_keys *tables[HR_FOREIGN_TABLES]; /* null: no further one */
    int64_t micro_batch, seq_len;
    bool checkpointing;
} hr_foreign;

extern const hr_foreign hr_foreign_hf, hr_foreign_trl, hr_foreign_axolotl, hr_foreign_llama_factory,
    hr_foreign_torchtune, hr_foreign_deepspeed, hr_foreign_mlx;

/* The table of a kind; null: it is no training file of others. Pure. */
const hr_foreign *hr_foreign_of(hr_audit_kind kind);

/* The key of headroom for a meaning; null: there is none. Pure. */
const char *hr_meaning_key(hr_meaning meaning);

/* A value "auto". */
typedef struct {
    const char *key; /* of the entry */
    hr_meaning meaning;
    int64_t line; /* 0: of a DeepSpeed file beside the file */
} hr_audit_auto;

enum { HR_AUDIT_AUTOS_MOST = 24 };

/* What is collected while the entries are read. */
typedef struct {
    const char *path;
    hr_audit_report *report;
    hr_error *err;
    /* Values as given; lines 0: not given. */
    hr_audit_dtype dtype;
    hr_meaning meaning; /* of the entry that is read */
    bool elsewhere;     /* the entry is of a DeepSpeed file beside the file */
    bool blocks, bf16, fp16, pure, peft, full, freeze, four_bit, eight_bit, linear, mlp, auto_bf16,
        auto_dtype, bf16_given, micro_given, accumulation_given,
        world_fixed; /* by the batch sizes of DeepSpeed */
    int64_t dtype_line, bf16_line, fp16_line, checkpointing_line, length_line, micro_line,
        optimizer_line, global_batch, warmup_line, scale_line, deepspeed_line, loss_line;
    bool deepspeed_inside, fsdp, fsdp_two, fsdp_keeps, cut_plugin, cut_given;
    int64_t layers, layers_line, freeze_layers, freeze_line;
    char freeze_modules[HR_AUDIT_TARGETS_BYTES], freeze_extra[HR_AUDIT_TARGETS_BYTES];
    double warmup, warmup_ratio, scale;
    int64_t length_null_line; /* a length that is given as null */
    char optimizer[64], schedule[48], deepspeed[HR_PATH_BYTES];
    char model[HR_PATH_BYTES];                /* as the file names it */
    bool fused_preference, no_reference, kto; /* of the preference loss */
    int64_t loss_switch_line;                 /* of a key that fuses the loss of plain training */
    int32_t autos;
    hr_audit_auto auto_list[HR_AUDIT_AUTOS_MOST];
} hr_reading;

/* Whether a text has a part, in letters of any case. Pure. */
bool hr_audit_contains(const char *text, const char *part);

/* The value of a key of the file; null: it has none. Pure. */
const char *hr_audit_value(const hr_audit_report *report, const char *key);

/* Adds a sentence to the report. hr_audit_doubt: about bytes that the estimate does not have. */
void hr_audit_find(hr_audit_report *report, int64_t line, const char *format, ...) HR_PRINTF(3, 4);
void hr_audit_doubt(hr_audit_report *report, int64_t line, const char *format, ...) HR_PRINTF(3, 4);

/* "false", "0", "none", "null" and the like, with which a key is off. Pure. */
bool hr_audit_is_off(const char *value);

/* Takes one entry with the meaning of its key. Errors USAGE. */
HR_MUST_CHECK hr_status hr_reading_take(hr_reading *r, const hr_entry *entry, hr_meaning meaning);

/* Makes the settings and the config of headroom from what was read, and adds the findings. */
HR_MUST_CHECK hr_status hr_reading_finish(hr_reading *r, const hr_audit_request *request);

/* Reads a file of `kind`, with a DeepSpeed file that it names. Errors USAGE. */
HR_MUST_CHECK hr_status hr_audit_training_file(const char *path, hr_audit_kind kind,
                                               const hr_audit_request *request, hr_entries *entries,
                                               hr_audit_report *report, hr_error *err);

/* The kind of a mapping; HR_AUDIT_AUTO: none. Pure. */
hr_audit_kind hr_training_kind(const hr_entries *entries, bool is_json);

/* Notes a value "auto", which hr_autos_find explains when all is read. */
void hr_autos_note(hr_reading *r, const hr_entry *entry, hr_meaning meaning);

/* Adds a finding for each value "auto": what was taken, and why. The settings are complete. */
void hr_autos_find(hr_reading *r);

/* The sentence "key takes ..., not ..." with the line. Returns USAGE. */
HR_MUST_CHECK hr_status hr_reading_fail(const hr_reading *r, const hr_entry *entry,
                                        const char *takes);

/* Takes an entry about which weights are trained. Errors USAGE. */
HR_MUST_CHECK hr_status hr_adapter_take(hr_reading *r, const hr_entry *entry, hr_meaning meaning);

/* Sets which weights are trained, with their dtype, and adds the findings. The model and the dtype
 * of its weights are set. Errors USAGE  no module has a given name. */
HR_MUST_CHECK hr_status hr_adapter_set(hr_reading *r);

/* The dtype of the adapters of settings with one; the base, the stage and the weights are set.
 * Pure. */
hr_audit_dtype hr_adapter_dtype(hr_audit_kind kind, const hr_audit_training *t);

/* fp16 where the file or the device asks for it, else bf16: how a patch loads a base. Pure. */
hr_audit_dtype hr_adapter_half(const hr_audit_training *t);

/* "bf16". Never null. */
const char *hr_audit_dtype_name(hr_audit_dtype dtype);

/* A number of bytes in words. Returns text. */
const char *hr_audit_size(double bytes, char text[HR_AUDIT_VALUE_BYTES]);

#endif
