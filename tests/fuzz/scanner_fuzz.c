/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as text for the pre-tokenizer: pieces are in order, inside the text, not empty,
 * and independent of the windows. The first byte selects the pattern, the second the window size.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/pretokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

enum { MOST = 4096 };

static hr_pretokenizer_desc describe(int kind)
{
    static const char *const patterns[] = { hr_pattern_gpt2,
                                            hr_pattern_cl100k,
                                            hr_pattern_qwen,
                                            hr_pattern_o200k,
                                            hr_pattern_super_one,
                                            hr_pattern_super_two,
                                            hr_pattern_super_paper_one,
                                            hr_pattern_super_paper_two };
    hr_pretokenizer_desc desc = { .stage_count = 1 };
    const int pattern = kind % 8;
    desc.stages[0] = (hr_pretokenizer_stage){ .kind = HR_PRETOKENIZER_SPLIT,
                                              .behavior = (hr_pretokenizer_behavior)(kind / 8 % 5),
                                              .invert = kind / 40 % 2,
                                              .pattern = patterns[pattern],
                                              .pattern_bytes = (int64_t)strlen(patterns[pattern]) };
    if (kind / 80 % 2) {
        desc.stages[1] = desc.stages[0];
        desc.stages[0] = (hr_pretokenizer_stage){ .kind = HR_PRETOKENIZER_DIGITS,
                                                  .behavior = kind / 160
                                                                  ? HR_PRETOKENIZER_CONTIGUOUS
                                                                  : HR_PRETOKENIZER_ISOLATED };
        desc.stage_count = 2;
    }
    return desc;
}

/* Windows are copies, so reads outside of them are detected. */
static int64_t cut_all(hr_pretokenizer_cursor *cut, const uint8_t *text, int64_t bytes,
                       int64_t step, hr_piece *pieces)
{
    int64_t piece_count = 0, begin = 0, end = 0, count, last = 0;
    hr_error err;
    hr_pretokenizer_cursor_begin(cut);
    for (;;) {
        end = step && end + step < bytes ? end + step : bytes;
        uint8_t *copy = malloc((size_t)(end - begin) + 1);
        memcpy(copy, text + begin, (size_t)(end - begin));
        hr_pretokenizer_cursor_window(cut, copy, 0, end - begin, end == bytes);
        do {
            if (hr_pretokenizer_cursor_next(cut, pieces + piece_count, 7, &count, &err) != HR_OK)
                __builtin_trap();
            for (int64_t i = 0; i < count; i++, piece_count++) {
                pieces[piece_count].begin += (uint32_t)begin;
                pieces[piece_count].end += (uint32_t)begin;
                if (pieces[piece_count].begin < last ||
                    pieces[piece_count].end <= pieces[piece_count].begin ||
                    pieces[piece_count].end > bytes)
                    __builtin_trap();
                last = pieces[piece_count].end;
            }
        } while (count);
        free(copy);
        if (end == bytes) return piece_count;
        begin += hr_pretokenizer_cursor_done(cut);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static hr_piece whole[MOST + 8], windows[MOST + 8];
    static _Alignas(64) uint8_t memory[1 << 16];
    if (count < 3 || count > MOST) return 0;
    const hr_pretokenizer_desc desc = describe(bytes[0] | (bytes[1] & 1) << 8);
    hr_region region = hr_region_over(memory, sizeof memory);
    hr_pretokenizer *cutter;
    hr_pretokenizer_cursor *cut;
    hr_error err;
    if (hr_pretokenizer_place(&cutter, &region, &desc, 0, &err) != HR_OK ||
        hr_pretokenizer_cursor_place(&cut, &region, cutter, &err) != HR_OK)
        __builtin_trap();
    const int64_t at_once = cut_all(cut, bytes + 2, (int64_t)count - 2, 0, whole);
    const int64_t in_windows = cut_all(cut, bytes + 2, (int64_t)count - 2, 1 + (bytes[1] >> 1),
                                       windows);
    /* Invalid UTF-8 at the end of a window may be split differently; valid UTF-8 is not. */
    for (size_t i = 2; i < count; i++)
        if (bytes[i] >= 0x80) return 0;
    if (at_once != in_windows || memcmp(whole, windows, (size_t)at_once * sizeof *whole))
        __builtin_trap();
    return 0;
}
