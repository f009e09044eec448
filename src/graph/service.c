/* SPDX-License-Identifier: Apache-2.0 */
/* graph/service.c - checks the sections of services. */
#include "graph/service.h"

#include "base/writer.h"
#include "graph/backend.h"

static hr_status refuse(const hr_op *op, hr_loop_id section, hr_error *err)
{
    char names[256];
    hr_writer w = { names, sizeof names };
    for (hr_loop_id id = HR_LOOP_OTHER + 1; id < HR_LOOP_IDS; id++)
        if (op->host >> id & 1) hr_put(&w, "%s%s", w.used ? ", " : "", hr_loop_name(id));
    return hr_fail(err, HR_FAILURE, "the section \"%s\" may not hold the service %s; these may: %s",
                   hr_loop_name(section), op->name, names);
}

hr_status hr_service_check_sections(const hr_program *program, hr_error *err)
{
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_op *op = hr_step_op(program, &program->steps[s]);
        const hr_loop_id section = hr_step_section(program, s);
        if (op->host && !(op->host >> section & 1)) return refuse(op, section, err);
    }
    return HR_OK;
}
