/* SPDX-License-Identifier: Apache-2.0 */
/* fit/twin.c - builds small models and looks at them. */
#include "fit/twin.h"

#include <string.h>

#include "base/checked.h"
#include "fit/twin_cache.h"
#include "model/assemble.h"
#include "plan/compile.h"
#include "plan/lifetimes.h"

enum { VALUES_MOST = 24 }; /* of a layer that may be dropped, alive at one step */

/* A program, and the tables of building it. */
static int64_t model_bytes(const hr_config *small)
{
    const hr_model_limits limits = hr_model_limits_of(small);
    return limits.steps * (int64_t)sizeof(hr_step) +
           limits.tensors * (int64_t)(sizeof(hr_tensor) + 32) +
           limits.loops * (int64_t)sizeof(hr_loop) + limits.params * (int64_t)sizeof(hr_param) +
           8 * 64;
}

/* As deep as a twin may be. */
static hr_config small_of(const hr_config *config)
{
    hr_config small = *config;
    const int32_t still = config->train.freeze[0] ? HR_TWIN_STILL_MOST : 0;
    small.model.n_layers = hr_min(config->model.n_layers, HR_TWIN_LAYERS_MOST + still);
    return small;
}

int64_t hr_twin_bytes(const hr_config *config)
{
    const hr_config small = small_of(config);
    const hr_model_limits limits = hr_model_limits_of(&small);
    const int64_t buffers = limits.tensors + limits.steps;
    const int64_t twins = hr_compile_lives_bytes(&small) + HR_TWIN_DEPTHS * model_bytes(&small) +
                          buffers * (int64_t)sizeof(int32_t) + 64;
    return config->train.freeze[0] ? hr_max(twins, model_bytes(config)) : twins;
}

/* The section of a step: the child of loop 0 that holds it. */
static int32_t section_of(const hr_program *program, int32_t s)
{
    int32_t loop = program->steps[s].loop;
    while (loop > 0 && program->loops[loop].parent != 0) loop = program->loops[loop].parent;
    return loop;
}

static void raise(int64_t *most, int64_t bytes)
{
    *most = hr_max(*most, bytes);
}

/* What is too large to be timed is as slow as all else that is. */
static void add(int64_t *sum, int64_t ps)
{
    *sum = ps > INT64_MAX - *sum ? INT64_MAX : *sum + ps;
}

/* The place of a step's layer. What layers do that no gradient reaches belongs to the first place:
 * they are cut as it is, and nothing is kept below it either. */
static int32_t place_of(const hr_twin *twin, const hr_step *step)
{
    return (int32_t)hr_max(step->layer - twin->trained.stands, 0);
}

static void count_step(const hr_twin *twin, const hr_step *step, int64_t alive, hr_twin_census *c)
{
    const bool back = step->direction == HR_DIR_BACKWARD || step->direction == HR_DIR_AGAIN;
    if (step->layer != HR_NONE) {
        raise(&c->work[place_of(twin, step)][back], alive);
        return;
    }
    if (step->block == HR_BLOCK_EMBED) {
        raise(back ? &c->after : &c->before, alive);
        return;
    }
    if (c->head == 0) c->head_first = alive;
    raise(&c->head, alive);
}

static bool is_training(const hr_program *program, int32_t section)
{
    const char *name = program->loops[section].name;
    return !strcmp(name, "step") || !strcmp(name, "norm");
}

/* Whose steps are priced: of a twin that says what one of them takes the others are known. */
typedef enum { PRICE_LAYERS, PRICE_REST } prices;

static void take_census(const hr_twin *twin, const hr_program *program, const int64_t *alive,
                        prices wanted, hr_twin_census *c)
{
    bool timed = false, training = false;
    int32_t sections = 0, last = HR_NONE;
    *c = (hr_twin_census){ .head = 0 };
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        const int32_t section = section_of(program, s);
        if (section != last) {
            const char *name = program->loops[section].name;
            training = is_training(program, section);
            timed = training || !strcmp(name, "fetch") || !strcmp(name, "update");
            sections++;
        }
        last = section;
        const bool in_layer = training && step->layer != HR_NONE;
        if (timed && in_layer == (wanted == PRICE_LAYERS)) {
            const int64_t ps = hr_cost_step_total(program, twin->rates, s);
            int64_t *sum = in_layer ? &c->layer_ps[place_of(twin, step)] : &c->rest_ps;
            add(sum, ps);
            for (int32_t more = twin->trained.stands; more < twin->trained.still && in_layer;
                 more++)
                if (step->layer == 0) add(sum, ps);
        }
        if (!training) raise(&c->section[sections - 1], alive[s]);
        else count_step(twin, step, alive[s], c);
    }
}

