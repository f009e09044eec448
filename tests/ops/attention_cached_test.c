/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over a KV cache: the bits of the whole sequence with every instruction set and every
 * split; the contents and the capacity of a ring buffer. */
#include "attention_cached_cases.h"
#include "ops/attention/attention_build.h"
#include "plan/lifetimes.h"
#include "require.h"
#include "support/by_hand.h"

#ifndef HR_COUNT
#define HR_COUNT 1
#endif

static const uint64_t seed = 20261122;

/* CPU feature masks of the instruction sets that this machine has. */
static int rungs(uint32_t masks[5])
{
    static const char *const names[] = { "ref", "avx2", "avx512", "avx512bf16", "amx" };
    int count = 0;
    for (int i = 0; i < 5; i++)
        if (hr_test_has(names[i])) masks[count++] = (uint32_t)hr_cpu_mask_of(names[i]);
    return count;
}

static void pieces_have_the_bits_of_the_whole_sequence_on_every_rung(void **state)
{
    case_random random = { .seed = seed };
    uint32_t masks[5];
    const int count = rungs(masks);
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < HR_COUNT; round++) cached_check_all(masks, count, false, random);
}

static void any_shape_has_the_bits_of_the_whole_sequence(void **state)
{
    case_random random = { .seed = seed + 1 };
    uint32_t masks[5];
    const int count = rungs(masks);
    (void)state;
    for (int round = 0; round < 150 * HR_COUNT; round++) {
        static const int32_t widths[] = { 1, 7, 16, 24, 64, 80 };
        attention_case c = case_around(&random, 1 + case_below(&random, 150),
                                       widths[case_below(&random, 6)]);
        c.rows = c.attr.T;
        c.row_first = 0;
        c.attr.dropout = 0;
        c.dtype = case_dtypes[case_below(&random, 3)];
        cached_check(&c, masks[case_below(&random, count)], 1 + case_below(&random, c.attr.T),
                     random);
    }
}

static void a_cache_is_large_enough_for_its_window(void **state)
{
    (void)state;
    assert_int_equal(hr_kv_cache_rows(1000, 100, 0), 1000);
    assert_int_equal(hr_kv_cache_rows(1000, 1, 256), 256);
    assert_int_equal(hr_kv_cache_rows(1000, 2, 256), 288);
    assert_int_equal(hr_kv_cache_rows(1000, 129, 256), 384);
    assert_int_equal(hr_kv_cache_rows(1000, 1000, 256), 1000);
    assert_int_equal(hr_kv_cache_rows(100, 4, 256), 100);
    assert_int_equal(hr_kv_cache_rows(1, 1, 1), 1);
}

/* A section that clears a cache and runs the pieces of a sequence. */
static void a_cache_is_alive_from_clearing_to_the_last_piece(void **state)
{
    enum { REGION_BYTES = 1 << 20, H = 4, G = 2, WIDTH = 16, CAPACITY = 96, ROWS = 8 };
    void *memory = malloc(REGION_BYTES);
    hr_region region = hr_region_over(memory, REGION_BYTES);
    hr_program program;
    hr_error err;
    hr_plan plan = { .process.threads = 2 };
    hr_builder b = by_hand(&program, &region, ROWS, 1, &err);
    hr_attention_attr attr = case_of(1, H, G, WIDTH, false, 0).attr;
    (void)state;
    attr.mask = (hr_attention_mask){ HR_PATTERN_SLIDING, 1, 80, 1 };
    b.training = false;
    const int32_t home = hr_build_loop_open(&b, "generate", 1);
    const hr_kv_cache cache = hr_build_kv_cache(&b, G, WIDTH, CAPACITY, home);
    const int32_t cleared = program.step_count - 1;
    hr_build_loop_open(&b, "piece", HR_MANY);
    const int32_t q = hr_build_rows(&b, "q", HR_F32, H * WIDTH);
    const int32_t k = hr_build_rows(&b, "k", HR_F32, G * WIDTH);
    const int32_t v = hr_build_rows(&b, "v", HR_F32, G * WIDTH);
    const int32_t position = hr_build_fixed(&b, "position", HR_ROLE_INPUT, HR_I32, HR_ROWS, 1, 0,
                                            b.loop);
    hr_step *batch = hr_build_step(&b, HR_OP_batch, NULL, 0);
    batch->out[0] = q;
    batch->out[1] = k;
    batch->out[2] = position;
    hr_build_step(&b, HR_OP_batch, NULL, 0)->out[0] = v;
    hr_build_cache_append(&b, k, v, position, &cache,
                          (hr_kv_cache_attr){ .k_head_stride = WIDTH, .v_head_stride = WIDTH });
    const int32_t o = hr_build_attention_cached(&b, "o", q, position, &cache, &attr);
    hr_build_step(&b, HR_OP_sample, NULL, 0)->in[0] = o;
    hr_build_loop_close(&b);
    hr_build_loop_close(&b);
    assert_int_equal(hr_build_status(&b), HR_OK);

    const hr_step *append = &program.steps[cleared + 3], *attend = append + 1;
    const hr_kv_cache_attr *appended = (const hr_kv_cache_attr *)append->attr;
    const hr_attention_cached_attr *attended = (const hr_attention_cached_attr *)attend->attr;
    const hr_op *op = hr_op_table[HR_OP_attention_cached];
    assert_int_equal(append->op, HR_OP_cache_append);
    assert_int_equal(attend->op, HR_OP_attention_cached);
    assert_int_equal(appended->k_width, G * WIDTH);
    assert_int_equal(appended->capacity, CAPACITY);
    assert_int_equal(attended->q_width, H * WIDTH);
    assert_int_equal(attended->capacity, CAPACITY);
    assert_int_equal(attended->mask.window, 80);
    assert_int_equal(op->flops(attended, ROWS), 4 * ROWS * 80 * H * WIDTH);
    assert_int_equal(hr_attention_cached_cpu.pieces(attended, ROWS), ROWS * H);

    assert_int_equal(hr_lifetimes(&program, &region, &plan, &err), HR_OK);
    const int32_t tensors[] = { cache.keys, cache.values };
    for (int i = 0; i < 2; i++) {
        const hr_buffer *buffer = &plan.buffers[plan.buffer_of_tensor[tensors[i]]];
        assert_int_equal(buffer->bytes, G * CAPACITY * WIDTH * 4);
        assert_int_equal(buffer->step_first, cleared);
        assert_int_equal(buffer->step_last, program.step_count - 1);
    }
    free(memory);
}

