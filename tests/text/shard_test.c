/* SPDX-License-Identifier: Apache-2.0 */
/* shard_test.c - ids read back as written, and every changed bit of a shard is detected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <xxhash.h>

#include "base/random.h"
#include "config/config.h"
#include "guard.h"
#include "support/folder.h"
#include "text/blocks.h"
#include "text/shard.h"

static hr_folder folder;
static hr_guard guard;
static void *memory;

static int set_up(void **state)
{
    (void)state;
    folder = hr_folder_open();
    const int64_t writer = hr_shard_writer_bytes(), reader = hr_shard_bytes();
    memory = hr_guard_open(&guard, writer > reader ? writer : reader);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hr_guard_close(&guard);
    hr_folder_close(&folder);
    return 0;
}

static uint32_t id_at(int64_t index, int64_t vocab_size)
{
    return (uint32_t)(hr_random_mix((uint64_t)index) % (uint64_t)vocab_size);
}

static hr_status begin(hr_shard_writer **writer, const char *name, int64_t vocab_size,
                       hr_error *err)
{
    const hr_shard_desc desc = {
        .directory = folder.path, .name = name, .vocab_size = vocab_size, .document_end = -1
    };
    return hr_shard_begin(writer, memory, &desc, err);
}

/* Writes a shard of `tokens` ids from id_at. */
static void write_shard(const char *name, int64_t tokens, int64_t vocab_size)
{
    hr_shard_writer *writer = NULL;
    hr_error err;
    uint32_t ids[3000];
    assert_int_equal(begin(&writer, name, vocab_size, &err), HR_OK);
    for (int64_t first = 0; first < tokens; first += 3000) {
        const int64_t count = tokens - first < 3000 ? tokens - first : 3000;
        for (int64_t i = 0; i < count; i++) ids[i] = id_at(first + i, vocab_size);
        assert_int_equal(hr_shard_append(writer, ids, count, &err), HR_OK);
    }
    const hr_shard_info info = { .covered = tokens / 2,
                                 .source_bytes = 12,
                                 .source = { 1, 2 },
                                 .tokenizer = { 3, 4 },
                                 .kind = HR_TOKENIZER_WORDS };
    assert_int_equal(hr_shard_commit(writer, &info, &err), HR_OK);
}

/* Opens a shard, reads the header and all ids. */
static hr_status read_shard(const char *path, hr_error *err)
{
    hr_shard *shard = NULL;
    hr_status status = hr_shard_open(&shard, memory, path, err);
    if (status == HR_OK) status = hr_shard_check(shard, NULL, err);
    hr_shard_close(&shard);
    return status;
}

static void ids_of_each_width_read_back(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 1, 256, 257, 65536, 65537, 200000 };
    static const int64_t widths[] = { 1, 1, 2, 2, 4, 4 };
    static int32_t ids[70000];
    for (int i = 0; i < 6; i++) {
        hr_shard *shard = NULL;
        hr_error err;
        int64_t bytes;
        const int64_t tokens = 69999, blocks = (tokens * widths[i] + 4087) / 4088;
        const char *path = hr_folder_path(&folder, "ids");
        write_shard("ids", tokens, sizes[i]);
        free(hr_folder_read(path, &bytes));
        assert_int_equal(bytes, 4096 * (1 + blocks));
        assert_int_equal(hr_shard_open(&shard, memory, path, &err), HR_OK);
        assert_int_equal(hr_shard_view(shard)->tokens, tokens);
        assert_int_equal(hr_shard_view(shard)->covered, tokens / 2);
        assert_int_equal(hr_shard_view(shard)->vocab_size, sizes[i]);
        assert_int_equal(hr_shard_view(shard)->tokenizer.high, 4);
        for (int64_t first = 0, count = 0; first < tokens; first += count, count = 3 * count + 1) {
            if (count > tokens - first) count = tokens - first;
            ids[count] = -5;
            assert_int_equal(hr_shard_read(shard, first, count, ids, &err), HR_OK);
            for (int64_t t = 0; t < count; t++)
                assert_int_equal(ids[t], id_at(first + t, sizes[i]));
            assert_int_equal(ids[count], -5);
        }
        assert_int_equal(hr_shard_check(shard, NULL, &err), HR_OK);
        hr_shard_close(&shard);
        assert_null(shard);
    }
}

