/* SPDX-License-Identifier: Apache-2.0 */
/* report/details.c - counts live bytes per step and by component.
 *
 * At each step, the bytes of a storage belong to the buffer whose lifetime in it began last:
 * earlier buffers have ended and passed it on. */
#include "report/details.h"

#include <string.h>

#include "base/checked.h"
#include "base/sort.h"
#include "graph/backend.h"
#include "plan/lifetimes.h"
#include "plan/strips.h"
#include "report/labels.h"
#include "report/shape.h"

/* Components: persistent values and sums by role, activations by kind. */
enum {
    PART_WEIGHTS,
    PART_MASTERS,
    PART_RESIDUALS,
    PART_MOMENTS,
    PART_WINDOWS,
    PART_GRADIENTS,
    PART_INPUTS,
    PART_SUMS,
    PART_TABLES,
    PART_SCRATCH,
    PART_WORK,
    PART_STREAM, /* saved, outside of the layers */
    PART_KEPT,   /* + hr_intermediate */
    PARTS = PART_KEPT + HR_INTERMEDIATE_INPUT
};
_Static_assert((int)PARTS <= (int)HR_PLAN_PARTS_MOST, "every component has its line");

#define KEPT "saved for backward"

static const struct {
    const char *name, *why;
} parts[PARTS] = {
    [PART_WEIGHTS] = { "weights", "used in every pass" },
    [PART_MASTERS] = { "master weights (fp32)", "updated by the optimizer" },
    [PART_RESIDUALS] = { "weight residuals (16 bits)", "with bf16 weights, fp32 masters" },
    [PART_MOMENTS] = { "optimizer states", "kept between steps" },
    [PART_WINDOWS] = { "moment windows", "pieces of the file, read and written here" },
    [PART_GRADIENTS] = { "weight gradients", "accumulated until the update" },
    [PART_INPUTS] = { "batch", "token ids and targets" },
    [PART_SUMS] = { "loss and norm sums", "scalars of the step" },
    [PART_TABLES] = { "lookup tables", "computed once at load" },
    [PART_SCRATCH] = { "workspace", "scratch of this operation" },
    [PART_WORK] = { "temporaries", "not saved for backward" },
    [PART_STREAM] = { "embedding, norm, logits", "values outside the layers" },
    [PART_KEPT + HR_INTERMEDIATE_NONE] = { "layer inputs", KEPT },
    [PART_KEPT + HR_INTERMEDIATE_NORM] = { "norm outputs", KEPT },
    [PART_KEPT + HR_INTERMEDIATE_Q] = { "queries, keys, values", KEPT },
    [PART_KEPT + HR_INTERMEDIATE_ATTENTION] = { "attention outputs", KEPT },
    [PART_KEPT + HR_INTERMEDIATE_MID] = { "MLP inputs", KEPT },
    [PART_KEPT + HR_INTERMEDIATE_GATE] = { "MLP gates", KEPT },
    [PART_KEPT + HR_INTERMEDIATE_UP] = { "MLP pre-activations", KEPT },
    [PART_KEPT + HR_INTERMEDIATE_ACTIVATION] = { "MLP activations", KEPT },
};

enum { USE_FORWARD = 1, USE_LATER = 2 }; /* written in forward; read after forward */

typedef struct {
    const hr_config *config;
    const hr_program *program;
    const hr_plan *plan;
    int64_t *alive; /* [step_count] live bytes */
    int32_t *owner; /* [storage_count] buffer that uses it in a step, or HR_NONE */
    uint8_t *uses;  /* [buffer_count] for buffers of root tensors */
} counting;

/* ---- tables */

static int32_t root_of(const hr_plan *plan, int32_t buffer)
{
    while (plan->buffers[buffer].view_of != HR_NONE) buffer = plan->buffers[buffer].view_of;
    return buffer;
}

/* Finds the values that the backward pass of the training step reads from the forward pass. */
static void find_uses(const counting *c)
{
    const hr_program *program = c->program;
    const hr_plan *plan = c->plan;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        const bool later = step->direction == HR_DIR_BACKWARD ||
                           step->direction == HR_DIR_RECOMPUTED;
        for (int32_t i = 0; i < HR_OUT_MAX && step->direction == HR_DIR_FORWARD; i++)
            if (step->out[i] != HR_NONE)
                c->uses[root_of(plan, plan->buffer_of_tensor[step->out[i]])] |= USE_FORWARD;
        for (int32_t i = 0; i < HR_IN_MAX && later; i++)
            if (step->in[i] != HR_NONE)
                c->uses[root_of(plan, plan->buffer_of_tensor[step->in[i]])] |= USE_LATER;
    }
}

