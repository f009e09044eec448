/* SPDX-License-Identifier: Apache-2.0 */
/* graph/builder.h - writes a program, step by step, and then its derivative.
 *
 * Families call the `hr_build_<op>` functions of the operations, which call these. The first error
 * sticks: later calls return HR_NONE and do nothing, and hr_build_status tells it. */
#ifndef HR_GRAPH_BUILDER_H
#define HR_GRAPH_BUILDER_H

#include "graph/op.h"

enum { HR_LATE_MAX = 4 };

typedef struct {
    hr_program *program;
    hr_dtype dtype;  /* of activations */
    int64_t rows, T; /* token rows of the section, tokens of a sequence */
    bool training;   /* keep what the derivative will need; dropout is on */
    int32_t loop;    /* steps are added here; it is also the home of new values */
    int16_t layer;
    uint8_t block, direction;
    uint32_t site;      /* of the next random step */
    bool weights_alone; /* nothing trains the parameters: no masters */
    hr_param_rule (*rule)(const void *of, int16_t layer, int32_t index, bool vector,
                          const char *name); /* of the layer's parameter `index`; null: all train */
    const void *rule_of;
    bool short_tables;          /* tables whose rows are read have the type of activations too */
    int32_t position;           /* of one sequence that goes on at int32 [1] `position`, ... */
    const int32_t (*caches)[2]; /* ... keys and values of each layer so far; null: rows are those
                                     of whole sequences */
    bool separate;              /* rows are tokens of documents that do not see each other: */
    int32_t begins;             /* int32 rows, where in its sequence the document begins */
    hr_step late[HR_LATE_MAX];
    int32_t late_count;
    hr_status status;
    hr_error *err;
} hr_builder;

/* ---- tensors */

/* A value of token rows: [rows, width] of `dtype`, home = the builder's loop. */
int32_t hr_build_rows(hr_builder *builder, const char *name, hr_dtype dtype, int64_t width);

/* Says what a value is to its layer, beside what was said before. Returns the tensor. */
int32_t hr_build_mark(hr_builder *builder, int32_t tensor, hr_intermediate intermediate);

/* A value of fixed size: dims of `dtype` in `layout`. */
int32_t hr_build_fixed(hr_builder *builder, const char *name, hr_role role, hr_dtype dtype,
                       hr_layout layout, int64_t K, int64_t N, int32_t home);

/* A fixed view of `bytes` of another tensor, from `offset_bytes` on. */
int32_t hr_build_view(hr_builder *builder, const char *name, int32_t of, int64_t offset_bytes,
                      int64_t dims0);

/* ---- parameters */

/* A matrix [K, N] that products read (weight in the layout and type of the activations, fp32 master
 * beside it in bf16), a table [K, N] whose rows are read, one whose rows are added to others, or a
 * vector [K] (N = 0): these in fp32. Weights alone have no masters, nor has what is frozen; a
 * frozen table whose rows are read as they are has the type of activations. */
typedef enum { HR_PARAM_MATRIX, HR_PARAM_TABLE, HR_PARAM_ADDEND, HR_PARAM_VECTOR } hr_param_kind;

typedef struct {
    hr_param_kind kind;
    int64_t K, N;
    double init_scale;
    bool init_constant; /* all elements are init_scale */
    bool transposed;    /* other software stores [N, K] */
} hr_param_shape;

/* Declares a parameter; returns the tensor that forward steps read. The name is other
 * software's. */
int32_t hr_build_param(hr_builder *builder, hr_param_shape shape, const char *name, ...)
    HR_PRINTF(3, 4);

/* An fp32 tensor beside a parameter's weight, in its layout: "moment 1 embed_out.weight". */
int32_t hr_build_state(hr_builder *builder, int32_t param, const char *what, hr_role role,
                       int32_t home);

/* ---- steps and loops */

/* Adds a step at the builder's place. `attr` is copied; may be null. Returns it for its operands
 * to be filled in (never null: after an error a dummy). Operands start as HR_NONE. */
hr_step *hr_build_step(hr_builder *builder, int32_t op, const void *attr, int64_t attr_bytes);

/* A step that waits for the update, when every turn of the batch has been; and the place where
 * those that wait are added. What they read is kept until then. */
hr_step *hr_build_late(hr_builder *builder, int32_t op, const void *attr, int64_t attr_bytes);
void hr_build_late_steps(hr_builder *builder);

/* Opens a loop below the builder's; closes it again. Steps in between are inside. */
int32_t hr_build_loop_open(hr_builder *builder, const char *name, int64_t count);
void hr_build_loop_close(hr_builder *builder);

/* The first error, or HR_OK. */
HR_MUST_CHECK hr_status hr_build_status(const hr_builder *builder);

/* ---- derivative */

/* What an operation's derivative function works with. */
typedef struct hr_derive {
    hr_builder *builder;
    int32_t *gradient; /* [tensor_max] of each forward tensor, so far; HR_NONE */
    int32_t *producer; /* [tensor_max] forward step that wrote it; HR_NONE: no gradient wanted */
    int32_t *uses;     /* [tensor_max] forward steps that read it */
    int32_t *param;    /* [tensor_max] the parameter whose weight it is; HR_NONE */
    bool *shared;      /* [step_max] its residual has its gradient */
    int32_t lowest;    /* layer with a step that reads what trains; HR_NONE */
} hr_derive;

/* Emits the backward steps for forward steps [first, last], in reverse, at the builder's place, as
 * far down as there is a parameter that trains: to the bottom of its layer, so that layers are
 * alike. The gradients start with those that a step wrote beside its output (the loss). `scratch`
 * holds four numbers a tensor and a bit a step while this runs.
 * Errors   FAILURE  the program is full, or a gradient would need an addition that no step
 *                   takes. */
HR_MUST_CHECK hr_status hr_build_derivative(hr_builder *builder, int32_t first, int32_t last,
                                            hr_region *scratch, hr_error *err);

/* True if a gradient of this tensor is wanted: a step with a derivative wrote it, and a parameter
 * that trains is behind it. */
bool hr_derive_wants(const hr_derive *derive, int32_t tensor);

/* A new gradient for a forward tensor of rows, to be written by the step being emitted. What was
 * collected before is returned as the addend the step must add, or HR_NONE. */
int32_t hr_derive_emit(hr_derive *derive, int32_t tensor, int32_t *addend);

/* Makes a tensor the gradient of another (the loss writes its own). */
void hr_derive_set(hr_derive *derive, int32_t tensor, int32_t gradient);

/* An accumulator of a parameter's gradient, one for each use: of two at most. HR_NONE: it is
 * frozen, or there is no such parameter. */
int32_t hr_derive_param(hr_derive *derive, int32_t weight);

/* That of the first use; HR_NONE: there is none so far. */
int32_t hr_derive_sum(const hr_derive *derive, int32_t weight);

#endif
