/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as the tokenizer.json or merges.txt that a new tokenizer starts from: they are
 * accepted and merge a word, or are refused with a message of one line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/train/inherit.h"
#include "tokenizer/train/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check(hr_status status, const hr_error *err)
{
    if (status == HR_OK) return;
    if ((status != HR_CORRUPT && status != HR_NO_FIT) || err->status != status ||
        strchr(err->message, '\n'))
        __builtin_trap();
}

static void read_pipeline(const uint8_t *bytes, size_t count)
{
    const int64_t room = hr_pipeline_bytes((int64_t)count);
    hr_region region = hr_region_over(aligned_alloc(64, (size_t)(room + 63) / 64 * 64), room);
    char *text = malloc(count + 1);
    hr_pipeline pipeline;
    hr_error err = { HR_OK, "" };
    memcpy(text, bytes, count);
    text[count] = 0;
    check(hr_pipeline_read(&pipeline, &region, "f", text, (int64_t)count, &err), &err);
    free(text);
    free(region.base);
}

static void inherit(const uint8_t *bytes, size_t count)
{
    static const uint8_t word[] =
        "the cat sat on the mat, the end; aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const char *text = (const char *)bytes;
    const int64_t lines = hr_inherited_lines(text, (int64_t)count, INT64_MAX);
    const int64_t room = hr_inherited_bytes(lines);
    hr_region region = hr_region_over(aligned_alloc(64, (size_t)(room + 63) / 64 * 64), room);
    hr_inherited in;
    hr_error err = { HR_OK, "" };
    const hr_status status = hr_inherited_place(&in, &region, "f", text, (int64_t)count, INT64_MAX,
                                                INT64_MAX, &err);
    check(status, &err);
    if (status == HR_OK) {
        uint32_t tokens[sizeof word];
        uint8_t *there = calloc((size_t)in.count + 1, 1);
        void *scratch = malloc((size_t)hr_inherited_scratch_bytes(sizeof word));
        int64_t sum = 0;
        for (int64_t at = 0, atom; at < (int64_t)sizeof word; at += atom) {
            atom = hr_inherited_atom(&in, word + at, (int64_t)sizeof word - at);
            const int64_t got = hr_inherited_merge_atom(&in, there, word + at, atom, scratch,
                                                        tokens);
            for (int64_t i = 0; i < got; i++)
                sum += tokens[i] < 256 ? 1 : in.vocabulary.tokens[tokens[i]].characters;
        }
        if (sum != (int64_t)sizeof word) __builtin_trap();
        free(there);
        free(scratch);
    }
    free(region.base);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    if (count && bytes[0] == '{') read_pipeline(bytes, count);
    else inherit(bytes, count);
    return 0;
}
