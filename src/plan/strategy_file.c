/* SPDX-License-Identifier: Apache-2.0 */
/* plan/strategy_file.c - prints a strategy; reads one from the events of libyaml.
 *
 * A file is a mapping that contains a list of mappings that each contain a list. The reader is a
 * state machine with one state per level. */
#include "plan/strategy_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "config/yaml_events.h"
#include "model/layer_schema.h"

enum { WORD_BYTES = 64 };

/* Bit 0 of a set stands for no value; while reading it marks a layer as listed. */
enum { COVERED = 1u << HR_INTERMEDIATE_NONE };

/* ---- writing */

/* "mlp_tile: full                     # tokens per MLP tile" */
static void put_key(hr_writer *writer, const char *key, const char *value, const char *meaning)
{
    enum { KEY_COLUMNS = 35 }; /* of the longest pair, with two blanks */
    const int columns = KEY_COLUMNS - (int)strlen(key) - 1;
    hr_put(writer, "%s:%s%-*s# %s\n", key, *value ? " " : "", columns - (*value != 0), value,
           meaning);
}

static void put_cut(hr_writer *writer, const char *key, int64_t cut, const char *meaning)
{
    char value[HR_COUNT_BYTES];
    snprintf(value, sizeof value, "%lld", (long long)cut);
    put_key(writer, key, cut ? value : "full", meaning);
}

static void put_layers(hr_writer *writer, int32_t first, int32_t last, uint32_t kept)
{
    const char *between = "";
    if (first == last) hr_put(writer, "  - layers: %d\n    keep: [", first);
    else hr_put(writer, "  - layers: %d-%d\n    keep: [", first, last);
    for (int32_t i = 1; i < HR_INTERMEDIATES; i++) {
        if (!(kept >> i & 1)) continue;
        hr_put(writer, "%s%s", between, hr_intermediate_name((hr_intermediate)i));
        between = ", ";
    }
    hr_put(writer, "]\n");
}

void hr_strategy_print(const hr_config *config, const hr_strategy *strategy, hr_writer *writer)
{
    const hr_layer_schema schema = hr_layer_schema_of(config);
    const hr_intermediates *recompute_set = strategy->recompute_set;
    put_cut(writer, "micro_batch", strategy->micro_batch,
            "sequences per forward/backward pass; full: the batch");
    put_cut(writer, "loss_chunk", strategy->loss_chunk,
            "tokens per chunk of logits and loss; full: the micro-batch");
    put_cut(writer, "mlp_tile", strategy->mlp_tile, "tokens per MLP tile; full: the micro-batch");
    put_cut(writer, "attention_tile", strategy->attention_tile,
            "tokens per attention tile; full: the micro-batch");
    put_key(writer, "backward_order", strategy->dw_first ? "weight_grad_first" : "input_grad_first",
            "of the two gradients of a linear layer");
    put_key(writer, "gradient_release", strategy->consume ? "yes" : "no",
            "yes: update each weight during backward");
    put_key(writer, "reorder", strategy->reorder ? "yes" : "no",
            "yes: move operations to lower the peak");
    put_key(writer, "layers", "", "activations to keep; backward recomputes the others");
    for (int32_t first = 0, last; first < strategy->layer_count; first = last + 1) {
        for (last = first;
             last + 1 < strategy->layer_count && recompute_set[last + 1] == recompute_set[first];)
            last++;
        put_layers(writer, first, last, schema.present & ~(uint32_t)recompute_set[first]);
    }
}

/* ---- reading */

typedef enum { PLACE_BEFORE, PLACE_ROOT, PLACE_LIST, PLACE_ENTRY, PLACE_KEEP, PLACE_AFTER } place;

typedef enum {
    KEY_MICRO_BATCH,
    KEY_LOSS_CHUNK,
    KEY_MLP_TILE,
    KEY_ATTENTION_TILE,
    KEY_ORDER,
    KEY_GRADIENTS,
    KEY_REORDER,
    KEY_LAYERS,
    KEYS
} root_key;

