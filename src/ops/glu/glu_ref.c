/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_ref.c - reference implementation, element by element. */
#include <math.h>

#include "base/element.h"
#include "ops/glu/glu_kernels.h"

/* act and its derivative; both use s(x). */
typedef struct {
    double value, slope;
} gated;

static gated gate_at(double x)
{
    if (fabs(x) > 87) return x < 0 ? (gated){ 0, 0 } : (gated){ x, 1 }; /* the limits, to 1e-35 */
    const double s = 1 / (1 + exp(-x)), one_minus_s = 1 / (1 + exp(x));
    return (gated){ x * s, s + x * s * one_minus_s };
}

static void fwd(const void *gate, const void *up, void *y, int64_t count, hr_dtype dtype)
{
    for (int64_t i = 0; i < count; i++) {
        const gated g = gate_at(hr_element_get(gate, i, dtype));
        hr_element_set(y, i, dtype, (float)(g.value * hr_element_get(up, i, dtype)));
    }
}

static void bwd(const void *dy, const void *gate, const void *up, void *dgate, void *dup,
                int64_t count, hr_dtype dtype)
{
    for (int64_t i = 0; i < count; i++) {
        const gated g = gate_at(hr_element_get(gate, i, dtype));
        const double grad = hr_element_get(dy, i, dtype), up_value = hr_element_get(up, i, dtype);
        hr_element_set(dgate, i, dtype, (float)(grad * up_value * g.slope));
        hr_element_set(dup, i, dtype, (float)(grad * g.value));
    }
}

void hr_glu_fill_ref(hr_glu_kernels *kernels)
{
    *kernels = (hr_glu_kernels){ fwd, bwd };
}
