/* SPDX-License-Identifier: Apache-2.0 */
/* input_stream_test.c - compressed files read back exactly with any buffer size; truncated or
 * damaged ones are refused. */
#define ZSTD_STATIC_LINKING_ONLY
#include "corpus_case.h"

#include <zlib.h>
#include <zstd.h>

#include "base/random.h"
#include "corpus/input_stream.h"

enum { MOST = 3 << 20 };

static hr_folder folder;
static hr_input_stream input_stream;
static hr_guard guard;
static uint8_t content[MOST], packed[2 * MOST], out[MOST];

static int set_up(void **state)
{
    (void)state;
    folder = hr_folder_open();
    const int64_t bytes = hr_input_stream_bytes(true, true);
    hr_region region = hr_region_over(hr_guard_open(&guard, bytes), bytes);
    hr_input_stream_place(&input_stream, &region, true, true);
    for (int64_t i = 0; i < MOST; i++) { /* compresses to about a half */
        const uint64_t random = hr_random_mix((uint64_t)i / 3);
        content[i] = (uint8_t)(random % 7 ? 'a' + random % 19 : random >> 8);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hr_guard_close(&guard);
    hr_folder_close(&folder);
    return 0;
}

static int64_t gzip(const uint8_t *from, int64_t bytes, uint8_t *to, int level)
{
    z_stream stream = { 0 };
    assert_int_equal(deflateInit2(&stream, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)from;
    stream.avail_in = (uInt)bytes;
    stream.next_out = to;
    stream.avail_out = MOST;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    const int64_t made = (int64_t)stream.total_out;
    deflateEnd(&stream);
    return made;
}

static int64_t zstd(const uint8_t *from, int64_t bytes, uint8_t *to, int window_log)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 3);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    if (window_log) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    ZSTD_inBuffer in = { from, (size_t)bytes, 0 };
    ZSTD_outBuffer to_buffer = { to, MOST, 0 };
    while (ZSTD_compressStream2(context, &to_buffer, &in, ZSTD_e_continue) > 0 && in.pos < in.size)
        ;
    assert_int_equal(ZSTD_compressStream2(context, &to_buffer, &in, ZSTD_e_end), 0);
    ZSTD_freeCCtx(context);
    return (int64_t)to_buffer.pos;
}

/* Reads the file into `out` in parts of `part` bytes. */
static hr_status read_all(hr_file_packing packing, int64_t part, int64_t *total, hr_error *err)
{
    const char *path = hr_folder_path(&folder, "packed");
    int64_t count = part;
    *total = 0;
    hr_input_stream_begin(&input_stream, "reading", NULL, 0);
    hr_status status = hr_input_stream_open(&input_stream, path, packing, err);
    while (status == HR_OK && count == part) {
        status = hr_input_stream_read(&input_stream, out + *total, part, &count, err);
        if (status == HR_OK) *total += count;
    }
    hr_input_stream_close(&input_stream);
    return status;
}

static void assert_comes_back(hr_file_packing packing, int64_t packed_bytes, int64_t bytes)
{
    static const int64_t parts[] = { 1 << 20, 262144, 4099, 257 };
    hr_text_hash hash = { 0 };
    hr_error err = { HR_OK, "" };
    hr_folder_write(hr_folder_path(&folder, "packed"), packed, packed_bytes);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int64_t total;
        if (read_all(packing, parts[i], &total, &err) != HR_OK) fail_msg("%s", err.message);
        assert_int_equal(total, bytes);
        assert_memory_equal(out, content, (size_t)bytes);
        /* The hash does not depend on how the file is read. */
        if (i) assert_true(hr_text_hash_equal(hash, hr_input_stream_hash(&input_stream)));
        hash = hr_input_stream_hash(&input_stream);
    }
}

static void compressed_content_is_read_in_parts_of_any_size(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 1, 100, 65536, 1000003 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_comes_back(HR_FILE_GZIP, gzip(content, sizes[i], packed, 6), sizes[i]);
        assert_comes_back(HR_FILE_GZIP, gzip(content, sizes[i], packed, 0), sizes[i]);
        assert_comes_back(HR_FILE_ZSTD, zstd(content, sizes[i], packed, 0), sizes[i]);
    }
    memcpy(packed, content, 70000);
    assert_comes_back(HR_FILE_PLAIN, 70000, 70000);
    assert_comes_back(HR_FILE_PLAIN, 0, 0);
    assert_comes_back(HR_FILE_GZIP, gzip(content, 0, packed, 6), 0);
    assert_comes_back(HR_FILE_ZSTD, zstd(content, 0, packed, 0), 0);
}

