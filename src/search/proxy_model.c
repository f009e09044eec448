/* SPDX-License-Identifier: Apache-2.0 */
/* search/proxy_model.c - builds small proxy models and measures their live bytes and time. */
#include "search/proxy_model.h"

#include <string.h>

#include "base/checked.h"
#include "plan/compile.h"
#include "plan/lifetimes.h"
#include "plan/transfers.h"
#include "search/proxy_bounds.h"
#include "search/proxy_cache.h"
#include "search/proxy_census.h"
#include "sections/assemble.h"

/* Bytes of a program and of the tables that building it needs. */
static int64_t model_bytes(const hr_config *small)
{
    const hr_model_limits limits = hr_model_limits_of(small);
    return limits.steps * (int64_t)sizeof(hr_step) +
           limits.tensors * (int64_t)(sizeof(hr_tensor) + 32) +
           limits.loops * (int64_t)sizeof(hr_loop) + limits.params * (int64_t)sizeof(hr_param) +
           8 * 64;
}

/* The kinds of layers first to last - 1, in the order in which they occur. Returns how many. */
static int32_t list_kinds(const hr_config *config, int64_t first, int64_t last,
                          uint8_t kinds[HR_LAYER_KINDS_MOST])
{
    int32_t count = 0;
    for (int64_t l = first; l < last; l++) {
        const int32_t kind = hr_family_kind(config, l);
        int32_t i = 0;
        while (i < count && kinds[i] != kind) i++;
        if (i == count) kinds[count++] = (uint8_t)kind;
    }
    return count;
}

/* The config with the depth of the largest proxy model. */
static hr_config small_of(const hr_config *config)
{
    uint8_t kinds[HR_LAYER_KINDS_MOST];
    hr_config small = *config;
    const int64_t L = config->model.n_layers;
    const int32_t frozen = hr_config_freezes(config) ? HR_PROXY_FROZEN_MOST : 0;
    small.model.n_layers = hr_min(L, 3 + list_kinds(config, 0, L, kinds) + frozen);
    return small;
}

static bool is_mixed(const hr_config *config)
{
    uint8_t kinds[HR_LAYER_KINDS_MOST];
    return list_kinds(config, 0, config->model.n_layers, kinds) > 1;
}

int64_t hr_proxy_bytes(const hr_config *config)
{
    const hr_config small = small_of(config);
    const hr_model_limits limits = hr_model_limits_of(&small);
    const int64_t buffers = limits.tensors + limits.steps;
    const int64_t proxies = hr_compile_unpacked_bytes(&small) +
                            HR_PROXY_DEPTHS * model_bytes(&small) +
                            buffers * (int64_t)sizeof(int32_t) + 64 +
                            hr_round_up(sizeof(hr_proxy_bounds), 64) +
                            hr_round_up(sizeof(hr_config), 64) +
                            (is_mixed(config) ? hr_round_up(config->model.n_layers, 64) : 0);
    return hr_config_freezes(config) ? hr_max(proxies, model_bytes(config)) : proxies;
}

/* Assembles the model before any pass and copies it to the caller's region. Each micro-batch
 * size is assembled only once. */
static hr_status begin(hr_proxy_model *proxy, const hr_config *config, int64_t sequences,
                       hr_program *program, hr_error *err)
{
    const int32_t layers = (int32_t)config->model.n_layers;
    const bool is_larger = layers > proxy->trained.frozen_in_proxy + proxy->depth.places;
    hr_proxy_program *model = &proxy->models[is_larger];
    hr_region *region = proxy->region;
    hr_status status = HR_OK;
    if (model->sequences != sequences) {
        uint8_t kinds[HR_PROXY_FROZEN_MOST + HR_PROXY_LAYERS_MOST];
        memcpy(kinds, proxy->kinds, sizeof kinds);
        if (!is_larger) kinds[layers - 1] = kinds[layers];
        model->region.used = 0;
        model->sequences = 0;
        status = hr_model_assemble_proxy(config, proxy->rates->backend, &proxy->trained, kinds,
                                         sequences, &model->region, &model->program, err);
        if (status != HR_OK) return status;
        model->sequences = sequences;
    }
    const hr_program *from = &model->program;
    *program = *from; /* no pass changes a parameter */
    program->steps = hr_region_take_raw(region, from->step_max, sizeof *program->steps);
    program->tensors = hr_region_take_raw(region, from->tensor_max, sizeof *program->tensors);
    program->loops = hr_region_take_raw(region, from->loop_max, sizeof *program->loops);
    if (!program->steps || !program->tensors || !program->loops)
        return hr_fail(err, HR_FAILURE, "out of memory for the search");
    memcpy(program->steps, from->steps, (size_t)from->step_count * sizeof *from->steps);
    memcpy(program->tensors, from->tensors, (size_t)from->tensor_count * sizeof *from->tensors);
    memcpy(program->loops, from->loops, (size_t)from->loop_count * sizeof *from->loops);
    return HR_OK;
}

