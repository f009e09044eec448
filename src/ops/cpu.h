/* SPDX-License-Identifier: Apache-2.0 */
/* ops/cpu.h - the planner's half of the CPU back end: hr_<op>_cpu of each operation, in its
 * <op>_cpu.c. It links no kernel; ops/cpu_run.h is the other half.
 *
 * One description holds for all instruction sets, so that a plan does not depend on them. */
#ifndef HR_OPS_CPU_H
#define HR_OPS_CPU_H

#include "graph/backend.h"
#include "ops/list.h"

#define HR_OP_CPU(name) extern const hr_op_facts hr_##name##_cpu;
HR_OP_LIST(HR_OP_CPU)
#undef HR_OP_CPU

/* Operands of most operations: activations and weights; with a double: sums and learning rates;
 * with int32: token ids, positions and starts of documents. */
enum {
    HR_CPU_FLOATS = 1 << HR_F32 | 1 << HR_BF16 | 1 << HR_F16,
    HR_CPU_FLOATS_SUMS = HR_CPU_FLOATS | 1 << HR_F64,
    HR_CPU_FLOATS_IDS = HR_CPU_FLOATS | 1 << HR_I32,
    HR_CPU_ALL = HR_CPU_FLOATS_SUMS | 1 << HR_I32
};

/* hr_backend.guess of the CPU. */
void hr_cpu_guess(uint32_t features, struct hr_rates *rates);

extern const hr_backend hr_cpu_backend;

#endif
