/* SPDX-License-Identifier: Apache-2.0 */
/* load_test.c - loads models of other software: golden logits for all names, dtypes and shards;
 * refuses folders without the model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/random.h"
#include "checkpoint/load.h"
#include "support/e4m3.h"
#include "support/oracle.h"
#include "support/rig.h"
#include "support/stored.h"

/* Ten times the observed difference between two fp32 implementations. */
#define LOGIT_TOLERANCE 2e-5

enum { SEED = 3 };

static const char *const models[] = { "gpt_neox",   "llama_gqa", "gpt2",
                                      "qwen3_tied", "gpt_neo",   "qwen2_mixed" };
enum { MODELS = sizeof models / sizeof *models };

/* How the tensors of a model are written to a folder. */
typedef struct {
    const char *dtype; /* F32, F16, BF16; F8_E4M3: matrices with scales, the rest F32 */
    bool bare;         /* without prefixes */
    int32_t shards;    /* 0: one file */
    const char *left_out, *added, *renamed;
    const char *spoiled;
    float spoiling;
    const char *reshaped;
} variant;

static oracle_file model;

static bool open_model(int32_t which)
{
    char path[512];
    snprintf(path, sizeof path, HR_ORACLES "/hf/%s/model.safetensors", models[which]);
    return oracle_open(&model, path);
}

