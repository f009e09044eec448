/* SPDX-License-Identifier: Apache-2.0 */
/* audit/formulas.h - the functions of expressions: sizes of tensors by their shapes. */
#ifndef HR_AUDIT_FORMULAS_H
#define HR_AUDIT_FORMULAS_H

#include "audit/expression.h"

enum { HR_ARGUMENTS_MOST = 24 };

typedef struct {
    const char *name;
    /* its parameters in order, with defaults: "T V B=1 dtype=fp32"; a name with * is the model or
     * a number of parameters; "..." takes any number of sizes */
    const char *takes;
} hr_formula;

/* The row of that name, or null; and the most similar one. Pure. */
const hr_formula *hr_formula_find(const char *name);
const hr_formula *hr_formula_nearest(const char *name);

/* Applies a formula. Errors USAGE. */
HR_MUST_CHECK hr_status hr_formula_apply(const hr_formula *formula, const hr_argument *arguments,
                                         int32_t count, const char *folder, hr_quantity *out,
                                         hr_error *err);

#endif
