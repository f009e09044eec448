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

/* The same meaning; other values; no key. */
#define SAME(name, key) \
    { \
        name, key, NULL, NULL, "" \
    }
#define NOTE(name, key, remark) \
    { \
        name, key, NULL, NULL, remark \
    }
#define MAP(name, key, values, remark) \
    { \
        name, key, values, NULL, remark \
    }
#define FORM(name, key, form, remark) \
    { \
        name, key, NULL, form, remark \
    }
#define NONE(name, remark) \
    { \
        name, NULL, NULL, NULL, remark \
    }

#define FP16 "fp16 and fp8 arithmetic are not supported, and bf16 needs no loss scaling"
#define DTYPES \
    "bf16=bf16 bfloat16=bf16 torch.bfloat16=bf16 bf16-mixed=bf16 bf16-true=bf16 fp16=bf16 " \
    "float16=bf16 torch.float16=bf16 16-mixed=bf16 16=bf16 fp8=bf16 true=bf16 fp32=fp32 " \
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
#define MOMENTS "training runs in the memory of the CPU; optimizer moments can be in a file instead"
#define ONE_PROCESS "one process trains, on the CPU; training on several machines is not supported"
#define ON_CPU "training runs on the CPU; headroom plan --device NAME plans for other machines"
#define ATTENTION "attention never stores the scores, so there is nothing to choose"
#define WIDE "wide: input width of the output head"
#define NSA "native sparse attention (nsa) is not supported yet"
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
    SAME("hidden_size", "model.d_model"), SAME("n_embd", "model.d_model"),
    SAME("embedding_dim", "model.d_model"), SAME("embed_dim", "model.d_model"),
    SAME("emb_dim", "model.d_model"), SAME("model_dim", "model.d_model"),
    SAME("embedding_size", "model.d_model"), SAME("dim", "model.d_model"),
    SAME("num_hidden_layers", "model.n_layers"), SAME("num_layers", "model.n_layers"),
    SAME("n_layer", "model.n_layers"), SAME("num_blocks", "model.n_layers"),
    SAME("num_attention_heads", "model.n_heads"), SAME("num_heads", "model.n_heads"),
    SAME("n_head", "model.n_heads"), SAME("nhead", "model.n_heads"),
    SAME("num_key_value_heads", "model.n_kv_heads"), SAME("num_kv_heads", "model.n_kv_heads"),
    SAME("num_query_groups", "model.n_kv_heads"),
    SAME("intermediate_size", "model.d_ff"), SAME("ffn_dim", "model.d_ff"),
    SAME("ffn_hidden_size", "model.d_ff"), SAME("n_inner", "model.d_ff"),
    SAME("mlp_dim", "model.d_ff"), SAME("dim_feedforward", "model.d_ff"),
    SAME("padded_vocab_size", "model.vocab_size"), SAME("vocabulary_size", "model.vocab_size"),
    SAME("num_embeddings", "model.vocab_size"),
    SAME("max_position_embeddings", "model.positions"), SAME("n_positions", "model.positions"),
    SAME("n_ctx", "model.positions"),
    SAME("kv_channels", "model.head_dim"), SAME("head_size", "model.head_dim"),
    SAME("dim_head", "model.head_dim"),
    NOTE("hidden_dim", "model.d_model", "the width of the MLP is model.d_ff"),
    SAME("n_embed", "model.d_model"), SAME("n_kv_head", "model.n_kv_heads"),
    SAME("n_query_groups", "model.n_kv_heads"), SAME("mlp_hidden_size", "model.d_ff"),
    SAME("depth", "model.n_layers"), SAME("num_decoder_layers", "model.n_layers"),
    SAME("n_vocab", "model.vocab_size"),
    NOTE("output_dim", "model.expansion", WIDE), NOTE("broca_output_dim", "model.expansion", WIDE),
    NOTE("decoder_dim", "model.expansion", WIDE),
    SAME("layer_norm_eps", "model.norm_eps"), SAME("layer_norm_epsilon", "model.norm_eps"),
    SAME("rms_norm_eps", "model.norm_eps"),
    SAME("norm_epsilon", "model.norm_eps"), SAME("layernorm_epsilon", "model.norm_eps"),
    SAME("rotary_pct", "model.rotary_fraction"), SAME("rotary_percent", "model.rotary_fraction"),
    SAME("rotary_percentage", "model.rotary_fraction"),
    SAME("partial_rotary_factor", "model.rotary_fraction"),
    SAME("rope_base", "model.rope_theta"), SAME("rotary_emb_base", "model.rope_theta"),
    SAME("rotary_base", "model.rope_theta"),
    MAP("rope_scaling", "model.rope_scaling.kind", ROPE_KINDS, ROPE),
    MAP("rope_type", "model.rope_scaling.kind", ROPE_KINDS, ROPE),
    MAP("rope_scaling_type", "model.rope_scaling.kind", ROPE_KINDS, ROPE),
    MAP("rope_scaling.type", "model.rope_scaling.kind", ROPE_KINDS, ROPE),
    SAME("rope_scaling_factor", "model.rope_scaling.factor"),
    SAME("original_max_position_embeddings", "model.rope_scaling.original_positions"),
    SAME("resid_pdrop", "model.dropout"), SAME("hidden_dropout", "model.dropout"),
    SAME("dropout_rate", "model.dropout"), SAME("dropout_prob", "model.dropout"),
    NOTE("attention_dropout", "model.dropout", ONE_DROPOUT),
    NOTE("attn_dropout", "model.dropout", ONE_DROPOUT),
    NOTE("attn_pdrop", "model.dropout", ONE_DROPOUT),
    NONE("embd_pdrop", NO_DROPOUT), NONE("embedding_dropout", NO_DROPOUT),
    NONE("hidden_act", BY_FAMILY), NONE("hidden_activation", BY_FAMILY),
    NONE("activation_function", BY_FAMILY), NONE("activation", BY_FAMILY),
    NONE("swiglu", BY_FAMILY), NONE("attention_bias", BY_FAMILY), NONE("mlp_bias", BY_FAMILY),
    NONE("bias", BY_FAMILY), NONE("add_bias_linear", BY_FAMILY),
    NONE("normalization", BY_FAMILY), NONE("norm_type", BY_FAMILY),
    NONE("position_embedding_type", BY_FAMILY), NONE("qk_norm", BY_FAMILY),
    NONE("initializer_range", BY_FAMILY), NONE("init_method_std", BY_FAMILY),
    NONE("num_experts", EXPERTS), NONE("num_local_experts", EXPERTS),
    NONE("n_routed_experts", EXPERTS), NONE("moe", EXPERTS),
    NONE("use_cache", "training keeps no cache of keys and values"),
    NONE("trust_remote_code", "no code of a model folder is run"),
    SAME("tie_word_embeddings", "model.tie_embeddings"),
    SAME("weight_tying", "model.tie_embeddings"), SAME("tied_embeddings", "model.tie_embeddings"),
    SAME("tie_weights", "model.tie_embeddings"), SAME("share_embeddings", "model.tie_embeddings"),
    MAP("untie_embeddings_and_output_weights", "model.tie_embeddings", "true=false false=true", ""),
    MAP("untie_embeddings", "model.tie_embeddings", "true=false false=true", ""),
    SAME("model_type", "model.family"), SAME("architecture", "model.family"),
    NONE("model_size", PRESETS),
    NOTE("model_name_or_path", "model.from", MODEL_FOLDER),
    NOTE("pretrained_model_name_or_path", "model.from", MODEL_FOLDER),
    NOTE("base_model", "model.from", MODEL_FOLDER), NOTE("model_path", "model.from", MODEL_FOLDER),
    NOTE("init_from", "model.from", MODEL_FOLDER),
    NOTE("initial_checkpoint_dir", "model.from", MODEL_FOLDER),
    NONE("model_name", PRESETS), NONE("model_id", PRESETS),
    MAP("use_8bit", "train.state.moments", "true=int8 false=fp32", EIGHT_BIT),
    MAP("model.use_8bit", "model.weights", "true=f8_e4m3 false=compute", EIGHT_BIT_WEIGHTS),
    MAP("load_in_8bit", "model.weights", "true=f8_e4m3 false=compute", EIGHT_BIT_WEIGHTS),
    MAP("load_in_4bit", "model.weights", "true=f8_e4m3 false=compute", FOUR_BIT),
    MAP("quantization_bit", "model.weights", "8=f8_e4m3 4=f8_e4m3", FOUR_BIT),
    MAP("quantize", "model.weights", "bnb.int8=f8_e4m3 bnb.nf4=f8_e4m3 bnb.fp4=f8_e4m3", FOUR_BIT),
    MAP("optimizer.use_8bit", "train.state.moments", "true=int8 false=fp32", EIGHT_BIT_STATES),
    MAP("optimizer_8bit", "train.state.moments", "true=int8 false=fp32", EIGHT_BIT_STATES),
    MAP("use_8bit_adam", "train.state.moments", "true=int8 false=fp32", EIGHT_BIT_STATES),
    MAP("use_8bit_optimizer", "train.state.moments", "true=int8 false=fp32", EIGHT_BIT_STATES),
    MAP("adam8bit", "train.state.moments", "true=int8 false=fp32", EIGHT_BIT_STATES),
    MAP("adam_8bit", "train.state.moments", "true=int8 false=fp32", EIGHT_BIT_STATES),
    MAP("sparse", "model.attention.pattern", "true=local false=dense", ""),
    MAP("use_sparse_attention", "model.attention.pattern", "true=local false=dense", ""),
    MAP("sparse_attention", "model.attention.pattern", "true=local false=dense", ""),
    SAME("sparse_pattern", "model.attention.pattern"),
    SAME("attention_pattern", "model.attention.pattern"),
    MAP("attention_type", "model.attention.pattern",
        "dense=dense full=dense causal=dense local=local sparse=local global=global mixed=mixed",
        NSA),
    NONE("attn_implementation", ATTENTION), NONE("flash_attention", ATTENTION),
    NONE("flash_attn", ATTENTION), NONE("use_flash_attention", ATTENTION),
    SAME("sparse_block_size", "model.attention.block"),
    SAME("attention_window", "model.attention.sliding_window"),
    NOTE("window_size", "model.attention.sliding_window",
         "in tokens; model.attention.window counts blocks"),
    SAME("lora_rank", "train.adapter.rank"), SAME("lora_r", "train.adapter.rank"),
    SAME("lora_alpha", "train.adapter.alpha"), SAME("lora_dropout", "train.adapter.dropout"),
    NOTE("lora_target_modules", "train.adapter.targets", TARGETS),
    NOTE("target_modules", "train.adapter.targets", TARGETS),
    NOTE("lora_target", "train.adapter.targets", TARGETS),
    NOTE("lora_attn_modules", "train.adapter.targets", TARGETS),
    NOTE("layers_to_transform", "train.adapter.layers", "layers and ranges of them: 0-3 8"),
    NOTE("modules_to_save", "train.adapter.modules_to_save", "names of modules: lm_head"),
    NOTE("rank_pattern", "train.adapter.groups", ADAPTER_GROUPS),
    NOTE("alpha_pattern", "train.adapter.groups", ADAPTER_GROUPS),
    MAP("lora_target_linear", "train.adapter.targets", "true=all-linear", TARGETS),
    MAP("apply_lora_to_mlp", "train.adapter.targets", "true=all-linear", TARGETS),
    MAP("use_rslora", "train.adapter.rslora", "true=true false=false", ""),
    MAP("use_dora", "train.adapter.dora", "true=true false=false", ""),
    MAP("use_lora", "train.adapter.kind", "true=lora false=none", ""),
    MAP("lora", "train.adapter.kind", "true=lora false=none", ""),
    MAP("peft", "train.adapter.kind", "true=lora false=none lora=lora", ""),
    MAP("adapter", "train.adapter.kind", "lora=lora qlora=lora", ""),
    MAP("finetuning_type", "train.adapter.kind", "lora=lora full=none", ""),
    SAME("modulation_rank", "train.adapter.rank"), SAME("np_rank", "train.adapter.rank"),
    NOTE("convert_layers", "train.adapter.layers", NPT_LAYERS),
    NOTE("layers_to_convert", "train.adapter.layers", NPT_LAYERS),
    NOTE("single_layer_mode", "train.adapter.layers", "one layer: train.adapter.layers=15"),

    SAME("dataset", "data.train"), SAME("dataset_name", "data.train"),
    SAME("dataset_path", "data.train"), SAME("data_path", "data.train"),
    SAME("train_data", "data.train"), SAME("train_file", "data.train"),
    SAME("train_path", "data.train"), SAME("data_dir", "data.train"),
    SAME("train_data_path", "data.train"), SAME("valid_data_path", "data.valid"),
    SAME("val_data_path", "data.valid"), SAME("corpus", "data.train"),
    SAME("training_file", "data.train"), SAME("datasets", "data.train"),
    SAME("valid_data", "data.valid"), SAME("val_data", "data.valid"),
    SAME("eval_data", "data.valid"), SAME("validation_file", "data.valid"),
    SAME("eval_file", "data.valid"),
    NOTE("val_set_size", "data.valid", "a file, or a share of data.train such as 5%"),
    NOTE("validation_split", "data.valid", "a file, or a share of data.train such as 5%"),
    SAME("tokenizer_name", "data.tokenizer"), SAME("tokenizer_path", "data.tokenizer"),
    SAME("tokenizer_file", "data.tokenizer"), SAME("tokenizer_name_or_path", "data.tokenizer"),
    SAME("tokenizer_model", "data.tokenizer"), SAME("tokenizer_type", "data.tokenizer"),
    SAME("vocab_file", "data.tokenizer"),
    SAME("text_column", "data.text_field"), SAME("dataset_text_field", "data.text_field"),
    SAME("text_key", "data.text_field"), SAME("eos_token_id", "data.document_end"),
    MAP("completion_only_loss", "data.prompt_field", "", COMPLETIONS),
    MAP("train_on_inputs", "data.prompt_field", "", COMPLETIONS),
    MAP("mask_prompt", "data.prompt_field", "", COMPLETIONS),
    MAP("packing", "data.documents", "", PACKING),
    MAP("sample_packing", "data.documents", "", PACKING),
    MAP("packed", "data.documents", "", PACKING),

    MAP("bf16", "train.dtype", "true=bf16 false=fp32", ""),
    MAP("fp16", "train.dtype", "true=bf16", FP16),
    MAP("half", "train.dtype", "true=bf16", FP16),
    MAP("pure_bf16", "train.dtype", "true=bf16 false=fp32",
        "bf16 keeps fp32 master weights; train.state.moments=bf16 stores the moments in bf16"),
    MAP("mixed_precision", "train.dtype", DTYPES, FP16),
    MAP("precision", "train.dtype", DTYPES, FP16),
    MAP("dtype", "train.dtype", DTYPES, FP16), MAP("torch_dtype", "train.dtype", DTYPES, FP16),
    NONE("tf32", "tf32 changes no bytes; train.dtype is fp32 or bf16"),
    NONE("allow_tf32", "tf32 changes no bytes; train.dtype is fp32 or bf16"),
    NONE("use_fp8", "fp8 arithmetic is not supported yet; train.dtype=bf16 is the smallest"),
    NONE("fp8", "fp8 arithmetic is not supported yet; train.dtype=bf16 is the smallest"),
    SAME("batch_size", "train.batch"), SAME("global_batch_size", "train.batch"),
    SAME("train_batch_size", "train.batch"), SAME("total_batch_size", "train.batch"),
    FORM("per_device_train_batch_size", "train.batch", "{} x accumulation steps", PER_DEVICE),
    FORM("device_batch_size", "train.batch", "{} x accumulation steps", PER_DEVICE),
    FORM("local_batch_size", "train.batch", "{} x accumulation steps", PER_DEVICE),
    NOTE("micro_batch_size", "memory.micro_batch", MICRO),
    NOTE("train_micro_batch_size_per_gpu", "memory.micro_batch", MICRO),
    NOTE("microbatch_size", "memory.micro_batch", MICRO), NOTE("mbs", "memory.micro_batch", MICRO),
    SAME("gbs", "train.batch"), SAME("batchsize", "train.batch"), SAME("bs", "train.batch"),
    MAP("auto_find_batch_size", "memory.micro_batch", "true=auto", ""),
    NONE("per_device_eval_batch_size", EVALUATION),
    NONE("eval_batch_size", EVALUATION),
    SAME("seq_length", "train.seq_len"), SAME("sequence_length", "train.seq_len"),
    SAME("sequence_len", "train.seq_len"), SAME("max_seq_length", "train.seq_len"),
    SAME("max_sequence_length", "train.seq_len"), SAME("max_seq_len", "train.seq_len"),
    SAME("max_length", "train.seq_len"), SAME("context_length", "train.seq_len"),
    SAME("context_len", "train.seq_len"),
    SAME("max_len", "train.seq_len"), SAME("context_size", "train.seq_len"),
    SAME("block_size", "train.seq_len"), SAME("cutoff_len", "train.seq_len"),
    SAME("model_max_length", "train.seq_len"),
    SAME("context", "train.seq_len"),
    SAME("max_steps", "train.steps"), SAME("max_iters", "train.steps"),
    SAME("train_iters", "train.steps"), SAME("total_steps", "train.steps"),
    SAME("num_steps", "train.steps"), SAME("max_train_steps", "train.steps"),
    SAME("num_iterations", "train.steps"), SAME("iters", "train.steps"),
    SAME("iterations", "train.steps"), SAME("n_steps", "train.steps"),
    SAME("num_training_steps", "train.steps"), SAME("training_steps", "train.steps"),
    FORM("train_samples", "train.steps", "{} / train.batch", SAMPLES),
    FORM("num_samples", "train.steps", "{} / train.batch", SAMPLES),
    FORM("max_tokens", "train.steps", "{} / (train.batch x train.seq_len)", ""),
    FORM("total_tokens", "train.steps", "{} / (train.batch x train.seq_len)", ""),
    FORM("train_tokens", "train.steps", "{} / (train.batch x train.seq_len)", ""),
    SAME("num_epochs", "train.epochs"), SAME("num_train_epochs", "train.epochs"),
    SAME("max_epochs", "train.epochs"), SAME("n_epochs", "train.epochs"),
    SAME("random_seed", "train.seed"), SAME("manual_seed", "train.seed"),
    SAME("data_seed", "train.seed"),
    SAME("num_threads", "train.threads"), SAME("n_threads", "train.threads"),
    SAME("omp_num_threads", "train.threads"),
    SAME("eval_interval", "train.eval_every"), SAME("eval_steps", "train.eval_every"),
    SAME("eval_iters", "train.eval_batches"),
    SAME("save_every", "train.checkpoint_every"), SAME("save_steps", "train.checkpoint_every"),
    SAME("save_interval", "train.checkpoint_every"),
    SAME("checkpoint_interval", "train.checkpoint_every"),
    NONE("eval_strategy", STEPS_ONLY), NONE("evaluation_strategy", STEPS_ONLY),
    NONE("save_strategy", STEPS_ONLY),
    SAME("save_total_limit", "train.keep_last"),
    SAME("load_best_model_at_end", "train.keep_best"), SAME("save_best", "train.keep_best"),
    SAME("early_stopping_patience", "train.patience"),
    SAME("ema", "train.ema_decay"), SAME("ema_beta", "train.ema_decay"),
    SAME("z_loss_weight", "train.z_loss"),
    MAP("freeze_base", "train.freeze", "", "patterns of parameter names, such as *.attn.*"),
    MAP("freeze_layers", "train.freeze", "", "patterns of parameter names, such as layers.0.*"),
    SAME("output_dir", "train.out"), SAME("out_dir", "train.out"), SAME("save_dir", "train.out"),
    SAME("checkpoint_dir", "train.out"), SAME("output_path", "train.out"),
    SAME("save", "train.out"),
    NONE("load", RESUME),
    NONE("resume", RESUME), NONE("resume_from_checkpoint", RESUME),
    MAP("curriculum", "train.stages", "", CURRICULUM),
    MAP("curriculum_stages", "train.stages", "", CURRICULUM),
    MAP("rampup_batch_size", "train.stages", "", BATCH_RAMP),
    MAP("curriculum_learning", "train.stages", "", LENGTH_RAMP),
    MAP("seq_length_warmup", "train.stages", "", LENGTH_RAMP),
    NONE("logging_steps", LOGGED), NONE("log_interval", LOGGED), NONE("report_to", LOGGED),
    NONE("wandb_project", LOGGED), NONE("wandb_log", LOGGED), NONE("use_wandb", LOGGED),
    NONE("logging_dir", LOGGED),

    MAP("optim", "train.optimizer.kind",
        "adamw_torch=adamw adamw_torch_fused=adamw adamw_hf=adamw adamw=adamw adam=adam sgd=sgd "
        "lion=lion lion_32bit=lion adafactor=adafactor muon=muon "
        EIGHT_BIT_OPTIMIZERS, MOMENTS_FORMAT),
    MAP("optimizer", "train.optimizer.kind",
        "adamw_torch=adamw adamw_torch_fused=adamw adamw=adamw adam=adam sgd=sgd lion=lion "
        "AdamW=adamw Adam=adam SGD=sgd Adafactor=adafactor adafactor=adafactor "
        "muon=muon Muon=muon "
        EIGHT_BIT_OPTIMIZERS, MOMENTS_FORMAT),
    SAME("optimizer_type", "train.optimizer.kind"), SAME("optimizer_name", "train.optimizer.kind"),
    SAME("learning_rate", "train.optimizer.lr"), SAME("base_lr", "train.optimizer.lr"),
    SAME("max_lr", "train.optimizer.lr"), SAME("peak_lr", "train.optimizer.lr"),
    SAME("adam_beta1", "train.optimizer.beta1"), SAME("momentum", "train.optimizer.beta1"),
    SAME("adam_beta2", "train.optimizer.beta2"),
    MAP("adafactor", "train.optimizer.kind", "true=adafactor", ""),
    SAME("scale_parameter", "train.optimizer.adafactor.scale_parameter"),
    SAME("relative_step", "train.optimizer.adafactor.relative_step"),
    SAME("clip_threshold", "train.optimizer.adafactor.clip_threshold"),
    SAME("decay_rate", "train.optimizer.adafactor.decay_rate"),
    NOTE("warmup_init", "train.schedule.warmup_steps", "the learning rate rises in these steps"),
    MAP("betas", "train.optimizer.beta1", "", "the second is train.optimizer.beta2"),
    SAME("adam_epsilon", "train.optimizer.eps"), SAME("adam_eps", "train.optimizer.eps"),
    SAME("wd", "train.optimizer.weight_decay"),
    SAME("max_grad_norm", "train.optimizer.clip"), SAME("clip_grad", "train.optimizer.clip"),
    SAME("clip_grad_norm", "train.optimizer.clip"), SAME("grad_clip", "train.optimizer.clip"),
    SAME("gradient_clipping", "train.optimizer.clip"), SAME("clip_norm", "train.optimizer.clip"),
    SAME("gradient_clip_val", "train.optimizer.clip"), SAME("max_norm", "train.optimizer.clip"),
    SAME("gradient_clip", "train.optimizer.clip"),
    MAP("lr_scheduler_type", "train.schedule.kind",
        "constant=constant constant_with_warmup=constant linear=linear cosine=cosine "
        "warmup_stable_decay=wsd polynomial=linear", POLYNOMIAL),
    MAP("lr_scheduler", "train.schedule.kind",
        "constant=constant constant_with_warmup=constant linear=linear cosine=cosine "
        "one_cycle=cosine polynomial=linear warmup_stable_decay=wsd", POLYNOMIAL),
    MAP("lr_decay_style", "train.schedule.kind",
        "constant=constant linear=linear cosine=cosine WSD=wsd", SCHEDULES),
    MAP("scheduler", "train.schedule.kind",
        "constant=constant constant_with_warmup=constant linear=linear cosine=cosine", SCHEDULES),
    MAP("lr_schedule", "train.schedule.kind",
        "constant=constant linear=linear cosine=cosine wsd=wsd", SCHEDULES),
    MAP("decay_lr", "train.schedule.kind", "true=cosine false=constant", ""),
    NONE("lr_decay_iters", "the learning rate decays until train.steps"),
    NONE("lr_decay_steps", "the learning rate decays until train.steps"),
    NONE("power", SCHEDULES), NONE("lr_scheduler_kwargs", SCHEDULES),
    SAME("warmup_iters", "train.schedule.warmup_steps"),
    SAME("num_warmup_steps", "train.schedule.warmup_steps"),
    SAME("lr_warmup_iters", "train.schedule.warmup_steps"),
    SAME("lr_warmup_steps", "train.schedule.warmup_steps"),
    SAME("warmup", "train.schedule.warmup_steps"),
    FORM("lr_warmup_samples", "train.schedule.warmup_steps", "{} / train.batch", SAMPLES),
    FORM("lr_warmup_fraction", "train.schedule.warmup_steps", "{} x train.steps", SHARE_OF_STEPS),
    FORM("warmup_fraction", "train.schedule.warmup_steps", "{} x train.steps", SHARE_OF_STEPS),
    FORM("warmup_ratio", "train.schedule.warmup_steps", "{} x train.steps", SHARE_OF_STEPS),
    FORM("min_lr", "train.schedule.final_fraction", "{} / train.optimizer.lr", ""),
    SAME("min_lr_ratio", "train.schedule.final_fraction"),

    FORM("gradient_accumulation_steps", "memory.micro_batch", "train.batch / {}", ACCUMULATION),
    FORM("accumulation_steps", "memory.micro_batch", "train.batch / {}", ACCUMULATION),
    FORM("grad_accum_steps", "memory.micro_batch", "train.batch / {}", ACCUMULATION),
    FORM("grad_accumulation_steps", "memory.micro_batch", "train.batch / {}", ACCUMULATION),
    FORM("gradient_accumulation", "memory.micro_batch", "train.batch / {}", ACCUMULATION),
    FORM("accumulate_grad_batches", "memory.micro_batch", "train.batch / {}", ACCUMULATION),
    FORM("accumulation", "memory.micro_batch", "train.batch / {}", ACCUMULATION),
    NOTE("chunk_size", "memory.loss_chunk", "tokens per chunk of logits and loss"),
    SAME("loss_chunk_size", "memory.loss_chunk"), SAME("logits_chunk", "memory.loss_chunk"),
    SAME("logits_chunk_size", "memory.loss_chunk"),
    MAP("chunk_loss", "memory.loss_chunk", "true=auto", ""),
    MAP("chunked_loss", "memory.loss_chunk", "true=auto", ""),
    MAP("chunked_cross_entropy", "memory.loss_chunk", "true=auto", ""),
    MAP("use_liger_kernel", "memory.loss_chunk", "true=auto", ""),
    MAP("enable_liger_kernel", "memory.loss_chunk", "true=auto", ""),
    FORM("num_output_chunks", "memory.loss_chunk", "train.batch x train.seq_len / {}",
         "tokens per chunk of logits and loss"),
    FORM("chunked_cross_entropy_num_chunks", "memory.loss_chunk",
         "train.batch x train.seq_len / {}", "tokens per chunk of logits and loss"),
    NONE("optimizer_in_bwd", RELEASE), NONE("gradient_release", RELEASE),
    MAP("recompute_granularity", "memory.recompute", "full=layers selective=auto", CHECKPOINTING),
    MAP("recompute_activations", "memory.recompute", "true=auto false=none", CHECKPOINTING),
    MAP("activation_recompute", "memory.recompute", "true=layers false=none", CHECKPOINTING),
    MAP("use_gradient_checkpointing", "memory.recompute",
        "true=layers unsloth=layers false=none", CHECKPOINTING),
    MAP("disable_gradient_checkpointing", "memory.recompute", "true=none false=layers",
        CHECKPOINTING),
    NONE("gradient_checkpointing_kwargs", "layers are recomputed in one way; nothing to choose"),
    NONE("use_reentrant", "layers are recomputed in one way; nothing to choose"),
    NONE("enable_activation_offloading",
         "activations cannot be offloaded; memory.recompute recomputes them"),
    MAP("gradient_checkpointing", "memory.recompute", "true=layers false=none", CHECKPOINTING),
    MAP("activation_checkpointing", "memory.recompute", "true=layers false=none", CHECKPOINTING),
    MAP("enable_activation_checkpointing", "memory.recompute", "true=layers false=none",
        CHECKPOINTING),
    MAP("grad_checkpoint", "memory.recompute", "true=layers false=none", CHECKPOINTING),
    MAP("use_checkpoint", "memory.recompute", "true=layers false=none", CHECKPOINTING),
    MAP("checkpoint_activations", "memory.recompute", "true=layers false=none", CHECKPOINTING),
    MAP("use_cpu_offload", "memory.moments", "true=file false=host", MOMENTS),
    MAP("cpu_offload", "memory.moments", "true=file false=host", MOMENTS),
    MAP("offload_optimizer", "memory.moments", "true=file false=host", MOMENTS),
    MAP("offload", "memory.moments", "true=file cpu=file nvme=file false=host none=host", MOMENTS),
    MAP("optimizer_offload", "memory.moments", "true=file cpu=file nvme=file false=host none=host",
        MOMENTS),
    MAP("offload_optimizer_device", "memory.moments", "cpu=file nvme=file none=host", MOMENTS),
    MAP("offload_param_device", "memory.weights", "cpu=file nvme=file none=resident", FROZEN_AWAY),
    MAP("offload_param", "memory.weights",
        "true=file cpu=file nvme=file false=resident none=resident", FROZEN_AWAY),
    SAME("memory_limit", "memory.budget"), SAME("max_memory", "memory.budget"),
    SAME("gpu_memory", "memory.budget"), SAME("vram", "memory.budget"),

    NONE("training", SECTIONS), NONE("trainer", SECTIONS), NONE("training_args", SECTIONS),
    NONE("training_arguments", SECTIONS), NONE("hyperparameters", SECTIONS),
    NONE("device", ON_CPU), NONE("device_map", ON_CPU), NONE("accelerator", ON_CPU),
    NONE("use_gpu", ON_CPU), NONE("use_cuda", ON_CPU), NONE("gpus", ON_CPU),
    NONE("no_cuda", ON_CPU),
    NONE("num_gpus", ONE_PROCESS), NONE("world_size", ONE_PROCESS), NONE("devices", ONE_PROCESS),
    NONE("nproc_per_node", ONE_PROCESS), NONE("local_rank", ONE_PROCESS),
    NONE("ddp", ONE_PROCESS), NONE("backend", ONE_PROCESS),
    NONE("fsdp", SHARDING), NONE("deepspeed", SHARDING), NONE("zero_stage", SHARDING),
    NONE("zero_optimization", SHARDING), NONE("use_fsdp", SHARDING),
    NONE("use_deepspeed", SHARDING), NONE("distributed_strategy", SHARDING),
    NONE("zero_optimization.stage", SHARDING),
    NONE("use_distributed_optimizer", SHARDING),
    NONE("tensor_parallel_size", ONE_PROCESS), NONE("sequence_parallel", ONE_PROCESS),
    NONE("tensor_model_parallel_size", ONE_PROCESS),
    NONE("pipeline_model_parallel_size", ONE_PROCESS), NONE("context_parallel_size", ONE_PROCESS),
    NONE("compile", "every run is compiled to a plan, so there is nothing to switch on"),
    NONE("torch_compile", "every run is compiled to a plan, so there is nothing to switch on"),
    NONE("num_workers", LOADER), NONE("dataloader_num_workers", LOADER),
    NONE("dataloader_pin_memory", LOADER),
    NONE("group_by_length", "documents fill whole windows, so there is no padding"),
    NONE("neftune_noise_alpha", "noise on embeddings is not supported"),
    NONE("label_smoothing", "label smoothing is not supported"),
    NONE("label_smoothing_factor", "label smoothing is not supported"),
};
/* clang-format on */

enum { ROW_COUNT = sizeof rows / sizeof *rows, NAME_BYTES = 64 };

const hr_foreign_row *hr_foreign_at(int32_t index)
{
    return index >= 0 && index < ROW_COUNT ? &rows[index] : NULL;
}

static const hr_foreign_row *find_word(const char *word)
{
    for (int32_t i = 0; i < ROW_COUNT; i++)
        if (!strcmp(rows[i].name, word)) return &rows[i];
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
