/* SPDX-License-Identifier: Apache-2.0 */
/* audit/keys_hf.c - keys of TrainingArguments, of TRL's scripts and of LLaMA-Factory, which all
 * extend one another. */
#include <stddef.h>

#include "audit/training.h"

#define NO_EFFECT(key) \
    { \
        key, HR_MEANS_NOTHING, NULL \
    }

/* Of TrainingArguments. */
#define ARGUMENTS \
    { "per_device_train_batch_size", HR_MEANS_MICRO_BATCH, "memory.micro_batch" }, \
        { "gradient_accumulation_steps", HR_MEANS_ACCUMULATION, "train.batch" }, \
        { "gradient_checkpointing", HR_MEANS_CHECKPOINTING, "memory.recompute" }, \
        { "bf16", HR_MEANS_BF16, "train.dtype" }, { "fp16", HR_MEANS_FP16, "train.dtype" }, \
        { "optim", HR_MEANS_OPTIMIZER, "train.optimizer.kind" }, \
        { "learning_rate", HR_MEANS_RATE, "train.optimizer.lr" }, \
        { "weight_decay", HR_MEANS_DECAY, "train.optimizer.weight_decay" }, \
        { "adam_beta1", HR_MEANS_BETA1, "train.optimizer.beta1" }, \
        { "adam_beta2", HR_MEANS_BETA2, "train.optimizer.beta2" }, \
        { "adam_epsilon", HR_MEANS_EPS, "train.optimizer.eps" }, \
        { "max_grad_norm", HR_MEANS_CLIP, "train.optimizer.clip" }, \
        { "lr_scheduler_type", HR_MEANS_SCHEDULE, "train.schedule.kind" }, \
        { "warmup_steps", HR_MEANS_WARMUP, "train.schedule.warmup_steps" }, \
        { "warmup_ratio", HR_MEANS_WARMUP_RATIO, "train.schedule.warmup_steps" }, \
        { "num_train_epochs", HR_MEANS_EPOCHS, "train.epochs" }, \
        { "max_steps", HR_MEANS_STEPS, "train.steps" }, { "seed", HR_MEANS_SEED, "train.seed" }, \
        { "use_liger_kernel", HR_MEANS_FUSED_LOSS, "memory.loss_chunk" }, \
        { "deepspeed*", HR_MEANS_DEEPSPEED, NULL }, HR_FSDP_KEYS, \
        { "attn_implementation", HR_MEANS_ATTENTION, NULL }, \
        { "model_init_kwargs.attn_implementation", HR_MEANS_ATTENTION, NULL }, \
        NO_EFFECT("per_device_eval_batch_size"), NO_EFFECT("gradient_checkpointing_kwargs*"), \
        NO_EFFECT("output_dir"), NO_EFFECT("overwrite_output_dir"), NO_EFFECT("do_*"), \
        NO_EFFECT("logging_*"), NO_EFFECT("log_*"), NO_EFFECT("save_*"), \
        NO_EFFECT("eval_strategy"), NO_EFFECT("evaluation_strategy"), NO_EFFECT("eval_steps"), \
        NO_EFFECT("eval_on_start"), NO_EFFECT("eval_delay"), NO_EFFECT("push_to_hub*"), \
        NO_EFFECT("hub_*"), NO_EFFECT("report_to*"), NO_EFFECT("run_name"), \
        NO_EFFECT("data_seed"), NO_EFFECT("dataloader_*"), NO_EFFECT("ddp_timeout"), \
        NO_EFFECT("remove_unused_columns"), NO_EFFECT("disable_tqdm"), \
        NO_EFFECT("resume_from_checkpoint"), NO_EFFECT("tf32"), \
        NO_EFFECT("load_best_model_at_end"), NO_EFFECT("metric_for_best_model"), \
        NO_EFFECT("greater_is_better"), NO_EFFECT("label_names*"), NO_EFFECT("group_by_length"), \
        NO_EFFECT("lr_scheduler_kwargs*"), NO_EFFECT("project"), NO_EFFECT("trackio_*"), \
        NO_EFFECT("include_*"), NO_EFFECT("logging_dir"), NO_EFFECT("prediction_loss_only"), \
        NO_EFFECT("ignore_data_skip"), NO_EFFECT("skip_memory_metrics"), NO_EFFECT("local_rank"), \
        NO_EFFECT("past_index"), NO_EFFECT("debug"), NO_EFFECT("no_cuda"), NO_EFFECT("use_cpu"), \
        NO_EFFECT("length_column_name"), NO_EFFECT("ddp_backend"), \
        NO_EFFECT("ddp_find_unused_parameters"), NO_EFFECT("ddp_bucket_cap_mb"), \
        NO_EFFECT("full_determinism"), NO_EFFECT("average_tokens_across_devices"), \
        NO_EFFECT("restore_callback_states*"), NO_EFFECT("accelerator_config*"), \
        NO_EFFECT("train_sampling_strategy"), NO_EFFECT("bf16_full_eval"), \
        NO_EFFECT("fp16_full_eval"), { "auto_find_batch_size", HR_MEANS_FINDS_BATCH, NULL }, \
        NO_EFFECT("jit_mode_eval"), NO_EFFECT("use_ipex"), NO_EFFECT("use_mps_device"), \
        NO_EFFECT("batch_eval_metrics"), NO_EFFECT("eval_do_concat_batches"), \
        NO_EFFECT("eval_use_gather_object"), NO_EFFECT("half_precision_backend"), \
        NO_EFFECT("fp16_backend"), NO_EFFECT("fp16_opt_level"), NO_EFFECT("mp_parameters"), \
        NO_EFFECT("tpu_*"), NO_EFFECT("_n_gpu")

