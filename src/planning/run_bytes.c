/* SPDX-License-Identifier: Apache-2.0 */
/* planning/run_bytes.c - adds up what the objects of a run say that they need. */
#include "planning/run_bytes.h"

#include "base/checked.h"
#include "checkpoint/base_files.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/weights_stream.h"
#include "data/sample.h"
#include "data/texts.h"
#include "dev/executor.h"
#include "dev/transfer.h"
#include "headroom/stages.h"
#include "model/family.h"
#include "model/layer_schema.h"
#include "model/optimizer.h"
#include "sections/assemble.h"
#include "telemetry/log.h"
#include "text/batch.h"

/* The most that the inputs of layers take in the file: of one pass, all of the batch. */
static int64_t spilled_bytes(const hr_config *config)
{
    const int64_t row = config->model.d_model * hr_dtype_bytes(hr_config_dtype(config));
    return config->model.n_layers * hr_round_up(config->train.batch * config->train.seq_len * row,
                                                hr_space_align(HR_SPACE_FILE));
}

/* Of the file with the states and activations that are not in memory. */
static int64_t file_bytes(const hr_config *config, const hr_state *states, int32_t count)
{
    const hr_layer_size size = hr_layer_size_of(config);
    const int64_t elements = size.elements * config->model.n_layers + size.rest_elements;
    const int64_t blocks = hr_model_limits_of(config).params * hr_space_align(HR_SPACE_FILE);
    int64_t bytes = 0;
    for (int32_t i = 0; i < count; i++)
        if (states[i].space == HR_SPACE_FILE)
            bytes += elements * hr_dtype_bytes((hr_dtype)states[i].dtype) + blocks;
    if (config->memory.spill == HR_SPILL_AUTO) bytes += spilled_bytes(config);
    return bytes ? hr_transfer_file_bytes(bytes) : 0;
}

/* Uses the maxima over all strategies of the model, so that process memory differs only by the
 * arena. Includes the checkpoint writer even without train.out, so that a run needs the bytes of
 * its plan either way. */
int64_t hr_run_bytes(const hr_config *config)
{
    const hr_model_limits limits = hr_model_limits_of(config);
    const hr_program most = { .step_count = limits.steps,
                              .tensor_count = limits.tensors,
                              .loop_count = limits.loops,
                              .param_count = limits.params };
    hr_state states[HR_STATES_MAX];
    const int32_t count = hr_config_states(config, states), kinds = HR_KEPT_STATES + count;
    const int64_t alignment = 8 * 64;
    const bool adapts = config->train.adapter.kind != HR_ADAPTER_NONE;
    const int64_t base = config->model.from[0] && adapts ? hr_base_files_bytes() : 0;
    const int64_t source = config->model.from[0] ? hr_weights_in_bytes(&most) + base : 0;
    const int64_t adapters = config->train.adapter.from[0] ? hr_weights_in_bytes(&most) : 0;
    const int64_t stream = config->memory.weights == HR_PLACE_FILE
                               ? hr_weights_stream_bytes(hr_weights_width_most(config))
                               : 0;
    hr_stages stages;
    const bool staged = hr_config_stages(config, &stages, NULL) == HR_OK && stages.count > 0;
    const int64_t mixtures = staged ? stages.count * (int64_t)sizeof(hr_batch_mixture) + 64 : 0;
    return mixtures + hr_executor_bytes(&most) + source + adapters + stream + most.tensor_count +
           hr_batches_bytes(hr_texts_shards(config)) + hr_batches_bytes(1) +
           hr_vocabulary_bytes(hr_config_tokenizer(config), config->model.vocab_size) +
           hr_sample_bytes(config) + hr_weights_text_bytes(&most) + hr_log_bytes() +
           hr_checkpoint_writer_bytes() + kinds * hr_weights_in_kept_bytes(&most) +
           file_bytes(config, states, count) + alignment;
}