/* The model before any pass, built once for each micro-batch, in the caller's region. */
static hr_status begin(hr_twin *twin, const hr_config *config, int64_t sequences,
                       hr_program *program, hr_error *err)
{
    const int64_t layers = config->model.n_layers - twin->trained.stands;
    hr_twin_model *model = &twin->models[layers == HR_TWIN_LAYERS_MOST];
    hr_region *region = twin->region;
    hr_status status = HR_OK;
    if (model->sequences != sequences) {
        model->region.used = 0;
        model->sequences = 0;
        status = hr_model_assemble_twin(config, &twin->trained, sequences, &model->region,
                                        &model->program, err);
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

/* Bytes that the layers take which no gradient reaches and the twin lacks: they have weights
 * alone, and these are always there. */
static int64_t still_bytes(const hr_twin *twin, const hr_program *program, const hr_plan *plan)
{
    int64_t bytes = 0;
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const int32_t t = plan->buffers[b].tensor;
        if (t == HR_NONE || plan->buffers[b].view_of != HR_NONE) continue;
        if (program->tensors[t].layer == 0 && program->tensors[t].role == HR_ROLE_WEIGHT)
            bytes += plan->buffers[b].bytes;
    }
    return (twin->trained.still - twin->trained.stands) * bytes;
}

/* Builds a twin of so many layers that all drop the same, and what is alive at its steps; the
 * caller gives the room back. */
static hr_status raise_twin(hr_twin *twin, const hr_strategy *knobs, hr_intermediates dropped,
                            int32_t layers, hr_program *program, hr_plan *plan, int64_t **alive,
                            hr_error *err)
{
    hr_intermediates sets[HR_TWIN_STILL_MOST + HR_TWIN_LAYERS_MOST] = { 0 };
    hr_config config = *twin->config;
    hr_strategy strategy = *knobs;
    const int64_t sequences = knobs->micro_batch ? knobs->micro_batch : config.train.batch;
    *plan = (hr_plan){ .threads = twin->threads, .rung = "" };
    config.model.n_layers = twin->trained.stands + layers;
    for (int32_t l = 0; l < layers; l++) sets[twin->trained.stands + l] = dropped;
    strategy.layer_count = twin->trained.stands + layers;
    strategy.dropped = sets;
    hr_status status = begin(twin, &config, sequences, program, err);
    if (status == HR_OK)
        status = hr_strategy_apply(&strategy, config.train.seq_len, program, twin->region, err);
    if (status == HR_OK) status = hr_lifetimes(program, twin->region, plan, err);
    if (status != HR_OK) return status;
    *alive = hr_region_take(twin->region, program->step_count, sizeof **alive);
    if (!*alive)
        return hr_fail(err, HR_FAILURE, "out of memory for the search over %d layers", layers);
    hr_lifetimes_alive(program, plan, *alive);
    const int64_t missing = still_bytes(twin, program, plan);
    for (int32_t s = 0; s < program->step_count; s++) (*alive)[s] += missing;
    twin->built++;
    twin->steps += program->step_count;
    return HR_OK;
}

static hr_twin_key key_of(const hr_strategy *knobs, hr_intermediates dropped, int32_t layers,
                          prices wanted, bool works)
{
    return (hr_twin_key){ .micro_batch = knobs->micro_batch,
                          .loss_chunk = knobs->loss_chunk,
                          .mlp_tile = knobs->mlp_tile,
                          .attention_tile = knobs->attention_tile,
                          .dropped = dropped,
                          .layers = layers,
                          .dw_first = knobs->dw_first,
                          .consume = knobs->consume,
                          .prices = (int32_t)wanted,
                          .works = works };
}

static hr_status look(hr_twin *twin, const hr_strategy *knobs, hr_intermediates dropped,
                      int32_t layers, prices wanted, hr_twin_census *c, hr_error *err)
{
    const int64_t kept = twin->region->used;
    const hr_twin_key key = key_of(knobs, dropped, layers, wanted, false);
    if (hr_twin_cache_find(twin->cache, &key, c)) return HR_OK;
    hr_program program;
    hr_plan plan;
    int64_t *alive = NULL;
    const hr_status status = raise_twin(twin, knobs, dropped, layers, &program, &plan, &alive, err);
    if (status == HR_OK) {
        take_census(twin, &program, alive, wanted, c);
        hr_twin_cache_put(twin->cache, &key, c);
    }
    twin->region->used = kept;
    return status;
}

/* What trains, of the model itself: where nothing is frozen it is all. */
static hr_status survey(const hr_config *config, hr_region *region, hr_trained *trained,
                        hr_error *err)
{
    const int64_t kept = region->used;
    hr_program program;
    *trained = (hr_trained){ .layers = UINT64_MAX, .alike = true };
    if (!config->train.freeze[0]) return HR_OK;
    const hr_status status = hr_model_assemble(config, 1, region, &program, err);
    if (status == HR_OK) *trained = hr_trained_of(&program, (int32_t)config->model.n_layers);
    trained->stands = (int32_t)hr_min(trained->still, HR_TWIN_STILL_MOST);
    region->used = kept;
    return status;
}

hr_status hr_twin_open(hr_twin *twin, const hr_config *config, const hr_rates *rates,
                       int32_t threads, hr_region *region, hr_error *err)
{
    const hr_config small = small_of(config);
    const int64_t bytes = model_bytes(&small);
    hr_trained trained;
    const hr_status status = survey(config, region, &trained, err);
    if (status != HR_OK) return status;
    const int32_t layers = (int32_t)config->model.n_layers - trained.still;
    const bool exact = layers <= HR_TWIN_LAYERS_MOST;
    *twin = (hr_twin){ .config = config,
                       .rates = rates,
                       .threads = threads,
                       .trained = trained,
                       .depth = { layers, exact, exact ? layers : HR_TWIN_LAYERS },
                       .region = region };
    for (int32_t i = 0; i < HR_TWIN_DEPTHS; i++) {
        void *memory = hr_region_take(region, bytes, 1);
        if (!memory) return hr_fail(err, HR_FAILURE, "out of memory for the search");
        twin->models[i].region = hr_region_over(memory, bytes);
    }
    return HR_OK;
}

int32_t hr_twin_place(const hr_twin *twin, int32_t layer)
{
    if (twin->depth.exact || layer == 0) return layer;
    return layer == twin->depth.layers - 1 ? 2 : 1;
}

int64_t hr_twin_work(const hr_twin *twin, const hr_twin_set *set, const hr_twin_slopes *slopes,
                     int32_t layer)
{
    const int32_t place = hr_twin_place(twin, layer);
    const int64_t beyond = twin->depth.exact ? 0 : twin->depth.layers - HR_TWIN_LAYERS;
    const int64_t steps = !twin->depth.exact && place == 1 ? layer - 1 : 0;
    int64_t most = 0;
    for (int32_t pass = 0; pass < HR_PASSES; pass++)
        raise(&most, set->work[place][pass] + beyond * slopes->depth[place][pass] +
                         steps * slopes->step[pass]);
    return most;
}

/* So that all layers and the rest together fit. */
static int64_t ps_most(const hr_twin *twin)
{
    return INT64_MAX / (twin->depth.layers + 2);
}

static hr_twin_set set_of(const hr_twin *twin, hr_intermediates dropped, const hr_twin_census *c,
                          int64_t *reference_head)
{
    const int32_t places = twin->depth.places;
    if (*reference_head == 0) *reference_head = c->head_first;
    hr_twin_set set = { .dropped = dropped, .kept = (c->head_first - *reference_head) / places };
    for (int32_t place = 0; place < places; place++) {
        set.ps[place] = hr_min(c->layer_ps[place], ps_most(twin));
        for (int32_t pass = 0; pass < HR_PASSES; pass++)
            set.work[place][pass] = c->work[place][pass] - place * set.kept;
    }
    return set;
}

hr_status hr_twin_set_of(hr_twin *twin, const hr_strategy *knobs, hr_intermediates dropped,
                         int64_t *reference_head, hr_twin_set *set, hr_error *err)
{
    const int32_t places = twin->depth.places;
    hr_twin_census c;
    const hr_status status = look(twin, knobs, dropped, places, PRICE_LAYERS, &c, err);
    if (status != HR_OK) return status;
    *set = set_of(twin, dropped, &c, reference_head);
    return HR_OK;
}

/* ---- bounds for sets whose twins are not built */

/* A step of a layer, taken apart by what a set decides. */
typedef struct {
    int64_t base; /* bytes alive whatever the set */
    struct {
        hr_intermediates kinds; /* what lies there; kept only if none of it is dropped */
        int32_t storage;
        int64_t kept, again; /* bytes if it is kept, if not */
    } values[VALUES_MOST];
    int32_t count;
} outline;

static bool reads(const hr_step *step, int32_t tensor)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] == tensor) return true;
    return false;
}

