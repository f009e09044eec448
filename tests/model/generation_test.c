/* SPDX-License-Identifier: Apache-2.0 */
/* generation_test.c - building the generation program in regions of any size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "ops/cpu.h"
#include "sections/generation.h"

enum { BYTES = 1 << 20 };

/* Each failed allocation must be noticed, because writing to its null table would crash. */
static void a_region_that_is_too_small_is_refused_at_every_size(void **state)
{
    (void)state;
    hr_config config;
    hr_program program;
    hr_error err;
    int32_t refused = 0, made = 0;
    hr_config_default(&config);
    config.model.d_model = config.model.d_ff = 64;
    config.model.n_layers = 8;
    config.model.n_heads = 2;
    config.model.vocab_size = 512;
    config.train.seq_len = 64;
    uint8_t *memory = aligned_alloc(64, BYTES);
    assert_non_null(memory);
    for (int64_t bytes = 0; bytes <= BYTES; bytes += 64) {
        hr_region region = hr_region_over(memory, bytes);
        const hr_status status = hr_model_assemble_generation(&config, &hr_cpu_backend, 16, 64,
                                                              &region, &program, &err);
        if (status == HR_OK) {
            made++;
            break;
        }
        assert_int_equal(status, HR_FAILURE);
        refused++;
    }
    assert_true(refused > 0);
    assert_int_equal(made, 1);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_that_is_too_small_is_refused_at_every_size),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
