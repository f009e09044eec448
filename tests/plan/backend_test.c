/* SPDX-License-Identifier: Apache-2.0 */
/* backend_test.c - what a back end does not have is refused when planning, by name and with its
 * cause; back ends and devices are found; the two halves of the CPU back end have the same
 * operations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "dev/devices.h"
#include "ops/attention/attention.h"
#include "ops/backends.h"
#include "ops/cpu.h"
#include "ops/cpu_run.h"
#include "plan/compile.h"
#include "search/fit.h"

/* A copy of the CPU back end, to take something away from. */
typedef struct {
    hr_backend backend;
    const hr_op_facts *facts[HR_OP_COUNT];
    hr_op_facts changed;
} partial;

static void open_partial(partial *p)
{
    memcpy(p->facts, hr_cpu_backend.facts, sizeof p->facts);
    p->backend = hr_cpu_backend;
    p->backend.name = "partial";
    p->backend.facts = p->facts;
}

static hr_op_facts *change(partial *p, int32_t op)
{
    p->changed = *hr_cpu_backend.facts[op];
    p->facts[op] = &p->changed;
    return &p->changed;
}

static hr_config config_of(const char *family)
{
    hr_config config;
    hr_error err;
    char path[512];
    hr_config_default(&config);
    snprintf(path, sizeof path, HR_SOURCE "/presets/small/%s.yaml", family);
    if (hr_config_read(&config, path, &err) != HR_OK) fail_msg("%s", err.message);
    return config;
}

static hr_status compile(const hr_config *config, const hr_backend *backend, hr_error *err)
{
    const int64_t bytes = hr_round_up(hr_compile_bytes(config), 64);
    void *memory = aligned_alloc(64, (size_t)bytes);
    hr_region region = hr_region_over(memory, bytes);
    hr_intermediates *set = calloc((size_t)config->model.n_layers, sizeof *set);
    const hr_strategy strategy = hr_strategy_of(config, 1, set);
    hr_compiled compiled;
    const hr_status status = hr_compile(config, backend, &strategy, 2, &region, &compiled, err);
    free(set);
    free(memory);
    return status;
}

static void check_refused(const char *family, const partial *p, const char *sentence)
{
    const hr_config config = config_of(family);
    hr_error err;
    assert_int_equal(compile(&config, &p->backend, &err), HR_USAGE);
    assert_string_equal(err.message, sentence);
}

static void a_missing_operation_is_refused(void **state)
{
    partial p;
    (void)state;
    open_partial(&p);
    p.facts[HR_OP_glu] = NULL;
    check_refused("llama", &p, "the partial back end does not have the operation glu");
    const hr_config without = config_of("gpt2");
    hr_error err;
    assert_int_equal(compile(&without, &p.backend, &err), HR_OK);
}

static void a_missing_operation_for_recompute_is_refused(void **state)
{
    partial p;
    (void)state;
    open_partial(&p);
    p.facts[HR_OP_activation] = NULL;
    check_refused("gpt2", &p,
                  "the partial back end does not have the operation activation, which recomputes "
                  "the result of linear");
}

static void a_missing_dtype_is_refused(void **state)
{
    partial p;
    (void)state;
    open_partial(&p);
    change(&p, HR_OP_norm)->dtypes = 1 << HR_F32;
    check_refused("gpt2", &p,
                  "the partial back end does not run norm with operands of bf16 (embedding)");
}

static bool without_dropout(const void *attr, char cause[HR_CAUSE_BYTES])
{
    const hr_attention_attr *attention = attr;
    snprintf(cause, HR_CAUSE_BYTES, "dropout is %g, only 0 is possible",
             (double)attention->dropout);
    return attention->dropout == 0;
}

