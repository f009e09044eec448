/* SPDX-License-Identifier: Apache-2.0 */
/* prove/trace_layout.h - what traces and tracers share: which arrays a program has, and where an
 * element of memory is in its matrix. */
#ifndef HR_PROVE_TRACE_LAYOUT_H
#define HR_PROVE_TRACE_LAYOUT_H

#include "prove/trace.h"

/* Fills the tables of a trace of `steps` steps for a program. Errors FAILURE  too many
 * parameters. */
HR_MUST_CHECK hr_status hr_trace_describe(hr_trace *trace, const hr_program *program, int64_t steps,
                                          hr_error *err);

/* Checks that a program has the arrays of a trace. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_trace_check(const hr_trace *trace, const hr_program *program,
                                       hr_error *err);

/* The row and column of element `at` of a [K, N] matrix in memory; false: it is padding. The
 * inverse of hr_layout_index. */
static inline bool hr_layout_place(hr_layout layout, int64_t K, int64_t N, int64_t at, int64_t *k,
                                   int64_t *n)
{
    const int64_t pair = layout == HR_PANEL_PAIR ? 2 : 1;
    if (layout == HR_ROWS) {
        *k = at / N;
        *n = at % N;
    } else {
        const int64_t line = at / (HR_PANEL_WIDTH * pair), lines = (K + pair - 1) / pair;
        *k = line % lines * pair + at % pair;
        *n = line / lines * HR_PANEL_WIDTH + at / pair % HR_PANEL_WIDTH;
    }
    return *k < K && *n < N;
}

#endif