static const char *const keys[KEYS] = { "micro_batch",    "loss_chunk",     "mlp_tile",
                                        "attention_tile", "backward_order", "gradient_release",
                                        "reorder",        "layers" };

/* Words of files from earlier versions, and their present forms. */
static const char *const old_words[][2] = {
    { "order", "backward_order" },
    { "gradients", "gradient_release" },
    { "dw_first", "weight_grad_first" },
    { "dx_first", "input_grad_first" },
    { "consumed", "yes" },
    { "kept", "no" },
    { "whole", "full" },
    { "mid", "mlp_input" },
};

static const char *present_word(const char *word)
{
    for (size_t i = 0; i < sizeof old_words / sizeof *old_words; i++)
        if (!strcmp(word, old_words[i][0])) return old_words[i][1];
    return word;
}

typedef struct {
    const hr_config *config;
    hr_layer_schema schema;
    hr_strategy strategy;
    hr_error *err;
    const char *path;
    int64_t line;
    place at;
    int32_t key;    /* root_key, or in an entry KEY_LAYERS or KEYS (keep); HR_NONE: a key is next */
    uint32_t given; /* root keys read so far */
    int64_t first, last; /* layers of the entry; last HR_NONE: not read yet */
    bool keeps;          /* the list of the entry was read */
    uint32_t kept;       /* in the entry */
} reader;

/* Error "path:line: sentence". A long path is cut at the front. */
static hr_status fail_at(const reader *r, const char *format, ...) HR_PRINTF(2, 3);
static hr_status fail_at(const reader *r, const char *format, ...)
{
    enum { SENTENCE_BYTES = 256 };
    char sentence[SENTENCE_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof sentence, format, list);
    va_end(list);
    return hr_yaml_fail(r->path, r->line, sentence, r->err);
}

static hr_status fail_form(const reader *r)
{
    return fail_at(
        r,
        "a strategy is a mapping of micro_batch, loss_chunk, mlp_tile, "
        "attention_tile, backward_order, gradient_release, reorder and layers, a list of { layers, "
        "keep: [...] }");
}

static hr_status take_cut(reader *r, const char *word, int64_t *cut)
{
    int64_t value = 0;
    if (strcmp(word, "full") && (!hr_integer_parse(word, &value) || value < 1))
        return fail_at(r, "it takes an integer from 1 or the word full, not %s", word);
    *cut = value;
    return HR_OK;
}

static hr_status take_root_value(reader *r, const char *word)
{
    hr_strategy *s = &r->strategy;
    int64_t *const cuts[] = { [KEY_MICRO_BATCH] = &s->micro_batch,
                              [KEY_LOSS_CHUNK] = &s->loss_chunk,
                              [KEY_MLP_TILE] = &s->mlp_tile,
                              [KEY_ATTENTION_TILE] = &s->attention_tile };
    const int32_t key = r->key;
    r->key = HR_NONE;
    if (key == KEY_LAYERS) return fail_form(r);
    if (key == KEY_GRADIENTS) {
        s->consume = !strcmp(word, "yes");
        if (s->consume || !strcmp(word, "no")) return HR_OK;
        return fail_at(r, "gradient_release is yes or no, not %s", word);
    }
    if (key == KEY_REORDER) {
        s->reorder = !strcmp(word, "yes");
        if (s->reorder || !strcmp(word, "no")) return HR_OK;
        return fail_at(r, "reorder is yes or no, not %s", word);
    }
    if (key != KEY_ORDER) return take_cut(r, word, cuts[key]);
    s->dw_first = !strcmp(word, "weight_grad_first");
    if (s->dw_first || !strcmp(word, "input_grad_first")) return HR_OK;
    return fail_at(r, "backward_order is weight_grad_first or input_grad_first, not %s", word);
}

static hr_status take_root_key(reader *r, const char *word)
{
    for (int32_t k = 0; k < KEYS; k++) {
        if (strcmp(word, keys[k])) continue;
        if (r->given >> k & 1) return fail_at(r, "%s is given twice", word);
        r->given |= 1u << k;
        r->key = k;
        return HR_OK;
    }
    return fail_at(r, "%s is not a key of a strategy", word);
}