/* Bytes of the frozen layers that the proxy model lacks: of what lives through the run. */
static int64_t frozen_bytes(const hr_proxy_model *proxy, const hr_program *program,
                            const hr_plan *plan)
{
    int64_t bytes = proxy->trained.frozen_bytes;
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const int32_t t = plan->buffers[b].tensor;
        if (t == HR_NONE || plan->buffers[b].view_of != HR_NONE) continue;
        if (hr_is_kept_in(program, t, 0, proxy->trained.frozen_in_proxy))
            bytes -= plan->buffers[b].bytes;
    }
    return bytes;
}

/* Counts the table of gradient norms at its size in the whole model. It is live during most of a
 * section, and only in some sections: growth from three layers to four would miss it when the
 * peak is in another section. */
static void add_norm_parts(const hr_proxy_model *proxy, const hr_program *program,
                           const hr_plan *plan, int32_t layers, int64_t *alive)
{
    const int64_t parts = proxy->trained.count
                              ? proxy->trained.count
                              : hr_program_trained(program, proxy->depth.layers - layers);
    const int64_t whole = hr_round_up(parts * (int64_t)sizeof(double),
                                      hr_program_align(program, HR_SPACE_HOST));
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_buffer *buffer = &plan->buffers[b];
        if (buffer->tensor == HR_NONE || buffer->view_of != HR_NONE) continue;
        if (strcmp(program->tensors[buffer->tensor].name, HR_NORM_PARTS)) continue;
        const int64_t missing = whole - buffer->bytes;
        for (int32_t s = buffer->step_first; s <= buffer->step_last; s++) alive[s] += missing;
    }
}

/* Builds a proxy model of `layers` layers with one recompute set, and its live bytes by step. The
 * caller resets the region. */
static hr_status build_proxy(hr_proxy_model *proxy, const hr_strategy *knobs,
                             hr_intermediates recompute_set, int32_t layers, hr_program *program,
                             hr_plan *plan, int64_t **alive, hr_error *err)
{
    hr_intermediates sets[HR_PROXY_FROZEN_MOST + HR_PROXY_LAYERS_MOST] = { 0 };
    hr_config *config = proxy->small;
    hr_strategy strategy = *knobs;
    const int64_t sequences = knobs->micro_batch ? knobs->micro_batch : config->train.batch;
    *plan = (hr_plan){ .process = { .threads = proxy->threads, .rung = "" } };
    config->model.n_layers = proxy->trained.frozen_in_proxy + layers;
    for (int32_t l = 0; l < layers; l++) sets[proxy->trained.frozen_in_proxy + l] = recompute_set;
    strategy.layer_count = proxy->trained.frozen_in_proxy + layers;
    strategy.recompute_set = sets;
    hr_status status = begin(proxy, config, sequences, program, err);
    if (status == HR_OK)
        status = hr_strategy_apply(&strategy, config->train.seq_len, program, proxy->region, err);
    if (status == HR_OK) status = hr_transfers(program, NULL, proxy->region, err);
    if (status == HR_OK) status = hr_lifetimes(program, proxy->region, plan, err);
    if (status != HR_OK) return status;
    *alive = hr_region_take(proxy->region, program->step_count, sizeof **alive);
    if (!*alive)
        return hr_fail(err, HR_FAILURE, "out of memory for the search over %d layers", layers);
    hr_lifetimes_alive(program, plan, *alive);
    const int64_t missing = frozen_bytes(proxy, program, plan);
    for (int32_t s = 0; s < program->step_count; s++) (*alive)[s] += missing;
    add_norm_parts(proxy, program, plan, layers, *alive);
    proxy->built++;
    proxy->steps += program->step_count;
    return HR_OK;
}

