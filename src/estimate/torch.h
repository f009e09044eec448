/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/torch.h - the operations of PyTorch on a tape: what each makes, what autograd saves, and
 * what its backward makes.
 *
 * Source   tools/autograd/derivatives.yaml of PyTorch 2.13 (which tensors an operation saves), and
 *          the trace of tools/pytorch-memory (which temporaries appear). */
#ifndef HR_ESTIMATE_TORCH_H
#define HR_ESTIMATE_TORCH_H

#include "estimate/tape.h"

enum { HR_ADAPTER_PARTS = 3 }; /* A, B, magnitudes */

/* A weight, and its adapters. */
typedef struct hr_torch_parameter {
    hr_value value;  /* its node is the leaf of a trained weight */
    int64_t columns; /* of a matrix or table; 0: a vector */
    int64_t inputs;  /* of a matrix: elements of an input row; 0: a vector or a table */
    bool quantized;
    hr_value cast; /* in the dtype of autocast; valid in the scope of that number */
    int64_t cast_scope;
    const struct hr_torch_parameter *lora_a, *lora_b, *lora_m; /* null: none */
} hr_torch_parameter;

typedef struct {
    hr_tape *tape;
    const hr_estimate_settings *settings;
    int64_t autocast; /* bytes of an element of products under autocast; 0: no autocast */
    int64_t scope;    /* number of the forward pass */
    bool transposes;  /* PEFT makes parameters of transposed matrices (GPT-2 with dropout) */
    int32_t scores;   /* storage of the attention weights that a layer holds to its end */
} hr_torch;

/* Sizes of attention. */
typedef struct {
    int64_t B, T, H, G, head;
    double dropout;
    bool wide;       /* always separate operations, with queries and keys in fp32 */
    bool masked;     /* by a tensor, not by the causal order alone */
    bool copied;     /* k and v are contiguous copies, of a cache */
    bool contiguous; /* q and k are contiguous; else products copy them */
    bool upcast;     /* eager: softmax in fp32 */
} hr_torch_attention;

/* Bytes of an element of hr_estimate_dtype; 0: of NF4 and NONE. */
int64_t hr_torch_width(int32_t dtype);

/* The output of an operation, which belongs to its node. */
hr_value hr_torch_output(hr_torch *torch, const char *label, int32_t component, int64_t count,
                         int64_t width, int32_t node);

/* An argument of a product under autocast: a copy in its dtype, or x itself. */
hr_value hr_torch_lower(hr_torch *torch, const char *label, hr_value x);

hr_value hr_torch_cast(hr_torch *torch, const char *label, int32_t component, hr_value x,
                       int64_t width);
hr_value hr_torch_copy(hr_torch *torch, const char *label, hr_value x);
hr_value hr_torch_linear(hr_torch *torch, const char *label, int32_t component, hr_value x,
                         hr_torch_parameter *w, hr_torch_parameter *b);
hr_value hr_torch_add(hr_torch *torch, const char *label, hr_value a, hr_value b);
hr_value hr_torch_scale(hr_torch *torch, const char *label, hr_value x);
hr_value hr_torch_multiply(hr_torch *torch, const char *label, hr_value a, hr_value b);
hr_value hr_torch_dropout(hr_torch *torch, int32_t component, hr_value x, double p);
hr_value hr_torch_layer_norm(hr_torch *torch, hr_value x, const hr_torch_parameter *w,
                             const hr_torch_parameter *b);
hr_value hr_torch_rms_norm(hr_torch *torch, hr_value x, const hr_torch_parameter *w);
/* Activations of one argument: kept is the input, or the output. */
hr_value hr_torch_activation(hr_torch *torch, const char *label, hr_value x, bool keeps_output);
hr_value hr_torch_gelu_tanh(hr_torch *torch, hr_value x); /* written in separate operations */
/* Rotates the first `rotated` of `head` elements by angles of `width` bytes. */
hr_value hr_torch_rope(hr_torch *torch, hr_value x, int64_t head, int64_t rotated, int64_t width);
/* x, whose parts are used separately. */
hr_value hr_torch_split(hr_torch *torch, hr_value x);
hr_value hr_torch_embedding(hr_torch *torch, const char *label, int64_t rows, int64_t width,
                            const hr_torch_parameter *table);
hr_value hr_torch_attend(hr_torch *torch, hr_value q, hr_value k, hr_value v,
                         const hr_torch_attention *attention);
/* The mean loss of logits [rows, V]. */
hr_value hr_torch_loss(hr_torch *torch, hr_value logits);
/* Head and loss in chunks. */
hr_value hr_torch_chunked_loss(hr_torch *torch, hr_value hidden, hr_torch_parameter *head,
                               int64_t vocabulary);

#endif
