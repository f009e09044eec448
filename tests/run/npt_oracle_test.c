/* SPDX-License-Identifier: Apache-2.0 */
/* npt_oracle_test.c - compares NPT adapters with PyTorch: logits, the objectives, every gradient
 * and ten steps of AdamW.
 *
 *     npt_oracle_test [FOLDER ...]
 *
 * FOLDER has config.json, golden.json, golden.safetensors and weights.safetensors, as those of
 * tests/oracles/systems/npt_*, which are the default. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/oracle.h"
#include "support/rig.h"

#define TOLERANCE 1e-5

enum { STEPS = 10 };

static const char *const own_folders[] = { HR_ORACLES "/systems/npt_llama",
                                           HR_ORACLES "/systems/npt_gpt2" };
static const char *const *folders = own_folders;
static int folder_count = sizeof own_folders / sizeof *own_folders;

/* A folder, its base, and one form. */
typedef struct {
    oracle_file base, weights, golden;
    json_t *config, *facts;
    const char *form;
    char base_folder[480];
} npt_case;

static void open_case(npt_case *c, const char *folder)
{
    char path[512];
    *c = (npt_case){ .form = NULL };
    snprintf(path, sizeof path, "%s/config.json", folder);
    c->config = json_load_file(path, 0, NULL);
    snprintf(path, sizeof path, "%s/golden.json", folder);
    c->facts = json_load_file(path, 0, NULL);
    assert_true(c->config && c->facts);
    snprintf(c->base_folder, sizeof c->base_folder, "%s/%s", folder,
             json_string_value(json_object_get(c->config, "base")));
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    assert_true(oracle_open(&c->weights, path));
    snprintf(path, sizeof path, "%s/golden.safetensors", folder);
    assert_true(oracle_open(&c->golden, path));
    snprintf(path, sizeof path, "%s/model.safetensors", c->base_folder);
    assert_true(oracle_open(&c->base, path));
}

static void close_case(npt_case *c)
{
    json_decref(c->config);
    json_decref(c->facts);
    oracle_close(&c->weights);
    oracle_close(&c->golden);
    oracle_close(&c->base);
}

static const void *find(const oracle_file *file, const npt_case *c, const char *between,
                        const char *name, int64_t *bytes)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s.%s%s", c->form, between, name);
    return oracle_tensor(file, "", whole, bytes);
}

static float *weight_of(void *context, const char *name)
{
    const npt_case *c = context;
    int64_t bytes = 0;
    const void *found = oracle_tensor(&c->base, "", name, &bytes);
    if (!found) found = find(&c->weights, c, "", name, &bytes);
    if (!found) {
        fprintf(stderr, "the oracle has no %s\n", name);
        abort();
    }
    return memcpy(malloc((size_t)bytes), found, (size_t)bytes);
}

