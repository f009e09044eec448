/* SPDX-License-Identifier: Apache-2.0 */
/* prove/matrix.c - reads matrices from the files of a proof, and compares them norm-wise. */
#include "prove/matrix.h"

#include <math.h>
#include <stdio.h>

hr_status hr_matrix_take(hr_region *region, int64_t K, int64_t N, hr_matrix *m, hr_error *err)
{
    *m = (hr_matrix){ K, N, hr_region_take(region, K * N, sizeof(float)) };
    if (m->elements) return HR_OK;
    return hr_fail(err, HR_FAILURE, "out of memory for a matrix of %lld x %lld", (long long)K,
                   (long long)N);
}

hr_status hr_matrix_read(const hr_values *values, int32_t index, hr_region *region, hr_matrix *m,
                         hr_error *err)
{
    const int64_t K = values->dims[index][0], N = values->dims[index][1];
    const hr_status status = hr_matrix_take(region, K, N, m, err);
    return status == HR_OK ? hr_values_read(values, index, 0, K, m->elements, err) : status;
}

hr_status hr_matrix_read_gradient(const hr_trace *trace, int32_t index, hr_region *region,
                                  hr_matrix *m, hr_error *err)
{
    const hr_trace_array *array = &trace->params[index].gradient;
    hr_status status = hr_matrix_take(region, array->K, array->N, m, err);
    const int64_t kept = region->used;
    void *memory = hr_region_take(region, array->bytes, 1);
    if (status == HR_OK && !memory)
        status = hr_fail(err, HR_FAILURE, "out of memory for a gradient of %lld bytes",
                         (long long)array->bytes);
    if (status == HR_OK) status = hr_trace_load(trace, array, 0, memory, err);
    for (int64_t i = 0; i < array->K * array->N && status == HR_OK; i++)
        m->elements[i] = (float)hr_trace_element(array, memory, i / array->N, i % array->N);
    region->used = kept;
    return status;
}

void hr_matrix_compare(hr_prover *prover, const char *name, const hr_matrix *expected,
                       const hr_matrix *seen)
{
    const int64_t count = expected->K * expected->N;
    const double least = 1e-3 * hr_trace_average(&prover->own) * sqrt((double)count);
    hr_difference *found = &prover->tracer.found;
    double difference = 0, reference = 0, most = 0;
    int64_t place = 0;
    char text[HR_PROOF_TEXT_BYTES];
    for (int64_t i = 0; i < count; i++) {
        const double wanted = (double)expected->elements[i], got = (double)seen->elements[i];
        const double apart = isnan(wanted - got) ? (double)INFINITY : fabs(wanted - got);
        difference += apart * apart;
        reference += wanted * wanted;
        if (apart > most) place = i;
        most = fmax(most, apart);
    }
    const double before = found->relative;
    snprintf(text, sizeof text, "gradient of %s at step 1", name);
    hr_difference_add(found, sqrt(difference), fmax(sqrt(reference), least), text);
    found->elements += count;
    found->absolute = fmax(found->absolute, most);
    if (found->relative > before)
        snprintf(found->where, sizeof found->where,
                 "%s: element [%lld, %lld] is %.9g, in the reference %.9g", text,
                 (long long)(place / expected->N), (long long)(place % expected->N),
                 (double)seen->elements[place], (double)expected->elements[place]);
}
