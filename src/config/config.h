/* SPDX-License-Identifier: Apache-2.0 */
/* config/config.h - the settings of a run as plain values, and what follows from them. */
#ifndef HR_CONFIG_CONFIG_H
#define HR_CONFIG_CONFIG_H

#include "headroom/config.h"

/* The families: enumerator, name in model.family. A new one needs a line here, its file
 * model/<name>.c, and a line in the help of keys (cli/table.c); one that Hugging Face knows also a
 * row in hf/hf_table.c. */
#define HR_FAMILY_LIST(X) \
    X(NEEDLE, needle) \
    X(GPT_NEOX, gpt_neox) \
    X(LLAMA, llama) \
    X(GPT2, gpt2) \
    X(OPT, opt) \
    X(MISTRAL, mistral) \
    X(QWEN2, qwen2) \
    X(QWEN3, qwen3) \
    X(YXANUL, yxanul) \
    X(WIDE, wide) \
    X(GPT_NEO, gpt_neo)

#define HR_FAMILY_ID(id, name) HR_FAMILY_##id,
typedef enum { HR_FAMILY_LIST(HR_FAMILY_ID) HR_FAMILIES } hr_family;
#undef HR_FAMILY_ID

/* The optimizers: enumerator, name in train.optimizer.kind. A new one needs a line here and a row
 * in model/optimizer.c. */
#define HR_OPTIMIZER_LIST(X) \
    X(ADAM, adam) \
    X(ADAMW, adamw) \
    X(SGD, sgd) \
    X(LION, lion) \
    X(ADAFACTOR, adafactor) \
    X(MUON, muon)

#define HR_OPTIMIZER_ID(id, name) HR_OPTIMIZER_##id,
typedef enum { HR_OPTIMIZER_LIST(HR_OPTIMIZER_ID) HR_OPTIMIZERS } hr_optimizer_kind;
#undef HR_OPTIMIZER_ID

typedef enum { HR_TRUNK_GATED, HR_TRUNK_LIF } hr_trunk;

/* auto: the default of the family */
typedef enum { HR_TIE_AUTO, HR_TIE_FALSE, HR_TIE_TRUE } hr_tie;
typedef enum { HR_TOKENIZER_BYTES, HR_TOKENIZER_WORDS, HR_TOKENIZER_FILE } hr_tokenizer_kind;
typedef enum { HR_BAD_LINES_STOP, HR_BAD_LINES_SKIP } hr_bad_lines;
typedef enum { HR_BAD_STEPS_STOP, HR_BAD_STEPS_SKIP, HR_BAD_STEPS_REWIND } hr_bad_steps;
typedef enum { HR_DOCUMENTS_JOINED, HR_DOCUMENTS_SEPARATE } hr_documents_kind;
typedef enum {
    HR_RECOMPUTE_AUTO, /* norms; whole layers if nothing else fits */
    HR_RECOMPUTE_NONE,
    HR_RECOMPUTE_NORMS,
    HR_RECOMPUTE_LAYERS /* everything but the residual stream */
} hr_recompute_kind;
typedef enum {
    HR_ROPE_SCALING_NONE,
    HR_ROPE_SCALING_LINEAR,
    HR_ROPE_SCALING_LLAMA3,
    HR_ROPE_SCALING_YARN,
    HR_ROPE_SCALING_DYNAMIC
} hr_rope_scaling_choice;
typedef enum {
    HR_ATTENTION_DENSE,
    HR_ATTENTION_LOCAL,
    HR_ATTENTION_GLOBAL,
    HR_ATTENTION_MIXED
} hr_attention_choice;
typedef enum {
    HR_SCHEDULE_CONSTANT,
    HR_SCHEDULE_LINEAR,
    HR_SCHEDULE_COSINE,
    HR_SCHEDULE_WSD /* warm-up, stable, decay */
} hr_schedule_kind;

typedef enum { HR_SCHEDULE_STEPS, HR_SCHEDULE_TOKENS } hr_schedule_unit;

/* DENSE: as pattern and sliding_window say. NSA: native sparse attention. */
typedef enum { HR_ATTENTION_ALL, HR_ATTENTION_NSA } hr_attention_kind;

/* AUTO: the inputs of layers are in a file where that is faster or fits. */
typedef enum { HR_SPILL_NO, HR_SPILL_AUTO } hr_spill_choice;

/* How the optimizer's states are stored. AUTO: hr_plan_choose_states chooses (headroom/plan.h). */
typedef enum {
    HR_MOMENTS_FP32,
    HR_MOMENTS_BF16,
    HR_MOMENTS_INT8,
    HR_MOMENTS_AUTO
} hr_moments_format;

/* What trains beside a frozen model. */
typedef enum { HR_ADAPTER_NONE, HR_ADAPTER_LORA, HR_ADAPTER_NPT } hr_adapter_kind;

