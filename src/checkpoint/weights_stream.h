/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/weights_stream.h - reads weights of a frozen model from their files while the run uses
 * others: one thread, one weight after another, past the cache of the system where the file system
 * allows it. A window gets what loading the weight would give it. */
#ifndef HR_CHECKPOINT_WEIGHTS_STREAM_H
#define HR_CHECKPOINT_WEIGHTS_STREAM_H

#include "checkpoint/weights_in.h"
#include "dev/thread.h"
#include "graph/transfer.h"

enum { HR_STREAM_JOBS = 64 }; /* begun and not read at a time; one more waits */

typedef struct {
    int32_t param;
    hr_weights_place place;
} hr_stream_job;

/* Private fields. The object must not move while it is open. */
typedef struct {
    hr_weights_in in;
    int *direct;      /* [HR_STORED_FILES_MAX] */
    uint8_t *staging; /* of the thread */
    uint8_t *row;     /* of lookups */
    uint8_t *stack;
    int64_t staging_bytes;
    hr_thread thread;
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    hr_stream_job jobs[HR_STREAM_JOBS]; /* of ticket t: [t % HR_STREAM_JOBS] */
    int64_t begun, done;                /* tickets */
    hr_error failure;
    bool open, closing;
    bool is_direct; /* all files are read by direct I/O */
} hr_weights_stream;

/* Bytes in a region for files whose rows have at most `width` elements. Pure. */
int64_t hr_weights_stream_bytes(int64_t width);

/* Places the object; null: the region is too small. */
hr_weights_stream *hr_weights_stream_place(hr_region *region, int64_t width);

/* Starts the thread. `in` is open until the close, and has all weights that will be read.
 * Errors   FAILURE. */
HR_MUST_CHECK hr_status hr_weights_stream_open(hr_weights_stream *stream, const hr_weights_in *in,
                                               hr_error *err);

/* The functions that read. Errors as hr_weights_in_take: waiting reports that of the first weight
 * that failed, and no other is read after it. */
hr_base_source hr_weights_stream_source(hr_weights_stream *stream);

/* Ends the thread. Accepts null and a closed object. */
void hr_weights_stream_close(hr_weights_stream *stream);

#endif
