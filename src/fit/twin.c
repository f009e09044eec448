/* SPDX-License-Identifier: Apache-2.0 */
/* fit/twin.c - builds small models and looks at them. */
#include "fit/twin.h"

#include <string.h>

#include "base/checked.h"
#include "model/assemble.h"
#include "plan/compile.h"
#include "plan/lifetimes.h"

/* Most bytes alive, and picoseconds, by what a step belongs to. */
typedef struct {
    int64_t work[HR_TWIN_LAYERS_MOST][HR_PASSES];
    int64_t layer_ps[HR_TWIN_LAYERS_MOST];
    int64_t head, head_first; /* at most; at its first step */
    int64_t before, after;    /* before the first layer and after it came back */
    int64_t section[HR_TWIN_SECTIONS_MOST];
    int64_t rest_ps;
} census;

/* A program, and the tables of building it. */
static int64_t model_bytes(const hr_config *small)
{
    const hr_model_limits limits = hr_model_limits_of(small);
    return limits.steps * (int64_t)sizeof(hr_step) +
           limits.tensors * (int64_t)(sizeof(hr_tensor) + 32) +
           limits.loops * (int64_t)sizeof(hr_loop) + limits.params * (int64_t)sizeof(hr_param) +
           8 * 64;
}

int64_t hr_twin_bytes(const hr_config *config)
{
    hr_config small = *config;
    small.model.n_layers = hr_min(config->model.n_layers, HR_TWIN_LAYERS_MOST);
    return hr_compile_lives_bytes(&small) + HR_TWIN_DEPTHS * model_bytes(&small);
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

static void count_step(const hr_program *program, int32_t s, int64_t alive, bool *was_back,
                       census *c)
{
    const hr_step *step = &program->steps[s];
    const bool back = step->direction == HR_DIR_BACKWARD || step->direction == HR_DIR_AGAIN;
    if (step->layer != HR_NONE) {
        raise(&c->work[step->layer][back], alive);
        *was_back |= back;
        return;
    }
    if (step->block == HR_BLOCK_EMBED) {
        raise(back ? &c->after : &c->before, alive);
        return;
    }
    if (c->head == 0) c->head_first = alive;
    raise(&c->head, alive);
}

static void take_census(const hr_twin *twin, const hr_program *program, const int64_t *alive,
                        census *c)
{
    bool back = false, timed = false, training = false;
    int32_t sections = 0, last = HR_NONE;
    *c = (census){ .head = 0 };
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        const int32_t section = section_of(program, s);
        if (section != last) {
            const char *name = program->loops[section].name;
            training = !strcmp(name, "step") || !strcmp(name, "norm");
            timed = training || !strcmp(name, "fetch") || !strcmp(name, "update");
            sections++;
        }
        last = section;
        const int64_t ps = timed ? hr_cost_step_total(program, twin->rates, s) : 0;
        if (training && step->layer != HR_NONE) add(&c->layer_ps[step->layer], ps);
        else add(&c->rest_ps, ps);
        if (!training) raise(&c->section[sections - 1], alive[s]);
        else count_step(program, s, alive[s], &back, c);
    }
}

/* The model before any pass, built once for each micro-batch, in the caller's region. */
static hr_status begin(hr_twin *twin, const hr_config *config, int64_t sequences,
                       hr_program *program, hr_error *err)
{
    hr_twin_model *model = &twin->models[config->model.n_layers == HR_TWIN_LAYERS_MOST];
    hr_region *region = twin->region;
    hr_status status = HR_OK;
    if (model->sequences != sequences) {
        model->region.used = 0;
        model->sequences = 0;
        status = hr_model_assemble(config, sequences, &model->region, &model->program, err);
        if (status != HR_OK) return status;
        model->sequences = sequences;
    }
    const hr_program *from = &model->program;
    status = hr_program_place(region, from->ops, from->op_count, from->step_max, from->tensor_max,
                              from->loop_max, from->param_max, program, err);
    if (status != HR_OK) return status;
    program->step_count = from->step_count;
    program->tensor_count = from->tensor_count;
    program->loop_count = from->loop_count;
    program->param_count = from->param_count;
    memcpy(program->steps, from->steps, (size_t)from->step_count * sizeof *from->steps);
    memcpy(program->tensors, from->tensors, (size_t)from->tensor_count * sizeof *from->tensors);
    memcpy(program->loops, from->loops, (size_t)from->loop_count * sizeof *from->loops);
    memcpy(program->params, from->params, (size_t)from->param_count * sizeof *from->params);
    return HR_OK;
}

