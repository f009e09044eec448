/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_ref.c - reference implementation of one row of cross-entropy. */
#include <math.h>

#include "ops/element.h"
#include "ops/loss/loss_kernels.h"

static hr_loss_row row(const void *logits, void *dlogits, int64_t V, int64_t target, double scale,
                       double z, hr_dtype dtype)
{
    double max_logit = -INFINITY, sum = 0;
    for (int64_t v = 0; v < V; v++) max_logit = fmax(max_logit, hr_element_get(logits, v, dtype));
    for (int64_t v = 0; v < V; v++) sum += exp(hr_element_get(logits, v, dtype) - max_logit);
    const double log_sum = log(sum) + max_logit;
    const hr_loss_row row = { log_sum - hr_element_get(logits, target, dtype), log_sum };
    const double z_factor = z > 0 ? 1 + 2 * z * log_sum : 1;
    if (!dlogits) return row;
    for (int64_t v = 0; v < V; v++) {
        const double probability = exp(hr_element_get(logits, v, dtype) - max_logit) / sum;
        hr_element_set(dlogits, v, dtype,
                       (float)((probability * z_factor - (v == target)) * scale));
    }
    return row;
}

void hr_loss_fill_ref(hr_loss_kernels *kernels)
{
    *kernels = (hr_loss_kernels){ row };
}
