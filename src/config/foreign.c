/* SPDX-License-Identifier: Apache-2.0 */
/* config/foreign.c - the table of keys of other trainers.
 *
 * Names of transformers, TRL, PEFT, axolotl, LLaMA-Factory, torchtune, DeepSpeed, Lightning,
 * Megatron-LM, nanoGPT, and of scripts that people write themselves. A name that means different
 * things in different programs has a remark that says which key is meant here. */
#include "headroom/foreign.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
/* The same meaning; with a remark; other values; a value computed from the given; no key. */
#define SAME(key, names) { names, key, NULL, NULL, "" }
#define NOTE(key, remark, names) { names, key, NULL, NULL, remark }
#define MAP(key, values, remark, names) { names, key, values, NULL, remark }
#define FORM(key, form, remark, names) { names, key, NULL, form, remark }
#define NONE(remark, names) { names, NULL, NULL, NULL, remark }
/* clang-format on */

#define FP16 \
    "fp16 keeps fp32 weights and scales the loss; bf16 needs no scaling, and is faster here"
#define DTYPE FP16 "; fp8 arithmetic is not supported"
#define DTYPES \
    "bf16=bf16 bfloat16=bf16 torch.bfloat16=bf16 bf16-mixed=bf16 bf16-true=bf16 fp16=fp16 " \
    "float16=fp16 torch.float16=fp16 16-mixed=fp16 16=fp16 fp8=bf16 true=bf16 fp32=fp32 " \
    "float32=fp32 " \
    "torch.float32=fp32 32=fp32 32-true=fp32 no=fp32 false=fp32"
#define ACCUMULATION "train.batch counts the sequences of one update, over all its micro-batches"
#define PER_DEVICE "train.batch counts the sequences of one update; memory.micro_batch divides it"
#define CHECKPOINTING "auto recomputes only as much as the budget requires"
#define TARGETS "modules such as q_proj, patterns of their names, or all-linear"
#define ADAPTER_GROUPS "groups of modules with rank= or alpha=: down_proj rank=8; k_proj rank=4"
#define NPT_LAYERS "all, upper_half, lower_half, or layers and ranges of them: 0-3 8"
#define SECTIONS "the sections are model, data, train and memory"
#define MOMENTS_FORMAT "train.state.moments=int8 stores its moments in 8 bits"
#define EIGHT_BIT_OPTIMIZERS \
    "adamw_bnb_8bit=adamw adamw_8bit=adamw paged_adamw_8bit=adamw lion_8bit=lion " \
    "paged_lion_8bit=lion"
#define EIGHT_BIT_STATES "8-bit codes in blocks of 256 elements"
#define EIGHT_BIT EIGHT_BIT_STATES "; model.weights=f8_e4m3 is for frozen layers"
#define EIGHT_BIT_WEIGHTS "for frozen layers; train.state.moments=int8 is for optimizer states"
#define FOUR_BIT "for frozen layers; 4-bit weights are not supported yet"
#define FROZEN_AWAY "frozen weights under adapters can stay in their files"
#define SPILL \
    "inputs of layers can be in a file until backward; memory.recompute recomputes the rest"
#define MOMENTS "training runs in the memory of the CPU; optimizer moments can be in a file instead"
#define ONE_PROCESS "one process trains, on the CPU; training on several machines is not supported"
#define ON_CPU "training runs on the CPU; headroom plan --device NAME plans for other machines"
#define ATTENTION "attention never stores the scores, so there is nothing to choose"
#define WIDE "wide: input width of the output head"
#define NSA "model.attention.kind=nsa is native sparse attention"
#define PACKING "documents always fill whole windows; separate masks attention across documents"
#define PRESETS "presets are models of known sizes (headroom presets lists them)"
#define MODEL_FOLDER "a folder with config.json and safetensors"
#define RESUME "the same command with the same --out resumes"
#define CURRICULUM \
    "a list of {at_step, seq_len, batch, lr_scale, clip}; micro_batch is batch / accumulation " \
    "steps"
