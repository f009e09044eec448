/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_layers.c - lists of layer types, in both directions. */
#include "hf/hf_layers.h"

#include <string.h>

#include "model/layer_types.h"

enum { LAYER_TYPES, ATTENTION_TYPES, ATTENTION_LAYERS };

static const char *const options[HR_HF_LISTS] = { [LAYER_TYPES] = "layer_types",
                                                  [ATTENTION_TYPES] = "attention_types",
                                                  [ATTENTION_LAYERS] = "attention_layers" };

/* The words of layer_types, and of the other two. */
static const char *const words[2][2] = {
    { [HR_LAYER_FULL] = "full_attention", [HR_LAYER_SLIDING] = "sliding_attention" },
    { [HR_LAYER_FULL] = "global", [HR_LAYER_SLIDING] = "local" }
};

int32_t hr_hf_layers_list(const char *name)
{
    int32_t list = 0;
    while (list < HR_HF_LISTS && strcmp(name, options[list])) list++;
    return list;
}

/* ---- reading */

static const char not_a_list[] = "is not a list of types of layers";
static const char too_long[] = "lists more than 4,096 layers";

static const char *add_word(const hr_json *json, hr_hf_layers *layers)
{
    if (layers->count == HR_HF_LAYERS_MAX) return too_long;
    for (int32_t w = 0; w < 2; w++)
        for (uint8_t type = 0; type < 2; type++) {
            if (!hr_json_is(json, words[w][type])) continue;
            layers->types[layers->count++] = type;
            return NULL;
        }
    return "has a type of layer that is not supported; full_attention, sliding_attention, global "
           "and local are";
}

/* Reads words up to the closing bracket. */
static const char *read_words(hr_json *json, hr_json_kind kind, hr_hf_layers *layers)
{
    for (; kind == HR_JSON_STRING; kind = hr_json_next(json)) {
        const char *problem = add_word(json, layers);
        if (problem) return problem;
    }
    return kind == HR_JSON_CLOSE ? NULL : not_a_list;
}

/* Reads [[words], times] after its first bracket. */
static const char *read_repeated(hr_json *json, hr_hf_layers *layers)
{
    const int64_t first = layers->count;
    int64_t times = 0;
    if (hr_json_next(json) != HR_JSON_ARRAY) return not_a_list;
    const char *problem = read_words(json, hr_json_next(json), layers);
    if (problem) return problem;
    const int64_t period = layers->count - first;
    if (hr_json_next(json) != HR_JSON_NUMBER || !hr_json_integer(json, &times)) return not_a_list;
    if (hr_json_next(json) != HR_JSON_CLOSE || times < 0) return not_a_list;
    if (period && times > (HR_HF_LAYERS_MAX - first) / period) return too_long;
    layers->count = first + period * times;
    for (int64_t l = first + period; l < layers->count; l++)
        layers->types[l] = layers->types[l - period];
    return NULL;
}

const char *hr_hf_layers_read(hr_json *json, hr_hf_layers *layers)
{
    hr_json_kind kind = hr_json_next(json);
    if (kind != HR_JSON_ARRAY) return read_words(json, kind, layers);
    for (; kind == HR_JSON_ARRAY; kind = hr_json_next(json)) {
        const char *problem = read_repeated(json, layers);
        if (problem) return problem;
    }
    return kind == HR_JSON_CLOSE ? NULL : not_a_list;
}

/* ---- applying */

/* [[["global", "local"], 12]] in transformers. */
void hr_hf_layers_default(hr_hf_layers *lists)
{
    enum { LAYERS = 24 };
    hr_hf_layers *layers = &lists[ATTENTION_TYPES];
    if (layers->count || lists[ATTENTION_LAYERS].count) return;
    for (int32_t l = 0; l < LAYERS; l++)
        layers->types[l] = l % 2 ? HR_LAYER_SLIDING : HR_LAYER_FULL;
    layers->count = LAYERS;
}

static int64_t sliding_of(const hr_hf_layers *layers)
{
    int64_t count = 0;
    for (int64_t l = 0; l < layers->count; l++) count += layers->types[l] == HR_LAYER_SLIDING;
    return count;
}

static bool is_equal(const hr_hf_layers *a, const hr_hf_layers *b)
{
    return a->count == b->count && !memcmp(a->types, b->types, (size_t)a->count);
}

