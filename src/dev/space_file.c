/* SPDX-License-Identifier: Apache-2.0 */
/* dev/space_file.c - a ring of transfers, cut into pieces. Each thread takes the first piece that
 * may start, moves it without the lock, and takes the next. */
#include "dev/space_file.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/path.h"

int64_t hr_space_file_bytes(const hr_space_file_options *options)
{
    return hr_block_file_bytes(&options->file);
}

int64_t hr_space_file_stack_bytes(const hr_space_file_options *options)
{
    HR_ASSERT(options->threads >= 1 && options->threads <= HR_SPACE_THREADS_MOST);
    return (int64_t)options->threads * HR_STACK_BYTES;
}

/* ---- the ring */

static hr_space_job *job_of(hr_space_file *file, int64_t ticket)
{
    return &file->jobs[ticket % HR_SPACE_TRANSFERS_MOST];
}

static bool is_complete(hr_space_file *file, int64_t ticket)
{
    if (ticket < file->finished) return true;
    const hr_space_job *job = job_of(file, ticket);
    return job->done == job->transfer.bytes;
}

static bool overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static bool conflict(const hr_space_transfer *a, const hr_space_transfer *b)
{
    if (a->direction == HR_SPACE_SPILL && b->direction == HR_SPACE_SPILL)
        return overlap(a->offset, a->bytes, b->offset, b->bytes);
    if (a->direction == HR_SPACE_FETCH && b->direction == HR_SPACE_FETCH)
        return overlap((int64_t)a->memory, a->bytes, (int64_t)b->memory, b->bytes);
    return overlap(a->offset, a->bytes, b->offset, b->bytes) ||
           overlap((int64_t)a->memory, a->bytes, (int64_t)b->memory, b->bytes);
}

static bool may_start(hr_space_file *file, int64_t ticket)
{
    const hr_space_job *job = job_of(file, ticket);
    if (job->taken == job->transfer.bytes) return false;
    for (int64_t t = file->finished; t < ticket; t++)
        if (!is_complete(file, t) && conflict(&job_of(file, t)->transfer, &job->transfer))
            return false;
    return true;
}

/* Returns the job of the first piece that may start; null: none. */
static hr_space_job *find_job(hr_space_file *file)
{
    if (file->failure.status != HR_OK) return NULL;
    for (int64_t t = file->finished; t < file->begun; t++)
        if (may_start(file, t)) return job_of(file, t);
    return NULL;
}

/* ---- the threads */

static hr_status move_piece(hr_space_file *file, const hr_space_transfer *piece, hr_error *err)
{
    return piece->direction == HR_SPACE_FETCH
               ? hr_block_file_read(&file->blocks, piece->memory, piece->offset, piece->bytes, err)
               : hr_block_file_write(&file->blocks, piece->memory, piece->offset, piece->bytes,
                                     err);
}

static void count_begin(hr_space_file *file)
{
    if (file->moving++ == 0) file->busy_from_ns = hr_clock_ns();
}

static void count_end(hr_space_file *file, const hr_space_transfer *piece)
{
    const bool reads = piece->direction == HR_SPACE_FETCH;
    *(reads ? &file->moved.read_bytes : &file->moved.written_bytes) += piece->bytes;
    if (--file->moving == 0) file->moved.busy_ns += hr_clock_ns() - file->busy_from_ns;
}

/* Takes a piece of a job and moves it. The mutex is locked before and after, but not meanwhile. */
static void advance(hr_space_file *file, hr_space_job *job)
{
    hr_error err = { .status = HR_OK };
    hr_space_transfer piece = job->transfer;
    piece.memory += job->taken;
    piece.offset += job->taken;
    piece.bytes = hr_min(HR_SPACE_PIECE_BYTES, job->transfer.bytes - job->taken);
    job->taken += piece.bytes;
    job->moving++;
    count_begin(file);
    pthread_mutex_unlock(&file->mutex);
    const hr_status status = move_piece(file, &piece, &err);
    pthread_mutex_lock(&file->mutex);
    job->moving--;
    count_end(file, &piece);
    if (status == HR_OK) job->done += piece.bytes;
    else if (file->failure.status == HR_OK) file->failure = err;
    if (file->failure.status == HR_OK && job->done < job->transfer.bytes) return;
    while (file->finished < file->begun && is_complete(file, file->finished)) file->finished++;
    pthread_cond_broadcast(&file->progress);
    pthread_cond_broadcast(&file->ready); /* one that waited for this transfer may start */
}

static void *work(void *argument)
{
    hr_space_file *file = argument;
    pthread_mutex_lock(&file->mutex);
    while (!file->closing) {
        hr_space_job *job = find_job(file);
        if (job) advance(file, job);
        else pthread_cond_wait(&file->ready, &file->mutex);
    }
    pthread_mutex_unlock(&file->mutex);
    return NULL;
}

