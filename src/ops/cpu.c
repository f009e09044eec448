/* SPDX-License-Identifier: Apache-2.0 */
/* ops/cpu.c - the CPU back end as the planner knows it. */
#include "ops/cpu.h"

#include "ops/dequantize/dequantize_build.h"
#include "ops/host/host.h"
#include "ops/linear/linear.h"

#define ROW(name) [HR_OP_##name] = &hr_##name##_cpu,
#define HOST_ROW(name) [HR_OP_##name] = &hr_##name##_host,
static const hr_op_facts *const facts[] = { HR_OP_LIST(ROW) HR_HOST_OP_LIST(HOST_ROW) };

const hr_backend hr_cpu_backend = { .name = "cpu",
                                    .ops = hr_op_table,
                                    .facts = facts,
                                    .op_count = HR_OP_COUNT,
                                    .matrix_layout = hr_linear_layout,
                                    .dequantize = hr_dequantize_step,
                                    .guess = hr_cpu_guess };
