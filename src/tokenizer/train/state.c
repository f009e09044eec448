/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/state.c - the file format: a head, the scalar fields of the engine, the used part
 * of its arrays, and a checksum. A file is only valid for the same build and machine, because
 * numbers are stored as in memory. */
#include "tokenizer/train/state.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/path.h"
#include "base/random.h"
#include "headroom/config.h"

static const char file_name[] = "training.state";
static const char magic[8] = "HRMERGE1";

typedef struct {
    char magic[8];
    int64_t bytes; /* size of this head, to detect other versions */
    hr_state_head head;
} file_head;

enum { FIELDS = offsetof(hr_engine, rules) };

typedef struct {
    void *memory;
    int64_t bytes;
} stretch;

enum { STRETCHES = 11 };

/* Lists the memory of the engine to save, with the lengths that its counts give. */
static void stretches_of(const hr_engine *e, stretch all[STRETCHES])
{
    const hr_vocabulary *v = &e->vocabulary;
    const stretch list[STRETCHES] = {
        { v->tokens, v->count * (int64_t)sizeof *v->tokens },
        { v->slots, INT64_C(4) << v->slot_bits },
        { v->leaves, v->leaves_bytes },
        { e->slots, 4 * e->slot_count },
        { e->owners, e->owners ? 4 * e->slot_count : 0 },
        { e->counts, 8 * e->sizes.words },
        { e->positions, 4 * e->position_count },
        { e->pairs, e->pair_count * (int64_t)sizeof *e->pairs },
        { e->heap, e->heap_count * (int64_t)sizeof *e->heap },
        { e->index, INT64_C(4) << e->index_bits },
        { e->merges, e->merge_count * (int64_t)sizeof *e->merges },
    };
    memcpy(all, list, sizeof list);
}

static uint64_t sum_of(uint64_t sum, const void *memory, int64_t bytes)
{
    const uint8_t *text = memory;
    uint64_t lanes[4] = { sum, ~sum, sum + 1, (uint64_t)bytes }, part;
    int64_t at = 0;
    for (; at + 32 <= bytes; at += 32)
        for (int32_t lane = 0; lane < 4; lane++) {
            memcpy(&part, text + at + 8 * lane, 8);
            lanes[lane] = (lanes[lane] ^ part) * UINT64_C(0x9e3779b97f4a7c15);
            lanes[lane] ^= lanes[lane] >> 32;
        }
    for (; at < bytes; at++) lanes[0] = (lanes[0] ^ text[at]) * UINT64_C(0x9e3779b97f4a7c15);
    for (int32_t lane = 0; lane < 4; lane++) sum = hr_random_mix(sum ^ lanes[lane]);
    return sum;
}

static hr_status damaged(const char *path, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, "%s: damaged or of another version; remove it to start over",
                   path);
}

hr_status hr_state_read_head(const char *folder, hr_state_head *head, bool *found, hr_error *err)
{
    char path[HR_PATH_BYTES];
    file_head there;
    int file;
    int64_t bytes;
    *found = false;
    hr_status status = hr_path_join(folder, file_name, path, sizeof path, err);
    if (status != HR_OK || !hr_file_exists(path)) return status;
    status = hr_file_open(path, &file, &bytes, err);
    if (status != HR_OK) return status;
    *found = true;
    if (bytes < (int64_t)sizeof there) status = damaged(path, err);
    else status = hr_file_read(file, path, 0, &there, sizeof there, err);
    hr_file_close(&file);
    if (status != HR_OK) return status;
    if (memcmp(there.magic, magic, sizeof magic) != 0 || there.bytes != (int64_t)sizeof there)
        return damaged(path, err);
    *head = there.head;
    return HR_OK;
}

/* Appends memory in pieces, because one write has a limit. */
static hr_status append(hr_file_out *out, const void *memory, int64_t bytes, uint64_t *sum,
                        hr_error *err)
{
    *sum = sum_of(*sum, memory, bytes);
    return hr_file_append(out, memory, bytes, err);
}

