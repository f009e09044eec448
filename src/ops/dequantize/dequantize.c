/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dequantize/dequantize.c - the step that dequantizes a parameter, and its properties. */
#include "ops/dequantize/dequantize.h"

#include <string.h>

#include "graph/weight_format.h"
#include "ops/dequantize/dequantize_build.h"
#include "ops/list.h"

_Static_assert(sizeof(hr_dequantize_attr) <= HR_ATTR_BYTES, "attributes fit in a step");

void hr_dequantize_step(const hr_program *program, int32_t index, hr_step *step)
{
    const hr_param *param = &program->params[index];
    const hr_tensor *weight = &program->tensors[param->weight];
    const hr_weight_format *format = hr_weight_format_of(param->format);
    const int64_t K = param->dims[0], N = param->dims[1];
    const bool turned = param->external_transposed;
    int64_t shape[2];
    hr_weight_scales_shape(format, turned ? N : K, turned ? K : N, shape);
    const hr_dequantize_attr attr = { .K = K,
                                      .N = N,
                                      .block = { format->block[turned], format->block[!turned] },
                                      .scale_stride = { turned ? 1 : shape[1],
                                                        turned ? shape[1] : 1 },
                                      .from = weight->dtype,
                                      .to = (uint8_t)hr_product_dtype((hr_dtype)program->dtype),
                                      .layout = weight->layout };
    step->op = HR_OP_dequantize;
    memcpy(step->attr, &attr, sizeof attr);
}

const hr_op hr_dequantize_op = { .name = "dequantize", .in = "wW", .out = "w" };