/* Two values in one storage count once, and only if both are kept. */
static void put_value(outline *o, const hr_buffer *buffer, hr_intermediates kinds, bool again)
{
    for (int32_t i = 0; i < o->count; i++)
        if (o->values[i].storage == buffer->storage) {
            o->values[i].kinds |= kinds;
            o->values[i].again = 0;
            return;
        }
    o->base -= buffer->bytes;
    if (o->count == VALUES_MOST) return;
    o->values[o->count].kinds = kinds;
    o->values[o->count].storage = buffer->storage;
    o->values[o->count].kept = buffer->bytes;
    o->values[o->count++].again = again ? buffer->bytes : 0;
}

/* Buffers of what may be dropped. Returns how many. */
static int32_t list_droppable(const hr_program *program, const hr_plan *plan, int32_t *list)
{
    int32_t count = 0;
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_buffer *buffer = &plan->buffers[b];
        if (buffer->tensor == HR_NONE || buffer->view_of != HR_NONE) continue;
        if (program->tensors[buffer->tensor].intermediates) list[count++] = b;
    }
    return count;
}

static outline outline_of(const hr_program *program, const hr_plan *plan, const int32_t *list,
                          int32_t count, int32_t s, int64_t alive, bool tiled)
{
    const hr_step *step = &program->steps[s];
    outline o = { .base = alive };
    for (int32_t i = 0; i < count; i++) {
        const hr_buffer *buffer = &plan->buffers[list[i]];
        if (buffer->step_first > s || buffer->step_last < s) continue;
        const hr_tensor *tensor = &program->tensors[buffer->tensor];
        if (tensor->layer != step->layer) continue;
        put_value(&o, buffer, tensor->intermediates,
                  step->direction == HR_DIR_BACKWARD && !tiled && reads(step, buffer->tensor));
    }
    return o;
}

