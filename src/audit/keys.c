/* SPDX-License-Identifier: Apache-2.0 */
/* audit/keys.c - keys of the training files of other programs, and what they mean.
 *
 * The scripts of transformers, TRL and LLaMA-Factory extend one another, and axolotl has taken over
 * some of their names: a program has its own table after those that it shares. */
#include <stddef.h>

#include "audit/training.h"

/* Of TrainingArguments; axolotl has them too. */
static const hr_foreign_keys trainer[] = {
    { HR_MEANS_ACCUMULATION, "gradient_accumulation_steps" },
    { HR_MEANS_CHECKPOINTING, "gradient_checkpointing" },
    { HR_MEANS_BF16, "bf16" },
    { HR_MEANS_FP16, "fp16" },
    { HR_MEANS_RATE, "learning_rate" },
    { HR_MEANS_DECAY, "weight_decay" },
    { HR_MEANS_BETA1, "adam_beta1" },
    { HR_MEANS_BETA2, "adam_beta2" },
    { HR_MEANS_EPS, "adam_epsilon" },
    { HR_MEANS_CLIP, "max_grad_norm" },
    { HR_MEANS_WARMUP, "warmup_steps" },
    { HR_MEANS_WARMUP_RATIO, "warmup_ratio" },
    { HR_MEANS_STEPS, "max_steps" },
    { HR_MEANS_SEED, "seed" },
    { HR_MEANS_DEEPSPEED, "deepspeed*" },
    { HR_MEANS_ATTENTION, "attn_implementation" },
    { HR_MEANS_FINDS_BATCH, "auto_find_batch_size" },
    { HR_MEANS_NOTHING, NULL },
};

/* The rest of TrainingArguments. */
static const hr_foreign_keys arguments[] = {
    { HR_MEANS_MICRO_BATCH, "per_device_train_batch_size" },
    { HR_MEANS_OPTIMIZER, "optim" },
    { HR_MEANS_SCHEDULE, "lr_scheduler_type" },
    { HR_MEANS_EPOCHS, "num_train_epochs" },
    { HR_MEANS_FUSED_LOSS, "use_liger_kernel" },
    { HR_MEANS_ATTENTION, "model_init_kwargs.attn_implementation" },
    { HR_MEANS_UNMODELED,
      "torch_compile_* torchdynamo torch_compile torch_empty_cache_steps label_smoothing_factor "
      "neftune_noise_alpha optim_args optim_target_modules* liger_kernel_config* "
      "parallelism_config* fsdp_min_num_params sharded_ddp* use_cache" },
    { HR_MEANS_NOTHING,
      "per_device_eval_batch_size gradient_checkpointing_kwargs* output_dir overwrite_output_dir "
      "do_* logging_* log_* save_* eval_strategy evaluation_strategy eval_steps eval_on_start "
      "eval_delay push_to_hub* hub_* report_to* run_name data_seed dataloader_* ddp_timeout "
      "remove_unused_columns disable_tqdm resume_from_checkpoint tf32 load_best_model_at_end "
      "metric_for_best_model greater_is_better label_names* group_by_length lr_scheduler_kwargs* "
      "project trackio_* include_* prediction_loss_only ignore_data_skip skip_memory_metrics "
      "local_rank past_index debug no_cuda use_cpu length_column_name ddp_backend "
      "ddp_find_unused_parameters ddp_bucket_cap_mb full_determinism average_tokens_across_devices "
      "restore_callback_states* accelerator_config* train_sampling_strategy bf16_full_eval "
      "fp16_full_eval jit_mode_eval use_ipex use_mps_device batch_eval_metrics "
      "eval_do_concat_batches eval_use_gather_object half_precision_backend fp16_backend "
      "fp16_opt_level mp_parameters tpu_* _n_gpu ddp_broadcast_buffers eval_accumulation_steps "
      "dispatch_batches split_batches use_legacy_prediction_loop mlflow_* wandb_* swanlab_*" },
    { HR_MEANS_NOTHING, NULL },
};

