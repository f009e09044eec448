/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/input_stream.h - the content of one file after the other, unpacked, in fixed buffers.
 *
 * Every byte of a file passes through here once in a pass, so every pass knows the identity of what
 * it read, tells how far it is, and can be stopped. */
#ifndef HR_CORPUS_INPUT_STREAM_H
#define HR_CORPUS_INPUT_STREAM_H

#define XXH_STATIC_LINKING_ONLY /* the state as a plain struct: no allocation */
#include <xxhash.h>

#include "base/region.h"
#include "corpus/gunzip.h"
#include "corpus/kind.h"
#include "corpus/unzstd.h"
#include "text/pass.h"

enum { HR_INPUT_STREAM_BYTES = 256 * 1024 }; /* read at once: stays in the second-level cache */

typedef struct {
    XXH3_state_t hash; /* of the files' bytes as they are */
    uint8_t *raw;      /* [HR_INPUT_STREAM_BYTES], of what is packed; null: nothing will be */
    hr_gunzip *gunzip; /* null: no such file will come */
    hr_unzstd *unzstd; /* the same */
    const char *work;  /* what is done: "counting words" */
    const hr_text_progress *progress;
    int64_t done, total; /* bytes of all files of the pass */

    /* of the file at hand */
    const char *path;
    hr_file_packing packing;
    int64_t bytes, offset;   /* of it; of the first byte that was not read yet */
    const uint8_t *at, *end; /* of raw: what is not unpacked yet */
    bool between;            /* no packed stream is open */
    int file;
} hr_input_stream;

/* Which packings come, for the memory. Pure. */
int64_t hr_input_stream_bytes(bool gzip, bool zstd);
void hr_input_stream_place(hr_input_stream *input_stream, hr_region *region, bool gzip, bool zstd);

/* Begins a pass over files of `total` bytes. */
void hr_input_stream_begin(hr_input_stream *input_stream, const char *work,
                           const hr_text_progress *progress, int64_t total);

/* Opens the next file. Errors USAGE. */
HR_MUST_CHECK hr_status hr_input_stream_open(hr_input_stream *input_stream, const char *path,
                                             hr_file_packing packing, hr_error *err);
void hr_input_stream_close(hr_input_stream *input_stream);

/* Fills to [bytes] with content; less than that only where it ends.
 *
 * Errors   INTERRUPTED  the progress function said so
 *          CORRUPT      a packed stream that is damaged, or that the file's end cuts short; a file
 *                       that has become shorter
 *          FAILURE      the system refused. */
HR_MUST_CHECK hr_status hr_input_stream_read(hr_input_stream *input_stream, uint8_t *to,
                                             int64_t bytes, int64_t *count, hr_error *err);

/* Reads the whole file as it is, for its hash alone. Errors as hr_input_stream_read. */
HR_MUST_CHECK hr_status hr_input_stream_pass(hr_input_stream *input_stream, uint8_t *scratch,
                                             int64_t bytes, hr_error *err);

/* Adds to the hash what is no byte of a file; and the hash so far. */
void hr_input_stream_add(hr_input_stream *input_stream, const void *memory, int64_t bytes);
hr_text_hash hr_input_stream_hash(const hr_input_stream *input_stream);

#endif
