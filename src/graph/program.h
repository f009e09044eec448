/* SPDX-License-Identifier: Apache-2.0 */
/* graph/program.h - a training run as data: steps over tensors, with a small tree of loops.
 *
 * Plain data: ids are indices, HR_NONE is "none". The compiler builds the program, passes rewrite
 * it, the planner assigns offsets to its tensors, and the executor runs it. */
#ifndef HR_GRAPH_PROGRAM_H
#define HR_GRAPH_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/region.h"
#include "base/residual.h"
#include "headroom/status.h"

/* What PEFT puts before the names of adapters. */
#define HR_ADAPTER_PREFIX "base_model.model."

enum {
    HR_NONE = -1,
    HR_IN_MAX = 8,
    HR_OUT_MAX = 8,
    HR_STATES_MAX = HR_OUT_MAX - 2, /* outputs of one step, with a weight and its master */
    HR_ADAPTERS_MAX = 8,            /* of one parameter */
    HR_ATTR_BYTES = 176,
    HR_PART_ROWS = 512, /* of a part of a sequence, or a multiple */
    HR_TENSOR_NAME_BYTES = 64
};

/* Chunks of HR_PART_ROWS queries that go over the blocks of keys that they select together, in a
 * sequence of T tokens: in a long one few of a chunk select the same block. A part of such a
 * sequence has whole multiples of them. */
static inline int64_t hr_part_together(int64_t T)
{
    enum { PER_CHUNK = 32768, MOST = 8 };
    return T < PER_CHUNK ? 1 : T / PER_CHUNK < MOST ? T / PER_CHUNK : MOST;
}

/* The name of the table of gradient norms: one double for each trained parameter. */
#define HR_NORM_PARTS "gradient norm parts"

/* A loop count that depends on the data. It means "more than once". */
#define HR_MANY INT64_C(2147483647)

typedef enum {
    HR_ROLE_WEIGHT,
    HR_ROLE_MASTER,     /* fp32 copy that the optimizer updates, where the weight is bf16 */
    HR_ROLE_STATE,      /* a state of a parameter */
    HR_ROLE_GRADIENT,   /* of a weight */
    HR_ROLE_ACTIVATION, /* any value of token rows, including gradients of activations */
    HR_ROLE_INPUT,      /* written by the host: ids, targets, schedule */
    HR_ROLE_SUM,        /* loss, norms: small accumulators */
    HR_ROLE_TABLE       /* computed once at load: rotary angles */
} hr_role;

/* Where the bytes of a tensor are. Each space has its own offsets. Kernels access only HOST, the
 * arena; transfers (graph/transfer.h) copy between it and the other spaces. */
typedef enum {
    HR_SPACE_HOST,
    HR_SPACE_DEVICE, /* memory of an accelerator */
    HR_SPACE_PINNED, /* host memory that an accelerator copies from */
    HR_SPACE_FILE,   /* one file of the run */
    HR_SPACE_BASE,   /* the files of a frozen model: read only, in an order of their own */
    HR_SPACES
} hr_space;

/* RECOMPUTED: a clone that recomputes a value that the forward pass did not keep. */
typedef enum { HR_DIR_NONE, HR_DIR_FORWARD, HR_DIR_BACKWARD, HR_DIR_RECOMPUTED } hr_direction;

/* The kind of an activation within its layer. Strategies keep or recompute activations by kind; the
 * input of a layer, which cannot be recomputed there, they keep or read again from a file. */
typedef enum {
    HR_INTERMEDIATE_NONE,
    HR_INTERMEDIATE_NORM, /* output of a norm */
    HR_INTERMEDIATE_Q,    /* queries, keys, values: before and after rotation */
    HR_INTERMEDIATE_K,
    HR_INTERMEDIATE_V,
    HR_INTERMEDIATE_ATTENTION, /* output of attention and its log-sum-exp */
    HR_INTERMEDIATE_MID,       /* the residual stream between two branches of a layer */
    HR_INTERMEDIATE_GATE,      /* input of the activation function whose result multiplies UP */
    HR_INTERMEDIATE_UP,        /* input of the activation function */
    HR_INTERMEDIATE_ACTIVATION,
    HR_INTERMEDIATE_INPUT, /* the residual stream that the layer reads, with memory.spill=auto */
    HR_INTERMEDIATES       /* number of kinds */
} hr_intermediate;

