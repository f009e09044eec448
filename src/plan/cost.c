/* SPDX-License-Identifier: Apache-2.0 */
/* plan/cost.c - predicts the time of steps and programs.
 *
 * All sums saturate: a program too large for the range costs INT64_MAX, never less than a smaller
 * one. */
#include "plan/cost.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"

/* Predicted seconds of a step of training from which costs are in nanoseconds. */
#define NANOSECONDS_FROM 1e6

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return hr_checked_add(a, b, &sum) ? sum : INT64_MAX;
}

static int64_t multiply(int64_t a, int64_t b)
{
    int64_t product;
    return hr_checked_mul(a, b, &product) ? product : INT64_MAX;
}

hr_compute hr_cost_dtype(const hr_program *program, int32_t step)
{
    const hr_step *s = &program->steps[step];
    bool bf16 = false;
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        bf16 |= s->in[i] != HR_NONE && program->tensors[s->in[i]].dtype == HR_BF16;
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        bf16 |= s->out[k] != HR_NONE && program->tensors[s->out[k]].dtype == HR_BF16;
    return bf16 ? HR_COMPUTE_BF16 : HR_COMPUTE_F32;
}

/* Bytes that the executor passes: at most the rows of the iteration. */
static int64_t bytes_shown(const hr_program *program, int32_t tensor, int64_t rows)
{
    const hr_tensor *shown = &program->tensors[tensor];
    return hr_min(rows, shown->rows) * shown->row_bytes + shown->fixed_bytes;
}

/* Rows that a step processes: those of its first operand that has any. */
static int64_t rows_of(const hr_program *program, const hr_step *step, int64_t rows)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE && program->tensors[step->in[i]].rows > 0)
            return hr_min(rows, program->tensors[step->in[i]].rows);
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        if (step->out[k] != HR_NONE && program->tensors[step->out[k]].rows > 0)
            return hr_min(rows, program->tensors[step->out[k]].rows);
    return 0;
}

/* Scales the work to that of the busiest thread, which ends last. */
static void share(hr_work *work, int64_t pieces, int64_t threads)
{
    if (pieces <= 0 || pieces % threads == 0) return;
    const int64_t most = (pieces + threads - 1) / threads * threads;
    for (int32_t t = 0; t < HR_TERM_COUNT; t++) {
        const int64_t amount = work->amount[t];
        work->amount[t] = add(multiply(amount / pieces, most), amount % pieces * most / pieces);
    }
}

hr_work hr_cost_work(const hr_program *program, int32_t step, int64_t rows, bool starts,
                     int32_t threads)
{
    const hr_step *s = &program->steps[step];
    const hr_op *op = hr_step_op(program, s);
    const hr_op_facts *facts = hr_step_facts(program, s);
    const int64_t worked = rows_of(program, s, rows);
    hr_work work = { .amount = { 0 } };
    if (op->flops) work.amount[HR_TERM_FLOPS] = op->flops(s->attr, worked);
    if (facts->items)
        facts->items(s, hr_cost_dtype(program, step) == HR_COMPUTE_BF16, worked,
                     &work.amount[HR_TERM_ITEMS]);
    for (int32_t i = 0; op->in[i]; i++) {
        if (s->in[i] == HR_NONE || facts->in_looked_up >> i & 1) continue;
        const bool all = s->in_parts && hr_letter_is_sequence(op->in[i]);
        const int64_t bytes = bytes_shown(program, s->in[i], all ? INT64_MAX : worked);
        work.amount[HR_TERM_IN + i] = facts->in_bytes ? facts->in_bytes(s->attr, i, bytes) : bytes;
    }
    for (int32_t k = 0; op->out[k]; k++) {
        if (s->out[k] == HR_NONE) continue;
        const int64_t bytes = bytes_shown(program, s->out[k], worked);
        const bool sums = (op->out[k] == 'a' || op->out[k] == 'A') && worked > 0;
        if (!(facts->out_looked_up >> k & 1)) work.amount[HR_TERM_OUT + k] = bytes;
        if (sums && starts) work.amount[HR_TERM_START] = add(work.amount[HR_TERM_START], bytes);
    }
    if (facts->pieces) share(&work, facts->pieces(s->attr, worked), threads);
    return work;
}

/* floor(amount x rate / 10^6). The product is split, so it is exact in 64 bits or saturates. */
static int64_t picoseconds(int64_t amount, int64_t unit_as)
{
    const int64_t as_per_ps = 1000000;
    const int64_t whole = multiply(amount / as_per_ps, unit_as);
    return add(whole, amount % as_per_ps * unit_as / as_per_ps);
}

