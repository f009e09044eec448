/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/estimate.c - simulates a training step: forward, backward, update. The first run finds
 * the peak, the second lists what is live there. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "config/config.h"
#include "estimate/model.h"

enum { FP32 = 4, ID_BYTES = 8 };

#define MIB (INT64_C(1) << 20)

int64_t hr_estimate_bytes(const hr_config *config)
{
    const int64_t L = config->model.n_layers;
    const int64_t parts = 1 + HR_ADAPTER_PARTS;
    const int64_t layer = parts * HR_WEIGHTS_OF_LAYER * (int64_t)sizeof(hr_torch_parameter);
    enum { SPARE = 4096 };
    return hr_tape_bytes(L) + L * layer + SPARE;
}

/* ---- the update */

typedef struct {
    hr_tape *tape;
    const hr_estimate_settings *settings;
    double weight_decay;
    int64_t states, masters, gradients; /* bytes */
    int64_t previous, all, most;        /* bytes of temporaries */
} update;

static int64_t states_of(const hr_estimate_settings *s, const hr_torch_parameter *p)
{
    enum { BLOCK_8BIT = 256, SMALL = 4096 };
    const int64_t count = p->value.count;
    const int64_t width = s->states == HR_ESTIMATE_NONE ? p->value.width
                                                        : hr_torch_width(s->states);
    switch (s->optimizer) {
    case HR_ESTIMATE_SGD: return 0;
    case HR_ESTIMATE_MOMENTUM:
    case HR_ESTIMATE_LION: return count * width;
    case HR_ESTIMATE_ADAFACTOR:
        return p->columns > 0 ? (p->columns + count / p->columns) * width : count * width;
    case HR_ESTIMATE_ADAMW_8BIT:
    case HR_ESTIMATE_PAGED_ADAMW_8BIT: /* small tensors keep fp32 states */
        if (count < SMALL) return 2 * count * FP32;
        return 2 * (count + (count + BLOCK_8BIT - 1) / BLOCK_8BIT * FP32);
    default: return 2 * count * width;
    }
}

static bool has_masters(const hr_estimate_settings *s)
{
    return s->framework == HR_FRAMEWORK_DEEPSPEED_Z2 || s->framework == HR_FRAMEWORK_DEEPSPEED_Z3;
}

static void add_states(void *context, const hr_torch_parameter *p)
{
    update *u = context;
    hr_torch_parameter wide = *p;
    if (has_masters(u->settings)) {
        wide.value.width = FP32;
        u->masters += p->value.count * hr_torch_width(u->settings->masters);
        if (u->settings->masters == HR_ESTIMATE_FP32) u->gradients += p->value.count * FP32;
    }
    u->states += states_of(u->settings, &wide);
}

/* Adam makes sqrt(v) and the same divided; the last one lives until the next replaces it. */
static void add_temporaries(void *context, const hr_torch_parameter *p)
{
    update *u = context;
    const hr_estimate_settings *s = u->settings;
    const int64_t width = s->states == HR_ESTIMATE_NONE ? p->value.width
                                                        : hr_torch_width(s->states);
    const int64_t bytes = p->value.count * width;
    const bool adam = s->optimizer == HR_ESTIMATE_ADAMW;
    const bool plain = s->optimizer == HR_ESTIMATE_SGD || s->optimizer == HR_ESTIMATE_MOMENTUM;
    const bool factored = s->optimizer == HR_ESTIMATE_ADAFACTOR;
    const bool one = factored || (plain && u->weight_decay > 0) || s->optimizer == HR_ESTIMATE_LION;
    const int64_t now = adam ? 2 * bytes : one ? bytes : 0;
    const int64_t after = now ? bytes : 0;
    if (now + u->previous > u->most) u->most = now + u->previous;
    u->previous = after;
    u->all += after;
}

/* ZeRO 3 updates a group of weights at a time.
 *
 * Source   DeepSpeed, zero_optimization.sub_group_size: 1e9 elements by default. */
