/* SPDX-License-Identifier: Apache-2.0 */
/* manifest_test.c - a manifest reads back exactly, and every flipped bit in it is detected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "checkpoint/manifest.h"

enum { SEED = 11 };

static hr_manifest some_manifest(void)
{
    hr_manifest m = { .kernels = "avx512",
                      .texts.train = "0123456789abcdef0123456789abcdef",
                      .texts.valid = "fedcba9876543210fedcba9876543210",
                      .texts.tokenizer = "0011223344556677" };
    m.state = (hr_run_state){ .step = 1234567890123,
                              .steps = 1234567890124,
                              .tokens = 9007199254740993,
                              .batch_shift = 17,
                              .evaluated = 1,
                              .sampled = 2,
                              .kept = 3,
                              .best_step = 4,
                              .waited = 5,
                              .bad_steps = 6,
                              .log_bytes = 7,
                              .metrics_bytes = 8,
                              .first_loss = 1.0 / 3,
                              .last_loss = 5e-324,
                              .valid_loss = NAN,
                              .best_loss = 1.7976931348623157e308,
                              .seconds = 0.1 };
    m.state.level_count = HR_STATE_LEVELS;
    for (int32_t i = 0; i < HR_STATE_LEVELS; i++)
        m.state.levels[i] = (double)hr_random_mix(SEED + (uint64_t)i) * 1e-15;
    const char *const names[] = { "model.safetensors", "recipe.yaml", "config.json" };
    for (int32_t i = 0; i < 3; i++) {
        hr_hash hash;
        hr_hash_begin(&hash);
        hr_hash_add(&hash, names[i], (int64_t)strlen(names[i]));
        hr_manifest_add(&m, names[i], 1000000007LL * i, &hash);
    }
    return m;
}

static void a_manifest_reads_back_exactly(void **state)
{
    (void)state;
    static char text[HR_MANIFEST_BYTES], again[HR_MANIFEST_BYTES];
    const hr_manifest written = some_manifest();
    hr_manifest read;
    hr_error err;
    const int64_t bytes = hr_manifest_print(&written, text);
    memcpy(again, text, (size_t)bytes);
    assert_int_equal(hr_manifest_read(&read, "m", again, bytes, &err), HR_OK);
    assert_true(isnan(read.state.valid_loss));
    read.state.valid_loss = written.state.valid_loss;
    assert_memory_equal(&read.state, &written.state, sizeof read.state);
    assert_int_equal(read.file_count, 3);
    for (int32_t i = 0; i < 3; i++) {
        assert_string_equal(read.files[i].name, written.files[i].name);
        assert_string_equal(read.files[i].hash, written.files[i].hash);
        assert_int_equal(read.files[i].bytes, written.files[i].bytes);
    }
    assert_string_equal(read.kernels, "avx512");
    assert_string_equal(read.texts.train, written.texts.train);
    assert_string_equal(read.texts.valid, written.texts.valid);
    assert_string_equal(read.texts.tokenizer, written.texts.tokenizer);
    assert_non_null(hr_manifest_find(&read, "recipe.yaml"));
    assert_null(hr_manifest_find(&read, "recipe"));
}

static void every_flipped_bit_and_every_truncation_is_detected(void **state)
{
    (void)state;
    static char text[HR_MANIFEST_BYTES], wrong[HR_MANIFEST_BYTES];
    const hr_manifest written = some_manifest();
    hr_manifest read;
    hr_error err;
    const int64_t bytes = hr_manifest_print(&written, text);
    for (int64_t bit = 0; bit < 8 * bytes; bit++) {
        memcpy(wrong, text, (size_t)bytes);
        wrong[bit / 8] = (char)(wrong[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(hr_manifest_read(&read, "m", wrong, bytes, &err), HR_CORRUPT);
    }
    for (int64_t cut = 0; cut < bytes; cut++) {
        memcpy(wrong, text, (size_t)bytes);
        assert_int_equal(hr_manifest_read(&read, "m", wrong, cut, &err), HR_CORRUPT);
    }
}

/* Tests a manifest with a valid hash in which `from` is replaced by `to`. */
static void refuses_as(hr_status status, const char *from, const char *to, const char *sentence)
{
    static char text[HR_MANIFEST_BYTES], changed[HR_MANIFEST_BYTES + 256];
    const hr_manifest written = some_manifest();
    hr_manifest read;
    hr_error err;
    hr_hash hash;
    char digits[HR_HASH_BYTES];
    text[hr_manifest_print(&written, text)] = 0;
    char *tail = strstr(text, ",\"xxh3_128\":\"");
    for (char *next = tail; (next = strstr(next + 1, ",\"xxh3_128\":\""));) tail = next;
    *tail = 0;
    char *at = strstr(text, from);
    assert_non_null(at);
    int length = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to,
                          at + strlen(from));
    hr_hash_begin(&hash);
    hr_hash_add(&hash, changed, length);
    length += snprintf(changed + length, sizeof changed - (size_t)length, ",\"xxh3_128\":\"%s\"}\n",
                       hr_hash_print(&hash, digits));
    assert_int_equal(hr_manifest_read(&read, "m", changed, length, &err), status);
    if (!strstr(err.message, sentence)) fail_msg("%s", err.message);
}

