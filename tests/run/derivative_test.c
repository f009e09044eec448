/* SPDX-License-Identifier: Apache-2.0 */
/* derivative_test.c - compares the gradients of whole models with differences of their losses.
 *
 * Each parameter moves along random signs, v, by h times its size; with the slope g.v the loss must
 * change by (L(w + hv) - L(w - hv)) / 2h. Rounding leaves an error of about 1e-8 / h, and curvature
 * one of about h^2: at the best of a few h the sum is near 1e-4 of |g|.
 *
 * `wide` has so many ReLUs that few steps are both without a kink and large enough for fp32. Its
 * loss is computed in double, where h is the first of a few at which no ReLU changes sides. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/family.h"
#include "support/rig.h"
#include "support/wide_in_double.h"

enum { SEED = 20250219, DIRECTIONS = 2 };
#define TOLERANCE 1e-3
/* fp32 has a relative error of 6e-8; the gradients are near 3e-7. */
#define TOLERANCE_IN_DOUBLE 1e-5

/* Weights large enough that every path has a gradient. The same for a name on every call. */
static float *weight_of(void *context, const char *name)
{
    enum { ELEMENTS_MOST = 4096 };
    float *values = malloc(ELEMENTS_MOST * sizeof *values);
    uint64_t key = SEED;
    (void)context;
    for (const char *c = name; *c; c++) key = hr_random_mix(key ^ (uint64_t)*c);
    for (uint32_t i = 0; i < ELEMENTS_MOST; i++) {
        double sum = 0; /* sum of uniforms: nearly normal, standard deviation 0.3 */
        for (uint32_t j = 0; j < 4; j++) sum += hr_random_unit(hr_random_mix(key + 4 * i + j));
        values[i] = (float)((sum - 2) * 0.5);
    }
    if (strstr(name, "ln") || strstr(name, "norm"))
        for (uint32_t i = 0; strstr(name, "weight") && i < ELEMENTS_MOST; i++) values[i] += 1;
    return values;
}

static hr_config config_of(int32_t family, int32_t pattern)
{
    hr_config config;
    hr_config_default(&config);
    config.model.family = family;
    config.model.d_model = 16;
    config.model.n_layers = 2;
    config.model.n_heads = 2;
    config.model.d_ff = 20;
    config.model.vocab_size = 23;
    config.model.dropout = 0.2;
    config.model.rotary_fraction = 0.5;
    config.model.parallel_residual = pattern % 2;
    config.model.attention.pattern = pattern;
    config.model.attention.block = 4;
    config.model.attention.stride = 3;
    snprintf(config.data.tokenizer, sizeof config.data.tokenizer, "words");
    config.train.batch = 2;
    config.train.seq_len = 14;
    config.train.steps = 1;
    config.train.optimizer.lr = 0; /* a step then does not change weights */
    config.train.optimizer.weight_decay = 0;
    config.memory.micro_batch = 1;
    config.memory.loss_chunk = 5;
    return config;
}

/* Returns the loss, with the dropout of step 0. */
static double loss_of(rig *r)
{
    r->executor.clock = 0;
    rig_step(r);
    return r->loss + r->z_loss;
}

static double sign_of(int32_t p, int32_t direction, int64_t i)
{
    const hr_random_stream stream = hr_random_stream_of(SEED, (uint64_t)p, (uint32_t)direction, 0);
    const hr_random_row row = hr_random_row_of(stream, 0, 0);
    return hr_random_element(&row, (uint64_t)i) & 1 ? 1 : -1;
}

static void move(rig *r, int32_t p, int32_t direction, const float *from, double h)
{
    float *master = hr_executor_address(&r->executor, r->compiled.program.params[p].master);
    for (int64_t i = 0; i < rig_elements(&r->compiled.program.params[p]); i++)
        master[rig_place(r, p, i)] = (float)(from[i] + h * sign_of(p, direction, i));
}

/* Returns the difference between slope and loss difference in one direction, relative to |g|, at
 * the best step. `size` is the norm below which a gradient is only rounding. A ReLU input near 0
 * has its kink within every step: then the slope is between those of the two sides, up to rounding,
 * and counts as a kink. */
static double relative_error(rig *r, double loss, int32_t p, int32_t direction,
                             const double *gradient, double size, int32_t *kinks)
{
    static const double steps[] = { 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5 };
    const int64_t count = rig_elements(&r->compiled.program.params[p]);
    float *from = malloc((size_t)count * sizeof *from);
    double slope = 0, norm = 0, best = INFINITY, left = 0, right = 0;
    for (int64_t i = 0; i < count; i++) {
        from[i] = rig_weight(r, p, i);
        slope += gradient[i] * sign_of(p, direction, i);
        norm += gradient[i] * gradient[i];
    }
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        move(r, p, direction, from, steps[k]);
        const double above = loss_of(r);
        move(r, p, direction, from, -steps[k]);
        const double below = loss_of(r);
        best = fmin(best, fabs((above - below) / (2 * steps[k]) - slope));
        left = (loss - below) / steps[k];
        right = (above - loss) / steps[k];
    }
    move(r, p, direction, from, 0);
    free(from);
    const double scale = fmax(sqrt(norm), size), share = best / scale, slack = TOLERANCE * scale;
    if (share < TOLERANCE) return share;
    if (slope < fmin(left, right) - slack || slope > fmax(left, right) + slack) return share;
    (*kinks)++;
    return 0;
}