static int64_t gradients_at_a_time(const update *u)
{
    const int64_t group = INT64_C(1000000000) * FP32, own = u->gradients / u->settings->world;
    return u->settings->zero_stage == 3 ? hr_min(own, group) : own;
}

static void run_update(update *u, hr_estimate_model *model)
{
    const hr_estimate_settings *s = u->settings;
    u->previous = u->all = u->most = 0;
    hr_tape_burst(u->tape, "no temporaries", HR_ESTIMATE_TEMPORARIES, 0);
    if (has_masters(s)) {
        if (!s->offload_optimizer)
            hr_tape_burst(u->tape, "gradients in fp32", HR_ESTIMATE_TEMPORARIES,
                          gradients_at_a_time(u));
        return;
    }
    hr_estimate_parameters(model, add_temporaries, u);
    if (s->update == HR_ESTIMATE_UPDATE_FUSED || s->offload_optimizer) return;
    const bool together = s->update == HR_ESTIMATE_UPDATE_FOREACH && !s->in_backward;
    hr_tape_burst(u->tape, "temporaries of the optimizer", HR_ESTIMATE_TEMPORARIES,
                  (together ? u->all : u->most) / (s->zero_stage > 0 ? s->world : 1));
}

/* ---- a step */

/* With the states in host memory ZeRO 2 and 3 move gradients there bucket by bucket. An update in
 * the backward pass frees them as early.
 *
 * Source   DeepSpeed, estimate_zero3_model_states_mem_needs: with offloading the device keeps only
 *          what the largest layer needs. */
static bool moves_gradients(const hr_estimate_settings *s)
{
    return s->in_backward || (s->offload_optimizer && s->zero_stage >= 2);
}

/* What lives through the whole step. */
static void place_states(update *u, hr_estimate_model *model)
{
    const hr_estimate_settings *s = u->settings;
    const int64_t world = s->zero_stage > 0 ? s->world : 1;
    enum { BUCKET = 500000000, BUCKET_WIDTH = 2 };
    hr_estimate_parameters(model, add_states, u);
    if (!s->offload_optimizer) {
        hr_tape_keep(u->tape, "optimizer states", HR_ESTIMATE_STATES, u->states / world);
        hr_tape_keep(u->tape, "master weights", HR_ESTIMATE_MASTERS, u->masters / world);
    }
    if (s->zero_stage >= 2)
        hr_tape_keep(u->tape, "reduce bucket", HR_ESTIMATE_BUFFERS,
                     hr_min(BUCKET, model->trained) * BUCKET_WIDTH);
    if (moves_gradients(s))
        hr_tape_keep(u->tape, "gradients of the largest layer", HR_ESTIMATE_GRADIENTS,
                     hr_min(model->gathered, model->trained) * model->width_hidden);
    if (s->zero_stage == 3)
        hr_tape_keep(u->tape, "gathered weights of two layers", HR_ESTIMATE_BUFFERS,
                     2 * model->gathered * model->width_hidden);
    hr_tape_keep(u->tape, "token ids", HR_ESTIMATE_TEMPORARIES, model->B * model->T * ID_BYTES);
}

static hr_status beyond(hr_error *err)
{
    return hr_fail(err, HR_USAGE,
                   "the estimate is beyond what can be counted; use a smaller model, batch or "
                   "sequence");
}