/* The same in the unit of these rates. */
static int64_t cost_of_term(const hr_rates *rates, int64_t amount, int64_t unit_as)
{
    if (!rates->in_nanoseconds) return picoseconds(amount, unit_as);
    return add(picoseconds(amount / 1000, unit_as), amount % 1000 * unit_as / 1000000000);
}

static int64_t cost_of(const hr_rates *rates, const hr_rate *rate, const hr_work *work)
{
    int64_t sum = rates->in_nanoseconds ? rate->call_ps / 1000 : rate->call_ps;
    for (int32_t t = 0; t < HR_TERM_COUNT; t++)
        if (work->amount[t] && rate->unit_as[t])
            sum = add(sum, cost_of_term(rates, work->amount[t], rate->unit_as[t]));
    return sum;
}

int64_t hr_cost_of(const hr_rate *rate, const hr_work *work)
{
    static const hr_rates in_picoseconds = { .in_nanoseconds = false };
    return cost_of(&in_picoseconds, rate, work);
}

double hr_cost_seconds(const hr_rates *rates, int64_t cost)
{
    return (rates->in_nanoseconds ? 1e-9 : 1e-12) * (double)cost;
}

bool hr_cost_needs_nanoseconds(const hr_config *config, int64_t flop_as)
{
    const double D = (double)config->model.d_model, F = (double)config->model.d_ff,
                 L = (double)config->model.n_layers, V = (double)config->model.vocab_size;
    const double A = fmax(D, (double)(config->model.n_heads * hr_config_head_dim(config)));
    const double T = (double)config->train.seq_len, B = (double)config->train.batch;
    const double products = 6 * (L * (3 * D * F + 4 * D * A) + V * D);
    const double flops = B * T * (products + 7 * T * L * A);
    return 1e-18 * flops * (double)flop_as > NANOSECONDS_FROM;
}

static const hr_rate *rate_of(const hr_program *program, const hr_rates *rates, int32_t step)
{
    return &rates->op[program->steps[step].op][hr_cost_dtype(program, step)];
}

int64_t hr_cost_step(const hr_program *program, const hr_rates *rates, int32_t step)
{
    const hr_work work = hr_cost_work(program, step, INT64_MAX, false, rates->threads);
    return cost_of(rates, rate_of(program, rates, step), &work);
}

/* Iterations with equal row counts form one kind. Each loop yields any number of full iterations
 * and at most one short one, so each loop adds at most one kind. */
enum { LOOPS_DEEP = 16, KINDS_MOST = LOOPS_DEEP + 1 };

typedef struct {
    int64_t rows[KINDS_MOST], times[KINDS_MOST];
    int32_t count;
} kinds;

static void add_kind(kinds *all, int64_t rows, int64_t times)
{
    if (times == 0 || rows == 0) return;
    for (int32_t i = 0; i < all->count; i++) {
        if (all->rows[i] != rows) continue;
        all->times[i] = add(all->times[i], times);
        return;
    }
    HR_ASSERT(all->count < KINDS_MOST);
    all->rows[all->count] = rows;
    all->times[all->count++] = times;
}

static void enter(kinds *all, const hr_loop *loop)
{
    if (loop->rows == 0) {
        for (int32_t i = 0; i < all->count; i++)
            all->times[i] = multiply(all->times[i], loop->count);
        return;
    }
    const kinds outer = *all;
    all->count = 0;
    for (int32_t i = 0; i < outer.count; i++) {
        const int64_t held = hr_min(outer.rows[i], loop->rows_total);
        add_kind(all, loop->rows, multiply(outer.times[i], held / loop->rows));
        add_kind(all, held % loop->rows, outer.times[i]);
    }
}

static void find_kinds(const hr_program *program, int32_t step, kinds *all)
{
    const hr_loop *loops = program->loops;
    int32_t path[LOOPS_DEEP], depth = 0;
    for (int32_t l = program->steps[step].loop; l > 0; l = loops[l].parent) {
        HR_ASSERT(depth < LOOPS_DEEP);
        path[depth++] = l;
    }
    all->rows[0] = INT64_MAX;
    all->times[0] = 1;
    all->count = 1;
    while (depth-- > 0) enter(all, &loops[path[depth]]);
}

int64_t hr_cost_turns(const hr_program *program, int32_t step)
{
    kinds all;
    int64_t turns = 0;
    find_kinds(program, step, &all);
    for (int32_t i = 0; i < all.count; i++) turns = add(turns, all.times[i]);
    return turns;
}

