/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/weights.c - header, tensors, config: text by snprintf into the caller's buffer, since all
 * of it runs after the seal. */
#include "ckpt/weights.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/writer.h"
#include "model/family.h"

enum { ENTRY_BYTES = 256, CONFIG_BYTES = 4096 };

int64_t hr_weights_text_bytes(const hr_program *program)
{
    return hr_max(program->param_count * (int64_t)ENTRY_BYTES + ENTRY_BYTES, CONFIG_BYTES);
}

static int64_t elements_of(const hr_param *param)
{
    return param->dims[0] * hr_max(param->dims[1], 1);
}

static const char weights_name[] = "model.safetensors", config_name[] = "config.json";

hr_status hr_weights_check(const char *directory, hr_error *err)
{
    char path[PATH_MAX];
    hr_status status = hr_path_join(directory, weights_name, path, sizeof path, err);
    if (status == HR_OK) status = hr_file_check_place(path, err);
    if (status == HR_OK) status = hr_path_join(directory, config_name, path, sizeof path, err);
    return status == HR_OK ? hr_file_check_place(path, err) : status;
}

hr_status hr_weights_begin(hr_weights_out *out, const hr_program *program, const char *directory,
                           char *text, int64_t bytes, hr_error *err)
{
    enum { LENGTH_BYTES = 8, ALIGN = 64 };
    hr_writer w = { text + LENGTH_BYTES, bytes - LENGTH_BYTES };
    int64_t begin = 0;
    hr_put(&w, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        const int64_t first = param->dims[param->external_transposed ? 1 : 0];
        const int64_t second = param->dims[param->external_transposed ? 0 : 1];
        const int64_t end = begin + elements_of(param) * (int64_t)sizeof(float);
        hr_put(&w, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%lld", param->external_name,
               (long long)first);
        if (second) hr_put(&w, ",%lld", (long long)second);
        hr_put(&w, "],\"data_offsets\":[%lld,%lld]}", (long long)begin, (long long)end);
        begin = end;
    }
    hr_put(&w, "}");
    while ((w.used + LENGTH_BYTES) % ALIGN && !w.cut) hr_put(&w, " ");
    HR_ASSERT(!w.cut); /* sizes were asked for */
    for (int32_t i = 0; i < LENGTH_BYTES; i++) text[i] = (char)((uint64_t)w.used >> (8 * i));

    out->program = program;
    hr_status status = hr_file_begin(&out->file, directory, weights_name, err);
    if (status == HR_OK) status = hr_file_reserve(&out->file, LENGTH_BYTES + w.used + begin, err);
    if (status == HR_OK) status = hr_file_append(&out->file, text, w.used + LENGTH_BYTES, err);
    return status;
}

/* One row of the file's matrix out of memory's layout. */
static void gather_row(const hr_param *param, hr_layout layout, const float *master, int64_t row,
                       float *out)
{
    const int64_t K = param->dims[0], N = hr_max(param->dims[1], 1);
    if (param->external_transposed)
        for (int64_t k = 0; k < K; k++) out[k] = master[hr_layout_index(layout, K, N, k, row)];
    else
        for (int64_t n = 0; n < N; n++) out[n] = master[hr_layout_index(layout, K, N, row, n)];
}

/* Without a branch, so that many elements are looked at a cycle. */
static bool all_finite(const float *values, int64_t count)
{
    bool finite = true;
    for (int64_t i = 0; i < count; i++) finite &= isfinite(values[i]) != 0;
    return finite;
}

static hr_status append(hr_weights_out *out, const hr_param *param, const float *values,
                        int64_t count, hr_error *err)
{
    if (all_finite(values, count))
        return hr_file_append(&out->file, values, count * (int64_t)sizeof *values, err);
    return hr_fail(err, HR_DIVERGED, "%s has elements that are not finite", param->external_name);
}

