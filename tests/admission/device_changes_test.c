/* SPDX-License-Identifier: Apache-2.0 */
/* device_changes_test.c - what a list of devices changes in a recipe that does not fit: the change
 * that the refusal for that device ranks first, and the plan that a recipe with it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "headroom/plan_grid.h"

enum { CARDS = 6, TEXT_BYTES = 1 << 16 };

/* Large objects are static, so that the stack stays as deep from plan to plan. */
static hr_config base, config;
static hr_plan_details details;
static hr_plan_answer answer;
static struct {
    hr_grid_cell cells[CARDS];
    int32_t count;
    char text[TEXT_BYTES];
} taken;

static void take(void *context, const hr_grid_cell *cell, const hr_plan_answer *plan)
{
    (void)context;
    (void)plan;
    assert_true(taken.count < CARDS);
    taken.cells[taken.count++] = *cell;
}

static void take_text(void *context, const char *text)
{
    (void)context;
    const size_t used = strlen(taken.text);
    assert_true(used + strlen(text) < TEXT_BYTES);
    strcpy(taken.text + used, text);
}

static hr_status list(const hr_device_choice *devices, int32_t count, hr_error *err)
{
    const hr_grid_request request = { .size = sizeof request,
                                      .config = &base,
                                      .devices = devices,
                                      .device_count = count,
                                      .changes = true,
                                      .cell = take,
                                      .write = take_text };
    taken.count = 0;
    taken.text[0] = 0;
    return hr_plan_grid(&request, err);
}

static hr_device_facts card(const char *name, int64_t usable_bytes)
{
    hr_device_facts facts = { .title = "a card",
                              .usable_bytes = usable_bytes,
                              .bandwidth = 500000000000,
                              .link = 16000000000 };
    snprintf(facts.name, sizeof facts.name, "%s", name);
    facts.peak[HR_DEVICE_FP32] = 10;
    facts.peak[HR_DEVICE_BF16] = 40;
    return facts;
}

static void small_base(void)
{
    hr_config_default(&base);
    base.model.family = HR_FAMILY_LLAMA;
    base.model.d_model = 256;
    base.model.n_heads = 4;
    base.model.d_ff = 1024;
    base.model.n_layers = 6;
    base.model.vocab_size = 8000;
    base.train.batch = 8;
    base.train.seq_len = 256;
    base.train.dtype = HR_FORMAT_BF16;
}

static int64_t minimum_of(const hr_config *recipe, const hr_device_choice *device)
{
    hr_error err;
    const hr_plan_outputs outputs = { .size = sizeof outputs, .device = device };
    const hr_status status = hr_plan_make(recipe, &outputs, &answer, &err);
    if (status != HR_OK && status != HR_NO_FIT) fail_msg("%s", err.message);
    return answer.minimum_bytes;
}

/* Sets the words of a change, as a shell would read them. */
static void apply(const char *change)
{
    char words[HR_PLAN_CHANGE_BYTES];
    size_t used = 0;
    bool quoted = false;
    hr_error err;
    config = base;
    for (;; change++) {
        if (*change == '\'' || *change == '"') quoted = !quoted;
        else if (*change && (quoted || *change != ' ')) words[used++] = *change;
        else {
            words[used] = 0;
            if (used && hr_config_set_word(&config, words, &err) != HR_OK)
                fail_msg("%s", err.message);
            used = 0;
            if (!*change) return;
        }
    }
}

/* Cards from nearly enough memory to a tenth: from a file of moments to several changes. */
static void a_list_takes_the_change_that_a_refusal_ranks_first(void **state)
{
    (void)state;
    static const int32_t percent[CARDS] = { 120, 95, 70, 45, 20, 10 };
    hr_device_facts facts[CARDS];
    hr_device_choice devices[CARDS];
    hr_error err;
    small_base();
    facts[0] = card("any", INT64_C(4) << 30);
    devices[0] = (hr_device_choice){ .device = &facts[0] };
    const int64_t minimum = minimum_of(&base, &devices[0]);
    for (int32_t i = 0; i < CARDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "card-%d", (int)percent[i]);
        facts[i] = card(name, minimum * percent[i] / 100);
        devices[i] = (hr_device_choice){ .device = &facts[i] };
    }
    assert_int_equal(list(devices, CARDS, &err), HR_OK);
    assert_int_equal(taken.count, CARDS);
    assert_string_equal(taken.cells[0].change, "");
    int32_t changed = 0, together = 0, files = 0;
    for (int32_t i = 1; i < CARDS; i++) {
        const hr_grid_cell *cell = &taken.cells[i];
        const hr_plan_outputs outputs = { .size = sizeof outputs,
                                          .device = &devices[i],
                                          .details = &details };
        assert_int_equal(hr_plan_make(&base, &outputs, &answer, &err), HR_NO_FIT);
        assert_true(cell->tried_all);
        if (!details.change_count) {
            assert_int_equal(cell->verdict, HR_CELL_REFUSED);
            assert_true(cell->least_bytes > cell->available_bytes);
            assert_true(cell->least_bytes < cell->process_bytes);
            continue;
        }
        assert_string_equal(cell->change, details.changes[0].what);
        apply(cell->change);
        const hr_plan_outputs same = { .size = sizeof same, .device = &devices[i] };
        if (hr_plan_make(&config, &same, &answer, &err) != HR_OK) fail_msg("%s", err.message);
        assert_true(cell->process_bytes <= cell->available_bytes);
        if (cell->smallest) assert_true(cell->process_bytes >= answer.minimum_bytes);
        /* The search compares operations alone: with a file a smaller plan may wait less. */
        if (cell->smallest && !cell->disk_bytes)
            assert_true(cell->step_seconds >= answer.step_seconds);
        if (!cell->smallest) assert_int_equal(cell->process_bytes, answer.process_bytes);
        if (!cell->smallest) assert_true(cell->step_seconds == answer.step_seconds);
        assert_int_equal(cell->disk_bytes, answer.file_bytes);
        changed++;
        together += strchr(cell->change, ' ') != NULL;
        files += cell->disk_bytes > 0;
    }
    print_message("%d cards need a change, %d of them several, %d a file\n", (int)changed,
                  (int)together, (int)files);
    assert_true(changed >= 4 && files >= 1 && !taken.cells[1].smallest);
}

