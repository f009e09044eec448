/* SPDX-License-Identifier: Apache-2.0 */
/* tests/text/batch_case.h - shards of consecutive ids, and batches of them in guarded memory. */
#ifndef HR_TESTS_TEXT_BATCH_CASE_H
#define HR_TESTS_TEXT_BATCH_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config/config.h"
#include "guard.h"
#include "support/in_folder.h"
#include "text/batch.h"
#include "text/shard.h"

static hr_guard guard;

/* Writes a shard whose token i has id first + i. */
static inline void write_shard_from(const char *name, int64_t tokens, uint32_t first)
{
    static uint32_t ids[1 << 17];
    hr_shard_writer *writer = NULL;
    hr_error err;
    void *memory = malloc((size_t)hr_shard_writer_bytes());
    const hr_shard_info info = { .kind = HR_TOKENIZER_WORDS };
    const hr_shard_desc desc = {
        .directory = folder.path, .name = name, .vocab_size = 1 << 17, .document_end = -1
    };
    for (int64_t i = 0; i < tokens; i++) ids[i] = first + (uint32_t)i;
    assert_int_equal(hr_shard_begin(&writer, memory, &desc, &err), HR_OK);
    assert_int_equal(hr_shard_append(writer, ids, tokens, &err), HR_OK);
    assert_int_equal(hr_shard_commit(writer, &info, &err), HR_OK);
    free(memory);
}

static inline void write_shard(int64_t tokens)
{
    write_shard_from("ids", tokens, 0);
}

static inline hr_batch_desc describe(int64_t T, int64_t batch, bool training)
{
    return (hr_batch_desc){ .shard = hr_folder_path(&folder, "ids"),
                            .name = "data.train",
                            .vocab_size = 1 << 17,
                            .T = T,
                            .batch = batch,
                            .training = training,
                            .seed = 5 };
}

static inline hr_batches *open_batches(const hr_batch_desc *desc)
{
    hr_batches *batches = NULL;
    hr_error err;
    void *memory = hr_guard_open(&guard, hr_batches_bytes(1));
    assert_int_equal(hr_batches_open(&batches, memory, desc, &err), HR_OK);
    return batches;
}

static inline void close_batches(hr_batches *batches)
{
    hr_batches_close(&batches);
    hr_guard_close(&guard);
}

#endif