static const char *bare_name(const char *name)
{
    static const char *const prefixes[] = { "model.", "gpt_neox.", "transformer." };
    for (int32_t i = 0; i < 3; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return name + strlen(prefixes[i]);
    return name;
}

/* Converts to fp16, round to nearest even, in plain arithmetic. */
static uint16_t half_of(float value)
{
    const double size = fabs((double)value);
    int exponent;
    frexp(size, &exponent);
    const int step = (exponent - 11 < -24) ? -24 : exponent - 11;
    const double steps = nearbyint(ldexp(size, -step));
    const int32_t low = step == -24 ? (int32_t)steps : (int32_t)steps - 1024 + ((step + 25) << 10);
    return (uint16_t)(low | (value < 0 ? 0x8000 : 0));
}

static int64_t convert(const char *dtype, const float *from, int64_t count, void *to)
{
    for (int64_t i = 0; i < count; i++) {
        if (!strcmp(dtype, "BF16")) ((uint16_t *)to)[i] = hr_bf16_from_f32(from[i]);
        else if (!strcmp(dtype, "F16")) ((uint16_t *)to)[i] = half_of(from[i]);
        else ((float *)to)[i] = from[i];
    }
    return count * (strcmp(dtype, "F32") ? 2 : 4);
}

static bool is_matrix(const char *name)
{
    const json_t *shape = json_object_get(json_object_get(model.header, name), "shape");
    const size_t length = strlen(name);
    return json_array_size(shape) == 2 && length > 7 && !strcmp(name + length - 7, ".weight");
}

/* Appends a matrix as F8_E4M3 and its scales, of which the last is `spoiling` if it is not 0. */
static void add_scaled(stored_file *file, const variant *v, const char *name, const char *dims,
                       const float *values)
{
    enum { BLOCKS_MAX = 64 };
    int rows, width;
    char scale_name[160], shape[32];
    float scales[BLOCKS_MAX];
    assert_int_equal(sscanf(dims, "[%d,%d]", &rows, &width), 2);
    const int across = (width + E4M3_BLOCK - 1) / E4M3_BLOCK;
    const int down = (rows + E4M3_BLOCK - 1) / E4M3_BLOCK;
    uint8_t *bytes = malloc((size_t)rows * (size_t)width);
    assert_in_range(across * down, 1, BLOCKS_MAX);
    for (int b = 0; b < across * down; b++)
        scales[b] = e4m3_scale(values, rows, width, b / across * E4M3_BLOCK,
                               b % across * E4M3_BLOCK);
    for (int i = 0; i < rows * width; i++) {
        const int b = i / width / E4M3_BLOCK * across + i % width / E4M3_BLOCK;
        bytes[i] = e4m3_nearest((double)values[i] / (double)scales[b]);
    }
    const bool spoiled = v->spoiled && !strcmp(name, v->spoiled);
    if (spoiled && v->spoiling != 0) scales[across * down - 1] = v->spoiling;
    stored_add(file, v->bare ? bare_name(name) : name, "F8_E4M3", dims, bytes, rows * width);
    snprintf(scale_name, sizeof scale_name, "%s%s", v->bare ? bare_name(name) : name,
             v->bare ? "_scale" : "_scale_inv");
    const bool reshaped = v->reshaped && !strcmp(name, v->reshaped);
    snprintf(shape, sizeof shape, reshaped ? "[%d]" : "[%d,%d]", reshaped ? down * across : down,
             across);
    if (!spoiled || v->spoiling != 0)
        stored_add(file, scale_name, "F32", shape, scales, down * across * 4);
    free(bytes);
}

static void add_tensor(stored_file *file, const variant *v, const char *name)
{
    int64_t bytes = 0;
    const json_t *shape = json_object_get(json_object_get(model.header, name), "shape");
    char *dims = json_dumps(shape, JSON_COMPACT);
    const void *data = oracle_tensor(&model, "", name, &bytes);
    float *values = memcpy(malloc((size_t)bytes), data, (size_t)bytes);
    if (v->spoiled && !strcmp(name, v->spoiled)) values[bytes / 8] = v->spoiling;
    if (!strcmp(v->dtype, "F8_E4M3") && is_matrix(name)) {
        add_scaled(file, v, name, dims, values);
        free(values);
        free(dims);
        return;
    }
    const char *dtype = strcmp(v->dtype, "F8_E4M3") ? v->dtype : "F32";
    const int64_t written = convert(dtype, values, bytes / 4, values);
    const bool flat = v->reshaped && !strcmp(name, v->reshaped);
    if (flat) snprintf(dims, strlen(dims) + 1, "[%d]", (int)(bytes / 4));
    const char *as = v->renamed && !strcmp(name, v->renamed) ? "stranger" : name;
    stored_add(file, v->bare ? bare_name(as) : as, dtype, dims, values, written);
    if (v->added && !strcmp(name, v->added))
        stored_add(file, bare_name(name), dtype, dims, values, written);
    free(values);
    free(dims);
}

/* Writes a folder with the config of the model and its tensors. */
static hr_folder write_folder(int32_t which, const variant *v)
{
    const hr_folder folder = hr_folder_open();
    char path[512], name[64];
    int64_t bytes;
    const int32_t files = v->shards ? v->shards : 1;
    json_t *map = json_object(), *index = json_pack("{s:o}", "weight_map", map);
    for (int32_t f = 0; f < files; f++) {
        stored_file file = stored_begin();
        snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", (int)f + 1, (int)files);
        if (!v->shards) strcpy(name, "model.safetensors");
        const char *tensor;
        json_t *value;
        int32_t i = 0;
        json_object_foreach(model.header, tensor, value)
        {
            if (!strcmp(tensor, "__metadata__") || i++ % files != f) continue;
            if (v->left_out && !strcmp(tensor, v->left_out)) continue;
            add_tensor(&file, v, tensor);
            json_object_set_new(map, v->bare ? bare_name(tensor) : tensor, json_string(name));
        }
        stored_end(&file, hr_folder_path(&folder, name));
    }
    if (v->shards)
        json_dump_file(index, hr_folder_path(&folder, "model.safetensors.index.json"), 0);
    json_decref(index);
    snprintf(path, sizeof path, HR_ORACLES "/hf/%s/config.json", models[which]);
    char *config = hr_folder_read(path, &bytes);
    hr_folder_write(hr_folder_path(&folder, "config.json"), config, bytes);
    free(config);
    return folder;
}

/* ---- a rig that loads its weights from the folder with the operation of the product */

static hr_weights_in source;

static hr_status load_host(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                           hr_error *err)
{
    const hr_host_attr *attr = call->attr;
    (void)context;
    for (int32_t k = 2; k < 4; k++)
        if (call->out[k])
            memset(call->out[k], 0,
                   (size_t)hr_tensor_bytes(
                       &executor->program->tensors[executor->program->steps[step].out[k]]));
    const hr_weights_place place = { call->out[0], call->out[1], NULL };
    return hr_load(&source, attr->param, executor->pool, place, call->scratch, attr->staging_bytes,
                   NULL, err);
}

static const hr_service loading[] = { { HR_OP_initialize, HR_LOOP_LOAD, load_host, NULL } };

static hr_config config_from(const hr_folder *folder, int32_t format, hr_error *err)
{
    hr_config config;
    hr_config_default(&config);
    snprintf(config.data.tokenizer, sizeof config.data.tokenizer, "words");
    config.train.dtype = format;
    config.train.batch = 1;
    config.train.seq_len = 23;
    rig_must(hr_config_set(&config, "model.from", folder->path, err), err);
    rig_must(hr_config_adopt(&config, err), err);
    return config;
}

static hr_status open_source(const hr_program *program, const char *path, hr_region *kept,
                             hr_error *err)
{
    const int64_t kept_bytes = hr_weights_in_bytes(program);
    const int64_t bytes = hr_weights_in_scratch_bytes(path);
    hr_region scratch = hr_region_over(aligned_alloc(64, (size_t)hr_round_up(bytes, 64)), bytes);
    *kept = hr_region_over(aligned_alloc(64, (size_t)hr_round_up(kept_bytes, 64)), kept_bytes);
    const hr_status status = hr_weights_in_open(&source, program, HR_PART_MODEL, path,
                                                hr_cpu_detect(), kept, &scratch, err);
    free(scratch.base);
    return status;
}

/* Returns the largest difference of the logits from the golden ones. */
static double worst_logit(int32_t which, const variant *v, const char *golden_name, int32_t format)
{
    char path[512];
    oracle_file golden = { 0 };
    int64_t bytes = 0;
    rig r;
    hr_error err;
    hr_region kept;
    const hr_folder folder = write_folder(which, v);
    hr_config config = config_from(&folder, format, &err);
    snprintf(path, sizeof path, HR_ORACLES "/hf/%s/golden.safetensors", models[which]);
    assert_true(oracle_open(&golden, path));
    const int64_t *ids = oracle_tensor(&golden, "", "input_ids", &bytes);
    config.train.seq_len = json_integer_value(
        json_array_get(json_object_get(json_object_get(golden.header, "input_ids"), "shape"), 1));
    config.train.batch = bytes / 8 / config.train.seq_len;
    rig_build(&r, &config, 2, hr_cpu_detect(), NULL, NULL);
    rig_must(open_source(&r.compiled.program, folder.path, &kept, &err), &err);
    hr_executor_serve(&r.executor, (hr_services){ loading, 1, NULL });
    rig_section(&r, HR_LOOP_LOAD);
    for (int64_t i = 0; i < r.rows; i++) r.ids[i] = (int32_t)ids[i];
    rig_evaluate(&r);
    oracle_close(&golden);
    snprintf(path, sizeof path, HR_ORACLES "/hf/%s/%s", models[which], golden_name);
    assert_true(oracle_open(&golden, path));
    const float *logits = oracle_tensor(&golden, "", "logits", &bytes);
    double worst = 0;
    for (int64_t i = 0; i < bytes / 4; i++)
        worst = fmax(worst, fabs((double)r.logits[i] - logits[i]));
    print_message("%-10s %-4s%s, %d shards, %s: logits %.1e\n", models[which], v->dtype,
                  v->bare ? " without prefix" : "", v->shards, format ? "bf16" : "fp32", worst);
    hr_weights_in_close(&source);
    oracle_close(&golden);
    free(kept.base);
    rig_close(&r);
    hr_folder_close(&folder);
    return worst;
}

static void loaded_models_give_the_golden_logits(void **state)
{
    (void)state;
    for (int32_t i = 0; i < MODELS; i++) {
        assert_true(open_model(i));
        static const variant whole[] = { { "F32" }, { "F32", true }, { "F32", true, 3 } };
        static const variant rounded[] = { { "BF16" }, { "BF16", false, 2 } };
        for (int32_t k = 0; k < 3; k++)
            assert_true(worst_logit(i, &whole[k], "golden.safetensors", HR_FORMAT_FP32) <
                        LOGIT_TOLERANCE);
        for (int32_t k = 0; k < 2; k++)
            assert_true(worst_logit(i, &rounded[k], "golden_bf16.safetensors", HR_FORMAT_FP32) <
                        LOGIT_TOLERANCE);
        /* Activations of 8 bits. */
        assert_true(worst_logit(i, &rounded[0], "golden_bf16.safetensors", HR_FORMAT_BF16) < 0.1);
        oracle_close(&model);
    }
}

/* ---- every parameter, with any staging size and number of threads */

static void check_param(const rig *r, int32_t p, const char *dtype, const float *master,
                        const uint16_t *weight)
{
    const hr_param *param = &r->compiled.program.params[p];
    const hr_layout layout = (hr_layout)r->compiled.program.tensors[param->master].layout;
    const int64_t K = param->dims[0], N = hr_max(param->dims[1], 1);
    int64_t bytes = 0;
    const float *whole = oracle_tensor(&model, "", param->external_name, &bytes);
    assert_int_equal(bytes / 4, K * N);
    for (int64_t i = 0; i < K * N; i++) {
        const bool turned = param->external_transposed && param->dims[1];
        const int64_t k = turned ? i % K : i / N, n = turned ? i / K : i % N;
        const int64_t at = hr_layout_index(layout, K, N, k, n);
        float expected = whole[i];
        if (!strcmp(dtype, "BF16")) expected = hr_bf16_to_f32(hr_bf16_from_f32(whole[i]));
        if (!strcmp(dtype, "F8_E4M3") && is_matrix(param->external_name)) {
            const int64_t rows = turned ? N : K, width = turned ? K : N;
            const float scale = e4m3_scale(whole, rows, width, i / width, i % width);
            expected = e4m3_value(e4m3_nearest((double)whole[i] / (double)scale)) * scale;
        }
        if (master && !strcmp(dtype, "F16"))
            assert_true(fabs((double)master[at] - (double)expected) <=
                        fabs((double)expected) / 2048 + 6e-8);
        else if (master) assert_true(master[at] == expected);
        if (weight && strcmp(dtype, "F16") != 0)
            assert_int_equal(weight[at], hr_bf16_from_f32(expected));
    }
}

static void every_parameter_loads_with_any_staging_size(void **state)
{
    (void)state;
    static const variant variants[] = { { "F32" }, { "BF16" }, { "F16" }, { "F8_E4M3" } };
    print_message("seed %d\n", SEED);
    for (int32_t turn = 0; turn < 4 * MODELS * 2; turn++) {
        const variant *v = &variants[turn % 4];
        const int32_t format = turn / 4 % 2 ? HR_FORMAT_BF16 : HR_FORMAT_FP32;
        assert_true(open_model(turn / 8));
        rig r;
        hr_error err;
        hr_region kept;
        const hr_folder folder = write_folder(turn / 8, v);
        const hr_config config = config_from(&folder, format, &err);
        rig_build(&r, &config, 1 + turn % 3, 0, NULL, NULL);
        const hr_program *program = &r.compiled.program;
        rig_must(open_source(program, folder.path, &kept, &err), &err);
        for (int32_t p = 0; p < program->param_count; p++) {
            const hr_param *param = &program->params[p];
            const int64_t bytes = hr_tensor_bytes(&program->tensors[param->master]);
            const int64_t row = hr_max(param->dims[0], param->dims[1]) * 4;
            const int64_t staging_bytes =
                row + (int64_t)(hr_random_mix((uint64_t)(SEED + 100 * turn + p)) % (40 * 64));
            float *master = malloc((size_t)bytes);
            uint16_t *weight = param->weight != param->master ? malloc((size_t)bytes / 2) : NULL;
            void *staging = aligned_alloc(64, (size_t)hr_round_up(staging_bytes, 64));
            const bool alone = weight && p % 2; /* no master: as in a program that does not train */
            const hr_weights_place place = { alone ? NULL : master, weight, NULL };
            rig_must(hr_load(&source, p, &r.pool, place, staging, staging_bytes, NULL, &err), &err);
            check_param(&r, p, v->dtype, alone ? NULL : master, weight);
            free(staging);
            free(weight);
            free(master);
        }
        hr_weights_in_close(&source);
        free(kept.base);
        rig_close(&r);
        hr_folder_close(&folder);
        oracle_close(&model);
    }
}

/* ---- folders without the model */

static void is_refused(const variant *v, hr_status expected, const char *said)
{
    rig r;
    hr_error err = { HR_OK, "" };
    hr_region kept;
    const hr_folder folder = write_folder(1, v);
    const hr_config config = config_from(&folder, HR_FORMAT_FP32, &err);
    rig_build(&r, &config, 2, 0, NULL, NULL);
    hr_status status = open_source(&r.compiled.program, folder.path, &kept, &err);
    hr_executor_serve(&r.executor, (hr_services){ loading, 1, NULL });
    if (status == HR_OK)
        status = hr_executor_run(&r.executor, hr_program_loop(&r.compiled.program, HR_LOOP_LOAD),
                                 &err);
    if (status != expected || !strstr(err.message, said))
        fail_msg("expected %d \"%s\", got %d \"%s\"", expected, said, status, err.message);
    hr_weights_in_close(&source);
    free(kept.base);
    rig_close(&r);
    hr_folder_close(&folder);
}

static void folders_of_other_models_are_refused(void **state)
{
    (void)state;
    static const char q[] = "model.layers.1.self_attn.q_proj.weight";
    assert_true(open_model(1));
    is_refused(&(variant){ "F32", .left_out = q }, HR_CORRUPT,
               "has no tensor model.layers.1.self_attn.q_proj.weight, with or without a prefix");
    is_refused(&(variant){ "F32", .left_out = "lm_head.weight" }, HR_CORRUPT,
               "has no tensor lm_head.weight");
    is_refused(&(variant){ "F32", .added = q }, HR_CORRUPT,
               "has both layers.1.self_attn.q_proj.weight and model.layers.1.self_attn.q_proj");
    is_refused(&(variant){ "F32", .renamed = q }, HR_CORRUPT, "has no tensor model.layers.1");
    is_refused(&(variant){ "F32", .reshaped = q }, HR_CORRUPT,
               "q_proj.weight is [1600], the configuration implies [40, 40]");
    const float bad[] = { NAN, INFINITY, -INFINITY };
    const char *const dtypes[] = { "F32", "BF16", "F32" };
    for (int32_t i = 0; i < 3; i++)
        is_refused(&(variant){ dtypes[i], .spoiled = q, .spoiling = bad[i] }, HR_CORRUPT,
                   "tensor model.layers.1.self_attn.q_proj.weight has NaN or Inf values");
    oracle_close(&model);
}

static void scales_that_are_missing_or_wrong_are_refused(void **state)
{
    (void)state;
    static const char q[] = "model.layers.1.self_attn.q_proj.weight";
    static const char fp8[] = "F8_E4M3";
    assert_true(open_model(1));
    is_refused(&(variant){ fp8 }, HR_OK, "");
    is_refused(&(variant){ fp8, .bare = true }, HR_OK, "");
    is_refused(&(variant){ fp8, .spoiled = q }, HR_CORRUPT,
               "tensor model.layers.1.self_attn.q_proj.weight is F8_E4M3, but has no scales: "
               "model.layers.1.self_attn.q_proj.weight_scale_inv is missing");
    is_refused(&(variant){ fp8, .reshaped = q }, HR_CORRUPT,
               "q_proj.weight_scale_inv is [1], [1, 1] is needed for model.layers.1");
    const float bad[] = { NAN, INFINITY, -1 };
    for (int32_t i = 0; i < 3; i++)
        is_refused(&(variant){ fp8, .spoiled = q, .spoiling = bad[i] }, HR_CORRUPT,
                   "q_proj.weight_scale_inv has a scale that is negative, NaN or Inf");
    oracle_close(&model);
}

/* Files with tensors beyond the model, and with unsupported numbers. */
static void unknown_tensors_are_refused_and_buffers_ignored(void **state)
{
    (void)state;
    static const struct {
        const char *name, *dtype;
        hr_status status;
        const char *said;
    } cases[] = {
        { "model.layers.0.self_attn.rotary_emb.inv_freq", "F32", HR_OK, "" },
        { "model.layers.0.attn.masked_bias", "U8", HR_OK, "" },
        { "score.weight", "F32", HR_CORRUPT, "tensor score.weight does not belong to this model" },
        { "model.layers.2.mlp.up_proj.weight", "F32", HR_CORRUPT, "does not belong to this model" },
        { "embed_out.weight", "F32", HR_CORRUPT, "tensor embed_out.weight does not belong to thi" },
    };
    assert_true(open_model(1));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig r;
        hr_error err = { HR_OK, "" };
        hr_region kept;
        const hr_folder folder = write_folder(1, &(variant){ "F32" });
        stored_file file = stored_begin();
        const char *tensor;
        json_t *value;
        json_object_foreach(model.header, tensor, value) if (strcmp(tensor, "__metadata__") != 0)
            add_tensor(&file, &(variant){ "F32" }, tensor);
        stored_add(&file, cases[i].name, cases[i].dtype, "[1]", "abcd",
                   strcmp(cases[i].dtype, "U8") ? 4 : 1);
        stored_end(&file, hr_folder_path(&folder, "model.safetensors"));
        const hr_config config = config_from(&folder, HR_FORMAT_FP32, &err);
        rig_build(&r, &config, 1, 0, NULL, NULL);
        const hr_status status = open_source(&r.compiled.program, folder.path, &kept, &err);
        assert_int_equal(status, cases[i].status);
        if (status != HR_OK && !strstr(err.message, cases[i].said)) fail_msg("%s", err.message);
        hr_weights_in_close(&source);
        free(kept.base);
        rig_close(&r);
        hr_folder_close(&folder);
    }
    oracle_close(&model);
}

