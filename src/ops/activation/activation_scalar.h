/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation_scalar.h - reference activations and their derivatives, in double. */
#ifndef HR_OPS_ACTIVATION_ACTIVATION_SCALAR_H
#define HR_OPS_ACTIVATION_ACTIVATION_SCALAR_H

#include <math.h>

#include "ops/linear/linear.h"

static inline double hr_normal_below(double x) /* Phi */
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

static inline double hr_gelu_tanh_angle(double x)
{
    return sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

static inline double hr_activate(hr_act act, double z)
{
    if (act == HR_ACT_RELU) return z < 0 ? 0 : z; /* keeps NaN */
    if (act == HR_ACT_GELU) return z * hr_normal_below(z);
    if (act == HR_ACT_GELU_TANH) return z * (1 + tanh(hr_gelu_tanh_angle(z))) / 2;
    return z;
}

/* d/dx [x (1 + tanh a) / 2] = (1 + tanh a) / 2 + x a' / (2 cosh^2 a) */
static inline double hr_gelu_tanh_slope(double x)
{
    const double logistic = (1 + tanh(hr_gelu_tanh_angle(x))) / 2,
                 sech = 1 / cosh(hr_gelu_tanh_angle(x));
    return logistic + x / 2 * sech * sech * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

/* d/dx [x Phi(x)] = Phi(x) + x phi(x), phi(x) = exp(-x^2 / 2) / sqrt(2 pi) */
static inline double hr_activation_slope(hr_act act, double aux)
{
    if (act == HR_ACT_NONE) return 1;
    if (act == HR_ACT_RELU) return aux > 0 ? 1 : 0;
    if (act == HR_ACT_GELU_TANH) return hr_gelu_tanh_slope(aux);
    const double inverse_sqrt_2pi = M_2_SQRTPI * M_SQRT1_2 / 2;
    return hr_normal_below(aux) + aux * exp(-aux * aux / 2) * inverse_sqrt_2pi;
}

#endif