static hr_proxy_key key_of(const hr_strategy *knobs, hr_intermediates recompute_set, int32_t layers,
                           hr_proxy_prices wanted, bool works)
{
    return (hr_proxy_key){ .micro_batch = knobs->micro_batch,
                           .loss_chunk = knobs->loss_chunk,
                           .mlp_tile = knobs->mlp_tile,
                           .attention_tile = knobs->attention_tile,
                           .recompute_set = recompute_set,
                           .layers = layers,
                           .dw_first = knobs->dw_first,
                           .consume = knobs->consume,
                           .prices = (int32_t)wanted,
                           .works = works };
}

static hr_status look(hr_proxy_model *proxy, const hr_strategy *knobs,
                      hr_intermediates recompute_set, int32_t layers, hr_proxy_prices wanted,
                      hr_proxy_census *c, hr_error *err)
{
    const int64_t kept = proxy->region->used;
    const hr_proxy_key key = key_of(knobs, recompute_set, layers, wanted, false);
    if (hr_proxy_cache_find(proxy->cache, &key, c)) return HR_OK;
    hr_program program;
    hr_plan plan;
    int64_t *alive = NULL;
    const hr_status status = build_proxy(proxy, knobs, recompute_set, layers, &program, &plan,
                                         &alive, err);
    if (status == HR_OK) {
        hr_proxy_census_take(proxy, &program, alive, wanted, c);
        hr_proxy_cache_put(proxy->cache, &key, c);
    }
    proxy->region->used = kept;
    return status;
}

/* Finds out which parameters of the model train. Without frozen parameters it is all of them. */
static hr_status survey(const hr_config *config, const hr_backend *backend, hr_region *region,
                        hr_trained *trained, hr_error *err)
{
    const int64_t kept = region->used;
    hr_program program;
    *trained = (hr_trained){ .layers = UINT64_MAX, .uniform = true };
    if (!hr_config_freezes(config)) return HR_OK;
    const hr_status status = hr_model_assemble(config, backend, 1, region, &program, err);
    if (status == HR_OK) *trained = hr_trained_of(&program, (int32_t)config->model.n_layers);
    region->used = kept;
    return status;
}

/* Chooses the frozen layers of the proxies: one of each kind, and two if they are of one kind. */
static void choose_frozen(hr_proxy_model *proxy)
{
    hr_trained *trained = &proxy->trained;
    const int32_t frozen = trained->frozen;
    const int32_t kinds = list_kinds(proxy->config, 0, frozen, proxy->kinds);
    trained->frozen_in_proxy = (int32_t)hr_min(frozen, HR_PROXY_FROZEN_MOST);
    if (kinds < trained->frozen_in_proxy) proxy->kinds[1] = proxy->kinds[0];
    for (int32_t i = 0; i < trained->frozen_in_proxy; i++) {
        proxy->frozen_like[i] = 0;
        for (int32_t l = 0; l < frozen; l++)
            proxy->frozen_like[i] += hr_family_kind(proxy->config, l) == proxy->kinds[i];
    }
    if (kinds < trained->frozen_in_proxy) {
        proxy->frozen_like[0]--;
        proxy->frozen_like[1] = 1;
    }
}

