/* SPDX-License-Identifier: Apache-2.0 */
/* text/shard.c - ids in the narrowest width, in checksummed blocks.
 *
 * The bit maps follow every GROUP ids. So a shard is written in one pass and fixed memory for any
 * number of documents, and a token's bits are located by its index alone. */
#include "text/shard.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "text/blocks.h"

#define MAGIC "hrtokens"
enum { VERSION = 2, GROUP = 2048, MAP_BYTES = GROUP / 8, MAPS = 2 };

/* Layout of the header in block 0, little-endian. */
typedef struct {
    hr_blocks_header blocks;
    int64_t tokens, covered, vocab_size, source_bytes;
    hr_text_hash source, tokenizer;
    uint32_t kind, token_bytes;
    int64_t documents, longest, masked, bad_lines;
    uint32_t holds, reserved;
} shard_header;

/* Writer state that is restored when a document is discarded. */
typedef struct {
    int64_t tokens, documents, longest, masked, ends, document_first;
    uint8_t maps[MAPS][MAP_BYTES]; /* bits of the current group: documents, masks */
} counters;

struct hr_shard_writer {
    hr_blocks_writer blocks;
    int64_t vocab_size, document_end;
    uint32_t holds;
    bool begins, masks; /* the next token begins a document; the next tokens are not targets */
    counters now, before;
    hr_blocks_mark mark; /* position where the current document began */
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

static int64_t map_count(uint32_t holds)
{
    return (holds & HR_SHARD_DOCUMENTS ? 1 : 0) + (holds & HR_SHARD_MASKS ? 1 : 0);
}

/* ---- writing */

int64_t hr_shard_writer_bytes(void)
{
    return hr_round_up(sizeof(hr_shard_writer), 64);
}

hr_status hr_shard_begin(hr_shard_writer **writer, void *memory, const hr_shard_desc *desc,
                         hr_error *err)
{
    hr_shard_writer *begun = memory;
    begun->vocab_size = desc->vocab_size;
    begun->document_end = desc->document_end;
    begun->holds = desc->holds;
    begun->masks = false;
    memset(&begun->now, 0, sizeof begun->now);
    const hr_status status = hr_blocks_begin(&begun->blocks, desc->directory, desc->name,
                                             begun->staging, err);
    if (status != HR_OK) return status;
    begun->begins = false;
    hr_shard_document(begun);
    *writer = begun;
    return HR_OK;
}

/* Writes the maps after the `count` ids of the group. */
static hr_status end_group(hr_shard_writer *writer, int64_t count, hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t map = 0; map < MAPS && status == HR_OK; map++)
        if (writer->holds & UINT32_C(1) << map)
            status = hr_blocks_append(&writer->blocks, writer->now.maps[map], (count + 7) / 8, err);
    memset(writer->now.maps, 0, sizeof writer->now.maps);
    return status;
}

/* Sets bits [first, first + count) of the map. */
static void set_bits(uint8_t *map, int64_t first, int64_t count)
{
    for (int64_t i = first; i < first + count; i++) map[i / 8] |= (uint8_t)(1 << i % 8);
}

/* Appends ids that already have the width of the payload. */
static hr_status append_narrow(hr_shard_writer *writer, const uint8_t *ids, int64_t count,
                               int64_t width, hr_error *err)
{
    counters *now = &writer->now;
    if (!writer->holds) {
        now->tokens += count;
        return hr_blocks_append(&writer->blocks, ids, count * width, err);
    }
    while (count > 0) {
        const int64_t at = now->tokens % GROUP, part = hr_min(count, GROUP - at);
        hr_status status = hr_blocks_append(&writer->blocks, ids, part * width, err);
        if (writer->masks) {
            set_bits(now->maps[1], at, part);
            now->masked += part;
        }
        now->tokens += part;
        if (status == HR_OK && at + part == GROUP) status = end_group(writer, GROUP, err);
        if (status != HR_OK) return status;
        ids += part * width;
        count -= part;
    }
    return HR_OK;
}

/* Updates the longest document when the current one ends. */
static void update_longest(counters *now)
{
    now->longest = hr_max(now->longest, now->tokens - now->document_first);
}

/* Called at the first token of a document. Writes the separator before it, which is a target even
 * if the document's tokens are masked. */
