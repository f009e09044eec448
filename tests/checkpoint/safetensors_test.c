/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_test.c - valid files give the right table of tensors; invalid ones are refused with
 * the right message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "checkpoint/safetensors.h"
#include "support/folder.h"
#include "support/oracle.h"

enum { SEED = 11 };

/* Writes the length, the header, and `data_bytes` of data. */
static void write_file(const char *path, const char *header, int64_t data_bytes)
{
    const int64_t length = (int64_t)strlen(header);
    char *file = calloc(1, (size_t)(8 + length + data_bytes) + 1);
    for (int32_t i = 0; i < 8; i++) file[i] = (char)((uint64_t)length >> (8 * i));
    memcpy(file + 8, header, (size_t)length);
    for (int64_t i = 0; i < data_bytes; i++) file[8 + length + i] = (char)i;
    hr_folder_write(path, file, 8 + length + data_bytes);
    free(file);
}

/* Opens a path in exactly the planned memory. */
typedef struct {
    hr_stored stored;
    void *memory;
    hr_region region;
} opened;

static hr_status open_stored(opened *o, const char *path, hr_error *err)
{
    const int64_t needed = hr_stored_bytes(path), bytes = needed ? needed : 64 << 10;
    *o = (opened){ .memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64) };
    o->region = hr_region_over(o->memory, bytes);
    return hr_stored_open(&o->stored, path, &o->region, err);
}

static void close_stored(opened *o)
{
    hr_stored_close(&o->stored);
    free(o->memory);
}

static void assert_refused(const char *path, hr_status expected, const char *message)
{
    opened o;
    hr_error err;
    const hr_status status = open_stored(&o, path, &err);
    if (status != expected || (status != HR_OK && !strstr(err.message, message)))
        fail_msg("expected %d \"%s\", got %d \"%s\"", expected, message, status,
                 status ? err.message : "");
    assert_null(strchr(err.message, '\n'));
    assert_true(strlen(err.message) < HR_ERROR_BYTES - 1);
    close_stored(&o);
}

/* ---- valid files */

static void a_valid_file_gives_its_table_of_tensors(void **state)
{
    (void)state;
    opened o;
    hr_error err;
    char shape[64];
    hr_folder folder = hr_folder_open();
    const char *path = hr_folder_path(&folder, "model.safetensors");
    write_file(path,
               "{\"__metadata__\":{\"format\":\"pt\"},"
               "\"b\":{\"shape\":[2,3],\"dtype\":\"F16\",\"data_offsets\":[8,20]},"
               "\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
               "\"none\":{\"dtype\":\"F32\",\"shape\":[5,0],\"data_offsets\":[20,20]},"
               "\"one\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[20,21]},"
               "\"four\":{\"dtype\":\"F4\",\"shape\":[3,2],\"data_offsets\":[21,24]}}    ",
               24);
    const char *const paths[] = { path, folder.path };
    for (int32_t i = 0; i < 2; i++) {
        assert_int_equal(open_stored(&o, paths[i], &err), HR_OK);
        assert_int_equal(o.stored.tensor_count, 5);
        const hr_stored_tensor *a = hr_stored_find(&o.stored, "a");
        const hr_stored_tensor *b = hr_stored_find(&o.stored, "b");
        assert_non_null(a);
        assert_string_equal(a->dtype->name, "F32");
        assert_int_equal(a->bytes, 8);
        assert_int_equal(b->offset - a->offset, 8);
        assert_string_equal(hr_stored_shape(b, shape, sizeof shape), "[2, 3]");
        assert_int_equal(hr_stored_find(&o.stored, "none")->bytes, 0);
        assert_int_equal(hr_stored_find(&o.stored, "one")->rank, 0);
        assert_int_equal(hr_stored_find(&o.stored, "four")->bytes, 3);
        assert_null(hr_stored_find(&o.stored, "c"));
        uint8_t first[2];
        const int file = o.stored.files[b->file].file;
        assert_int_equal(hr_file_read(file, path, b->offset, first, 2, &err), HR_OK);
        assert_int_equal(first[0], 8);
        close_stored(&o);
    }
    write_file(path, "{}", 0);
    assert_int_equal(open_stored(&o, path, &err), HR_OK);
    assert_int_equal(o.stored.tensor_count, 0);
    close_stored(&o);
    hr_folder_close(&folder);
}