/* Chooses the other layers of the proxies, and the place that stands for each layer. */
static hr_status choose_layers(hr_proxy_model *proxy, hr_region *region, hr_error *err)
{
    const hr_config *config = proxy->config;
    const int32_t frozen = proxy->trained.frozen, layers = proxy->depth.layers;
    uint8_t *kinds = proxy->kinds + proxy->trained.frozen_in_proxy, middle[HR_LAYER_KINDS_MOST];
    if (proxy->depth.exact) {
        for (int32_t l = 0; l < layers; l++) kinds[l] = (uint8_t)hr_family_kind(config, frozen + l);
        kinds[layers] = kinds[layers - 1];
        return HR_OK;
    }
    const int32_t last = frozen + layers - 1, count = list_kinds(config, frozen + 1, last, middle);
    proxy->depth.places = count + 2;
    kinds[0] = (uint8_t)hr_family_kind(config, frozen);
    memcpy(kinds + 1, middle, (size_t)count);
    kinds[count + 1] = middle[count - 1];
    kinds[count + 2] = (uint8_t)hr_family_kind(config, last);
    if (count == 1) return HR_OK;
    uint8_t *place = hr_region_take(region, layers, sizeof *place);
    if (!place) return hr_fail(err, HR_FAILURE, "out of memory for the search");
    for (int32_t l = 1; l < layers - 1; l++)
        while (middle[place[l]++] != hr_family_kind(config, frozen + l)) continue;
    place[layers - 1] = (uint8_t)(count + 1);
    proxy->depth.place = place;
    return HR_OK;
}

/* Not inlined: a config is large, and the stack size is planned. */
static __attribute__((noinline)) int64_t small_bytes(const hr_config *config)
{
    const hr_config small = small_of(config);
    return model_bytes(&small);
}

hr_status hr_proxy_open(hr_proxy_model *proxy, const hr_config *config, const hr_rates *rates,
                        int32_t threads, hr_region *region, hr_error *err)
{
    const int64_t bytes = small_bytes(config);
    hr_trained trained;
    hr_status status = survey(config, rates->backend, region, &trained, err);
    if (status != HR_OK) return status;
    const int32_t layers = (int32_t)config->model.n_layers - trained.frozen;
    const bool exact = layers <= HR_PROXY_PLACES_MOST;
    *proxy = (hr_proxy_model){ .config = config,
                               .rates = rates,
                               .threads = threads,
                               .trained = trained,
                               .depth = { layers, exact, layers, NULL },
                               .region = region };
    proxy->small = hr_region_take(region, 1, sizeof *proxy->small);
    if (!proxy->small) return hr_fail(err, HR_FAILURE, "out of memory for the search");
    *proxy->small = *config;
    choose_frozen(proxy);
    status = choose_layers(proxy, region, err);
    if (status != HR_OK) return status;
    for (int32_t i = 0; i < HR_PROXY_DEPTHS; i++) {
        void *memory = hr_region_take(region, bytes, 1);
        if (!memory) return hr_fail(err, HR_FAILURE, "out of memory for the search");
        proxy->models[i].region = hr_region_over(memory, bytes);
    }
    return HR_OK;
}

int32_t hr_proxy_place(const hr_proxy_model *proxy, int32_t layer)
{
    if (proxy->depth.exact || layer == 0) return layer;
    if (proxy->depth.place) return proxy->depth.place[layer];
    return layer == proxy->depth.layers - 1 ? 2 : 1;
}

int32_t hr_proxy_group(const hr_proxy_model *proxy, int32_t layer)
{
    if (!hr_proxy_is_mixed(proxy)) return 0;
    const int32_t place = hr_proxy_place(proxy, layer), last = proxy->depth.places - 1;
    if (place > 0 && place < last) return place - 1;
    const uint8_t *kinds = proxy->kinds + proxy->trained.frozen_in_proxy;
    const uint8_t kind = kinds[place == 0 ? 0 : last + 1]; /* of the larger proxy */
    int32_t group = 0;
    while (group < last - 2 && kinds[1 + group] != kind) group++;
    return group;
}

int64_t hr_proxy_work(const hr_proxy_model *proxy, const hr_proxy_set *set,
                      const hr_proxy_slopes *slopes, int32_t layer)
{
    const int32_t place = hr_proxy_place(proxy, layer);
    const int64_t beyond = proxy->depth.layers - proxy->depth.places;
    const int64_t steps = place < proxy->depth.places - 1 ? layer - place : 0;
    int64_t most = 0;
    for (int32_t pass = 0; pass < HR_PASSES; pass++)
        hr_proxy_raise(&most, set->work[place][pass] + beyond * slopes->depth[place][pass] +
                                  steps * slopes->step[pass]);
    return most;
}

