/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_ref.c - the specification, element by element. */
#include <math.h>

#include "ops/element.h"
#include "ops/glu/glu_kernels.h"

/* act and its slope in one place, since both are made of s(z) and z'. */
typedef struct {
    double value, slope;
} gated;

static gated gate_at(hr_glu_act act, double x)
{
    const double linear = M_2_SQRTPI * M_SQRT2, cubic = 0.044715 * linear; /* sqrt(8 / pi) */
    const bool silu = act == HR_GLU_SILU;
    const double z = silu ? x : x * (linear + cubic * x * x);
    const double dz = silu ? 1 : linear + 3 * cubic * x * x;
    if (fabs(z) > 87) return z < 0 ? (gated){ 0, 0 } : (gated){ x, 1 }; /* the limits, to 1e-35 */
    const double open = 1 / (1 + exp(-z)), shut = 1 / (1 + exp(z));
    return (gated){ x * open, open + x * open * shut * dz };
}

static void fwd(const void *gate, const void *up, void *y, int64_t count, hr_glu_act act,
                hr_dtype dtype)
{
    for (int64_t i = 0; i < count; i++) {
        const gated g = gate_at(act, hr_element_get(gate, i, dtype));
        hr_element_set(y, i, dtype, (float)(g.value * hr_element_get(up, i, dtype)));
    }
}

static void bwd(const void *dy, const void *gate, const void *up, void *dgate, void *dup,
                int64_t count, hr_glu_act act, hr_dtype dtype)
{
    for (int64_t i = 0; i < count; i++) {
        const gated g = gate_at(act, hr_element_get(gate, i, dtype));
        const double through = hr_element_get(dy, i, dtype), wide = hr_element_get(up, i, dtype);
        hr_element_set(dgate, i, dtype, (float)(through * wide * g.slope));
        hr_element_set(dup, i, dtype, (float)(through * g.value));
    }
}

void hr_glu_fill_ref(hr_glu_kernels *kernels)
{
    *kernels = (hr_glu_kernels){ fwd, bwd };
}
