/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_ref.c - the specification of one row of cross-entropy. */
#include <math.h>

#include "ops/element.h"
#include "ops/loss/loss_kernels.h"

static double row(const void *logits, void *dlogits, int64_t V, int64_t target, double scale,
                  hr_dtype dtype)
{
    double most = -INFINITY, sum = 0;
    for (int64_t v = 0; v < V; v++) most = fmax(most, hr_element_get(logits, v, dtype));
    for (int64_t v = 0; v < V; v++) sum += exp(hr_element_get(logits, v, dtype) - most);
    const double loss = log(sum) + most - hr_element_get(logits, target, dtype);
    if (!dlogits) return loss;
    for (int64_t v = 0; v < V; v++) {
        const double share = exp(hr_element_get(logits, v, dtype) - most) / sum;
        hr_element_set(dlogits, v, dtype, (float)((share - (v == target)) * scale));
    }
    return loss;
}

void hr_loss_fill_ref(hr_loss_kernels *kernels)
{
    *kernels = (hr_loss_kernels){ row };
}