/* In a step. */
static void find_owners(const counting *c, int32_t step)
{
    const hr_plan *plan = c->plan;
    for (int32_t i = 0; i < plan->storage_count; i++) c->owner[i] = HR_NONE;
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_buffer *buffer = &plan->buffers[b];
        const bool there = buffer->step_first <= step && step <= buffer->step_last;
        if (buffer->view_of != HR_NONE || !there) continue;
        if (buffer->storage >= plan->spaces[HR_SPACE_HOST].storage_count) continue;
        const int32_t other = c->owner[buffer->storage];
        if (other == HR_NONE || plan->buffers[other].step_first <= buffer->step_first)
            c->owner[buffer->storage] = b;
    }
}

/* Queries, keys and values share a line, in one buffer or three. */
static int32_t kind_of(hr_intermediates set)
{
    const hr_intermediates qkv = 1u << HR_INTERMEDIATE_Q | 1u << HR_INTERMEDIATE_K |
                                 1u << HR_INTERMEDIATE_V;
    if (set & qkv) return HR_INTERMEDIATE_Q;
    for (int32_t i = 1; i < HR_INTERMEDIATE_INPUT; i++)
        if (set >> i & 1) return i;
    return HR_INTERMEDIATE_NONE; /* a layer input */
}

static int32_t part_of(const counting *c, int32_t b)
{
    const hr_buffer *buffer = &c->plan->buffers[b];
    if (buffer->tensor == HR_NONE) return PART_SCRATCH;
    const hr_tensor *tensor = &c->program->tensors[buffer->tensor];
    switch (tensor->role) {
    case HR_ROLE_WEIGHT: return PART_WEIGHTS;
    case HR_ROLE_MASTER: return PART_MASTERS;
    case HR_ROLE_STATE:
        if (tensor->dtype == HR_U16) return PART_RESIDUALS;
        return tensor->home == HR_NONE ? PART_MOMENTS : PART_WINDOWS;
    case HR_ROLE_GRADIENT: return PART_GRADIENTS;
    case HR_ROLE_INPUT: return PART_INPUTS;
    case HR_ROLE_SUM: return PART_SUMS;
    case HR_ROLE_TABLE: return PART_TABLES;
    default: break;
    }
    if (c->uses[b] != (USE_FORWARD | USE_LATER)) return PART_WORK;
    return tensor->layer == HR_NONE ? PART_STREAM : PART_KEPT + kind_of(tensor->intermediates);
}

/* ---- output */

static void add_part(hr_plan_part *part, const char *name, const char *why, int64_t bytes)
{
    hr_writer writer = { part->name, sizeof part->name };
    hr_put(&writer, "%s", name);
    writer = (hr_writer){ part->why, sizeof part->why };
    hr_put(&writer, "%s", why);
    part->bytes = bytes;
}

static void add_lines(const hr_plan *plan, hr_plan_details *details)
{
    static const char *const whys[][2] = {
        { "image", "program and shared libraries" },
        { "stacks", "thread stacks" },
        { "heap", "malloc heap, fixed size" },
        { "tables", "plan, vocabulary, I/O buffers" },
        { "planning", "peak of planning, freed before training" },
        { "arena", "all tensors and workspace" },
        { "kernel", "allowance for inexact RSS counters" },
    };
    for (int32_t i = 0; i < plan->process.line_count; i++) {
        const char *name = plan->process.lines[i].name, *why = "";
        for (size_t k = 0; k < sizeof whys / sizeof *whys; k++)
            if (!strcmp(name, whys[k][0])) why = whys[k][1];
        if (plan->process.lines[i].bytes)
            add_part(&details->lines[details->line_count++], name, why,
                     plan->process.lines[i].bytes);
    }
}

/* The sections of a training step (fetch, norm, step and update) are one phase, the other sections
 * a phase each. */
static hr_loop_id phase_of(hr_loop_id section)
{
    const bool training = section == HR_LOOP_FETCH || section == HR_LOOP_NORM ||
                          section == HR_LOOP_UPDATE;
    return training ? HR_LOOP_STEP : section;
}

