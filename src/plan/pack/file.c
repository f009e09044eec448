/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/file.c - packs an instance file: converts rows to storages and limits the time.
 *
 * Only this file reads a clock. Packing inside plans counts work instead, for reproducible results;
 * here the user gives a limit in seconds. */
#include "headroom/pack.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/options.h"
#include "plan/instance.h"
#include "plan/pack/pack.h"
#include "plan/pack/sort.h"

/* Upper bound of the items examined per second. It converts seconds to a work limit, of which the
 * search spends fractions. The clock stops slower searches. */
enum { ITEMS_A_SECOND = 150000000 };

/* State from reading an instance to writing it. */
typedef struct {
    hr_instance instance;
    hr_storage *storages; /* rows with bytes > 0, in file order; times as steps */
    int32_t count;
    void *memory;
    hr_region scratch;
    int64_t deadline_ns;
} job;

static bool is_late(void *context)
{
    const job *j = context;
    return hr_clock_ns() >= j->deadline_ns;
}

/* Converts times to steps by a shift to 0, which keeps the lengths of lifetimes. False if the range
 * is too large. */
static bool shift_times(job *j)
{
    int64_t first = INT64_MAX, last = INT64_MIN, span;
    for (int32_t i = 0; i < j->instance.count; i++) {
        first = hr_min(first, j->instance.rows[i].lower);
        last = hr_max(last, j->instance.rows[i].upper);
    }
    if (__builtin_sub_overflow(last, first, &span) || span >= INT32_MAX) return false;
    for (int32_t i = 0, k = 0; i < j->instance.count; i++) {
        const hr_instance_row *row = &j->instance.rows[i];
        if (row->bytes == 0) continue;
        j->storages[k++] = (hr_storage){ .bytes = row->bytes,
                                         .step_first = (int32_t)(row->lower - first),
                                         .step_last = (int32_t)(row->upper - first - 1) };
    }
    return true;
}

/* Otherwise replaces each time by its rank among the distinct times. */
static void rank_times(job *j)
{
    const int64_t used = j->scratch.used, count = j->count;
    hr_pack_key *times = hr_region_take(&j->scratch, 2 * count, sizeof *times);
    hr_pack_key *spare = hr_region_take(&j->scratch, 2 * count, sizeof *spare);
    for (int32_t i = 0, k = 0; i < j->instance.count; i++) {
        const hr_instance_row *row = &j->instance.rows[i];
        if (row->bytes == 0) continue;
        times[2 * k] = (hr_pack_key){ { row->lower }, 2 * k };
        times[2 * k + 1] = (hr_pack_key){ { row->upper }, 2 * k + 1 };
        j->storages[k++].bytes = row->bytes;
    }
    hr_pack_sort_keys(times, spare, 2 * (int32_t)count);
    int32_t step = 0;
    for (int64_t i = 0; i < 2 * count; i++) {
        hr_storage *storage = &j->storages[times[i].index / 2];
        if (i > 0 && times[i].word[0] != times[i - 1].word[0]) step++;
        if (times[i].index % 2) storage->step_last = step - 1;
        else storage->step_first = step;
    }
    j->scratch.used = used;
}

/* Allocates all memory of the packing from the heap. */
static hr_status take_memory(job *j, const char *path, hr_error *err)
{
    for (int32_t i = 0; i < j->instance.count; i++) j->count += j->instance.rows[i].bytes > 0;
    const int64_t table = hr_round_up((int64_t)sizeof *j->storages * j->count, 64);
    const int64_t scratch = hr_round_up(hr_pack_scratch_bytes(j->count), 64);
    j->memory = aligned_alloc(64, (size_t)(table + scratch));
    if (!j->memory)
        return hr_fail(err, HR_FAILURE, "%s: packing %" PRId32 " rows needs %" PRId64 " bytes",
                       path, j->instance.count, table + scratch);
    j->storages = j->memory;
    j->scratch = hr_region_over((uint8_t *)j->memory + table, scratch);
    if (!shift_times(j)) rank_times(j);
    return HR_OK;
}

/* Copies offsets from storages to rows. Returns the start time of the row that starts at the
 * peak. */