/* Upper limit of one time, so that the sum over all layers and the rest does not overflow. */
static int64_t ps_most(const hr_proxy_model *proxy)
{
    return INT64_MAX / (proxy->depth.layers + 2);
}

static hr_proxy_set set_of(const hr_proxy_model *proxy, hr_intermediates recompute_set,
                           const hr_proxy_census *c, int64_t *reference_head)
{
    const int32_t places = proxy->depth.places;
    if (*reference_head == 0) *reference_head = c->head_first;
    hr_proxy_set set = { .recompute_set = recompute_set,
                         .kept = (c->head_first - *reference_head) / places };
    for (int32_t place = 0; place < places; place++) {
        set.ps[place] = hr_min(c->layer_ps[place], ps_most(proxy));
        for (int32_t pass = 0; pass < HR_PASSES; pass++)
            set.work[place][pass] = c->work[place][pass] - place * set.kept;
    }
    return set;
}

hr_status hr_proxy_set_of(hr_proxy_model *proxy, const hr_strategy *knobs,
                          hr_intermediates recompute_set, int64_t *reference_head,
                          hr_proxy_set *set, hr_error *err)
{
    const int32_t places = proxy->depth.places;
    hr_proxy_census c;
    const hr_status status = look(proxy, knobs, recompute_set, places, HR_PRICE_LAYERS, &c, err);
    if (status != HR_OK) return status;
    *set = set_of(proxy, recompute_set, &c, reference_head);
    return HR_OK;
}

static void take_works(const hr_proxy_works most, const bool *known, int32_t count,
                       hr_proxy_set *sets)
{
    for (int32_t k = 1; k < count; k++)
        for (int32_t place = 0; place < HR_PROXY_PLACES_MOST && !known[k]; place++)
            for (int32_t pass = 0; pass < HR_PASSES; pass++)
                sets[k].work[place][pass] = most[place][pass][k];
}

hr_status hr_proxy_works_of(hr_proxy_model *proxy, const hr_strategy *knobs,
                            int64_t *reference_head, hr_proxy_set *sets, const bool *known,
                            int32_t count, hr_error *err)
{
    const int64_t kept = proxy->region->used;
    hr_program program;
    hr_plan plan;
    int64_t *alive = NULL;
    hr_proxy_census c;
    const bool tiled = knobs->mlp_tile || knobs->attention_tile;
    const hr_proxy_key key = key_of(knobs, 0, proxy->depth.places, HR_PRICE_LAYERS, true);
    const hr_proxy_works *known_works = hr_proxy_cache_works(proxy->cache, &key);
    if (known_works && hr_proxy_cache_find(proxy->cache, &key, &c)) {
        sets[0] = set_of(proxy, 0, &c, reference_head);
        take_works(*known_works, known, count, sets);
        return HR_OK;
    }
    const hr_status status = build_proxy(proxy, knobs, 0, proxy->depth.places, &program, &plan,
                                         &alive, err);
    int32_t *list = NULL;
    hr_proxy_bounds *bounds = NULL;
    if (status == HR_OK) list = hr_region_take(proxy->region, plan.buffer_count, sizeof *list);
    if (list) bounds = hr_region_take_raw(proxy->region, 1, sizeof *bounds);
    if (bounds) {
        hr_proxy_census_take(proxy, &program, alive, HR_PRICE_LAYERS, &c);
        sets[0] = set_of(proxy, 0, &c, reference_head);
        hr_proxy_bound_works(proxy, &program, &plan, alive, list, tiled, sets, count, bounds);
        take_works(bounds->most, known, count, sets);
        hr_proxy_works *kept_works = hr_proxy_cache_put_works(proxy->cache, &key);
        if (kept_works) {
            memcpy(*kept_works, bounds->most, sizeof bounds->most);
            hr_proxy_cache_put(proxy->cache, &key, &c);
        }
    }
    proxy->region->used = kept;
    if (status == HR_OK && !bounds) return hr_fail(err, HR_FAILURE, "out of memory for the search");
    return status;
}

