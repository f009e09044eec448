/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/core.c - reduces a part to a smaller one.
 *
 * Items whose sections all have far fewer live bytes than the target can be placed later. The
 * remaining items are the core; if the core does not fit, the part does not. */
#include "plan/pack/part.h"

#include "base/assert.h"
#include "base/checked.h"

enum { NOBODY = -1, ROUNDS_MOST = 8 };

/* A section of the core under construction. Items that live in this section only are its privates;
 * all others continue into a neighboring section. */
typedef struct {
    int64_t private_bytes;
    int32_t privates; /* head of a list */
    int32_t largest;  /* largest private */
    int32_t births, deaths;
    bool gone;
} section;

typedef struct {
    hr_pack_core *core;
    section *sections;
    int32_t *next;  /* [items] next private in its list */
    int32_t *stack; /* [sections] those kept so far */
    int32_t section_count, depth;
} folding;

/* Numbers the kept sections: `place` out [sections + 1], the number of kept sections before
 * each. */
static int32_t place_sections(const folding *f, int32_t *place)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < f->section_count; i++) {
        place[i] = kept;
        kept += !f->sections[i].gone;
    }
    place[f->section_count] = kept;
    return kept;
}

/* Renumbers lifetimes to kept sections; drops items that live in none of them. */
static void renumber(hr_pack_part *part, const int32_t *place)
{
    int32_t kept = 0;
    for (int32_t k = 0; k < part->count; k++) {
        hr_pack_item item = part->items[k];
        item.first = place[item.first];
        item.last = place[item.last + 1] - 1;
        if (item.first <= item.last) part->items[kept++] = item;
    }
    part->count = kept;
}

static void list_sections(folding *f)
{
    const hr_pack_part *part = &f->core->part;
    for (int32_t i = 0; i < f->section_count; i++)
        f->sections[i] = (section){ .privates = NOBODY, .largest = NOBODY };
    for (int32_t k = 0; k < part->count; k++) {
        const hr_pack_item *item = &part->items[k];
        section *s = &f->sections[item->first];
        if (item->first < item->last) {
            s->births++;
            f->sections[item->last].deaths++;
            continue;
        }
        f->next[k] = s->privates;
        s->privates = k;
        s->private_bytes += item->bytes;
        if (s->largest == NOBODY || item->bytes > part->items[s->largest].bytes) s->largest = k;
    }
}

/* Returns whether the privates of `s` fit in the place of one private of `other`. */
static bool holds(const hr_pack_part *part, const section *other, const section *s)
{
    const int64_t room = other->largest == NOBODY ? 0 : part->items[other->largest].bytes;
    return s->private_bytes <= room;
}

/* Folds a section away: its privates go into the place of the largest private of `into`. */
static void fold(folding *f, int32_t from, int32_t into)
{
    hr_pack_part *part = &f->core->part;
    section *s = &f->sections[from];
    int64_t above = 0;
    for (int32_t k = s->privates; k != NOBODY; k = f->next[k]) {
        const int32_t host = f->sections[into].largest;
        f->core->folds[f->core->fold_count++] = (hr_pack_fold){ part->items[k].storage,
                                                                part->items[host].storage, above };
        above += part->items[k].bytes;
    }
    s->gone = true;
}

/* Folds sections into neighbors. A section is folded if all its items but the privates are in the
 * neighbor, and the privates fit in the place of one of the neighbor's. Returns whether any
 * was. */
static bool fold_sections(folding *f)
{
    const hr_pack_part *part = &f->core->part;
    bool any = false;
    f->depth = 0;
    for (int32_t j = 0; j < f->section_count; j++) {
        section *b = &f->sections[j];
        while (f->depth > 0 && !b->gone) {
            const int32_t i = f->stack[f->depth - 1];
            section *a = &f->sections[i];
            if (a->deaths == 0 && holds(part, b, a)) {
                fold(f, i, j);
                b->births += a->births;
                f->depth--;
            } else if (b->births == 0 && holds(part, a, b)) {
                fold(f, j, i);
                a->deaths += b->deaths;
            } else break;
            any = true;
        }
        if (!b->gone) f->stack[f->depth++] = j;
    }
    return any;
}

