/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/levels.c - places the fullest sections first, then adds the other items level by level.
 *
 * A level is a core; each next one has more items. A placement of one level usually leaves room for
 * the items of the next, without search. Where it does not, the level is small. */
#include <stddef.h>

#include "base/checked.h"
#include "plan/pack/part.h"

enum {
    LEVELS = 28, /* the distance to the target doubles every second level */
    WORK_FIRST = 1 << 18,
    GROUND_MOST = 2000, /* blocks; above this the search costs more than it finds */
    PATIENCE_MOST = 30, /* work doubles each time, so this is never reached */
    PUTS_GROW_FOR = 6,
    WORK_A_CORE = 1, /* per item of the part */
    SMALL = 256,     /* items of a part that the search first tries as a whole */
    SMALL_WORK = 1 << 26
};

/* Load limit of a level: 1/2, 3/8, 1/4, 3/16 ... of the target below the target. */
static int64_t least_load(int64_t target, int32_t level)
{
    const int64_t octave = target >> (level / 2);
    return level == 0 ? 0 : target - octave / 4 * (level % 2 ? 3 : 4);
}

/* A level with its items joined to blocks. */
typedef struct {
    hr_pack_attempt *whole;
    hr_pack_attempt glued;
    hr_pack_part blocks;
    int32_t *order; /* members of the blocks */
    int64_t *known; /* by block; negative: its members are not contiguous */
} level_blocks;

/* The offset of a block if its members have known, contiguous offsets; else negative. */
static int64_t known_block(const level_blocks *l, int32_t block, const int64_t *known)
{
    const hr_pack_part *part = l->whole->part;
    const int32_t first = (int32_t)l->blocks.items[block].storage;
    const int32_t end = block + 1 < l->blocks.count ? l->blocks.items[block + 1].storage
                                                    : part->count;
    int64_t low = INT64_MAX, high = 0;
    for (int32_t k = first; k < end; k++) {
        const int64_t at = known[l->order[k]];
        if (at < 0) return -1;
        low = hr_min(low, at);
        high = hr_max(high, at + part->items[l->order[k]].bytes);
    }
    return high - low == l->blocks.items[block].bytes ? low : -1;
}

static void open_level(level_blocks *l, hr_pack_attempt *whole, const int64_t *known, bool ground,
                       hr_pack_effort *effort)
{
    *l = (level_blocks){ .whole = whole };
    l->order = hr_pack_take(effort, whole->part->count, sizeof *l->order);
    hr_pack_glue(whole->part, &l->blocks, l->order, ground, effort);
    hr_pack_attempt_open(&l->glued, &l->blocks, whole->turn, effort);
    if (!known) return;
    l->known = hr_pack_take(effort, l->blocks.count, sizeof *l->known);
    for (int32_t b = 0; b < l->blocks.count; b++) l->known[b] = known_block(l, b, known);
    l->glued.known = l->known;
}

/* Places the blocks: by orders, with repair, and by short searches. */
static hr_pack_answer place_glued(level_blocks *l, int64_t target, int32_t puts, int64_t work,
                                  hr_pack_effort *effort)
{
    hr_pack_attempt *g = &l->glued, *a = l->whole;
    if (l->known) hr_pack_try(g, target, l->known, 0, HR_PACK_WAYS_GOOD, puts, effort);
    hr_pack_try(g, target, NULL, 0, HR_PACK_WAYS_GOOD, puts, effort);
    hr_pack_answer answer = HR_PACK_GAVE_UP;
    if (g->height > target && puts) answer = hr_pack_dive(g, target, work, effort);
    if (g->height > target) return answer;
    hr_pack_unglue(a->part, &l->blocks, l->order, g->offsets, target, a->trial);
    hr_pack_attempt_keep(a);
    return HR_PACK_FOUND;
}

/* Places one level: from the known placement, then from scratch, then by search; repeatedly, with
 * doubled work. */
