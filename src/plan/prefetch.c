/* SPDX-License-Identifier: Apache-2.0 */
/* plan/prefetch.c - one pass over the pieces, against the live bytes without them. */
#include "plan/prefetch.h"

#include "base/checked.h"
#include "plan/lifetimes.h"

hr_slots hr_slots_of(const hr_program *program)
{
    hr_slots slots = { 0, 0 };
    for (hr_piece piece = hr_piece_first(program); piece.step != HR_NONE;
         piece = hr_piece_next(program, piece)) {
        slots.count += slots.count < HR_SLOTS;
        slots.bytes = hr_max(slots.bytes, hr_piece_bytes(program, piece));
    }
    return slots;
}

static void raise_all(int64_t *alive, int32_t first, int32_t last, int64_t bytes)
{
    for (int32_t s = first; s <= last; s++) alive[s] += bytes;
}

static bool has_room(const int64_t *alive, int32_t first, int32_t last, int64_t bytes,
                     int64_t floor_bytes)
{
    for (int32_t s = first; s <= last; s++)
        if (alive[s] + bytes > floor_bytes) return false;
    return true;
}

/* Whether a step may be inserted before this one and run once per training step: outside of all
 * loops in a section. */
static bool is_between_loops(const hr_program *program, int32_t s)
{
    int32_t loop = program->steps[s].loop;
    while (program->loops[loop].step_first == s && program->loops[loop].parent > 0)
        loop = program->loops[loop].parent;
    return program->loops[loop].parent == 0;
}

/* The earliest step, from `first` on, from which `bytes` can be live to step `begin`; `begin` if
 * there is none before that one. */
static int32_t earliest(const hr_program *program, const int64_t *alive, int32_t first,
                        int32_t begin, int64_t bytes, int64_t floor_bytes)
{
    int32_t found = begin;
    for (int32_t s = begin - 1; s >= first && alive[s] + bytes <= floor_bytes; s--)
        if (is_between_loops(program, s)) found = s;
    return found;
}

static void choose(const hr_program *program, int64_t *alive, hr_prefetch *prefetch)
{
    const int32_t section = hr_program_loop(program, HR_LOOP_STEP);
    const hr_piece start = hr_piece_first(program);
    int32_t last = start.step, first = program->loops[section].step_first;
    const hr_slots slots = hr_slots_of(program);
    int64_t floor_bytes = 0;
    for (int32_t s = start.step; s < program->step_count; s++)
        if (hr_piece_has(program, s)) last = s;
    raise_all(alive, start.step, last, hr_window_bytes(program, slots.count * slots.bytes));
    for (int32_t s = 0; s < program->step_count; s++) floor_bytes = hr_max(floor_bytes, alive[s]);
    floor_bytes -= slots.bytes; /* a slot of room makes packing easy */
    hr_piece piece = start;
    for (int32_t i = 0; i < HR_PREFETCH_MOST && piece.step != HR_NONE; i++) {
        const hr_piece next = hr_piece_next(program, piece);
        const int64_t bytes = hr_window_bytes(program, hr_piece_bytes(program, piece));
        /* Its window is live until it is spilled, beside the next piece. */
        const int32_t until = next.step == HR_NONE ? last : next.step;
        if (!has_room(alive, start.step, until, bytes, floor_bytes)) return;
        first = earliest(program, alive, first, start.step, bytes, floor_bytes);
        if (first == start.step) return;
        raise_all(alive, first, until, bytes);
        prefetch->before[prefetch->count++] = first;
        piece = next;
    }
}

hr_status hr_prefetch_choose(const hr_program *program, int32_t threads, hr_region *region,
                             hr_prefetch *prefetch, hr_error *err)
{
    const int64_t kept = region->used;
    hr_plan plan = { .process = { .threads = threads, .rung = "" } };
    prefetch->count = 0;
    if (hr_piece_first(program).step == HR_NONE ||
        hr_program_loop(program, HR_LOOP_STEP) == HR_NONE)
        return HR_OK;
    const hr_status status = hr_lifetimes(program, region, &plan, err);
    if (status != HR_OK) return status;
    int64_t *alive = hr_region_take_raw(region, program->step_count, sizeof *alive);
    if (!alive)
        return hr_fail(err, HR_FAILURE, "out of memory for the prefetch of %d operations",
                       program->step_count);
    hr_lifetimes_alive(program, &plan, alive);
    choose(program, alive, prefetch);
    region->used = kept;
    return HR_OK;
}