/* Of the model and its adapter, as TRL names them. */
#define MODEL \
    { "model_name_or_path", HR_MEANS_MODEL, "model.from" }, \
        { "torch_dtype", HR_MEANS_DTYPE, "train.dtype" }, \
        { "dtype", HR_MEANS_DTYPE, "train.dtype" }, \
        { "model_init_kwargs.torch_dtype", HR_MEANS_DTYPE, "train.dtype" }, \
        { "model_init_kwargs.dtype", HR_MEANS_DTYPE, "train.dtype" }, NO_EFFECT("model_revision"), \
        NO_EFFECT("trust_remote_code"), NO_EFFECT("tokenizer_name*"), NO_EFFECT("chat_template*"), \
        NO_EFFECT("dataset*"), NO_EFFECT("preprocessing_num_workers"), NO_EFFECT("eos_token"), \
        NO_EFFECT("pad_token"), NO_EFFECT("truncation_side"), NO_EFFECT("hub_token")

static const hr_foreign_key hf_keys[] = {
    ARGUMENTS,
    MODEL,
    { "block_size", HR_MEANS_LENGTH, "train.seq_len" }, /* of run_clm */
    { NULL, HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_hf = { hf_keys, 8, 1024, false, NULL };

static const hr_foreign_key trl_keys[] = {
    ARGUMENTS,
    MODEL,
    { "max_length", HR_MEANS_LENGTH, "train.seq_len" },
    { "max_seq_length", HR_MEANS_LENGTH, "train.seq_len" },
    { "packing", HR_MEANS_PACKING, NULL },
    { "loss_type", HR_MEANS_LOSS, "memory.loss_chunk" },
    { "use_liger_loss", HR_MEANS_FUSED_LOSS, "memory.loss_chunk" },
    { "use_peft", HR_MEANS_PEFT, NULL },
    { "load_in_4bit", HR_MEANS_4BIT, "model.weights" },
    { "load_in_8bit", HR_MEANS_8BIT, "model.weights" },
    { "use_bnb_nested_quant", HR_MEANS_DOUBLE_QUANT, NULL },
    NO_EFFECT("bnb_4bit_quant_type"),
    { "lora_r", HR_MEANS_RANK, NULL },
    { "lora_alpha", HR_MEANS_ALPHA, NULL },
    { "lora_dropout", HR_MEANS_ADAPTER_DROPOUT, NULL },
    { "lora_target_modules*", HR_MEANS_TARGETS, NULL },
    { "lora_modules_to_save*", HR_MEANS_SAVED, NULL },
    NO_EFFECT("lora_task_type"),
    { "num_generations", HR_MEANS_GENERATES, NULL },
    { "reward_funcs*", HR_MEANS_GENERATES, NULL },
    { "reward_model_path", HR_MEANS_GENERATES, NULL },
    { "teacher_model_name_or_path", HR_MEANS_TEACHER, NULL },
    { "beta", HR_MEANS_PREFERENCE, NULL },
    { "max_prompt_length", HR_MEANS_PREFERENCE, NULL },
    { "max_completion_length", HR_MEANS_PREFERENCE, NULL },
    { "precompute_ref_log_probs", HR_MEANS_PREFERENCE, NULL },
    { "reference_free", HR_MEANS_PREFERENCE, NULL },
    NO_EFFECT("packing_strategy"),
    NO_EFFECT("completion_only_loss"),
    NO_EFFECT("assistant_only_loss"),
    { NULL, HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_trl = { trl_keys, 8, 1024, true,
                                    "use_peft: true\nlora_r: 16\nlora_alpha: 32\n"
                                    "lora_target_modules: all-linear" };

static const hr_foreign_key factory_keys[] = {
    ARGUMENTS,
    MODEL,
    { "stage", HR_MEANS_STAGE, NULL },
    { "finetuning_type", HR_MEANS_ADAPTER, NULL },
    { "cutoff_len", HR_MEANS_LENGTH, "train.seq_len" },
    { "packing", HR_MEANS_PACKING, NULL },
    { "neat_packing", HR_MEANS_PACKING, NULL },
    { "pure_bf16", HR_MEANS_PURE_BF16, "train.dtype" },
    { "disable_gradient_checkpointing", HR_MEANS_NO_CHECKPOINTING, "memory.recompute" },
    { "enable_liger_kernel", HR_MEANS_FUSED_LOSS, "memory.loss_chunk" },
    { "quantization_bit", HR_MEANS_BITS, "model.weights" },
    { "double_quantization", HR_MEANS_DOUBLE_QUANT, NULL },
    NO_EFFECT("quantization_type"),
    NO_EFFECT("quantization_method"),
    { "lora_rank", HR_MEANS_RANK, NULL },
    { "lora_alpha", HR_MEANS_ALPHA, NULL },
    { "lora_dropout", HR_MEANS_ADAPTER_DROPOUT, NULL },
    { "lora_target*", HR_MEANS_TARGETS, NULL },
    { "additional_target*", HR_MEANS_SAVED, NULL },
    { "freeze_trainable_layers", HR_MEANS_FREEZE_LAYERS, "train.freeze" },
    { "freeze_trainable_modules*", HR_MEANS_FREEZE_MODULES, "train.freeze" },
    { "freeze_extra_modules*", HR_MEANS_FREEZE_EXTRA, "train.freeze" },
    { "pref_beta", HR_MEANS_PREFERENCE, NULL },
    { "pref_loss", HR_MEANS_PREFERENCE, NULL },
    NO_EFFECT("template"),
    NO_EFFECT("max_samples"),
    NO_EFFECT("overwrite_cache"),
    NO_EFFECT("plot_loss"),
    NO_EFFECT("val_size"),
    { "flash_attn", HR_MEANS_ATTENTION, NULL },
    { "use_galore", HR_MEANS_NO_STATES, NULL },
    { "use_apollo", HR_MEANS_NO_STATES, NULL },
    { "use_muon", HR_MEANS_NO_STATES, NULL },
    { "use_adam_mini", HR_MEANS_NO_STATES, NULL },
    { "use_badam", HR_MEANS_BLOCKS, NULL },
    NO_EFFECT("eval_dataset"),
    NO_EFFECT("mask_history"),
    NO_EFFECT("train_on_prompt"),
    { NULL, HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_llama_factory = { factory_keys, 8, 2048, true,
                                              "finetuning_type: lora\nlora_rank: 16\n"
                                              "lora_target: all" };