static void check_gradients(const hr_config *config)
{
    rig r;
    double worst = 0;
    const char *worst_name = "";
    rig_open(&r, config, 1, 0, weight_of, 0);
    const double loss = loss_of(&r);
    int32_t kinks = 0, directions = 0;
    double *gradients = malloc((size_t)r.gradient_count * sizeof *gradients);
    memcpy(gradients, r.gradients, (size_t)r.gradient_count * sizeof *gradients);
    const double size = 0.01 * r.norm;
    int64_t at = 0;
    for (int32_t p = 0; p < r.compiled.program.param_count; p++) {
        const hr_param *param = &r.compiled.program.params[p];
        for (int32_t d = 0; d < DIRECTIONS * HR_COUNT; d++, directions++) {
            const double share = relative_error(&r, loss, p, d, gradients + at, size, &kinks);
            if (share > worst) worst_name = param->external_name;
            worst = fmax(worst, share);
        }
        at += rig_elements(param);
    }
    assert_true(loss_of(&r) == loss); /* every weight is restored */
    print_message(
        "%s, pattern %d: %d parameters, relative error at most %.1e of |g| (%s), %d kinks\n",
        hr_family_of(config)->name, config->model.attention.pattern, r.compiled.program.param_count,
        worst, worst_name, kinks);
    assert_true(worst < TOLERANCE);
    assert_true(100 * kinks <= directions);
    free(gradients);
    rig_close(&r);
}

/* The model of the rig, with the weights in `weights`, in file order. */
static wide_in_double wide_of(const rig *r, const double *weights)
{
    const hr_config *config = &r->config;
    wide_in_double m = { .D = config->model.d_model,
                         .layers = config->model.n_layers,
                         .expansion = config->model.expansion,
                         .rank = config->model.decoder_rank,
                         .V = config->model.vocab_size,
                         .sequences = config->train.batch,
                         .T = config->train.seq_len,
                         .ids = r->ids,
                         .targets = r->targets };
    const double **const places[] = { &m.tok_emb, &m.w_expand,  &m.b_expand,
                                      &m.decoder, &m.decoder_a, &m.decoder_b };
    static const char *const names[] = { "tok_emb", "w_expand",  "b_expand",
                                         "decoder", "decoder.a", "decoder.b" };
    for (int32_t p = 0; p < r->compiled.program.param_count; p++) {
        const hr_param *param = &r->compiled.program.params[p];
        int64_t layer;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (!strcmp(param->external_name, names[i])) *places[i] = weights;
        if (sscanf(param->external_name, "layers.%" SCNd64, &layer) == 1)
            *(strstr(param->external_name, "alpha") ? &m.alpha[layer] : &m.w_in[layer]) = weights;
        weights += rig_elements(param);
    }
    return m;
}

/* Returns the slope of the loss along `direction` of parameter p, whose weights are `w` inside
 * those of `m`: over the first step at which no ReLU changes sides. NAN if there is none. */
static double slope_in_double(const wide_in_double *m, double *w, int64_t count, int32_t p,
                              int32_t direction)
{
    static const double steps[] = { 1e-5, 1e-6, 1e-7, 1e-8 };
    double *from = malloc((size_t)count * sizeof *from), slope = NAN;
    memcpy(from, w, (size_t)count * sizeof *from);
    for (size_t k = 0; isnan(slope) && k < sizeof steps / sizeof *steps; k++) {
        for (int64_t i = 0; i < count; i++) w[i] = from[i] + steps[k] * sign_of(p, direction, i);
        const wide_seen above = wide_loss(m);
        for (int64_t i = 0; i < count; i++) w[i] = from[i] - steps[k] * sign_of(p, direction, i);
        const wide_seen below = wide_loss(m);
        if (above.sides == below.sides) slope = (above.loss - below.loss) / (2 * steps[k]);
    }
    memcpy(w, from, (size_t)count * sizeof *from);
    free(from);
    return slope;
}

/* Returns the difference between that slope and that of the gradient, relative to |g|. */
static double relative_error_of(double measured, const double *gradient, int64_t count, int32_t p,
                                int32_t direction, double size)
{
    double slope = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        slope += gradient[i] * sign_of(p, direction, i);
        norm += gradient[i] * gradient[i];
    }
    return fabs(measured - slope) / fmax(sqrt(norm), size);
}