static hr_status simulate(const hr_config *config, const hr_estimate_settings *s, hr_region region,
                          hr_tape *tape, int64_t snapshot, hr_estimate_answer *answer,
                          hr_error *err)
{
    enum { MICRO_MOST = 2, BLOCK = 512 };
    hr_estimate_model model;
    if (!hr_tape_open(tape, &region, config->model.n_layers))
        return hr_fail(err, HR_FAILURE, "the memory for an estimate is too small");
    tape->snapshot = snapshot;
    tape->reentrant = s->reentrant;
    tape->answer = answer;
    tape->rounding = s->device == HR_ESTIMATE_CUDA ? BLOCK : 1;
    tape->shares = s->zero_stage >= 2 ? s->world : 1;
    tape->to_host = moves_gradients(s);
    const hr_status status = hr_estimate_model_open(config, s, tape, &region, &model, err);
    if (status != HR_OK) return status;
    update u = { .tape = tape,
                 .settings = s,
                 .weight_decay = config->train.optimizer.weight_decay };
    place_states(&u, &model);
    for (int64_t i = 0; i < hr_min(s->accumulation, MICRO_MOST) && !tape->full; i++) {
        hr_value logits;
        tape->phase = HR_TAPE_FORWARD;
        const int32_t mark = hr_tape_enter(tape);
        const hr_value loss = hr_estimate_forward(&model, &logits);
        if (s->keeps_outputs) hr_tape_refer(tape, logits.storage);
        hr_tape_leave(tape, mark, loss);
        hr_tape_cache_end(tape, 0);
        tape->phase = HR_TAPE_BACKWARD;
        if (!tape->full) hr_tape_backward(tape, loss.node, FP32);
        if (s->keeps_outputs) hr_tape_release(tape, logits.storage);
        hr_tape_release(tape, model.mask);
        hr_tape_drop(tape, loss);
    }
    tape->phase = HR_TAPE_UPDATE;
    if (!tape->full) run_update(&u, &model);
    answer->parameters = model.parameters;
    answer->trained_parameters = model.trained;
    return tape->full ? beyond(err) : HR_OK;
}

/* ---- the range */

/* On a GPU the context of the driver and of the libraries is 0.3 to 0.9 GiB, and blocks that are
 * cached and do not fit the next request add up to a tenth. On the CPU the library takes 330 MiB
 * when it is imported; the peak of six measured processes was 407 to 538 MiB above their tensors
 * (docs/estimates.md). */
static void set_range(const hr_estimate_settings *s, hr_estimate_answer *answer)
{
    enum { ERROR = 20, FRAGMENTS = 10 };
    const bool cuda = s->device == HR_ESTIMATE_CUDA;
    const int64_t bytes = answer->tensor_bytes;
    answer->context_low_bytes = (cuda ? 300 : 350) * MIB;
    answer->context_high_bytes = (cuda ? 900 : 600) * MIB;
    answer->low_bytes = bytes - bytes / ERROR + answer->context_low_bytes;
    answer->high_bytes = bytes + bytes / ERROR + (cuda ? bytes / FRAGMENTS : 0) +
                         answer->context_high_bytes;
}

/* Whether the product of these sizes is beyond what the simulation counts. */
static bool is_beyond(const int64_t *sizes, int32_t count)
{
    int64_t product = 16; /* bytes of an element, and temporaries */
    for (int32_t i = 0; i < count; i++)
        if (!hr_checked_mul(product, hr_max(sizes[i], 1), &product)) return true;
    return false;
}

static bool is_too_large(const hr_config *config, const hr_estimate_settings *s)
{
    const int64_t D = config->model.d_model, head = hr_config_head_dim(config);
    const int64_t heads = hr_max(config->model.n_heads, 1), X = hr_config_expansion(config);
    const int64_t widest = hr_max(hr_max(3 * hr_max(D, heads * head), config->model.d_ff),
                                  hr_max(config->model.vocab_size, X));
    const int64_t scores[] = { s->batch, s->seq_len, s->seq_len, heads, head };
    const int64_t rows[] = { s->batch, s->seq_len, widest, config->model.n_layers };
    return is_beyond(scores, sizeof scores / sizeof *scores) ||
           is_beyond(rows, sizeof rows / sizeof *rows);
}