static void the_oracles_read_as_with_another_reader(void **state)
{
    (void)state;
    static const char *const names[] = { "gpt2", "gpt_neox", "llama_gqa", "qwen3_tied" };
    for (int32_t i = 0; i < 4; i++) {
        char path[512];
        oracle_file oracle = { 0 };
        opened o;
        hr_error err;
        snprintf(path, sizeof path, HR_ORACLES "/hf/%s/model.safetensors", names[i]);
        assert_true(oracle_open(&oracle, path));
        assert_int_equal(open_stored(&o, path, &err), HR_OK);
        assert_int_equal(o.stored.tensor_count,
                         json_object_size(oracle.header) -
                             (json_object_get(oracle.header, "__metadata__") != NULL));
        for (int32_t t = 0; t < o.stored.tensor_count; t++) {
            const hr_stored_tensor *tensor = &o.stored.tensors[t];
            int64_t bytes = 0;
            const uint8_t *data = oracle_tensor(&oracle, "", tensor->name, &bytes);
            assert_non_null(data);
            assert_int_equal(bytes, tensor->bytes);
            assert_int_equal(data - oracle.bytes, tensor->offset);
        }
        close_stored(&o);
        oracle_close(&oracle);
    }
}

/* ---- invalid files */

#define T(name, dtype, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end \
    "]}"

static void an_invalid_header_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int64_t data_bytes;
        const char *message;
    } cases[] = {
        { "{" T("a", "F32", "[2]", 0, 8) "}", 7, "the file is truncated" },
        { "{" T("a", "F32", "[2]", 0, 8) "}", 9, "there are bytes after them" },
        { "{}", 1, "there are bytes after them" },
        { "{" T("a", "F32", "[2]", 0, 8) "," T("b", "F32", "[1]", 12, 16) "}", 16,
          "tensor b begins at data byte 12, and a ends at 8: there is a gap between "
          "them" },
        { "{" T("a", "F32", "[2]", 4, 12) "}", 12,
          "and the header ends at 0: there is a gap between them" },
        { "{" T("a", "F32", "[2]", 0, 8) "," T("b", "F32", "[2]", 4, 12) "}", 12, "they overlap" },
        { "{" T("a", "F32", "[2]", 0, 8) "," T("b", "F32", "[2]", 0, 8) "}", 8, "they overlap" },
        { "{" T("a", "F32", "[3]", 0, 8) "}", 8,
          "tensor a: its shape [3] of F32 needs 12 bytes, its data_offsets are [0, 8]" },
        { "{" T("a", "F32", "[2]", 8, 0) "}", 8, "its data_offsets are [8, 0]" },
        { "{" T("a", "F32", "[2]", 0, 8) "," T("a", "F32", "[1]", 8, 12) "}", 12,
          "has tensor a twice" },
        { "{" T("a", "F32", "[2]", 0, 8) "," T("\\u0061", "F32", "[1]", 8, 12) "}", 12,
          "has tensor a twice" },
        { "{" T("a", "F32", "[4294967296,4294967296]", 0, 8) "}", 8, "is too large" },
        { "{" T("a", "F32", "[9223372036854775807,3]", 0, 8) "}", 8, "is too large" },
        { "{" T("a", "F32", "[9223372036854775808]", 0, 8) "}", 8, "needs non-negative integers" },
        { "{" T("a", "F4", "[3]", 0, 2) "}", 2, "is not a whole number of bytes" },
        { "{" T("a", "F128", "[2]", 0, 8) "}", 8, "unknown dtype \"F128\"" },
        { "{" T("a", "f32", "[2]", 0, 8) "}", 8, "unknown dtype \"f32\"" },
        { "{" T("a", "F32", "[-2]", 0, 8) "}", 8, "its shape needs non-negative integers" },
        { "{" T("a", "F32", "[2.0]", 0, 8) "}", 8, "its shape needs non-negative integers" },
        { "{" T("a", "F32", "[\"2\"]", 0, 8) "}", 8, "its shape needs non-negative integers" },
        { "{" T("a", "F32", "[[2]]", 0, 8) "}", 8, "its shape needs non-negative integers" },
        { "{" T("a", "F32", "2", 0, 8) "}", 8, "wrong type of value" },
        { "{" T("a", "F32", "[1,1,1,1,1,1,1,1,2]", 0, 8) "}", 8, "more than 8 numbers" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]}}", 8,
          "more than 2 numbers" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8,
          "dtype, shape or data_offsets is missing" },
        { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8,
          "dtype, shape or data_offsets is missing" },
        { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
          "the key \"dtype\" occurs twice" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"strides\":[1]}}", 8,
          "the key \"strides\" is not part of the format" },
        { "{\"a\":{\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "wrong type of value" },
        { "{\"a\":7}", 8, "wrong type of value" },
        { "{\"a\\n\":{}}", 0, "a control character in a tensor's name" },
        { "{\"__metadata__\":7}", 0, "wrong type of value" },
        { "{\"__metadata__\":{\"a\":7}}", 0, "wrong type of value" },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "has \"__metadata__\" twice" },
        { "[]", 0, "wrong type of value" },
        { "", 0, "not JSON: unexpected end" },
        { "{\"a\":", 0, "not JSON: unexpected end" },
        { "{} x", 0, "not JSON: more text after the value" },
        { "{\"a\" 1}", 0, "not JSON: no colon after a key" },
        { "{\"a\\q\":1}", 0, "not JSON: an unknown escape" },
        { "{\"a\xff\":1}", 0, "not JSON: bytes that are not UTF-8" },
    };
    hr_folder folder = hr_folder_open();
    const char *path = hr_folder_path(&folder, "model.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(path, cases[i].header, cases[i].data_bytes);
        assert_refused(path, HR_CORRUPT, cases[i].message);
        assert_refused(path, HR_CORRUPT, path); /* the message has the whole path */
        assert_refused(folder.path, HR_CORRUPT, path);
    }
    hr_folder_close(&folder);
}

