/* SPDX-License-Identifier: Apache-2.0 */
/* ops/backends.h - the back ends that this build can plan for, by name. The devices that run their
 * programs are in dev/devices.h. */
#ifndef HR_OPS_BACKENDS_H
#define HR_OPS_BACKENDS_H

#include "graph/backend.h"

/* The back end of programs that name no other. */
#define HR_BACKEND_DEFAULT "cpu"

/* The back end with this name; null: there is none. Pure. */
const hr_backend *hr_backend_find(const char *name);

#endif
