/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dequantize/dequantize_build.h - the step that dequantizes a stored parameter. */
#ifndef HR_OPS_DEQUANTIZE_BUILD_H
#define HR_OPS_DEQUANTIZE_BUILD_H

#include "graph/program.h"

/* hr_backend.dequantize: sets the operation and the attributes of a step. Its operands are the
 * weight and the scales of the parameter, and the tensor that products read. */
void hr_dequantize_step(const hr_program *program, int32_t param, hr_step *step);

#endif