/* A set of intermediates: bit i is intermediate i. */
typedef uint16_t hr_intermediates;

typedef enum {
    HR_BLOCK_NONE,
    HR_BLOCK_EMBED,
    HR_BLOCK_ATTENTION,
    HR_BLOCK_MLP,
    HR_BLOCK_HEAD
} hr_block;

/* Loops that code looks for. Those without a comment are sections: children of loop 0. */
typedef enum {
    HR_LOOP_OTHER, /* any: the loops of tiles, chunks and micro-batches */
    HR_LOOP_LOAD,
    HR_LOOP_FETCH,
    HR_LOOP_NORM,
    HR_LOOP_STEP,
    HR_LOOP_UPDATE,
    HR_LOOP_STRIP, /* in NORM and STEP: plan/strips.h */
    HR_LOOP_EVALUATION,
    HR_LOOP_EVALUATION_BATCH, /* in EVALUATION */
    HR_LOOP_SAMPLE,
    HR_LOOP_SAVE,
    HR_LOOP_CACHES,
    HR_LOOP_PROMPT,
    HR_LOOP_PROMPT_CHUNK, /* in PROMPT */
    HR_LOOP_ANSWER,
    HR_LOOP_ANSWER_TOKEN, /* in ANSWER */
    HR_LOOP_SEQUENCES,
    HR_LOOP_SEQUENCES_BATCH, /* in SEQUENCES */
    HR_LOOP_IDS
} hr_loop_id;

/* A loop. Its steps are contiguous. It is planned once, whatever its count. */
typedef struct {
    char name[24];
    int32_t parent; /* HR_NONE for loop 0, the run */
    int32_t id;     /* hr_loop_id */
    int64_t count;  /* iterations */
    int64_t rows;   /* token rows per iteration; 0: not a loop over rows. The last may have fewer */
    int64_t rows_total;
    int32_t step_first, step_last; /* last < first: the loop has no steps yet */
    int32_t place;                 /* scratch for passes that renumber loops */
} hr_loop;

/* A value, or a view of one. Token-row values are written once; only accumulators and state are
 * written again. `home` determines the lifetime: the loop whose single iteration the value belongs
 * to; HR_NONE for values that outlive the run. */
typedef struct {
    char name[HR_TENSOR_NAME_BYTES];
    int16_t layer;                      /* HR_NONE: not in a layer */
    uint8_t dtype, role, layout, space; /* space: hr_space */
    hr_intermediates intermediates;     /* one buffer can hold several: q, k and v side by side */
    int64_t dims[2];                /* logical shape: [rows, width] or [K, N]; 1-D: dims[1] = 0 */
    int64_t rows;                   /* token rows, which passes split; 0 for everything else */
    int64_t row_bytes, fixed_bytes; /* bytes = rows * row_bytes + fixed_bytes */
    int32_t home;
    int32_t view_of; /* HR_NONE: not a view, has its own bytes */
    int64_t view_offset_bytes;
    int32_t view_loop;  /* a view moves by view_stride_bytes per iteration of this loop; or
                        * HR_NONE */
    int32_t view_align; /* > 0: a view of a buffer of its own starts at the next multiple of this */
    int64_t view_stride_bytes;
} hr_tensor;

typedef struct {
    int16_t op; /* index into the table of operations */
    uint8_t block, direction;
    int16_t layer;
    bool in_parts;                                 /* its rows are a part of a sequence */
    int32_t loop;                                  /* innermost loop */
    int32_t in[HR_IN_MAX], out[HR_OUT_MAX];        /* tensors; HR_NONE for an omitted operand */
    _Alignas(8) unsigned char attr[HR_ATTR_BYTES]; /* the operation's own struct of plain values */
} hr_step;