static void add_phases(const counting *c, bool reads, hr_plan_details *details)
{
    static const hr_loop_id phases[] = { HR_LOOP_LOAD,       HR_LOOP_STEP,   HR_LOOP_STEP,
                                         HR_LOOP_EVALUATION, HR_LOOP_SAMPLE, HR_LOOP_SAVE };
    static const char *const names[] = { "load",       "first step", "later steps",
                                         "evaluation", "sampling",   "save" };
    const char *const whys[] = { reads ? "weights read from files"
                                       : "initial values or a checkpoint",
                                 "optimizer states are allocated at load",
                                 "same as the first step",
                                 "on data.valid",
                                 "text generated during training",
                                 "writing a checkpoint" };
    const hr_program *program = c->program;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        int64_t most = 0;
        for (int32_t s = 0; s < program->step_count; s++)
            if (phase_of(hr_step_section(program, s)) == phases[k])
                most = hr_max(most, c->alive[s]);
        if (most) add_part(&details->phases[details->phase_count++], names[k], whys[k], most);
    }
}

/* The bytes of each component in the step whose owners were found. */
static void sum_parts(const counting *c, int64_t sums[PARTS])
{
    const hr_plan *plan = c->plan;
    for (int32_t n = 0; n < PARTS; n++) sums[n] = 0;
    for (int32_t i = 0; i < plan->storage_count; i++)
        if (c->owner[i] != HR_NONE) sums[part_of(c, c->owner[i])] += plan->storages[i].bytes;
}

static void add_parts(const counting *c, hr_plan_details *details)
{
    int64_t sums[PARTS];
    sum_parts(c, sums);
    for (int32_t n = 0; n < PARTS; n++) {
        int32_t best = 0;
        for (int32_t k = 1; k < PARTS; k++)
            if (sums[k] > sums[best]) best = k;
        if (sums[best] == 0) return;
        const bool strips = best == PART_GRADIENTS && hr_strips_largest(c->program);
        add_part(&details->parts[details->part_count++], parts[best].name,
                 strips ? "large ones in strips, until the update" : parts[best].why, sums[best]);
        sums[best] = 0;
    }
}

/* Compares names and sizes: values of several layers that have both in common share a line. */
static int compare_values(const counting *c, int32_t a, int32_t b)
{
    const hr_buffer *buffers = c->plan->buffers;
    const hr_tensor *tensors = c->program->tensors;
    if (buffers[a].bytes != buffers[b].bytes) return buffers[a].bytes < buffers[b].bytes ? -1 : 1;
    if (buffers[a].tensor == HR_NONE || buffers[b].tensor == HR_NONE)
        return buffers[a].tensor == buffers[b].tensor ? a - b
                                                      : buffers[a].tensor - buffers[b].tensor;
    return strcmp(tensors[buffers[a].tensor].name, tensors[buffers[b].tensor].name);
}

static bool is_before(const void *table, int32_t a, int32_t b)
{
    const int order = compare_values(table, a, b);
    return order ? order < 0 : a < b;
}

enum { NAME_SHOWN = 42 };

static void describe_tensor(const counting *c, int32_t b, int32_t count, hr_plan_part *part)
{
    const hr_buffer *buffer = &c->plan->buffers[b];
    const hr_tensor *tensor = buffer->tensor == HR_NONE ? NULL
                                                        : &c->program->tensors[buffer->tensor];
    char name[HR_PLAN_NAME_BYTES] = "scratch";
    if (tensor) hr_label_tensor(tensor, name);
    if (count > 1) { /* several layers: omit the layer number of this one */
        hr_writer of_many = { name, sizeof name };
        hr_tensor any = *tensor;
        any.layer = HR_NONE;
        hr_label_tensor(&any, name);
        of_many.used = (int64_t)strlen(name);
        hr_put(&of_many, " (%d layers)", count);
    }
    /* Truncate a long name at its start, because the end identifies the value. */
    const size_t length = strlen(name);
    if (length > NAME_SHOWN) memmove(name, name + length - NAME_SHOWN, NAME_SHOWN + 1);
    add_part(part, name, parts[part_of(c, b)].name, count * buffer->bytes);
}

