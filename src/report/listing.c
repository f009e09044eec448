/* SPDX-License-Identifier: Apache-2.0 */
/* report/listing.c - lists the steps, with a line where each loop begins. */
#include "report/listing.h"

#include "base/writer.h"
#include "graph/backend.h"

enum { DEPTH_MOST = 16 };

/* Stores the loops around a step, outermost first, without the run. Returns their number. */
static int32_t loops_around(const hr_program *program, int32_t s, int32_t around[DEPTH_MOST])
{
    int32_t depth = 0;
    for (int32_t l = program->steps[s].loop; l > 0 && depth < DEPTH_MOST;
         l = program->loops[l].parent)
        around[depth++] = l;
    for (int32_t i = 0; i < depth / 2; i++) {
        const int32_t other = around[i];
        around[i] = around[depth - 1 - i];
        around[depth - 1 - i] = other;
    }
    return depth;
}

static void put_loop(hr_writer *writer, const hr_loop *loop, int32_t depth)
{
    hr_put(writer, "%*s%s", 2 * depth, "", loop->name);
    if (loop->count == HR_MANY) hr_put(writer, ", any number of iterations");
    else if (loop->count != 1 || loop->rows) hr_put(writer, " x %lld", (long long)loop->count);
    if (loop->rows) hr_put(writer, ", %lld token rows per iteration", (long long)loop->rows);
    hr_put(writer, "\n");
}

static void put_step(hr_writer *writer, const hr_program *program, int32_t s, int32_t depth)
{
    static const char *const directions[] = { [HR_DIR_NONE] = "",
                                              [HR_DIR_FORWARD] = "",
                                              [HR_DIR_BACKWARD] = " backward",
                                              [HR_DIR_RECOMPUTED] = " recompute" };
    const hr_step *step = &program->steps[s];
    const hr_op *op = hr_step_op(program, step);
    hr_put(writer, "%*s%5d  %-13s", 2 * depth, "", s, op->name);
    for (int32_t k = 0; op->out[k]; k++)
        if (step->out[k] != HR_NONE)
            hr_put(writer, " %c:%s", op->out[k] | 0x20, program->tensors[step->out[k]].name);
    hr_put(writer, "  <-");
    for (int32_t i = 0; op->in[i]; i++)
        if (step->in[i] != HR_NONE) hr_put(writer, " %s", program->tensors[step->in[i]].name);
    if (step->layer != HR_NONE)
        hr_put(writer, "   (layer %d%s)", step->layer, directions[step->direction]);
    hr_put(writer, "\n");
}

void hr_listing(const hr_program *program, char *text, int64_t bytes)
{
    hr_writer writer = { text, bytes };
    for (int32_t s = 0; s < program->step_count && !writer.cut; s++) {
        int32_t around[DEPTH_MOST];
        const int32_t depth = loops_around(program, s, around);
        for (int32_t i = 0; i < depth; i++)
            if (program->loops[around[i]].step_first == s)
                put_loop(&writer, &program->loops[around[i]], i);
        put_step(&writer, program, s, depth);
    }
}
