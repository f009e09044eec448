/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/audit.h - reads what others state about memory, and does the arithmetic again.
 *
 * The file is a list of claims, a Markdown document, a recipe, or the training configuration of
 * another program. Nothing of it is run, and no key of it is dropped without a word. docs/audit.md
 * has the formats. */
#ifndef HEADROOM_AUDIT_H
#define HEADROOM_AUDIT_H

#include "headroom/config.h"
#include "headroom/estimate.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HR_AUDIT_FILE_BYTES = 1048576, /* limit of a file */
    HR_AUDIT_CLAIMS_MOST = 512,
    HR_AUDIT_UNREAD_MOST = 512,
    HR_AUDIT_WORD_BYTES = 96,
    HR_AUDIT_VALUE_BYTES = 96,
    HR_AUDIT_LINE_BYTES = 200,
    HR_AUDIT_SENTENCE_BYTES = 320
};

/* What a file is: enumerator, word of --kind, words for people. */
#define HR_AUDIT_KIND_LIST(X) \
    X(AUTO, "auto", "detected") \
    X(CLAIMS, "claims", "claims file") \
    X(MARKDOWN, "markdown", "text") \
    X(RECIPE, "recipe", "recipe") \
    X(HF, "hf", "Hugging Face Trainer") \
    X(TRL, "trl", "TRL") \
    X(AXOLOTL, "axolotl", "axolotl") \
    X(LLAMA_FACTORY, "llama-factory", "LLaMA-Factory") \
    X(TORCHTUNE, "torchtune", "torchtune") \
    X(DEEPSPEED, "deepspeed", "DeepSpeed") \
    X(MLX, "mlx-lm", "mlx-lm")

#define HR_AUDIT_KIND_ID(id, word, text) HR_AUDIT_##id,
typedef enum { HR_AUDIT_KIND_LIST(HR_AUDIT_KIND_ID) HR_AUDIT_KINDS } hr_audit_kind;
#undef HR_AUDIT_KIND_ID

/* The word of --kind, and the words for people. Pure. */
const char *hr_audit_kind_word(hr_audit_kind kind);
const char *hr_audit_kind_text(hr_audit_kind kind);

typedef enum { HR_AUDIT_PLAIN, HR_AUDIT_BYTES, HR_AUDIT_SECONDS } hr_audit_dimension;

typedef enum {
    HR_VERDICT_TRUE,
    HR_VERDICT_UNIT, /* the digits are right in another unit: "37.09 GB" that are GiB */
    HR_VERDICT_WRONG
} hr_audit_verdict;

/* A claim and what is true. */
typedef struct {
    int64_t line;
    hr_audit_verdict verdict;
    char stated[HR_AUDIT_WORD_BYTES];       /* "37.09 GB" */
    char formula[HR_AUDIT_LINE_BYTES];      /* "logits(T=131072, V=151936, dtype=bf16)" */
    char where[HR_AUDIT_WORD_BYTES];        /* the source that the file names; may be empty */
    char right[HR_AUDIT_VALUE_BYTES];       /* the right value, in words */
    char sentence[HR_AUDIT_SENTENCE_BYTES]; /* the verdict */
    hr_audit_dimension dimension;
    double stated_value, right_value; /* in bytes, seconds or units */
    int64_t right_whole;              /* right_value as a whole number; -1: it is none */
} hr_audit_claim;

/* A line that looks like a claim and was not checked. */
typedef struct {
    int64_t line;
    char text[HR_AUDIT_LINE_BYTES];
    char why[HR_AUDIT_WORD_BYTES];
} hr_audit_unread;

/* ---- training files of other programs */

enum {
    HR_AUDIT_KEYS_MOST = 4096,
    HR_AUDIT_FINDINGS_MOST = 48,
    HR_AUDIT_TARGETS_BYTES = 256,
    HR_AUDIT_KEY_BYTES = 96
};

/* READ: it sets the plan or the estimate. NO_EFFECT: on neither memory nor mathematics of a
 * training step. UNREAD: nothing here knows it. */
typedef enum { HR_AUDIT_READ, HR_AUDIT_NO_EFFECT, HR_AUDIT_UNREAD } hr_audit_key_state;

enum { HR_AUDIT_KEY_STATES = HR_AUDIT_UNREAD + 1 };