static hr_status check(const hr_config *config, const hr_estimate_settings *s, hr_error *err)
{
    if (config->train.adapter.kind == HR_ADAPTER_NPT)
        return hr_fail(err, HR_USAGE,
                       "train.adapter.kind npt: no software that is estimated has such layers; "
                       "train.adapter.kind=none --assume npt=materialized:%lld estimates those of "
                       "their document",
                       (long long)config->train.adapter.rank);
    if (config->model.trunk == HR_TRUNK_LIF)
        return hr_fail(err, HR_USAGE,
                       "model.trunk lif: no software that is estimated has such layers");
    if (config->model.attention.kind == HR_ATTENTION_NSA)
        return hr_fail(err, HR_USAGE,
                       "model.attention.kind nsa: what kernels of native sparse attention allocate "
                       "in a framework is not known; model.attention.kind=dense estimates dense "
                       "attention");
    if (s->optimizer == HR_ESTIMATE_UNKNOWN_OPTIMIZER)
        return hr_fail(err, HR_USAGE,
                       "optimizer: what muon allocates in a framework is not known; "
                       "--assume optimizer=adamw estimates AdamW");
    if (s->weights > HR_ESTIMATE_FP16)
        return hr_fail(err, HR_USAGE, "weights: trained weights are fp32, bf16 or fp16");
    if (s->autocast != HR_ESTIMATE_NONE && s->autocast != HR_ESTIMATE_BF16 &&
        s->autocast != HR_ESTIMATE_FP16)
        return hr_fail(err, HR_USAGE, "autocast: the dtypes are bf16, fp16 and none");
    if (s->base != HR_ESTIMATE_NONE && !s->lora_rank && !hr_config_freezes(config))
        return hr_fail(err, HR_USAGE,
                       "base: only frozen weights can have a dtype of their own; set lora too");
    if (s->lora_rank && !s->lora_targets[0])
        return hr_fail(err, HR_USAGE, "lora: name the modules, as 16:q_proj,v_proj");
    if (is_too_large(config, s)) return beyond(err);
    if (config->model.n_layers < 1) return hr_fail(err, HR_USAGE, "the model has no layers");
    return HR_OK;
}

/* A model is loaded in one dtype, and all of its weights have it, embeddings and norms too; with
 * LoRA none of them is trained. Only quantization is of the matrices of layers alone.
 *
 * Source   transformers, from_pretrained(dtype=); bitsandbytes quantizes linear layers but the
 *          output head. */
static hr_estimate_settings load_base(const hr_estimate_settings *settings)
{
    hr_estimate_settings s = *settings;
    const bool whole = s.base == HR_ESTIMATE_FP32 || s.base == HR_ESTIMATE_BF16 ||
                       s.base == HR_ESTIMATE_FP16;
    if (!s.lora_rank || !whole) return s;
    s.weights = s.base;
    s.base = HR_ESTIMATE_NONE;
    return s;
}

hr_status hr_estimate_make(const hr_config *config, const hr_estimate_settings *settings,
                           void *memory, int64_t bytes, hr_estimate_answer *answer, hr_error *err)
{
    const hr_estimate_settings loaded = load_base(settings);
    static const char *const phases[] = { "forward", "backward", "update" };
    hr_estimate_answer found = { .parameters = 0 };
    hr_tape tape;
    hr_status status = check(config, &loaded, err);
    if (status != HR_OK) return status;
    const hr_region region = hr_region_over(memory, bytes);
    status = simulate(config, &loaded, region, &tape, -1, &found, err);
    if (status != HR_OK) return status;
    const int64_t event = tape.peak_event;
    found.tensor_bytes = tape.peak;
    found.forward_bytes = tape.phase_peaks[HR_TAPE_FORWARD];
    found.backward_bytes = tape.phase_peaks[HR_TAPE_BACKWARD];
    found.update_bytes = tape.phase_peaks[HR_TAPE_UPDATE];
    memcpy(found.most, tape.most, sizeof found.most);
    snprintf(found.peak, sizeof found.peak, "%s, %s", phases[tape.peak_phase], tape.peak_label);
    status = simulate(config, &loaded, region, &tape, event, &found, err);
    if (status != HR_OK) return status;
    set_range(&loaded, &found);
    *answer = found;
    return HR_OK;
}