/* The section with the most live bytes. */
static int32_t find_peak(const hr_pack_part *part, hr_pack_effort *effort)
{
    const int64_t used = effort->scratch->used;
    int64_t *change = hr_pack_take(effort, part->last + 2, sizeof *change);
    for (int32_t k = 0; k < part->count; k++) {
        change[part->items[k].first] += part->items[k].bytes;
        change[part->items[k].last + 1] -= part->items[k].bytes;
    }
    int64_t live = 0, most = 0;
    int32_t peak = 0;
    for (int32_t i = 0; i <= part->last; i++) {
        live += change[i];
        if (live > most) peak = i;
        most = hr_max(most, live);
    }
    effort->scratch->used = used;
    return peak;
}

void hr_pack_core_make(hr_pack_core *core, const hr_pack_part *part, int64_t least,
                       hr_pack_effort *effort)
{
    *core = (hr_pack_core){ .part = { .unit = part->unit } };
    core->part.items = hr_pack_take(effort, part->count, sizeof *core->part.items);
    core->folds = hr_pack_take(effort, part->count, sizeof *core->folds);
    const int64_t used = effort->scratch->used;
    folding f = { .core = core, .section_count = part->last - part->first + 1 };
    f.sections = hr_pack_take(effort, f.section_count, sizeof *f.sections);
    f.next = hr_pack_take(effort, part->count, sizeof *f.next);
    f.stack = hr_pack_take(effort, f.section_count + 1, sizeof *f.stack);
    for (int32_t k = 0; k < part->count; k++) {
        hr_pack_item item = part->items[k];
        if (item.load < least) continue;
        item.first -= part->first;
        item.last -= part->first;
        item.storage = k;
        core->part.items[core->part.count++] = item;
    }
    bool more = true;
    for (int32_t round = 0; round < ROUNDS_MOST && more; round++) {
        f.section_count = place_sections(&f, f.stack);
        renumber(&core->part, f.stack);
        list_sections(&f);
        more = fold_sections(&f);
    }
    core->part.last = place_sections(&f, f.stack) - 1;
    renumber(&core->part, f.stack);
    effort->scratch->used = used;
    core->part.peak = find_peak(&core->part, effort);
}

void hr_pack_core_expand(const hr_pack_core *core, const int64_t *offsets, int32_t count,
                         int64_t *whole)
{
    for (int32_t i = 0; i < count; i++) whole[i] = -1;
    for (int32_t k = 0; k < core->part.count; k++) whole[core->part.items[k].storage] = offsets[k];
    for (int32_t k = core->fold_count - 1; k >= 0; k--) {
        const hr_pack_fold *fold = &core->folds[k];
        whole[fold->item] = whole[fold->host] + fold->above;
    }
}

void hr_pack_glue(const hr_pack_part *part, hr_pack_part *glued, int32_t *order, bool ground,
                  hr_pack_effort *effort)
{
    hr_pack_sort(part, HR_PACK_BY_BIRTH, effort, order);
    *glued = *part;
    glued->items = hr_pack_take(effort, part->count, sizeof *glued->items);
    glued->count = 0;
    for (int32_t k = 0; k < part->count; k++) {
        const hr_pack_item *item = &part->items[order[k]];
        hr_pack_item *block = glued->count ? &glued->items[glued->count - 1] : 0;
        const bool lone = ground && (item->first > part->first || item->last < part->last);
        if (!block || lone || block->first != item->first || block->last != item->last) {
            glued->items[glued->count] = *item;
            glued->items[glued->count++].storage = k;
            continue;
        }
        block->bytes += item->bytes;
        block->steps = hr_max(block->steps, item->steps);
    }
}

void hr_pack_unglue(const hr_pack_part *part, const hr_pack_part *glued, const int32_t *order,
                    const int64_t *blocks, int64_t target, int64_t *offsets)
{
    for (int32_t b = 0; b < glued->count; b++) {
        const hr_pack_item *block = &glued->items[b];
        const int32_t end = b + 1 < glued->count ? glued->items[b + 1].storage : part->count;
        const bool high = blocks[b] + block->bytes / 2 > target / 2;
        int64_t at = blocks[b], top = at + block->bytes;
        for (int32_t k = block->storage; k < end; k++) {
            const int64_t bytes = part->items[order[k]].bytes;
            offsets[order[k]] = high ? top - bytes : at;
            top -= bytes;
            at += bytes;
        }
    }
}

int64_t hr_pack_core_bytes(int32_t count)
{
    const int64_t n = count, tables = 8 * 64;
    return tables + n * (int64_t)(2 * sizeof(hr_pack_item) + sizeof(hr_pack_fold) +
                                  sizeof(section) + 4 * sizeof(int32_t) + sizeof(int64_t));
}
