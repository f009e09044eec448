/* SPDX-License-Identifier: Apache-2.0 */
/* service_test.c - services: their sections, their handlers, their errors and their background
 * work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dev/executor.h"
#include "graph/builder.h"
#include "graph/service.h"
#include "mem/poison.h"
#include "ops/cpu.h"
#include "ops/list.h"

enum { STEPS = 8, REGION_BYTES = 1 << 16 };

/* A program without operands: two sections with reports, one with a save. */
typedef struct {
    void *memory;
    hr_region region;
    hr_program program;
    hr_builder builder;
    hr_plan plan;
    int32_t scratch[STEPS];
    hr_memory arena;
    hr_device device;
    hr_executor executor;
    hr_error err;
    char calls[64]; /* one letter per call */
    bool fails, pending;
} fixture;

static void add(fixture *f, hr_loop_id section, int32_t op)
{
    hr_build_known_loop_open(&f->builder, section, 1);
    hr_build_step(&f->builder, op, NULL, 0);
    hr_build_loop_close(&f->builder);
}

static fixture *begin(void)
{
    fixture *f = calloc(1, sizeof *f);
    f->memory = malloc(REGION_BYTES);
    f->region = hr_region_over(f->memory, REGION_BYTES);
    assert_int_equal(hr_program_place(&f->region, &hr_cpu_backend, STEPS, STEPS, STEPS, STEPS,
                                      &f->program, &f->err),
                     HR_OK);
    f->builder = (hr_builder){ .program = &f->program, .layer = HR_NONE, .err = &f->err };
    return f;
}

static void place(fixture *f)
{
    assert_int_equal(hr_build_status(&f->builder), HR_OK);
    for (int32_t s = 0; s < STEPS; s++) f->scratch[s] = HR_NONE;
    f->plan = (hr_plan){ .process.threads = 1, .scratch_of_step = f->scratch };
    f->device = (hr_device){ .backend = &hr_cpu_backend };
    f->executor = (hr_executor){
        .program = &f->program, .plan = &f->plan, .memory = &f->arena, .device = &f->device
    };
    assert_int_equal(hr_executor_place(&f->region, &f->executor, &f->err), HR_OK);
}

static void end(fixture *f)
{
    free(f->memory);
    free(f);
}

static hr_status note(fixture *f, char letter)
{
    f->calls[strlen(f->calls)] = letter;
    return HR_OK;
}

static hr_status general(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                         hr_error *err)
{
    (void)executor, (void)step, (void)call, (void)err;
    return note(context, 'g');
}

static hr_status of_evaluation(void *context, hr_executor *executor, int32_t step,
                               const hr_call *call, hr_error *err)
{
    (void)executor, (void)step, (void)call, (void)err;
    return note(context, 'e');
}

static hr_status save(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                      hr_error *err)
{
    fixture *f = context;
    (void)executor, (void)step, (void)call;
    if (f->fails) return hr_fail(err, HR_FAILURE, "the disk is full");
    f->pending = true;
    return note(f, 's');
}

static hr_status wait(void *context, hr_error *err)
{
    fixture *f = context;
    if (!f->pending) return HR_OK;
    f->pending = false;
    return hr_fail(err, HR_FAILURE, "the disk has gone");
}

static const hr_service services[] = {
    { HR_NONE, HR_LOOP_EVALUATION, general, NULL },
    { HR_OP_report, HR_LOOP_OTHER, general, NULL },
    { HR_OP_report, HR_LOOP_EVALUATION, of_evaluation, NULL },
    { HR_OP_save, HR_LOOP_SAVE, save, wait },
};

static void run(fixture *f, hr_loop_id section, hr_status expected)
{
    f->err = (hr_error){ 0 };
    assert_int_equal(hr_executor_run(&f->executor, hr_program_loop(&f->program, section), &f->err),
                     expected);
}

static fixture *begin_three(void)
{
    fixture *f = begin();
    add(f, HR_LOOP_STEP, HR_OP_report);
    add(f, HR_LOOP_EVALUATION, HR_OP_report);
    add(f, HR_LOOP_SAVE, HR_OP_save);
    place(f);
    return f;
}

static void a_step_goes_to_the_handler_of_its_operation_and_section(void **state)
{
    fixture *f = begin_three();
    (void)state;
    hr_executor_serve(&f->executor, (hr_services){ services, 4, f });
    assert_int_equal(hr_executor_check_services(&f->executor, &f->err), HR_OK);
    run(f, HR_LOOP_STEP, HR_OK);
    run(f, HR_LOOP_EVALUATION, HR_OK);
    run(f, HR_LOOP_SAVE, HR_OK);
    run(f, HR_LOOP_STEP, HR_OK);
    assert_string_equal(f->calls, "gesg");
    end(f);
}

static void a_later_registration_takes_precedence(void **state)
{
    static const hr_service later[] = { { HR_OP_report, HR_LOOP_STEP, of_evaluation, NULL } };
    fixture *f = begin_three();
    (void)state;
    hr_executor_serve(&f->executor, (hr_services){ services, 4, f });
    hr_executor_serve(&f->executor, (hr_services){ later, 1, f });
    run(f, HR_LOOP_STEP, HR_OK);
    run(f, HR_LOOP_EVALUATION, HR_OK);
    assert_string_equal(f->calls, "ee");
    end(f);
}