#define BATCH_RAMP "{batch: 32..512 over 100000 steps by 32}"
#define LENGTH_RAMP "{seq_len: 64..1024 over 20000 steps by doubling}"
#define LOGGED "runs with --out log every step, also for TensorBoard"
#define SHARE_OF_STEPS "a number of steps, not a share"
#define EVALUATION "an evaluation has the micro-batches of training"
#define SAMPLES "train.steps counts updates"
#define SCHEDULES "there are constant, linear, cosine and wsd"
#define KINDS_OF_SCHEDULE \
    "constant=constant constant_with_warmup=constant linear=linear cosine=cosine " \
    "one_cycle=cosine warmup_stable_decay=wsd WSD=wsd wsd=wsd"
#define TO_ZERO "train.schedule.final_fraction=0 decays to 0, as transformers does"
#define POLYNOMIAL "a polynomial of power 1 is linear; " TO_ZERO
#define ONE_DROPOUT "one probability, of attention and of both branches of a layer"
#define NO_DROPOUT "the embedding has no dropout; model.dropout is that of the layers"
#define BY_FAMILY "model.family decides it (headroom help keys describes each)"
#define SHARDING \
    "one process trains, so nothing is sharded; headroom plan --as deepspeed-z2 or deepspeed-z3 " \
    "estimates DeepSpeed"
#define STEPS_ONLY "in steps: train.eval_every, train.checkpoint_every"
#define LOADER "training reads tokenized files; train.threads is the number of CPU threads"
#define EXPERTS "mixtures of experts are not supported yet"
#define MICRO "train.batch is this x accumulation steps"
#define ROPE_KINDS \
    "linear=linear llama3=llama3 yarn=yarn dynamic=dynamic default=none none=none null=none"
#define ROPE "longrope is not supported; a section: kind, factor"
#define RELEASE "the planner releases gradients where that is needed; memory.strategy sets it"
#define COMPLETIONS "the field of the prompt, whose tokens have no loss"

