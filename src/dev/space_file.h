/* SPDX-License-Identifier: Apache-2.0 */
/* dev/space_file.h - the file space of a run: values in a scratch file, moved in the background.
 *
 * Transfers begin in order; threads of the space move their pieces while the caller computes. A
 * transfer that overlaps an earlier one, in the file or in memory, starts after it; all others run
 * at the same time. */
#ifndef HR_DEV_SPACE_FILE_H
#define HR_DEV_SPACE_FILE_H

#include "dev/block_file.h"
#include "dev/thread.h"

enum {
    HR_SPACE_THREADS = 2, /* the number to use: bench/space_file_bench.c */
    HR_SPACE_THREADS_MOST = 8,
    HR_SPACE_TRANSFERS_MOST = 256, /* unfinished ones; the next one waits for the oldest */
    HR_SPACE_PIECE_BYTES = 4 << 20 /* of one system call */
};

typedef enum {
    HR_SPACE_FETCH, /* from the file to memory */
    HR_SPACE_SPILL  /* from memory to the file */
} hr_space_direction;

typedef struct {
    hr_space_direction direction;
    uint8_t *memory;
    int64_t offset, bytes;
} hr_space_transfer;

typedef struct {
    hr_block_file_options file;
    int32_t threads; /* 1 to HR_SPACE_THREADS_MOST */
} hr_space_file_options;

typedef struct {
    hr_space_transfer transfer;
    int64_t taken, done; /* bytes that threads have taken, and have moved */
    int32_t moving;      /* pieces that threads move now */
} hr_space_job;

/* What the threads have moved since the open, and how long at least one of them did. */
typedef struct {
    int64_t read_bytes, written_bytes, busy_ns;
} hr_space_moved;

/* Private fields, except for `blocks.direct`. The object must not move while it is open. */
typedef struct {
    hr_block_file blocks;
    int32_t threads; /* running */
    bool open, closing;
    int64_t begun, finished; /* transfers; those before `finished` are complete */
    hr_error failure;        /* the first one; status HR_OK: none */
    hr_space_moved moved;
    int32_t moving;       /* pieces that threads move now */
    int64_t busy_from_ns; /* since when there are any */
    pthread_mutex_t mutex;
    pthread_cond_t ready, progress;
    hr_thread handles[HR_SPACE_THREADS_MOST];
    hr_space_job jobs[HR_SPACE_TRANSFERS_MOST]; /* of transfer t: [t % HR_SPACE_TRANSFERS_MOST] */
} hr_space_file;

/* Bytes in the region, and bytes of the stacks. */
int64_t hr_space_file_bytes(const hr_space_file_options *options);
int64_t hr_space_file_stack_bytes(const hr_space_file_options *options);

/* Creates the file (hr_block_file_open) and starts the threads.
 *
 *   region  with hr_space_file_bytes(options), while the file is open
 *   stacks  [hr_space_file_stack_bytes(options)] owned by the caller, readable and writable until
 *           the file is closed
 *
 * Align    stacks to a page
 * Errors   as hr_block_file_open; FAILURE  a thread cannot be created
 * Threads  all functions: the one that opened the file. */
HR_MUST_CHECK hr_status hr_space_file_open(hr_space_file *file,
                                           const hr_space_file_options *options, hr_region *region,
                                           void *stacks, hr_error *err);

/* Begins a transfer and returns its ticket: 0, 1, 2 and so on. The memory belongs to the transfer
 * until hr_space_file_wait: a fetch writes it, a spill reads it. Waits if HR_SPACE_TRANSFERS_MOST
 * transfers are unfinished.
 *
 * Align  memory, offset and bytes to HR_BLOCK_BYTES */
int64_t hr_space_file_begin(hr_space_file *file, hr_space_transfer transfer);

/* Waits for the transfer of a ticket. Its memory then belongs to the caller, who sees its bytes. A
 * ticket may be waited for again, and at any later time.
 *
 * Errors   as hr_block_file_read and _write: of this transfer, or of another one that failed before
 *          this one was complete. After the first failure no transfer starts, and memory of
 *          unfinished ones belongs to them until the file is closed. */
HR_MUST_CHECK hr_status hr_space_file_wait(hr_space_file *file, int64_t ticket, hr_error *err);

/* Returns true when hr_space_file_wait would not wait. */
bool hr_space_file_is_done(hr_space_file *file, int64_t ticket);

/* Zeros for a closed file. */
hr_space_moved hr_space_file_moved(hr_space_file *file);

/* Returns the first failure, also of a file that was closed since. A zeroed object has none.
 *   failure  out; may be null */
HR_MUST_CHECK hr_status hr_space_file_failure(hr_space_file *file, hr_error *failure);

/* Waits until no thread reads or writes memory: until all transfers are complete, or after a
 * failure until those that had started have ended. */
void hr_space_file_drain(hr_space_file *file);

/* Ends the threads and removes the file. Pieces that are being moved are waited for; the rest of
 * their transfers is dropped. Accepts a closed or zeroed object. */
void hr_space_file_close(hr_space_file *file);

#endif