/* How often the sums of a step start in one iteration of its section: once per iteration of their
 * home. */
static int64_t starts_of(const hr_program *program, int32_t step)
{
    const hr_step *s = &program->steps[step];
    const char *letters = hr_step_op(program, s)->out;
    int32_t sum = HR_NONE;
    for (int32_t k = 0; letters[k] && sum == HR_NONE; k++)
        if (letters[k] == 'a' || letters[k] == 'A') sum = s->out[k];
    if (sum == HR_NONE) return 0;
    int64_t starts = 1;
    for (int32_t l = program->tensors[hr_tensor_root(program, sum)].home; l > 0;
         l = program->loops[l].parent)
        starts = multiply(starts, program->loops[l].count);
    return starts;
}

double hr_cost_bytes_moved(const hr_program *program, int32_t step)
{
    const hr_step *s = &program->steps[step];
    double bytes = 0;
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (s->in[i] != HR_NONE) bytes += (double)hr_tensor_bytes(&program->tensors[s->in[i]]);
    for (int32_t l = s->loop; l > 0; l = program->loops[l].parent)
        bytes *= (double)program->loops[l].count;
    return bytes;
}

int64_t hr_cost_transfer(const hr_program *program, const hr_rates *rates, int32_t step)
{
    const bool fetches = hr_step_op(program, &program->steps[step])->transfer ==
                         HR_TRANSFER_FETCH_BEGIN;
    const int64_t rate = fetches ? hr_rates_file_read(rates) : hr_rates_file_write(rates);
    const double unit = rates->in_nanoseconds ? 1e9 : 1e12;
    const double cost = hr_cost_bytes_moved(program, step) / (double)rate * unit;
    return cost < 9e18 ? (int64_t)cost : INT64_MAX;
}

/* Whether a step begins the transfer of an activation. */
static bool moves_activation(const hr_program *program, const hr_step *step)
{
    const uint8_t half = hr_step_op(program, step)->transfer;
    if (half != HR_TRANSFER_FETCH_BEGIN && half != HR_TRANSFER_SPILL_BEGIN) return false;
    const int32_t away = half == HR_TRANSFER_FETCH_BEGIN ? step->in[0] : step->out[0];
    return program->tensors[away].role == HR_ROLE_ACTIVATION;
}

int64_t hr_cost_step_total(const hr_program *program, const hr_rates *rates, int32_t step)
{
    if (moves_activation(program, &program->steps[step]))
        return hr_cost_transfer(program, rates, step);
    const hr_rate *rate = rate_of(program, rates, step);
    const int64_t starts = starts_of(program, step);
    kinds all;
    int64_t total = 0;
    find_kinds(program, step, &all);
    for (int32_t i = 0; i < all.count; i++) {
        const hr_work work = hr_cost_work(program, step, all.rows[i], false, rates->threads);
        total = add(total, multiply(all.times[i], cost_of(rates, rate, &work)));
    }
    if (starts == 0) return total;
    const hr_work started = hr_cost_work(program, step, INT64_MAX, true, rates->threads);
    const int64_t start_cost = cost_of_term(rates, started.amount[HR_TERM_START],
                                            rate->unit_as[HR_TERM_START]);
    return add(total, multiply(start_cost, starts));
}

double hr_cost_flops(const hr_program *program, int32_t step)
{
    kinds all;
    double flops = 0;
    find_kinds(program, step, &all);
    for (int32_t i = 0; i < all.count; i++) {
        const hr_work work = hr_cost_work(program, step, all.rows[i], false, 1);
        flops += (double)all.times[i] * (double)work.amount[HR_TERM_FLOPS];
    }
    return flops;
}

int64_t hr_cost_program(const hr_program *program, const hr_rates *rates)
{
    static const hr_loop_id sections[] = { HR_LOOP_FETCH, HR_LOOP_NORM, HR_LOOP_STEP,
                                           HR_LOOP_UPDATE };
    int64_t total = 0;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        const int32_t l = hr_program_loop(program, sections[i]);
        if (l == HR_NONE) continue;
        const hr_loop *section = &program->loops[l];
        for (int32_t s = section->step_first; s <= section->step_last; s++)
            total = add(total, hr_cost_step_total(program, rates, s));
    }
    return total;
}

void hr_rates_guess(const hr_backend *backend, uint32_t features, int32_t threads, hr_rates *rates)
{
    memset(rates, 0, sizeof *rates);
    rates->backend = backend;
    rates->threads = (int32_t)hr_max(threads, 1);
    backend->guess(features, rates);
}