static void wrong_lengths_are_refused(void **state)
{
    (void)state;
    hr_folder folder = hr_folder_open();
    const char *path = hr_folder_path(&folder, "model.safetensors");
    hr_folder_write(path, "", 0);
    assert_refused(path, HR_CORRUPT, "has 0 bytes");
    hr_folder_write(path, "\2\0\0\0\0\0\0", 7);
    assert_refused(path, HR_CORRUPT, "has 7 bytes");
    hr_folder_write(path, "\3\0\0\0\0\0\0\0{}", 10);
    assert_refused(path, HR_CORRUPT,
                   "its header ends at byte 11, the file at byte 10: the file is truncated");
    hr_folder_write(path, "\1\xe1\xf5\5\0\0\0\0{}", 10); /* 100,000,001 */
    assert_refused(path, HR_CORRUPT, "its header has 100000001 bytes, the limit is 100000000");
    hr_folder_write(path, "\377\377\377\377\377\377\377\377{}", 10);
    assert_refused(path, HR_CORRUPT, "its header has 18446744073709551615 bytes");
    assert_refused(hr_folder_path(&folder, "other"), HR_USAGE, "no such file");
    hr_folder_empty(&folder);
    assert_refused(folder.path, HR_USAGE,
                   "has neither model.safetensors nor model.safetensors.index");
    hr_folder_close(&folder);
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    hr_folder folder = hr_folder_open();
    const char *path = hr_folder_path(&folder, "model.safetensors");
    char *text = calloc(1, 5 * DEPTH + 64);
    strcpy(text, "{\"weight_map\":{},\"a\":");
    const size_t used = strlen(text);
    memset(text + used, '[', DEPTH);
    hr_folder_write(hr_folder_path(&folder, "model.safetensors.index.json"), text,
                    (int64_t)(used + DEPTH));
    assert_refused(folder.path, HR_CORRUPT, "nested more than 32 deep");
    text[used - 5] = '{';
    write_file(path, text + used - 5, 0); /* from "a": on; none of the values is parsed */
    assert_refused(path, HR_CORRUPT, "wrong type of value");
    free(text);
    hr_folder_close(&folder);
}

/* A valid file that is truncated anywhere is refused; one with a random byte in its header is read
 * or refused as corrupt. */
