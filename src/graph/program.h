/* SPDX-License-Identifier: Apache-2.0 */
/* graph/program.h - a training run as a value: steps over tensors, with a small tree of loops.
 *
 * Plain data; ids are indices; HR_NONE is "no such thing". The compiler builds it, passes rewrite
 * it, the plan gives its tensors bytes, the executor walks it. */
#ifndef HR_GRAPH_PROGRAM_H
#define HR_GRAPH_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/region.h"
#include "headroom/status.h"

enum {
    HR_NONE = -1,
    HR_IN_MAX = 8,
    HR_OUT_MAX = 5,
    HR_ATTR_BYTES = 176,
    HR_TENSOR_NAME_BYTES = 64
};

/* Name of the table of gradient norms, one double for each parameter of a layer that trains; its
 * size is that of the layers that train and one more. */
#define HR_NORM_PARTS "gradient norm parts"
enum { HR_NORM_PARTS_OF_A_LAYER = 24 };

/* A count that only the data decides: "more than once". */
#define HR_MANY INT64_C(2147483647)

typedef enum {
    HR_ROLE_WEIGHT,
    HR_ROLE_MASTER, /* fp32 copy that the update works on, where the weight is bf16 */
    HR_ROLE_MOMENT,
    HR_ROLE_GRADIENT,   /* of a weight */
    HR_ROLE_ACTIVATION, /* any value of token rows, gradients of activations included */
    HR_ROLE_INPUT,      /* written by the host: ids, targets, schedule */
    HR_ROLE_SUM,        /* loss, norms: small carried sums */
    HR_ROLE_TABLE       /* made once at load: rotary angles */
} hr_role;

/* AGAIN: a clone that computes anew what the forward pass did not keep. */
typedef enum { HR_DIR_NONE, HR_DIR_FORWARD, HR_DIR_BACKWARD, HR_DIR_RECOMPUTED } hr_direction;

/* What a value is to its layer: the address by which a strategy keeps or drops it. */
typedef enum {
    HR_INTERMEDIATE_NONE,
    HR_INTERMEDIATE_NORM, /* output of a norm */
    HR_INTERMEDIATE_Q,    /* queries, keys, values: before and after rotation */
    HR_INTERMEDIATE_K,
    HR_INTERMEDIATE_V,
    HR_INTERMEDIATE_ATTENTION, /* output of attention and its log-sum-exp */
    HR_INTERMEDIATE_MID,       /* the residual stream between two branches of a layer */
    HR_INTERMEDIATE_GATE,      /* what an activation is applied to that multiplies UP */
    HR_INTERMEDIATE_UP,        /* what an activation is applied to */
    HR_INTERMEDIATE_ACTIVATION,
    HR_INTERMEDIATES /* one past the last */
} hr_intermediate;

/* A set of them: bit i is intermediate i. */
typedef uint16_t hr_intermediates;

typedef enum {
    HR_BLOCK_NONE,
    HR_BLOCK_EMBED,
    HR_BLOCK_ATTENTION,
    HR_BLOCK_MLP,
    HR_BLOCK_HEAD
} hr_block;

/* Every repetition. Steps of a loop are contiguous. A loop is planned once, whatever its count. */
typedef struct {
    char name[24];
    int32_t parent; /* HR_NONE for loop 0, the run */
    int64_t count;  /* turns */
    int64_t rows;   /* token rows a turn; 0: not a loop over rows. The last may be short */
    int64_t rows_total;
    int32_t step_first, step_last; /* last < first: the loop has no steps yet */
    int32_t place;                 /* for passes that number loops anew; else without meaning */
} hr_loop;

/* A value, or a view of one. Token-row values are written once; only sums and state are written
 * again. `home` decides every lifetime: the loop whose one turn the value belongs to, HR_NONE for
 * what outlives the run. */
typedef struct {
    char name[HR_TENSOR_NAME_BYTES];
    int16_t layer; /* HR_NONE: not in a layer */
    uint8_t dtype, role, layout;
    hr_intermediates intermediates; /* one buffer may be several: q, k and v side by side */
    int64_t dims[2]; /* as people think of it: [rows, width] or [K, N]; 1-D: dims[1] = 0 */
    int64_t rows;    /* token rows: the part that passes cut; 0 for everything else */
    int64_t row_bytes, fixed_bytes; /* bytes = rows * row_bytes + fixed_bytes */
    int32_t home;
    int32_t view_of; /* HR_NONE: owns its bytes */
    int64_t view_offset_bytes;
    int32_t view_loop; /* a view moves by view_stride_bytes each turn of this loop; or HR_NONE */
    int64_t view_stride_bytes;
} hr_tensor;

typedef struct {
    int16_t op; /* row of the table of operations */
    uint8_t block, direction;
    int16_t layer;
    int32_t loop;                                  /* innermost */
    int32_t in[HR_IN_MAX], out[HR_OUT_MAX];        /* tensors; HR_NONE for an operand left out */
    _Alignas(8) unsigned char attr[HR_ATTR_BYTES]; /* the op's own struct of plain values */
} hr_step;

/* What training does to a parameter. */
typedef struct {
    bool frozen;     /* it stays as it was: no gradient, no state */
    double lr_scale; /* of the learning rate */
    double decay;    /* weight decay */
} hr_param_rule;

/* A tensor of the model as the family names it, and everything that belongs to it. What is frozen
 * has a weight alone. */
typedef struct {
    char external_name[96];   /* the name other software gives it */
    int64_t dims[2];          /* [K, N], or [n] with dims[1] = 0 */
    bool external_transposed; /* the file holds [N, K] */
    hr_param_rule rule;
    double init_scale; /* standard deviation, or with init_constant the value itself */
    bool init_constant;
    int32_t weight; /* what forward reads */
    int32_t master; /* what the update writes; = weight in fp32, and where it is frozen */
    int32_t moment[2];
    int32_t average;        /* of the master over the updates; HR_NONE: nobody asks */
    int32_t gradient;       /* HR_NONE: frozen */
    int32_t gradient_again; /* of a second use of the weight; HR_NONE: it has none of its own */
} hr_param;

struct hr_op;

typedef struct {
    const struct hr_op *const *ops;
    int32_t op_count;
    hr_tensor *tensors;
    hr_step *steps;
    hr_loop *loops;
    hr_param *params;
    int32_t tensor_count, step_count, loop_count, param_count;
    int32_t tensor_max, step_max, loop_max, param_max;
} hr_program;

/* An empty program with room for so much, in the caller's region; loop 0, the run, is there.
 * Errors   FAILURE  the region is too small. */
HR_MUST_CHECK hr_status hr_program_place(hr_region *region, const struct hr_op *const *ops,
                                         int32_t op_count, int32_t step_max, int32_t tensor_max,
                                         int32_t loop_max, int32_t param_max, hr_program *program,
                                         hr_error *err);

/* The tensor that owns the bytes a view shows. */
static inline int32_t hr_tensor_root(const hr_program *program, int32_t tensor)
{
    while (program->tensors[tensor].view_of != HR_NONE) tensor = program->tensors[tensor].view_of;
    return tensor;
}

/* Bytes of one tensor, not rounded. */
int64_t hr_tensor_bytes(const hr_tensor *tensor);

/* True if `inner` is `outer` or lies inside it. Any loop lies inside HR_NONE. */
bool hr_loop_inside(const hr_program *program, int32_t inner, int32_t outer);

#endif