hr_status hr_space_file_open(hr_space_file *file, const hr_space_file_options *options,
                             hr_region *region, void *stacks, hr_error *err)
{
    HR_ASSERT(options->threads >= 1 && options->threads <= HR_SPACE_THREADS_MOST);
    memset(file, 0, sizeof *file);
    hr_status status = hr_block_file_open(&file->blocks, &options->file, region, err);
    if (status != HR_OK) return status;
    pthread_mutex_init(&file->mutex, NULL);
    pthread_cond_init(&file->ready, NULL);
    pthread_cond_init(&file->progress, NULL);
    file->open = true;
    for (; file->threads < options->threads; file->threads++) {
        uint8_t *stack = (uint8_t *)stacks + (int64_t)file->threads * HR_STACK_BYTES;
        const int code = hr_thread_start(&file->handles[file->threads], stack, work, file);
        if (!code) continue;
        status = hr_fail(err, HR_FAILURE, "cannot create the threads that read and write %s: %s",
                         file->blocks.path, hr_reason(code));
        hr_space_file_close(file);
        return status;
    }
    return HR_OK;
}

void hr_space_file_close(hr_space_file *file)
{
    if (!file->open) return;
    pthread_mutex_lock(&file->mutex);
    file->closing = true;
    pthread_cond_broadcast(&file->ready);
    pthread_mutex_unlock(&file->mutex);
    for (int32_t i = 0; i < file->threads; i++) hr_thread_join(&file->handles[i]);
    pthread_cond_destroy(&file->progress);
    pthread_cond_destroy(&file->ready);
    pthread_mutex_destroy(&file->mutex);
    hr_block_file_close(&file->blocks);
    file->open = false;
}

/* ---- the caller */

int64_t hr_space_file_begin(hr_space_file *file, hr_space_transfer transfer)
{
    HR_ASSERT(file->open && transfer.memory);
    hr_block_file_check(&file->blocks, transfer.memory, transfer.offset, transfer.bytes);
    pthread_mutex_lock(&file->mutex);
    while (file->begun - file->finished == HR_SPACE_TRANSFERS_MOST && file->failure.status == HR_OK)
        pthread_cond_wait(&file->progress, &file->mutex);
    /* After a failure the ring no longer advances. The ticket is only to be waited for. */
    const int64_t ticket = file->begun;
    if (file->failure.status == HR_OK) {
        *job_of(file, ticket) = (hr_space_job){ .transfer = transfer };
        file->begun++;
        pthread_cond_broadcast(&file->ready);
    }
    pthread_mutex_unlock(&file->mutex);
    return ticket;
}

hr_status hr_space_file_wait(hr_space_file *file, int64_t ticket, hr_error *err)
{
    HR_ASSERT(file->open && ticket >= 0);
    pthread_mutex_lock(&file->mutex);
    HR_ASSERT(ticket < file->begun || file->failure.status != HR_OK);
    while (file->failure.status == HR_OK && !is_complete(file, ticket))
        pthread_cond_wait(&file->progress, &file->mutex);
    const bool complete = ticket < file->begun && is_complete(file, ticket);
    if (!complete && err) *err = file->failure;
    const hr_status status = complete ? HR_OK : file->failure.status;
    pthread_mutex_unlock(&file->mutex);
    return status;
}

/* Whether a thread moves a piece of an unfinished transfer, or will. */
static bool is_moving(hr_space_file *file)
{
    for (int64_t t = file->finished; t < file->begun; t++) {
        const hr_space_job *job = job_of(file, t);
        if (!is_complete(file, t) && (file->failure.status == HR_OK || job->moving > 0))
            return true;
    }
    return false;
}

void hr_space_file_drain(hr_space_file *file)
{
    HR_ASSERT(file->open);
    pthread_mutex_lock(&file->mutex);
    while (is_moving(file)) pthread_cond_wait(&file->progress, &file->mutex);
    pthread_mutex_unlock(&file->mutex);
}

bool hr_space_file_is_done(hr_space_file *file, int64_t ticket)
{
    HR_ASSERT(file->open && ticket >= 0);
    pthread_mutex_lock(&file->mutex);
    HR_ASSERT(ticket < file->begun || file->failure.status != HR_OK);
    const bool done = file->failure.status != HR_OK || is_complete(file, ticket);
    pthread_mutex_unlock(&file->mutex);
    return done;
}

hr_space_moved hr_space_file_moved(hr_space_file *file)
{
    if (!file->open) return (hr_space_moved){ 0 };
    pthread_mutex_lock(&file->mutex);
    hr_space_moved moved = file->moved;
    if (file->moving) moved.busy_ns += hr_clock_ns() - file->busy_from_ns;
    pthread_mutex_unlock(&file->mutex);
    return moved;
}

hr_status hr_space_file_failure(hr_space_file *file, hr_error *failure)
{
    if (file->open) pthread_mutex_lock(&file->mutex);
    const hr_error first = file->failure;
    if (file->open) pthread_mutex_unlock(&file->mutex);
    if (first.status != HR_OK && failure) *failure = first;
    return first.status;
}