/* How training updates a parameter. */
typedef struct {
    bool frozen : 1; /* no gradient here; constant, without optimizer state, unless it rests */
    bool rests : 1;  /* frozen in this stage of a run, and trained in another: keeps its states */
    bool base;       /* frozen under adapters: checkpoints do not have it */
    bool saved;      /* trained whole beside adapters, and kept in their file */
    uint8_t which;   /* of several adapters that add up, it is part of this one */
    uint8_t form;    /* hr_adapter_form, of a part of an adapter */
    bool off;        /* the adapter is not used: its layer is a standard one */
    /* The file has [stack, ...], the matrices beside each other in columns or in rows. 0: one
     * matrix. */
    uint8_t stack;
    bool stacks_columns;
    double lr_scale; /* factor for the learning rate */
    double decay;    /* weight decay */
} hr_param_rule;

/* Adapters of a matrix:
 *   LOW_RANK  y += scale (dropout(x) A) B
 *   DIAGONAL  y += scale (tanh(a A) * (x A)) B
 *   OUTER     y += scale sum of (va . x) vb over triples, with i = a Wi, va = i Wa, vb = i Wb
 * a is the output of attention. */
typedef enum { HR_ADAPTER_LOW_RANK, HR_ADAPTER_DIAGONAL, HR_ADAPTER_OUTER } hr_adapter_form;

/* Matrices of an MLP. The GATE is the input of its activation, and UP what is multiplied by the
 * result, if the MLP has both. */
typedef enum { HR_MLP_NONE, HR_MLP_GATE, HR_MLP_UP, HR_MLP_DOWN, HR_MLP_PLACES } hr_mlp_place;

typedef struct {
    int32_t rank; /* 0: none */
    float scale;
    bool magnitudes; /* the columns of W + scale A B have trained lengths (DoRA) */
    uint8_t form;    /* hr_adapter_form; the rest is of the last two */
    uint8_t places;  /* bit i: the matrix of hr_mlp_place i has one; 0: every matrix */
    uint8_t triples; /* of OUTER */
    bool off;        /* it is not used */
    int64_t width;   /* of a */
} hr_adapter_rule;

/* A parameter of the model, as the family names it, and its tensors. A frozen parameter has only a
 * weight. */
typedef struct {
    char external_name[88];   /* its name in weight files */
    int64_t dims[2];          /* [K, N], or [n] with dims[1] = 0 */
    bool external_transposed; /* the file stores [N, K] */
    uint8_t format;           /* hr_weights_choice: how the weight is stored */
    bool init_constant;       /* all elements are init_scale, or ... */
    bool init_uniform;        /* ... in [-init_scale, init_scale) */
    /* Parameter A of its first adapter, before B and magnitudes; of an A that of the next adapter
     * of the same parameter. HR_NONE: there is none. */
    int32_t adapter;
    hr_param_rule rule;
    double init_scale;   /* standard deviation, if neither */
    float adapter_scale; /* of the adapter that begins with this A */
    /* Reciprocal lengths of its columns with the adapter. Of the first part of an adapter of outer
     * products its G, which the gradient of G follows (ops/penalty/penalty.h). HR_NONE: none. */
    int32_t lengths;
    int32_t adapts; /* the parameter that this one is a part of the adapter of; HR_NONE */
    int32_t weight; /* tensor that forward reads, or the stored weight */
    int32_t scales; /* of the stored weight; HR_NONE: none */
    int32_t master; /* tensor that the update writes; = weight in fp32, without an fp32 copy, and
                     * when frozen */
    int32_t states[HR_STATES_MAX]; /* tensors of the states of the program; HR_NONE: frozen */
    int32_t gradient;              /* HR_NONE: frozen */
    int32_t gradient_again; /* of a second use of the weight; HR_NONE: no second accumulator */
} hr_param;

