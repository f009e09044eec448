/* SPDX-License-Identifier: Apache-2.0 */
/* pack_within_test.c - packing within a capacity, and packing that is stopped; public instances. */
#include "support/storages.h"

/* Reads `id,lower,upper,size` with half-open lifetimes. */
static int32_t read_instance(const char *name)
{
    char path[512], line[128];
    snprintf(path, sizeof path, HR_SOURCE "/tests/plan/instances/%s", name);
    FILE *file = fopen(path, "r");
    int32_t count = 0;
    long long id, lower, upper, size;
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%lld,%lld,%lld,%lld", &id, &lower, &upper, &size) == 4)
            storages[count++] = (hr_storage){ size * HR_ARENA_ALIGN, -1, (int32_t)lower,
                                              (int32_t)upper - 1 };
    fclose(file);
    return count;
}

static hr_pack_result pack_within(int32_t count, const hr_pack_limits *limits)
{
    hr_region scratch = hr_region_over(memory, hr_pack_scratch_bytes(count));
    hr_pack_result result;
    hr_error err = { HR_OK, "" };
    assert_int_equal(hr_pack_within(storages, count, limits, &scratch, &result, &err), HR_OK);
    assert_int_equal(scratch.used, 0);
    check(count, &result);
    return result;
}

static void public_instances_fit_their_capacity(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t capacity; /* 0: the floor */
    } instances[] = { { "A.1048576.csv", 1048576 },  { "B.1048576.csv", 1048576 },
                      { "C.1048576.csv", 1048576 },  { "D.1048576.csv", 1048576 },
                      { "E.1048576.csv", 1048576 },  { "C.1048576.csv", 0 },
                      { "resnet50-training.csv", 0 } };
    for (size_t i = 0; i < sizeof instances / sizeof *instances; i++) {
        const int32_t count = read_instance(instances[i].name);
        const hr_pack_limits limits = { .capacity_bytes = instances[i].capacity * HR_ARENA_ALIGN,
                                        .work = HR_PACK_WORK_DEFAULT };
        const hr_pack_result result = pack_within(count, &limits);
        const int64_t bound = instances[i].capacity ? limits.capacity_bytes : result.floor_bytes;
        assert_true(result.arena_bytes <= bound);
        printf("%s: arena %lld, floor %lld, %lld nodes\n", instances[i].name,
               (long long)result.arena_bytes / HR_ARENA_ALIGN,
               (long long)result.floor_bytes / HR_ARENA_ALIGN, (long long)result.nodes);
    }
}

static void a_capacity_is_reached_or_refuted(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 200 * HR_COUNT; i++) {
        int32_t count = make_unreachable();
        storages[draw(0, count - 1)].bytes = draw(1, 4) * HR_ARENA_ALIGN;
        const int64_t lowest = least_height(count);
        for (int64_t capacity = lowest - 2 * HR_ARENA_ALIGN;
             capacity <= lowest + 2 * HR_ARENA_ALIGN; capacity += HR_ARENA_ALIGN) {
            const hr_pack_limits limits = { capacity, HR_PACK_WORK_DEFAULT };
            const hr_pack_result result = pack_within(count, &limits);
            assert_int_equal(result.arena_bytes <= capacity, capacity >= lowest);
            assert_int_equal(result.bound_bytes > capacity, capacity < lowest);
        }
    }
}

static bool count_down(void *context)
{
    int32_t *left = context;
    return --*left < 0;
}

static void a_stopped_packing_has_a_valid_placement(void **state)
{
    (void)state;
    for (int32_t asks = 0; asks < 60; asks++) {
        const int32_t count = asks % 2 ? make_random(60) : make_unreachable();
        int32_t left = asks / 2;
        const hr_pack_limits limits = { 0, HR_PACK_WORK_DEFAULT, count_down, &left };
        pack_within(count, &limits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_instances_fit_their_capacity),
        cmocka_unit_test(a_capacity_is_reached_or_refuted),
        cmocka_unit_test(a_stopped_packing_has_a_valid_placement),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