/* How the weights of an NPT layer are a function of the token (docs/npt.md). */
typedef enum { HR_NPT_DIAGONAL, HR_NPT_SINGLE, HR_NPT_DUAL, HR_NPT_TRIPLE } hr_npt_form;
typedef enum { HR_NPT_EQUIVALENCE, HR_NPT_DIRECT, HR_NPT_LM } hr_npt_objective;
typedef enum { HR_NPT_MSE, HR_NPT_COSINE } hr_npt_measure;

/* What a bf16 weight is updated from: an fp32 copy, itself and the 16 bits that it lacks of one, or
 * itself alone. */
typedef enum {
    HR_MASTERS_FP32,
    HR_MASTERS_RESIDUAL16,
    HR_MASTERS_RESIDUAL8,
    HR_MASTERS_NONE,
    HR_MASTERS_AUTO
} hr_masters_format;

enum { HR_CONFIG_GIVEN_WORDS = 4, HR_FIELD_BYTES = 64, HR_TOKEN_IDS_BYTES = 256 };
enum { HR_LAYER_TYPES_BYTES = 256, HR_TARGETS_BYTES = 512, HR_ADAPTER_GROUPS_BYTES = 256 };

/* train.adapter */
typedef struct hr_config_adapter {
    int32_t kind; /* hr_adapter_kind */
    int64_t rank;
    double alpha; /* of rank: an adapter is scaled by alpha / rank */
    double dropout;
    bool rslora;       /* by alpha / sqrt(rank) */
    bool dora;         /* the columns have trained lengths */
    int32_t form;      /* hr_npt_form; this and the next two are of NPT */
    int64_t triples;   /* outer products that add up */
    double scale;      /* of the diagonal form */
    int32_t objective; /* hr_npt_objective */
    int32_t measure;   /* hr_npt_measure of the first */
    double regularisation;
    char inputs
        [HR_FIELD_BYTES]; /* of layers in the first two: "teacher", "student"; empty: teacher */
    double factor;        /* of what they add; not a key */
    char targets[HR_TARGETS_BYTES];       /* modules and patterns (model/adapter.h) */
    char modules_to_save[HR_FIELD_BYTES]; /* that are trained whole, too */
    char layers[HR_FIELD_BYTES];          /* "0-3 8", "upper_half"; empty: all */
    char groups[HR_ADAPTER_GROUPS_BYTES]; /* other ranks and alphas of some targets */
    bool reports;                         /* what NPT does, in an evaluation; not a key */
    char switched[HR_FIELD_BYTES];        /* layers that use theirs; empty: all; not a key */
    char from[HR_PATH_BYTES];             /* folder to start from; empty: new adapters */
    const struct hr_config_adapter *next; /* added too: of generate and eval, not a key */
} hr_config_adapter;