/* clang-format off */
static const hr_foreign_row rows[] = {
    SAME("model.d_model",
        "hidden_size n_embd embedding_dim embed_dim emb_dim model_dim embedding_size dim n_embed"),
    SAME("model.n_layers",
        "num_hidden_layers num_layers n_layer num_blocks depth num_decoder_layers"),
    SAME("model.n_heads", "num_attention_heads num_heads n_head nhead"),
    SAME("model.n_kv_heads",
        "num_key_value_heads num_kv_heads num_query_groups n_kv_head n_query_groups"),
    SAME("model.d_ff",
        "intermediate_size ffn_dim ffn_hidden_size n_inner mlp_dim dim_feedforward "
        "mlp_hidden_size"),
    SAME("model.vocab_size", "padded_vocab_size vocabulary_size num_embeddings n_vocab"),
    SAME("model.positions", "max_position_embeddings n_positions n_ctx"),
    SAME("model.head_dim", "kv_channels head_size dim_head"),
    NOTE("model.d_model", "the width of the MLP is model.d_ff", "hidden_dim"),
    NOTE("model.expansion", WIDE, "output_dim broca_output_dim decoder_dim"),
    SAME("model.norm_eps",
        "layer_norm_eps layer_norm_epsilon rms_norm_eps norm_epsilon layernorm_epsilon"),
    SAME("model.rotary_fraction",
        "rotary_pct rotary_percent rotary_percentage partial_rotary_factor"),
    SAME("model.rope_theta", "rope_base rotary_emb_base rotary_base"),
    MAP("model.rope_scaling.kind", ROPE_KINDS, ROPE,
        "rope_scaling rope_type rope_scaling_type rope_scaling.type"),
    SAME("model.rope_scaling.factor", "rope_scaling_factor"),
    SAME("model.rope_scaling.original_positions", "original_max_position_embeddings"),
    SAME("model.dropout", "resid_pdrop hidden_dropout dropout_rate dropout_prob"),
    NOTE("model.dropout", ONE_DROPOUT, "attention_dropout attn_dropout attn_pdrop"),
    NONE(NO_DROPOUT, "embd_pdrop embedding_dropout"),
    NONE(BY_FAMILY,
        "hidden_act hidden_activation activation_function activation swiglu attention_bias "
        "mlp_bias bias add_bias_linear normalization norm_type position_embedding_type qk_norm "
        "initializer_range init_method_std"),
    NONE(EXPERTS, "num_experts num_local_experts n_routed_experts moe"),
    NONE("training keeps no cache of keys and values", "use_cache"),
    NONE("no code of a model folder is run", "trust_remote_code"),
    SAME("model.tie_embeddings",
        "tie_word_embeddings weight_tying tied_embeddings tie_weights share_embeddings"),
    MAP("model.tie_embeddings", "true=false false=true", "",
        "untie_embeddings_and_output_weights untie_embeddings"),
    SAME("model.family", "model_type architecture"),
    NONE(PRESETS, "model_size model_name model_id"),
    NOTE("model.from", MODEL_FOLDER,
        "model_name_or_path pretrained_model_name_or_path base_model model_path init_from "
        "initial_checkpoint_dir"),
    MAP("train.state.moments", "true=int8 false=fp32", EIGHT_BIT, "use_8bit"),
    MAP("model.weights", "true=f8_e4m3 false=compute", EIGHT_BIT_WEIGHTS,
        "model.use_8bit load_in_8bit"),
    MAP("model.weights", "true=f8_e4m3 false=compute", FOUR_BIT, "load_in_4bit"),
    MAP("model.weights", "8=f8_e4m3 4=f8_e4m3", FOUR_BIT, "quantization_bit"),
    MAP("model.weights", "bnb.int8=f8_e4m3 bnb.nf4=f8_e4m3 bnb.fp4=f8_e4m3", FOUR_BIT, "quantize"),
    MAP("train.state.moments", "true=int8 false=fp32", EIGHT_BIT_STATES,
        "optimizer.use_8bit optimizer_8bit use_8bit_adam use_8bit_optimizer adam8bit adam_8bit"),
    MAP("model.attention.pattern", "true=local false=dense", "",
        "sparse use_sparse_attention sparse_attention"),
    SAME("model.attention.pattern", "sparse_pattern attention_pattern"),
    MAP("model.attention.pattern",
        "dense=dense full=dense causal=dense local=local sparse=local global=global mixed=mixed",
        NSA, "attention_type"),
    NONE(ATTENTION, "attn_implementation flash_attention flash_attn use_flash_attention"),
    SAME("model.attention.block", "sparse_block_size"),
    SAME("model.attention.sliding_window", "attention_window"),
    NOTE("model.attention.sliding_window", "in tokens; model.attention.window counts blocks",
        "window_size"),
    SAME("train.adapter.rank", "lora_rank lora_r modulation_rank np_rank"),
    SAME("train.adapter.alpha", "lora_alpha"),
    SAME("train.adapter.dropout", "lora_dropout"),
    NOTE("train.adapter.targets", TARGETS,
        "lora_target_modules target_modules lora_target lora_attn_modules"),
    NOTE("train.adapter.layers", "layers and ranges of them: 0-3 8", "layers_to_transform"),
    NOTE("train.adapter.modules_to_save", "names of modules: lm_head", "modules_to_save"),
    NOTE("train.adapter.groups", ADAPTER_GROUPS, "rank_pattern alpha_pattern"),
    MAP("train.adapter.targets", "true=all-linear", TARGETS,
        "lora_target_linear apply_lora_to_mlp"),
    MAP("train.adapter.rslora", "true=true false=false", "", "use_rslora"),
    MAP("train.adapter.dora", "true=true false=false", "", "use_dora"),
    MAP("train.adapter.kind", "true=lora false=none", "", "use_lora lora"),
    MAP("train.adapter.kind", "true=lora false=none lora=lora", "", "peft"),
    MAP("train.adapter.kind", "lora=lora qlora=lora", "", "adapter"),
    MAP("train.adapter.kind", "lora=lora full=none", "", "finetuning_type"),
    NOTE("train.adapter.layers", NPT_LAYERS, "convert_layers layers_to_convert"),
    NOTE("train.adapter.layers", "one layer: train.adapter.layers=15", "single_layer_mode"),
    SAME("data.train",
        "dataset dataset_name dataset_path data_path train_data train_file train_path data_dir "
        "train_data_path corpus training_file datasets"),
    SAME("data.valid",
        "valid_data_path val_data_path valid_data val_data eval_data validation_file eval_file"),
    NOTE("data.valid", "a file, or a share of data.train such as 5%",
        "val_set_size validation_split"),
    SAME("data.tokenizer",
        "tokenizer_name tokenizer_path tokenizer_file tokenizer_name_or_path tokenizer_model "
        "tokenizer_type vocab_file"),
    SAME("data.text_field", "text_column dataset_text_field text_key"),
    SAME("data.document_end", "eos_token_id"),
    MAP("data.prompt_field", "", COMPLETIONS, "completion_only_loss train_on_inputs mask_prompt"),
    MAP("data.documents", "", PACKING, "packing sample_packing packed"),
    MAP("train.dtype", "true=bf16 false=fp32", "", "bf16"),
    MAP("train.dtype", "true=fp16 false=fp32", FP16, "fp16 half"),
    MAP("train.dtype", "true=bf16 false=fp32",
        "bf16 keeps fp32 master weights; train.state.moments=bf16 stores the moments in bf16",
        "pure_bf16"),
    MAP("train.dtype", DTYPES, DTYPE, "mixed_precision precision dtype torch_dtype"),
    NONE("tf32 changes no bytes; train.dtype is fp32, bf16 or fp16", "tf32 allow_tf32"),
    NONE("fp16 begins at 65,536, halves it at an overflow and doubles it after 2,000 good steps",
        "loss_scale initial_scale_power loss_scale_window hysteresis min_loss_scale "
        "growth_factor backoff_factor growth_interval grad_scaler"),
    NONE("fp8 arithmetic is not supported yet; train.dtype=bf16 is the smallest", "use_fp8 fp8"),
    SAME("train.batch",
        "batch_size global_batch_size train_batch_size total_batch_size gbs batchsize bs"),
    FORM("train.batch", "{} x accumulation steps", PER_DEVICE,
        "per_device_train_batch_size device_batch_size local_batch_size"),
    NOTE("memory.micro_batch", MICRO,
        "micro_batch_size train_micro_batch_size_per_gpu microbatch_size mbs"),
    MAP("memory.micro_batch", "true=auto", "", "auto_find_batch_size"),
    NONE(EVALUATION, "per_device_eval_batch_size eval_batch_size"),
    SAME("train.seq_len",
        "seq_length sequence_length sequence_len max_seq_length max_sequence_length max_seq_len "
        "max_length context_length context_len max_len context_size block_size cutoff_len "
        "model_max_length context"),
    SAME("train.steps",
        "max_steps max_iters train_iters total_steps num_steps max_train_steps num_iterations "
        "iters iterations n_steps num_training_steps training_steps"),
    FORM("train.steps", "{} / train.batch", SAMPLES, "train_samples num_samples"),
    FORM("train.steps", "{} / (train.batch x train.seq_len)", "",
        "max_tokens total_tokens train_tokens"),
    SAME("train.epochs", "num_epochs num_train_epochs max_epochs n_epochs"),
    SAME("train.seed", "random_seed manual_seed data_seed"),
    SAME("train.threads", "num_threads n_threads omp_num_threads"),
    SAME("train.eval_every", "eval_interval eval_steps"),
    SAME("train.eval_batches", "eval_iters"),
    SAME("train.checkpoint_every", "save_every save_steps save_interval checkpoint_interval"),
    NONE(STEPS_ONLY, "eval_strategy evaluation_strategy save_strategy"),
    SAME("train.keep_last", "save_total_limit"),
    SAME("train.keep_best", "load_best_model_at_end save_best"),
    SAME("train.patience", "early_stopping_patience"),
    SAME("train.ema_decay", "ema ema_beta"),
    SAME("train.z_loss", "z_loss_weight"),
    MAP("train.freeze", "", "patterns of parameter names, such as *.attn.*", "freeze_base"),
    MAP("train.freeze", "", "patterns of parameter names, such as layers.0.*", "freeze_layers"),
    SAME("train.out", "output_dir out_dir save_dir checkpoint_dir output_path save"),
    NONE(RESUME, "load resume resume_from_checkpoint"),
    MAP("train.stages", "", CURRICULUM, "curriculum curriculum_stages"),
    MAP("train.stages", "", BATCH_RAMP, "rampup_batch_size"),
    MAP("train.stages", "", LENGTH_RAMP, "curriculum_learning seq_length_warmup"),
    NONE(LOGGED,
        "logging_steps log_interval report_to wandb_project wandb_log use_wandb logging_dir"),
    MAP("train.optimizer.kind",
        "adamw_torch=adamw adamw_torch_fused=adamw adamw_hf=adamw adamw=adamw adam=adam sgd=sgd "
        "AdamW=adamw Adam=adam SGD=sgd lion=lion lion_32bit=lion adafactor=adafactor "
        "Adafactor=adafactor muon=muon Muon=muon " EIGHT_BIT_OPTIMIZERS, MOMENTS_FORMAT,
        "optim optimizer"),
    SAME("train.optimizer.kind", "optimizer_type optimizer_name"),
    SAME("train.optimizer.lr", "learning_rate base_lr max_lr peak_lr"),
    SAME("train.optimizer.beta1", "adam_beta1 momentum"),
    SAME("train.optimizer.beta2", "adam_beta2"),
    MAP("train.optimizer.kind", "true=adafactor", "", "adafactor"),
    SAME("train.optimizer.adafactor.scale_parameter", "scale_parameter"),
    SAME("train.optimizer.adafactor.relative_step", "relative_step"),
    SAME("train.optimizer.adafactor.clip_threshold", "clip_threshold"),
    SAME("train.optimizer.adafactor.decay_rate", "decay_rate"),
    NOTE("train.schedule.warmup_steps", "the learning rate rises in these steps", "warmup_init"),
    MAP("train.optimizer.beta1", "", "the second is train.optimizer.beta2", "betas"),
    SAME("train.optimizer.eps", "adam_epsilon adam_eps"),
    SAME("train.optimizer.weight_decay", "wd"),
    SAME("train.optimizer.clip",
        "max_grad_norm clip_grad clip_grad_norm grad_clip gradient_clipping clip_norm "
        "gradient_clip_val max_norm gradient_clip"),
    MAP("train.schedule.kind", KINDS_OF_SCHEDULE " polynomial=linear", POLYNOMIAL,
        "lr_scheduler_type lr_scheduler"),
    MAP("train.schedule.kind", KINDS_OF_SCHEDULE, SCHEDULES,
        "lr_decay_style scheduler lr_schedule"),
    MAP("train.schedule.kind", "true=cosine false=constant", "", "decay_lr"),
    NONE("the learning rate decays until train.steps", "lr_decay_iters lr_decay_steps"),
    NONE(SCHEDULES, "power lr_scheduler_kwargs"),
    SAME("train.schedule.warmup_steps",
        "warmup_iters num_warmup_steps lr_warmup_iters lr_warmup_steps warmup"),
    FORM("train.schedule.warmup_steps", "{} / train.batch", SAMPLES, "lr_warmup_samples"),
    FORM("train.schedule.warmup_steps", "{} x train.steps", SHARE_OF_STEPS,
        "lr_warmup_fraction warmup_fraction warmup_ratio"),
    FORM("train.schedule.final_fraction", "{} / train.optimizer.lr", "", "min_lr"),
    SAME("train.schedule.final_fraction", "min_lr_ratio"),
    FORM("memory.micro_batch", "train.batch / {}", ACCUMULATION,
        "gradient_accumulation_steps accumulation_steps grad_accum_steps "
        "grad_accumulation_steps gradient_accumulation accumulate_grad_batches accumulation"),
    NOTE("memory.loss_chunk", "tokens per chunk of logits and loss", "chunk_size"),
    SAME("memory.loss_chunk", "loss_chunk_size logits_chunk logits_chunk_size"),
    MAP("memory.loss_chunk", "true=auto", "",
        "chunk_loss chunked_loss chunked_cross_entropy use_liger_kernel enable_liger_kernel"),
    FORM("memory.loss_chunk", "train.batch x train.seq_len / {}",
        "tokens per chunk of logits and loss",
        "num_output_chunks chunked_cross_entropy_num_chunks"),
    NONE(RELEASE, "optimizer_in_bwd gradient_release"),
    MAP("memory.recompute", "full=layers selective=auto", CHECKPOINTING, "recompute_granularity"),
    MAP("memory.recompute", "true=auto false=none", CHECKPOINTING, "recompute_activations"),
    MAP("memory.recompute", "true=layers false=none", CHECKPOINTING,
        "activation_recompute gradient_checkpointing activation_checkpointing "
        "enable_activation_checkpointing grad_checkpoint use_checkpoint checkpoint_activations"),
    MAP("memory.recompute", "true=layers unsloth=layers false=none", CHECKPOINTING,
        "use_gradient_checkpointing"),
    MAP("memory.recompute", "true=none false=layers", CHECKPOINTING,
        "disable_gradient_checkpointing"),
    NONE("layers are recomputed in one way; nothing to choose",
        "gradient_checkpointing_kwargs use_reentrant"),
    MAP("memory.spill", "true=auto false=no", SPILL, "enable_activation_offloading"),
    MAP("memory.moments", "true=file false=host", MOMENTS,
        "use_cpu_offload cpu_offload offload_optimizer"),
    MAP("memory.moments", "true=file cpu=file nvme=file false=host none=host", MOMENTS,
        "offload optimizer_offload"),
    MAP("memory.moments", "cpu=file nvme=file none=host", MOMENTS, "offload_optimizer_device"),
    MAP("memory.weights", "cpu=file nvme=file none=resident", FROZEN_AWAY, "offload_param_device"),
    MAP("memory.weights", "true=file cpu=file nvme=file false=resident none=resident", FROZEN_AWAY,
        "offload_param"),
    SAME("memory.budget", "memory_limit max_memory gpu_memory vram"),
    NONE(SECTIONS, "training trainer training_args training_arguments hyperparameters"),
    NONE(ON_CPU, "device device_map accelerator use_gpu use_cuda gpus no_cuda"),
    NONE(ONE_PROCESS,
        "num_gpus world_size devices nproc_per_node local_rank ddp backend tensor_parallel_size "
        "sequence_parallel tensor_model_parallel_size pipeline_model_parallel_size "
        "context_parallel_size"),
    NONE(SHARDING,
        "fsdp deepspeed zero_stage zero_optimization use_fsdp use_deepspeed "
        "distributed_strategy zero_optimization.stage use_distributed_optimizer"),
    NONE("every run is compiled to a plan, so there is nothing to switch on",
        "compile torch_compile"),
    NONE(LOADER, "num_workers dataloader_num_workers dataloader_pin_memory"),
    NONE("documents fill whole windows, so there is no padding", "group_by_length"),
    NONE("noise on embeddings is not supported", "neftune_noise_alpha"),
    NONE("label smoothing is not supported", "label_smoothing label_smoothing_factor"),
};
/* clang-format on */