typedef struct {
    int64_t line;
    hr_audit_key_state state;
    char key[HR_AUDIT_KEY_BYTES];
    char value[64];
    char ours[48]; /* the key of headroom; empty: there is none */
    char near[48]; /* of a key that is not read: one that is and looks the same; may be empty */
} hr_audit_key;

/* A sentence about the file: a trap, or a value that the file leaves open and what was taken. */
typedef struct {
    int64_t line; /* 0: of no line */
    bool decides; /* it is about bytes that the estimate does not have: then the verdict is open */
    char text[HR_AUDIT_SENTENCE_BYTES];
} hr_audit_finding;

typedef enum {
    HR_AUDIT_FP32,
    HR_AUDIT_BF16,
    HR_AUDIT_FP16,
    HR_AUDIT_INT8,
    HR_AUDIT_NF4,
    HR_AUDIT_UNSET
} hr_audit_dtype;

typedef enum {
    HR_AUDIT_ADAMW,
    HR_AUDIT_ADAMW_8BIT,
    HR_AUDIT_PAGED_ADAMW_8BIT,
    HR_AUDIT_SGD,
    HR_AUDIT_LION,
    HR_AUDIT_ADAFACTOR
} hr_audit_optimizer;

/* WHOLE: all logits at once. LOOP: in chunks that autograd keeps. CHUNKED: in chunks that are
 * computed again. FUSED: a kernel that keeps no logits. */
typedef enum {
    HR_AUDIT_LOSS_WHOLE,
    HR_AUDIT_LOSS_LOOP,
    HR_AUDIT_LOSS_CHUNKED,
    HR_AUDIT_LOSS_FUSED
} hr_audit_loss;

/* What a training file says, with the defaults of its program filled in. */
typedef struct {
    char model[HR_AUDIT_KEY_BYTES]; /* as the file names it */
    int64_t parameters;
    hr_audit_dtype published; /* dtype of the published weights */
    hr_audit_dtype weights;   /* of the weights that are trained, or of the frozen base */
    hr_audit_dtype autocast;  /* UNSET: none */
    hr_audit_dtype base;      /* INT8 or NF4: the quantized base of an adapter; else UNSET */
    hr_audit_dtype adapters;  /* dtype of adapters */
    hr_audit_dtype saved;     /* dtype of the copies of lora_saved */
    hr_audit_dtype frozen;    /* dtype of frozen layers without adapters; UNSET: none are frozen */
    bool double_quant;        /* NF4: the scales are stored in 8 bits */
    bool checkpointing, packing, in_backward, preference, reference;
    bool single; /* preference training with one row for each example, not two (KTO) */
    hr_audit_loss loss;
    hr_audit_optimizer optimizer;
    int64_t micro_batch, accumulation, world, seq_len;
    int64_t lora_rank; /* 0: all weights are trained */
    double lora_alpha, lora_dropout;
    char lora_targets[HR_AUDIT_TARGETS_BYTES]; /* "q_proj,v_proj", or "all-linear" */
    char lora_saved[HR_AUDIT_TARGETS_BYTES];   /* modules that are trained whole beside adapters */
    int64_t adapter_parameters;
    int64_t zero_stage;
    bool deepspeed;                 /* DeepSpeed shards, not FSDP */
    bool half_masters, half_states; /* of DeepSpeed: in bf16, not in fp32 */
    bool offload_optimizer, offload_weights;
    bool lacks_bf16;   /* the device has no bf16 */
    bool eager;        /* attention as separate operations, with its weights in memory */
    bool fused_update; /* the optimizer updates each weight in one kernel */
} hr_audit_training;

typedef struct hr_audit_report {
    hr_audit_kind kind;
    bool is_json; /* the file is JSON, not YAML */
    int32_t key_count, keys_left_out, finding_count, findings_left_out;
    int32_t doubt_count; /* keys that are not read, and findings that decide: with any, unknown */
    hr_audit_key keys[HR_AUDIT_KEYS_MOST];
    hr_audit_finding findings[HR_AUDIT_FINDINGS_MOST];
    hr_audit_training training;
    hr_config *config; /* what headroom would train: checked; for hr_config_free */
    int32_t claim_count, unread_count;
    int32_t claims_left_out, unread_left_out; /* beyond the limits; still counted in the verdict */
    int32_t verdicts[3];                      /* how many, by hr_audit_verdict */
    hr_audit_claim claims[HR_AUDIT_CLAIMS_MOST];
    hr_audit_unread unread[HR_AUDIT_UNREAD_MOST];
} hr_audit_report;

