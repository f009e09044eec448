/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks.c - pieces that families share. */
#include "model/blocks.h"

#include <math.h>

#include "ops/dropout/dropout_build.h"
#include "ops/linear/linear_build.h"

static int32_t join(hr_builder *builder, const hr_config *config, const char *name, int32_t x,
                    int32_t weight, int32_t bias, int32_t residual, hr_intermediate mark)
{
    const double p = builder->training ? config->model.dropout : 0;
    if (p == 0) {
        const int32_t sum = hr_build_linear(builder, name, x, weight, bias, HR_ACT_NONE, residual);
        return hr_build_mark(builder, sum, mark);
    }
    const int32_t branch = hr_build_linear(builder, "branch", x, weight, bias, HR_ACT_NONE,
                                           HR_NONE);
    hr_build_mark(builder, branch, mark);
    return hr_build_mark(builder, hr_build_dropout(builder, name, branch, residual, p), mark);
}

int32_t hr_block_join(hr_builder *builder, const hr_config *config, const char *name, int32_t x,
                      int32_t weight, int32_t bias, int32_t residual)
{
    return join(builder, config, name, x, weight, bias, residual, HR_INTERMEDIATE_NONE);
}

int32_t hr_block_join_mid(hr_builder *builder, const hr_config *config, const char *name, int32_t x,
                          int32_t weight, int32_t bias, int32_t residual)
{
    return join(builder, config, name, x, weight, bias, residual, HR_INTERMEDIATE_MID);
}

static hr_attention_mask mask_of(const hr_config *config)
{
    const int32_t window = (int32_t)config->model.attention.sliding_window;
    if (window) return (hr_attention_mask){ HR_PATTERN_SLIDING, 1, window, 1 };
    return (hr_attention_mask){ config->model.attention.pattern,
                                (int32_t)config->model.attention.block,
                                (int32_t)config->model.attention.window,
                                (int32_t)config->model.attention.stride };
}

hr_attention_attr hr_block_attention(const hr_config *config)
{
    const int64_t head_width = hr_config_head_dim(config);
    return (hr_attention_attr){ .H = (int32_t)config->model.n_heads,
                                .G = (int32_t)hr_config_kv_heads(config),
                                .head_width = (int32_t)head_width,
                                .q_head_stride = head_width,
                                .k_head_stride = head_width,
                                .v_head_stride = head_width,
                                .mask = mask_of(config),
                                .scale = (float)(1 / sqrt((double)head_width)),
                                .dropout = (float)config->model.dropout };
}
