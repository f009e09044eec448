/* SPDX-License-Identifier: Apache-2.0 */
/* ops/list.c - the table of operation properties, for the compiler. */
#include "ops/list.h"

#define DECLARE(name) extern const hr_op hr_##name##_op;
HR_OP_LIST(DECLARE)
HR_HOST_OP_LIST(DECLARE)

#define ROW(name) [HR_OP_##name] = &hr_##name##_op,
const hr_op *const hr_op_table[] = { HR_OP_LIST(ROW) HR_HOST_OP_LIST(ROW) };
