/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a file of questions: the sequences fit their length and score every byte of a
 * choice, or the file is refused with a message of one line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "evaluate/multiple_choice.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check_rows(const hr_sequences *source)
{
    int32_t *ids = malloc((size_t)source->length * sizeof *ids);
    int32_t *targets = malloc((size_t)source->length * sizeof *targets);
    hr_multiple_choice_best best = { 0 };
    hr_evaluate_result result = { 0 };
    for (int64_t row = 0; row < source->rows; row++) {
        int64_t asked = 0;
        if (hr_multiple_choice_read(source, row, ids, targets, NULL) != HR_OK) abort();
        for (int64_t t = 0; t < source->length; t++) {
            if (ids[t] < 0 || ids[t] > UINT8_MAX || targets[t] < -1) abort();
            asked += targets[t] >= 0;
        }
        if (asked != source->choices[row].bytes) abort();
        hr_multiple_choice_record(source, row, (double)asked, asked, &best, &result);
    }
    if (result.questions != source->question_count || result.right > result.questions) abort();
    free(targets);
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    hr_error err = { HR_OK, "" };
    hr_sequences source = { .file = -1, .ids.file = -1, .vocabulary = UINT8_MAX + 1 };
    char *text = malloc(count + !count);
    memcpy(text, bytes, count);
    const int64_t table_bytes = hr_multiple_choice_bytes(text, (int64_t)count);
    void *tables = aligned_alloc(64, ((size_t)table_bytes + 63) / 64 * 64);
    hr_region region = hr_region_over(tables, table_bytes);
    const hr_status status = hr_multiple_choice_open(&source, "a file", text, (int64_t)count,
                                                     &region, &err);
    if (status == HR_OK) check_rows(&source);
    else if (status != HR_CORRUPT || !err.message[0] || strchr(err.message, '\n')) abort();
    free(tables);
    free(text);
    return 0;
}
