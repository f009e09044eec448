/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_test.c - the output of doctor, compared with other sources on the system. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/threads.h"
#include "headroom/doctor.h"

static void the_machine_is_described_in_full(void **state)
{
    (void)state;
    hr_machine machine;
    memset(&machine, 0x55, sizeof machine);
    hr_machine_read(&machine);
    assert_true(strlen(machine.kernel) > 0);
    assert_true(strlen(machine.processor) > 0);
    assert_true(machine.cores_allowed >= 1 && machine.cores_allowed <= machine.cores_online);
    assert_int_equal(machine.threads_default, hr_threads_default());
    assert_int_equal(machine.page_bytes, sysconf(_SC_PAGESIZE));
    const int64_t pages = sysconf(_SC_PHYS_PAGES);
    assert_int_equal(machine.memory_bytes, pages * machine.page_bytes);
    assert_in_range(machine.memory_available_bytes, 1, machine.memory_bytes);
    assert_true(machine.swap_bytes >= 0);
    assert_true(machine.limit_stack_bytes == -1 || machine.limit_stack_bytes > 0);
    assert_true(machine.huge_pages[0] != 0);
}

static void the_rung_is_the_highest_that_the_cpu_supports(void **state)
{
    (void)state;
    hr_machine machine;
    hr_machine_read(&machine);
    assert_string_equal(machine.rung, hr_cpu_rung_name(hr_cpu_detect()));
    assert_true(machine.avx2 || (!machine.avx512 && !machine.amx));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machine_is_described_in_full),
        cmocka_unit_test(the_rung_is_the_highest_that_the_cpu_supports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