static void one_flipped_bit_anywhere_is_detected(void **state)
{
    (void)state;
    const uint64_t seed = 20241122;
    int64_t bytes;
    const char *path = hr_folder_path(&folder, "ids");
    print_message("seed %llu\n", (unsigned long long)seed);
    write_shard("ids", 5000, 10000);
    char *content = hr_folder_read(path, &bytes);
    FILE *file = fopen(path, "r+b");
    for (int64_t i = 0; i < 4096 * HR_COUNT; i++) {
        hr_error err;
        /* All bits of the header's first 128 bytes, then random bits. */
        const int64_t bit = i < 1024 ? i
                                     : (int64_t)(hr_random_mix(seed + (uint64_t)i) %
                                                 (uint64_t)(bytes * 8));
        const char flipped = (char)(content[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(pwrite(fileno(file), &flipped, 1, bit / 8), 1);
        assert_int_equal(read_shard(path, &err), HR_CORRUPT);
        char block[64];
        snprintf(block, sizeof block, "%s: block %lld ", path, (long long)(bit / 8 / 4096));
        assert_non_null(strstr(err.message, block));
        assert_int_equal(pwrite(fileno(file), &content[bit / 8], 1, bit / 8), 1);
    }
    fclose(file);
    hr_error err;
    assert_int_equal(read_shard(path, &err), HR_OK);
    free(content);
}

static void exchanged_blocks_and_truncated_files_are_detected(void **state)
{
    (void)state;
    int64_t bytes;
    hr_error err;
    const char *path = hr_folder_path(&folder, "ids");
    write_shard("ids", 5000, 10000);
    char *content = hr_folder_read(path, &bytes), *traded = malloc((size_t)bytes);
    memcpy(traded, content, (size_t)bytes);
    memcpy(traded + 4096, content + 8192, 4096);
    memcpy(traded + 8192, content + 4096, 4096);
    hr_folder_write(path, traded, bytes);
    assert_int_equal(read_shard(path, &err), HR_CORRUPT);
    for (int64_t length = 0; length < bytes; length += 512) {
        hr_folder_write(path, content, length);
        assert_int_equal(read_shard(path, &err), HR_CORRUPT);
    }
    hr_folder_write(path, content, bytes);
    assert_int_equal(read_shard(path, &err), HR_OK);
    assert_int_equal(read_shard(hr_folder_path(&folder, "absent"), &err), HR_USAGE);
    assert_int_equal(read_shard(folder.path, &err), HR_USAGE);
    free(content);
    free(traded);
}

/* A shard with valid checksums in which an id is not below the vocabulary's size. */
static void an_id_outside_the_vocabulary_is_detected(void **state)
{
    (void)state;
    hr_shard_writer *writer = NULL;
    hr_error err;
    const uint8_t ids[] = { 0, 1, 2, 9 };
    const hr_shard_info info = { .kind = HR_TOKENIZER_BYTES };
    assert_int_equal(begin(&writer, "ids", 9, &err), HR_OK);
    assert_int_equal(hr_shard_append_bytes(writer, ids, sizeof ids, &err), HR_OK);
    assert_int_equal(hr_shard_commit(writer, &info, &err), HR_OK);
    assert_int_equal(read_shard(hr_folder_path(&folder, "ids"), &err), HR_CORRUPT);
    assert_non_null(
        strstr(err.message, "token id 9 among tokens 0 to 4, and the vocabulary has 9"));
}

static void an_aborted_shard_leaves_no_file(void **state)
{
    (void)state;
    static uint32_t ids[100000];
    hr_shard_writer *writer = NULL;
    hr_error err;
    assert_int_equal(begin(&writer, "ids", 9, &err), HR_OK);
    assert_int_equal(hr_shard_append(writer, ids, 100000, &err), HR_OK);
    assert_int_equal(hr_folder_count(&folder, "ids.tokens"), 0);
    hr_shard_abort(writer);
    assert_int_equal(hr_folder_count(&folder, ""), 0);
    hr_shard_abort(NULL);
}

/* Expected marks of each token, recorded from the same calls. */
typedef struct {
    int32_t ids[40000];
    uint8_t marks[40000];
    int64_t count, documents, longest, masked, ends;
} expected_marks;

static void record(expected_marks *t, int32_t id, uint8_t marks)
{
    t->ids[t->count] = id;
    t->marks[t->count++] = marks;
    t->masked += marks >> 1 & 1;
}

static void assert_marks(const char *path, const expected_marks *t)
{
    static int32_t ids[40001];
    static uint8_t marks[40001];
    hr_shard *shard = NULL;
    hr_error err = { HR_OK, "" };
    if (hr_shard_open(&shard, memory, path, &err) != HR_OK) fail_msg("%s", err.message);
    const hr_shard_info *info = hr_shard_view(shard);
    assert_int_equal(info->tokens, t->count);
    assert_int_equal(info->documents, t->documents);
    assert_int_equal(info->longest, t->longest);
    assert_int_equal(info->masked, t->masked);
    assert_int_equal(info->covered, 5 + t->ends);
    if (hr_shard_check(shard, NULL, &err) != HR_OK) fail_msg("%s", err.message);
    for (int64_t first = 0, count = 1; first < t->count; first += count, count = 5 * count + 3) {
        if (count > t->count - first) count = t->count - first;
        ids[count] = marks[count] = 77;
        assert_int_equal(hr_shard_read(shard, first, count, ids, &err), HR_OK);
        assert_int_equal(hr_shard_marks(shard, first, count, marks, &err), HR_OK);
        assert_memory_equal(ids, t->ids + first, (size_t)count * sizeof *ids);
        assert_memory_equal(marks, t->marks + first, (size_t)count);
        assert_int_equal(ids[count], 77);
        assert_int_equal(marks[count], 77);
    }
    hr_shard_close(&shard);
}

/* Documents of any length, also empty, some partly masked, some discarded at any length. */
static void documents_and_masks_read_back_and_discarded_documents_do_not(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 256, 5000, 200000 };
    static expected_marks t;
    static uint32_t ids[20000];
    uint64_t random = 20261122;
    print_message("seed %llu\n", (unsigned long long)random);
    for (int64_t round = 0; round < 24 * HR_COUNT; round++) {
        const int64_t vocab_size = sizes[round % 3], end = round / 3 % 2 ? 7 : -1;
        const uint32_t holds = round / 6 % 2 ? HR_SHARD_DOCUMENTS | HR_SHARD_MASKS
                                             : HR_SHARD_DOCUMENTS;
        const hr_shard_desc desc = { folder.path, "ids", vocab_size, holds, end };
        hr_shard_writer *writer = NULL;
        hr_error err = { HR_OK, "" };
        memset(&t, 0, sizeof t);
        assert_int_equal(hr_shard_begin(&writer, memory, &desc, &err), HR_OK);
        for (int document = 0; document < 12; document++) {
            random = hr_random_mix(random + 1);
            const int64_t most = random % 4 ? 2500 : random >> 8 & 1 ? 19000 : 1;
            const int64_t count = (int64_t)(random >> 16) % most & INT64_MAX;
            const bool discards = random >> 61 & 1;
            const int64_t masked = holds & HR_SHARD_MASKS ? count / 3 : 0;
            if (t.count + count > 20000 && !discards) continue;
            for (int64_t i = 0; i < count; i++) ids[i] = id_at(document + i, vocab_size);
            hr_shard_document(writer);
            if (holds & HR_SHARD_MASKS) hr_shard_mask(writer, false);
            assert_int_equal(hr_shard_append(writer, ids, masked, &err), HR_OK);
            if (holds & HR_SHARD_MASKS) hr_shard_mask(writer, true);
            assert_int_equal(hr_shard_append(writer, ids + masked, count - masked, &err), HR_OK);
            if (discards) {
                assert_int_equal(hr_shard_discard(writer, &err), HR_OK);
                continue;
            }
            const bool between = count && t.documents && end >= 0;
            if (between) record(&t, (int32_t)end, 0);
            t.ends += between;
            for (int64_t i = 0; i < count; i++)
                record(
                    &t, (int32_t)ids[i],
                    (uint8_t)((i == 0 ? HR_TOKEN_BEGINS : 0) | (i < masked ? HR_TOKEN_MASKED : 0)));
            t.documents += count > 0;
            if (count > t.longest) t.longest = count;
        }
        assert_int_equal(hr_shard_commit(writer, &(hr_shard_info){ .kind = 1, .covered = 5 }, &err),
                         HR_OK);
        assert_marks(hr_folder_path(&folder, "ids"), &t);
    }
}

/* A header with a valid checksum and a wrong number of documents. */
static void a_wrong_number_of_documents_is_detected(void **state)
{
    (void)state;
    hr_shard_writer *writer = NULL;
    hr_error err;
    int64_t bytes;
    const hr_shard_desc desc = { folder.path, "ids", 9, HR_SHARD_DOCUMENTS, -1 };
    const char *path = hr_folder_path(&folder, "ids");
    assert_int_equal(hr_shard_begin(&writer, memory, &desc, &err), HR_OK);
    assert_int_equal(hr_shard_append(writer, (uint32_t[]){ 1, 2, 3 }, 3, &err), HR_OK);
    assert_int_equal(hr_shard_commit(writer, &(hr_shard_info){ .kind = 0 }, &err), HR_OK);
    assert_int_equal(read_shard(path, &err), HR_OK);
    char *content = hr_folder_read(path, &bytes);
    content[8 + 96] = 2; /* the number of documents, in block 0 */
    const uint64_t sum = XXH3_64bits_withSeed(content + 8, HR_BLOCK_PAYLOAD, 0);
    memcpy(content, &sum, 8);
    hr_folder_write(path, content, bytes);
    free(content);
    assert_int_equal(read_shard(path, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "says 2 documents and 0 masked tokens, and has 1 and 0"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(ids_of_each_width_read_back),
        TEST(one_flipped_bit_anywhere_is_detected),
        TEST(exchanged_blocks_and_truncated_files_are_detected),
        TEST(an_id_outside_the_vocabulary_is_detected),
        TEST(an_aborted_shard_leaves_no_file),
        TEST(documents_and_masks_read_back_and_discarded_documents_do_not),
        TEST(a_wrong_number_of_documents_is_detected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