static void check_gradients_in_double(const hr_config *config)
{
    rig r;
    double worst = 0;
    const char *worst_name = "";
    rig_open(&r, config, 1, 0, weight_of, 0);
    double *weights = malloc((size_t)r.gradient_count * sizeof *weights), *at = weights;
    for (int32_t p = 0; p < r.compiled.program.param_count; p++)
        for (int64_t i = 0; i < rig_elements(&r.compiled.program.params[p]); i++)
            *at++ = rig_weight(&r, p, i);
    const wide_in_double m = wide_of(&r, weights);
    assert_true(fabs(wide_loss(&m).loss - loss_of(&r)) < 1e-6);
    at = weights;
    for (int32_t p = 0; p < r.compiled.program.param_count; p++) {
        const hr_param *param = &r.compiled.program.params[p];
        const int64_t count = rig_elements(param);
        const double *gradient = r.gradients + (at - weights);
        for (int32_t d = 0; d < DIRECTIONS * HR_COUNT; d++) {
            const double measured = slope_in_double(&m, at, count, p, d);
            assert_false(isnan(measured));
            const double share = relative_error_of(measured, gradient, count, p, d, 0.01 * r.norm);
            if (share > worst) worst_name = param->external_name;
            worst = fmax(worst, share);
        }
        at += count;
    }
    print_message("wide, rank %lld: %d parameters, relative error at most %.1e of |g| (%s)\n",
                  (long long)config->model.decoder_rank, r.compiled.program.param_count, worst,
                  worst_name);
    assert_true(worst < TOLERANCE_IN_DOUBLE);
    free(weights);
    rig_close(&r);
}

static void needle_has_the_gradients_of_its_loss(void **state)
{
    (void)state;
    print_message("seed %d\n", SEED);
    for (int32_t pattern = 0; pattern < 4; pattern++) {
        const hr_config config = config_of(HR_FAMILY_NEEDLE, pattern);
        check_gradients(&config);
    }
}

static void gpt_neox_has_the_gradients_of_its_loss_with_either_residual(void **state)
{
    (void)state;
    for (int32_t pattern = 0; pattern < 4; pattern++) {
        const hr_config config = config_of(HR_FAMILY_GPT_NEOX, pattern);
        check_gradients(&config);
    }
}

static void llama_has_the_gradients_of_its_loss_with_shared_keys(void **state)
{
    (void)state;
    for (int32_t pattern = 0; pattern < 4; pattern++) {
        hr_config config = config_of(HR_FAMILY_LLAMA, pattern);
        if (pattern % 2) config.model.n_kv_heads = config.model.n_heads / 2;
        if (pattern / 2) config.model.head_dim = 6;
        check_gradients(&config);
    }
}

static void llama_has_the_gradients_of_its_loss_with_a_sliding_window(void **state)
{
    (void)state;
    for (int32_t window = 1; window < 12; window += 5) {
        hr_config config = config_of(HR_FAMILY_LLAMA, 0);
        config.model.n_kv_heads = 1;
        config.model.attention.sliding_window = window;
        check_gradients(&config);
    }
}

static void wide_has_the_gradients_of_its_loss_with_either_decoder(void **state)
{
    (void)state;
    for (int32_t rank = 0; rank < 8; rank += 7) {
        hr_config config = config_of(HR_FAMILY_WIDE, 0);
        config.model.expansion = 19;
        config.model.dropout = 0;
        config.model.decoder_rank = rank;
        check_gradients_in_double(&config);
    }
}

static void yxanul_has_the_gradients_of_its_loss_with_either_head(void **state)
{
    (void)state;
    for (int32_t tie = HR_TIE_FALSE; tie <= HR_TIE_TRUE; tie++) {
        hr_config config = config_of(HR_FAMILY_YXANUL, 0);
        config.model.n_kv_heads = 1;
        config.model.embedding_rank = 5;
        config.model.tie_embeddings = tie;
        check_gradients(&config);
    }
}

/* One chunk of the head, several, and a shorter last one. */
static void z_loss_has_its_gradient(void **state)
{
    (void)state;
    for (int32_t chunk = 5; chunk < 33; chunk += 9) {
        hr_config config = config_of(chunk % 2 ? HR_FAMILY_LLAMA : HR_FAMILY_GPT_NEOX, 0);
        config.train.z_loss = 0.3;
        config.memory.loss_chunk = chunk;
        check_gradients(&config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needle_has_the_gradients_of_its_loss),
        cmocka_unit_test(gpt_neox_has_the_gradients_of_its_loss_with_either_residual),
        cmocka_unit_test(llama_has_the_gradients_of_its_loss_with_shared_keys),
        cmocka_unit_test(llama_has_the_gradients_of_its_loss_with_a_sliding_window),
        cmocka_unit_test(wide_has_the_gradients_of_its_loss_with_either_decoder),
        cmocka_unit_test(yxanul_has_the_gradients_of_its_loss_with_either_head),
        cmocka_unit_test(z_loss_has_its_gradient),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
