/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_set.c - compares what outlives the steps in the plans of the stages of one run: a
 * stage finds every byte of it where the stage before has left it. */
#include <stdlib.h>
#include <string.h>

#include "headroom/verify.h"
#include "judge/judged.h"

/* The buffers of a plan that live through the run, sorted by name. */
typedef struct {
    hr_judged_plan plan;
    const hr_judged_buffer **kept;
    int32_t count;
} kept_list;

static int by_name(const void *a, const void *b)
{
    const hr_judged_buffer *const *one = a, *const *two = b;
    return strcmp((*one)->name, (*two)->name);
}

static hr_status open_kept(const char *path, kept_list *list, hr_error *err)
{
    const hr_status status = hr_verify_open(path, &list->plan, err);
    if (status != HR_OK) return status;
    const hr_judged_plan *plan = &list->plan;
    list->kept = calloc((size_t)plan->buffer_count + 1, sizeof *list->kept);
    if (!list->kept) return hr_fail(err, HR_FAILURE, "%s: out of memory", path);
    for (int32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].home < 0 && plan->buffers[b].view_of < 0)
            list->kept[list->count++] = &plan->buffers[b];
    qsort(list->kept, (size_t)list->count, sizeof *list->kept, by_name);
    return HR_OK;
}

static void close_kept(kept_list *list)
{
    free(list->kept);
    hr_verify_close(&list->plan);
}

static hr_status lacks(const char *path, const char *other, const hr_judged_buffer *buffer,
                       hr_error *err)
{
    return hr_fail(err, HR_BROKEN, "%.300s keeps %s through the run, and %.300s does not have it",
                   path, buffer->name, other);
}

static hr_status compare_one(const char *path, const hr_judged_buffer *mine, const char *other,
                             const hr_judged_buffer *theirs, hr_error *err)
{
    if (mine->offset != theirs->offset || mine->space != theirs->space)
        return hr_fail(err, HR_BROKEN, "%s is at byte %lld in %.300s, and at byte %lld in %.300s",
                       mine->name, (long long)mine->offset, path, (long long)theirs->offset, other);
    if (mine->bytes == theirs->bytes && mine->shape_bytes == theirs->shape_bytes &&
        mine->element_bytes == theirs->element_bytes && mine->role == theirs->role)
        return HR_OK;
    return hr_fail(err, HR_BROKEN,
                   "%s has %lld bytes in %.300s, and %lld of the same kind in %.300s", mine->name,
                   (long long)mine->bytes, path, (long long)theirs->bytes, other);
}

/* Both lists are sorted: the first difference ends the walk. */
static hr_status compare(const char *path, const kept_list *mine, const char *other,
                         const kept_list *theirs, hr_error *err)
{
    for (int32_t i = 0; i < mine->count || i < theirs->count; i++) {
        if (i == theirs->count) return lacks(path, other, mine->kept[i], err);
        if (i == mine->count) return lacks(other, path, theirs->kept[i], err);
        const int order = strcmp(mine->kept[i]->name, theirs->kept[i]->name);
        if (order < 0) return lacks(path, other, mine->kept[i], err);
        if (order > 0) return lacks(other, path, theirs->kept[i], err);
        const hr_status status = compare_one(path, mine->kept[i], other, theirs->kept[i], err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

hr_status hr_verify_set(const char *const *paths, int32_t count, hr_verify_set_report *report,
                        hr_error *err)
{
    hr_verify_report one;
    hr_error own, why;
    kept_list first = { .count = 0 };
    hr_verify_set_report set = { .plan_count = count };
    if (!err) err = &own;
    hr_status status = open_kept(paths[0], &first, err);
    for (int32_t i = 0; i < count && status == HR_OK; i++) {
        kept_list next = { .count = 0 };
        status = hr_verify_file(paths[i], &one, &why);
        if (status != HR_OK) {
            (void)hr_fail(err, status, "%.300s: %.600s", paths[i], why.message);
            break;
        }
        if (one.arena_bytes > set.arena_bytes) set.arena_bytes = one.arena_bytes;
        if (one.process_bytes > set.process_bytes) set.process_bytes = one.process_bytes;
        status = open_kept(paths[i], &next, err);
        if (status == HR_OK) status = compare(paths[0], &first, paths[i], &next, err);
        close_kept(&next);
    }
    for (int32_t i = 0; i < first.count; i++) set.kept_bytes += first.kept[i]->bytes;
    set.kept_count = first.count;
    close_kept(&first);
    if (status == HR_OK) *report = set;
    return status;
}
