/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/pass_queue.c - what the readers of all kinds of files share: which documents are held out,
 * and the queue of pieces. */
#include "base/assert.h"
#include "base/checked.h"
#include "corpus/pass.h"

/* Start value of the hash that assigns documents to sides. */
static const uint64_t HELD_SEED = UINT64_C(0x68656c64); /* "held" */

/* Holds out a document if the first 53 bits of its hash, as a number below 1, are below the share.
 * So equal documents are on the same side in every file, and a larger share holds out a superset of
 * a smaller one. */
bool hr_pass_is_excluded(const hr_pass *pass, const hr_line_span *texts, int32_t count)
{
    const hr_stream *stream = pass->stream;
    uint64_t hash = HELD_SEED;
    if (stream->side == HR_STREAM_ALL || stream->split) return false;
    for (int32_t i = 0; i < count; i++)
        hash = XXH3_64bits_withSeed(texts[i].text, (size_t)hr_min(texts[i].bytes, HR_HELD_BYTES),
                                    hash);
    const bool held = (double)(hash >> 11) * 0x1p-53 < stream->share;
    return held != (stream->side == HR_STREAM_HELD);
}

void hr_pass_put(hr_pass *pass, hr_piece piece)
{
    if (pass->excluded) return;
    HR_ASSERT(pass->queued < HR_PASS_QUEUE);
    piece.path = hr_list_path(pass->list, pass->file);
    pass->queue[pass->queued++] = piece;
}