/* Of the model and its tokenizer, as TRL names them. */
static const hr_foreign_keys model[] = {
    { HR_MEANS_MODEL, "model_name_or_path" },
    { HR_MEANS_DTYPE, "torch_dtype dtype model_init_kwargs.torch_dtype model_init_kwargs.dtype" },
    { HR_MEANS_NOTHING, "model_revision trust_remote_code tokenizer_name* chat_template* dataset* "
                        "preprocessing_num_workers eos_token pad_token truncation_side" },
    { HR_MEANS_NOTHING, NULL },
};

/* Of an adapter and the weights below it, as TRL and axolotl name them. */
static const hr_foreign_keys adapter[] = {
    { HR_MEANS_4BIT, "load_in_4bit" },
    { HR_MEANS_8BIT, "load_in_8bit" },
    { HR_MEANS_RANK, "lora_r" },
    { HR_MEANS_ALPHA, "lora_alpha" },
    { HR_MEANS_ADAPTER_DROPOUT, "lora_dropout" },
    { HR_MEANS_TARGETS, "lora_target_modules*" },
    { HR_MEANS_SAVED, "lora_modules_to_save*" },
    { HR_MEANS_NOTHING, NULL },
};

/* Keys of FSDP that change what is in memory, those that do not, and those that are not modelled.
 * Any other is not read. */
static const hr_foreign_keys fsdp[] = {
    { HR_MEANS_FSDP, "fsdp fsdp[* fsdp_version fsdp_config.*version fsdp_config.*sharding_strategy "
                     "fsdp_config.*reshard_after_forward fsdp_config.*offload_params" },
    { HR_MEANS_FSDP_CHECKPOINTING, "fsdp_config.*activation_checkpointing" },
    { HR_MEANS_NOTHING,
      "fsdp_config.*state_dict_type fsdp_config.*auto_wrap_policy "
      "fsdp_config.*transformer_layer_cls_to_wrap fsdp_config.transformer_layer_cls_to_wrap[* "
      "fsdp_config.*cpu_ram_efficient_loading fsdp_config.*sync_module_states "
      "fsdp_config.*use_orig_params fsdp_config.*limit_all_gathers fsdp_config.*min_num_params "
      "fsdp_config.*backward_prefetch fsdp_config.*backward_prefetch_policy "
      "fsdp_final_state_dict_type fsdp_transformer_layer_cls_to_wrap" },
    { HR_MEANS_UNMODELED, "fsdp_config.*forward_prefetch fsdp_config.*mixed_precision_policy "
                          "fsdp_config.*cpu_offload" },
    { HR_MEANS_NOTHING, NULL },
};