/* What one card has shown is not true of one without the format, or of a laptop. */
static void a_card_without_bf16_and_a_laptop_are_planned_for_themselves(void **state)
{
    (void)state;
    hr_error err;
    small_base();
    hr_device_facts facts[3] = { card("new", 0), card("old", 0), card("laptop", 0) };
    facts[1].peak[HR_DEVICE_BF16] = 0;
    facts[2].kind = HR_DEVICE_CPU;
    facts[2].link = 0;
    facts[2].threads = 2;
    strcpy(facts[2].kernels, "avx2");
    hr_device_choice devices[3];
    for (int32_t i = 0; i < 3; i++) {
        facts[i].usable_bytes = INT64_C(4) << 30;
        devices[i] = (hr_device_choice){ .device = &facts[i] };
    }
    base.train.dtype = HR_FORMAT_FP32;
    const int64_t least = minimum_of(&base, &devices[1]);
    const int64_t there = minimum_of(&base, &devices[2]);
    base.train.dtype = HR_FORMAT_BF16;
    facts[0].usable_bytes = facts[1].usable_bytes = least * 6 / 10;
    facts[2].usable_bytes = there * 6 / 10;
    assert_int_equal(list(devices, 3, &err), HR_OK);
    for (int32_t i = 0; i < 3; i++) {
        const hr_grid_cell *cell = &taken.cells[i];
        assert_int_equal(cell->verdict, HR_CELL_FITS_WITH);
        assert_int_equal(strncmp(cell->change, "train.dtype=fp32 ", 17) == 0, i == 1);
        apply(cell->change);
        const hr_plan_outputs outputs = { .size = sizeof outputs, .device = &devices[i] };
        if (hr_plan_make(&config, &outputs, &answer, &err) != HR_OK) fail_msg("%s", err.message);
        assert_int_equal(cell->process_bytes, answer.process_bytes);
    }
}

static void what_fits_with_no_change_says_the_least(void **state)
{
    (void)state;
    hr_error err;
    small_base();
    const hr_device_facts tiny = card("tiny", 1 << 20);
    const hr_device_choice device = { .device = &tiny };
    assert_int_equal(list(&device, 1, &err), HR_NO_FIT);
    const hr_grid_cell *cell = &taken.cells[0];
    assert_true(cell->least_bytes > 0 && cell->least_bytes < cell->process_bytes);
    char words[HR_PLAN_CHANGE_BYTES + 32];
    snprintf(words, sizeof words, " MiB with %s\n", cell->least);
    assert_non_null(strstr(taken.text, words));
    apply(cell->least);
    assert_int_equal(minimum_of(&config, &device), cell->least_bytes);
}

/* A file of moments that one disk holds, and the next does not. */
static void a_smaller_disk_is_not_that_of_the_card_before(void **state)
{
    (void)state;
    hr_error err;
    small_base();
    base.train.state.master = HR_MASTERS_NONE; /* residuals would be enough */
    hr_device_facts facts[2] = { card("roomy", INT64_C(4) << 30), card("full", 0) };
    hr_device_choice devices[2] = { { .device = &facts[0] },
                                    { .device = &facts[1], .disk_bytes = 1 << 20 } };
    const int64_t minimum = minimum_of(&base, &devices[0]);
    facts[0].usable_bytes = facts[1].usable_bytes = minimum * 95 / 100;
    assert_int_equal(list(devices, 2, &err), HR_OK);
    assert_string_equal(taken.cells[0].change, "memory.moments=file");
    assert_int_equal(taken.cells[1].verdict, HR_CELL_FITS_WITH);
    assert_null(strstr(taken.cells[1].change, "memory.moments"));
}

static void a_list_is_refused_if_the_host_is_too_small(void **state)
{
    (void)state;
    hr_error err;
    small_base();
    const hr_device_facts facts = card("any", INT64_C(4) << 30);
    hr_device_choice device = { .device = &facts, .host_bytes = 1 << 20 };
    assert_int_equal(list(&device, 1, &err), HR_NO_FIT);
    assert_non_null(strstr(err.message, "host= of any is 1,048,576 bytes (1.0 MiB)"));
    assert_int_equal(taken.count, 0);
    const hr_plan_query question = { .size = sizeof question, .device = &device };
    static hr_largest largest;
    assert_int_equal(hr_plan_largest(&base, "train.batch", &question, &largest, &err), HR_NO_FIT);
    assert_non_null(strstr(err.message, "of host memory outside its arena"));
    device.host_bytes = INT64_C(1) << 30;
    assert_int_equal(list(&device, 1, &err), HR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_takes_the_change_that_a_refusal_ranks_first),
        cmocka_unit_test(a_card_without_bf16_and_a_laptop_are_planned_for_themselves),
        cmocka_unit_test(what_fits_with_no_change_says_the_least),
        cmocka_unit_test(a_smaller_disk_is_not_that_of_the_card_before),
        cmocka_unit_test(a_list_is_refused_if_the_host_is_too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
