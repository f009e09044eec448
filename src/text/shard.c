/* SPDX-License-Identifier: Apache-2.0 */
/* text/shard.c - ids narrowed to the bytes they need, over checksummed blocks. */
#include "text/shard.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "text/blocks.h"

#define MAGIC "hrtokens"
enum { VERSION = 1 };

/* The header as it lies in block 0, little-endian. */
typedef struct {
    hr_blocks_header blocks;
    int64_t tokens, covered, vocab_size, source_bytes;
    hr_text_hash source, tokenizer;
    uint32_t kind, token_bytes;
} shard_header;

struct hr_shard_writer {
    hr_blocks_writer blocks;
    int64_t vocab_size, tokens;
    uint8_t staging[HR_BLOCKS_BYTES];
};

struct hr_shard {
    hr_blocks blocks;
    hr_shard_info info;
    int64_t token_bytes;
    uint8_t staging[HR_BLOCKS_BYTES];
};

static int64_t token_bytes_for(int64_t vocab_size)
{
    return vocab_size <= 256 ? 1 : vocab_size <= 65536 ? 2 : 4;
}

int64_t hr_shard_writer_bytes(void)
{
    return hr_round_up(sizeof(hr_shard_writer), 64);
}

hr_status hr_shard_begin(hr_shard_writer **writer, void *memory, const char *directory,
                         const char *name, int64_t vocab_size, hr_error *err)
{
    hr_shard_writer *begun = memory;
    begun->vocab_size = vocab_size;
    begun->tokens = 0;
    const hr_status status = hr_blocks_begin(&begun->blocks, directory, name, begun->staging, err);
    if (status == HR_OK) *writer = begun;
    return status;
}

hr_status hr_shard_append(hr_shard_writer *writer, const uint32_t *ids, int64_t count,
                          hr_error *err)
{
    enum { NARROWED = 1024 };
    uint8_t narrow[NARROWED * 4];
    const int64_t width = token_bytes_for(writer->vocab_size);
    writer->tokens += count;
    while (count > 0) {
        const int64_t part = hr_min(count, NARROWED);
        for (int64_t i = 0; i < part; i++) {
            HR_DEBUG_ASSERT(ids[i] < writer->vocab_size);
            memcpy(narrow + i * width, &ids[i], (size_t)width);
        }
        const hr_status status = hr_blocks_append(&writer->blocks, narrow, part * width, err);
        if (status != HR_OK) return status;
        ids += part;
        count -= part;
    }
    return HR_OK;
}

hr_status hr_shard_append_bytes(hr_shard_writer *writer, const uint8_t *ids, int64_t count,
                                hr_error *err)
{
    HR_ASSERT(token_bytes_for(writer->vocab_size) == 1);
    writer->tokens += count;
    return hr_blocks_append(&writer->blocks, ids, count, err);
}

hr_status hr_shard_commit(hr_shard_writer *writer, const hr_shard_info *info, hr_error *err)
{
    shard_header header = { .blocks = { .magic = MAGIC, .version = VERSION },
                            .tokens = writer->tokens,
                            .covered = info->covered,
                            .vocab_size = writer->vocab_size,
                            .source_bytes = info->source_bytes,
                            .source = info->source,
                            .tokenizer = info->tokenizer,
                            .kind = (uint32_t)info->kind,
                            .token_bytes = (uint32_t)token_bytes_for(writer->vocab_size) };
    return hr_blocks_commit(&writer->blocks, &header.blocks, sizeof header, err);
}

void hr_shard_abort(hr_shard_writer *writer)
{
    if (writer) hr_blocks_abort(&writer->blocks);
}

int64_t hr_shard_bytes(void)
{
    return hr_round_up(sizeof(hr_shard), 64);
}

hr_status hr_shard_open(hr_shard **shard, void *memory, const char *path, hr_error *err)
{
    hr_shard *opened = memory;
    shard_header header;
    const hr_status status = hr_blocks_open(&opened->blocks, path, opened->staging, MAGIC, VERSION,
                                            &header, sizeof header, err);
    if (status != HR_OK) return status;
    int64_t payload_bytes = -1;
    if (header.vocab_size < 1 || header.token_bytes != token_bytes_for(header.vocab_size) ||
        !hr_checked_mul(header.tokens, header.token_bytes, &payload_bytes) ||
        payload_bytes != opened->blocks.payload_bytes) {
        hr_blocks_close(&opened->blocks);
        return hr_fail(err, HR_CORRUPT,
                       "%s: %lld tokens of %u bytes do not make the %lld bytes it holds: "
                       "delete the file and run again",
                       path, (long long)header.tokens, header.token_bytes,
                       (long long)opened->blocks.payload_bytes);
    }
    opened->token_bytes = header.token_bytes;
    opened->info = (hr_shard_info){ .tokens = header.tokens,
                                    .covered = header.covered,
                                    .vocab_size = header.vocab_size,
                                    .source_bytes = header.source_bytes,
                                    .source = header.source,
                                    .tokenizer = header.tokenizer,
                                    .kind = (hr_tokenizer_kind)header.kind };
    *shard = opened;
    return HR_OK;
}

void hr_shard_close(hr_shard **shard)
{
    if (*shard) hr_blocks_close(&(*shard)->blocks);
    *shard = 0;
}

const hr_shard_info *hr_shard_view(const hr_shard *shard)
{
    return &shard->info;
}

/* Widens `count` ids of `width` bytes at `from` to 32 bits and returns the largest. `from` may be
 * the end of `ids` itself: front to back, no id is written over before it is read. */
static int64_t widen(int32_t *ids, const uint8_t *from, int64_t count, int64_t width)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t id = 0;
        if (width == 1) id = from[i];
        else if (width == 2) id = (uint32_t)from[2 * i] | (uint32_t)from[2 * i + 1] << 8;
        else memcpy(&id, from + 4 * i, 4);
        ids[i] = (int32_t)id;
        if (id > most) most = id;
    }
    return most;
}

hr_status hr_shard_read(hr_shard *shard, int64_t first, int64_t count, int32_t *ids, hr_error *err)
{
    HR_ASSERT(first >= 0 && count >= 0 && count <= shard->info.tokens - first);
    const int64_t width = shard->token_bytes;
    uint8_t *narrow = (uint8_t *)ids + count * (4 - width);
    const hr_status status = hr_blocks_read(&shard->blocks, first * width, narrow, count * width,
                                            err);
    if (status != HR_OK || count == 0) return status;
    const int64_t most = widen(ids, narrow, count, width);
    if (most < shard->info.vocab_size) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   "%s: token id %lld among tokens %lld to %lld, and the vocabulary has %lld: "
                   "delete the file and run again",
                   shard->blocks.path, (long long)most, (long long)first,
                   (long long)(first + count), (long long)shard->info.vocab_size);
}

hr_status hr_shard_check(hr_shard *shard, const hr_text_progress *progress, hr_error *err)
{
    enum { CHECKED = 1024, ASKED = 64 };
    int32_t ids[CHECKED];
    hr_status status = HR_OK;
    for (int64_t first = 0; first < shard->info.tokens && status == HR_OK; first += CHECKED) {
        if (first % (CHECKED * ASKED) == 0)
            status = hr_text_continue(progress, "checking token ids", first * shard->token_bytes,
                                      shard->blocks.payload_bytes, err);
        if (status == HR_OK)
            status = hr_shard_read(shard, first, hr_min(CHECKED, shard->info.tokens - first), ids,
                                   err);
    }
    return status;
}
