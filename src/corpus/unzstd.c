/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/unzstd.c - a Zstandard decoder in fixed memory, which never allocates more. */
#include "corpus/unzstd.h"

#include <string.h>

#define ZSTD_STATIC_LINKING_ONLY /* declares decoders in the caller's memory */
#include <zstd.h>
#include <zstd_errors.h>

#include "base/assert.h"
#include "base/checked.h"

struct hr_unzstd {
    ZSTD_DStream *stream;
    const char *path;
    int64_t offset; /* input bytes consumed, for error messages */
    bool between;   /* a frame has ended, and no other has begun */
};

static int64_t head_bytes(void)
{
    return hr_round_up(sizeof(hr_unzstd), 64);
}

int64_t hr_unzstd_bytes(void)
{
    return head_bytes() +
           hr_round_up((int64_t)ZSTD_estimateDStreamSize(HR_UNZSTD_WINDOW_BYTES), 64);
}

hr_unzstd *hr_unzstd_place(void *memory)
{
    hr_unzstd *unzstd = memory;
    memset(unzstd, 0, sizeof *unzstd);
    unzstd->stream = ZSTD_initStaticDStream((uint8_t *)memory + head_bytes(),
                                            (size_t)(hr_unzstd_bytes() - head_bytes()));
    HR_ASSERT(unzstd->stream);
    HR_ASSERT(!ZSTD_isError(
        ZSTD_DCtx_setParameter(unzstd->stream, ZSTD_d_windowLogMax, HR_UNZSTD_WINDOW_LOG)));
    return unzstd;
}

void hr_unzstd_begin(hr_unzstd *unzstd, const char *path)
{
    unzstd->path = path;
    unzstd->offset = 0;
    unzstd->between = false;
    HR_ASSERT(!ZSTD_isError(ZSTD_DCtx_reset(unzstd->stream, ZSTD_reset_session_only)));
}

static hr_status refuse(const hr_unzstd *unzstd, size_t code, hr_error *err)
{
    const ZSTD_ErrorCode error = ZSTD_getErrorCode(code);
    if (error == ZSTD_error_frameParameter_windowTooLarge)
        return hr_fail(err, HR_CORRUPT,
                       "%s: was packed with a window of more than %d bytes, the largest that is "
                       "read; zstd -dc --long=31 FILE | zstd -19 -o NEW packs it anew",
                       unzstd->path, HR_UNZSTD_WINDOW_BYTES);
    return hr_fail(err, HR_CORRUPT, "%s: damaged zstd data near byte %lld: %s", unzstd->path,
                   (long long)unzstd->offset, ZSTD_getErrorName(code));
}

hr_status hr_unzstd_step(hr_unzstd *unzstd, const uint8_t *in, int64_t in_bytes, uint8_t *out,
                         int64_t out_bytes, hr_unpacked *unpacked, hr_error *err)
{
    ZSTD_inBuffer input = { in, (size_t)in_bytes, 0 };
    ZSTD_outBuffer output = { out, (size_t)out_bytes, 0 };
    const size_t code = ZSTD_decompressStream(unzstd->stream, &output, &input);
    unzstd->offset += (int64_t)input.pos;
    if (ZSTD_isError(code)) return refuse(unzstd, code, err);
    /* 0: the frame is complete and all of its output was returned. */
    if (input.pos || output.pos) unzstd->between = code == 0;
    *unpacked = (hr_unpacked){ (int64_t)input.pos, (int64_t)output.pos, unzstd->between };
    return HR_OK;
}
