/* SPDX-License-Identifier: Apache-2.0 */
/* audit/patches.h - changes of a training file, and their lines in the file of each program. */
#ifndef HR_AUDIT_PATCHES_H
#define HR_AUDIT_PATCHES_H

#include "audit/training.h"

/* In the order of what they cost. */
typedef enum {
    HR_CHANGE_FORMAT,
    HR_CHANGE_FUSED,
    HR_CHANGE_LOSS,
    HR_CHANGE_MICRO,
    HR_CHANGE_CHECKPOINTING,
    HR_CHANGE_OFFLOAD,
    HR_CHANGE_OFFLOAD_WEIGHTS, /* and the states */
    HR_CHANGE_EIGHT_BIT,
    HR_CHANGE_BF16,
    HR_CHANGE_LORA,
    HR_CHANGE_QLORA,
    HR_CHANGE_HALF_LENGTH,
    HR_CHANGE_QUARTER_LENGTH,
    HR_CHANGES
} hr_change;

/* Writes the keys that a change sets, each with its final value; the line "# remove KEY" is for a
 * key that must go. False: the program has no such keys, or refuses them beside others of the
 * file. Pure. */
bool hr_patch_lines(const hr_audit_report *report, hr_change which, char to[HR_AUDIT_PATCH_BYTES]);

/* Lines of a DeepSpeed file: of a change that moves to the host, and of fp16 in the place of bf16.
 * False: there are none. Pure. */
bool hr_patch_is_offload(hr_change which);
bool hr_patch_offload(const hr_audit_report *report, hr_change which,
                      char to[HR_AUDIT_PATCH_BYTES]);
bool hr_patch_format_sections(const hr_audit_report *report, char to[HR_AUDIT_PATCH_BYTES]);

/* The name of the DeepSpeed file in which the lines of a change stand; empty: the file itself. */
void hr_patch_file(const hr_audit_report *report, hr_change which, char to[HR_AUDIT_KEY_BYTES]);

#endif