/* Opens a folder of a model with tied embeddings that also has a head: [rows, width] of a dtype,
 * with the bytes of the table, except one if `other`. Returns the status of opening it. */
static hr_status open_with_head(const char *table, const char *name, const char *shape,
                                const char *dtype, int64_t elements, bool other, hr_error *err)
{
    rig r;
    hr_region kept;
    const hr_folder folder = hr_folder_open();
    int64_t bytes = 0, config_bytes;
    char path[512];
    stored_file file = stored_begin();
    const char *tensor;
    json_t *value;
    json_object_foreach(model.header, tensor, value)
    {
        if (strcmp(tensor, "__metadata__") != 0 && strcmp(tensor, name) != 0)
            add_tensor(&file, &(variant){ "F32" }, tensor);
    }
    const void *data = oracle_tensor(&model, "", table, &bytes);
    float *copy = memcpy(malloc((size_t)bytes), data, (size_t)bytes);
    if (other) copy[bytes / 4 - 1] += 1;
    stored_add(&file, name, dtype, shape, copy, elements * (strcmp(dtype, "F32") ? 2 : 4));
    free(copy);
    stored_end(&file, hr_folder_path(&folder, "model.safetensors"));
    snprintf(path, sizeof path, HR_ORACLES "/hf/%s/config.json",
             strstr(name, "embed_out") ? "gpt_neox"
             : strstr(table, "wte")    ? "gpt2"
                                       : "qwen3_tied");
    char *text = hr_folder_read(path, &config_bytes);
    char *said = strstr(text, "\"tie_word_embeddings\": false");
    if (said) memcpy(said, "\"tie_word_embeddings\": true ", 28); /* tied now */
    hr_folder_write(hr_folder_path(&folder, "config.json"), text, config_bytes);
    free(text);
    const hr_config config = config_from(&folder, HR_FORMAT_FP32, err);
    rig_build(&r, &config, 1, 0, NULL, NULL);
    const hr_status status = open_source(&r.compiled.program, folder.path, &kept, err);
    hr_weights_in_close(&source);
    free(kept.base);
    rig_close(&r);
    hr_folder_close(&folder);
    return status;
}

