/* SPDX-License-Identifier: Apache-2.0 */
/* text/spread.h - spreads the rows of a block evenly over the parts of a mixture.
 *
 * The parts have arcs on a circle of n places. A walk goes around it in strides of about n times
 * the golden ratio and comes to each place once in n steps, and to an arc, at any time, about as
 * often as its length says: with up to 65,536 places not more than 6 steps too often or too rarely.
 * How often is a sum in closed form, so no walk needs a table or a beginning.
 * Source  Knuth, The Art of Computer Programming, volume 3, section 6.4, theorem S. */
#ifndef HR_TEXT_SPREAD_H
#define HR_TEXT_SPREAD_H

#include <stdint.h>

/* The stride of a circle of n places, n >= 1. Pure. */
int64_t hr_spread_stride(int64_t n);

/* Steps in the arc [first, first + length) among the first `steps` <= n from place `start` on: step
 * i is at (start + i stride) mod n. Pure; as many operations as the algorithm of Euclid. */
int64_t hr_spread_count(int64_t n, int64_t stride, int64_t start, int64_t steps, int64_t first,
                        int64_t length);

#endif