/* Builds a twin of so many layers that all drop the same. */
static hr_status look(hr_twin *twin, const hr_strategy *knobs, hr_intermediates dropped,
                      int32_t layers, census *c, hr_error *err)
{
    const int64_t kept = twin->region->used;
    hr_intermediates sets[HR_TWIN_LAYERS_MOST];
    hr_config config = *twin->config;
    hr_strategy strategy = *knobs;
    hr_program program;
    hr_plan plan = { .threads = twin->threads, .rung = "" };
    const int64_t sequences = knobs->micro_batch ? knobs->micro_batch : config.train.batch;
    config.model.n_layers = layers;
    for (int32_t l = 0; l < layers; l++) sets[l] = dropped;
    strategy.layer_count = layers;
    strategy.dropped = sets;
    hr_status status = begin(twin, &config, sequences, &program, err);
    if (status == HR_OK)
        status = hr_strategy_apply(&strategy, config.train.seq_len, &program, twin->region, err);
    if (status == HR_OK) status = hr_lifetimes(&program, twin->region, &plan, err);
    int64_t *alive = NULL;
    if (status == HR_OK) alive = hr_region_take(twin->region, program.step_count, sizeof *alive);
    if (status == HR_OK && !alive)
        status = hr_fail(err, HR_FAILURE, "no room to look at %d layers", layers);
    if (status == HR_OK) {
        hr_lifetimes_alive(&program, &plan, alive);
        take_census(twin, &program, alive, c);
    }
    twin->built++;
    twin->region->used = kept;
    return status;
}

hr_status hr_twin_open(hr_twin *twin, const hr_config *config, const hr_rates *rates,
                       int32_t threads, hr_region *region, hr_error *err)
{
    const int32_t layers = (int32_t)config->model.n_layers;
    const bool exact = layers <= HR_TWIN_LAYERS_MOST;
    hr_config small = *config;
    small.model.n_layers = hr_min(layers, HR_TWIN_LAYERS_MOST);
    const int64_t bytes = model_bytes(&small);
    *twin = (hr_twin){ .config = config,
                       .rates = rates,
                       .threads = threads,
                       .depth = { layers, exact, exact ? layers : HR_TWIN_LAYERS },
                       .region = region };
    for (int32_t i = 0; i < HR_TWIN_DEPTHS; i++) {
        void *memory = hr_region_take(region, bytes, 1);
        if (!memory) return hr_fail(err, HR_FAILURE, "no room for small models to search with");
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

hr_status hr_twin_set_of(hr_twin *twin, const hr_strategy *knobs, hr_intermediates dropped,
                         int64_t *reference_head, hr_twin_set *set, hr_error *err)
{
    const int32_t places = twin->depth.places;
    census c;
    const hr_status status = look(twin, knobs, dropped, places, &c, err);
    if (status != HR_OK) return status;
    if (*reference_head == 0) *reference_head = c.head_first;
    *set = (hr_twin_set){ .dropped = dropped, .kept = (c.head_first - *reference_head) / places };
    for (int32_t place = 0; place < places; place++) {
        set->ps[place] = hr_min(c.layer_ps[place], ps_most(twin));
        for (int32_t pass = 0; pass < HR_PASSES; pass++)
            set->work[place][pass] = c.work[place][pass] - place * set->kept;
    }
    return HR_OK;
}

/* What each layer beyond three adds. */
typedef struct {
    hr_twin_slopes slopes;
    int64_t head, before, after, rest_ps;
    int64_t section[HR_TWIN_SECTIONS_MOST];
} growth;

static growth growth_of(const census *three, const census *four)
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

static hr_twin_rest rest_at(const census *c, const growth *g, int64_t beyond, int64_t most)
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
        census three, four;
        cut.loss_chunk = chunks[c];
        hr_status status = look(twin, &cut, dropped, twin->depth.places, &three, err);
        if (status == HR_OK && !agree)
            status = look(twin, &cut, dropped, HR_TWIN_LAYERS_MOST, &four, err);
        if (status != HR_OK) return status;
        const growth g = agree ? first : growth_of(&three, &four);
        if (i == 0) first = g;
        else agree = agree || (i == 1 && memcmp(&g, &first, sizeof g) == 0);
        rests[c] = rest_at(&three, &g, beyond, ps_most(twin));
    }
    *slopes = first.slopes;
    return HR_OK;
}
