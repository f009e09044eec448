/* SPDX-License-Identifier: Apache-2.0 */
/* compile_test.c - whole plans: parameter counts of published models, the floor, the verifier,
 * reproducibility, and the pinned sizes of the presets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "headroom/verify.h"
#include "ops/cpu.h"
#include "plan/compile.h"
#include "plan/plan_file.h"
#include "sections/assemble.h"
#include "support/folder.h"
#include "support/random_freeze.h"

enum { SEED = 20250214 };

typedef struct {
    void *memory;
    hr_region region;
    hr_compiled of;
} compiled;

static void must(hr_status status, const hr_error *err)
{
    if (status != HR_OK) fail_msg("%s", err->message);
}

/* Compiles in memory filled with `rubbish`: no plan may depend on the initial content. */
static void compile(compiled *c, const hr_config *config, int64_t micro_batch, int32_t threads,
                    int rubbish)
{
    const int64_t bytes = hr_compile_bytes(config);
    hr_error err;
    c->memory = aligned_alloc(64, (size_t)hr_round_up(bytes, 64));
    memset(c->memory, rubbish, (size_t)bytes);
    c->region = hr_region_over(c->memory, bytes);
    must(hr_config_check(config, &err), &err);
    hr_intermediates *recompute_set = malloc((size_t)config->model.n_layers *
                                             sizeof *recompute_set);
    const hr_strategy strategy = hr_strategy_of(config, micro_batch, recompute_set);
    must(hr_compile(config, &hr_cpu_backend, &strategy, threads, &c->region, &c->of, &err), &err);
    if (c->of.packing.proof == HR_PACK_OPEN)
        must(hr_compile_pack(&c->region, HR_COMPILE_PACK_WORK_MOST, &c->of, &err), &err);
    free(recompute_set);
    hr_plan *plan = &c->of.plan;
    plan->process.rung = "ref";
    plan->process.page_bytes = 4096;
    const int64_t pages_bytes = hr_round_up(plan->arena_bytes, plan->process.page_bytes);
    plan->process.lines[0] = (hr_account_line){ "arena", pages_bytes };
    plan->process.line_count = 1;
    plan->process.bytes = pages_bytes;
}

static hr_config preset(const char *name)
{
    hr_config config;
    hr_error err;
    char path[512];
    hr_config_default(&config);
    snprintf(path, sizeof path, HR_SOURCE "/presets/%s.yaml", name);
    must(hr_config_read(&config, path, &err), &err);
    return config;
}

static int64_t parameters(const hr_config *config)
{
    compiled c;
    compile(&c, config, config->train.batch, 1, 0xaa);
    const int64_t count = hr_program_parameters(&c.of.program);
    free(c.memory);
    return count;
}

/* ---- parameter counts */

static void needle_has_the_parameters_of_its_authors(void **state)
{
    (void)state;
    hr_config config = preset("needle-70m");
    assert_int_equal(parameters(&config), 29220864);
    config.train.seq_len = 256;
    assert_int_equal(parameters(&config), 29286400);
    config.train.seq_len = 128;
    config.model.vocab_size = 50000;
    assert_int_equal(parameters(&config), 70180864);
}

/* Embedding and head have V D each. A layer: q, k, v and o 4 D^2 + 4 D, MLP 8 D^2 + 5 D, two norms
 * 4 D. The final norm 2 D. */
static int64_t pythia_parameters(int64_t V, int64_t L, int64_t D)
{
    return 2 * V * D + L * (12 * D * D + 13 * D) + 2 * D;
}

