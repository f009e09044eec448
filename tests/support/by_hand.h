/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/by_hand.h - helpers for small hand-written fp32 programs whose bytes can be added
 * on paper. Their operations need no scratch. */
#ifndef HR_TESTS_SUPPORT_BY_HAND_H
#define HR_TESTS_SUPPORT_BY_HAND_H

#include <stddef.h>

#include "graph/builder.h"
#include "ops/cpu.h"
#include "ops/list.h"

static inline const hr_backend *backend_without_scratch(void)
{
    static hr_op_facts bare[HR_OP_COUNT];
    static const hr_op_facts *table[HR_OP_COUNT];
    static hr_backend backend;
    for (int32_t i = 0; i < HR_OP_COUNT; i++) {
        bare[i] = *hr_cpu_backend.facts[i];
        bare[i].scratch_bytes = NULL;
        table[i] = &bare[i];
    }
    backend = hr_cpu_backend;
    backend.facts = table;
    return &backend;
}

/* An empty training program of `rows` token rows, and its builder. */
static inline hr_builder by_hand(hr_program *program, hr_region *region, int64_t rows, int64_t T,
                                 hr_error *err)
{
    enum { STEPS = 48, TENSORS = 80, LOOPS = 12, PARAMS = 4 };
    const hr_status status = hr_program_place(region, backend_without_scratch(), STEPS, TENSORS,
                                              LOOPS, PARAMS, program, err);
    return (hr_builder){ .program = program,
                         .dtype = HR_F32,
                         .rows = rows,
                         .T = T,
                         .training = true,
                         .layer = HR_NONE,
                         .status = status,
                         .err = err };
}

static inline int32_t weight(hr_builder *b, hr_param_kind kind, int64_t K, int64_t N,
                             const char *name)
{
    return hr_build_param(b, (hr_param_shape){ .kind = kind, .K = K, .N = N }, "%s", name);
}

#endif
