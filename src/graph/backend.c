/* SPDX-License-Identifier: Apache-2.0 */
/* graph/backend.c - refuses programs that a back end does not run. */
#include "graph/backend.h"

static hr_status check_dtype(const hr_program *program, const hr_step *step, int32_t tensor,
                             hr_error *err)
{
    if (tensor == HR_NONE) return HR_OK;
    const hr_tensor *operand = &program->tensors[tensor];
    if (hr_step_facts(program, step)->dtypes >> operand->dtype & 1) return HR_OK;
    const bool stored = operand->dtype == HR_F16 || operand->dtype == HR_F8_E4M3;
    if (stored && program->backend->dequantize) return HR_OK; /* plan/dequantize.h makes a copy */
    return hr_fail(err, HR_USAGE, "the %s back end does not run %s with operands of %s (%s)",
                   program->backend->name, hr_step_op(program, step)->name,
                   hr_dtype_name((hr_dtype)operand->dtype), operand->name);
}

static hr_status check_step(const hr_program *program, const hr_step *step, hr_error *err)
{
    const hr_backend *backend = program->backend;
    const hr_op *op = hr_step_op(program, step);
    const hr_op_facts *facts = hr_step_facts(program, step);
    const int32_t other = op->remade_by - 1;
    hr_status status = HR_OK;
    char cause[HR_CAUSE_BYTES];
    if (!facts)
        return hr_fail(err, HR_USAGE, "the %s back end does not have the operation %s",
                       backend->name, op->name);
    if (other >= 0 && !backend->facts[other])
        return hr_fail(err, HR_USAGE,
                       "the %s back end does not have the operation %s, which "
                       "recomputes the result of %s",
                       backend->name, backend->ops[other]->name, op->name);
    if (op->host) return HR_OK;
    if (facts->supports && !facts->supports(step->attr, cause))
        return hr_fail(err, HR_USAGE, "the %s back end does not run %s: %s", backend->name,
                       op->name, cause);
    for (int32_t i = 0; i < HR_IN_MAX && status == HR_OK; i++)
        status = check_dtype(program, step, step->in[i], err);
    for (int32_t k = 0; k < HR_OUT_MAX && status == HR_OK; k++)
        status = check_dtype(program, step, step->out[k], err);
    return status;
}

hr_status hr_backend_check(const hr_program *program, hr_error *err)
{
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_status status = check_step(program, &program->steps[s], err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}
