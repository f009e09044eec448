/* SPDX-License-Identifier: Apache-2.0 */
/* ops/cpu_run.c - the kernels of the CPU back end. */
#include "ops/cpu_run.h"

#include "ops/list.h"

#define DECLARE(name) extern hr_run_fn hr_##name##_run;
HR_OP_LIST(DECLARE)

#define RUN(name, count) [HR_OP_##name] = { hr_##name##_run, count }
const hr_op_run hr_cpu_runs[HR_OP_COUNT] = { RUN(embed, 1),
                                             RUN(embed_bwd, 1),
                                             RUN(norm, 1),
                                             RUN(norm_bwd, 2),
                                             RUN(linear, 1),
                                             RUN(linear_dx, 1),
                                             RUN(linear_dw, 1),
                                             RUN(activation, 1),
                                             RUN(glu, 1),
                                             RUN(glu_bwd, 1),
                                             RUN(recurrence, 1),
                                             RUN(recurrence_bwd, 2),
                                             RUN(recurrence_clear, 1),
                                             RUN(rope_table, 1),
                                             RUN(rope, 1),
                                             RUN(attention, 1),
                                             RUN(attention_bwd, 1),
                                             RUN(attention_cached, 1),
                                             RUN(cache_clear, 1),
                                             RUN(cache_append, 1),
                                             RUN(dropout, 1),
                                             RUN(loss, 2),
                                             RUN(last_row, 1),
                                             RUN(merge, 1),
                                             RUN(sumsq, 2),
                                             RUN(clip, 1),
                                             RUN(adamw, 1),
                                             RUN(sgd, 1),
                                             RUN(average, 1) };