struct hr_config {
    struct {
        char from[HR_PATH_BYTES]; /* folder of an existing model; empty: a new model */
        int32_t family;           /* hr_family */
        int64_t d_model, n_layers, n_heads, d_ff, vocab_size;
        int64_t n_kv_heads;     /* llama-like families; 0: n_heads */
        int64_t head_dim;       /* llama-like families; 0: d_model / n_heads */
        int64_t positions;      /* learned positions, or the trained range of RoPE; 0: seq_len */
        int64_t embedding_rank; /* yxanul: rank of the factorised embedding; 0: d_model / 4 */
        int64_t expansion;      /* wide: input width of the decoder; 0: 4 d_model */
        int64_t decoder_rank;   /* wide: rank of the factorised decoder; 0: one full matrix */
        int32_t trunk;          /* hr_trunk: the layers of wide */
        struct {
            int64_t block, winners, synapses; /* ops/lif/lif.h */
        } lif;
        int32_t tie_embeddings; /* hr_tie: the head shares the embedding table */
        int32_t weights;        /* hr_weights_choice: storage of frozen matrices of layers */
        double dropout;
        double norm_eps;
        double rotary_fraction; /* gpt_neox: fraction of each head with RoPE */
        double rope_theta;
        bool parallel_residual; /* gpt_neox */
        struct {
            int32_t kind; /* hr_rope_scaling_choice */
            double factor, low_freq_factor, high_freq_factor;
            int64_t original_positions;                    /* context length before scaling */
            double beta_fast, beta_slow, attention_factor; /* yarn; 0: from the factor */
        } rope_scaling;                                    /* llama */
        struct {
            int32_t pattern;                        /* hr_attention_choice */
            int64_t window, stride, block;          /* stride 0: the default of the pattern */
            int32_t kind;                           /* hr_attention_kind */
            int64_t sliding_window;                 /* llama-like: tokens; 0: none */
            char layer_types[HR_LAYER_TYPES_BYTES]; /* layers with the window; empty: all */
            struct {
                char branches[HR_FIELD_BYTES]; /* "compressed, selected, window" */
                int64_t compress_block, compress_stride, compress_hidden; /* 0: head_dim */
                int64_t select_block, select_count, select_first, select_local, window;
                bool own_keys; /* of each branch */
            } nsa;             /* sizes in tokens; counts of blocks */
        } attention;
    } model;
    struct {
        char train[HR_PATH_BYTES], valid[HR_PATH_BYTES]; /* see docs/corpora.md */
        char text_field[HR_FIELD_BYTES];                 /* JSON lines: field of the text, or ... */
        char prompt_field[HR_FIELD_BYTES], completion_field[HR_FIELD_BYTES];
        char document_end[HR_FIELD_BYTES]; /* id between documents, "auto" or "none" */
        int32_t bad_lines;                 /* hr_bad_lines */
        int32_t documents;                 /* hr_documents_kind */
        char tokenizer[HR_PATH_BYTES];     /* "bytes", "words", or a path */
        int64_t words_max;                 /* largest number of distinct words to count */
        char cache[HR_PATH_BYTES];         /* directory of token shards; empty: in train.out */
        /* safetensors with the batch of every step; empty: none */
        char fixed_batch[HR_PATH_BYTES];
    } data;
    struct {
        int32_t dtype; /* hr_format */
        int64_t batch; /* sequences per update */
        int64_t seq_len;
        int64_t steps; /* updates; 0: from `epochs` */
        int64_t epochs;
        int64_t seed;
        int64_t threads;              /* 0: from CPU affinity and cgroup quota */
        int64_t eval_every;           /* steps; 0: only at the end */
        int64_t eval_batches;         /* micro-batches per evaluation; 0: all of data.valid */
        int64_t checkpoint_every;     /* steps; 0: only at the end */
        int64_t keep_last;            /* number of checkpoints */
        int64_t keep_every;           /* steps; 0: off */
        bool keep_best;               /* keep the checkpoint of the lowest validation loss */
        int64_t patience;             /* evaluations without improvement; 0: unlimited */
        int64_t max_seconds;          /* 0: unlimited */
        double ema_decay;             /* decay of the weight average; 0: no average */
        int32_t bad_steps;            /* hr_bad_steps */
        int64_t bad_steps_max;        /* per run */
        bool detect_spikes;           /* treat loss spikes as bad steps */
        int64_t sample_every;         /* steps; 0: only at the end */
        int64_t sample_tokens;        /* 0: no sample */
        double sample_temperature;    /* 0: greedy */
        double z_loss;                /* weight of mean(logsumexp^2) in the loss */
        char stages[HR_STAGES_BYTES]; /* headroom/stages.h; empty: none */
        char freeze[HR_PATH_BYTES];   /* name patterns (model/rules.h) of frozen parameters */
        /* name patterns with their own learning rate and weight decay */
        char param_groups[HR_PATH_BYTES];
        char out[HR_PATH_BYTES]; /* output directory; empty: write nothing */
        char kernels[16];        /* auto, or the highest instruction set: ref, avx2 ... */
        struct {
            int32_t kind; /* hr_optimizer_kind */
            double lr, beta1, beta2, eps, weight_decay;
            double clip; /* largest gradient norm; 0: no clipping */
            struct {
                double eps1, eps2, clip_threshold, decay_rate;
                double beta1; /* 0: no first moment */
                bool scale_parameter, relative_step;
            } adafactor;
            struct {
                double momentum;
                bool nesterov;
                int64_t steps; /* of the iteration that makes an update orthogonal */
                int32_t scale; /* match_rms, original */
            } muon;
        } optimizer;
        hr_config_adapter adapter;
        struct {
            int32_t master;  /* hr_masters_format */
            int32_t moments; /* hr_moments_format */
        } state;
        struct {
            int32_t kind; /* hr_schedule_kind */
            int64_t warmup_steps;
            int64_t warmup_tokens; /* 0: none */
            int32_t unit;          /* hr_schedule_unit in which the decay counts */
            double final_fraction; /* of lr, at the end of the schedule */
            double decay_fraction; /* wsd: fraction of the steps in the final decay */
        } schedule;
    } train;
    struct {
        int64_t budget;               /* memory limit of the whole process in bytes; 0: none */
        int64_t micro_batch;          /* sequences; 0: auto */
        int64_t loss_chunk;           /* tokens; 0: auto */
        int32_t recompute;            /* hr_recompute_kind */
        char strategy[HR_PATH_BYTES]; /* file that sets the three above; empty: none */
        bool recompute_again;         /* once more for the backward pass of each block */
        bool product_norm;            /* gradient norm without gradients: ops/product_norm */
        int32_t moments;              /* hr_place of the optimizer's states */
        int32_t weights;              /* hr_place of the frozen weights of model.from */
        int32_t spill;                /* hr_spill_choice: whether layer inputs may be in a file */
        char allow[HR_FIELD_BYTES];   /* formats that AUTO of train.state may choose */
        int64_t file_budget;          /* limit of the file for them in bytes; 0: none */
        char file_dir[HR_PATH_BYTES]; /* directory of that file; empty: train.out */
    } memory;
    /* Begin, end and padding token ids for other software: lines copied from config.json of
     * model.from. Not a key: headroom uses the ids of the tokenizer. */
    char token_ids[HR_TOKEN_IDS_BYTES];
    /* The format of the weights of model.from by its config.json; hr_config_adopt sets it. Not a
     * key. */
    int32_t stored_weights;
    /* The stage of a run that this is a recipe for, set by hr_config_at_stage; count 0: it is for a
     * whole run. Not keys. */
    struct {
        int32_t index, count;
        int64_t longest;        /* the largest train.seq_len of a stage */
        int64_t batch, seq_len; /* of the recipe: what an evaluation counts batches of */
        int32_t freeze_bytes;   /* of train.freeze, what the recipe freezes in all stages */
        uint32_t sets; /* keys that a stage of the run sets (config/stages.c); also of one alone */
    } stage;
    /* Bit i: key i was set after hr_config_default. hr_config_adopt uses it. */
    uint64_t given[HR_CONFIG_GIVEN_WORDS];
    /* Bit i: hr_config_read was the last to set key i. */
    uint64_t from_recipe[HR_CONFIG_GIVEN_WORDS];
    /* Bit i: old key name i (hr_config_renamed) was used after hr_config_default. */
    uint64_t old_names;
};