static void gpt_neox_has_the_parameters_of_every_pythia(void **state)
{
    static const struct {
        const char *name;
        int64_t L, D, H, V, published;
    } sizes[] = { { "pythia-14m", 6, 128, 4, 50304, 14067712 },
                  { "pythia-31m", 6, 256, 8, 50304, 30494720 },
                  { "pythia-70m", 6, 512, 8, 50304, 70426624 },
                  { "pythia-160m", 12, 768, 12, 50304, 162322944 },
                  { "pythia-410m", 24, 1024, 16, 50304, 405334016 },
                  { "pythia-1b", 16, 2048, 8, 50304, 1011781632 },
                  { "pythia-1.4b", 24, 2048, 16, 50304, 1414647808 },
                  { "pythia-2.8b", 32, 2560, 32, 50304, 2775208960 },
                  { "pythia-6.9b", 32, 4096, 32, 50432, 6857302016 },
                  { "pythia-12b", 36, 5120, 40, 50688, 11846072320 } };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const hr_config config = preset(sizes[i].name);
        assert_int_equal(config.model.n_layers, sizes[i].L);
        assert_int_equal(config.model.d_model, sizes[i].D);
        assert_int_equal(config.model.n_heads, sizes[i].H);
        assert_int_equal(config.model.d_ff, 4 * sizes[i].D);
        assert_int_equal(pythia_parameters(sizes[i].V, sizes[i].L, sizes[i].D), sizes[i].published);
        assert_int_equal(parameters(&config), sizes[i].published);
    }
}

/* Published numbers, or computed by hand: long-* have 2 V D + L (2 D^2 + 2 D K + 3 D F + 2 D) + D,
 * where K is the width of 8 key-value heads of D / H each; wide-* have V D + L (D^2 + D) + D X + X
 * + X V with an expansion of X. */
static void families_have_the_published_parameters(void **state)
{
    static const struct {
        const char *name;
        int64_t published;
    } known[] = { { "llama-134m", 134105856 },
                  { "gpt2-124m", 124439808 },
                  { "opt-125m", 125239296 },
                  { "llama-3.2-1b", 1235814400 },
                  { "mistral-7b", 7241732096 },
                  { "qwen2-0.5b", 494032768 },
                  { "qwen3-0.6b", 596049920 },
                  { "yxanul-197m", 196398464 },
                  { "long-0.6b", 663544832 },
                  { "long-4b", 3915962880 },
                  { "long-8b", 8190726144 },
                  { "long-32b", 30748840960 },
                  { "small/wide", 887296 },
                  { "wide-1.2b", 1189646336 },
                  { "needle-70m", 29220864 },
                  { "needle-70m-50k", 70180864 },
                  { "needle-70m-sparse", 29220864 },
                  { "llama-3.1-8b", 8030261248 },
                  { "long-0.6b-131k", 663544832 },
                  { "long-4b-131k", 3915962880 },
                  { "long-8b-131k", 8190726144 },
                  { "long-32b-131k", 30748840960 },
                  { "neurogen-original", 1189646336 },
                  { "neurogen-original-fp32", 1189646336 } };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const hr_config config = preset(known[i].name);
        assert_int_equal(parameters(&config), known[i].published);
    }
    hr_config gpt2 = preset("gpt2-124m"); /* XL: 48 layers of 1,600 */
    gpt2.model.n_layers = 48;
    gpt2.model.d_model = 1600;
    gpt2.model.n_heads = 25;
    gpt2.model.d_ff = 6400;
    assert_int_equal(parameters(&gpt2), 1557611200);
    hr_config yxanul = preset("yxanul-197m"); /* as published: an untied head of V D more */
    yxanul.model.tie_embeddings = HR_TIE_FALSE;
    assert_int_equal(parameters(&yxanul), 350002304);
}

/* Of the document: a decoder of D_out x 32000 in fp32, and V E + L (E^2 + E) + E X + X + X V
 * parameters in all. */
static void neurogen_has_the_decoders_of_its_document(void **state)
{
    static const struct {
        const char *name;
        int64_t E, D_out, T, decoder_bytes;
    } sizes[] = { { "neurogen-original-fp32", 2048, 32768, 512, 4194304000 },
                  { "neurogen-balanced", 768, 8192, 256, 1048576000 },
                  { "neurogen-aggressive", 1024, 12288, 256, 1572864000 },
                  { "neurogen-ultra", 512, 6144, 256, 786432000 } };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const hr_config config = preset(sizes[i].name);
        const int64_t E = sizes[i].E, X = sizes[i].D_out, V = 32000, L = config.model.n_layers;
        assert_int_equal(config.model.d_model, E);
        assert_int_equal(config.model.vocab_size, V);
        assert_int_equal(hr_config_expansion(&config), X);
        assert_int_equal(config.train.seq_len, sizes[i].T);
        assert_int_equal(X * V * 4, sizes[i].decoder_bytes);
        assert_int_equal(parameters(&config), V * E + L * (E * E + E) + E * X + X + X * V);
    }
}

