/* SPDX-License-Identifier: Apache-2.0 */
/* graph/builder.h - builds a program step by step, and then its derivative.
 *
 * Model families call the `hr_build_<op>` functions of the operations, which call these. The first
 * error is kept: later calls do nothing and return HR_NONE, and hr_build_status returns the
 * error. */
#ifndef HR_GRAPH_BUILDER_H
#define HR_GRAPH_BUILDER_H

#include "graph/backend.h"

enum { HR_LATE_MAX = 4, HR_CACHES_MAX = 8 };

typedef struct {
    hr_program *program;
    hr_dtype dtype;  /* of activations */
    int64_t rows, T; /* rows: token rows of the section; T: tokens of a sequence */
    bool training;   /* keep what the derivative needs; dropout is on */
    int32_t loop;    /* new steps are added to this loop; it is also the home of new values */
    int16_t layer;
    uint8_t block, direction;
    uint32_t site;      /* random site of the next random step */
    bool no_masters;    /* trained weights in bf16 have no fp32 copy */
    bool weights_alone; /* inference: parameters have no master weights */
    bool weights_away;  /* frozen weights stay in the files of the model */
    /* Return how parameter `index` of the layer trains, adapters not counted, and its adapter;
     * null: all train, without adapters. */
    hr_param_rule (*rule)(const void *of, int16_t layer, int32_t index, bool vector, bool adapter,
                          const char *name);
    double adapter_dropout; /* of their inputs */
    hr_adapter_rule (*adapter)(const void *of, int32_t which, int16_t layer, int32_t index,
                               const char *name);
    const void *rule_of;
    int32_t modulator; /* what modulates the products of a layer; HR_NONE: nothing */
    const struct hr_teaching *teaching; /* of layers (model/blocks.h); null: none */
    bool reveals;                       /* the host gets what modulates each product */
    bool alone; /* a derivative needs no more of the lowest layer than reaches its parameters */
    bool short_tables;      /* lookup tables have the dtype of activations too */
    int32_t stored_weights; /* hr_weights_choice of the frozen matrices of layers */
    int32_t position;       /* decoding: int32 [1], position of the next row; ... */
    /* ... and the caches of each layer: keys, values, and what else a family has; null: rows are
     * whole sequences */
    const int32_t (*caches)[HR_CACHES_MAX];
    bool separate;    /* document mask: packed documents do not attend to each other */
    bool splits_rope; /* the table of RoPE is two (ops/rope) */
    int32_t begins;   /* int32 [rows], position where the document of each row begins */
    hr_step late[HR_LATE_MAX];
    int32_t late_count;
    hr_status status;
    hr_error *err;
} hr_builder;

/* ---- tensors */

/* Declares a value of token rows: [rows, width] of `dtype`. Its home is the builder's loop. */
int32_t hr_build_rows(hr_builder *builder, const char *name, hr_dtype dtype, int64_t width);

/* Adds `intermediate` to the set of intermediates that the tensor is. Returns the tensor. */
int32_t hr_build_mark(hr_builder *builder, int32_t tensor, hr_intermediate intermediate);

/* Declares a value of fixed size: [K, N] of `dtype` in `layout`. */
int32_t hr_build_fixed(hr_builder *builder, const char *name, hr_role role, hr_dtype dtype,
                       hr_layout layout, int64_t K, int64_t N, int32_t home);

/* Declares a view of another tensor, starting at `offset_bytes`. The view does not move. */
int32_t hr_build_view(hr_builder *builder, const char *name, int32_t of, int64_t offset_bytes,
                      int64_t dims0);

/* ---- parameters */

/* MATRIX: [K, N], read by matrix products; it has the layout and dtype of the activations, and in
 * bf16 an fp32 master. TABLE: [K, N], rows are looked up. ADDEND: [K, N], rows are added to others.
 * VECTOR: [K] (N = 0). These three are fp32. Frozen parameters and inference have no masters. A
 * frozen table whose rows are read unchanged has the dtype of activations. A frozen matrix of a
 * layer has the format `stored_weights`: plan/dequantize.h. */
typedef enum { HR_PARAM_MATRIX, HR_PARAM_TABLE, HR_PARAM_ADDEND, HR_PARAM_VECTOR } hr_param_kind;

typedef struct {
    hr_param_kind kind;
    int64_t K, N;
    double init_scale;
    bool init_constant; /* all elements are init_scale */
    bool transposed;    /* the weight file stores [N, K] */
    bool plain;         /* it gets no adapter: its readers would not add it */
    bool init_uniform;  /* elements are in [-init_scale, init_scale) */
    bool looked_up;     /* a matrix whose adapter is of its rows in the file, as a table's is */
    hr_mlp_place place; /* in the MLP of its layer */
} hr_param_shape;

