/* SPDX-License-Identifier: Apache-2.0 */
/* plan/order.h - which comes first, a weight's gradient or its input's.
 *
 * Both read the gradient of the product's result, which dies with the second. The weight's lets the
 * product's input die and its own sum be born; which is the fatter moment depends on the shapes. */
#ifndef HR_PLAN_ORDER_H
#define HR_PLAN_ORDER_H

#include "graph/program.h"

/* Where the two gradients of one product are neighbours in the section `loop`, puts that of the
 * weight first, or second. To be done before anything is computed again: clones would stand
 * between the two. Either order computes the same bits; the result depends on nothing but
 * `dw_first`. */
void hr_order(hr_program *program, int32_t loop, bool dw_first);

#endif
