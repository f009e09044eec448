/* SPDX-License-Identifier: Apache-2.0 */
/* prove/trace.h - what a run computed: losses, gradients of every step, and the weights and states
 * at its end.
 *
 * A trace is a file without a name, in the order of the arena, so that writing it copies nothing. A
 * tracer observes a run and either writes its trace or compares the run with a trace, piece by
 * piece, in a buffer of fixed size. */
#ifndef HR_PROVE_TRACE_H
#define HR_PROVE_TRACE_H

#include "base/region.h"
#include "headroom/prove.h"
#include "run/observer.h"

enum { HR_TRACE_KEPT = 1 + HR_STATES_MAX, HR_TRACE_BUFFER_BYTES = 256 << 10 };

/* One tensor in the file. */
typedef struct {
    int64_t offset, bytes; /* bytes 0: not there */
    int64_t K, N;          /* logical shape; N is 1 for vectors */
    uint8_t layout, dtype;
} hr_trace_array;

typedef struct {
    char name[96]; /* in weight files */
    bool trained;
    hr_trace_array gradient;            /* at the first step; a step is gradients_bytes long */
    hr_trace_array kept[HR_TRACE_KEPT]; /* master, then the states */
} hr_trace_param;

typedef struct {
    int file;               /* -1: closed */
    hr_trace_param *params; /* [param_max] */
    int32_t param_count, param_max;
    int32_t state_count;
    const char *state_names[HR_STATES_MAX];
    int64_t gradients_bytes; /* of one step */
    int64_t steps;           /* that were traced */
    bool has_values;         /* weights and states at the end were traced */
    double loss[HR_PROVE_STEPS_MOST], grad_norm[HR_PROVE_STEPS_MOST];
    double scale; /* of the gradients of the first step, not of their norm */
} hr_trace;

/* What a comparison has found. */
typedef struct {
    int32_t tensors, different; /* compared; of these, with a difference */
    int64_t elements;
    double absolute; /* largest difference of two elements; infinite: one is NaN */
    double relative; /* largest of a tensor, norm-wise */
    int64_t ulps;
    char tensor[HR_PROOF_TEXT_BYTES];
    char where[HR_PROOF_REASON_BYTES]; /* the tensor with its element of the largest difference */
} hr_difference;

typedef struct {
    hr_trace *trace;
    bool writes;         /* the trace; else compares with it */
    bool norm_wise;      /* measures every tensor, also those that agree to the bit */
    double floor;        /* with norm_wise: root mean square of elements that count as rounding */
    bool is_last;        /* weights and states pass now */
    bool ignores_values; /* gradients and losses only */
    int64_t first_step;  /* that is compared: a resumed run has no earlier ones */
    int64_t steps_done;  /* that were written */
    int64_t seen_bytes;  /* of the current step, or of the values */
    struct hr_values *notes; /* null, or where initial weights are written */
    uint8_t *buffer;         /* [HR_TRACE_BUFFER_BYTES] */
    hr_difference found;
    hr_status status; /* of the first error of an observation */
    hr_error err;
    void *prover; /* whose run this is */
    /* For tests: called before each observation, to change what it sees. Null: none. */
    hr_watch_fn *disturb;
    void *disturbing;
    hr_watch_fn *look; /* of a proof, at other values; null: none */
    void *looking;
} hr_tracer;

/* Bytes of the tables of a trace in a region. */
int64_t hr_trace_bytes(int64_t params);

/* Places the tables and creates the file, which has no name and vanishes with the process.
 * Errors   FAILURE  the directory cannot hold it. */
HR_MUST_CHECK hr_status hr_trace_open(hr_trace *trace, const char *directory, int64_t params,
                                      hr_region *region, hr_error *err);

/* States of a program that a trace has. Residuals are the last state, and part of the weights. */
int32_t hr_trace_states(const hr_program *program);

/* Accepts a closed one. */
void hr_trace_close(hr_trace *trace);

/* After the run: checks that everything that the trace has was seen. Errors FAILURE, and those of
 * the observation. */
HR_MUST_CHECK hr_status hr_tracer_finish(hr_tracer *w, hr_error *err);

/* The observer of a run for a tracer: ends it after `last_step` steps. */
hr_observer hr_tracer_observer(hr_tracer *tracer, int64_t last_step);

/* Reads a whole array of a step into memory [array->bytes]; step 0 for weights and states. */
HR_MUST_CHECK hr_status hr_trace_load(const hr_trace *trace, const hr_trace_array *array,
                                      int64_t step, void *memory, hr_error *err);

/* Element (k, n) of an array in memory. */
double hr_trace_element(const hr_trace_array *array, const void *memory, int64_t k, int64_t n);

/* Root mean square of the elements of the first gradient. */
double hr_trace_average(const hr_trace *trace);

/* Adds a tensor to what was found.
 *
 *   difference, reference  norms */
void hr_difference_add(hr_difference *found, double difference, double reference,
                       const char *tensor);

#endif
