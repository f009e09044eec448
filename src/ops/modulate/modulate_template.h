/* SPDX-License-Identifier: Apache-2.0 */
/* ops/modulate/modulate_template.h - adapters of a token over the vectors of ops/simd. All vectors
 * of inputs are loaded before an output is stored, so an output may overwrite any input. The arrays
 * are as narrow as the rank of an adapter: beside the products around them these passes take no
 * time. */
#include <stdbool.h>

#include "base/element.h"
#include "ops/modulate/modulate_kernels.h"

/* exp(2 x) - 1 for |x| <= 10, relative error 5e-7: exp(2 x) = 2^n (1 + q), and 2^n - 1 is exact.
 * The polynomial is that of vec_exp. */
VEC_INLINE vec twice_exp_less_1(vec x)
{
    const vec most = vec_set(20);
    const vec twice = vec_min(most, vec_max(vec_sub(vec_set(0), most), vec_add(x, x)));
    const vec n = vec_round(vec_mul(twice, vec_set(1.44269504f)));
    const vec r = vec_fnma(n, vec_set(0.693147181f), twice);
    vec q = vec_set(0.00829761947f);
    q = vec_fma(q, r, vec_set(0.0419156293f));
    q = vec_fma(q, r, vec_set(0.166675765f));
    q = vec_fma(q, r, vec_set(0.499988927f));
    q = vec_fma(q, r, vec_set(0.999999691f));
    const vec power = vec_scale_by_power(vec_set(1), n);
    return vec_fma(vec_mul(q, r), power, vec_sub(power, vec_set(1)));
}

/* tanh(x) = e / (e + 2), and its derivative 4 (e + 1) / (e + 2)^2. */
VEC_INLINE vec tanh_of(vec x, vec *slope)
{
    const vec e = twice_exp_less_1(x), below = vec_div(vec_set(1), vec_add(e, vec_set(2)));
    *slope = vec_mul(vec_mul(vec_set(4), vec_add(e, vec_set(1))), vec_mul(below, below));
    return vec_mul(e, below);
}

VEC_INLINE void diagonal_fwd(const void *u, const void *p, void *y, int64_t at, int64_t lanes,
                             vec scale, hr_dtype dtype)
{
    vec slope;
    const vec m = vec_mul(scale, tanh_of(vec_load(u, at, lanes, dtype), &slope));
    vec_store(y, at, vec_mul(m, vec_load(p, at, lanes, dtype)), lanes, dtype);
}

VEC_INLINE void diagonal_bwd(const void *dy, const void *u, const void *p, void *du, void *dp,
                             int64_t at, int64_t lanes, vec scale, hr_dtype dtype)
{
    vec slope;
    const vec value = tanh_of(vec_load(u, at, lanes, dtype), &slope);
    const vec grad = vec_mul(scale, vec_load(dy, at, lanes, dtype));
    const vec other = vec_load(p, at, lanes, dtype);
    vec_store(du, at, vec_mul(vec_mul(grad, other), slope), lanes, dtype);
    vec_store(dp, at, vec_mul(grad, value), lanes, dtype);
}

VEC_INLINE int64_t lanes_of(int64_t c, int64_t R)
{
    return R - c < VEC_LANES ? R - c : VEC_LANES;
}

VEC_INLINE float dot(const void *a, const void *b, int64_t at, int64_t R, hr_dtype dtype)
{
    vec sum = vec_set(0);
    for (int64_t c = 0; c < R; c += VEC_LANES) {
        const int64_t lanes = lanes_of(c, R);
        sum = vec_fma(vec_load(a, at + c, lanes, dtype), vec_load(b, at + c, lanes, dtype), sum);
    }
    return vec_reduce_add(sum);
}

VEC_INLINE void outer_fwd(const void *u, const void *p, void *y, int64_t at, int64_t R, float scale,
                          hr_dtype dtype)
{
    const vec inner = vec_set(scale * dot(u, p, at, R, dtype));
    for (int64_t c = 0; c < R; c += VEC_LANES) {
        const int64_t lanes = lanes_of(c, R);
        vec_store(y, at + c, vec_mul(inner, vec_load(u, at + c, lanes, dtype)), lanes, dtype);
    }
}

VEC_INLINE void outer_bwd(const void *dy, const void *u, const void *p, void *du, void *dp,
                          int64_t at, int64_t R, float scale, hr_dtype dtype)
{
    const vec inner = vec_set(scale * dot(u, p, at, R, dtype));
    const vec outer = vec_set(scale * dot(dy, u, at, R, dtype));
    for (int64_t c = 0; c < R; c += VEC_LANES) {
        const int64_t lanes = lanes_of(c, R);
        const vec grad = vec_load(dy, at + c, lanes, dtype);
        const vec of_u = vec_load(u, at + c, lanes, dtype),
                  of_p = vec_load(p, at + c, lanes, dtype);
        vec_store(du, at + c, vec_fma(of_p, outer, vec_mul(grad, inner)), lanes, dtype);
        vec_store(dp, at + c, vec_mul(of_u, outer), lanes, dtype);
    }
}

VEC_INLINE void fwd_as(const void *u, const void *p, void *y, int64_t rows,
                       const hr_modulate_attr *attr, hr_dtype dtype)
{
    const int64_t count = rows * attr->N;
    const bool diagonal = attr->form == HR_MODULATE_DIAGONAL;
    const vec scale = vec_set(attr->scale);
    for (int64_t at = 0; diagonal && at < count; at += VEC_LANES)
        diagonal_fwd(u, p, y, at, lanes_of(at, count), scale, dtype);
    for (int64_t at = 0; !diagonal && at < count; at += attr->R)
        outer_fwd(u, p, y, at, attr->R, attr->scale, dtype);
}

VEC_INLINE void bwd_as(const void *dy, const void *u, const void *p, void *du, void *dp,
                       int64_t rows, const hr_modulate_attr *attr, hr_dtype dtype)
{
    const int64_t count = rows * attr->N;
    const bool diagonal = attr->form == HR_MODULATE_DIAGONAL;
    const vec scale = vec_set(attr->scale);
    for (int64_t at = 0; diagonal && at < count; at += VEC_LANES)
        diagonal_bwd(dy, u, p, du, dp, at, lanes_of(at, count), scale, dtype);
    for (int64_t at = 0; !diagonal && at < count; at += attr->R)
        outer_bwd(dy, u, p, du, dp, at, attr->R, attr->scale, dtype);
}

static void fwd(const void *u, const void *p, void *y, int64_t rows, const hr_modulate_attr *attr,
                hr_dtype dtype)
{
    VEC_WITH_DTYPE(dtype, fwd_as, u, p, y, rows, attr);
}

static void bwd(const void *dy, const void *u, const void *p, void *du, void *dp, int64_t rows,
                const hr_modulate_attr *attr, hr_dtype dtype)
{
    VEC_WITH_DTYPE(dtype, bwd_as, dy, u, p, du, dp, rows, attr);
}

void FILL(hr_modulate_kernels *kernels)
{
    *kernels = (hr_modulate_kernels){ fwd, bwd };
}