static hr_status open_document(hr_shard_writer *writer, hr_error *err)
{
    counters *now = &writer->now;
    const bool masks = writer->masks;
    hr_status status = HR_OK;
    writer->begins = false;
    if (now->documents && writer->document_end >= 0) {
        const uint32_t id = (uint32_t)writer->document_end;
        uint8_t narrow[4];
        memcpy(narrow, &id, 4);
        writer->masks = false;
        status = append_narrow(writer, narrow, 1, token_bytes_for(writer->vocab_size), err);
        now->ends++;
        writer->masks = masks;
    }
    now->document_first = now->tokens;
    now->documents++;
    set_bits(now->maps[0], now->tokens % GROUP, 1);
    return status;
}

hr_status hr_shard_append(hr_shard_writer *writer, const uint32_t *ids, int64_t count,
                          hr_error *err)
{
    enum { NARROWED = 1024 };
    uint8_t narrow[NARROWED * 4];
    const int64_t width = token_bytes_for(writer->vocab_size);
    hr_status status = writer->begins && count ? open_document(writer, err) : HR_OK;
    while (count > 0 && status == HR_OK) {
        const int64_t part = hr_min(count, NARROWED);
        for (int64_t i = 0; i < part; i++) {
            HR_DEBUG_ASSERT(ids[i] < writer->vocab_size);
            memcpy(narrow + i * width, &ids[i], (size_t)width);
        }
        status = append_narrow(writer, narrow, part, width, err);
        ids += part;
        count -= part;
    }
    return status;
}

hr_status hr_shard_append_bytes(hr_shard_writer *writer, const uint8_t *ids, int64_t count,
                                hr_error *err)
{
    HR_ASSERT(token_bytes_for(writer->vocab_size) == 1);
    const hr_status status = writer->begins && count ? open_document(writer, err) : HR_OK;
    return status == HR_OK ? append_narrow(writer, ids, count, 1, err) : status;
}

void hr_shard_document(hr_shard_writer *writer)
{
    if (writer->begins) return;
    update_longest(&writer->now);
    writer->begins = true;
    writer->before = writer->now;
    if (writer->holds) hr_blocks_mark_here(&writer->blocks, &writer->mark);
}

void hr_shard_mask(hr_shard_writer *writer, bool targets)
{
    HR_ASSERT(targets || writer->holds & HR_SHARD_MASKS);
    writer->masks = !targets;
}

hr_status hr_shard_discard(hr_shard_writer *writer, hr_error *err)
{
    HR_ASSERT(writer->holds);
    if (writer->begins) return HR_OK;
    writer->begins = true;
    writer->now = writer->before;
    return hr_blocks_rollback(&writer->blocks, &writer->mark, err);
}

hr_status hr_shard_commit(hr_shard_writer *writer, const hr_shard_info *info, hr_error *err)
{
    const counters *now = &writer->now;
    if (!writer->begins) update_longest(&writer->now);
    const int64_t left = now->tokens % GROUP;
    const hr_status status = writer->holds && left ? end_group(writer, left, err) : HR_OK;
    if (status != HR_OK) return status;
    shard_header header = { .blocks = { .magic = MAGIC, .version = VERSION },
                            .tokens = now->tokens,
                            .covered = info->covered + now->ends,
                            .vocab_size = writer->vocab_size,
                            .source_bytes = info->source_bytes,
                            .source = info->source,
                            .tokenizer = info->tokenizer,
                            .kind = (uint32_t)info->kind,
                            .token_bytes = (uint32_t)token_bytes_for(writer->vocab_size),
                            .documents = now->documents,
                            .longest = now->longest,
                            .masked = now->masked,
                            .bad_lines = info->bad_lines,
                            .holds = writer->holds };
    return hr_blocks_commit(&writer->blocks, &header.blocks, sizeof header, err);
}

void hr_shard_abort(hr_shard_writer *writer)
{
    if (writer) hr_blocks_abort(&writer->blocks);
}

/* ---- reading */

int64_t hr_shard_bytes(void)
{
    return hr_round_up(sizeof(hr_shard), 64);
}