/* Declares a parameter; returns the tensor that forward steps read. The name is the external one,
 * from weight files. */
int32_t hr_build_param(hr_builder *builder, hr_param_shape shape, const char *name, ...)
    HR_PRINTF(3, 4);

/* The parameter A of the first adapter of a weight; HR_NONE: it has none. */
int32_t hr_build_adapter_of(const hr_builder *builder, int32_t weight);

/* Declares an fp32 tensor for a parameter, in the layout of its weight: "grad embed_out.weight". */
int32_t hr_build_like_weight(hr_builder *builder, int32_t param, const char *what, hr_role role,
                             int32_t home);

/* Declares the states of a parameter that the program lists: "moment 1 embed_out.weight". A frozen
 * parameter gets none, and is its own average. */
void hr_build_states(hr_builder *builder, int32_t param);

/* ---- steps and loops */

/* Appends a step to the current loop. `attr` is copied and may be null. Returns the step, whose
 * operands the caller fills in; they start as HR_NONE. After an error it returns a dummy step,
 * never null. */
hr_step *hr_build_step(hr_builder *builder, int32_t op, const void *attr, int64_t attr_bytes);

/* hr_build_late defers a step until after the last micro-batch, before the update; its operands
 * stay alive until then. hr_build_late_steps appends the deferred steps. */
hr_step *hr_build_late(hr_builder *builder, int32_t op, const void *attr, int64_t attr_bytes);
void hr_build_late_steps(hr_builder *builder);

/* Opens a loop inside the current one, and closes it. Steps added between the calls belong to
 * it. */
int32_t hr_build_loop_open(hr_builder *builder, const char *name, int64_t count);
int32_t hr_build_known_loop_open(hr_builder *builder, hr_loop_id id, int64_t count);
void hr_build_loop_close(hr_builder *builder);

/* The first error, or HR_OK. */
HR_MUST_CHECK hr_status hr_build_status(const hr_builder *builder);

/* ---- derivative */

/* State that derivative functions of operations use. */
typedef struct hr_derive {
    hr_builder *builder;
    int32_t *gradient; /* [tensor_max] gradient of each forward tensor so far; HR_NONE */
    int32_t *producer; /* [tensor_max] forward step that wrote it; HR_NONE: needs no gradient */
    int32_t *uses;     /* [tensor_max] number of forward steps that read it */
    int32_t *param;    /* [tensor_max] parameter that this weight belongs to; HR_NONE */
    bool *shared;      /* [step_max] the gradient was passed on to the residual input */
    int32_t lowest;    /* lowest layer that reads a trainable parameter; HR_NONE */
} hr_derive;

/* Emits the backward steps for forward steps [first, last], in reverse, into the current loop. It
 * goes down to the lowest layer with a trainable parameter, and covers that layer completely, so
 * that all layers have the same steps, unless `alone` is set. It starts from the gradients that
 * steps wrote beside their output (the loss). It uses four numbers per tensor and one flag per step
 * of `scratch` temporarily.
 * Errors   FAILURE  the program is full, or two gradients need a sum but no step accepts an
 *                   addend. */
HR_MUST_CHECK hr_status hr_build_derivative(hr_builder *builder, int32_t first, int32_t last,
                                            hr_region *scratch, hr_error *err);

/* Returns true when the tensor needs a gradient: a step with a derivative wrote it, and it depends
 * on a trainable parameter. */
bool hr_derive_wants(const hr_derive *derive, int32_t tensor);

/* Declares a new gradient for a forward tensor of token rows, which the emitted step writes.
 * `addend` out: the gradient collected so far, which the step must add; HR_NONE: none. */
int32_t hr_derive_emit(hr_derive *derive, int32_t tensor, int32_t *addend);

/* Sets the gradient of a tensor to an existing tensor (the loss writes its own). */
void hr_derive_set(hr_derive *derive, int32_t tensor, int32_t gradient);

/* Returns the gradient accumulator for one use of a parameter, at most two per parameter. HR_NONE:
 * it is frozen, or there is no such parameter. */
int32_t hr_derive_param(hr_derive *derive, int32_t weight);

/* Returns the accumulator of the first use; HR_NONE: none so far. */
int32_t hr_derive_sum(const hr_derive *derive, int32_t weight);

#endif
