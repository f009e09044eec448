/* SPDX-License-Identifier: Apache-2.0 */
/* search/space.c - lists the values of the knobs. */
#include "search/space.h"

#include "base/assert.h"
#include "base/checked.h"
#include "model/family.h"

enum {
    /* tokens: beyond this, adding up the head's gradient costs next to nothing */
    CHUNK_MOST = 8192,
    CHUNK_LEAST = 64,
    TILE_DIVISIONS = 5, /* a tile is a micro-batch halved up to this many times */
    PART_LEAST = 4096,  /* tokens of a part of a sequence */
};

int32_t hr_fit_micros(const hr_config *config, int64_t micros[HR_FIT_MICROS_MOST])
{
    const int64_t batch = config->train.batch;
    int32_t count = 0;
    if (config->memory.micro_batch) {
        micros[0] = config->memory.micro_batch;
        return 1;
    }
    /* Small divisors give the large sizes; then, in reverse, the small sizes. */
    for (int64_t small = 1; small <= batch / small && count < HR_FIT_MICROS_MOST; small++)
        if (batch % small == 0) micros[count++] = batch / small;
    for (int32_t i = count - 1; i >= 0 && count < HR_FIT_MICROS_MOST; i--)
        if (batch / micros[i] != micros[i]) micros[count++] = batch / micros[i];
    return count;
}

/* Appends a cut of `tokens` unless it is not below `most` or not below the previous cut. */
static int32_t append(int64_t tokens, int64_t most, int64_t *list, int32_t count)
{
    if (tokens <= 0 || tokens >= most) return count;
    if (count && list[count - 1] && tokens >= list[count - 1]) return count;
    list[count] = tokens;
    return count + 1;
}

/* Rounds down to a valid number of tokens, at least one unit. */
static int64_t legal(int64_t tokens, int64_t unit)
{
    return hr_max(tokens / unit, 1) * unit;
}

int32_t hr_fit_chunks(const hr_config *config, int64_t micro, int64_t chunks[HR_FIT_CHUNKS_MOST])
{
    const int64_t T = config->train.seq_len, unit = hr_strategy_unit(T, micro), most = micro * T;
    int32_t count = 0;
    if (config->memory.loss_chunk) {
        chunks[0] = config->memory.loss_chunk < most ? config->memory.loss_chunk : 0;
        return 1;
    }
    chunks[count++] = 0;
    for (int64_t tokens = CHUNK_MOST; tokens >= CHUNK_LEAST; tokens /= 2)
        count = append(legal(tokens, unit), most, chunks, count);
    return count;
}

/* With a norm from products no tile is tried: a gradient that is the sum of tiles cannot wait for
 * its update, and stays whole until then. The costs outside of layers, which are measured without
 * tiles, lack that. */
int32_t hr_fit_mlp_tiles(const hr_config *config, int64_t micro, int64_t tiles[HR_FIT_TILES_MOST])
{
    const int64_t T = config->train.seq_len, unit = hr_strategy_unit(T, micro), most = micro * T;
    int32_t count = 0;
    tiles[count++] = 0;
    if (hr_family_of(config)->traits & HR_HAS_STATES || config->memory.product_norm) return count;
    for (int32_t i = 1; i <= TILE_DIVISIONS; i++)
        count = append(legal(most >> i, unit), most, tiles, count);
    return append(legal(1, unit), most, tiles, count);
}

int32_t hr_fit_attention_tiles(const hr_config *config, int64_t micro,
                               int64_t tiles[HR_FIT_TILES_MOST])
{
    const int64_t T = config->train.seq_len, most = micro * T;
    int32_t count = 0;
    tiles[count++] = 0;
    if (config->memory.product_norm) return count;
    for (int32_t i = 1; i <= TILE_DIVISIONS; i++)
        count = append((micro >> i) * T, most, tiles, count);
    count = append(T, most, tiles, count);
    /* Parts of a short sequence save little. */
    const int64_t part = hr_strategy_part(config, micro);
    for (int64_t rows = T / 4; part && rows >= PART_LEAST && rows >= T / 16; rows /= 4)
        count = append(legal(rows, part), most, tiles, count);
    return count;
}

static hr_intermediates uniform_of(int32_t recompute, const hr_layer_schema *form)
{
    switch (recompute) {
    case HR_RECOMPUTE_NORMS: return form->present & 1 << HR_INTERMEDIATE_NORM;
    case HR_RECOMPUTE_LAYERS:
        return (hr_intermediates)(form->present & ~(1u << HR_INTERMEDIATE_INPUT));
    default: return 0;
    }
}

int32_t hr_fit_sets(const hr_config *config, const hr_layer_schema *form,
                    hr_intermediates sets[HR_FIT_SETS_MOST])
{
    const hr_intermediates input = form->present & 1u << HR_INTERMEDIATE_INPUT;
    HR_ASSERT(form->part_count <= HR_FIT_PARTS_MOST);
    if (config->memory.recompute != HR_RECOMPUTE_AUTO) {
        sets[0] = uniform_of(config->memory.recompute, form);
        sets[1] = sets[0] | input;
        return input ? 2 : 1;
    }
    const int32_t count = 1 << form->part_count;
    for (int32_t i = 0; i < count; i++) {
        sets[i] = 0;
        for (int32_t part = 0; part < form->part_count; part++)
            if (i >> part & 1) sets[i] |= form->parts[part];
    }
    return count;
}
