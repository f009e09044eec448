/* SPDX-License-Identifier: Apache-2.0 */
/* report/shape.c - names dimensions by the keys that they are equal to, the likeliest first. */
#include "report/shape.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/writer.h"
#include "model/family.h"
#include "report/labels.h"

enum { LETTERS_BYTES = 32 };

/* A width of the model. */
typedef struct {
    const char *letters;
    int64_t value; /* 0: the model has none */
} width;

/* Names a width; a number if it is none of the model. */
static void name_width(const hr_config *config, int64_t value, char letters[LETTERS_BYTES])
{
    const uint32_t traits = hr_family_of(config)->traits;
    const bool attends = !(traits & HR_HAS_STATES), expands = traits & HR_READS_EXPANSION;
    const int64_t K = attends ? hr_config_head_dim(config) : 0, H = config->model.n_heads,
                  G = hr_config_kv_heads(config), F = attends ? config->model.d_ff : 0,
                  d = config->model.d_model;
    const width widths[] = {
        { "V", config->model.vocab_size },
        { "X", expands ? hr_config_expansion(config) : 0 },
        { "F", F },
        { "d", d },
        { "R", traits & HR_READS_RANK ? hr_config_embedding_rank(config) : 0 },
        { "R", config->model.decoder_rank },
        { "H x K", H * K },
        { "G x K", G * K },
        { "2 x F", 2 * F },
        { "3 x d", 3 * d },
        { "(H + 2 G) x K", (H + 2 * G) * K },
    };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        if (widths[i].value != value || value == 0) continue;
        snprintf(letters, LETTERS_BYTES, "%s", widths[i].letters);
        return;
    }
    snprintf(letters, LETTERS_BYTES, "%lld", (long long)value);
}

static void name_rows(const hr_config *config, int64_t rows, char letters[LETTERS_BYTES])
{
    const int64_t B = config->train.batch, T = config->train.seq_len;
    if (rows == B * T) snprintf(letters, LETTERS_BYTES, B > 1 ? "B x T" : "T");
    else if (rows == T) snprintf(letters, LETTERS_BYTES, "T");
    else if (rows % T == 0) snprintf(letters, LETTERS_BYTES, "%lld x T", (long long)(rows / T));
    else snprintf(letters, LETTERS_BYTES, "%lld", (long long)rows);
}

void hr_shape_print(const hr_config *config, const hr_tensor *tensor, int64_t bytes,
                    char text[HR_PLAN_SHAPE_BYTES])
{
    hr_writer writer = { text, HR_PLAN_SHAPE_BYTES };
    char rows[LETTERS_BYTES], columns[LETTERS_BYTES], first[HR_COUNT_BYTES], second[HR_COUNT_BYTES];
    const int64_t element = hr_dtype_bytes(tensor->dtype), N = hr_max(tensor->dims[1], 1);
    const int64_t K = tensor->rows ? tensor->rows : tensor->dims[0];
    const char *dtype = tensor->dtype == HR_F32 ? "fp32" : hr_dtype_name(tensor->dtype);
    if (tensor->rows) name_rows(config, K, rows);
    else name_width(config, K, rows);
    name_width(config, N, columns);
    hr_put(&writer, "[%s x %s] %s", hr_count_print(K, first), hr_count_print(N, second), dtype);
    if (K * N * element == bytes)
        hr_put(&writer, " = %s x %s x %lld", rows, columns, (long long)element);
}

void hr_shape_largest(const hr_config *config, const hr_compiled *compiled, hr_plan_tensor *largest)
{
    const hr_plan *plan = &compiled->plan;
    const int32_t storages = plan->spaces[HR_SPACE_HOST].storage_count;
    const hr_tensor *most = NULL;
    largest->bytes = 0;
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_buffer *buffer = &plan->buffers[b];
        if (buffer->tensor == HR_NONE || buffer->view_of != HR_NONE) continue;
        if (buffer->storage >= storages) continue;
        const hr_tensor *tensor = &compiled->program.tensors[buffer->tensor];
        const int64_t bytes = tensor->rows * tensor->row_bytes + tensor->fixed_bytes;
        if (bytes <= largest->bytes) continue;
        largest->bytes = bytes;
        most = tensor;
    }
    if (!most) return;
    hr_label_tensor(most, largest->name);
    hr_shape_print(config, most, largest->bytes, largest->shape);
}
