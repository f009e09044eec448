/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/output.c - writes logits directly and loss lines through a buffer. */
#include "evaluate/output.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/element.h"
#include "base/writer.h"

enum { LENGTH_BYTES = 8 };

const char hr_logits_first[] = "{\"__metadata__\":{\"format\":\"pt\"},\"logits\":{";
const char hr_losses_first[] = "{\"sequence\": ";
_Static_assert((int)LENGTH_BYTES == (int)HR_LOGITS_FIRST_AT,
               "the length of the header comes first");

bool hr_logits_are_in(const char *path)
{
    char text[sizeof hr_logits_first - 1];
    int file;
    int64_t bytes;
    hr_error ignored;
    if (hr_file_open(path, &file, &bytes, &ignored) != HR_OK) return false;
    const bool same = hr_file_read(file, path, LENGTH_BYTES, text, sizeof text, &ignored) ==
                          HR_OK &&
                      !memcmp(text, hr_logits_first, sizeof text);
    hr_file_close(&file);
    return same;
}

hr_status hr_logits_begin(hr_file_out *out, const char *path, int64_t sequences, int64_t length,
                          int64_t vocabulary, hr_error *err)
{
    enum { ALIGN = 64, TEXT_BYTES = 512 };
    char text[TEXT_BYTES];
    hr_writer w = { text + LENGTH_BYTES, TEXT_BYTES - LENGTH_BYTES };
    int64_t bytes = vocabulary;
    if (!hr_checked_mul(bytes, sequences, &bytes) || !hr_checked_mul(bytes, length, &bytes) ||
        !hr_checked_mul(bytes, (int64_t)sizeof(float), &bytes))
        return hr_fail(err, HR_USAGE, "logits of %lld x %lld tokens have more than 2^63 bytes",
                       (long long)sequences, (long long)length);
    hr_put(&w, "%s\"dtype\":\"F32\",\"shape\":[%lld,%lld,%lld],\"data_offsets\":[0,%lld]}}",
           hr_logits_first, (long long)sequences, (long long)length, (long long)vocabulary,
           (long long)bytes);
    while ((w.used + LENGTH_BYTES) % ALIGN && !w.cut) hr_put(&w, " ");
    HR_ASSERT(!w.cut);
    for (int32_t i = 0; i < LENGTH_BYTES; i++) text[i] = (char)((uint64_t)w.used >> (8 * i));
    hr_status status = hr_file_begin_path(out, path, err);
    if (status == HR_OK) status = hr_file_reserve(out, LENGTH_BYTES + w.used + bytes, err);
    if (status == HR_OK) status = hr_file_append(out, text, LENGTH_BYTES + w.used, err);
    return status;
}

hr_status hr_logits_add(hr_file_out *out, const void *logits, hr_dtype dtype, int64_t count,
                        float *staging, hr_error *err)
{
    const int64_t held = HR_LOGITS_STAGING_BYTES / (int64_t)sizeof *staging;
    if (dtype == HR_F32) return hr_file_append(out, logits, count * (int64_t)sizeof(float), err);
    for (int64_t first = 0; first < count; first += held) {
        const int64_t here = hr_min(held, count - first);
        for (int64_t i = 0; i < here; i++) staging[i] = hr_element_get(logits, first + i, dtype);
        const hr_status status = hr_file_append(out, staging, here * (int64_t)sizeof *staging, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

static hr_status flush(hr_losses_out *out, hr_error *err)
{
    const int64_t used = out->used;
    out->used = 0;
    return hr_file_append(&out->file, out->text, used, err);
}

hr_status hr_losses_add(hr_losses_out *out, int64_t sequence, int64_t position, int32_t id,
                        double loss, hr_error *err)
{
    enum { LINE_BYTES = 256 };
    if (out->used > HR_LOSSES_TEXT_BYTES - LINE_BYTES) {
        const hr_status status = flush(out, err);
        if (status != HR_OK) return status;
    }
    hr_writer w = { out->text + out->used, LINE_BYTES };
    hr_put(&w, "%s%lld, \"position\": %lld, \"id\": %d, \"loss\": %.12g}\n", hr_losses_first,
           (long long)sequence, (long long)position, id, loss);
    out->used += w.used;
    return HR_OK;
}

hr_status hr_losses_commit(hr_losses_out *out, hr_error *err)
{
    const hr_status status = flush(out, err);
    return status == HR_OK ? hr_file_commit(&out->file, err) : status;
}