static double number_of(const npt_case *c, const char *key)
{
    const json_t *value = json_object_get(c->config, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void set(hr_config *config, const char *key, const char *format, ...)
{
    hr_error err;
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    rig_must(hr_config_set(config, key, text, &err), &err);
}

/* The recipe of a form. `objective` is one of those of the oracle. */
static void configure(const npt_case *c, const char *objective, hr_config *config)
{
    const bool diagonal = !strcmp(c->form, "diagonal");
    hr_error err;
    hr_config_default(config);
    set(config, "model.from", "%s", c->base_folder);
    rig_must(hr_config_adopt(config, &err), &err);
    set(config, "train.batch", "%.0f", number_of(c, "B"));
    set(config, "train.seq_len", "%.0f", number_of(c, "T"));
    set(config, "train.steps", "%d", STEPS);
    set(config, "train.adapter.kind", "npt");
    set(config, "train.adapter.form", "%s", c->form);
    set(config, "train.adapter.rank", "%.0f", number_of(c, diagonal ? "rank_r" : "inner_rank"));
    set(config, "train.adapter.triples", "%.0f", diagonal ? 1 : number_of(c, "triples_k"));
    set(config, "train.adapter.scale", "%g", number_of(c, "scale_s"));
    set(config, "train.adapter.regularisation", "%g", number_of(c, "regularisation_weight"));
    set(config, "train.adapter.objective", strstr(objective, "direct") ? "direct" : "equivalence");
    set(config, "train.adapter.measure", strstr(objective, "cosine") ? "cosine" : "mse");
    set(config, "train.adapter.inputs",
        strstr(objective, "detached")  ? "detached"
        : strstr(objective, "student") ? "student"
                                       : "teacher");
    set(config, "train.optimizer.lr", "0.001");
    set(config, "train.optimizer.beta2", "0.95");
    set(config, "train.optimizer.weight_decay", "0.1");
    set(config, "train.optimizer.clip", "1");
    set(config, "train.schedule.kind", "constant");
    set(config, "train.schedule.warmup_steps", "0");
    set(config, "train.sample_tokens", "0");
    set(config, "data.tokenizer", "words");
    config->train.dtype = HR_FORMAT_FP32;
    config->model.dropout = 0;
}

static void take_batch(rig *r, const npt_case *c)
{
    int64_t bytes = 0;
    const int64_t *ids = oracle_tensor(&c->golden, "", "input_ids", &bytes);
    const float *valid = oracle_tensor(&c->golden, "", "valid", &bytes);
    assert_int_equal(bytes, r->rows * 4);
    for (int64_t i = 0; i < r->rows; i++) {
        r->ids[i] = (int32_t)ids[i];
        r->targets[i] = valid[i] > 0 ? 0 : -1;
    }
}

/* ||a - b|| / ||b||, b in file order. */
typedef struct {
    double apart, size;
} distance;

static double relative(distance d)
{
    return sqrt(d.apart / d.size);
}

/* The largest distance of a gradient, or of a parameter after training. */
static double worst_of(const rig *r, const npt_case *c, const char *objective, const char *what)
{
    const bool final = !strcmp(what, "final");
    double worst = 0;
    int64_t at = 0, bytes = 0;
    int32_t compared = 0;
    for (int32_t p = 0; p < r->compiled.program.param_count; p++) {
        const hr_param *param = &r->compiled.program.params[p];
        char between[64];
        snprintf(between, sizeof between, "%s.%s.", objective, what);
        const float *want = find(&c->golden, c, between, param->external_name, &bytes);
        distance d = { 0 };
        if (want) assert_int_equal(bytes, 4 * rig_elements(param));
        for (int64_t i = 0; want && i < rig_elements(param); i++) {
            const double value = final ? (double)rig_weight(r, p, i) : r->gradients[at + i];
            d.apart += pow(value - (double)want[i], 2);
            d.size += (double)want[i] * (double)want[i];
        }
        if (want) worst = fmax(worst, relative(d));
        compared += want != NULL;
        at += rig_elements(param);
    }
    assert_true(compared > 0);
    return worst;
}

static double fact(const npt_case *c, const char *objective, const char *name)
{
    const json_t *forms = json_object_get(c->facts, "forms");
    const json_t *of = json_object_get(
        json_object_get(json_object_get(forms, c->form), "objectives"), objective);
    assert_true(json_is_number(json_object_get(of, name)));
    return json_number_value(json_object_get(of, name));
}

/* One objective: loss and gradients, whole and in micro-batches, and ten steps where the oracle has
 * them. */
static void judge_objective(const npt_case *c, const char *objective, uint32_t mask)
{
    const double loss = fact(c, objective, "loss_float64");
    for (int32_t cut = 0; cut < 3; cut++) {
        hr_config config;
        rig r;
        configure(c, objective, &config);
        if (cut == 1) config.memory.micro_batch = 1;
        if (cut == 2) config.memory.recompute = HR_RECOMPUTE_LAYERS;
        rig_open(&r, &config, 1 + cut, mask, weight_of, (void *)c);
        take_batch(&r, c);
        rig_step(&r);
        const double apart = fabs(r.loss - loss) / loss;
        const char *stored = strstr(objective, "direct") ? "mse_teacher" : objective;
        const double gradient = worst_of(&r, c, stored, "grad");
        print_message("%s %s cut %d: loss apart by %.1e, gradients by %.1e", c->form, objective,
                      cut, apart, gradient);
        assert_true(apart < TOLERANCE && gradient < TOLERANCE);
        if (!strcmp(stored, "mse_teacher")) {
            for (int32_t s = 1; s < STEPS; s++) rig_step(&r);
            const double final = worst_of(&r, c, stored, "final");
            print_message(", after ten steps %.1e", final);
            assert_true(final < TOLERANCE);
        }
        print_message("\n");
        rig_close(&r);
    }
}

static void judge_logits(const npt_case *c, uint32_t mask)
{
    hr_config config;
    rig r;
    int64_t bytes = 0;
    distance d = { 0 };
    configure(c, "mse_teacher", &config);
    rig_open(&r, &config, 2, mask, weight_of, (void *)c);
    take_batch(&r, c);
    rig_evaluate(&r);
    const float *want = find(&c->golden, c, "logits.", "npt_layers_all", &bytes);
    assert_int_equal(bytes, 4 * r.rows * config.model.vocab_size);
    for (int64_t i = 0; i < bytes / 4; i++) {
        d.apart += pow((double)r.logits[i] - (double)want[i], 2);
        d.size += (double)want[i] * (double)want[i];
    }
    print_message("%s logits apart by %.1e\n", c->form, relative(d));
    assert_true(relative(d) < TOLERANCE);
    rig_close(&r);
}

static void every_form_and_objective_agrees_with_pytorch(void **state)
{
    static const char *const objectives[] = { "mse_teacher", "mse_student", "mse_student_detached",
                                              "cosine_teacher", "direct_teacher" };
    const uint32_t mask = hr_cpu_detect();
    (void)state;
    for (int f = 0; f < folder_count; f++) {
        npt_case c;
        size_t i;
        json_t *form;
        open_case(&c, folders[f]);
        print_message("%s\n", folders[f]);
        json_array_foreach(json_object_get(c.config, "forms"), i, form)
        {
            c.form = json_string_value(form);
            judge_logits(&c, mask);
            for (size_t o = 0; o < sizeof objectives / sizeof *objectives; o++)
                judge_objective(&c, objectives[o], mask);
        }
        close_case(&c);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_and_objective_agrees_with_pytorch),
    };
    if (argc > 1) {
        folders = (const char *const *)(argv + 1);
        folder_count = argc - 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