typedef struct {
    size_t size;        /* of this struct */
    hr_audit_kind kind; /* HR_AUDIT_AUTO: by its content */
    const char *model;  /* instead of the file's: a published model, a recipe or a folder; null */
    /* Texts of recipes with names of their own, such as presets; null: `model` or the path is a
     * file. */
    const char *model_recipe, *recipe;
    int64_t world;             /* processes that train; 0: one, or as the file says */
    int64_t seq_len;           /* tokens of a sequence, whatever the file says; 0: as it says */
    const char *checkpointing; /* "on" or "off": of activations; null: as the file says */
    bool lacks_bf16;           /* the device of the training has no bf16 */
    void *memory;              /* [memory_bytes] scratch, at least HR_AUDIT_MEMORY_BYTES */
    int64_t memory_bytes;
} hr_audit_request;

enum { HR_AUDIT_MEMORY_BYTES = 8 * HR_AUDIT_FILE_BYTES };

/* Rows of a sequence each that one example has: two for a preference pair. Pure. */
int64_t hr_audit_rows(const hr_audit_training *training);

/* Reads the file and checks its claims.
 *
 *   report  out; its config is for hr_config_free, also after an error
 *
 * Errors   USAGE  missing or unreadable; longer than HR_AUDIT_FILE_BYTES; a pickle; content that
 *                 belongs to no kind; an expression with an unknown unit, name or dimension: with
 *                 the line and the nearest name.
 * Threads  any. */
HR_MUST_CHECK hr_status hr_audit_file(const char *path, const hr_audit_request *request,
                                      hr_audit_report *report, hr_error *err);

/* ---- the estimate for the file's own program */

enum { HR_AUDIT_PATCHES_MOST = 16, HR_AUDIT_PATCH_BYTES = 1536 };

/* A change in the file's own keys. */
typedef struct {
    char lines[HR_AUDIT_PATCH_BYTES]; /* as they stand in the file, separated by line ends */
    char file[HR_AUDIT_KEY_BYTES];    /* the DeepSpeed file that has them; empty: the file itself */
    char price[HR_AUDIT_WORD_BYTES];  /* what it costs */
    int64_t low_bytes, high_bytes;    /* estimate with this change alone */
    bool fits;                        /* high_bytes are within the budget */
    bool needed;                      /* part of the patch */
} hr_audit_change;

/* Why a program does not train with the formats of a file. NO_BF16: it asks for bf16, which the
 * device lacks. FP16_WEIGHTS: the scaler of fp16 refuses gradients of weights in fp16. */
typedef enum {
    HR_AUDIT_TRAINS,
    HR_AUDIT_REFUSED_NO_BF16,
    HR_AUDIT_REFUSED_FP16_WEIGHTS
} hr_audit_refusal;

typedef struct {
    hr_estimate_answer now;   /* of the file as it is */
    int64_t budget_bytes;     /* 0: none, then there are no changes */
    bool fits;                /* now.high_bytes are within the budget */
    bool may_fit;             /* now.low_bytes are, and now.high_bytes are not */
    hr_audit_refusal refusal; /* the program does not train so: then it does not fit either */
    /* Changes in the order of their price, up to the first with which it fits. The patch is the
     * part of them that is needed; if all of them together do not fit, it is all of them. */
    int32_t change_count, needed_count;
    hr_audit_change changes[HR_AUDIT_PATCHES_MOST];
    bool patch_fits;
    int64_t patch_low_bytes, patch_high_bytes; /* with the patch */
} hr_audit_estimate;

/* Estimates what the program of a training file takes on one device, and with changes that take
 * less, cheapest first, until one fits.
 *
 *   report  of a training file of another program
 *   memory  [bytes] for the simulation, hr_estimate_bytes of report->config
 *
 * Errors   USAGE  the estimate has no such combination. */
HR_MUST_CHECK hr_status hr_audit_estimate_make(const hr_audit_report *report, int64_t budget_bytes,
                                               void *memory, int64_t bytes,
                                               hr_audit_estimate *answer, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