/* Sets the keys of a config whose values differ between two others to those of the second. */
void hr_config_copy_changes(hr_config *config, const hr_config *before, const hr_config *after);

/* Whether a config is one of a stage, and a stage of its run sets this key: then what the recipe or
 * the command line says of it does not count there, but for train.freeze, which adds. Pure. */
bool hr_config_stage_sets(const hr_config *config, const char *key);

/* Whether a key was set after hr_config_default; the second: and stands beside the value of another
 * key, which the command line may set over a recipe with both. The third: whether its value is not
 * its default. Pure. */
bool hr_config_is_given(const hr_config *config, const char *key);
bool hr_config_is_given_beside(const hr_config *config, const char *other, const char *key);
bool hr_config_is_changed(const hr_config *config, const char *key);

/* Head width, and number of key-value heads. Pure. */
int64_t hr_config_head_dim(const hr_config *config);
int64_t hr_config_kv_heads(const hr_config *config);

/* For patterns with global blocks: distance in blocks from one global block to the next. Pure. */
int64_t hr_config_attention_stride(const hr_config *config);

/* Number of positions, learned or rotated, and rank of the factorised embedding. Pure. */
int64_t hr_config_positions(const hr_config *config);
int64_t hr_config_embedding_rank(const hr_config *config);

/* Storage of frozen matrices of layers. Without a folder, auto is compute, and so is bf16 where
 * products are bf16. Pure. */
hr_weights_choice hr_config_weights(const hr_config *config);

/* What the file of a run holds: "moments", "layer inputs" (memory.spill) or both. */
const char *hr_config_file_holds(const hr_config *config);

/* Whether some weights do not train: by train.freeze, or with adapters. */
bool hr_config_freezes(const hr_config *config);

/* Input width of the decoder of the `wide` family. Pure. */
int64_t hr_config_expansion(const hr_config *config);

/* Kind of tokenizer that data.tokenizer names. Pure. */
hr_tokenizer_kind hr_config_tokenizer(const hr_config *config);

/* Values of data.document_end other than an id. */
enum { HR_DOCUMENT_END_NONE = -1, HR_DOCUMENT_END_AUTO = -2 };

/* Parses data.document_end into an id or one of these; false: invalid. Pure. */
bool hr_config_document_end(const hr_config *config, int64_t *id);

/* The data of a run: texts, or safetensors files with rows of tokens (data.fixed_batch, and every
 * name that ends in .safetensors). Empty: none. */
typedef struct {
    const char *train_text, *train_rows; /* at most one of the two */
    const char *valid_text, *valid_rows;
} hr_config_data;

/* The result points into `config`. Pure. */
hr_config_data hr_config_data_of(const hr_config *config);

/* Whether updates read the norm of the gradient: it limits them, or its overflow with a scaled loss
 * skips them. Pure. */
static inline bool hr_config_needs_norm(const hr_config *config)
{
    return config->train.optimizer.clip > 0 || config->train.dtype == HR_FORMAT_FP16;
}

#endif