static void clearing_covers_every_element_of_a_cache(void **state)
{
    (void)state;
    for (int32_t threads = 1; threads < 4; threads++) {
        attention_case c = case_of(37, 2, 2, 5, false, 0);
        cached_room room;
        cached_open(&c, 1, &room);
        hr_call call = { .out = { room.keys, room.values },
                         .attr = &room.append,
                         .dtype = HR_F32,
                         .threads = threads };
        for (call.thread = 0; call.thread < threads; call.thread++) hr_cache_clear_run(&call);
        for (int i = 0; i < 2 * 37 * 5; i++)
            assert_true(((float *)room.keys)[i] == 0 && ((float *)room.values)[i] == 0);
        cached_close(&room);
    }
}

/* Appended rows replace those a capacity before them, head by head, and no others. */
static void rows_are_appended_to_a_ring_at_their_positions(void **state)
{
    enum { CAPACITY = 32, ROWS = 7, FIRST = 93 }; /* slots 29, 30, 31, 0, ... */
    (void)state;
    for (int32_t threads = 1; threads < 4; threads++) {
        attention_case c = case_of(ROWS, 4, 2, 5, threads == 2, 2);
        attention_tensors t;
        cached_room room;
        const int32_t position = FIRST;
        case_open(&c, &t, (case_random){ .seed = seed + 2 });
        cached_open(&c, ROWS, &room);
        cached_close(&room);
        const int64_t bytes = 2 * CAPACITY * 5 * 4;
        room.append.capacity = CAPACITY;
        room.keys = hr_guard_open(&room.guard[0], bytes);
        room.values = hr_guard_open(&room.guard[1], bytes);
        memset(room.keys, 0, (size_t)bytes);
        memset(room.values, 0, (size_t)bytes);
        hr_call call = { .in = { t.at[c.fused ? CASE_Q : CASE_K], t.at[CASE_V], (void *)&position },
                         .out = { room.keys, room.values },
                         .attr = &room.append,
                         .rows = ROWS,
                         .dtype = HR_F32,
                         .threads = threads };
        for (call.thread = 0; call.thread < threads; call.thread++) hr_cache_append_run(&call);
        for (int64_t g = 0; g < 2; g++)
            for (int64_t slot = 0; slot < CAPACITY; slot++)
                for (int64_t e = 0; e < 5; e++) {
                    const int64_t row = (slot - FIRST % CAPACITY + CAPACITY) % CAPACITY;
                    const int64_t at = (g * CAPACITY + slot) * 5 + e;
                    const hr_attention_attr *a = &c.attr;
                    const int64_t k = row * room.append.k_width + a->k_offset +
                                      g * a->k_head_stride;
                    const int64_t v = row * room.append.v_width + a->v_offset +
                                      g * a->v_head_stride;
                    const bool there = row < ROWS;
                    const int of_k = c.fused ? CASE_Q : CASE_K, of_v = c.fused ? CASE_Q : CASE_V;
                    assert_true((double)((float *)room.keys)[at] ==
                                (there ? case_get(&c, &t, of_k, k + e) : 0));
                    assert_true((double)((float *)room.values)[at] ==
                                (there ? case_get(&c, &t, of_v, v + e) : 0));
                }
        cached_close(&room);
        case_close(&t);
    }
}

static void a_call_without_rows_writes_nothing(void **state)
{
    attention_case c = case_of(40, 2, 1, 16, false, 0);
    attention_tensors t;
    cached_room room;
    (void)state;
    case_open(&c, &t, (case_random){ .seed = seed });
    cached_open(&c, 4, &room);
    cached_piece(&c, &t, &room, hr_cpu_detect(), 3, 9, 0, 2);
    assert_true(isnan(case_get(&c, &t, CASE_O, 9 * 32)));
    assert_true(isnan((double)*(float *)room.keys));
    cached_close(&room);
    case_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_bits_of_the_whole_sequence_on_every_rung),
        cmocka_unit_test(any_shape_has_the_bits_of_the_whole_sequence),
        cmocka_unit_test(a_cache_is_large_enough_for_its_window),
        cmocka_unit_test(a_cache_is_alive_from_clearing_to_the_last_piece),
        cmocka_unit_test(clearing_covers_every_element_of_a_cache),
        cmocka_unit_test(rows_are_appended_to_a_ring_at_their_positions),
        cmocka_unit_test(a_call_without_rows_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
