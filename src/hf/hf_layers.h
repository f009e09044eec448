/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_layers.h - which layers have the sliding window, in config.json.
 *
 *     qwen2, qwen3  use_sliding_window, sliding_window and max_window_layers: the layers from this
 *                   index on; or layer_types, a list of full_attention and sliding_attention
 *     gpt_neo       window_size and attention_types: [[["global", "local"], 12]] is 24 layers;
 *                   attention_layers, a list of these words, must agree with it */
#ifndef HR_HF_HF_LAYERS_H
#define HR_HF_HF_LAYERS_H

#include "base/json.h"
#include "base/writer.h"
#include "config/config.h"

enum { HR_HF_LAYERS_MAX = 4096, HR_HF_LISTS = 3 };

/* The type (model/layer_types.h) of each layer in one list. */
typedef struct {
    uint8_t types[HR_HF_LAYERS_MAX];
    int64_t count; /* 0: the list is absent */
} hr_hf_layers;

/* Index of the list that an option holds; HR_HF_LISTS: it holds none. */
int32_t hr_hf_layers_list(const char *name);

/* Reads a list after its opening bracket. Returns null, or what is wrong with it; json->problem
 * says more if it is not JSON. */
const char *hr_hf_layers_read(hr_json *json, hr_hf_layers *layers);

/* Fills in the list of gpt_neo, if it is absent. */
void hr_hf_layers_default(hr_hf_layers *lists);

/* Options beside the lists. */
typedef struct {
    bool has_switch, is_on;    /* use_sliding_window */
    int64_t max_window_layers; /* full layers before the sliding ones */
} hr_hf_window;

/* Sets the window and the layers that have it. In: model.n_layers, and the window of the folder.
 *
 *   lists  [HR_HF_LISTS]
 *
 * Errors   USAGE  lists that contradict each other, the window or the number of layers. */
HR_MUST_CHECK hr_status hr_hf_layers_take(const hr_hf_layers *lists, const hr_hf_window *window,
                                          hr_config *config, hr_error *err);

/* Writes the options of qwen2 and qwen3, and those of gpt_neo. */
void hr_hf_layers_put_qwen(const hr_config *config, hr_writer *out);
void hr_hf_layers_put_neo(const hr_config *config, hr_writer *out);

#endif