enum { ROW_COUNT = sizeof rows / sizeof *rows, NAME_BYTES = 64 };

const hr_foreign_row *hr_foreign_at(int32_t index)
{
    return index >= 0 && index < ROW_COUNT ? &rows[index] : NULL;
}

static bool has_name(const char *names, const char *word, size_t length)
{
    while (*names) {
        const size_t bytes = strcspn(names, " ");
        if (bytes == length && !strncmp(names, word, length)) return true;
        names += bytes + strspn(names + bytes, " ");
    }
    return false;
}

static const hr_foreign_row *find_word(const char *word)
{
    const size_t length = strlen(word);
    for (int32_t i = 0; i < ROW_COUNT; i++)
        if (has_name(rows[i].names, word, length)) return &rows[i];
    return NULL;
}

/* Copies a name in the form of the table. Returns false if it is longer than any there. */
static bool copy_word(const char *name, char word[NAME_BYTES])
{
    size_t length = 0;
    name += strspn(name, "-");
    if (strlen(name) >= NAME_BYTES) return false;
    for (; name[length]; length++)
        word[length] = (char)(name[length] == '-' ? '_' : tolower((unsigned char)name[length]));
    word[length] = 0;
    return true;
}

/* A name with its section, such as optimizer.use_8bit, comes before the name alone. */
const hr_foreign_row *hr_foreign_find(const char *name)
{
    char word[NAME_BYTES];
    const char *dot = strrchr(name, '.'), *section = dot;
    while (section && section > name && section[-1] != '.') section--;
    const hr_foreign_row *row = section && copy_word(section, word) ? find_word(word) : NULL;
    if (row) return row;
    return copy_word(dot ? dot + 1 : name, word) ? find_word(word) : NULL;
}