/* Batch, length and steps of the curriculum; each stage has the model of all others. */
static void yxanul_has_the_ten_stages_of_its_curriculum(void **state)
{
    static const int64_t lengths[] = { 8, 16, 32, 64, 128, 256, 512, 768, 1536, 2048 };
    static const int64_t batches[] = { 4096, 4096, 2048, 1024, 512, 256, 128, 128, 64, 64 };
    static const int64_t begins[] = { 0,     2000,  5000,  10000,  20000,
                                      35000, 55000, 80000, 110000, 140000 };
    (void)state;
    for (int32_t i = 0; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "yxanul-stage-%d", i + 1);
        const hr_config config = preset(name);
        const double lr = 6e-4 * (0.3 + 0.7 * i / 9), clip = 0.5 + 0.5 * i / 9;
        assert_int_equal(config.train.seq_len, lengths[i]);
        assert_int_equal(config.train.batch, batches[i]);
        assert_int_equal(config.train.steps, i < 9 ? begins[i + 1] - begins[i] : 0);
        assert_int_equal(hr_config_positions(&config), 2048);
        assert_true(fabs(config.train.optimizer.lr - lr) < 1e-3 * lr);
        assert_true(fabs(config.train.optimizer.clip - clip) < 1e-3 * clip);
        assert_int_equal(parameters(&config), 196398464);
    }
}

/* ---- plans */

static void presets_pack_at_their_floor(void **state)
{
    static const char *const names[] = {
        "needle-70m",     "pythia-70m",  "llama-134m",   "gpt2-124m",   "opt-125m",
        "qwen3-0.6b",     "yxanul-197m", "llama-3.2-1b", "quickstart",  "small/needle",
        "small/gpt_neox", "small/gpt2",  "small/opt",    "small/llama", "small/mistral",
        "small/qwen2",    "small/qwen3", "small/yxanul", "small/wide",  "small/gpt_neo"
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int32_t format = 0; format < 2; format++) {
            hr_config config = preset(names[i]);
            config.train.dtype = format;
            for (int64_t micro = 1; micro <= config.train.batch; micro *= 2) {
                compiled c;
                compile(&c, &config, micro, 2, 0);
                assert_int_equal(c.of.plan.arena_bytes, c.of.plan.floor_bytes);
                assert_int_equal(c.of.packing.proof, HR_PACK_AT_FLOOR);
                free(c.memory);
            }
        }
}

static void preset_plans_keep_their_size(void **state)
{
    static const struct {
        const char *name;
        int32_t format;
        int64_t micro_batch, arena_bytes;
    } known[] = {
        { "needle-70m", HR_FORMAT_FP32, 32, 945443008 },
        { "needle-70m", HR_FORMAT_FP32, 8, 642158784 },
        { "needle-70m", HR_FORMAT_FP32, 1, 491124416 },
        { "needle-70m", HR_FORMAT_BF16, 32, 708710592 },
        { "needle-70m", HR_FORMAT_BF16, 1, 528426688 },
        { "pythia-70m", HR_FORMAT_BF16, 8, 1484673216 },
        { "pythia-70m", HR_FORMAT_BF16, 1, 1312960704 },
        { "pythia-70m", HR_FORMAT_FP32, 8, 1838174400 },
        { "llama-134m", HR_FORMAT_BF16, 8, 4152906944 },
        { "llama-134m", HR_FORMAT_BF16, 1, 2701832384 },
        { "llama-134m", HR_FORMAT_FP32, 8, 6151099584 },
        { "quickstart", HR_FORMAT_FP32, 16, 70311104 },
    };
    (void)state;
    int32_t moved = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        hr_config config = preset(known[i].name);
        config.train.dtype = known[i].format;
        snprintf(config.train.out, sizeof config.train.out, "out");
        compiled c;
        compile(&c, &config, known[i].micro_batch, 2, 0);
        if (c.of.plan.arena_bytes != known[i].arena_bytes)
            print_message("%s, format %d, micro-batch %lld: %lld bytes, were %lld\n", known[i].name,
                          known[i].format, (long long)known[i].micro_batch,
                          (long long)c.of.plan.arena_bytes, (long long)known[i].arena_bytes);
        moved += c.of.plan.arena_bytes != known[i].arena_bytes;
        free(c.memory);
    }
    assert_int_equal(moved, 0);
}