static int64_t take_over(job *j, int32_t peak_step)
{
    int64_t peak_time = 0;
    for (int32_t i = 0, k = 0; i < j->instance.count; i++) {
        hr_instance_row *row = &j->instance.rows[i];
        if (row->bytes == 0) continue;
        if (j->storages[k].step_first == peak_step) peak_time = row->lower;
        row->offset = j->storages[k++].offset;
    }
    return peak_time;
}

/* Returns the status, with an error sentence if the requested result was not reached. */
static hr_status judge(const hr_pack_request *request, const hr_pack_result *packed,
                       int64_t peak_time, hr_error *err)
{
    const int64_t capacity = request->capacity_bytes;
    if (capacity < 0 && packed->arena_bytes == packed->bound_bytes) return HR_OK;
    if (capacity >= 0 && packed->arena_bytes <= capacity) return HR_OK;
    if (capacity < 0)
        return hr_fail(err, HR_UNDECIDED,
                       "%s: %" PRId64 " bytes are the lowest arena found in %g seconds; what lies "
                       "between it and %" PRId64 " bytes is open; give it more --seconds",
                       request->file, packed->arena_bytes, request->seconds, packed->bound_bytes);
    if (capacity < packed->floor_bytes)
        return hr_fail(err, HR_NO_FIT,
                       "%s: no placement in %" PRId64 " bytes exists, %" PRId64
                       " are alive at time %" PRId64,
                       request->file, capacity, packed->floor_bytes, peak_time);
    if (capacity < packed->bound_bytes)
        return hr_fail(err, HR_NO_FIT,
                       "%s: no placement in %" PRId64 " bytes exists, the search tried all; "
                       "the best one found takes %" PRId64,
                       request->file, capacity, packed->arena_bytes);
    return hr_fail(err, HR_UNDECIDED,
                   "%s: no placement in %" PRId64 " bytes was found in %g seconds, and none is "
                   "excluded; the best one found takes %" PRId64 "; give it more --seconds",
                   request->file, capacity, request->seconds, packed->arena_bytes);
}

static hr_status run(job *j, const hr_pack_request *request, hr_pack_report *report, hr_error *err)
{
    static const char *const proofs[] = { [HR_PACK_AT_FLOOR] = "at the floor",
                                          [HR_PACK_PROVEN] = "proven lowest",
                                          [HR_PACK_OPEN] = "open" };
    const int64_t start_ns = hr_clock_ns();
    j->deadline_ns = start_ns + (int64_t)(request->seconds * 1e9);
    hr_status status = request->out ? hr_instance_check(request->out, err) : HR_OK;
    if (status == HR_OK) status = hr_instance_read(request->file, &j->instance, err);
    if (status == HR_OK) status = take_memory(j, request->file, err);
    if (status != HR_OK) return status;
    const int64_t capacity = request->capacity_bytes;
    const hr_pack_limits limits = { .capacity_bytes = capacity < 0 ? 0 : hr_max(capacity, 1),
                                    .work = (int64_t)(request->seconds * ITEMS_A_SECOND),
                                    .stop = is_late,
                                    .context = j };
    hr_pack_result packed;
    status = hr_pack_within(j->storages, j->count, &limits, &j->scratch, &packed, err);
    if (status != HR_OK) return status;
    const int64_t peak_time = take_over(j, packed.peak_step);
    const hr_status answer = judge(request, &packed, peak_time, err);
    const bool wanted = capacity < 0 || answer == HR_OK;
    if (request->out && wanted) {
        hr_error unwritten;
        status = hr_instance_write(request->out, &j->instance, &unwritten);
        if (status != HR_OK) {
            if (err) *err = unwritten;
            return status;
        }
    }
    *report = (hr_pack_report){ .rows = j->instance.count,
                                .arena_bytes = packed.arena_bytes,
                                .floor_bytes = packed.floor_bytes,
                                .bound_bytes = packed.bound_bytes,
                                .peak_time = peak_time,
                                .nodes = packed.nodes,
                                .seconds = (double)(hr_clock_ns() - start_ns) / 1e9,
                                .proof = proofs[packed.proof] };
    return answer;
}

hr_status hr_pack_file(const hr_pack_request *given, hr_pack_report *report, hr_error *err)
{
    job j = { .count = 0 };
    hr_pack_request request;
    hr_status status = hr_options_take(&request, sizeof request, given, err);
    if (status == HR_OK) status = run(&j, &request, report, err);
    free(j.memory);
    hr_instance_close(&j.instance);
    return status;
}
