/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_ends.c - reads eos_token_id of either file with one parser. */
#include "hf/hf_ends.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/path.h"

/* Appends the number just read. Returns null, or what is wrong. */
static const char *add_id(const hr_json *json, hr_json_kind kind, hr_end_ids *ends)
{
    int64_t id;
    if (kind == HR_JSON_WRONG) return json->problem;
    if (kind != HR_JSON_NUMBER || !hr_json_integer(json, &id) || id < 0 || id > INT32_MAX)
        return "\"eos_token_id\" is neither a token id nor a list of them";
    if (ends->count == HR_END_IDS_MOST) return "\"eos_token_id\" has more than 32 ids";
    ends->ids[ends->count++] = (int32_t)id;
    return NULL;
}

static const char *read_ids(hr_json *json, hr_end_ids *ends)
{
    hr_json_kind kind = hr_json_next(json);
    const char *problem = NULL;
    if (kind == HR_JSON_NULL) return NULL;
    if (kind != HR_JSON_ARRAY) return add_id(json, kind, ends);
    while (!problem && (kind = hr_json_next(json)) != HR_JSON_CLOSE)
        problem = add_id(json, kind, ends);
    return problem;
}

/* Reads the ids of an object in text [bytes]. Returns null, or what is wrong. */
static const char *read_object(char *text, int64_t bytes, hr_end_ids *ends)
{
    static const char other[] = "not an object";
    hr_json json = hr_json_over_file(text, bytes);
    hr_json_kind kind = hr_json_next(&json);
    ends->count = 0;
    if (kind != HR_JSON_OBJECT) return json.problem ? json.problem : other;
    while ((kind = hr_json_next(&json)) == HR_JSON_KEY) {
        const char *problem = NULL;
        if (hr_json_is(&json, "eos_token_id")) {
            ends->count = 0;
            problem = read_ids(&json, ends);
        } else if (!hr_json_skip(&json, hr_json_next(&json))) problem = json.problem;
        if (problem) return problem;
    }
    if (kind == HR_JSON_CLOSE) kind = hr_json_next(&json);
    return kind == HR_JSON_END ? NULL : json.problem ? json.problem : other;
}

/* The lines of config.json that a config keeps, as an object. */
static void read_config(const hr_config *config, hr_end_ids *ends)
{
    char text[HR_TOKEN_IDS_BYTES + 16];
    const int bytes = snprintf(text, sizeof text, "{%s\"\":0}", config->token_ids);
    if (read_object(text, bytes, ends)) ends->count = 0; /* it was read, and has no effect */
}

/* Not inlined: buffers are large, and the stack size is planned. */
static __attribute__((noinline)) hr_status read_file(const char *path, hr_end_ids *ends,
                                                     hr_error *err)
{
    char text[HR_GENERATION_CONFIG_BYTES];
    int file;
    int64_t bytes;
    hr_status status = hr_file_open(path, &file, &bytes, err);
    if (status != HR_OK) return status;
    if (bytes > (int64_t)sizeof text)
        status = hr_fail(err, HR_CORRUPT, "%.200s: has more than 16,384 bytes, the limit", path);
    else status = hr_file_read(file, path, 0, text, bytes, err);
    hr_file_close(&file);
    const char *problem = status == HR_OK ? read_object(text, bytes, ends) : NULL;
    return problem ? hr_fail(err, HR_CORRUPT, "%.200s: %s", path, problem) : status;
}

hr_status hr_hf_read_ends(const char *folder, const hr_config *config, hr_end_ids *ends,
                          hr_error *err)
{
    char path[PATH_MAX];
    ends->count = 0;
    hr_status status = hr_path_join(folder, "generation_config.json", path, sizeof path, err);
    if (status == HR_OK && hr_file_exists(path)) status = read_file(path, ends, err);
    if (status == HR_OK && !ends->count) read_config(config, ends);
    return status;
}
