/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/feed.h - reads the training files line by line and splits the lines into words.
 *
 * Each line, with its newline, is an independent text; so is the start of each file. Files are read
 * with pread into a buffer and not kept in memory. The concatenated bytes of all files are divided
 * among threads at line boundaries. */
#ifndef HR_TOKENIZER_TRAIN_FEED_H
#define HR_TOKENIZER_TRAIN_FEED_H

#include "base/file.h"
#include "base/region.h"
#include "headroom/status.h"
#include "tokenizer/pretokenizer.h"

enum { HR_FEED_BYTES_LEAST = 1 << 20, HR_FEED_BYTES_MOST = 64 << 20, HR_FEED_FILES_MAX = 1024 };
enum { HR_FEED_BEHIND = 16 }; /* extra bytes after buffer_bytes: readable, of any value */

typedef struct {
    const char *path;
    int64_t bytes, start; /* length, and offset in the concatenation of all files */
} hr_feed_file;

/* All files after one scan. Read-only. */
typedef struct {
    hr_feed_file files[HR_FEED_FILES_MAX];
    int32_t file_count;
    int64_t bytes, lines, line_bytes_most;
    uint64_t identity; /* hash of names, lengths and contents */
} hr_feed_source;

/* The part of one thread. `word` is called for each word. If it returns false, hr_feed_run returns
 * before this word and the next call repeats it. */
typedef struct {
    const hr_feed_source *source;
    hr_pretokenizer_cursor *cut;
    uint8_t *buffer;
    int64_t buffer_bytes;
    bool prefix_space;
    bool (*word)(void *context, const uint8_t *word, int64_t bytes);
    void *context;

    int64_t at,
        /* offsets in the concatenation: next byte to read; lines that start here or later belong
         * to the next part */
        end;
    int64_t done;        /* bytes of words that were passed on, for progress */
    int32_t file;        /* the file that contains `at` */
    int descriptor;      /* -1: not open */
    int64_t first, held; /* buffer [first, held) is read and not yet split */
    int64_t window;      /* bytes of the current window, from `first` on; 0: none */
    bool begun, whole;   /* the window continues a line; the window ends a line */
    bool finished;
    hr_piece pieces[256];
    int64_t piece_count, piece_at;
} hr_feed;

/* Scans all files for lengths and lines, and checks that they are UTF-8.
 *
 *   scratch  [bytes >= HR_FEED_BYTES_LEAST]
 *   stop     called regularly with the progress; true interrupts; may be null
 *
 * Errors   USAGE    a path that is missing, unreadable or not a regular file
 *          CORRUPT  bytes that are not UTF-8, with their offset; no text
 *          INTERRUPTED. */
typedef bool hr_feed_stop(void *context, const char *work, int64_t done, int64_t all);
HR_MUST_CHECK hr_status hr_feed_scan(hr_feed_source *source, const char *const *paths,
                                     int32_t count, uint8_t *scratch, int64_t bytes,
                                     hr_feed_stop *stop, void *context, hr_error *err);

/* Buffer size for the longest line, at most HR_FEED_BYTES_MOST, which then limits the length of a
 * word. */
int64_t hr_feed_buffer_bytes(const hr_feed_source *source);

/* Moves a feed to part `index` of `parts`. source, cut, buffer, word and context must be set. */
void hr_feed_begin(hr_feed *feed, int32_t index, int32_t parts);

/* Runs until the part is finished (feed->finished), `word` returns false, or `bytes` more are
 * split.
 * Errors   CORRUPT  a word longer than the buffer, a file that became shorter; FAILURE. */
HR_MUST_CHECK hr_status hr_feed_run(hr_feed *feed, int64_t bytes, hr_error *err);
void hr_feed_end(hr_feed *feed);

#endif
