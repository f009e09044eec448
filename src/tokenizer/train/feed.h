/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/feed.h - the files of a training, line by line, cut into words.
 *
 * A text begins anew behind every newline, which belongs to the line that it ends, and at every
 * file. Files are read with pread into a buffer: nothing of them stays. The bytes of all files, one
 * behind the other, are dealt to threads in stretches that end between lines. */
#ifndef HR_TOKENIZER_TRAIN_FEED_H
#define HR_TOKENIZER_TRAIN_FEED_H

#include "base/file.h"
#include "base/region.h"
#include "headroom/status.h"
#include "tokenizer/pretokenizer.h"

enum { HR_FEED_BYTES_LEAST = 1 << 20, HR_FEED_BYTES_MOST = 64 << 20, HR_FEED_FILES_MAX = 1024 };
enum {
    HR_FEED_BEHIND = 16
}; /* bytes that a buffer has behind buffer_bytes; any, and for reading */

typedef struct {
    const char *path;
    int64_t bytes, start; /* length; where it begins among all */
} hr_feed_file;

/* The files, looked at once. For reading. */
typedef struct {
    hr_feed_file files[HR_FEED_FILES_MAX];
    int32_t file_count;
    int64_t bytes, lines, line_bytes_most;
    uint64_t identity; /* of names, lengths and content */
} hr_feed_source;

/* One thread's part. `word` is called for every word: a result of false leaves the walk where it
 * is, before this word, to be taken up again by the next hr_feed_run. */
typedef struct {
    const hr_feed_source *source;
    hr_pretokenizer_cursor *cut;
    uint8_t *buffer;
    int64_t buffer_bytes;
    bool prefix_space;
    bool (*word)(void *context, const uint8_t *word, int64_t bytes);
    void *context;

    int64_t at, end;     /* among the bytes of all files: what is read next; where lines stop to
                             belong to this part */
    int64_t done;        /* bytes of words that are told, for progress */
    int32_t file;        /* that `at` lies in */
    int descriptor;      /* -1: none is open */
    int64_t first, held; /* buffer [first, held) is read and not yet cut */
    int64_t window;      /* bytes of the window at work, from `first` on; 0: none */
    bool begun, whole;   /* the window is of a line that began before; it ends the line */
    bool finished;
    hr_piece pieces[256];
    int64_t piece_count, piece_at;
} hr_feed;

/* Looks through all files: lengths, lines, and that they are UTF-8.
 *
 *   scratch  [bytes >= HR_FEED_BYTES_LEAST]
 *   stop     asked now and then; may be null
 *
 * Errors   USAGE    a path that is missing, unreadable or no regular file
 *          CORRUPT  bytes that are not UTF-8: says where; no text at all
 *          INTERRUPTED. */
typedef bool hr_feed_stop(void *context, const char *work, int64_t done, int64_t all);
HR_MUST_CHECK hr_status hr_feed_look(hr_feed_source *source, const char *const *paths,
                                     int32_t count, uint8_t *scratch, int64_t bytes,
                                     hr_feed_stop *stop, void *context, hr_error *err);

/* Bytes of buffer that all lines fit into, or HR_FEED_BYTES_MOST, which then bounds a word. */
int64_t hr_feed_buffer_bytes(const hr_feed_source *source);

/* Puts a feed before part `index` of `parts`. source, cut, buffer, word and context are set. */
void hr_feed_begin(hr_feed *feed, int32_t index, int32_t parts);

/* Goes on until the part is finished (feed->finished), `word` said false, or `bytes` more are cut.
 * Errors   CORRUPT  a word longer than the buffer, a file that became shorter; FAILURE. */
HR_MUST_CHECK hr_status hr_feed_run(hr_feed *feed, int64_t bytes, hr_error *err);
void hr_feed_end(hr_feed *feed);

#endif
