/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_ref.c - reference implementation of cross-entropy. */
#include <math.h>

#include "base/element.h"
#include "ops/loss/loss_kernels.h"

static void add(const hr_loss_columns *columns, hr_loss_part *part)
{
    const int64_t target = columns->target - columns->first;
    if (target >= 0 && target < columns->V)
        part->logit = hr_element_get(columns->logits, target, columns->dtype);
    for (int64_t v = 0; v < columns->V; v += HR_LOSS_BLOCK) {
        const int64_t end = v + HR_LOSS_BLOCK < columns->V ? v + HR_LOSS_BLOCK : columns->V;
        float max = -INFINITY;
        double sum = 0;
        for (int64_t i = v; i < end; i++)
            max = fmaxf(max, hr_element_get(columns->logits, i, columns->dtype));
        const double base = max == -INFINITY ? 0 : max;
        for (int64_t i = v; i < end; i++)
            sum += exp(hr_element_get(columns->logits, i, columns->dtype) - base);
        hr_loss_add(part, max, sum);
    }
}

static void gradient(const hr_loss_columns *columns, const hr_loss_part *part,
                     hr_loss_factors factors, void *dlogits)
{
    const double z_factor = factors.z > 0 ? 1 + 2 * factors.z * hr_loss_log_sum(part) : 1;
    for (int64_t v = 0; v < columns->V; v++) {
        const double logit = hr_element_get(columns->logits, v, columns->dtype);
        const double probability = exp(logit - part->max) / part->sum;
        const bool is_target = columns->first + v == columns->target;
        hr_element_set(dlogits, v, columns->dtype,
                       (float)((probability * z_factor - is_target) * factors.scale));
    }
}

static void row(const hr_loss_columns *columns, hr_loss_part *part, hr_loss_factors factors,
                void *dlogits)
{
    add(columns, part);
    if (dlogits) gradient(columns, part, factors, dlogits);
}

void hr_loss_fill_ref(hr_loss_kernels *kernels)
{
    *kernels = (hr_loss_kernels){ row, add, gradient };
}