static hr_pack_answer place_level(hr_pack_attempt *a, const int64_t *known, int64_t target,
                                  hr_pack_effort *effort)
{
    const int32_t patience = (int32_t)hr_min(1 + (a->turn + 1) / 2, PATIENCE_MOST);
    if (known) hr_pack_try(a, target, known, 0, HR_PACK_WAYS_BEST, 0, effort);
    if (a->height <= target) return HR_PACK_FOUND;
    level_blocks equals, ground; /* `equals`: fewer blocks, no proof; `ground`: more, with proof */
    open_level(&equals, a, known, false, effort);
    open_level(&ground, a, known, true, effort);
    for (int32_t k = 0; k <= patience; k++) {
        const int32_t puts = k ? 4 << 2 * hr_min(k, PUTS_GROW_FOR) : 0;
        const int64_t work = (int64_t)WORK_FIRST << k;
        if (place_glued(&equals, target, puts, work, effort) == HR_PACK_FOUND) return HR_PACK_FOUND;
        if (effort->work <= 0) return HR_PACK_GAVE_UP;
        if (k == 0 || ground.blocks.count > GROUND_MOST) continue;
        const hr_pack_answer answer = place_glued(&ground, target, puts, work, effort);
        if (answer == HR_PACK_FOUND || answer == HR_PACK_IMPOSSIBLE) return answer;
    }
    return HR_PACK_GAVE_UP;
}

/* Places a core, starting from `known` offsets, in/out by item of the part. */
static hr_pack_answer place_core(const hr_pack_part *part, const hr_pack_core *core, int64_t target,
                                 int32_t turn, bool first, int64_t *known, hr_pack_effort *effort)
{
    const int32_t count = core->part.count;
    int64_t *here = hr_pack_take(effort, count, sizeof *here);
    hr_pack_attempt a;
    hr_pack_attempt_open(&a, &core->part, turn, effort);
    for (int32_t k = 0; k < count; k++) here[k] = known[core->part.items[k].storage];
    const hr_pack_answer answer = place_level(&a, first ? NULL : here, target, effort);
    if (answer == HR_PACK_FOUND) hr_pack_core_expand(core, a.offsets, part->count, known);
    return answer;
}

/* One pass over all levels. */
static hr_pack_answer descend(hr_pack_attempt *a, int64_t target, int32_t turn,
                              hr_pack_effort *effort)
{
    const hr_pack_part *part = a->part;
    int64_t *known = hr_pack_take(effort, part->count, sizeof *known);
    int32_t placed = 0;
    for (int32_t level = LEVELS; level >= 0; level--) {
        const int64_t used = effort->scratch->used;
        hr_pack_core core;
        hr_pack_core_make(&core, part, least_load(target, level), effort);
        effort->work -= WORK_A_CORE * (int64_t)part->count;
        if (core.part.count > placed || level == 0) {
            const hr_pack_answer answer = place_core(part, &core, target, turn, placed == 0, known,
                                                     effort);
            if (answer != HR_PACK_FOUND) return answer;
            placed = core.part.count;
        }
        effort->scratch->used = used;
    }
    for (int32_t i = 0; i < part->count; i++) a->trial[i] = known[i];
    hr_pack_attempt_keep(a);
    return HR_PACK_FOUND;
}

hr_pack_answer hr_pack_levels(hr_pack_attempt *a, int64_t target, int64_t work, int32_t turn,
                              hr_pack_effort *effort)
{
    const int64_t used = effort->scratch->used, rest = effort->work - work;
    hr_pack_answer answer = HR_PACK_GAVE_UP;
    effort->work = work;
    if (a->part->count <= SMALL) answer = hr_pack_ask(a, target, hr_min(work, SMALL_WORK), effort);
    for (; answer == HR_PACK_GAVE_UP && effort->work > 0; turn++) {
        answer = descend(a, target, turn, effort);
        effort->scratch->used = used;
    }
    effort->work += effort->stopped ? 0 : rest;
    return answer;
}
