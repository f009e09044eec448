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

/* What has been read since the open, and how long that took and was waited for. */
typedef struct {
    int64_t bytes, read_ns, waited_ns;
} hr_stream_times;

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
    hr_stream_times times;
} hr_weights_stream;

/* Bytes in a region for files whose rows have at most `width` elements. Pure. */
int64_t hr_weights_stream_bytes(int64_t width);

/* Places the object; null: the region is too small. */
hr_weights_stream *hr_weights_stream_place(hr_region *region, int64_t width);

/* Starts the thread. `in` is open until the close, and has all weights that will be read.
 * Errors   FAILURE. */
HR_MUST_CHECK hr_status hr_weights_stream_open(hr_weights_stream *stream, const hr_weights_in *in,
                                               hr_error *err);

/* A sentence if the folder is a bad place for weights that stay in it: memory, a network file
 * system, or one without direct I/O. Returns false if there is none. */
bool hr_weights_stream_note(const hr_weights_stream *stream, char line[HR_ERROR_BYTES]);

/* Bytes per second of reading a part of the first file, in about a tenth of a second; 0: unknown.
 * The stream is open and idle. */
double hr_weights_stream_rate(hr_weights_stream *stream);

/* Also after the close. */
hr_stream_times hr_weights_stream_times(const hr_weights_stream *stream);

/* The functions that read. Errors as hr_weights_in_take: waiting reports that of the first weight
 * that failed, and no other is read after it. */
hr_base_source hr_weights_stream_source(hr_weights_stream *stream);

/* Ends the thread. Accepts null and a closed object. */
void hr_weights_stream_close(hr_weights_stream *stream);

#endif