bool hr_proxy_adds_up(const hr_proxy_model *proxy)
{
    bool add_up = true;
    if (hr_proxy_cache_adds_up(proxy->cache, &add_up)) return add_up;
    for (int32_t i = 0; i < HR_PROXY_DEPTHS; i++) {
        const hr_program *program = &proxy->models[i].program;
        if (!proxy->models[i].sequences) continue;
        const int32_t section = hr_program_loop(program, HR_LOOP_STEP);
        for (int32_t t = 0; t < program->tensor_count; t++)
            if (program->tensors[t].intermediates &&
                program->tensors[t].layer == proxy->trained.frozen_in_proxy &&
                program->tensors[t].home == section)
                add_up &= hr_proxy_is_independent(program, t);
    }
    hr_proxy_cache_put_adds_up(proxy->cache, add_up);
    return add_up;
}

/* What each layer beyond the places adds. */
typedef struct {
    hr_proxy_slopes slopes;
    int64_t head, before, after, rest_ps;
    int64_t section[HR_PROXY_SECTIONS_MOST];
} growth;

static growth growth_of(const hr_proxy_census *smaller, const hr_proxy_census *larger,
                        int32_t places)
{
    const int32_t last = places - 1;
    growth g = { .head = larger->head - smaller->head,
                 .before = larger->before - smaller->before,
                 .after = larger->after - smaller->after,
                 .rest_ps = larger->rest_ps - smaller->rest_ps };
    for (int32_t i = 0; i < HR_PROXY_SECTIONS_MOST; i++)
        g.section[i] = larger->section[i] - smaller->section[i];
    for (int32_t pass = 0; pass < HR_PASSES; pass++) {
        g.slopes.step[pass] = larger->work[last][pass] - larger->work[last - 1][pass];
        for (int32_t place = 0; place < places; place++)
            g.slopes.depth[place][pass] = larger->work[place + (place == last)][pass] -
                                          smaller->work[place][pass];
    }
    return g;
}

static hr_proxy_rest rest_at(const hr_proxy_census *c, const growth *g, int64_t beyond,
                             int64_t most)
{
    hr_proxy_rest rest = { .head = c->head + beyond * g->head, .ps = c->rest_ps };
    if (g->rest_ps > (most - hr_min(rest.ps, most)) / hr_max(beyond, 1)) rest.ps = most;
    else rest.ps += beyond * g->rest_ps;
    hr_proxy_raise(&rest.other, c->before + beyond * g->before);
    hr_proxy_raise(&rest.other, c->after + beyond * g->after);
    for (int32_t i = 0; i < HR_PROXY_SECTIONS_MOST; i++)
        hr_proxy_raise(&rest.other, c->section[i] + beyond * g->section[i]);
    return rest;
}

/* The growth per layer usually does not depend on the chunk: if it is equal for the first and
 * the last chunk, it is taken to be equal for those between. */
hr_status hr_proxy_rests_of(hr_proxy_model *proxy, const hr_strategy *knobs,
                            hr_intermediates recompute_set, const int64_t *chunks, int32_t count,
                            hr_proxy_rest *rests, hr_proxy_slopes *slopes, hr_error *err)
{
    const int32_t places = proxy->depth.places;
    const int64_t beyond = proxy->depth.layers - places;
    growth first = { .head = 0 };
    bool agree = beyond == 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t c = i == 0 ? 0 : count - i; /* the last chunk is measured second */
        hr_strategy cut = *knobs;
        hr_proxy_census smaller, larger;
        cut.loss_chunk = chunks[c];
        hr_status status = look(proxy, &cut, recompute_set, places, HR_PRICE_REST, &smaller, err);
        if (status == HR_OK && !agree)
            status = look(proxy, &cut, recompute_set, places + 1, HR_PRICE_REST, &larger, err);
        if (status != HR_OK) return status;
        const growth g = agree ? first : growth_of(&smaller, &larger, places);
        if (i == 0) first = g;
        else agree = agree || (i == 1 && memcmp(&g, &first, sizeof g) == 0);
        rests[c] = rest_at(&smaller, &g, beyond, ps_most(proxy));
    }
    *slopes = first.slopes;
    return HR_OK;
}