static int64_t alive_without(const outline *o, hr_intermediates dropped)
{
    int64_t bytes = o->base;
    for (int32_t i = 0; i < o->count; i++)
        bytes += o->values[i].kinds & dropped ? o->values[i].again : o->values[i].kept;
    return bytes;
}

/* True if the sets are all there are, in the order of hr_fit_sets: set k drops what the two sets
 * k & (k - 1) and k & -k drop together. */
static bool are_all(const hr_twin_set *sets, int32_t count)
{
    for (int32_t k = 1; k < count; k++) {
        const int32_t before = k & (k - 1);
        if (sets[k].dropped != (sets[before].dropped | sets[k ^ before].dropped)) return false;
    }
    return true;
}

/* Bytes alive with each set. Where they are all there are, set k drops the parts that are its bits,
 * and what lies in one part alone adds up. */
static void alive_with(const outline *o, const hr_twin_set *sets, int32_t count, bool all,
                       int64_t *alive)
{
    int64_t of_part[HR_FIT_PARTS_MOST] = { 0 };
    uint32_t parts[VALUES_MOST];
    alive[0] = alive_without(o, 0);
    for (int32_t k = 1; k < count && !all; k++) alive[k] = alive_without(o, sets[k].dropped);
    if (!all) return;
    for (int32_t i = 0; i < o->count; i++) {
        parts[i] = 0;
        for (int32_t k = 1; k < count; k *= 2)
            if (o->values[i].kinds & sets[k].dropped) parts[i] |= (uint32_t)k;
        if (parts[i] && (parts[i] & (parts[i] - 1)) == 0)
            of_part[__builtin_ctz(parts[i])] += o->values[i].again - o->values[i].kept;
    }
    for (int32_t part = 0, k = 1; k < count; part++, k *= 2)
        for (int32_t i = 0; i < k && k + i < count; i++) alive[k + i] = alive[i] + of_part[part];
    for (int32_t i = 0; i < o->count; i++) {
        if ((parts[i] & (parts[i] - 1)) == 0) continue;
        for (int32_t k = 1; k < count; k++)
            if ((uint32_t)k & parts[i]) alive[k] += o->values[i].again - o->values[i].kept;
    }
}

