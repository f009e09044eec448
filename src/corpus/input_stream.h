/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/input_stream.h - reads one file after another, decompressed, through fixed buffers.
 *
 * Every byte of a file goes through this reader once per pass. It hashes the bytes, reports
 * progress, and checks for interrupts. */
#ifndef HR_CORPUS_INPUT_STREAM_H
#define HR_CORPUS_INPUT_STREAM_H

#define XXH_STATIC_LINKING_ONLY /* for a state struct without allocation */
#include <xxhash.h>

#include "base/region.h"
#include "corpus/gunzip.h"
#include "corpus/kind.h"
#include "corpus/unzstd.h"
#include "text/pass.h"

enum { HR_INPUT_STREAM_BYTES = 256 * 1024 }; /* bytes per read: fits the second-level cache */

typedef struct {
    XXH3_state_t hash; /* of the files' bytes before decompression */
    uint8_t *raw;      /* [HR_INPUT_STREAM_BYTES] compressed bytes; null if no file is compressed */
    hr_gunzip *gunzip; /* null if no file uses gzip */
    hr_unzstd *unzstd; /* null if no file uses zstd */
    const char *work;  /* name of the pass for progress: "counting words" */
    const hr_text_progress *progress;
    int64_t done, total; /* bytes of all files of the pass */

    /* the current file */
    const char *path;
    hr_file_packing packing;
    int64_t bytes, offset;   /* file size; offset of the first byte that was not read yet */
    const uint8_t *at, *end; /* bytes of raw that are not decompressed yet */
    bool between;            /* no compressed stream is open */
    int file;
} hr_input_stream;

/* Memory for the compression formats that occur. Pure. */
int64_t hr_input_stream_bytes(bool gzip, bool zstd);
void hr_input_stream_place(hr_input_stream *input_stream, hr_region *region, bool gzip, bool zstd);

/* Begins a pass over files of `total` bytes. */
void hr_input_stream_begin(hr_input_stream *input_stream, const char *work,
                           const hr_text_progress *progress, int64_t total);

/* Opens the next file. Errors USAGE. */
HR_MUST_CHECK hr_status hr_input_stream_open(hr_input_stream *input_stream, const char *path,
                                             hr_file_packing packing, hr_error *err);
void hr_input_stream_close(hr_input_stream *input_stream);

/* Fills `to` [bytes] with decompressed content; less only at the end of the file.
 *
 * Errors   INTERRUPTED  the progress callback asked to stop
 *          CORRUPT      a compressed stream is damaged or truncated; the file has become shorter
 *          FAILURE      a system call failed. */
HR_MUST_CHECK hr_status hr_input_stream_read(hr_input_stream *input_stream, uint8_t *to,
                                             int64_t bytes, int64_t *count, hr_error *err);

/* Reads the whole file without decompression, for its hash. Errors as hr_input_stream_read. */
HR_MUST_CHECK hr_status hr_input_stream_pass(hr_input_stream *input_stream, uint8_t *scratch,
                                             int64_t bytes, hr_error *err);

/* Adds metadata to the hash; returns the current hash. */
void hr_input_stream_add(hr_input_stream *input_stream, const void *memory, int64_t bytes);
hr_text_hash hr_input_stream_hash(const hr_input_stream *input_stream);

#endif
