/* SPDX-License-Identifier: Apache-2.0 */
/* train/save.c - rounds of gathering and writing. */
#include "train/save.h"

#include "base/assert.h"
#include "base/checked.h"

typedef struct {
    const hr_weights_out *out;
    int32_t param;
    const void *values;
    int64_t first, count, width;
    float *staging;
} gathering;

/* Whole panels to each thread, so that no line of one is fetched by two. */
static void gather(void *context, int32_t thread, int32_t threads)
{
    const gathering *g = context;
    const int64_t panels = (g->count + HR_PANEL_WIDTH - 1) / HR_PANEL_WIDTH;
    const int64_t first = hr_min(panels * thread / threads * HR_PANEL_WIDTH, g->count);
    const int64_t end = hr_min(panels * (thread + 1) / threads * HR_PANEL_WIDTH, g->count);
    if (first < end)
        hr_weights_gather(g->out->program, g->param, g->out->kept, g->values, g->first + first,
                          end - first, g->staging + first * g->width);
}

hr_status hr_save(hr_weights_out *out, int32_t param, hr_pool *pool, const void *values,
                  void *staging, int64_t staging_bytes, hr_error *err)
{
    enum { PANEL = HR_PANEL_WIDTH };
    const hr_param *of = &out->program->params[param];
    const int64_t rows = hr_weights_rows(of), width = hr_weights_width(of);
    int64_t held = staging_bytes / (width * (int64_t)sizeof(float));
    HR_ASSERT(held > 0);
    if (held > PANEL) held = held / PANEL * PANEL;
    for (int64_t row = 0; row < rows; row += held) {
        const int64_t count = hr_min(held, rows - row);
        gathering g = { out, param, values, row, count, width, staging };
        if (count > PANEL) hr_pool_run(pool, gather, &g);
        else gather(&g, 0, 1);
        const hr_status status = hr_weights_append(out, param, staging, count * width, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}
