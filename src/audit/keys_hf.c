/* SPDX-License-Identifier: Apache-2.0 */
/* audit/keys_hf.c - keys of TrainingArguments, of TRL's scripts and of LLaMA-Factory, which all
 * extend one another. */
#include <stddef.h>

#include "audit/training.h"

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
        HR_NO_EFFECT("per_device_eval_batch_size"), \
        HR_NO_EFFECT("gradient_checkpointing_kwargs*"), HR_NO_EFFECT("output_dir"), \
        HR_NO_EFFECT("overwrite_output_dir"), HR_NO_EFFECT("do_*"), HR_NO_EFFECT("logging_*"), \
        HR_NO_EFFECT("log_*"), HR_NO_EFFECT("save_*"), HR_NO_EFFECT("eval_strategy"), \
        HR_NO_EFFECT("evaluation_strategy"), HR_NO_EFFECT("eval_steps"), \
        HR_NO_EFFECT("eval_on_start"), HR_NO_EFFECT("eval_delay"), HR_NO_EFFECT("push_to_hub*"), \
        HR_NO_EFFECT("hub_*"), HR_NO_EFFECT("report_to*"), HR_NO_EFFECT("run_name"), \
        HR_NO_EFFECT("data_seed"), HR_NO_EFFECT("dataloader_*"), HR_NO_EFFECT("ddp_timeout"), \
        HR_NO_EFFECT("remove_unused_columns"), HR_NO_EFFECT("disable_tqdm"), \
        HR_NO_EFFECT("resume_from_checkpoint"), HR_NO_EFFECT("tf32"), \
        HR_NO_EFFECT("load_best_model_at_end"), HR_NO_EFFECT("metric_for_best_model"), \
        HR_NO_EFFECT("greater_is_better"), HR_NO_EFFECT("label_names*"), \
        HR_NO_EFFECT("group_by_length"), HR_NO_EFFECT("lr_scheduler_kwargs*"), \
        HR_NO_EFFECT("project"), HR_NO_EFFECT("trackio_*"), HR_NO_EFFECT("include_*"), \
        HR_NO_EFFECT("logging_dir"), HR_NO_EFFECT("prediction_loss_only"), \
        HR_NO_EFFECT("ignore_data_skip"), HR_NO_EFFECT("skip_memory_metrics"), \
        HR_NO_EFFECT("local_rank"), HR_NO_EFFECT("past_index"), HR_NO_EFFECT("debug"), \
        HR_NO_EFFECT("no_cuda"), HR_NO_EFFECT("use_cpu"), HR_NO_EFFECT("length_column_name"), \
        HR_NO_EFFECT("ddp_backend"), HR_NO_EFFECT("ddp_find_unused_parameters"), \
        HR_NO_EFFECT("ddp_bucket_cap_mb"), HR_NO_EFFECT("full_determinism"), \
        HR_NO_EFFECT("average_tokens_across_devices"), HR_NO_EFFECT("restore_callback_states*"), \
        HR_NO_EFFECT("accelerator_config*"), HR_NO_EFFECT("train_sampling_strategy"), \
        HR_NO_EFFECT("bf16_full_eval"), HR_NO_EFFECT("fp16_full_eval"), \
        { "auto_find_batch_size", HR_MEANS_FINDS_BATCH, NULL }, HR_NO_EFFECT("jit_mode_eval"), \
        HR_NO_EFFECT("use_ipex"), HR_NO_EFFECT("use_mps_device"), \
        HR_NO_EFFECT("batch_eval_metrics"), HR_NO_EFFECT("eval_do_concat_batches"), \
        HR_NO_EFFECT("eval_use_gather_object"), HR_NO_EFFECT("half_precision_backend"), \
        HR_NO_EFFECT("fp16_backend"), HR_NO_EFFECT("fp16_opt_level"), \
        HR_NO_EFFECT("mp_parameters"), HR_NO_EFFECT("tpu_*"), HR_NO_EFFECT("_n_gpu"), \
        HR_NO_EFFECT("ddp_broadcast_buffers"), HR_NO_EFFECT("eval_accumulation_steps"), \
        HR_UNMODELED("torch_compile_*"), HR_UNMODELED("torchdynamo"), \
        HR_NO_EFFECT("dispatch_batches"), HR_NO_EFFECT("split_batches"), \
        HR_NO_EFFECT("use_legacy_prediction_loop"), HR_NO_EFFECT("log_level*"), \
        HR_NO_EFFECT("mlflow_*"), HR_NO_EFFECT("wandb_*"), HR_NO_EFFECT("swanlab_*"), \
        HR_UNMODELED("torch_compile"), HR_UNMODELED("torch_empty_cache_steps"), \
        HR_UNMODELED("label_smoothing_factor"), HR_UNMODELED("neftune_noise_alpha"), \
        HR_UNMODELED("optim_args"), HR_UNMODELED("optim_target_modules*"), \
        HR_UNMODELED("liger_kernel_config*"), HR_UNMODELED("parallelism_config*"), \
        HR_UNMODELED("fsdp_min_num_params"), HR_UNMODELED("sharded_ddp*"), \
        HR_UNMODELED("use_cache")