static void random_plans_pass_the_verifier_and_are_reproducible(void **state)
{
    (void)state;
    const hr_folder folder = hr_folder_open();
    int32_t at_floor = 0, stored = 0;
    print_message("seed %d\n", SEED);
    for (uint64_t turn = 0; turn < 60 * HR_COUNT; turn++) {
        hr_config config = random_config(SEED, turn);
        int64_t micro = between(SEED, turn, 20, 1, config.train.batch);
        if (turn % 2) draw_nsa(&config, SEED, turn);
        if (turn % 3 == 0) config.memory.spill = HR_SPILL_AUTO;
        config.memory.recompute_again = turn % 2;
        config.memory.product_norm = turn % 3 == 1;
        while (config.train.batch % micro) micro--;
        config.memory.loss_chunk = between(SEED, turn, 21, 0, 300);
        random_freeze(&config, (int32_t)(turn % FREEZES), SEED, turn);
        stored += random_stored(&config, SEED, turn);
        const int32_t threads = (int32_t)between(SEED, turn, 22, 1, 3);
        char *text[2];
        for (int32_t twice = 0; twice < 2; twice++) {
            const char *path = hr_folder_path(&folder, "plan.json");
            compiled c;
            hr_verify_report report;
            hr_error err;
            int64_t bytes;
            compile(&c, &config, micro, threads, twice ? 0xff : 0x55);
            must(hr_plan_file_write(path, &c.of.program, &c.of.plan, &err), &err);
            must(hr_verify_file(path, &report, &err), &err);
            assert_int_equal(report.floor_bytes, c.of.plan.floor_bytes);
            assert_int_equal(report.arena_bytes, c.of.plan.arena_bytes);
            assert_true(c.of.packing.proof != HR_PACK_OPEN);
            at_floor += c.of.packing.proof == HR_PACK_AT_FLOOR;
            text[twice] = hr_folder_read(path, &bytes);
            free(c.memory);
        }
        assert_string_equal(text[0], text[1]);
        free(text[0]);
        free(text[1]);
    }
    print_message("%d of %d at their floor, %d with stored weights\n", at_floor / 2, 60 * HR_COUNT,
                  stored);
    assert_true(stored > 10 * HR_COUNT);
    hr_folder_close(&folder);
}

static void a_region_that_is_too_small_is_refused_at_every_size(void **state)
{
    (void)state;
    const hr_config config = random_config(SEED, 3);
    const int64_t bytes = hr_compile_bytes(&config);
    void *memory = aligned_alloc(64, (size_t)hr_round_up(bytes, 64));
    int32_t refused = 0;
    for (int32_t part = 0; part <= 400; part++) {
        hr_region region = hr_region_over(memory, bytes * part / 400);
        hr_compiled c;
        hr_error err;
        hr_intermediates recompute_set[8];
        const hr_strategy strategy = hr_strategy_of(&config, config.train.batch, recompute_set);
        const hr_status status = hr_compile(&config, &hr_cpu_backend, &strategy, 2, &region, &c,
                                            &err);
        assert_true(status == HR_OK || status == HR_FAILURE);
        refused += status == HR_FAILURE;
        if (part == 400) assert_int_equal(status, HR_OK);
    }
    assert_true(refused > 10);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needle_has_the_parameters_of_its_authors),
        cmocka_unit_test(gpt_neox_has_the_parameters_of_every_pythia),
        cmocka_unit_test(families_have_the_published_parameters),
        cmocka_unit_test(neurogen_has_the_decoders_of_its_document),
        cmocka_unit_test(yxanul_has_the_ten_stages_of_its_curriculum),
        cmocka_unit_test(presets_pack_at_their_floor),
        cmocka_unit_test(preset_plans_keep_their_size),
        cmocka_unit_test(random_plans_pass_the_verifier_and_are_reproducible),
        cmocka_unit_test(a_region_that_is_too_small_is_refused_at_every_size),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
