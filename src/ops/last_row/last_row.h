/* SPDX-License-Identifier: Apache-2.0 */
/* ops/last_row/last_row.h - selects the last row: the next token of a prompt needs only this row.
 *
 *     y[0] = x[rows - 1]
 *
 * Operands. last_row  in  x r      out  y w
 *
 *   x  [rows, D] activations, rows >= 1
 *   y  [1, D], disjoint from x */
#ifndef HR_OPS_LAST_ROW_H
#define HR_OPS_LAST_ROW_H

#include "ops/call.h"

typedef struct {
    int64_t D;
} hr_last_row_attr;

hr_run_fn hr_last_row_run;

#endif
