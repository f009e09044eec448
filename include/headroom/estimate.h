/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/estimate.h - what a training step of the same model takes in another framework.
 *
 * An estimate, never a plan: nothing allocates the answer, and the framework is free to do
 * otherwise. It simulates one training step of the PyTorch implementation of the family operation
 * by operation: what autograd keeps, in which order it is freed, and what the optimizer adds. Every
 * assumption is a field of hr_estimate_settings, has a name, and can be changed. */
#ifndef HEADROOM_ESTIMATE_H
#define HEADROOM_ESTIMATE_H

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    HR_FRAMEWORK_PYTORCH, /* a loop of one's own around the model of transformers */
    HR_FRAMEWORK_HF_TRAINER,
    HR_FRAMEWORK_TRL,
    HR_FRAMEWORK_AXOLOTL,
    HR_FRAMEWORK_DEEPSPEED_Z2,
    HR_FRAMEWORK_DEEPSPEED_Z3,
    HR_FRAMEWORKS
} hr_framework;

/* Element types. Q4: four bits and a scale per block; I8: one byte. */
typedef enum {
    HR_ESTIMATE_FP32,
    HR_ESTIMATE_BF16,
    HR_ESTIMATE_FP16,
    HR_ESTIMATE_I8,
    HR_ESTIMATE_NF4,
    HR_ESTIMATE_NONE
} hr_estimate_dtype;

typedef enum { HR_ESTIMATE_CPU, HR_ESTIMATE_CUDA } hr_estimate_device;

typedef enum {
    HR_ESTIMATE_UNKNOWN_OPTIMIZER = -1, /* refused */
    HR_ESTIMATE_ADAMW,
    HR_ESTIMATE_ADAMW_8BIT,
    HR_ESTIMATE_PAGED_ADAMW_8BIT, /* states may move to the host when the device is full */
    HR_ESTIMATE_SGD,              /* without momentum: no state */
    HR_ESTIMATE_MOMENTUM,
    HR_ESTIMATE_LION,
    HR_ESTIMATE_ADAFACTOR
} hr_estimate_optimizer;

/* How the optimizer walks through the parameters. LOOP: one after another; FOREACH: all at once,
 * with temporaries of all; FUSED: one kernel, no temporaries. */
typedef enum {
    HR_ESTIMATE_UPDATE_LOOP,
    HR_ESTIMATE_UPDATE_FOREACH,
    HR_ESTIMATE_UPDATE_FUSED
} hr_estimate_update;

/* SDPA: a fused kernel that keeps its inputs, its output and a sum per row; with dropout on the CPU
 * the library itself falls back to products that keep [B, H, T, T]. EAGER: separate operations.
 * BROADCAST: products of [B, H, T, 1, D] and [B, H, 1, T, D] that are kept as [B, H, T, T, D]. */
typedef enum { HR_ESTIMATE_SDPA, HR_ESTIMATE_EAGER, HR_ESTIMATE_BROADCAST } hr_estimate_attention;

/* WHOLE: all logits at once. LOOP: in chunks, which autograd keeps all the same. CHUNKED: in chunks
 * that are computed again in the backward pass. FUSED: a kernel that computes the gradient of a
 * chunk in the forward pass and keeps no logits. */
typedef enum {
    HR_ESTIMATE_LOSS_WHOLE,
    HR_ESTIMATE_LOSS_LOOP,
    HR_ESTIMATE_LOSS_CHUNKED,
    HR_ESTIMATE_LOSS_FUSED
} hr_estimate_loss;

enum { HR_ESTIMATE_TARGETS_BYTES = 512 };

/* Everything that moves memory in the framework and is not a key of the model. */
typedef struct hr_estimate_settings {
    int32_t framework;  /* hr_framework */
    int32_t device;     /* hr_estimate_device */
    int32_t weights;    /* hr_estimate_dtype of the trained weights, as loaded */
    int32_t autocast;   /* hr_estimate_dtype of products under autocast; NONE: no autocast */
    int32_t base;       /* with LoRA, dtype of the frozen weights of layers; NONE: `weights` */
    int64_t base_block; /* NF4: weights per scale */
    bool double_quant;  /* NF4: the scales are stored in 8 bits */
    bool checkpointing; /* each layer keeps its input alone */
    bool reentrant;     /* checkpointing computes a layer again to its end */
    int32_t optimizer;  /* hr_estimate_optimizer */
    int32_t states;     /* hr_estimate_dtype of the states; NONE: that of the parameter */
    int32_t masters;   /* hr_estimate_dtype of the masters that DeepSpeed keeps; fp32: the gradients
                         * are copied to fp32 for the update */
    int32_t update;    /* hr_estimate_update */
    int32_t attention; /* hr_estimate_attention */
    int32_t loss;      /* hr_estimate_loss */
    int64_t loss_chunk; /* tokens; for LOOP, CHUNKED and FUSED */
    bool loss_upcast;   /* logits are copied to fp32 before the loss */
    bool loss_fp32;     /* log-softmax and its gradient are fp32 */
    bool cache;         /* the forward pass fills a cache of keys and values */
    bool keeps_outputs; /* the loop holds the logits through the backward pass */
    int64_t lora_rank;  /* 0: no LoRA */
    int32_t lora_dtype; /* hr_estimate_dtype of adapters */
    double lora_dropout;
    bool lora_dora;
    /* Modules, "q_proj,v_proj", or "all-linear"; "recipe": all keys of train.adapter apply. */
    char lora_targets[HR_ESTIMATE_TARGETS_BYTES];
    char lora_saved[HR_ESTIMATE_TARGETS_BYTES]; /* modules with a trained copy of the whole */
    int32_t lora_saved_dtype;                   /* hr_estimate_dtype of these copies */
    int32_t zero_stage;                         /* 0 to 3 */
    int64_t world;                              /* processes that share the states */
    bool offload_optimizer, offload_weights;    /* to the host: they are not on the device */
    bool in_backward;     /* each gradient is freed after its update, in the backward pass */
    int64_t batch;        /* sequences per update and process */
    int64_t accumulation; /* micro-batches per update */
    int64_t seq_len;
    int64_t npt_rank;   /* materialized changes of weights per token; 0: none */
    int64_t npt_layers; /* layers that have them; 0: all */
} hr_estimate_settings;