static void truncated_and_damaged_files_are_handled(void **state)
{
    (void)state;
    static const char header[] = "{" T("a", "F32", "[2]", 0, 8) "," T("b", "BF16", "[2,2]", 8,
                                                                      16) "}";
    hr_folder folder = hr_folder_open();
    const char *path = hr_folder_path(&folder, "model.safetensors");
    int64_t bytes;
    write_file(path, header, 16);
    char *whole = hr_folder_read(path, &bytes);
    print_message("seed %d\n", SEED);
    for (int64_t cut = 0; cut < bytes; cut++) {
        hr_folder_write(path, whole, cut);
        assert_refused(path, HR_CORRUPT, "");
    }
    int32_t refused = 0;
    for (int32_t i = 0; i < 500 * HR_COUNT; i++) {
        opened o;
        hr_error err;
        const uint64_t draw = hr_random_mix((uint64_t)(SEED + i));
        char *byte = &whole[draw % (8 + sizeof header - 1)];
        const char kept = *byte;
        *byte = (char)(draw >> 32);
        hr_folder_write(path, whole, bytes);
        const hr_status status = open_stored(&o, path, &err);
        assert_true(status == HR_OK || status == HR_CORRUPT);
        refused += status != HR_OK;
        close_stored(&o);
        *byte = kept;
    }
    assert_in_range(refused, 1, 500 * HR_COUNT - 1);
    free(whole);
    hr_folder_close(&folder);
}

/* ---- shards */

static void write_index(const hr_folder *folder, const char *text)
{
    hr_folder_write(hr_folder_path(folder, "model.safetensors.index.json"), text,
                    (int64_t)strlen(text));
}

static void shards_become_one_table(void **state)
{
    (void)state;
    opened o;
    hr_error err;
    hr_folder folder = hr_folder_open();
    write_file(hr_folder_path(&folder, "m-1.safetensors"), "{" T("b", "F32", "[2]", 0, 8) "}", 8);
    write_file(hr_folder_path(&folder, "m-2.safetensors"),
               "{" T("c", "F32", "[1]", 0, 4) "," T("a", "U8", "[1]", 4, 5) "}", 5);
    write_index(&folder, "{\"metadata\":{\"total_size\":13.0},\"weight_map\":"
                         "{\"a\":\"m-2.safetensors\",\"b\":\"m-1.safetensors\","
                         "\"c\":\"m-2.safetensors\"}}");
    assert_int_equal(open_stored(&o, folder.path, &err), HR_OK);
    assert_true(o.stored.sharded);
    assert_int_equal(o.stored.file_count, 2);
    assert_int_equal(o.stored.tensor_count, 3);
    assert_string_equal(o.stored.files[hr_stored_find(&o.stored, "a")->file].name,
                        "m-2.safetensors");
    assert_string_equal(o.stored.files[hr_stored_find(&o.stored, "b")->file].name,
                        "m-1.safetensors");
    close_stored(&o);

    static const struct {
        const char *index;
        hr_status status;
        const char *message;
    } cases[] = {
        { "{\"weight_map\":{\"a\":\"m-2.safetensors\",\"b\":\"m-1.safetensors\","
          "\"c\":\"m-3.safetensors\"}}",
          HR_USAGE, "m-3.safetensors: no such file, but model.safetensors.index.json" },
        { "{\"weight_map\":{\"a\":\"m-2.safetensors\",\"b\":\"m-1.safetensors\","
          "\"c\":\"m-2.safetensors\",\"a\":\"m-2.safetensors\"}}",
          HR_CORRUPT, "names tensor a twice" },
        { "{\"weight_map\":{\"a\":\"m-2.safetensors\",\"b\":\"m-1.safetensors\","
          "\"c\":\"m-2.safetensors\",\"d\":\"m-1.safetensors\"}}",
          HR_CORRUPT, "m-1.safetensors: has no tensor d, which" },
        { "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-1.safetensors\","
          "\"c\":\"m-2.safetensors\"}}",
          HR_CORRUPT, "m-2.safetensors: holds tensor a, which" },
        { "{\"weight_map\":{\"b\":\"m-1.safetensors\",\"c\":\"m-2.safetensors\"}}", HR_CORRUPT,
          "puts nowhere" },
        { "{\"weight_map\":{\"a\":\"../m-2.safetensors\"}}", HR_CORRUPT,
          "names a shard that is not a file name" },
        { "{\"weight_map\":{\"a\":\"..\"}}", HR_CORRUPT, "names a shard that is not a file name" },
        { "{\"weight_map\":{\"a\":7}}", HR_CORRUPT, "wrong type of value" },
        { "{\"weight_map\":{},\"weight_map\":{}}", HR_CORRUPT, "has \"weight_map\" twice" },
        { "{\"metadata\":{}}", HR_CORRUPT, "has no \"weight_map\"" },
        { "{\"weight_map\":{}}", HR_CORRUPT, "names no tensor" },
        { "{\"weight_map\":{}", HR_CORRUPT, "not JSON" },
        { "7", HR_CORRUPT, "wrong type of value" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_index(&folder, cases[i].index);
        assert_refused(folder.path, cases[i].status, cases[i].message);
        assert_refused(folder.path, cases[i].status, folder.path);
    }
    write_file(hr_folder_path(&folder, "m-1.safetensors"),
               "{" T("b", "F32", "[2]", 0, 8) "," T("a", "U8", "[1]", 8, 9) "}", 9);
    write_index(&folder, "{\"weight_map\":{\"a\":\"m-2.safetensors\",\"b\":\"m-1.safetensors\","
                         "\"c\":\"m-2.safetensors\"}}");
    assert_refused(folder.path, HR_CORRUPT, "has tensor a, which");
    assert_refused(folder.path, HR_CORRUPT, folder.path);
    hr_folder_close(&folder);
}

/* Structural characters inside names and metadata, minimal tensors, and invalid JSON: the planned
 * memory suffices, or the text is refused for its content. */
static void the_planned_memory_suffices_for_any_text(void **state)
{
    (void)state;
    enum { MOST = 4096 };
    static const char *const parts[] = {
        "{\"\":{\"dtype\":\"F4\",\"shape\":[0],\"data_offsets\":[0,0]}}",
        "{\"{{{{{{{{{{{{{{{{{{{{\\\"{{\":{\"dtype\":\"F4\",\"shape\":[0],\"data_offsets\":[0,0]}}",
        "{\"__metadata__\":{\"\\\\\":\"{}:::::\"}}",
        "{{{{{{{{{{{{{{{{{{{{{{",
        "{\"a\":",
        "\"\\",
    };
    hr_folder folder = hr_folder_open();
    const char *path = hr_folder_path(&folder, "model.safetensors");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        opened o;
        hr_error err;
        write_file(path, parts[i], 0);
        const hr_status status = open_stored(&o, path, &err);
        assert_int_equal(status, i < 3 ? HR_OK : HR_CORRUPT);
        close_stored(&o);
    }
    char *header = malloc(MOST * 80), *at = header;
    for (int32_t i = 0; i < MOST; i++)
        at += sprintf(at, "%c\"%x\":{\"dtype\":\"F4\",\"shape\":[0],\"data_offsets\":[0,0]}",
                      i ? ',' : '{', (unsigned)i);
    strcpy(at, "}");
    write_file(path, header, 0);
    opened o;
    hr_error err;
    assert_int_equal(open_stored(&o, path, &err), HR_OK);
    assert_int_equal(o.stored.tensor_count, MOST);
    assert_true(o.region.used_most > hr_stored_bytes(path) / 2);
    close_stored(&o);
    free(header);
    hr_folder_close(&folder);
}

