/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/adapter_config.c - prints adapter_config.json. */
#include "checkpoint/adapter_config.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"

enum { MODULE_BYTES = sizeof((hr_param *)0)->external_name };

/* The module of a parameter: its name without ".weight". */
static void module_of(const hr_param *param, char module[MODULE_BYTES])
{
    const char *name = param->external_name;
    snprintf(module, MODULE_BYTES, "%.*s", hr_module_length(name), name);
}

static const char *last_part(const char *module)
{
    const char *dot = strrchr(module, '.');
    return dot ? dot + 1 : module;
}

static bool is_matrix(const hr_program *program, int32_t p)
{
    const hr_param *param = &program->params[p];
    return param->adapts == HR_NONE && program->tensors[param->weight].layout != HR_ROWS;
}

/* Whether the last part of a module's name stands for adapted modules alone. */
static bool is_enough(const hr_program *program, const char *part)
{
    for (int32_t p = 0; p < program->param_count; p++) {
        char module[MODULE_BYTES];
        if (!is_matrix(program, p)) continue;
        module_of(&program->params[p], module);
        if (!strcmp(last_part(module), part) && program->params[p].adapter == HR_NONE) return false;
    }
    return true;
}

/* Whether an adapted parameter before `p` has the same last part. */
static bool is_repeated(const hr_program *program, int32_t p, const char *part)
{
    while (p-- > 0) {
        char module[MODULE_BYTES];
        if (program->params[p].adapter == HR_NONE) continue;
        module_of(&program->params[p], module);
        if (!strcmp(last_part(module), part)) return true;
    }
    return false;
}

static void put_targets(const hr_program *program, hr_writer *w)
{
    const char *between = "";
    hr_put(w, "[");
    for (int32_t p = 0; p < program->param_count; p++) {
        char module[MODULE_BYTES];
        if (program->params[p].adapter == HR_NONE) continue;
        module_of(&program->params[p], module);
        const bool enough = is_enough(program, last_part(module));
        if (enough && is_repeated(program, p, last_part(module))) continue;
        hr_put(w, "%s\n    \"%s\"", between, enough ? last_part(module) : module);
        between = ",";
    }
    hr_put(w, "\n  ]");
}

static void put_path(hr_writer *w, const char *path)
{
    char quoted[6 * HR_PATH_BYTES];
    int64_t taken;
    const int64_t bytes = hr_json_escape(quoted, sizeof quoted, path, (int64_t)strlen(path),
                                         &taken);
    if (*path) hr_put(w, "\"%.*s\"", (int)bytes, quoted);
    else hr_put(w, "null");
}

/* PEFT calls matrices that a file stores as [inputs, outputs] by this name (GPT-2). */
static bool is_fan_in_fan_out(const hr_program *program)
{
    for (int32_t p = 0; p < program->param_count; p++)
        if (program->params[p].adapter != HR_NONE && !program->params[p].external_transposed)
            return true;
    return false;
}

static int64_t rank_of(const hr_program *program)
{
    for (int32_t p = 0; p < program->param_count; p++)
        if (program->params[p].adapter != HR_NONE) return hr_program_rank(program, p);
    return 0;
}

void hr_adapter_config_write(const hr_config *config, const hr_program *program, hr_writer *w)
{
    char number[HR_REAL_BYTES];
    hr_put(w, "{\n  \"base_model_name_or_path\": ");
    put_path(w, config->model.from);
    hr_put(w, ",\n  \"bias\": \"none\",\n  \"fan_in_fan_out\": %s",
           is_fan_in_fan_out(program) ? "true" : "false");
    hr_put(w, ",\n  \"inference_mode\": true,\n  \"init_lora_weights\": true");
    hr_put(w, ",\n  \"lora_alpha\": %s", hr_real_print(config->train.adapter.alpha, number));
    hr_put(w, ",\n  \"lora_dropout\": %s", hr_real_print(config->train.adapter.dropout, number));
    hr_put(w, ",\n  \"modules_to_save\": null,\n  \"peft_type\": \"LORA\",\n  \"r\": %lld",
           (long long)rank_of(program));
    hr_put(w, ",\n  \"target_modules\": ");
    put_targets(program, w);
    hr_put(w, ",\n  \"task_type\": \"CAUSAL_LM\",\n  \"use_dora\": false");
    hr_put(w, ",\n  \"use_rslora\": %s\n}\n",
           config->train.adapter.rslora ? "true" : "false");
}
