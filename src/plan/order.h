/* SPDX-License-Identifier: Apache-2.0 */
/* plan/order.h - the order of the two gradients of a matrix product: weight or input first.
 *
 * Both read the gradient of the product's result, whose lifetime ends with the second of them. The
 * weight gradient ends the lifetime of the product's input and starts that of a new sum. Which
 * order has the higher peak depends on the shapes. */
#ifndef HR_PLAN_ORDER_H
#define HR_PLAN_ORDER_H

#include "graph/program.h"

/* Orders adjacent pairs of weight and input gradient of one product in the section `loop`. Call it
 * before hr_recompute, whose clones separate the pairs. Both orders give identical bits. The result
 * depends only on the program and `dw_first`. */
void hr_order(hr_program *program, int32_t loop, bool dw_first);

#endif