/* Elements of a state of a parameter [K, N]. */
typedef enum {
    HR_STATE_ELEMENTS, /* one for each element, in the layout of the master */
    HR_STATE_ROWS,     /* [K] */
    HR_STATE_COLUMNS,  /* [N] */
    /* of a bf16 weight, of 16 or 8 bits (base/residual.h); a weight in fp32 has none */
    HR_STATE_RESIDUAL,
    HR_STATE_RESIDUAL_BYTES,
    HR_STATE_BLOCKS /* one for each HR_STATE_BLOCK_ELEMENTS elements in memory, padding included */
} hr_state_shape;

/* States of 8-bit codes have one fp32 scale for each block of elements. Those of smaller parameters
 * are fp32, without scales. */
enum { HR_STATE_BLOCK_ELEMENTS = 256, HR_STATE_CODED_ELEMENTS = 4096 };

/* Smaller states, and smaller weights of a base in files, are in the arena: transfers of them would
 * take longer than their bytes are worth. */
enum { HR_STATE_AWAY_BYTES = 64 << 10 };

/* A state that training keeps for each trained parameter. It starts at zero, an average at the
 * weights. */
typedef struct {
    const char *name; /* of its tensors, before the name of the parameter: "moment 1" */
    const char *file; /* in a checkpoint: "moment_1.safetensors"; null: it is not saved */
    uint8_t shape;    /* hr_state_shape */
    uint8_t dtype;    /* HR_U8: codes, and fp32 in small parameters */
    uint8_t zero;     /* HR_U8: the code of zero */
    bool average;     /* of the weights, published as a model; of a frozen parameter its weight */
    bool outside;     /* matrices of layers have none */
    uint8_t space;    /* hr_space, of states of HR_STATE_AWAY_BYTES or more */
} hr_state;

struct hr_backend;

typedef struct {
    const struct hr_backend *backend; /* that it is planned for, with its table of operations */
    uint8_t dtype;                    /* hr_dtype of activations, and of weights in products */
    bool adapts;                      /* it trains adapters, ... */
    bool modulates;                   /* ... whose weights are a function of the token */
    bool in_blocks; /* values in the arena are whole blocks: any activation may be in the file */
    bool again;     /* the backward pass of each block recomputes and fetches for itself */
    hr_tensor *tensors;
    hr_step *steps;
    hr_loop *loops;
    hr_param *params;
    hr_state states[HR_STATES_MAX]; /* that each trained parameter has */
    int32_t state_count;
    int64_t piece_elements; /* of an update whose states are outside of the arena (transfer.h) */
    int32_t tensor_count, step_count, loop_count, param_count;
    int32_t tensor_max, step_max, loop_max, param_max;
} hr_program;

/* Creates an empty program with the given capacities in the caller's region. It contains loop 0,
 * the run.
 * Errors   FAILURE  the region is too small. */
HR_MUST_CHECK hr_status hr_program_place(hr_region *region, const struct hr_backend *backend,
                                         int32_t step_max, int32_t tensor_max, int32_t loop_max,
                                         int32_t param_max, hr_program *program, hr_error *err);

/* Returns the tensor that owns the bytes of a view. */
static inline int32_t hr_tensor_root(const hr_program *program, int32_t tensor)
{
    while (program->tensors[tensor].view_of != HR_NONE) tensor = program->tensors[tensor].view_of;
    return tensor;
}

/* The number of trained parameters, in a program with `more` further layers like its last. */
int64_t hr_program_trained(const hr_program *program, int64_t more);

/* Letters of the name of the module that a parameter belongs to: without ".weight". Pure. */
int32_t hr_module_length(const char *name);

/* The name of that module. Pure. */
enum { HR_MODULE_BYTES = sizeof((hr_param *)0)->external_name };
void hr_module_of(const char *name, char module[HR_MODULE_BYTES]);

/* Whether the file of adapters has a parameter. */
static inline bool hr_param_is_in_adapters(const hr_param *param)
{
    return param->adapts != HR_NONE || param->rule.saved;
}