/* block_size is of run_clm, max_length of scripts around the Trainer. */
static const hr_foreign_keys hf[] = {
    { HR_MEANS_LENGTH, "block_size max_length max_seq_length model_max_length" },
    { HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_hf = { { trainer, arguments, fsdp, model, hf }, 8, 1024, false };

static const hr_foreign_keys trl[] = {
    { HR_MEANS_LENGTH, "max_length max_seq_length" },
    { HR_MEANS_PACKING, "packing" },
    { HR_MEANS_LOSS, "loss_type" },
    { HR_MEANS_FUSED_LOSS, "use_liger_loss" },
    { HR_MEANS_PEFT, "use_peft" },
    { HR_MEANS_DOUBLE_QUANT, "use_bnb_nested_quant" },
    { HR_MEANS_GENERATES,
      "num_generations reward_funcs* reward_model_path use_vllm vllm_* scale_rewards "
      "reward_weights* num_ppo_epochs" },
    { HR_MEANS_TEACHER, "teacher_model_name_or_path" },
    { HR_MEANS_PREFERENCE,
      "beta max_prompt_length max_completion_length precompute_ref_log_probs reference_free" },
    { HR_MEANS_UNMODELED,
      "padding_free activation_offloading use_dora lora_target_parameters* model_adapter_name "
      "ref_adapter_name use_weighting use_logits_to_keep precompute_ref_batch_size" },
    { HR_MEANS_NOTHING,
      "bnb_4bit_quant_type lora_task_type packing_strategy completion_only_loss "
      "assistant_only_loss bnb_4bit_compute_dtype bnb_4bit_quant_storage use_rslora lora_bias "
      "eval_packing max_steps_per_epoch desirable_weight undesirable_weight loss_weights* "
      "rpo_alpha label_smoothing generate_during_eval f_divergence_type sync_ref_model ref_model_* "
      "disable_dropout truncation_mode label_pad_token_id padding_value tools shuffle_dataset "
      "pad_to_multiple_of" },
    { HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_trl = { { trainer, arguments, fsdp, model, adapter, trl },
                                    8,
                                    1024,
                                    true };

static const hr_foreign_keys factory[] = {
    { HR_MEANS_MODEL, "model" },
    { HR_MEANS_STAGE, "stage" },
    { HR_MEANS_ADAPTER, "finetuning_type" },
    { HR_MEANS_LENGTH, "cutoff_len" },
    { HR_MEANS_PACKING, "packing neat_packing" },
    { HR_MEANS_PURE_BF16, "pure_bf16" },
    { HR_MEANS_NO_CHECKPOINTING, "disable_gradient_checkpointing" },
    { HR_MEANS_FUSED_LOSS, "enable_liger_kernel" },
    { HR_MEANS_BITS, "quantization_bit" },
    { HR_MEANS_DOUBLE_QUANT, "double_quantization" },
    { HR_MEANS_RANK, "lora_rank" },
    { HR_MEANS_ALPHA, "lora_alpha" },
    { HR_MEANS_ADAPTER_DROPOUT, "lora_dropout" },
    { HR_MEANS_TARGETS, "lora_target*" },
    { HR_MEANS_SAVED, "additional_target*" },
    { HR_MEANS_FREEZE_LAYERS, "freeze_trainable_layers" },
    { HR_MEANS_FREEZE_MODULES, "freeze_trainable_modules*" },
    { HR_MEANS_FREEZE_EXTRA, "freeze_extra_modules*" },
    { HR_MEANS_PREFERENCE, "pref_beta pref_loss" },
    { HR_MEANS_ATTENTION, "flash_attn" },
    { HR_MEANS_BLOCKS, "use_badam" },
    { HR_MEANS_UNMODELED,
      "use_galore use_apollo use_muon use_adam_mini ref_model_quantization_bit use_dora "
      "use_unsloth use_unsloth_gc shift_attn mixture_of_depths use_llama_pro upcast_layernorm "
      "upcast_lmhead_output pissa_init additional_adapter adapter_name_or_path ref_model "
      "reward_model use_badam_* asft_* use_asft_loss freeze_language_model moe_aux_loss_coef "
      "fp8*" },
    { HR_MEANS_NOTHING,
      "quantization_type quantization_method template max_samples overwrite_cache plot_loss "
      "val_size eval_dataset mask_history train_on_prompt data_shared_file_system tokenized_path "
      "streaming buffer_size mix_strategy interleave_probs ignore_pad_token_for_loss cache_dir "
      "use_fast_tokenizer resize_vocab split_special_tokens new_special_tokens media_dir "
      "image_max_pixels image_min_pixels video_max_pixels video_min_pixels rope_scaling use_rslora "
      "loraplus_* pissa_convert create_new_adapter pref_ftx simpo_gamma kto_*_weight "
      "dpo_label_smoothing compute_accuracy enable_thinking low_cpu_mem_usage eval_num_beams "
      "predict_with_generate max_new_tokens quantization_device_map default_system galore_* "
      "apollo_* badam_* freeze_vision_tower freeze_multi_modal_projector" },
    { HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_llama_factory = { { trainer, arguments, fsdp, model, factory },
                                              8,
                                              2048,
                                              true };

static const hr_foreign_keys axolotl[] = {
    { HR_MEANS_NOTHING, "rl_beta" },
    { HR_MEANS_MODEL, "base_model" },
    { HR_MEANS_MICRO_BATCH, "micro_batch_size" },
    { HR_MEANS_LENGTH, "sequence_len" },
    { HR_MEANS_PACKING, "sample_packing" },
    { HR_MEANS_BF16, "bfloat16" },
    { HR_MEANS_FP16, "float16" },
    { HR_MEANS_OPTIMIZER, "optimizer" },
    { HR_MEANS_SCHEDULE, "lr_scheduler" },
    { HR_MEANS_EPOCHS, "num_epochs" },
    { HR_MEANS_ADAPTER, "adapter" },
    { HR_MEANS_ALL_LINEAR, "lora_target_linear" },
    { HR_MEANS_CHUNKED_LOSS, "chunked_cross_entropy" },
    { HR_MEANS_CUT_LOSS, "cut_cross_entropy" },
    { HR_MEANS_FUSED_LOSS, "liger_fused_linear_cross_entropy" },
    { HR_MEANS_DOUBLE_QUANT, "bnb_config_kwargs.bnb_4bit_use_double_quant" },
    { HR_MEANS_PREFERENCE_LOSS, "dpo_use_liger_kernel" },
    { HR_MEANS_STAGE, "rl" },
    { HR_MEANS_REWARDS, "reward_model process_reward_model" },
    { HR_MEANS_PLUGIN, "plugins*" },
    { HR_MEANS_FLASH, "flash_attention sdp_attention xformers_attention" },
    { HR_MEANS_UNMODELED,
      "activation_offloading unfrozen_parameters* lora_mlp_kernel lora_qkv_kernel lora_o_kernel "
      "lora_embedding_kernel liger_rope liger_rms_norm liger_layer_norm liger_glu_activation "
      "liger_swiglu liger_cross_entropy liger_use_token_scaling lisa_* galore_* relora* "
      "peft_use_dora peft_layer_replication* peft_layers_to_transform* lora_layers_to_transform* "
      "lora_target_parameters* peft_autocast_adapter_dtype torch_compile optim_args* "
      "optim_target_modules* neftune_noise_alpha sequence_parallel_degree context_parallel_size "
      "tensor_parallel_size tensor_parallel dp_shard_size dp_replicate_size expert_parallel_size "
      "selective_checkpointing layer_offloading fp8* qat* quantize_moe_experts moe_* unsloth_* "
      "shrink_embeddings embeddings_skip_upcast flash_optimum flash_attn_* "
      "overrides_of_model_config* overrides_of_model_kwargs* gptq* model_quantization_config* "
      "gpu_memory_limit max_memory* device_map low_rank_* mixture_* "
      "tiled_mlp* scaling_softmax reference_free precompute_ref_log_probs dpo_* rl_*" },
    { HR_MEANS_NOTHING,
      "kto_* orpo_alpha use_wandb pretraining_dataset* pad_to_sequence_len eval_batch_size "
      "remove_unused_columns use_swanlab swanlab_* model_type tokenizer_type tokenizer_* "
      "is_*_derived_model trust_remote_code strict datasets* test_datasets* dataset_* "
      "chat_template* val_set_size output_dir hub_* lora_model_dir lora_fan_in_fan_out "
      "eval_sample_packing wandb_* mlflow_* comet_* use_tensorboard train_on_inputs "
      "group_by_length tf32 gradient_checkpointing_kwargs* resume_from_checkpoint "
      "auto_resume_from_checkpoints logging_steps save_* saves_per_epoch evals_per_epoch "
      "eval_steps eval_strategy eval_table_size loss_watchdog_* special_tokens* tokens* "
      "shuffle_merged_datasets early_stopping_patience local_rank debug ddp_timeout loraplus_* "
      "peft_use_rslora sample_packing_* cosine_* min_lr message_* roles* default_system_message "
      "excess_length_strategy skip_prepare_dataset push_dataset_to_hub added_tokens_overrides* "
      "use_otel_metrics otel_* profiler_steps* revision_of_model do_bench_eval bench_dataset "
      "do_causal_lm_eval eval_causal_lm_metrics* eval_max_new_tokens include_tokens_per_second "
      "include_tkps dataloader_* ddp_bucket_cap_mb ddp_broadcast_buffers "
      "ddp_find_unused_parameters streaming* shuffle_* warmup_start_lr seed_workers "
      "pretrain_multipack_* plot_* logging_* hf_use_auth_token experiment_name low_cpu_mem_usage "
      "lora_on_cpu" },
    { HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_axolotl = { { trainer, adapter, fsdp, axolotl }, 1, 512, false };

static const hr_foreign_keys torchtune[] = {
    { HR_MEANS_COMPONENT, "model._component_" },
    { HR_MEANS_TARGETS, "model.lora_attn_modules*" },
    { HR_MEANS_MLP_TARGETS, "model.apply_lora_to_mlp" },
    { HR_MEANS_RANK, "model.lora_rank" },
    { HR_MEANS_ALPHA, "model.lora_alpha" },
    { HR_MEANS_ADAPTER_DROPOUT, "model.lora_dropout" },
    { HR_MEANS_LENGTH, "tokenizer.max_seq_len" },
    { HR_MEANS_PACKING, "dataset.packed" },
    { HR_MEANS_MICRO_BATCH, "batch_size" },
    { HR_MEANS_ACCUMULATION, "gradient_accumulation_steps" },
    { HR_MEANS_EPOCHS, "epochs" },
    { HR_MEANS_OPTIMIZER, "optimizer._component_" },
    { HR_MEANS_RATE, "optimizer.lr" },
    { HR_MEANS_DECAY, "optimizer.weight_decay" },
    { HR_MEANS_BETA1, "optimizer.betas[0]" },
    { HR_MEANS_BETA2, "optimizer.betas[1]" },
    { HR_MEANS_EPS, "optimizer.eps" },
    { HR_MEANS_FUSED_UPDATE, "optimizer.fused" },
    { HR_MEANS_IN_BACKWARD, "optimizer_in_bwd" },
    { HR_MEANS_GENERATES, "grpo_samples ppo_epochs" },
    { HR_MEANS_TEACHER, "teacher_model*" },
    { HR_MEANS_CLIP, "clip_grad_norm" },
    { HR_MEANS_SCHEDULE, "lr_scheduler._component_" },
    { HR_MEANS_WARMUP, "lr_scheduler.num_warmup_steps" },
    { HR_MEANS_LOSS, "loss._component_" },
    { HR_MEANS_DTYPE, "dtype" },
    { HR_MEANS_CHECKPOINTING, "enable_activation_checkpointing" },
    { HR_MEANS_SEED, "seed" },
    { HR_MEANS_CPU_OFFLOAD, "fsdp_cpu_offload" },
    { HR_MEANS_4BIT, "model.quantize_base" },
    { HR_MEANS_UNMODELED,
      "enable_activation_offloading model.apply_lora_to_output compile* model.use_dora "
      "tensor_parallel* data_parallel_* context_parallel* parallelize_plan* custom_sharded_layers* "
      "fsdp_reshard_after_forward ac_mode ac_option enable_fp8_training fp8_* quantizer* fsdp_* "
      "freeze_* use_distributed_state_dict* optimizer_kwargs* adapter_* expert_* model.image_* "
      "model.decoder_trainable model.encoder_trainable model.fusion_trainable" },
    { HR_MEANS_NOTHING,
      "max_steps_per_epoch batch_size_val ref_checkpointer* loss.beta loss.label_smoothing "
      "output_dir tokenizer* checkpointer* resume_from_checkpoint save_adapter_weights_only "
      "save_every_n_steps dataset* shuffle metric_logger* log_* profiler* device "
      "loss.num_output_chunks run_val_every_n_steps validation* enable_async_checkpointing "
      "save_last_epoch_only keep_last_* lr_scheduler* collate_fn num_workers left_pad_sequence "
      "model_type max_validation_batches save_checkpoints_interval last_epoch name entity project "
      "cudnn_deterministic_mode" },
    { HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_torchtune = { { torchtune }, 2, 2048, false };

static const hr_foreign_keys deepspeed[] = {
    { HR_MEANS_NOTHING, "zero_optimization.stage3_gather_16bit_weights_on_model_save" },
    { HR_MEANS_MICRO_BATCH, "train_micro_batch_size_per_gpu" },
    { HR_MEANS_GLOBAL_BATCH, "train_batch_size" },
    { HR_MEANS_ACCUMULATION, "gradient_accumulation_steps" },
    { HR_MEANS_CLIP, "gradient_clipping" },
    { HR_MEANS_BF16, "bf16.enabled" },
    { HR_MEANS_FP16, "fp16.enabled" },
    { HR_MEANS_OPTIMIZER, "optimizer.type" },
    { HR_MEANS_RATE, "optimizer.params.lr" },
    { HR_MEANS_DECAY, "optimizer.params.weight_decay" },
    { HR_MEANS_BETA1, "optimizer.params.betas[0]" },
    { HR_MEANS_BETA2, "optimizer.params.betas[1]" },
    { HR_MEANS_EPS, "optimizer.params.eps" },
    { HR_MEANS_SCHEDULE, "scheduler.type" },
    { HR_MEANS_WARMUP, "scheduler.params.warmup_num_steps" },
    { HR_MEANS_ZERO, "zero_optimization.stage" },
    { HR_MEANS_OFFLOAD_OPTIMIZER, "zero_optimization.offload_optimizer.device" },
    { HR_MEANS_OFFLOAD_WEIGHTS, "zero_optimization.offload_param.device" },
    { HR_MEANS_HALF_MASTERS, "bf16.bf16_master_weights_and_grads" },
    { HR_MEANS_HALF_STATES, "bf16.bf16_optimizer_states" },
    { HR_MEANS_BUFFER, "zero_optimization.*bucket_size zero_optimization.stage3_* "
                       "zero_optimization.sub_group_size" },
    { HR_MEANS_UNMODELED,
      "bf16.immediate_grad_update fp16.fp16_master_weights_and_grads "
      "zero_optimization.offload_optimizer.ratio zero_optimization.zero_hpz_partition_size "
      "zero_optimization.zero_quantized_* zero_optimization.mics_* activation_checkpointing* "
      "compile* data_types* torch_autocast* sequence_parallel_size tensor_parallel* pipeline* "
      "gradient_accumulation_dtype data_efficiency* elasticity*" },
    { HR_MEANS_NOTHING,
      "zero_optimization.offload_optimizer.pin_memory zero_optimization.offload_param.pin_memory "
      "zero_optimization.overlap_comm zero_optimization.contiguous_gradients "
      "zero_optimization.round_robin_gradients zero_allow_untested_optimizer "
      "bf16.check_grad_overflow fp16.* zero_optimization.reduce_scatter "
      "zero_optimization.allgather_partitions zero_optimization.ignore_unused_parameters "
      "zero_optimization.load_from_fp32_weights zero_optimization.memory_efficient_linear "
      "zero_optimization.gather_16bit_weights_on_model_save "
      "zero_optimization.offload_optimizer.buffer_count zero_optimization.offload_*.fast_init "
      "zero_optimization.offload_*.nvme_path zero_optimization.offload_optimizer.pipeline* "
      "communication_data_type prescale_gradients gradient_predivide_factor "
      "zero_force_ds_cpu_optimizer dump_state memory_breakdown flops_profiler* aio* checkpoint* "
      "optimizer.params.* scheduler.params.* steps_per_print wall_clock_breakdown comms_config* "
      "monitor_config* tensorboard* wandb* csv_monitor*" },
    { HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_deepspeed = { { deepspeed }, 1, 1024, false };

static const hr_foreign_keys mlx[] = {
    { HR_MEANS_MODEL, "model" },
    { HR_MEANS_ADAPTER, "fine_tune_type" },
    { HR_MEANS_STAGE, "training_mode" },
    { HR_MEANS_MICRO_BATCH, "batch_size" },
    { HR_MEANS_ACCUMULATION, "grad_accumulation_steps" },
    { HR_MEANS_LENGTH, "max_seq_length" },
    { HR_MEANS_CHECKPOINTING, "grad_checkpoint" },
    { HR_MEANS_OPTIMIZER, "optimizer" },
    { HR_MEANS_DECAY, "optimizer_config.*.weight_decay" },
    { HR_MEANS_RATE, "learning_rate" },
    { HR_MEANS_STEPS, "iters" },
    { HR_MEANS_SEED, "seed" },
    { HR_MEANS_RANK, "lora_parameters.rank" },
    { HR_MEANS_ALPHA, "lora_parameters.alpha" },
    { HR_MEANS_SCALE, "lora_parameters.scale" },
    { HR_MEANS_ADAPTER_DROPOUT, "lora_parameters.dropout" },
    { HR_MEANS_TARGETS, "lora_parameters.keys*" },
    { HR_MEANS_SCHEDULE, "lr_schedule.name" },
    { HR_MEANS_WARMUP, "lr_schedule.warmup" },
    { HR_MEANS_LAYERS, "num_layers" },
    { HR_MEANS_NOTHING,
      "lr_schedule.* train test test_batches data val_batches steps_per_report steps_per_eval "
      "resume_adapter_file adapter_path save_every mask_prompt wandb report_to prompt_feature "
      "chat_feature completion_feature text_feature project_name optimizer_config.* config "
      "hf_dataset*" },
    { HR_MEANS_NOTHING, NULL },
};

const hr_foreign hr_foreign_mlx = { { mlx }, 4, 2048, false };

const char *hr_meaning_key(hr_meaning meaning)
{
    static const char *const keys[] = {
        [HR_MEANS_MICRO_BATCH] = "memory.micro_batch",
        [HR_MEANS_ACCUMULATION] = "train.batch",
        [HR_MEANS_CHECKPOINTING] = "memory.recompute",
        [HR_MEANS_BF16] = "train.dtype",
        [HR_MEANS_FP16] = "train.dtype",
        [HR_MEANS_OPTIMIZER] = "train.optimizer.kind",
        [HR_MEANS_RATE] = "train.optimizer.lr",
        [HR_MEANS_DECAY] = "train.optimizer.weight_decay",
        [HR_MEANS_BETA1] = "train.optimizer.beta1",
        [HR_MEANS_BETA2] = "train.optimizer.beta2",
        [HR_MEANS_EPS] = "train.optimizer.eps",
        [HR_MEANS_CLIP] = "train.optimizer.clip",
        [HR_MEANS_SCHEDULE] = "train.schedule.kind",
        [HR_MEANS_WARMUP] = "train.schedule.warmup_steps",
        [HR_MEANS_WARMUP_RATIO] = "train.schedule.warmup_steps",
        [HR_MEANS_EPOCHS] = "train.epochs",
        [HR_MEANS_STEPS] = "train.steps",
        [HR_MEANS_SEED] = "train.seed",
        [HR_MEANS_FUSED_LOSS] = "memory.loss_chunk",
        [HR_MEANS_FSDP_CHECKPOINTING] = "memory.recompute",
        [HR_MEANS_MODEL] = "model.from",
        [HR_MEANS_DTYPE] = "train.dtype",
        [HR_MEANS_LENGTH] = "train.seq_len",
        [HR_MEANS_LOSS] = "memory.loss_chunk",
        [HR_MEANS_4BIT] = "model.weights",
        [HR_MEANS_8BIT] = "model.weights",
        [HR_MEANS_PURE_BF16] = "train.dtype",
        [HR_MEANS_NO_CHECKPOINTING] = "memory.recompute",
        [HR_MEANS_BITS] = "model.weights",
        [HR_MEANS_FREEZE_LAYERS] = "train.freeze",
        [HR_MEANS_FREEZE_MODULES] = "train.freeze",
        [HR_MEANS_FREEZE_EXTRA] = "train.freeze",
        [HR_MEANS_CHUNKED_LOSS] = "memory.loss_chunk",
        [HR_MEANS_CUT_LOSS] = "memory.loss_chunk",
        [HR_MEANS_PREFERENCE_LOSS] = "memory.loss_chunk",
        [HR_MEANS_COMPONENT] = "model.from",
        [HR_MEANS_GLOBAL_BATCH] = "train.batch",
        [HR_MEANS_OFFLOAD_OPTIMIZER] = "memory.moments",
        [HR_MEANS_LAYERS] = "train.freeze",
        [HR_MEANS_REWARDS] = NULL, /* the last meaning */
    };
    return keys[meaning];
}
