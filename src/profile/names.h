/* SPDX-License-Identifier: Apache-2.0 */
/* profile/names.h - how reports and traces name the place of an operation. */
#ifndef HR_PROFILE_NAMES_H
#define HR_PROFILE_NAMES_H

#include "graph/program.h"

/* A part of the model, hr_block; "run" is what belongs to none. */
static inline const char *hr_profile_part(int32_t block)
{
    static const char *const names[] = { [HR_BLOCK_NONE] = "run",
                                         [HR_BLOCK_EMBED] = "embedding",
                                         [HR_BLOCK_ATTENTION] = "attention",
                                         [HR_BLOCK_MLP] = "MLP",
                                         [HR_BLOCK_HEAD] = "output head" };
    return names[block];
}

/* Empty: neither forward nor backward. */
static inline const char *hr_profile_direction(int32_t direction)
{
    static const char *const names[] = { [HR_DIR_NONE] = "",
                                         [HR_DIR_FORWARD] = "forward",
                                         [HR_DIR_BACKWARD] = "backward",
                                         [HR_DIR_RECOMPUTED] = "recompute" };
    return names[direction];
}

#endif
