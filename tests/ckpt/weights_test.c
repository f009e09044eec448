/* SPDX-License-Identifier: Apache-2.0 */
/* weights_test.c - a file of weights holds finite numbers, or there is none. What a whole file
 * holds, train_test reads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ckpt/weights.h"
#include "support/rig.h"
#include "text/folder.h"

enum { STAGING_BYTES = 4096, SEED = 7 };

/* Writes all parameters, zeros but for one element. */
static hr_status write_with(const hr_program *program, const char *directory, int32_t param,
                            int64_t element, float value, hr_error *err)
{
    static char staging[STAGING_BYTES];
    const int64_t text_bytes = hr_weights_text_bytes(program);
    char *text = malloc((size_t)text_bytes);
    hr_weights_out out;
    hr_status status = hr_weights_begin(&out, program, directory, text, text_bytes, err);
    for (int32_t p = 0; p < program->param_count && status == HR_OK; p++) {
        const hr_tensor *tensor = &program->tensors[program->params[p].master];
        const int64_t K = program->params[p].dims[0], N = hr_max(program->params[p].dims[1], 1);
        float *master = calloc(1, (size_t)hr_tensor_bytes(tensor));
        if (p == param)
            master[hr_layout_index((hr_layout)tensor->layout, K, N, element / N, element % N)] =
                value;
        status = hr_weights_add(&out, p, master, staging, sizeof staging, err);
        free(master);
    }
    hr_weights_abort(&out);
    free(text);
    return status;
}

static void what_is_not_finite_is_never_saved(void **state)
{
    (void)state;
    const float values[] = { NAN, -NAN, INFINITY, -INFINITY };
    hr_folder folder = hr_folder_open();
    print_message("seed %d\n", SEED);
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        rig r;
        hr_error err;
        hr_config config;
        hr_config_default(&config);
        config.model.family = family;
        config.model.d_model = 40;
        config.model.n_heads = 5;
        config.model.n_layers = 1;
        config.model.d_ff = 72;
        config.train.batch = 1;
        config.train.seq_len = 8;
        rig_build(&r, &config, 1, 0, 0, 0);
        const hr_program *program = &r.compiled.program;
        assert_int_equal(write_with(program, folder.path, HR_NONE, 0, 0, &err), HR_OK);
        for (int32_t p = 0; p < program->param_count; p++) {
            const int64_t count = rig_elements(&program->params[p]);
            const uint64_t draw = hr_random_mix((uint64_t)(SEED + p));
            const int64_t elements[] = { 0, (int64_t)(draw % (uint64_t)count), count - 1 };
            for (int32_t i = 0; i < 3; i++) {
                assert_int_equal(
                    write_with(program, folder.path, p, elements[i], values[(p + i) % 4], &err),
                    HR_DIVERGED);
                assert_non_null(strstr(err.message, program->params[p].external_name));
                assert_non_null(strstr(err.message, " has elements that are not finite"));
            }
        }
        assert_int_equal(hr_folder_count(&folder, ""), 0);
        rig_close(&r);
    }
    hr_folder_close(&folder);
}

static void a_directory_in_the_place_of_a_file_is_told(void **state)
{
    (void)state;
    static const char *const names[] = { "model.safetensors", "config.json" };
    hr_folder folder = hr_folder_open();
    hr_error err;
    assert_int_equal(hr_weights_check(folder.path, &err), HR_OK);
    for (int32_t i = 0; i < 2; i++) {
        assert_int_equal(mkdir(hr_folder_path(&folder, names[i]), 0700), 0);
        assert_int_equal(hr_weights_check(folder.path, &err), HR_USAGE);
        assert_non_null(strstr(err.message, names[i]));
        assert_int_equal(rmdir(hr_folder_path(&folder, names[i])), 0);
    }
    hr_folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_finite_is_never_saved),
        cmocka_unit_test(a_directory_in_the_place_of_a_file_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