/* Of the model and its adapter, as TRL names them. */
#define MODEL \
    { "model_name_or_path", HR_MEANS_MODEL, "model.from" }, \
        { "torch_dtype", HR_MEANS_DTYPE, "train.dtype" }, \
        { "dtype", HR_MEANS_DTYPE, "train.dtype" }, \
        { "model_init_kwargs.torch_dtype", HR_MEANS_DTYPE, "train.dtype" }, \
        { "model_init_kwargs.dtype", HR_MEANS_DTYPE, "train.dtype" }, \
        HR_NO_EFFECT("model_revision"), HR_NO_EFFECT("trust_remote_code"), \
        HR_NO_EFFECT("tokenizer_name*"), HR_NO_EFFECT("chat_template*"), HR_NO_EFFECT("dataset*"), \
        HR_NO_EFFECT("preprocessing_num_workers"), HR_NO_EFFECT("eos_token"), \
        HR_NO_EFFECT("pad_token"), HR_NO_EFFECT("truncation_side"), HR_NO_EFFECT("hub_token")

static const hr_foreign_key hf_keys[] = {
    ARGUMENTS,
    MODEL,
    { "block_size", HR_MEANS_LENGTH, "train.seq_len" }, /* of run_clm */
    { "max_length", HR_MEANS_LENGTH, "train.seq_len" }, /* of scripts around the Trainer */
    { "max_seq_length", HR_MEANS_LENGTH, "train.seq_len" },
    { "model_max_length", HR_MEANS_LENGTH, "train.seq_len" },
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
    HR_NO_EFFECT("bnb_4bit_quant_type"),
    { "lora_r", HR_MEANS_RANK, NULL },
    { "lora_alpha", HR_MEANS_ALPHA, NULL },
    { "lora_dropout", HR_MEANS_ADAPTER_DROPOUT, NULL },
    { "lora_target_modules*", HR_MEANS_TARGETS, NULL },
    { "lora_modules_to_save*", HR_MEANS_SAVED, NULL },
    HR_NO_EFFECT("lora_task_type"),
    { "num_generations", HR_MEANS_GENERATES, NULL },
    { "reward_funcs*", HR_MEANS_GENERATES, NULL },
    { "reward_model_path", HR_MEANS_GENERATES, NULL },
    { "teacher_model_name_or_path", HR_MEANS_TEACHER, NULL },
    { "beta", HR_MEANS_PREFERENCE, NULL },
    { "max_prompt_length", HR_MEANS_PREFERENCE, NULL },
    { "max_completion_length", HR_MEANS_PREFERENCE, NULL },
    { "precompute_ref_log_probs", HR_MEANS_PREFERENCE, NULL },
    { "reference_free", HR_MEANS_PREFERENCE, NULL },
    HR_NO_EFFECT("packing_strategy"),
    HR_NO_EFFECT("completion_only_loss"),
    HR_NO_EFFECT("assistant_only_loss"),
    HR_UNMODELED("padding_free"),
    HR_NO_EFFECT("bnb_4bit_compute_dtype"),
    HR_NO_EFFECT("bnb_4bit_quant_storage"),
    HR_NO_EFFECT("use_rslora"),
    HR_NO_EFFECT("lora_bias"),
    HR_NO_EFFECT("eval_packing"),
    HR_NO_EFFECT("max_steps_per_epoch"),
    HR_NO_EFFECT("desirable_weight"),
    HR_NO_EFFECT("undesirable_weight"),
    HR_NO_EFFECT("loss_weights*"),
    HR_NO_EFFECT("rpo_alpha"),
    HR_NO_EFFECT("label_smoothing"),
    HR_NO_EFFECT("generate_during_eval"),
    HR_NO_EFFECT("f_divergence_type"),
    HR_NO_EFFECT("sync_ref_model"),
    HR_NO_EFFECT("ref_model_*"),
    HR_NO_EFFECT("disable_dropout"),
    HR_NO_EFFECT("truncation_mode"),
    HR_NO_EFFECT("label_pad_token_id"),
    HR_NO_EFFECT("padding_value"),
    HR_NO_EFFECT("tools"),
    HR_NO_EFFECT("shuffle_dataset"),
    HR_NO_EFFECT("pad_to_multiple_of"),
    HR_UNMODELED("activation_offloading"),
    HR_UNMODELED("use_dora"),
    HR_UNMODELED("lora_target_parameters*"),
    HR_UNMODELED("model_adapter_name"),
    HR_UNMODELED("ref_adapter_name"),
    HR_UNMODELED("use_weighting"),
    HR_UNMODELED("use_logits_to_keep"),
    HR_UNMODELED("precompute_ref_batch_size"),
    { "use_vllm", HR_MEANS_GENERATES, NULL },
    { "vllm_*", HR_MEANS_GENERATES, NULL },
    { "scale_rewards", HR_MEANS_GENERATES, NULL },
    { "reward_weights*", HR_MEANS_GENERATES, NULL },
    { "num_ppo_epochs", HR_MEANS_GENERATES, NULL },
    { NULL, HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_trl = { trl_keys, 8, 1024, true,
                                    "use_peft: true\nlora_r: 16\nlora_alpha: 32\n"
                                    "lora_target_modules: all-linear" };

static const hr_foreign_key factory_keys[] = {
    ARGUMENTS,
    MODEL,
    { "model", HR_MEANS_MODEL, "model.from" },
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
    HR_NO_EFFECT("quantization_type"),
    HR_NO_EFFECT("quantization_method"),
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
    HR_NO_EFFECT("template"),
    HR_NO_EFFECT("max_samples"),
    HR_NO_EFFECT("overwrite_cache"),
    HR_NO_EFFECT("plot_loss"),
    HR_NO_EFFECT("val_size"),
    { "flash_attn", HR_MEANS_ATTENTION, NULL },
    HR_UNMODELED("use_galore"),
    HR_UNMODELED("use_apollo"),
    HR_UNMODELED("use_muon"),
    HR_UNMODELED("use_adam_mini"),
    { "use_badam", HR_MEANS_BLOCKS, NULL },
    HR_NO_EFFECT("eval_dataset"),
    HR_NO_EFFECT("mask_history"),
    HR_NO_EFFECT("train_on_prompt"),
    HR_NO_EFFECT("data_shared_file_system"),
    HR_NO_EFFECT("tokenized_path"),
    HR_NO_EFFECT("streaming"),
    HR_NO_EFFECT("buffer_size"),
    HR_NO_EFFECT("mix_strategy"),
    HR_NO_EFFECT("interleave_probs"),
    HR_NO_EFFECT("ignore_pad_token_for_loss"),
    HR_NO_EFFECT("cache_dir"),
    HR_NO_EFFECT("use_fast_tokenizer"),
    HR_NO_EFFECT("resize_vocab"),
    HR_NO_EFFECT("split_special_tokens"),
    HR_NO_EFFECT("new_special_tokens"),
    HR_NO_EFFECT("media_dir"),
    HR_NO_EFFECT("image_max_pixels"),
    HR_NO_EFFECT("image_min_pixels"),
    HR_NO_EFFECT("video_max_pixels"),
    HR_NO_EFFECT("video_min_pixels"),
    HR_NO_EFFECT("rope_scaling"),
    HR_NO_EFFECT("use_rslora"),
    HR_NO_EFFECT("loraplus_*"),
    HR_NO_EFFECT("pissa_convert"),
    HR_NO_EFFECT("create_new_adapter"),
    HR_NO_EFFECT("pref_ftx"),
    HR_NO_EFFECT("simpo_gamma"),
    HR_NO_EFFECT("kto_*_weight"),
    HR_NO_EFFECT("dpo_label_smoothing"),
    HR_NO_EFFECT("include_num_input_tokens_seen"),
    HR_NO_EFFECT("include_tokens_per_second"),
    HR_NO_EFFECT("compute_accuracy"),
    HR_NO_EFFECT("enable_thinking"),
    HR_NO_EFFECT("low_cpu_mem_usage"),
    HR_NO_EFFECT("eval_num_beams"),
    HR_NO_EFFECT("predict_with_generate"),
    HR_NO_EFFECT("max_new_tokens"),
    HR_NO_EFFECT("quantization_device_map"),
    HR_NO_EFFECT("default_system"),
    HR_NO_EFFECT("galore_*"),
    HR_NO_EFFECT("apollo_*"),
    HR_NO_EFFECT("badam_*"),
    HR_UNMODELED("ref_model_quantization_bit"),
    HR_NO_EFFECT("freeze_vision_tower"),
    HR_NO_EFFECT("freeze_multi_modal_projector"),
    HR_UNMODELED("use_dora"),
    HR_UNMODELED("use_unsloth"),
    HR_UNMODELED("use_unsloth_gc"),
    HR_UNMODELED("shift_attn"),
    HR_UNMODELED("mixture_of_depths"),
    HR_UNMODELED("use_llama_pro"),
    HR_UNMODELED("upcast_layernorm"),
    HR_UNMODELED("upcast_lmhead_output"),
    HR_UNMODELED("pissa_init"),
    HR_UNMODELED("additional_adapter"),
    HR_UNMODELED("adapter_name_or_path"),
    HR_UNMODELED("ref_model"),
    HR_UNMODELED("reward_model"),
    HR_UNMODELED("use_badam_*"),
    HR_UNMODELED("asft_*"),
    HR_UNMODELED("use_asft_loss"),
    HR_UNMODELED("freeze_language_model"),
    HR_UNMODELED("moe_aux_loss_coef"),
    HR_UNMODELED("fp8*"),
    { NULL, HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_llama_factory = { factory_keys, 8, 2048, true,
                                              "finetuning_type: lora\nlora_rank: 16\n"
                                              "lora_target: all" };