/* Payload bytes for the header's tokens; false if the number is impossible. */
static bool payload_bytes_of(const shard_header *header, int64_t *bytes)
{
    const int64_t maps = map_count(header->holds), left = header->tokens % GROUP;
    int64_t ids, marks;
    if (header->tokens < 0 || !hr_checked_mul(header->tokens, header->token_bytes, &ids))
        return false;
    if (!hr_checked_mul(header->tokens / GROUP * MAP_BYTES + (left + 7) / 8, maps, &marks))
        return false;
    return hr_checked_add(ids, marks, bytes);
}

static bool is_valid(const shard_header *header, int64_t payload_bytes)
{
    int64_t needed = -1;
    if (header->vocab_size < 1 || header->token_bytes != token_bytes_for(header->vocab_size) ||
        header->holds >= 1u << MAPS)
        return false;
    if (!payload_bytes_of(header, &needed) || needed != payload_bytes) return false;
    return header->documents >= 0 && header->documents <= header->tokens && header->longest >= 0 &&
           header->longest <= header->tokens && header->masked >= 0 &&
           header->masked <= header->tokens && header->bad_lines >= 0;
}

hr_status hr_shard_open(hr_shard **shard, void *memory, const char *path, hr_error *err)
{
    hr_shard *opened = memory;
    shard_header header;
    const hr_status status = hr_blocks_open(&opened->blocks, path, opened->staging, MAGIC, VERSION,
                                            &header, sizeof header, err);
    if (status != HR_OK) return status;
    if (!is_valid(&header, opened->blocks.payload_bytes)) {
        hr_blocks_close(&opened->blocks);
        return hr_fail(err, HR_CORRUPT,
                       "%s: %lld tokens of %u bytes do not match its %lld bytes: delete the file "
                       "and run again",
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
                                    .kind = (int32_t)header.kind,
                                    .holds = header.holds,
                                    .documents = header.documents,
                                    .longest = header.longest,
                                    .masked = header.masked,
                                    .bad_lines = header.bad_lines };
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

/* Offset of a group's ids in the payload; without maps there is one group. */
static int64_t group_offset(const hr_shard *shard, int64_t group)
{
    return group * (GROUP * shard->token_bytes + map_count(shard->info.holds) * MAP_BYTES);
}

/* Widens `count` ids of `width` bytes at `from` to 32 bits and returns the largest. `from` may be
 * the end of `ids` itself: going from front to back, each id is read before it is overwritten. */
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

static hr_status wrong_id(const hr_shard *shard, int64_t first, int64_t count, int64_t id,
                          hr_error *err)
{
    return hr_fail(err, HR_CORRUPT,
                   "%s: token id %lld among tokens %lld to %lld, and the vocabulary has %lld: "
                   "delete the file and run again",
                   shard->blocks.path, (long long)id, (long long)first, (long long)(first + count),
                   (long long)shard->info.vocab_size);
}

static hr_status read_narrow(hr_shard *shard, int64_t first, int64_t count, uint8_t *narrow,
                             hr_error *err)
{
    const int64_t width = shard->token_bytes;
    if (!shard->info.holds)
        return hr_blocks_read(&shard->blocks, first * width, narrow, count * width, err);
    hr_status status = HR_OK;
    while (count > 0 && status == HR_OK) {
        const int64_t at = first % GROUP, part = hr_min(count, GROUP - at);
        status = hr_blocks_read(&shard->blocks, group_offset(shard, first / GROUP) + at * width,
                                narrow, part * width, err);
        narrow += part * width;
        first += part;
        count -= part;
    }
    return status;
}

hr_status hr_shard_read(hr_shard *shard, int64_t first, int64_t count, int32_t *ids, hr_error *err)
{
    HR_ASSERT(first >= 0 && count >= 0 && count <= shard->info.tokens - first);
    const int64_t width = shard->token_bytes;
    uint8_t *narrow = (uint8_t *)ids + count * (4 - width);
    const hr_status status = read_narrow(shard, first, count, narrow, err);
    if (status != HR_OK || count == 0) return status;
    const int64_t most = widen(ids, narrow, count, width);
    return most < shard->info.vocab_size ? HR_OK : wrong_id(shard, first, count, most, err);
}

/* Reads the marks of tokens [at, at + count) of one group. */
static hr_status read_marks(hr_shard *shard, int64_t group, int64_t at, int64_t count,
                            uint8_t *marks, hr_error *err)
{
    uint8_t map[MAP_BYTES];
    const int64_t in_group = hr_min(GROUP, shard->info.tokens - group * GROUP);
    int64_t offset = group_offset(shard, group) + in_group * shard->token_bytes;
    memset(marks, 0, (size_t)count);
    for (int32_t i = 0; i < MAPS; i++) {
        if (!(shard->info.holds & UINT32_C(1) << i)) continue;
        const int64_t first = at / 8, bytes = (at + count + 7) / 8 - first;
        const hr_status status = hr_blocks_read(&shard->blocks, offset + first, map, bytes, err);
        if (status != HR_OK) return status;
        for (int64_t t = 0; t < count; t++)
            if (map[(at + t) / 8 - first] >> (at + t) % 8 & 1) marks[t] |= (uint8_t)(1 << i);
        offset += (in_group + 7) / 8;
    }
    return HR_OK;
}

hr_status hr_shard_marks(hr_shard *shard, int64_t first, int64_t count, uint8_t *marks,
                         hr_error *err)
{
    HR_ASSERT(first >= 0 && count >= 0 && count <= shard->info.tokens - first);
    hr_status status = HR_OK;
    for (int64_t done = 0, part; done < count && status == HR_OK; done += part) {
        const int64_t at = (first + done) % GROUP;
        part = hr_min(count - done, GROUP - at);
        status = read_marks(shard, (first + done) / GROUP, at, part, marks + done, err);
    }
    if (count && first == 0) marks[0] |= HR_TOKEN_BEGINS;
    return status;
}

static hr_status check_counts(const hr_shard *shard, int64_t documents, int64_t masked,
                              hr_error *err)
{
    const hr_shard_info *info = &shard->info;
    if (documents == info->documents && masked == info->masked) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   "%s: says %lld documents and %lld masked tokens, and has %lld and %lld: delete "
                   "the file and run again",
                   shard->blocks.path, (long long)info->documents, (long long)info->masked,
                   (long long)documents, (long long)masked);
}

static int64_t count_bits(const uint8_t *map, int64_t bytes)
{
    int64_t count = 0;
    for (int64_t i = 0; i < bytes; i++) count += __builtin_popcount(map[i]);
    return count;
}

/* Verifies a group: reads its ids and maps in one read. */
static hr_status check_group(hr_shard *shard, int64_t group, int64_t counts[MAPS], hr_error *err)
{
    int32_t ids[GROUP];
    uint8_t whole[GROUP * 4 + MAPS * MAP_BYTES];
    const int64_t count = hr_min(GROUP, shard->info.tokens - group * GROUP);
    const int64_t width = shard->token_bytes, map_bytes = (count + 7) / 8;
    const int64_t bytes = count * width + map_count(shard->info.holds) * map_bytes;
    const int64_t offset = group_offset(shard, group);
    const hr_status status = hr_blocks_read(&shard->blocks, offset, whole, bytes, err);
    if (status != HR_OK) return status;
    const int64_t most = widen(ids, whole, count, width);
    if (most >= shard->info.vocab_size) return wrong_id(shard, group * GROUP, count, most, err);
    uint8_t *map = whole + count * width;
    for (int32_t i = 0; i < MAPS; i++) {
        if (!(shard->info.holds & UINT32_C(1) << i)) continue;
        if (i == 0 && group == 0) map[0] |= HR_TOKEN_BEGINS;
        counts[i] += count_bits(map, map_bytes);
        map += map_bytes;
    }
    return HR_OK;
}

hr_status hr_shard_check(hr_shard *shard, const hr_text_progress *progress, hr_error *err)
{
    enum { ASKED = 32 };
    const int64_t groups = (shard->info.tokens + GROUP - 1) / GROUP;
    int64_t counts[MAPS] = { 0 };
    hr_status status = HR_OK;
    for (int64_t group = 0; group < groups && status == HR_OK; group++) {
        if (group % ASKED == 0)
            status = hr_text_continue(progress, "checking token ids", group_offset(shard, group),
                                      shard->blocks.payload_bytes, err);
        if (status == HR_OK) status = check_group(shard, group, counts, err);
    }
    if (status != HR_OK) return status;
    if (!(shard->info.holds & HR_SHARD_DOCUMENTS)) counts[0] = shard->info.tokens > 0;
    return check_counts(shard, counts[0], counts[1], err);
}
