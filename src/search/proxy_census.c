/* SPDX-License-Identifier: Apache-2.0 */
/* search/proxy_census.c - one pass over the steps of a proxy model. */
#include "search/proxy_census.h"

#include <string.h>

/* Adds with saturation: times that are too large all count as equally slow. */
static void add(int64_t *sum, int64_t ps)
{
    *sum = ps > INT64_MAX - *sum ? INT64_MAX : *sum + ps;
}

int32_t hr_proxy_place_of(const hr_proxy_model *proxy, const hr_step *step)
{
    return (int32_t)hr_max(step->layer - proxy->trained.frozen_in_proxy, 0);
}

static bool is_training(const hr_program *program, int32_t section)
{
    const int32_t id = program->loops[section].id;
    return id == HR_LOOP_STEP || id == HR_LOOP_NORM;
}

bool hr_proxy_trains(const hr_program *program, int32_t s)
{
    return is_training(program, hr_loop_section(program, program->steps[s].loop));
}

static void count_step(const hr_proxy_model *proxy, const hr_step *step, int64_t alive,
                       hr_proxy_census *c)
{
    const bool back = step->direction == HR_DIR_BACKWARD || step->direction == HR_DIR_RECOMPUTED;
    if (step->layer != HR_NONE) {
        hr_proxy_raise(&c->work[hr_proxy_place_of(proxy, step)][back], alive);
        return;
    }
    if (step->block == HR_BLOCK_EMBED) {
        hr_proxy_raise(back ? &c->after : &c->before, alive);
        return;
    }
    if (c->head == 0) c->head_first = alive;
    hr_proxy_raise(&c->head, alive);
}

void hr_proxy_census_take(const hr_proxy_model *proxy, const hr_program *program,
                          const int64_t *alive, hr_proxy_prices wanted, hr_proxy_census *c)
{
    bool timed = false, training = false;
    int32_t sections = 0, last = HR_NONE;
    *c = (hr_proxy_census){ .head = 0 };
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        const int32_t section = hr_loop_section(program, program->steps[s].loop);
        if (section != last) {
            const int32_t id = program->loops[section].id;
            training = is_training(program, section);
            timed = training || id == HR_LOOP_FETCH || id == HR_LOOP_UPDATE;
            sections++;
        }
        last = section;
        const bool in_layer = training && step->layer != HR_NONE;
        if (timed && in_layer == (wanted == HR_PRICE_LAYERS)) {
            const int64_t ps = hr_cost_step_total(program, proxy->rates, s);
            int64_t *sum = in_layer ? &c->layer_ps[hr_proxy_place_of(proxy, step)] : &c->rest_ps;
            add(sum, ps);
            const bool is_frozen = in_layer && step->layer < proxy->trained.frozen_in_proxy;
            for (int32_t n = 1; is_frozen && n < proxy->frozen_like[step->layer]; n++) add(sum, ps);
        }
        if (!training) hr_proxy_raise(&c->section[sections - 1], alive[s]);
        else count_step(proxy, step, alive[s], c);
    }
}
