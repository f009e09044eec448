/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/gunzip.c - zlib with an allocator that serves its two blocks from the caller's memory;
 * they are allocated once and reused for every file. */
#include "corpus/gunzip.h"

#include <string.h>
#include <zlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/region.h"

/* The state (7 KiB in zlib 1.2.13) and a window of 32 KiB, with a margin. */
enum { POOL_BYTES = 64 << 10 };

typedef enum { AT_HEADER, INSIDE, AT_PADDING } phase;

struct hr_gunzip {
    z_stream stream;
    hr_region region;
    const char *path;
    int64_t offset; /* input bytes consumed, for error messages */
    phase phase;
    bool any; /* at least one stream has ended */
    _Alignas(64) uint8_t pool[POOL_BYTES];
};

static void *take(void *context, unsigned count, unsigned bytes)
{
    hr_gunzip *gunzip = context;
    return hr_region_take(&gunzip->region, count, bytes);
}

static void give(void *context, void *memory)
{
    (void)context;
    (void)memory;
}

int64_t hr_gunzip_bytes(void)
{
    return hr_round_up(sizeof(hr_gunzip), 64);
}

hr_gunzip *hr_gunzip_place(void *memory)
{
    hr_gunzip *gunzip = memory;
    memset(gunzip, 0, offsetof(hr_gunzip, pool));
    gunzip->region = hr_region_over(gunzip->pool, POOL_BYTES);
    gunzip->stream.zalloc = take;
    gunzip->stream.zfree = give;
    gunzip->stream.opaque = gunzip;
    HR_ASSERT(inflateInit2(&gunzip->stream, 16 + MAX_WBITS) == Z_OK); /* 16: accept only gzip */
    return gunzip;
}

void hr_gunzip_begin(hr_gunzip *gunzip, const char *path)
{
    gunzip->path = path;
    gunzip->offset = 0;
    gunzip->phase = AT_HEADER;
    gunzip->any = false;
    HR_ASSERT(inflateReset(&gunzip->stream) == Z_OK);
}

static hr_status damaged(const hr_gunzip *gunzip, const char *problem, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, "%s: damaged gzip data near byte %lld: %s", gunzip->path,
                   (long long)gunzip->offset, problem);
}

/* Skips zeros between streams. Returns how many bytes it skips. */
static int64_t skip_padding(hr_gunzip *gunzip, const uint8_t *in, int64_t in_bytes)
{
    int64_t passed = 0;
    if (gunzip->any)
        while (passed < in_bytes && in[passed] == 0) passed++;
    if (passed) gunzip->phase = AT_PADDING;
    gunzip->offset += passed;
    return passed;
}

hr_status hr_gunzip_step(hr_gunzip *gunzip, const uint8_t *in, int64_t in_bytes, uint8_t *out,
                         int64_t out_bytes, hr_unpacked *unpacked, hr_error *err)
{
    z_stream *stream = &gunzip->stream;
    *unpacked = (hr_unpacked){ .between = gunzip->any && gunzip->phase != INSIDE };
    if (gunzip->phase != INSIDE) {
        unpacked->used = skip_padding(gunzip, in, in_bytes);
        if (unpacked->used == in_bytes) return HR_OK;
        if (gunzip->phase == AT_PADDING) return damaged(gunzip, "other data follows it", err);
        gunzip->phase = INSIDE;
    }
    const int64_t left = in_bytes - unpacked->used;
    stream->next_in = (Bytef *)in + unpacked->used;
    stream->avail_in = (uInt)left;
    stream->next_out = out;
    stream->avail_out = (uInt)out_bytes;
    const int code = inflate(stream, Z_NO_FLUSH);
    unpacked->used += left - stream->avail_in;
    unpacked->made = out_bytes - stream->avail_out;
    gunzip->offset += left - stream->avail_in;
    unpacked->between = code == Z_STREAM_END;
    if (code == Z_STREAM_END) {
        gunzip->phase = AT_HEADER;
        gunzip->any = true;
        HR_ASSERT(inflateReset(stream) == Z_OK);
        return HR_OK;
    }
    /* Z_BUF_ERROR: no progress without more input or output space, which is not an error here. */
    if (code == Z_OK || code == Z_BUF_ERROR) return HR_OK;
    HR_ASSERT(code != Z_MEM_ERROR && code != Z_STREAM_ERROR);
    return damaged(gunzip, stream->msg ? stream->msg : "it needs a dictionary", err);
}
