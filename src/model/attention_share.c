/* SPDX-License-Identifier: Apache-2.0 */
/* model/attention_share.c - counts pairs in closed form, row of pairs by row of pairs. */
#include "model/attention_share.h"

#include "base/checked.h"
#include "model/layer_types.h"

/* Sum over i in [0, n) of floor(i / s): whole groups of s, then the rest. */
static int64_t sum_of_quotients(int64_t n, int64_t s)
{
    const int64_t groups = n / s, rest = n % s;
    return s * (groups * (groups - 1) / 2) + rest * groups;
}

/* Row i of n has the pairs with j in (i - width, i]. */
static int64_t near_pairs(int64_t n, int64_t width)
{
    const int64_t rising = hr_min(n, width);
    return rising * (rising + 1) / 2 + (n - rising) * width;
}

/* Row i of n has the pairs with j <= i that are a multiple of s: floor(i / s) + 1. */
static int64_t column_pairs(int64_t n, int64_t s)
{
    return sum_of_quotients(n, s) + n;
}

static int64_t kept_blocks(const hr_config *config, int64_t n)
{
    const int64_t near = config->model.attention.window + 1;
    const int64_t s = hr_config_attention_stride(config);
    switch (config->model.attention.pattern) {
    case HR_ATTENTION_LOCAL: return near_pairs(n, near);
    /* with the diagonal in the rows that are no column: n - ceil(n / s) */
    case HR_ATTENTION_GLOBAL: return column_pairs(n, s) + n - (n + s - 1) / s;
    /* the columns before the near blocks: row i has those up to i - near */
    case HR_ATTENTION_MIXED: return near_pairs(n, near) + column_pairs(hr_max(n - near, 0), s);
    default: return n * (n + 1) / 2;
    }
}

hr_attention_share hr_attention_share_of(const hr_config *config)
{
    const int64_t T = config->train.seq_len, block = config->model.attention.block;
    const int64_t window = config->model.attention.sliding_window;
    hr_attention_share share = { .blocks = !window };
    const int64_t n = window ? T : (T + block - 1) / block;
    share.causal = n * (n + 1) / 2;
    share.kept = window ? near_pairs(n, hr_min(window, n)) : kept_blocks(config, n);
    if (window)
        for (int64_t layer = 0; layer < config->model.n_layers; layer++)
            share.layers += hr_layer_type(config, layer) == HR_LAYER_SLIDING;
    else if (config->model.attention.pattern != HR_ATTENTION_DENSE)
        share.layers = config->model.n_layers;
    return share;
}