hr_status hr_state_save(const char *folder, const hr_state_head *head, const hr_engine *e,
                        hr_error *err)
{
    file_head first = { .bytes = sizeof first, .head = *head };
    hr_file_out out;
    uint64_t sum = 0;
    memcpy(first.magic, magic, sizeof magic);
    hr_status status = hr_file_begin(&out, folder, file_name, err);
    if (status != HR_OK) return status;
    status = append(&out, &first, sizeof first, &sum, err);
    if (e) {
        stretch all[STRETCHES];
        const int64_t known[3] = { e->vocabulary.count, e->vocabulary.leaves_bytes, 0 };
        stretches_of(e, all);
        if (status == HR_OK) status = append(&out, known, sizeof known, &sum, err);
        if (status == HR_OK)
            status = append(&out, (const char *)e + FIELDS, (int64_t)sizeof *e - FIELDS, &sum, err);
        for (int32_t i = 0; i < STRETCHES && status == HR_OK; i++)
            status = append(&out, all[i].memory, all[i].bytes, &sum, err);
    }
    if (status == HR_OK) status = hr_file_append(&out, &sum, sizeof sum, err);
    if (status == HR_OK) status = hr_file_commit(&out, err);
    hr_file_abort(&out);
    return status;
}

typedef struct {
    int file;
    const char *path;
    int64_t at, bytes;
    uint64_t sum;
    hr_status status;
    hr_error *err;
} reader;

static void take(reader *r, void *memory, int64_t bytes)
{
    if (r->status == HR_OK && bytes > r->bytes - r->at) r->status = damaged(r->path, r->err);
    if (r->status == HR_OK && bytes > 0)
        r->status = hr_file_read(r->file, r->path, r->at, memory, bytes, r->err);
    if (r->status != HR_OK) return;
    r->sum = sum_of(r->sum, memory, bytes);
    r->at += bytes;
}

/* Whether the counts in a file are within the capacities. */
static bool fits(const hr_engine *e)
{
    const hr_engine_sizes *s = &e->sizes;
    return e->slot_count >= 0 && e->slot_count <= s->slots && e->position_count >= 0 &&
           e->position_count <= s->positions && e->pair_count >= 0 && e->pair_count <= s->pairs &&
           e->heap_count >= 0 && e->heap_count <= s->pairs && e->merge_count >= 0 &&
           e->merge_count <= s->merges && (int64_t)e->vocabulary.count <= s->tokens &&
           e->vocabulary.leaves_bytes >= 0 && e->vocabulary.leaves_bytes <= s->leaves;
}

static void read_engine(reader *r, hr_engine *e)
{
    file_head first;
    int64_t known[3] = { 0 };
    stretch all[STRETCHES];
    uint64_t sum;
    take(r, &first, sizeof first);
    take(r, known, sizeof known);
    take(r, (char *)e + FIELDS, (int64_t)sizeof *e - FIELDS);
    e->vocabulary.count = (uint32_t)known[0];
    e->vocabulary.leaves_bytes = known[1];
    if (r->status == HR_OK && !fits(e)) r->status = damaged(r->path, r->err);
    if (r->status != HR_OK) return;
    stretches_of(e, all);
    for (int32_t i = 0; i < STRETCHES; i++) take(r, all[i].memory, all[i].bytes);
    const uint64_t expected = r->sum;
    take(r, &sum, sizeof sum);
    if (r->status == HR_OK && sum != expected) r->status = damaged(r->path, r->err);
}

hr_status hr_state_load(const char *folder, const hr_state_head *head, hr_engine *e, hr_error *err)
{
    char path[HR_PATH_BYTES];
    reader r = { .file = -1, .path = path, .err = err };
    (void)head;
    hr_status status = hr_path_join(folder, file_name, path, sizeof path, err);
    if (status == HR_OK) status = hr_file_open(path, &r.file, &r.bytes, err);
    if (status != HR_OK) return status;
    read_engine(&r, e);
    hr_file_close(&r.file);
    return r.status;
}

void hr_state_remove(const char *folder)
{
    char path[HR_PATH_BYTES];
    hr_error ignored;
    if (hr_path_join(folder, file_name, path, sizeof path, &ignored) == HR_OK) unlink(path);
}