static hr_status take_entry_key(reader *r, const char *word)
{
    const bool layers = !strcmp(word, "layers");
    if (!layers && strcmp(word, "keep"))
        return fail_at(r, "%s is not a key of an entry of layers: layers and keep are", word);
    if (layers ? r->last != HR_NONE : r->keeps) return fail_at(r, "%s is given twice", word);
    r->key = layers ? KEY_LAYERS : KEYS;
    return HR_OK;
}

/* Reads "3" or "0-5". */
static hr_status take_range(reader *r, const char *word)
{
    char first[WORD_BYTES];
    const char *dash = strchr(word, '-');
    snprintf(first, sizeof first, "%.*s", dash ? (int)(dash - word) : WORD_BYTES - 1, word);
    r->key = HR_NONE;
    if (!hr_integer_parse(first, &r->first) ||
        !hr_integer_parse(dash ? dash + 1 : first, &r->last) || r->first < 0 || r->last < r->first)
        return fail_at(r, "layers takes a layer or a range such as 0-5, not %s", word);
    if (r->last < r->config->model.n_layers) return HR_OK;
    return fail_at(r, "there is no layer %lld: model.n_layers is %lld", (long long)r->last,
                   (long long)r->config->model.n_layers);
}

static hr_status take_kept(reader *r, const char *word)
{
    if (!strcmp(word, "qkv")) return fail_at(r, "write q, k, v instead of qkv");
    for (int32_t i = 1; i < HR_INTERMEDIATES; i++) {
        if (strcmp(word, hr_intermediate_name((hr_intermediate)i))) continue;
        if (!(r->schema.present >> i & 1))
            return fail_at(r, "a layer of this model has no %s", word);
        if (r->kept >> i & 1) return fail_at(r, "%s is given twice", word);
        r->kept |= 1u << i;
        return HR_OK;
    }
    return fail_at(r,
                   "%s is no activation of a layer: norm, q, k, v, attention, mlp_input, gate, up "
                   "and activation are",
                   word);
}

/* Checks that no buffer is kept in part. */
static hr_status check_closed(const reader *r)
{
    for (int32_t p = 0; p < r->schema.part_count; p++) {
        const uint32_t part = r->schema.parts[p], kept = r->kept & part;
        if (kept == 0 || kept == part) continue;
        char all[WORD_BYTES] = "";
        hr_writer writer = { all, sizeof all };
        for (int32_t i = 1; i < HR_INTERMEDIATES; i++)
            if (part >> i & 1)
                hr_put(&writer, "%s%s", writer.used ? ", " : "",
                       hr_intermediate_name((hr_intermediate)i));
        return fail_at(r, "%s are one buffer in this model: keep all of them or none", all);
    }
    return HR_OK;
}

