/* SPDX-License-Identifier: Apache-2.0 */
/* ops/kv_cache/kv_cache_cpu.c - the KV cache operations on the CPU, for the planner. */
#include "ops/cpu.h"

const hr_op_facts hr_cache_clear_cpu = { .dtypes = HR_CPU_FLOATS };

const hr_op_facts hr_cache_append_cpu = { .dtypes = HR_CPU_FLOATS_IDS };