static void a_tied_head_has_to_equal_the_embedding_table(void **state)
{
    (void)state;
    static const struct {
        int32_t model;
        const char *table, *head;
    } cases[] = { { 0, "gpt_neox.embed_in.weight", "embed_out.weight" },
                  { 2, "transformer.wte.weight", "lm_head.weight" },
                  { 3, "model.embed_tokens.weight", "lm_head.weight" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(open_model(cases[i].model));
        const char *table = cases[i].table, *head = cases[i].head;
        char shape[32], said[200];
        int64_t bytes = 0;
        hr_error err = { HR_OK, "" };
        oracle_tensor(&model, "", table, &bytes);
        snprintf(shape, sizeof shape, "[101,%d]", (int)(bytes / 4 / 101));
        hr_status status = open_with_head(table, head, shape, "F32", bytes / 4, false, &err);
        if (status != HR_OK) fail_msg("%s", err.message);

        status = open_with_head(table, head, shape, "F32", bytes / 4, true, &err);
        snprintf(said, sizeof said, "ties the embeddings, but tensors %s and %s differ", head,
                 table);
        if (status != HR_CORRUPT || !strstr(err.message, said)) fail_msg("%s", err.message);

        status = open_with_head(table, head, "[5,5]", "F32", 25, false, &err);
        snprintf(said, sizeof said, "tensor %s is [5, 5], the configuration implies [101, %d]",
                 head, (int)(bytes / 4 / 101));
        if (status != HR_CORRUPT || !strstr(err.message, said)) fail_msg("%s", err.message);

        status = open_with_head(table, head, shape, "BF16", bytes / 4, false, &err);
        snprintf(said, sizeof said,
                 "tensor %s is BF16, but %s, the output head by config.json, is F32", head, table);
        if (status != HR_CORRUPT || !strstr(err.message, said)) fail_msg("%s", err.message);
        oracle_close(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loaded_models_give_the_golden_logits),
        cmocka_unit_test(every_parameter_loads_with_any_staging_size),
        cmocka_unit_test(folders_of_other_models_are_refused),
        cmocka_unit_test(scales_that_are_missing_or_wrong_are_refused),
        cmocka_unit_test(unknown_tensors_are_refused_and_buffers_ignored),
        cmocka_unit_test(a_tied_head_has_to_equal_the_embedding_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
