/* SPDX-License-Identifier: Apache-2.0 */
/* kept_test.c - bytes per token that a layer saves for backward if no product is recomputed, by a
 * formula and in built programs (docs/fit.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph/backend.h"
#include "ops/cpu.h"
#include "plan/compile.h"
#include "sections/assemble.h"

enum { LAYERS = 3, T = 128, BATCH = 2, H = 4, D = 384, F = 4 * D, GATED = 8 * D / 3 };

/* The values that a pass over memory recomputes: norms, and activations from their inputs. ReLU
 * saves no input. */
static hr_intermediates cheap(int32_t family)
{
    const bool relu = family == HR_FAMILY_NEEDLE;
    return (hr_intermediates)(1u << HR_INTERMEDIATE_NORM | !relu << HR_INTERMEDIATE_ACTIVATION);
}

static int64_t flops_of_step(const hr_program *program)
{
    const hr_loop *section = &program->loops[hr_program_loop(program, HR_LOOP_STEP)];
    int64_t flops = 0;
    for (int32_t s = section->step_first; s <= section->step_last; s++) {
        const hr_op *op = hr_step_op(program, &program->steps[s]);
        if (op->flops) flops += op->flops(program->steps[s].attr, T);
    }
    return flops;
}

/* Bytes of the middle layer's values that are live from its forward pass to the head. */
static int64_t kept_bytes(const hr_compiled *c)
{
    const hr_program *program = &c->program;
    int64_t bytes = 0;
    int32_t head = program->loops[hr_program_loop(program, HR_LOOP_STEP)].step_first;
    while (program->steps[head].block != HR_BLOCK_HEAD) head++;
    for (int32_t b = 0; b < c->plan.buffer_count; b++) {
        const hr_buffer *buffer = &c->plan.buffers[b];
        if (buffer->tensor == HR_NONE || buffer->view_of != HR_NONE) continue;
        const hr_tensor *tensor = &program->tensors[buffer->tensor];
        if (tensor->layer != 1 || tensor->rows == 0) continue;
        if (buffer->step_first < head && buffer->step_last >= head) bytes += buffer->bytes;
    }
    return bytes;
}

static void saved_bytes_per_token_equal_the_formula(void **state)
{
    static const struct {
        int32_t family, parallel;
        int64_t kv_heads, d_ff;
        int64_t bytes; /* bf16 */
    } cases[] = {
        /* layer input, q k v, attention output, up, log-sum-exps, statistics of two norms */
        { HR_FAMILY_GPT_NEOX, 1, 0, F, 2 * D + 6 * D + 2 * D + 2 * F + 4 * H + 2 * 8 },
        /* plus the sum between the branches */
        { HR_FAMILY_GPT_NEOX, 0, 0, F, 2 * D + 6 * D + 2 * D + 2 * D + 2 * F + 4 * H + 2 * 8 },
        /* four norms; for ReLU its result */
        { HR_FAMILY_NEEDLE, 0, 0, F, 2 * D + 6 * D + 2 * D + 2 * D + 2 * F + 4 * H + 4 * 8 },
        /* gate and up, norms without means: 22.7 d + 4 H + 8 if F is 8/3 d */
        { HR_FAMILY_LLAMA, 0, 0, GATED, 2 * D + 6 * D + 2 * D + 2 * D + 4 * GATED + 4 * H + 2 * 4 },
        /* half as many key-value heads */
        { HR_FAMILY_LLAMA, 0, 2, GATED, 2 * D + 4 * D + 2 * D + 2 * D + 4 * GATED + 4 * H + 2 * 4 },
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        hr_config config;
        hr_compiled all, some;
        hr_error err;
        hr_intermediates nothing[LAYERS] = { 0 }, recompute_set[LAYERS];
        hr_config_default(&config);
        config.model.family = cases[i / 2].family;
        config.model.parallel_residual = cases[i / 2].parallel;
        config.model.n_layers = LAYERS;
        config.model.n_heads = H;
        config.model.d_model = D;
        config.model.n_kv_heads = cases[i / 2].kv_heads;
        config.model.d_ff = cases[i / 2].d_ff;
        config.model.vocab_size = 300;
        config.model.dropout = 0.1 * (double)(i % 2);
        config.train.dtype = HR_FORMAT_BF16;
        config.train.seq_len = T;
        config.train.batch = BATCH;
        for (int32_t l = 0; l < LAYERS; l++) recompute_set[l] = cheap(config.model.family);
        const int64_t bytes = hr_compile_bytes(&config);
        void *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
        hr_region region = hr_region_over(memory, bytes);
        hr_strategy strategy = { .dw_first = true,
                                 .layer_count = LAYERS,
                                 .recompute_set = nothing };
        assert_int_equal(
            hr_compile_floor(&config, &hr_cpu_backend, &strategy, 2, &region, &all, &err), HR_OK);
        const int64_t flops = flops_of_step(&all.program);
        region.used = 0;
        strategy.recompute_set = recompute_set;
        assert_int_equal(
            hr_compile_floor(&config, &hr_cpu_backend, &strategy, 2, &region, &some, &err), HR_OK);
        assert_int_equal(flops_of_step(&some.program), flops);
        assert_int_equal(kept_bytes(&some), cases[i / 2].bytes * T * BATCH);
        free(memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_bytes_per_token_equal_the_formula),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