static void concatenated_streams_are_one_content(void **state)
{
    (void)state;
    int64_t bytes = 0;
    for (int64_t at = 0, part = 1; at < 400000; at += part, part = 3 * part + 7) {
        if (at + part > 400000) part = 400000 - at;
        bytes += gzip(content + at, part, packed + bytes, 6);
    }
    memset(packed + bytes, 0, 1000); /* zero padding, as on tapes */
    assert_comes_back(HR_FILE_GZIP, bytes + 1000, 400000);
    bytes = zstd(content, 1000, packed, 0);
    memcpy(packed + bytes, "\x50\x2a\x4d\x18\x03\0\0\0abc", 11); /* a skippable frame */
    bytes += 11;
    bytes += zstd(content + 1000, 299000, packed + bytes, 0);
    assert_comes_back(HR_FILE_ZSTD, bytes, 300000);
}

static void assert_file_refused(hr_file_packing packing, const char *sentence)
{
    int64_t total;
    hr_error err = { HR_OK, "" };
    const hr_status status = read_all(packing, 4096, &total, &err);
    hr_corpus_case_assert_refused(status, &err, HR_CORRUPT, sentence);
}

static void assert_refused(hr_file_packing packing, int64_t packed_bytes, const char *sentence)
{
    hr_folder_write(hr_folder_path(&folder, "packed"), packed, packed_bytes);
    assert_file_refused(packing, sentence);
}

/* Truncates the file byte by byte; rewriting it each time would wait for the disk. */
static void assert_cut_is_refused(hr_file_packing packing, int64_t packed_bytes,
                                  const char *sentence)
{
    const char *path = hr_folder_path(&folder, "packed");
    char place[512];
    strcpy(place, path);
    hr_folder_write(place, packed, packed_bytes);
    while (packed_bytes-- > 0) {
        assert_int_equal(truncate(place, packed_bytes), 0);
        assert_file_refused(packing, sentence);
    }
}

static void a_truncated_stream_is_refused(void **state)
{
    (void)state;
    assert_cut_is_refused(HR_FILE_GZIP, gzip(content, 3000, packed, 6),
                          "in the middle of its gzip data");
    assert_cut_is_refused(HR_FILE_ZSTD, zstd(content, 3000, packed, 0),
                          "in the middle of its zstd data");
}

/* A changed bit may be in a name or a timestamp that has no effect; then the content is unchanged.
 */
static void a_changed_bit_is_detected_or_has_no_effect(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        const int64_t bytes = kind ? zstd(content, 2000, packed, 0)
                                   : gzip(content, 2000, packed, 6);
        int64_t found = 0;
        hr_folder_write(hr_folder_path(&folder, "packed"), packed, bytes);
        FILE *file = fopen(hr_folder_path(&folder, "packed"), "r+b");
        assert_non_null(file);
        for (int64_t bit = 0; bit < 8 * bytes; bit++) {
            int64_t total;
            hr_error err = { HR_OK, "" };
            const uint8_t changed = (uint8_t)(packed[bit / 8] ^ 1 << bit % 8);
            assert_int_equal(pwrite(fileno(file), &changed, 1, bit / 8), 1);
            const hr_status status = read_all(kind ? HR_FILE_ZSTD : HR_FILE_GZIP, 4096, &total,
                                              &err);
            assert_int_equal(pwrite(fileno(file), &packed[bit / 8], 1, bit / 8), 1);
            found += status == HR_CORRUPT;
            if (status == HR_CORRUPT) continue;
            assert_int_equal(status, HR_OK);
            assert_int_equal(total, 2000);
            assert_memory_equal(out, content, 2000);
        }
        fclose(file);
        assert_true(found > 7 * bytes);
    }
}

static void uncompressed_content_is_refused(void **state)
{
    (void)state;
    memcpy(packed, content, 5000);
    assert_refused(HR_FILE_GZIP, 5000, "damaged gzip data near byte");
    assert_refused(HR_FILE_ZSTD, 5000, "damaged zstd data near byte");
    const int64_t bytes = gzip(content, 100, packed, 6);
    memcpy(packed + bytes, "\0\0more", 6);
    assert_refused(HR_FILE_GZIP, bytes + 6, "other data follows it");
    memcpy(packed + bytes, "more", 4);
    assert_refused(HR_FILE_GZIP, bytes + 4, "damaged gzip data near byte");
}

static void the_largest_window_is_read_and_a_larger_one_is_refused(void **state)
{
    (void)state;
    assert_comes_back(HR_FILE_ZSTD, zstd(content, MOST / 2, packed, 23), MOST / 2);
    assert_refused(HR_FILE_ZSTD, zstd(content, MOST / 2, packed, 24),
                   "was packed with a window of more than 8388608 bytes, the largest that is read; "
                   "zstd -dc --long=31 FILE | zstd -19 -o NEW packs it anew");
    /* the decoder still works */
    assert_comes_back(HR_FILE_ZSTD, zstd(content, 500, packed, 0), 500);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(compressed_content_is_read_in_parts_of_any_size),
        TEST(concatenated_streams_are_one_content),
        TEST(a_truncated_stream_is_refused),
        TEST(a_changed_bit_is_detected_or_has_no_effect),
        TEST(uncompressed_content_is_refused),
        TEST(the_largest_window_is_read_and_a_larger_one_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
