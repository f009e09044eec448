/* SPDX-License-Identifier: Apache-2.0 */
/* graph/service.h - where services, the operations of the host, may be in a program. */
#ifndef HR_GRAPH_SERVICE_H
#define HR_GRAPH_SERVICE_H

#include "graph/op.h"

/* Checks that each service of a program is in a section that may hold it (hr_op.host).
 * Errors   FAILURE  with the service, its section and those that may hold it. */
HR_MUST_CHECK hr_status hr_service_check_sections(const hr_program *program, hr_error *err);

#endif
