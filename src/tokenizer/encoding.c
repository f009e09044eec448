/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/encoding.c - the buffers of an encoder: passes ids on, and grows for longer pieces. */
#include "tokenizer/encoding.h"

#include "base/assert.h"
#include "base/checked.h"

void hr_encoder_flush(hr_encoder *e)
{
    if (e->id_count && !e->stopped) e->stopped = !e->sink(e->context, e->ids, e->id_count);
    e->id_count = 0;
}

static hr_status too_long(const hr_encoder *e, int64_t bytes, hr_error *err)
{
    return hr_fail(
        err, HR_CORRUPT,
        "byte %lld: the pre-tokenizer finds no split in %lld bytes or more; the limit is %lld",
        (long long)e->position, (long long)bytes, (long long)e->piece_bytes);
}

/* The new size of a buffer that needs `needed` bytes. */
static int64_t grown(int64_t needed)
{
    return hr_min(hr_round_up(needed + needed / 4, 4096), HR_PRETOKENIZER_WINDOW_MAX);
}

/* Grows the workspace for a piece [bytes] that is longer than all before. */
hr_status hr_encoder_grow_pieces(hr_encoder *e, int64_t bytes, hr_error *err)
{
    const hr_bpe *bpe = &e->tokenizer->bpe;
    hr_region region;
    const hr_unigram *unigram = &e->tokenizer->unigram;
    const int64_t most = e->unigram ? bytes : hr_bpe_piece_bytes(bpe, bytes);
    if (!e->room || most < bytes) return too_long(e, bytes, err);
    const int64_t more = grown(bytes);
    if (e->unigram) {
        hr_unigram_workspace *longer;
        hr_status made = e->room(e->context, HR_ENCODER_PIECE,
                                 hr_unigram_workspace_bytes(unigram, more), &region, err);
        if (made == HR_OK) made = hr_unigram_workspace_place(&longer, &region, unigram, more, err);
        if (made != HR_OK) return made;
        hr_unigram_continue(longer, e->unigram);
        e->unigram = longer;
        e->piece_bytes = more;
        return HR_OK;
    }
    hr_status status = e->room(e->context, HR_ENCODER_PIECE, hr_bpe_workspace_bytes(bpe, more),
                               &region, err);
    if (status == HR_OK) status = hr_bpe_workspace_place(&e->bpe, &region, bpe, more, err);
    if (status == HR_OK) e->piece_bytes = more;
    return status;
}

/* Doubles a buffer and keeps its first `kept` bytes. */
hr_status hr_encoder_grow_buffer(hr_encoder *e, hr_encoder_more what, uint8_t **buffer,
                                 int64_t *bytes, int64_t kept, hr_error *err)
{
    hr_region region;
    if (!e->room || *bytes >= HR_PRETOKENIZER_WINDOW_MAX) return too_long(e, kept, err);
    const int64_t more = hr_min(2 * *bytes, HR_PRETOKENIZER_WINDOW_MAX);
    const hr_status status = e->room(e->context, what, more + 64, &region, err);
    if (status != HR_OK) return status;
    uint8_t *larger = hr_region_take_raw(&region, more, 1);
    HR_ASSERT(larger);
    *buffer = memcpy(larger, *buffer, (size_t)kept);
    *bytes = more;
    return HR_OK;
}