static void a_missing_handler_is_refused_before_the_run(void **state)
{
    fixture *f = begin_three();
    (void)state;
    hr_executor_serve(&f->executor, (hr_services){ services, 3, f });
    assert_int_equal(hr_executor_check_services(&f->executor, &f->err), HR_FAILURE);
    assert_string_equal(f->err.message, "no handler for the service save in the section \"save\"");
    end(f);

    f = begin_three();
    hr_executor_serve(&f->executor, (hr_services){ services + 2, 2, f });
    assert_int_equal(hr_executor_check_services(&f->executor, &f->err), HR_FAILURE);
    assert_string_equal(f->err.message,
                        "no handler for the service report in the section \"step\"");
    assert_string_equal(f->calls, "");
    end(f);
}

static void a_section_that_may_not_hold_a_service_is_refused(void **state)
{
    fixture *f = begin();
    (void)state;
    add(f, HR_LOOP_STEP, HR_OP_report);
    assert_int_equal(hr_service_check_sections(&f->program, &f->err), HR_OK);
    add(f, HR_LOOP_EVALUATION, HR_OP_save);
    assert_int_equal(hr_service_check_sections(&f->program, &f->err), HR_FAILURE);
    assert_string_equal(f->err.message, "the section \"evaluation\" may not hold the service save; "
                                        "these may: save");
    place(f);
    hr_executor_serve(&f->executor,
                      (hr_services){ (hr_service[]){ { HR_OP_report, HR_LOOP_OTHER, general, NULL },
                                                     { HR_OP_save, HR_LOOP_OTHER, save, wait } },
                                     2, f });
    assert_int_equal(hr_executor_check_services(&f->executor, NULL), HR_FAILURE);
    end(f);
}

static void every_service_names_the_sections_that_may_hold_it(void **state)
{
    (void)state;
    for (int32_t op = 0; op < HR_OP_COUNT; op++) {
        const bool service = op >= HR_OP_initialize;
        assert_int_equal(hr_op_table[op]->host != 0, service);
        assert_int_equal(hr_op_table[op]->host & 1u << HR_LOOP_OTHER, 0);
    }
}

static void an_error_stops_the_run_and_background_errors_come_from_waiting(void **state)
{
    fixture *f = begin_three();
    (void)state;
    hr_executor_serve(&f->executor, (hr_services){ services, 4, f });
    f->fails = true;
    run(f, HR_LOOP_SAVE, HR_FAILURE);
    assert_string_equal(f->err.message, "the disk is full");
    assert_int_equal(hr_executor_wait(&f->executor, HR_OP_save, &f->err), HR_OK);
    f->fails = false;
    run(f, HR_LOOP_SAVE, HR_OK);
    assert_int_equal(hr_executor_wait(&f->executor, HR_OP_report, &f->err), HR_OK);
    assert_int_equal(hr_executor_wait(&f->executor, HR_OP_save, &f->err), HR_FAILURE);
    assert_string_equal(f->err.message, "the disk has gone");
    assert_int_equal(hr_executor_wait(&f->executor, HR_OP_save, &f->err), HR_OK);
    end(f);
}

/* ---- transfers */

static hr_status fetch(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                       hr_error *err)
{
    fixture *f = context;
    (void)executor, (void)step, (void)call, (void)err;
    f->pending = true;
    return HR_OK;
}

static hr_status end_fetches(void *context, hr_error *err)
{
    fixture *f = context;
    (void)err;
    f->pending = false;
    return HR_OK;
}

static hr_status report(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                        hr_error *err)
{
    fixture *f = context;
    (void)executor, (void)step, (void)call;
    return f->fails ? hr_fail(err, HR_DIVERGED, "the loss is NaN") : note(f, 'r');
}

/* A transfer that a failed section has begun would write to memory that the next section uses. */
static void transfers_end_when_a_section_ends_early(void **state)
{
    static const hr_service transfers[] = { { HR_OP_fetch_begin, HR_LOOP_OTHER, fetch,
                                              end_fetches },
                                            { HR_OP_report, HR_LOOP_OTHER, report, NULL } };
    fixture *f = begin();
    (void)state;
    hr_build_known_loop_open(&f->builder, HR_LOOP_STEP, 1);
    hr_build_step(&f->builder, HR_OP_fetch_begin, NULL, 0);
    hr_build_step(&f->builder, HR_OP_report, NULL, 0);
    hr_build_loop_close(&f->builder);
    place(f);
    hr_executor_serve(&f->executor, (hr_services){ transfers, 2, f });
    run(f, HR_LOOP_STEP, HR_OK);
#ifndef HR_POISONS /* there they end at each step */
    assert_true(f->pending);
#endif
    f->fails = true;
    run(f, HR_LOOP_STEP, HR_DIVERGED);
    assert_false(f->pending);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_goes_to_the_handler_of_its_operation_and_section),
        cmocka_unit_test(a_later_registration_takes_precedence),
        cmocka_unit_test(a_missing_handler_is_refused_before_the_run),
        cmocka_unit_test(a_section_that_may_not_hold_a_service_is_refused),
        cmocka_unit_test(every_service_names_the_sections_that_may_hold_it),
        cmocka_unit_test(an_error_stops_the_run_and_background_errors_come_from_waiting),
        cmocka_unit_test(transfers_end_when_a_section_ends_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