/* The name of a parameter in the file of the model. */
static inline const char *hr_param_name_in_model(const hr_param *param)
{
    return param->external_name + (param->rule.saved ? sizeof HR_ADAPTER_PREFIX - 1 : 0);
}

/* Whether an adapter that begins with A is of the rows of a table, and not of products. */
static inline bool hr_program_looks_up(const hr_program *program, int32_t a)
{
    return program->tensors[program->params[a].weight].layout == HR_ROWS;
}

/* Rank of the adapter of a parameter; 0: it has none. */
static inline int64_t hr_program_rank(const hr_program *program, int32_t param)
{
    const int32_t a = program->params[param].adapter;
    return a == HR_NONE ? 0 : program->params[a + 1].dims[0];
}

/* Whether a parameter is a matrix of a layer that products read. */
bool hr_program_is_matrix(const hr_program *program, int32_t param);

/* Index of the state that is an average of the weights; HR_NONE if there is none. */
int32_t hr_program_average(const hr_program *program);

/* Whether a state is the residual of bf16 weights. */
static inline bool hr_state_is_residual(const hr_state *state)
{
    return state->shape == HR_STATE_RESIDUAL || state->shape == HR_STATE_RESIDUAL_BYTES;
}

/* Index of the state that is the residual of bf16 weights; HR_NONE: there is none. */
int32_t hr_program_residual_state(const hr_program *program);

/* The residual of a bf16 weight; HR_NONE: it has none. */
int32_t hr_program_residual(const hr_program *program, int32_t param);

/* The residual of a bf16 weight whose codes are there; null: it has none. */
static inline hr_residual hr_program_residual_at(const hr_program *program, void *codes)
{
    const int32_t state = hr_program_residual_state(program);
    return (hr_residual){ codes, state != HR_NONE &&
                                     program->states[state].shape == HR_STATE_RESIDUAL_BYTES };
}

/* Whether an operand is a tensor outside of the arena. */
static inline bool hr_tensor_is_away(const hr_program *program, int32_t tensor)
{
    return tensor != HR_NONE && program->tensors[tensor].space != HR_SPACE_HOST;
}

/* "host", "file", "base". */
const char *hr_space_name(hr_space space);

/* Offsets and sizes in a space are multiples of this: a cache line, or a block of direct I/O. */
static inline int64_t hr_space_align(hr_space space)
{
    return space == HR_SPACE_FILE ? 4096 : 64;
}

/* The same in a program. */
static inline int64_t hr_program_align(const hr_program *program, hr_space space)
{
    return hr_space_align(program->in_blocks ? HR_SPACE_FILE : space);
}

/* Bytes of the file of a run that has so many bytes of values; 0: none. A header comes first. */
static inline int64_t hr_space_file_size(int64_t bytes)
{
    return bytes ? hr_space_align(HR_SPACE_FILE) + bytes : 0;
}

/* Bytes of one tensor, without rounding. */
int64_t hr_tensor_bytes(const hr_tensor *tensor);

/* "step"; "" for HR_LOOP_OTHER. */
const char *hr_loop_name(hr_loop_id id);

/* Index of the first loop with this id; HR_NONE: there is none. */
int32_t hr_program_loop(const hr_program *program, hr_loop_id id);

/* Sets the first and last step of each loop, after a pass has rebuilt the list of steps. */
void hr_program_span_loops(hr_program *program);

/* The section that contains a loop; 0 for loop 0, HR_NONE for HR_NONE. */
int32_t hr_loop_section(const hr_program *program, int32_t loop);

/* The id of the section of a step; HR_LOOP_OTHER outside of sections. */
hr_loop_id hr_step_section(const hr_program *program, int32_t step);

/* Returns true when `inner` is `outer` or inside it. Every loop is inside HR_NONE. */
bool hr_loop_inside(const hr_program *program, int32_t inner, int32_t outer);

#endif