/* The layers that no list names. */
static void derive(const hr_hf_window *window, const hr_config *config, hr_hf_layers *layers)
{
    const bool slides = config->model.attention.sliding_window &&
                        (!window->has_switch || window->is_on);
    layers->count = config->model.n_layers;
    for (int64_t l = 0; l < layers->count; l++)
        layers->types[l] = slides && l >= window->max_window_layers ? HR_LAYER_SLIDING
                                                                    : HR_LAYER_FULL;
}

hr_status hr_hf_layers_take(const hr_hf_layers *lists, const hr_hf_window *window,
                            hr_config *config, hr_error *err)
{
    int64_t *const sliding_window = &config->model.attention.sliding_window;
    hr_hf_layers layers = { .count = 0 };
    int32_t named = 0;
    while (named < HR_HF_LISTS && !lists[named].count) named++;
    if (named < HR_HF_LISTS) layers = lists[named];
    else derive(window, config, &layers);
    for (int32_t i = named + 1; i < HR_HF_LISTS; i++)
        if (lists[i].count && !is_equal(&layers, &lists[i]))
            return hr_fail(err, HR_USAGE, "\"%s\" and \"%s\" are different lists of layers",
                           options[named], options[i]);
    if (layers.count != config->model.n_layers)
        return hr_fail(err, HR_USAGE, "\"%s\" has %lld entries for %lld layers", options[named],
                       (long long)layers.count, (long long)config->model.n_layers);
    const int64_t sliding = sliding_of(&layers);
    if (sliding && window->has_switch && !window->is_on)
        return hr_fail(
            err, HR_USAGE,
            "\"layer_types\" has sliding_attention, but \"use_sliding_window\" is false");
    if (sliding && !*sliding_window)
        return hr_fail(err, HR_USAGE, "\"%s\" has layers with a sliding window, but there is none",
                       options[named]);
    if (!sliding) *sliding_window = 0;
    if (!sliding || sliding == layers.count) return HR_OK;
    return hr_layer_types_set(config, layers.types, layers.count, err);
}

/* ---- writing */

/* Layers from `first` on of one type. */
static int64_t run_of(const hr_config *config, int64_t first)
{
    int64_t next = first;
    while (next < config->model.n_layers &&
           hr_layer_type(config, next) == hr_layer_type(config, first))
        next++;
    return next - first;
}

void hr_hf_layers_put_qwen(const hr_config *config, hr_writer *out)
{
    const int64_t L = config->model.n_layers;
    const bool window = config->model.attention.sliding_window;
    const int64_t full = hr_layer_type(config, 0) == HR_LAYER_FULL ? run_of(config, 0) : 0;
    hr_put(out, "  \"use_sliding_window\": %s,\n", window ? "true" : "false");
    if (!window) return;
    hr_put(out, "  \"max_window_layers\": %lld,\n", (long long)full);
    if (full + run_of(config, full) == L) return;
    hr_put(out, "  \"layer_types\": [");
    for (int64_t l = 0; l < L; l++)
        hr_put(out, "%s\"%s\"", l ? ", " : "", words[0][hr_layer_type(config, l)]);
    hr_put(out, "],\n");
}

/* Runs of equal layers; or two types in turn, if each pair is whole. */
void hr_hf_layers_put_neo(const hr_config *config, hr_writer *out)
{
    const int64_t L = config->model.n_layers;
    bool alternates = L % 2 == 0 && hr_layer_type(config, 0) != hr_layer_type(config, 1);
    for (int64_t l = 2; l < L; l++)
        alternates &= hr_layer_type(config, l) == hr_layer_type(config, l - 2);
    hr_put(out, "  \"attention_types\": [");
    if (alternates)
        hr_put(out, "[[\"%s\", \"%s\"], %lld]", words[1][hr_layer_type(config, 0)],
               words[1][hr_layer_type(config, 1)], (long long)(L / 2));
    for (int64_t l = 0, run; l < L && !alternates; l += run) {
        run = run_of(config, l);
        hr_put(out, "%s[[\"%s\"], %lld]", l ? ", " : "", words[1][hr_layer_type(config, l)],
               (long long)run);
    }
    hr_put(out, "],\n");
}