static hr_status take_scalar(reader *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    char word[WORD_BYTES];
    if (event->data.scalar.anchor || event->data.scalar.tag) return fail_form(r);
    if (strlen(text) != event->data.scalar.length) return fail_form(r);
    snprintf(word, sizeof word, "%s", text);
    for (char *c = word; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    const char *now = present_word(word);
    switch (r->at) {
    case PLACE_ROOT: return r->key == HR_NONE ? take_root_key(r, now) : take_root_value(r, now);
    case PLACE_ENTRY:
        if (r->key == HR_NONE) return take_entry_key(r, word);
        return r->key == KEY_LAYERS ? take_range(r, word) : fail_form(r);
    case PLACE_KEEP: return take_kept(r, now);
    default: return fail_form(r);
    }
}

static hr_status close_entry(reader *r)
{
    if (r->key != HR_NONE || r->last == HR_NONE || !r->keeps)
        return fail_at(r, "an entry needs both layers and keep");
    const hr_status status = check_closed(r);
    if (status != HR_OK) return status;
    for (int64_t l = r->first; l <= r->last; l++) {
        hr_intermediates *recompute_set = &r->strategy.recompute_set[l];
        if (*recompute_set & COVERED) return fail_at(r, "layer %lld is given twice", (long long)l);
        *recompute_set = (hr_intermediates)(COVERED | ~r->kept);
    }
    return HR_OK;
}

static hr_status open_mapping(reader *r, const yaml_event_t *event)
{
    if (event->data.mapping_start.anchor || event->data.mapping_start.tag) return fail_form(r);
    if (r->at != PLACE_BEFORE && r->at != PLACE_LIST) return fail_form(r);
    r->at = r->at == PLACE_BEFORE ? PLACE_ROOT : PLACE_ENTRY;
    r->key = r->last = HR_NONE;
    r->keeps = false;
    r->kept = 0;
    return HR_OK;
}

static hr_status open_list(reader *r, const yaml_event_t *event)
{
    if (event->data.sequence_start.anchor || event->data.sequence_start.tag) return fail_form(r);
    if (r->at == PLACE_ROOT && r->key == KEY_LAYERS) {
        r->at = PLACE_LIST;
        return HR_OK;
    }
    if (r->at != PLACE_ENTRY || r->key != KEYS) return fail_form(r);
    r->at = PLACE_KEEP;
    r->keeps = true;
    return HR_OK;
}

static hr_status take_event(void *context, const yaml_event_t *event, int64_t line)
{
    reader *r = context;
    hr_status status = HR_OK;
    r->line = line;
    switch (event->type) {
    case YAML_ALIAS_EVENT: return fail_form(r);
    case YAML_DOCUMENT_START_EVENT: return r->at == PLACE_BEFORE ? HR_OK : fail_form(r);
    case YAML_SCALAR_EVENT: return take_scalar(r, event);
    case YAML_MAPPING_START_EVENT: return open_mapping(r, event);
    case YAML_SEQUENCE_START_EVENT: return open_list(r, event);
    case YAML_MAPPING_END_EVENT:
        if (r->at == PLACE_ENTRY) status = close_entry(r);
        r->at = r->at == PLACE_ENTRY ? PLACE_LIST : PLACE_AFTER;
        return status;
    case YAML_SEQUENCE_END_EVENT:
        r->at = r->at == PLACE_KEEP ? PLACE_ENTRY : PLACE_ROOT;
        r->key = HR_NONE;
        return HR_OK;
    case YAML_STREAM_END_EVENT: return r->at == PLACE_AFTER ? HR_OK : fail_form(r);
    default: return HR_OK;
    }
}

/* Checks that every layer is listed and that the strategy is legal for the recipe. */
static hr_status finish(reader *r)
{
    hr_strategy *s = &r->strategy;
    hr_error inner;
    for (int32_t l = 0; l < s->layer_count; l++)
        if (!(s->recompute_set[l] & COVERED))
            return hr_fail(r->err, HR_USAGE,
                           "%s: layer %d has no entry; each of the %d layers needs one", r->path, l,
                           s->layer_count);
    if (hr_strategy_check(r->config, s, &inner) != HR_OK)
        return hr_fail(r->err, HR_USAGE, "%s: %s", r->path, inner.message);
    hr_strategy_canonical(r->config, s);
    return HR_OK;
}

hr_status hr_strategy_read(const hr_config *config, const char *path, hr_strategy *strategy,
                           hr_error *err)
{
    reader r = { .config = config,
                 .schema = hr_layer_schema_of(config),
                 .err = err,
                 .path = path,
                 .key = HR_NONE };
    r.strategy = (hr_strategy){ .dw_first = true,
                                .layer_count = (int32_t)config->model.n_layers,
                                .recompute_set = strategy->recompute_set };
    memset(strategy->recompute_set, 0,
           (size_t)r.strategy.layer_count * sizeof *strategy->recompute_set);
    hr_status status = hr_yaml_read(path, "strategy", take_event, &r, err);
    if (status == HR_OK) status = finish(&r);
    if (status == HR_OK) *strategy = r.strategy;
    return status;
}