/* Lists are of sets[0], which drops nothing. */
static void bound_works(const hr_twin *twin, const hr_program *program, const hr_plan *plan,
                        const int64_t *alive, int32_t *list, bool tiled, const hr_twin_set *sets,
                        int32_t count, hr_twin_works most)
{
    const bool all = are_all(sets, count);
    const int32_t droppable = list_droppable(program, plan, list);
    int64_t with[HR_FIT_SETS_MOST];
    memset(most, 0, sizeof(hr_twin_works));
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        if (step->layer == HR_NONE || !is_training(program, section_of(program, s))) continue;
        const bool is_still = step->layer < twin->trained.stands; /* sets change nothing there */
        const int32_t place = place_of(twin, step), pass = step->direction == HR_DIR_BACKWARD;
        const outline o = outline_of(program, plan, list, is_still ? 0 : droppable, s,
                                     alive[s] - place * sets[0].kept, tiled);
        alive_with(&o, sets, count, all, with);
        for (int32_t k = 1; k < count; k++) raise(&most[place][pass][k], with[k]);
    }
}

static void take_works(const hr_twin_works most, const bool *known, int32_t count,
                       hr_twin_set *sets)
{
    for (int32_t k = 1; k < count; k++)
        for (int32_t place = 0; place < HR_TWIN_LAYERS_MOST && !known[k]; place++)
            for (int32_t pass = 0; pass < HR_PASSES; pass++)
                sets[k].work[place][pass] = most[place][pass][k];
}

hr_status hr_twin_works_of(hr_twin *twin, const hr_strategy *knobs, int64_t *reference_head,
                           hr_twin_set *sets, const bool *known, int32_t count, hr_error *err)
{
    const int64_t kept = twin->region->used;
    hr_program program;
    hr_plan plan;
    int64_t *alive = NULL;
    hr_twin_census c;
    hr_twin_works most;
    const bool tiled = knobs->mlp_tile || knobs->attention_tile;
    const hr_twin_key key = key_of(knobs, 0, twin->depth.places, PRICE_LAYERS, true);
    const hr_twin_works *known_works = hr_twin_cache_works(twin->cache, &key);
    if (known_works && hr_twin_cache_find(twin->cache, &key, &c)) {
        sets[0] = set_of(twin, 0, &c, reference_head);
        take_works(*known_works, known, count, sets);
        return HR_OK;
    }
    const hr_status status = raise_twin(twin, knobs, 0, twin->depth.places, &program, &plan, &alive,
                                        err);
    int32_t *list = NULL;
    if (status == HR_OK) list = hr_region_take(twin->region, plan.buffer_count, sizeof *list);
    if (list) {
        take_census(twin, &program, alive, PRICE_LAYERS, &c);
        sets[0] = set_of(twin, 0, &c, reference_head);
        bound_works(twin, &program, &plan, alive, list, tiled, sets, count, most);
        take_works(most, known, count, sets);
        hr_twin_works *kept_works = hr_twin_cache_put_works(twin->cache, &key);
        if (kept_works) {
            memcpy(*kept_works, most, sizeof most);
            hr_twin_cache_put(twin->cache, &key, &c);
        }
    }
    twin->region->used = kept;
    if (status == HR_OK && !list) return hr_fail(err, HR_FAILURE, "out of memory for the search");
    return status;
}