/* Finds "word=" among pairs separated by blanks, and copies what follows. */
static bool find_pair(const char *pairs, const char *word, char text[HR_FOREIGN_VALUE_BYTES])
{
    const size_t length = strlen(word);
    for (const char *at = pairs; *at; at += strspn(at, " ")) {
        const size_t bytes = strcspn(at, " ");
        if (bytes > length && !strncmp(at, word, length) && at[length] == '=') {
            snprintf(text, HR_FOREIGN_VALUE_BYTES, "%.*s", (int)(bytes - length - 1),
                     at + length + 1);
            return true;
        }
        at += bytes;
    }
    return false;
}

/* The words that programs accept for true and false. */
static const char *truth_of(const char *value)
{
    static const char *const words[][2] = {
        { "", "true" },   { "True", "true" },   { "yes", "true" },    { "on", "true" },
        { "1", "true" },  { "False", "false" }, { "no", "false" },    { "off", "false" },
        { "0", "false" }, { "TRUE", "true" },   { "FALSE", "false" },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(value, words[i][0])) return words[i][1];
    return value;
}

bool hr_foreign_value(const hr_foreign_row *row, const char *value,
                      char text[HR_FOREIGN_VALUE_BYTES])
{
    *text = 0;
    if (!row->key) return false;
    if (row->values)
        return find_pair(row->values, value, text) || find_pair(row->values, truth_of(value), text);
    if (!*value || strlen(value) >= HR_FOREIGN_VALUE_BYTES / 2) return false;
    const char *given = row->form ? strstr(row->form, "{}") : NULL;
    char *end;
    if (given && (!(strtod(value, &end) > 0) || *end)) return false; /* a form computes with it */
    if (!given) snprintf(text, HR_FOREIGN_VALUE_BYTES, "%s", value);
    else
        snprintf(text, HR_FOREIGN_VALUE_BYTES, "%.*s%s%s", (int)(given - row->form), row->form,
                 value, given + 2);
    return true;
}
