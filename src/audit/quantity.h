/* SPDX-License-Identifier: Apache-2.0 */
/* audit/quantity.h - numbers with a dimension, and numbers as people write them: "37.09 GB",
 * "~5.1M params", "4,194 MB".
 *
 * A stated number keeps its last digit, so that a claim can be judged by the digits it has. */
#ifndef HR_AUDIT_QUANTITY_H
#define HR_AUDIT_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/audit.h"

/* Largest number of an expression. */
#define HR_QUANTITY_MOST 9e18

/* A computed number. `whole` is exact if `is_whole`; `value` is always set. */
typedef struct {
    double value;
    int64_t whole;
    bool is_whole;
    hr_audit_dimension dimension;
} hr_quantity;

hr_quantity hr_quantity_of(int64_t whole, hr_audit_dimension dimension);
hr_quantity hr_quantity_of_real(double value, hr_audit_dimension dimension);

/* a (+ - * /) b into *out.
 * Errors   USAGE  bytes added to a plain number, bytes times bytes, a division by zero, an overflow
 *                 of 64 bits. */
HR_MUST_CHECK hr_status hr_quantity_apply(char operation, hr_quantity a, hr_quantity b,
                                          hr_quantity *out, hr_error *err);

/* A number as written. */
typedef struct {
    double value;     /* in bytes, seconds or units: with its suffix and unit applied */
    double step;      /* what one in the last written digit is worth, in the same unit */
    double scale;     /* of suffix and unit: 1e9 for GB */
    int32_t power;    /* of a unit of bytes: 3 for GB and GiB; 0: no such unit */
    bool binary;      /* KiB, MiB, GiB */
    bool approximate; /* "~", "about" */
    bool percent;
    char relation; /* '=', or '<' '>' '+' of "<1 GB", ">80GB", "80GB+"; "5-6" is not read */
    hr_audit_dimension dimension;
    char unit[12]; /* as written, "GB"; empty: none */
} hr_stated;

enum { HR_NUMBER_NONE = -1, HR_NUMBER_UNKNOWN_UNIT = -2 };

/* Reads a number with its suffix and unit at the start of text [length]. Returns the bytes taken,
 * or HR_NUMBER_NONE if there is no number. A word behind the number that is no unit is left. */
int64_t hr_stated_scan(const char *text, int64_t length, hr_stated *out);

/* Whether the value and its last digit are numbers up to 9e18: "1e400" is not. Pure. */
bool hr_stated_in_range(const hr_stated *number);

/* The whole of a text as a claim: "37.09 GB", "~448 GB", ">80GB", "5.1M params", "48 %".
 * Errors   USAGE  no number, one above 9e18, or an unknown unit, with the nearest one. */
HR_MUST_CHECK hr_status hr_stated_parse(const char *text, hr_stated *out, hr_error *err);

/* The index of the most similar of `count` names, the first of several. Each row of `rows` begins
 * with a pointer to its name and takes `row_bytes`. Pure. */
int32_t hr_audit_nearest(const char *word, const void *rows, int64_t row_bytes, int32_t count);

/* "39,829,110,784 bytes (39.83 GB, 37.09 GiB)", "29,220,864", "5.56 hours". Returns text. */
const char *hr_quantity_print(hr_quantity quantity, char text[HR_AUDIT_VALUE_BYTES]);

/* Compares a claim with the right value: sets verdict, value and sentence of `claim`. Pure. */
void hr_claim_judge(const hr_stated *stated, hr_quantity right, hr_audit_claim *claim);

#endif