/* The backward pass reads it, or all that do make values that are dropped with it. */
static bool stands_alone(const hr_program *program, int32_t tensor)
{
    const hr_intermediates own = program->tensors[tensor].intermediates;
    bool needed = false, apart = true;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        if (!reads(step, tensor)) continue;
        needed |= step->direction == HR_DIR_BACKWARD;
        for (int32_t k = 0; k < HR_OUT_MAX && step->direction == HR_DIR_FORWARD; k++)
            if (step->out[k] != HR_NONE)
                apart &= (program->tensors[step->out[k]].intermediates & ~own) == 0;
    }
    return needed || apart;
}

bool hr_twin_adds_up(const hr_twin *twin)
{
    bool add_up = true;
    if (hr_twin_cache_adds_up(twin->cache, &add_up)) return add_up;
    for (int32_t i = 0; i < HR_TWIN_DEPTHS; i++) {
        const hr_program *program = &twin->models[i].program;
        if (!twin->models[i].sequences) continue;
        const int32_t section = hr_program_loop(program, "step");
        for (int32_t t = 0; t < program->tensor_count; t++)
            if (program->tensors[t].intermediates &&
                program->tensors[t].layer == twin->trained.stands &&
                program->tensors[t].home == section)
                add_up &= stands_alone(program, t);
    }
    hr_twin_cache_put_adds_up(twin->cache, add_up);
    return add_up;
}

/* What each layer beyond three adds. */
typedef struct {
    hr_twin_slopes slopes;
    int64_t head, before, after, rest_ps;
    int64_t section[HR_TWIN_SECTIONS_MOST];
} growth;

static growth growth_of(const hr_twin_census *three, const hr_twin_census *four)
{
    growth g = { .head = four->head - three->head,
                 .before = four->before - three->before,
                 .after = four->after - three->after,
                 .rest_ps = four->rest_ps - three->rest_ps };
    for (int32_t i = 0; i < HR_TWIN_SECTIONS_MOST; i++)
        g.section[i] = four->section[i] - three->section[i];
    for (int32_t pass = 0; pass < HR_PASSES; pass++) {
        g.slopes.step[pass] = four->work[2][pass] - four->work[1][pass];
        g.slopes.depth[0][pass] = four->work[0][pass] - three->work[0][pass];
        g.slopes.depth[1][pass] = four->work[1][pass] - three->work[1][pass];
        g.slopes.depth[2][pass] = four->work[3][pass] - three->work[2][pass];
    }
    return g;
}

static hr_twin_rest rest_at(const hr_twin_census *c, const growth *g, int64_t beyond, int64_t most)
{
    hr_twin_rest rest = { .head = c->head + beyond * g->head, .ps = c->rest_ps };
    if (g->rest_ps > (most - hr_min(rest.ps, most)) / hr_max(beyond, 1)) rest.ps = most;
    else rest.ps += beyond * g->rest_ps;
    raise(&rest.other, c->before + beyond * g->before);
    raise(&rest.other, c->after + beyond * g->after);
    for (int32_t i = 0; i < HR_TWIN_SECTIONS_MOST; i++)
        raise(&rest.other, c->section[i] + beyond * g->section[i]);
    return rest;
}

/* Layers add the same whatever the chunk: where the first and the last agree, so do those between
 * them. */
hr_status hr_twin_rests_of(hr_twin *twin, const hr_strategy *knobs, hr_intermediates dropped,
                           const int64_t *chunks, int32_t count, hr_twin_rest *rests,
                           hr_twin_slopes *slopes, hr_error *err)
{
    const int64_t beyond = twin->depth.exact ? 0 : twin->depth.layers - HR_TWIN_LAYERS;
    growth first = { .head = 0 };
    bool agree = beyond == 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t c = i == 0 ? 0 : count - i; /* the last is the second to be looked at */
        hr_strategy cut = *knobs;
        hr_twin_census three, four;
        cut.loss_chunk = chunks[c];
        hr_status status = look(twin, &cut, dropped, twin->depth.places, PRICE_REST, &three, err);
        if (status == HR_OK && !agree)
            status = look(twin, &cut, dropped, HR_TWIN_LAYERS_MOST, PRICE_REST, &four, err);
        if (status != HR_OK) return status;
        const growth g = agree ? first : growth_of(&three, &four);
        if (i == 0) first = g;
        else agree = agree || (i == 1 && memcmp(&g, &first, sizeof g) == 0);
        rests[c] = rest_at(&three, &g, beyond, ps_most(twin));
    }
    *slopes = first.slopes;
    return HR_OK;
}