/* What the bytes of a component are. */
typedef enum {
    HR_ESTIMATE_WEIGHTS,
    HR_ESTIMATE_COPIES, /* of weights in the dtype of autocast, or dequantized */
    HR_ESTIMATE_GRADIENTS,
    HR_ESTIMATE_STATES,
    HR_ESTIMATE_MASTERS,
    HR_ESTIMATE_ACTIVATIONS, /* kept for the backward pass, without the next three */
    HR_ESTIMATE_SCORES,      /* of attention: [B, H, T, T] and larger */
    HR_ESTIMATE_LOGITS,      /* and copies of them */
    HR_ESTIMATE_LOG_SOFTMAX,
    HR_ESTIMATE_LOSS_GRADIENTS,  /* of log-softmax and of the logits */
    HR_ESTIMATE_WEIGHT_CHANGES,  /* one change of a weight per token */
    HR_ESTIMATE_OTHER_GRADIENTS, /* of activations */
    HR_ESTIMATE_TEMPORARIES,
    HR_ESTIMATE_BUFFERS, /* of communication */
    HR_ESTIMATE_COMPONENTS
} hr_estimate_component;

enum { HR_ESTIMATE_NAME_BYTES = 96, HR_ESTIMATE_TENSORS_MOST = 12 };

/* Tensors of one name that are live at the peak, all layers together. */
typedef struct {
    char name[HR_ESTIMATE_NAME_BYTES];
    int32_t component; /* hr_estimate_component */
    int64_t count, bytes;
    int64_t each; /* bytes of each one; 0: they differ */
} hr_estimate_tensors;

typedef struct hr_estimate_answer {
    int64_t parameters, trained_parameters;
    int64_t tensor_bytes; /* of all live tensors at the peak */
    /* The process or device: with rounding, fragmentation and the context of the library. */
    int64_t low_bytes, high_bytes;
    int64_t context_low_bytes, context_high_bytes;
    char peak[HR_ESTIMATE_NAME_BYTES]; /* "backward, log-softmax" */
    /* Largest sum of live tensors in each part of a step. */
    int64_t forward_bytes, backward_bytes, update_bytes;
    int64_t components[HR_ESTIMATE_COMPONENTS]; /* at the peak; they sum to tensor_bytes */
    int64_t most[HR_ESTIMATE_COMPONENTS];       /* each at its own largest */
    hr_estimate_tensors tensors[HR_ESTIMATE_TENSORS_MOST]; /* largest at the peak, in order */
    int32_t tensor_count;
} hr_estimate_answer;

/* The framework of a name such as "hf-trainer". Errors USAGE  unknown: lists the names. */
HR_MUST_CHECK hr_status hr_estimate_framework(const char *name, int32_t *framework, hr_error *err);

/* Names of a framework and of a component. Never null. */
const char *hr_estimate_framework_name(int32_t framework);
const char *hr_estimate_component_name(int32_t component);

/* What the framework does with the same recipe: its defaults, and the values of the keys that both
 * have. Pure. */
void hr_estimate_settings_of(const hr_config *config, int32_t framework,
                             hr_estimate_settings *settings);

/* Elements of the adapters that hr_estimate_make adds for these modules; 0: none has such a name.
 * The config has passed hr_config_check_model. Pure. */
int64_t hr_estimate_adapter_parameters(const hr_config *config, int64_t rank, const char *targets);

/* Changes the device, and what PyTorch does by default on it: on a GPU its optimizers update all
 * parameters at once. Pure. */
void hr_estimate_move(hr_estimate_settings *settings, hr_estimate_device device);

/* One assumption: its name, value and meaning. */
typedef struct {
    const char *name, *takes, *text;
} hr_estimate_assumption;

/* Row `index` of the table of assumptions, null past its end. Pure. */
const hr_estimate_assumption *hr_estimate_assumption_at(int32_t index);

/* Writes the value of an assumption in a form that hr_estimate_assume accepts. */
enum { HR_ESTIMATE_VALUE_BYTES = HR_ESTIMATE_TARGETS_BYTES + 24 };
const char *hr_estimate_value(const hr_estimate_settings *settings, int32_t index,
                              char text[HR_ESTIMATE_VALUE_BYTES]);

/* Changes one assumption: "attention=eager". Errors USAGE  unknown name or value. */
HR_MUST_CHECK hr_status hr_estimate_assume(hr_estimate_settings *settings, const char *word,
                                           hr_error *err);

/* Bytes of memory that hr_estimate_make needs for a config. Pure. */
int64_t hr_estimate_bytes(const hr_config *config);

/* Estimates a training step. The config has passed hr_config_check.
 *
 *   memory  [bytes] for the simulation
 *
 * Errors   USAGE  the framework has no such combination, sizes beyond 2^62.
 * Threads  any. */
HR_MUST_CHECK hr_status hr_estimate_make(const hr_config *config,
                                         const hr_estimate_settings *settings, void *memory,
                                         int64_t bytes, hr_estimate_answer *answer, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
