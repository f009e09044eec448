/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a tokenizer: it loads in exactly its planned memory and encodes and decodes a
 * text, or is refused with a message of one line. */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tokenizer/encoder.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

enum { PIECE = 4096, ROOM_MOST = 256 << 20 };

static void *room(int64_t bytes)
{
    return aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
}

typedef struct {
    const hr_tokenizer *tokenizer;
    int64_t ids;
} sink_state;

static bool sink(void *context, const uint32_t *ids, int64_t count)
{
    sink_state *t = context;
    static uint8_t out[1 << 20];
    hr_decoder decoder = { .tokenizer = t->tokenizer };
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++)
        if (ids[i] >= (uint64_t)t->tokenizer->ids) __builtin_trap();
    hr_decoder_add(&decoder, ids, count, out, sizeof out, &used);
    hr_decoder_end(&decoder, out);
    t->ids += count;
    return true;
}

static void encode(const hr_tokenizer *tokenizer)
{
    static const char text[] = "a ab abc  the <|x|>\n12345 caf\xc3\xa9 e\xcc\x81 \xf0\x9f\x99\x82 "
                               "it's \xe2\x96\x81the  <s> "
                               "\xef\xac\x81\xc2\xbd\xe2\x80\x8b\xef\xb7\xba ``x'' ";
    const int64_t bytes = hr_encoder_bytes(tokenizer, PIECE);
    void *memory = room(bytes);
    hr_region region = hr_region_over(memory, bytes);
    sink_state t = { tokenizer, 0 };
    hr_encoder *encoder;
    hr_error err;
    int64_t taken;
    if (hr_encoder_place(&encoder, &region, tokenizer, PIECE, sink, &t, &err) != HR_OK)
        __builtin_trap();
    hr_encoder_begin(encoder, 0, HR_SPECIAL_AROUND);
    const hr_status status = hr_encoder_take(encoder, (const uint8_t *)text, 0, sizeof text - 1,
                                             true, &taken, &err);
    if (status != HR_OK && status != HR_CORRUPT) __builtin_trap();
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static int file = -1;
    static char path[64];
    static hr_tokenizer_source source;
    hr_error err = { HR_OK, "" };
    if (file < 0) {
        file = memfd_create("tokenizer", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (file < 0 || ftruncate(file, 0) || pwrite(file, bytes, count, 0) != (ssize_t)count)
        return -1;
    hr_status status = hr_tokenizer_probe(&source, path, NULL, &err);
    if (status == HR_OK && source.table_bytes + source.scratch_bytes < ROOM_MOST) {
        void *tables = room(source.table_bytes), *scratch = room(source.scratch_bytes);
        hr_region region = hr_region_over(tables, source.table_bytes);
        hr_tokenizer *tokenizer;
        status = hr_tokenizer_place(
            &tokenizer, &region, hr_region_over(scratch, source.scratch_bytes), &source, 0, &err);
        free(scratch);
        if (status == HR_OK) encode(tokenizer);
        free(tables);
    }
    if ((status != HR_OK && status != HR_CORRUPT) || err.status != status ||
        strchr(err.message, '\n'))
        __builtin_trap();
    return 0;
}
