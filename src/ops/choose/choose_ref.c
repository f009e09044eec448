/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose_ref.c - reference implementation: a sorted list of the best. */
#include "ops/choose/choose_kernels.h"

static void score(const hr_choose_sum *sum, const float *p, int64_t keys, int64_t count,
                  float *scores)
{
    for (int64_t j = 0; j < count; j++) scores[j] = hr_choose_score_of(sum, p, keys, j);
}

/* Puts block j into a list that is sorted by falling score, and of equal ones by number; keeps the
 * first `room`. Blocks come in ascending order. */
static int64_t insert(const float *scores, int64_t j, int64_t room, uint16_t *list, int64_t count)
{
    int64_t at = count;
    if (count == room && scores[list[count - 1]] >= scores[j]) return count;
    if (count == room) at = --count;
    while (at > 0 && scores[list[at - 1]] < scores[j]) {
        list[at] = list[at - 1];
        at--;
    }
    list[at] = (uint16_t)j;
    return count + 1;
}

static int64_t best(const float *scores, int64_t first, int64_t last, int64_t room, uint16_t *list)
{
    int64_t found = 0;
    for (int64_t j = first; room > 0 && j < last; j++) found = insert(scores, j, room, list, found);
    for (int64_t i = 1; i < found; i++) /* by number */
        for (int64_t k = i; k > 0 && list[k - 1] > list[k]; k--) {
            const uint16_t before = list[k - 1];
            list[k - 1] = list[k];
            list[k] = before;
        }
    return found;
}

void hr_choose_fill_ref(hr_choose_kernels *kernels)
{
    *kernels = (hr_choose_kernels){ score, best };
}
