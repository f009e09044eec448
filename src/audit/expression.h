/* SPDX-License-Identifier: Apache-2.0 */
/* audit/expression.h - evaluates the formula of a claim: "12 * tensor(32, 8, 128, 128, 64, fp32)".
 *
 * Numbers with suffixes and units, + - * / and parentheses, and the functions of audit/formulas.h.
 * Limits: 1,024 bytes, 32 open parentheses. docs/audit.md lists the functions. */
#ifndef HR_AUDIT_EXPRESSION_H
#define HR_AUDIT_EXPRESSION_H

#include "audit/quantity.h"

enum { HR_EXPRESSION_BYTES = 1024, HR_EXPRESSION_TEXT_BYTES = 128 };

/* A value or a word: "bf16", "presets/needle-70m.yaml". */
typedef struct {
    bool is_text;
    char text[HR_EXPRESSION_TEXT_BYTES];
    hr_quantity number;
} hr_expression_value;

/* An argument of a function; name empty: it has none. */
typedef struct {
    char name[24];
    hr_expression_value value;
} hr_argument;

/* Evaluates text. `folder` is where relative paths of recipes start; empty: the current one.
 * Errors   USAGE  not an expression, an unknown name (with the nearest), a wrong argument, no
 *                 meaning as a quantity. */
HR_MUST_CHECK hr_status hr_expression_evaluate(const char *text, const char *folder,
                                               hr_quantity *out, hr_error *err);

#endif
