/* SPDX-License-Identifier: Apache-2.0 */
/* ops/host/host.h - services: operations that the host runs between kernels. They read text, write
 * files and report numbers, and may fail (dev/service.h). They are part of the program, so their
 * memory is planned. ops/host/host.c says which sections may hold them.
 *
 * save, sample, emit and initialize use a scratch buffer of `staging_bytes`. */
#ifndef HR_OPS_HOST_H
#define HR_OPS_HOST_H

#include "graph/backend.h"
#include "graph/builder.h"
#include "ops/list.h"

/* Operands of initialize and save: the scales of a stored weight. */
enum { HR_LOAD_SCALES = HR_OUT_MAX - 1, HR_SAVE_SCALES = HR_IN_MAX - 1 };

/* In the place of a parameter, of emit: the logits of the base beside those with adapters. */
enum { HR_EMIT_BASE = -2 };

/* The same of report: all sums are terms of the loss. */
enum { HR_REPORT_TERMS = -3 };

typedef struct {
    int32_t param; /* row of the parameter table, for steps of one parameter */
    int64_t staging_bytes;
} hr_host_attr;

/* The sum over tokens of the loss that a report step gets. */
static inline double hr_report_loss(const hr_program *program, const hr_step *step,
                                    const double *sums)
{
    const bool terms = ((const hr_host_attr *)step->attr)->param == HR_REPORT_TERMS;
    const int64_t count = terms ? program->tensors[step->in[0]].dims[0] : 1;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += sums[i];
    return sum;
}

/* The same for every back end: hr_<op>_host. */
#define HR_OP_HOST(name) extern const hr_op_facts hr_##name##_host;
HR_HOST_OP_LIST(HR_OP_HOST)
#undef HR_OP_HOST

#endif
