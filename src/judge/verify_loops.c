/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_loops.c - questions about steps in loops that several checks ask. */
#include <string.h>

#include "judge/judged.h"

int32_t hr_judged_repeating(const hr_judged_plan *plan, int32_t s, int32_t home)
{
    int32_t found = -1;
    for (int32_t loop = plan->steps[s].loop; loop > 0 && loop != home;
         loop = plan->loops[loop].parent)
        if (plan->loops[loop].repeats > 1) found = loop;
    return found;
}

int32_t hr_judged_section(const hr_judged_plan *plan, int32_t s)
{
    int32_t loop = plan->steps[s].loop;
    while (plan->loops[loop].depth > 1) loop = plan->loops[loop].parent;
    return loop;
}

int32_t hr_judged_apart(const hr_judged_plan *plan, int32_t a, int32_t b)
{
    int32_t one = plan->steps[a].loop, two = plan->steps[b].loop;
    if (hr_judged_loads(plan, a) != hr_judged_loads(plan, b)) return hr_judged_section(plan, a);
    while (one != two) {
        int32_t *inner = plan->loops[one].depth < plan->loops[two].depth ? &two : &one;
        if (plan->loops[*inner].repeats > 1) return *inner;
        *inner = plan->loops[*inner].parent;
    }
    return -1;
}

bool hr_judged_in_strips(const hr_judged_plan *plan, int32_t s)
{
    bool any = false;
    if (hr_judged_repeating(plan, s, hr_judged_section(plan, s)) < 0) return false;
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
        const hr_judged_access *access = &plan->accesses[k];
        const hr_judged_buffer *buffer = &plan->buffers[access->stands_for];
        if (access->kind == HR_JUDGED_READ || !hr_judged_is_state(plan, buffer->root)) continue;
        if (buffer->view_of < 0) return false;
        any = true;
    }
    return any;
}

bool hr_judged_is_average(const hr_judged_buffer *root)
{
    return root->role == HR_JUDGED_MOMENT && !strncmp(root->name, "average ", strlen("average "));
}
