/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dequantize/dequantize_cpu.c - dequantizing on the CPU, for the planner. */
#include "ops/cpu.h"

const hr_op_facts hr_dequantize_cpu = { .dtypes = HR_CPU_FLOATS | 1 << HR_F16 | 1 << HR_F8_E4M3 };