static void an_unsupported_attribute_is_refused(void **state)
{
    partial p;
    hr_error err;
    (void)state;
    open_partial(&p);
    change(&p, HR_OP_attention)->supports = without_dropout;
    hr_config config = config_of("gpt2");
    config.model.dropout = 0;
    assert_int_equal(compile(&config, &p.backend, &err), HR_OK);
    config.model.dropout = 0.25;
    assert_int_equal(compile(&config, &p.backend, &err), HR_USAGE);
    assert_string_equal(err.message, "the partial back end does not run attention: dropout is "
                                     "0.25, only 0 is possible");
}

static void heads_wider_than_the_cpu_computes_are_refused(void **state)
{
    char cause[HR_CAUSE_BYTES];
    hr_attention_attr attr = { .head_width = HR_ATTENTION_HEAD_MAX };
    (void)state;
    assert_true(hr_attention_cpu.supports(&attr, cause));
    attr.head_width++;
    assert_false(hr_attention_cpu.supports(&attr, cause));
    assert_string_equal(cause, "head_width is 257, at most 256");
}

/* The search builds smaller models, before any plan of the whole model. */
static void the_search_refuses_too(void **state)
{
    partial p;
    hr_error err;
    hr_fit fit;
    hr_rates rates;
    (void)state;
    open_partial(&p);
    p.facts[HR_OP_rope] = NULL;
    const hr_config config = config_of("llama");
    const int64_t bytes = hr_round_up(hr_fit_bytes(&config), 64);
    void *memory = aligned_alloc(64, (size_t)bytes);
    hr_region region = hr_region_over(memory, bytes);
    hr_intermediates *set = calloc((size_t)config.model.n_layers, sizeof *set);
    hr_fit_found found = { .strategy.recompute_set = set };
    hr_rates_guess(&p.backend, 0, 2, &rates);
    hr_status status = hr_fit_open(&fit, &config, &rates, 2, &region, &err);
    if (status == HR_OK) status = hr_fit_fastest(&fit, INT64_MAX, &found, &err);
    assert_int_equal(status, HR_USAGE);
    assert_string_equal(err.message, "the partial back end does not have the operation rope");
    free(set);
    free(memory);
}

static void back_ends_are_found_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(hr_backend_find(HR_BACKEND_DEFAULT), &hr_cpu_backend);
    assert_ptr_equal(hr_backend_find(hr_cpu_backend.name), &hr_cpu_backend);
    assert_null(hr_backend_find("cp"));
    assert_null(hr_backend_find("cpus"));
    assert_null(hr_backend_find(""));
}

static void a_back_end_without_a_device_can_be_planned_but_not_run(void **state)
{
    (void)state;
    partial p;
    hr_error err;
    hr_devices devices = { 0 };
    const hr_device *device = NULL;
    const hr_config config = config_of("llama");
    open_partial(&p);
    assert_int_equal(compile(&config, &p.backend, &err), HR_OK);
    assert_int_equal(hr_device_open(&devices, &p.backend, NULL, 0, &device, &err), HR_USAGE);
    assert_string_equal(err.message,
                        "this build plans for the partial back end, but does not run it");
    assert_null(device);
    assert_int_equal(hr_device_open(&devices, &hr_cpu_backend, NULL, 0, &device, &err), HR_OK);
    assert_ptr_equal(device->backend, &hr_cpu_backend);
}

static void both_halves_have_the_same_operations(void **state)
{
    (void)state;
    for (int32_t op = 0; op < HR_OP_COUNT; op++) {
        const bool host = hr_op_table[op]->host;
        assert_non_null(hr_cpu_backend.facts[op]);
        assert_int_equal(hr_cpu_runs[op] != NULL, !host);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_operation_is_refused),
        cmocka_unit_test(a_missing_operation_for_recompute_is_refused),
        cmocka_unit_test(a_missing_dtype_is_refused),
        cmocka_unit_test(an_unsupported_attribute_is_refused),
        cmocka_unit_test(heads_wider_than_the_cpu_computes_are_refused),
        cmocka_unit_test(the_search_refuses_too),
        cmocka_unit_test(back_ends_are_found_by_name),
        cmocka_unit_test(a_back_end_without_a_device_can_be_planned_but_not_run),
        cmocka_unit_test(both_halves_have_the_same_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