hr_status hr_weights_add(hr_weights_out *out, int32_t index, const float *master, void *staging,
                         int64_t staging_bytes, hr_error *err)
{
    const hr_param *param = &out->program->params[index];
    const hr_layout layout = (hr_layout)out->program->tensors[param->master].layout;
    if (layout == HR_ROWS) return append(out, param, master, elements_of(param), err);
    const int64_t rows = param->dims[param->external_transposed ? 1 : 0];
    const int64_t width = param->dims[param->external_transposed ? 0 : 1];
    const int64_t held = staging_bytes / (width * (int64_t)sizeof(float));
    HR_ASSERT(held > 0);
    for (int64_t row = 0; row < rows; row += held) {
        const int64_t count = hr_min(held, rows - row);
        for (int64_t i = 0; i < count; i++)
            gather_row(param, layout, master, row + i, (float *)staging + i * width);
        const hr_status status = append(out, param, staging, count * width, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

static void put_needle(hr_writer *w, const hr_config *config)
{
    hr_put(w, "  \"layer_norm_eps\": %.17g,\n  \"hidden_act\": \"relu\",\n  \"dropout\": %.17g,\n",
           config->model.norm_eps, config->model.dropout);
}

static void put_gpt_neox(hr_writer *w, const hr_config *config)
{
    hr_put(w,
           "  \"layer_norm_eps\": %.17g,\n  \"hidden_act\": \"gelu\",\n  \"rotary_pct\": %.17g,\n  "
           "\"rotary_emb_base\": %.17g,\n"
           "  \"use_parallel_residual\": %s,\n  \"attention_bias\": true,\n"
           "  \"tie_word_embeddings\": false,\n  \"bos_token_id\": 0,\n  \"eos_token_id\": 0,\n"
           "  \"hidden_dropout\": %.17g,\n  \"attention_dropout\": %.17g,\n",
           config->model.norm_eps, config->model.rotary_fraction, config->model.rope_theta,
           config->model.parallel_residual ? "true" : "false", config->model.dropout,
           config->model.dropout);
}

/* By the word, since the kind's numbers belong to an operation that is not seen here. */
static void put_rope_scaling(hr_writer *w, const hr_config *config)
{
    char kind[16];
    const hr_status status = hr_config_get(config, "model.rope_scaling.kind", kind, sizeof kind,
                                           NULL);
    HR_ASSERT(status == HR_OK);
    if (!strcmp(kind, "none")) return;
    hr_put(w, "  \"rope_scaling\": { \"rope_type\": \"%s\", \"factor\": %.17g", kind,
           config->model.rope_scaling.factor);
    if (!strcmp(kind, "llama3"))
        hr_put(w,
               ", \"low_freq_factor\": %.17g, \"high_freq_factor\": %.17g, "
               "\"original_max_position_embeddings\": %lld",
               config->model.rope_scaling.low_freq_factor,
               config->model.rope_scaling.high_freq_factor,
               (long long)config->model.rope_scaling.original_positions);
    hr_put(w, " },\n");
}

static void put_llama(hr_writer *w, const hr_config *config)
{
    hr_put(w,
           "  \"rms_norm_eps\": %.17g,\n  \"hidden_act\": \"silu\",\n"
           "  \"num_key_value_heads\": %lld,\n  \"head_dim\": %lld,\n"
           "  \"rope_theta\": %.17g,\n  \"attention_bias\": false,\n  \"mlp_bias\": false,\n"
           "  \"tie_word_embeddings\": false,\n  \"attention_dropout\": %.17g,\n",
           config->model.norm_eps, (long long)hr_config_kv_heads(config),
           (long long)hr_config_head_dim(config), config->model.rope_theta, config->model.dropout);
    put_rope_scaling(w, config);
}

static void put_config(hr_writer *w, const hr_config *config)
{
    static const char *const patterns[] = { "dense", "local", "global", "mixed" };
    static void (*const put_family[])(hr_writer *,
                                      const hr_config *) = { [HR_FAMILY_NEEDLE] = put_needle,
                                                             [HR_FAMILY_GPT_NEOX] = put_gpt_neox,
                                                             [HR_FAMILY_LLAMA] = put_llama };
    const hr_family_spec *family = hr_family_of(config);
    hr_put(w, "{\n");
    if (family->architecture) hr_put(w, "  \"architectures\": [\"%s\"],\n", family->architecture);
    hr_put(w,
           "  \"model_type\": \"%s\",\n  \"vocab_size\": %lld,\n  \"hidden_size\": %lld,\n"
           "  \"num_hidden_layers\": %lld,\n  \"num_attention_heads\": %lld,\n"
           "  \"intermediate_size\": %lld,\n  \"max_position_embeddings\": %lld,\n",
           family->name, (long long)config->model.vocab_size, (long long)config->model.d_model,
           (long long)config->model.n_layers, (long long)config->model.n_heads,
           (long long)config->model.d_ff, (long long)config->train.seq_len);
    put_family[config->model.family](w, config);
    hr_put(w,
           "  \"attention_pattern\": \"%s\",\n  \"attention_block\": %lld,\n"
           "  \"attention_window\": %lld,\n  \"attention_stride\": %lld,\n",
           patterns[config->model.attention.pattern], (long long)config->model.attention.block,
           (long long)config->model.attention.window, (long long)config->model.attention.stride);
    if (config->model.attention.sliding_window)
        hr_put(w, "  \"sliding_window\": %lld,\n",
               (long long)config->model.attention.sliding_window);
    hr_put(w, "  \"torch_dtype\": \"float32\"\n}\n");
}

/* The config goes first: weights never stand beside another model's. */
hr_status hr_weights_commit(hr_weights_out *out, const hr_config *config, const char *directory,
                            char *text, int64_t bytes, hr_error *err)
{
    hr_writer w = { text, bytes };
    hr_file_out file;
    put_config(&w, config);
    HR_ASSERT(!w.cut);
    hr_status status = hr_file_begin(&file, directory, config_name, err);
    if (status == HR_OK) status = hr_file_append(&file, text, w.used, err);
    if (status == HR_OK) status = hr_file_commit(&file, err);
    if (status == HR_OK) status = hr_file_commit(&out->file, err);
    return status;
}

void hr_weights_abort(hr_weights_out *out)
{
    hr_file_abort(&out->file);
}
