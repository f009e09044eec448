/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/modulation.h - what the adapters of NPT do to weights, token by token: the size of the
 * change, and captures of it.
 *
 * The change of a matrix is never computed. Its Frobenius norm is a form of the R numbers that
 * modulate it: with m = scale tanh(u), |A diag(m) B|^2 = sum m_c m_d (A'A)_cd (BB')_cd; with the
 * triples i of outer products, |sum va vb'|^2 = sum over pairs of (va_j . va_l) (vb_j . vb_l),
 * where va_j . va_l = i_j' (Wa_j' Wa_l) i_l. */
#ifndef HR_EVALUATE_MODULATION_H
#define HR_EVALUATE_MODULATION_H

#include "base/file.h"
#include "dev/executor.h"
#include "headroom/evaluate.h"

/* The adapter of one matrix. */
typedef struct {
    int32_t param; /* the first of its parts */
    int64_t N, R;
    float *of_x, *of_y; /* [N, N] products of the columns of A or Wa, of the rows of B or Wb */
    float *rows;        /* [captured, N] of captured tokens, what modulates them */
    double norms;       /* sum over counted tokens */
    int64_t tokens;
} hr_modulated;

typedef struct {
    const hr_program *program;
    hr_modulated *all; /* [count] in the order of layers */
    int32_t count;
    float *row;               /* of one token */
    const int64_t *positions; /* [captured] tokens of the first sequence, rising */
    int32_t captured;
} hr_modulation;

enum { HR_CAPTURED_MOST = 256 };

/* Reads a list such as "0-3 9" of tokens of a sequence; null: the last. Errors USAGE  not such a
 * list, not rising, past the end. */
HR_MUST_CHECK hr_status hr_modulation_positions(const char *list, int64_t length,
                                                int64_t positions[HR_CAPTURED_MOST], int32_t *count,
                                                hr_error *err);

/* Bytes of region that hr_modulation_open takes. Pure. */
int64_t hr_modulation_bytes(const hr_program *program, int32_t captured);

HR_MUST_CHECK hr_status hr_modulation_open(hr_modulation *m, const hr_program *program,
                                           const int64_t *positions, int32_t captured,
                                           hr_region *region, hr_error *err);

/* Computes the products of loaded weights. */
void hr_modulation_measure(hr_modulation *m, const hr_executor *executor);

/* Takes rows of what modulates the adapter that begins with a parameter.
 *
 *   first    token of the first of them, counted from that of the first sequence
 *   targets  [count]; negative: the token is not counted */
void hr_modulation_take(hr_modulation *m, int32_t param, const void *rows, hr_dtype dtype,
                        int64_t first, int64_t count, const int32_t *targets);

/* Reports the mean norm of each matrix. Returns their number. */
int32_t hr_modulation_report(const hr_modulation *m, hr_evaluate_change *changes, int32_t most);

/* What every capture has at HR_CAPTURE_FIRST_AT. */
enum { HR_CAPTURE_FIRST_AT = 8 };
extern const char hr_capture_first[];

/* Writes the captured tokens as safetensors: of a diagonal adapter MODULE.m [n, r], of outer
 * products MODULE.va [n, k, d] and MODULE.vb [n, k, F], and positions [n].
 * Errors as hr_file_append. */
HR_MUST_CHECK hr_status hr_modulation_write(const hr_modulation *m, const hr_executor *executor,
                                            hr_file_out *out, hr_error *err);

#endif
