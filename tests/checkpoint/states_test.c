/* SPDX-License-Identifier: Apache-2.0 */
/* states_test.c - states of every shape return from their files as they were, and optimizers list
 * theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "checkpoint/weights_in.h"
#include "config/config_keys.h"
#include "model/optimizer.h"
#include "support/by_hand.h"
#include "support/folder.h"

enum { MEMORY_BYTES = 1 << 20, STAGING_BYTES = 4096, PARAMS = 3, STATES = 4 };

static const hr_state states[STATES] = {
    { "moment", "moment.safetensors", HR_STATE_ELEMENTS, HR_F32, false },
    { "rows", "rows.safetensors", HR_STATE_ROWS, HR_F32, false },
    { "cache", NULL, HR_STATE_ELEMENTS, HR_F32, false },
    { "columns", "columns.safetensors", HR_STATE_COLUMNS, HR_F32, false },
};

/* A matrix, a matrix that files store transposed, and a vector, each with the states above. */
static void build(hr_program *program, hr_region *region)
{
    hr_error err;
    hr_builder b = by_hand(program, region, 8, 8, &err);
    b.dtype = HR_BF16;
    program->state_count = STATES;
    memcpy(program->states, states, sizeof states);
    hr_build_param(&b, (hr_param_shape){ .kind = HR_PARAM_MATRIX, .K = 20, .N = 35 }, "A");
    hr_build_param(
        &b, (hr_param_shape){ .kind = HR_PARAM_MATRIX, .K = 24, .N = 17, .transposed = true }, "B");
    hr_build_param(&b, (hr_param_shape){ .kind = HR_PARAM_VECTOR, .K = 9 }, "c");
    for (int32_t p = 0; p < PARAMS; p++) hr_build_states(&b, p);
    assert_int_equal(hr_build_status(&b), HR_OK);
    assert_int_equal(program->param_count, PARAMS);
}

static int64_t elements_of(const hr_program *program, int32_t param, int32_t state)
{
    static const int64_t expected[PARAMS][STATES] = { { 20 * 35, 20, 20 * 35, 35 },
                                                      { 24 * 17, 24, 24 * 17, 17 },
                                                      { 9, 9, 9, 1 } };
    const hr_tensor *tensor = &program->tensors[program->params[param].states[state]];
    const int64_t count = tensor->dims[0] * hr_max(tensor->dims[1], 1);
    assert_int_equal(count, expected[param][state]);
    assert_int_equal(tensor->role, HR_ROLE_STATE);
    return count;
}

/* The state of a parameter in memory, with padding as zeros. The caller frees it. */
static float *values_of(const hr_program *program, int32_t param, int32_t state)
{
    const hr_tensor *tensor = &program->tensors[program->params[param].states[state]];
    const int64_t N = hr_max(tensor->dims[1], 1), count = elements_of(program, param, state);
    float *values = calloc(1, (size_t)hr_tensor_bytes(tensor));
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[hr_layout_index((hr_layout)tensor->layout, tensor->dims[0], N, i / N, i % N)] =
            (float)(1000 * param + 100 * state + 1) + (float)i / 1024;
    return values;
}

static void write_file(const hr_program *program, int32_t state, const char *directory, char *text,
                       int64_t text_bytes)
{
    static char staging[STAGING_BYTES];
    hr_error err;
    hr_weights_out out;
    assert_int_equal(
        hr_weights_begin(&out, program, HR_KEPT_STATES + state, directory, text, text_bytes, &err),
        HR_OK);
    for (int32_t p = 0; p < PARAMS; p++) {
        float *values = values_of(program, p, state);
        assert_int_equal(hr_weights_add(&out, p, values, staging, sizeof staging, &err), HR_OK);
        free(values);
    }
    assert_int_equal(out.file.bytes, hr_kept_file_bytes(program, HR_KEPT_STATES + state));
    assert_int_equal(hr_file_commit(&out.file, &err), HR_OK);
}

static void read_file(const hr_program *program, int32_t state, const char *directory, char *text,
                      int64_t text_bytes)
{
    static char staging[STAGING_BYTES];
    hr_error err;
    hr_weights_source sources[PARAMS];
    int files[1];
    hr_weights_in in = { .sources = sources, .files = files };
    assert_int_equal(hr_weights_in_open_kept(&in, program, HR_KEPT_STATES + state, directory,
                                             hr_cpu_detect(), text, text_bytes, &err),
                     HR_OK);
    for (int32_t p = 0; p < PARAMS; p++) {
        const hr_tensor *tensor = &program->tensors[program->params[p].states[state]];
        float *expected = values_of(program, p, state);
        float *values = calloc(1, (size_t)hr_tensor_bytes(tensor));
        for (int64_t i = 0;
             i < hr_weights_in_pieces(&in, p, (hr_weights_place){ 0 }, sizeof staging); i++)
            assert_int_equal(hr_weights_in_take(&in, p, i, (hr_weights_place){ .master = values },
                                                staging, sizeof staging, &err),
                             HR_OK);
        assert_memory_equal(values, expected, (size_t)hr_tensor_bytes(tensor));
        free(values);
        free(expected);
    }
    hr_file_close(&in.files[0]);
}

static void states_return_from_their_files(void **state)
{
    (void)state;
    void *memory = malloc(MEMORY_BYTES);
    hr_program program;
    hr_region region = hr_region_over(memory, MEMORY_BYTES);
    build(&program, &region);
    hr_folder folder = hr_folder_open();
    const int64_t text_bytes = hr_weights_text_bytes(&program);
    char *text = malloc((size_t)text_bytes);
    assert_int_equal(hr_kept_count(&program), 1 + STATES);
    for (int32_t i = 0; i < STATES; i++) {
        assert_int_equal(hr_kept_any(&program, HR_KEPT_STATES + i), states[i].file != NULL);
        if (!states[i].file) continue;
        write_file(&program, i, folder.path, text, text_bytes);
        read_file(&program, i, folder.path, text, text_bytes);
    }
    free(text);
    hr_folder_close(&folder);
    free(memory);
}

/* The table of optimizers is in the order of the choices of the key. */
static void optimizers_have_the_names_of_their_key(void **state)
{
    (void)state;
    hr_error err;
    for (int32_t kind = 0; kind < HR_OPTIMIZERS; kind++) {
        hr_config config;
        hr_state kept[HR_STATES_MAX];
        hr_config_default(&config);
        assert_int_equal(
            hr_config_set(&config, "train.optimizer.kind", hr_optimizers[kind].name, &err), HR_OK);
        assert_int_equal(config.train.optimizer.kind, kind);
        const int32_t optional = hr_optimizers[kind].has_last != NULL;
        assert_int_equal(hr_config_states(&config, kept),
                         hr_optimizers[kind].state_count - optional);
        config.train.optimizer.adafactor.beta1 = 0.9;
        const int32_t count = hr_config_states(&config, kept);
        assert_int_equal(count, hr_optimizers[kind].state_count);
        config.train.ema_decay = 0.9;
        assert_int_equal(hr_config_states(&config, kept), count + 1);
        assert_true(kept[count].average && count < HR_STATES_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_return_from_their_files),
        cmocka_unit_test(optimizers_have_the_names_of_their_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