static void refuses(const char *from, const char *to, const char *sentence)
{
    refuses_as(HR_CORRUPT, from, to, sentence);
}

static void a_manifest_that_no_run_writes_is_refused(void **state)
{
    (void)state;
    /* HR_USAGE, not HR_CORRUPT: the checkpoint must not be treated as damaged. */
    refuses_as(HR_USAGE, "\"headroom_checkpoint\":2", "\"headroom_checkpoint\":3",
               "has version 3, this program reads version 2");
    refuses_as(HR_USAGE, "\"headroom_checkpoint\":2", "\"headroom_checkpoint\":1",
               "has version 1, whose runs drew random numbers from another generator: dropout and "
               "the data order would change within the run. Resume it with the release that wrote "
               "it, or start a new run from its weights: use model.from=DIR and another --out");
    refuses("\"headroom_checkpoint\":2", "\"other\":1", "not a checkpoint manifest");
    refuses("\"step\":1234567890123", "\"step\":-1", "its run state is incomplete");
    refuses("\"steps\":1234567890124", "\"steps\":1234567890122", "its run state is incomplete");
    refuses("\"steps\":1234567890124", "\"steps\":9007199254740992", "its run state is incomplete");
    refuses("\"batch_shift\":17", "\"batch_shift\":9223372036854775807",
            "its run state is incomplete");
    refuses("\"waited\":5", "\"waited\":9223372036854775807", "its run state is incomplete");
    refuses("\"best_step\":4", "\"best_step\":-4", "its run state is incomplete");
    refuses("\"tokens\":", "\"token\":", "not a checkpoint manifest");
    refuses("\"waited\":5,", "", "its run state is incomplete");
    refuses("\"waited\":5", "\"waited\":5,\"waited\":5", "not a checkpoint manifest");
    refuses("\"name\":\"recipe.yaml\"", "\"name\":\"../recipe.yaml\"", "not a checkpoint manifest");
    refuses("\"name\":\"recipe.yaml\"", "\"name\":\"..\"", "not a checkpoint manifest");
    refuses("\"name\":\"recipe.yaml\"", "\"name\":\"a\\\"b\"", "not a checkpoint manifest");
    refuses("\"name\":\"recipe.yaml\"", "\"name\":\"a\\u0000b\"", "not a checkpoint manifest");
    refuses("\"bytes\":0", "\"bytes\":-1", "not a checkpoint manifest");
    refuses("\"levels\":[", "\"levels\":[0,", "not a checkpoint manifest");
    refuses("\"first_loss\":0.33", "\"first_loss\":\"x\",\"first_loss\":0.33",
            "not a checkpoint manifest");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_reads_back_exactly),
        cmocka_unit_test(every_flipped_bit_and_every_truncation_is_detected),
        cmocka_unit_test(a_manifest_that_no_run_writes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
