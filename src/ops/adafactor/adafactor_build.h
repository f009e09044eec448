/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor_build.h - adds the update of Adafactor to a program. */
#ifndef HR_OPS_ADAFACTOR_BUILD_H
#define HR_OPS_ADAFACTOR_BUILD_H

#include "graph/builder.h"
#include "ops/adafactor/adafactor.h"

/* The states of a parameter, in this order; the moment only with beta1 > 0. */
enum { HR_ADAFACTOR_ROWS, HR_ADAFACTOR_COLUMNS, HR_ADAFACTOR_MOMENT };

/* Adds the update of parameter `index`, unless it is frozen.
 *   attr        update.beta1 and the settings are given; the rest is set here
 *   norm_scale  tensor of hr_build_norm_scale; HR_NONE: no scaling */
void hr_build_adafactor(hr_builder *builder, int32_t index, hr_adafactor_attr attr,
                        int32_t norm_scale, int32_t lr);

#endif