/* Sorts c->owner, so that equal values are neighbors. */
static void add_largest(const counting *c, hr_plan_details *details)
{
    int32_t rows = 0, first[HR_PLAN_LARGEST_MOST], counts[HR_PLAN_LARGEST_MOST], found = 0;
    int64_t bytes[HR_PLAN_LARGEST_MOST];
    for (int32_t i = 0; i < c->plan->storage_count; i++)
        if (c->owner[i] != HR_NONE) c->owner[rows++] = c->owner[i];
    hr_sort(c, is_before, c->owner, rows);
    for (int32_t i = 0, next; i < rows; i = next) {
        for (next = i + 1; next < rows && !compare_values(c, c->owner[i], c->owner[next]);) next++;
        const int64_t all = (next - i) * c->plan->buffers[c->owner[i]].bytes;
        int32_t at = found;
        for (; at > 0 && bytes[at - 1] < all; at--) {
            if (at == HR_PLAN_LARGEST_MOST) continue;
            first[at] = first[at - 1];
            counts[at] = counts[at - 1];
            bytes[at] = bytes[at - 1];
        }
        if (at == HR_PLAN_LARGEST_MOST) continue;
        first[at] = c->owner[i];
        counts[at] = next - i;
        bytes[at] = all;
        found = (int32_t)hr_min(found + 1, HR_PLAN_LARGEST_MOST);
    }
    for (int32_t i = 0; i < found; i++) {
        describe_tensor(c, first[i], counts[i], &details->largest[i]);
        const hr_buffer *buffer = &c->plan->buffers[first[i]];
        if (buffer->tensor != HR_NONE)
            hr_shape_print(c->config, &c->program->tensors[buffer->tensor], buffer->bytes,
                           details->shapes[i]);
    }
    details->largest_count = found;
}

/* Where the backward pass and the update begin. Updates may be in the backward pass. */
static void add_marks(const hr_program *program, int32_t first, int32_t last,
                      hr_plan_details *details)
{
    for (int32_t s = last; s >= first; s--) {
        if (program->steps[s].direction == HR_DIR_BACKWARD) details->curve_backward = s;
        if (hr_step_section(program, s) == HR_LOOP_UPDATE) details->curve_update = s;
    }
}

void hr_details_step(const hr_program *program, int32_t *first, int32_t *last)
{
    *first = program->step_count;
    *last = -1;
    for (int32_t s = 0; s < program->step_count; s++) {
        if (phase_of(hr_step_section(program, s)) != HR_LOOP_STEP) continue;
        *first = (int32_t)hr_min(*first, s);
        *last = s;
    }
}

static void add_curve(const counting *c, hr_plan_details *details)
{
    const hr_program *program = c->program;
    int32_t first, last;
    hr_details_step(program, &first, &last);
    const int64_t steps = last - first + 1;
    const int32_t count = (int32_t)hr_min(steps, HR_PLAN_CURVE_MOST);
    for (int32_t i = 0; i < count; i++) {
        const int64_t end = first + (i + 1) * steps / count;
        int64_t most = first + i * steps / count;
        for (int64_t s = most; s < end; s++)
            if (c->alive[s] > c->alive[most]) most = s;
        details->curve[i] = c->alive[most];
        find_owners(c, (int32_t)most);
        sum_parts(c, details->curve_parts[i]);
        if (details->curve[i] > details->curve[details->curve_peak]) details->curve_peak = i;
    }
    for (int32_t n = 0; n < PARTS; n++) details->curve_names[n] = parts[n].name;
    details->curve_count = count;
    details->curve_first = first;
    details->curve_last = last;
    add_marks(program, first, last, details);
}

hr_status hr_details(const hr_config *config, const hr_program *program, const hr_plan *plan,
                     hr_region *scratch, hr_plan_details *details, hr_error *err)
{
    const int64_t kept = scratch->used;
    const counting c = { .config = config,
                         .program = program,
                         .plan = plan,
                         .alive = hr_region_take(scratch, program->step_count, sizeof *c.alive),
                         .owner = hr_region_take(scratch, plan->storage_count, sizeof *c.owner),
                         .uses = hr_region_take(scratch, plan->buffer_count, sizeof *c.uses) };
    scratch->used = kept;
    if (!c.alive || !c.owner || !c.uses)
        return hr_fail(err, HR_FAILURE, "no memory to explain a plan of %d operations",
                       program->step_count);
    hr_lifetimes_alive(program, plan, c.alive);
    find_uses(&c);
    memset(details, 0, sizeof *details);
    details->step_count = program->step_count;
    details->peak_step = plan->peak_step;
    hr_label_step(program, plan->peak_step, details->peak);
    add_lines(plan, details);
    add_phases(&c, *config->model.from, details);
    add_curve(&c, details);
    find_owners(&c, plan->peak_step);
    add_parts(&c, details);
    add_largest(&c, details); /* last: reorders c.owner */
    return HR_OK;
}
