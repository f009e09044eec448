/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope_run.c - splits rows, or positions of the table, over threads. */
#include <math.h>
#include <string.h>

#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/rope/rope.h"

/* The row of a position from a split table. */
static void add_angles(const hr_rope_attr *attr, const double *table, int64_t position, float *row)
{
    const int64_t rotary = attr->rotary, half = rotary / 2;
    const double *near = table + position % HR_ROPE_NEAR * rotary;
    const double *far = table + (HR_ROPE_NEAR + position / HR_ROPE_NEAR) * rotary;
    for (int64_t e = 0; e < half; e++) {
        row[e] = (float)(far[e] * near[e] - far[half + e] * near[half + e]);
        row[half + e] = (float)(far[half + e] * near[e] + far[e] * near[half + e]);
    }
}

void hr_rope_run(const hr_call *call)
{
    const hr_rope_attr *attr = call->attr;
    const size_t row_bytes = (size_t)(attr->width * hr_dtype_bytes(call->dtype));
    const float *table = call->in[1];
    const int32_t *start = call->in[2], *begins = call->in[3];
    float row_sums[HR_ROPE_ROTARY_MAX];
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const void *x = hr_element_at(call->in[0], r * attr->width, call->dtype);
        void *y = hr_element_at(call->out[0], r * attr->width, call->dtype);
        if (y != x) memcpy(y, x, row_bytes);
        const int64_t row = call->row_first + r;
        const int64_t position = start ? *start + row : row % attr->T - (begins ? begins[r] : 0);
        const float *angles = attr->split ? row_sums : table + position * attr->rotary;
        if (attr->split) add_angles(attr, call->in[1], position, row_sums);
        call->kernels->rope.rotate(y, angles, attr, call->dtype);
    }
}

/* The place among the frequencies at which one has so many periods in the original positions. */
static double place_of(const hr_rope_attr *attr, double periods)
{
    return attr->rotary * log((double)attr->scaling.original / (periods * 2 * M_PI)) /
           (2 * log(attr->theta));
}

/* The share of frequency e that yarn does not scale. */
static double kept_by_yarn(const hr_rope_attr *attr, int64_t e)
{
    const double first = fmax(floor(place_of(attr, attr->scaling.high)), 0);
    double last = fmin(ceil(place_of(attr, attr->scaling.low)), attr->rotary - 1);
    if (first == last) last += 0.001;
    return 1 - fmin(fmax(((double)e - first) / (last - first), 0), 1);
}

static double theta_of(const hr_rope_attr *attr)
{
    const hr_rope_scaling *scaling = &attr->scaling;
    const double rotary = attr->rotary, times = (double)attr->T / (double)scaling->original;
    if (scaling->kind != HR_ROPE_DYNAMIC || times <= 1 || rotary <= 2) return attr->theta;
    return attr->theta * pow(scaling->factor * times - scaling->factor + 1, rotary / (rotary - 2));
}

static double frequency_of(const hr_rope_attr *attr, int64_t e)
{
    const hr_rope_scaling *scaling = &attr->scaling;
    const double plain = pow(theta_of(attr), -2.0 * (double)e / (double)attr->rotary);
    const double waves = (double)scaling->original * plain / (2 * M_PI);
    double share;
    switch (scaling->kind) {
    case HR_ROPE_LINEAR: share = 0; break;
    case HR_ROPE_LLAMA3:
        share = fmin(fmax((waves - scaling->low) / (scaling->high - scaling->low), 0), 1);
        break;
    case HR_ROPE_YARN: share = kept_by_yarn(attr, e); break;
    default: return plain;
    }
    return (1 - share) * (plain / scaling->factor) + share * plain;
}

static double length_of(const hr_rope_scaling *scaling)
{
    if (scaling->kind != HR_ROPE_YARN) return 1;
    return scaling->length > 0 ? scaling->length : 0.1 * log(scaling->factor) + 1;
}

/* Both parts of a split table; the second has the length. */
static void fill_split(const hr_call *call, double *table)
{
    const hr_rope_attr *attr = call->attr;
    const int64_t rotary = attr->rotary, half = rotary / 2;
    int64_t first, last;
    hr_share(hr_rope_split_rows(attr->T), call->thread, call->threads, &first, &last);
    for (int64_t e = 0; e < half; e++) {
        const double frequency = frequency_of(attr, e);
        for (int64_t row = first; row < last; row++) {
            const bool far = row >= HR_ROPE_NEAR;
            const int64_t position = far ? (row - HR_ROPE_NEAR) * HR_ROPE_NEAR : row;
            const double angle = (double)position * frequency;
            const double length = far ? length_of(&attr->scaling) : 1;
            table[row * rotary + e] = length * cos(angle);
            table[row * rotary + half + e] = length * sin(angle);
        }
    }
}

void hr_rope_table_run(const hr_call *call)
{
    const hr_rope_attr *attr = call->attr;
    const int64_t rotary = attr->rotary, half = rotary / 2;
    const double length = length_of(&attr->scaling);
    float *table = call->out[0];
    int64_t first, last;
    if (attr->split) {
        fill_split(call, call->out[0]);
        return;
    }
    hr_share(attr->T, call->thread, call->threads, &first, &last);
    for (int64_t e = 0; e < half; e++) {
        const double frequency = frequency_of(attr, e);
        for (int64_t position = first; position < last; position++) {
            const double angle = (double)position * frequency;
            table[position * rotary + e] = (float)(length * cos(angle));
            table[position * rotary + half + e] = (float)(length * sin(angle));
        }
    }
}

const hr_op_run hr_rope_cpu_run = { hr_rope_run, 1 };
const hr_op_run hr_rope_table_cpu_run = { hr_rope_table_run, 1 };