/* Many names in random order. */
static void many_tensors_are_all_found(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    opened o;
    hr_error err;
    hr_folder folder = hr_folder_open();
    const char *path = hr_folder_path(&folder, "model.safetensors");
    char *header = malloc(MANY * 96), *at = header, name[32];
    for (int32_t i = 0; i < MANY; i++)
        at += sprintf(at, "%c\"%d\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[%d,%d]}",
                      i ? ',' : '{', i * 7919 % MANY, i, i + 1);
    strcpy(at, "}");
    write_file(path, header, MANY);
    assert_int_equal(open_stored(&o, path, &err), HR_OK);
    assert_int_equal(o.stored.tensor_count, MANY);
    for (int32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%d", i * 7919 % MANY);
        const hr_stored_tensor *tensor = hr_stored_find(&o.stored, name);
        assert_non_null(tensor);
        assert_int_equal(tensor->offset - o.stored.files[0].data_offset, i);
    }
    close_stored(&o);
    free(header);
    hr_folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_valid_file_gives_its_table_of_tensors),
        cmocka_unit_test(the_oracles_read_as_with_another_reader),
        cmocka_unit_test(an_invalid_header_is_refused),
        cmocka_unit_test(wrong_lengths_are_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(truncated_and_damaged_files_are_handled),
        cmocka_unit_test(shards_become_one_table),
        cmocka_unit_test(the_planned_memory_suffices_for_any_text),
        cmocka_unit_test(many_tensors_are_all_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
