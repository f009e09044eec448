/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as rows of tokens: ids and targets are in the vocabulary and their counts agree,
 * or the file is refused with a message of one line. */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checkpoint/token_rows.h"

enum { V = 100, NUMBERS_MOST = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check_message(hr_status status, const hr_error *err)
{
    if (status != HR_CORRUPT || err->status != status || strchr(err->message, '\n'))
        __builtin_trap();
}

/* Returns the number of targets of a row; -1: it was refused. */
static int64_t read_row(const hr_token_rows *rows, int64_t row)
{
    static int32_t ids[NUMBERS_MOST], targets[NUMBERS_MOST];
    hr_error err = { HR_OK, "" };
    int64_t targets_count = -1, counted = 0;
    const hr_status status = hr_token_rows_read(rows, row, ids, targets, &targets_count, &err);
    if (status != HR_OK) {
        check_message(status, &err);
        return -1;
    }
    for (int64_t t = 0; t < rows->length; t++) {
        if (ids[t] < 0 || ids[t] >= V || targets[t] < -1 || targets[t] >= V) __builtin_trap();
        counted += targets[t] >= 0;
    }
    if (counted != targets_count) __builtin_trap();
    return counted;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static int file = -1;
    static char path[64];
    hr_token_rows rows = { .file = -1, .vocabulary = V };
    hr_token_rows_facts facts = { 0 };
    hr_error err = { HR_OK, "" };
    if (file < 0) {
        file = memfd_create("rows", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (file < 0 || ftruncate(file, 0) || pwrite(file, bytes, count, 0) != (ssize_t)count)
        return -1;
    hr_status status = hr_token_rows_open(&rows, path, &err);
    if (status != HR_OK) {
        check_message(status, &err);
        return 0;
    }
    if (rows.length > NUMBERS_MOST || rows.rows > NUMBERS_MOST) __builtin_trap();
    int64_t sum = 0;
    bool wrong = false;
    for (int64_t row = 0; row < rows.rows; row++) {
        const int64_t targets = read_row(&rows, row);
        wrong |= targets < 0;
        sum += targets;
    }
    status = hr_token_rows_check(&rows, NULL, &facts, &err);
    if (status != HR_OK) check_message(status, &err);
    else if (wrong || facts.targets != sum) __builtin_trap();
    hr_token_rows_close(&rows);
    return 0;
}
