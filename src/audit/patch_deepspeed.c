/* SPDX-License-Identifier: Apache-2.0 */
/* audit/patch_deepspeed.c - lines of a change in a DeepSpeed file: sections are written whole,
 * since a second one of the same name would replace the first. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit/patches.h"
#include "base/number.h"

static const char zero[] = "zero_optimization.", offload[] = "offload_optimizer",
                  offload_weights[] = "offload_param";

static bool is_bare(const char *value)
{
    double number;
    return hr_real_parse(value, &number) || !strcmp(value, "true") || !strcmp(value, "false");
}

static void append(char to[HR_AUDIT_PATCH_BYTES], const char *format, ...) HR_PRINTF(2, 3);
static void append(char to[HR_AUDIT_PATCH_BYTES], const char *format, ...)
{
    va_list list;
    const size_t used = strlen(to);
    va_start(list, format);
    vsnprintf(to + used, HR_AUDIT_PATCH_BYTES - used, format, list);
    va_end(list);
}

static void append_value(char to[HR_AUDIT_PATCH_BYTES], const char *key, size_t length,
                         const char *value)
{
    const char *quote = is_bare(value) ? "" : "\"";
    append(to, "\"%.*s\": %s%s%s", (int)length, key, quote, *value ? value : "null", quote);
}

/* The name of an entry inside of a section, of the file itself or of the DeepSpeed file beside it;
 * null: it is another's, or has no value. */
static const char *inside(const hr_audit_key *key, const char *section)
{
    const char *colon = strstr(key->key, ": "), *name = colon ? colon + 2 : key->key;
    const size_t length = strlen(section);
    return strncmp(name, section, length) || !*key->value ? NULL : name + length;
}

static bool is_part(const char *key, size_t length, const char *part)
{
    return length == strlen(part) && !strncmp(key, part, length);
}

/* Entries below `part`, but the device that a part moves to. */
static void append_part(const hr_audit_report *report, const char *part, size_t length, bool moved,
                        char to[HR_AUDIT_PATCH_BYTES])
{
    for (int32_t i = 0; i < report->key_count; i++) {
        const char *key = inside(&report->keys[i], zero);
        if (!key || strncmp(key, part, length) || key[length] != '.') continue;
        const char *leaf = key + length + 1;
        if (moved && !strcmp(leaf, "device")) continue;
        append(to, to[strlen(to) - 1] == '{' ? " " : ", ");
        append_value(to, leaf, strlen(leaf), report->keys[i].value);
    }
    append(to, " }");
}

/* Whether all entries are leaves, or leaves of a part, with complete texts. */
static bool can_copy_zero(const hr_audit_report *report)
{
    for (int32_t i = 0; i < report->key_count; i++) {
        const hr_audit_key *key = &report->keys[i];
        const char *name = inside(key, zero), *dot = name ? strchr(name, '.') : NULL;
        if (!name) continue;
        if ((dot && strchr(dot + 1, '.')) || strchr(name, '[') || strpbrk(key->value, "\"\\[{") ||
            strlen(key->value) + 1 == sizeof key->value || strlen(name) >= 64)
            return false;
    }
    return !report->keys_left_out;
}

static void append_offload(const hr_audit_report *report, const char *part,
                           char to[HR_AUDIT_PATCH_BYTES])
{
    append(to, "\n  \"%s\": { \"device\": \"cpu\"", part);
    append_part(report, part, strlen(part), true, to);
}

/* The whole section of the file, with the states of the optimizer in host memory, and the weights
 * if `both`. */
static bool put_offload(const hr_audit_report *report, bool both, char to[HR_AUDIT_PATCH_BYTES])
{
    const char *before = "";
    if (!can_copy_zero(report)) return false;
    snprintf(to, HR_AUDIT_PATCH_BYTES, "\"zero_optimization\": {");
    for (int32_t i = 0; i < report->key_count; i++) {
        const char *key = inside(&report->keys[i], zero);
        if (!key) continue;
        const size_t length = strcspn(key, ".");
        const bool leaf = !key[length], ours = is_part(key, length, offload) ||
                                               (both && is_part(key, length, offload_weights));
        const bool again = !leaf && !strncmp(key, before, length) && before[length] == '.';
        before = key;
        if (again || ours) continue;
        append(to, "\n  ");
        if (leaf) append_value(to, key, length, report->keys[i].value);
        else {
            append(to, "\"%.*s\": {", (int)length, key);
            append_part(report, key, length, false, to);
        }
        append(to, ",");
    }
    append_offload(report, offload, to);
    if (both) append(to, ",");
    if (both) append_offload(report, offload_weights, to);
    append(to, "\n},");
    return strlen(to) + 1 < HR_AUDIT_PATCH_BYTES;
}

/* The DeepSpeed files that come with LLaMA-Factory and axolotl, and those of them that move states,
 * or weights and states. */
static const struct {
    const char *name, *moves;
    bool both;
} shipped[] = { { "ds_z2_config.json", "ds_z2_offload_config.json", false },
                { "ds_z3_config.json", "ds_z3_offload_config.json", true },
                { "zero3.json", "zero3_bf16_cpuoffload_all.json", true },
                { "zero3_bf16.json", "zero3_bf16_cpuoffload_all.json", true } };

/* The key "deepspeed" with another of the files of the same program. */
static bool put_shipped(const hr_audit_report *report, bool both, char to[HR_AUDIT_PATCH_BYTES])
{
    const char *path = hr_audit_value(report, "deepspeed"),
               *last = path ? strrchr(path, '/') : NULL;
    if (!path || strlen(path) + 1 >= sizeof report->keys->value) return false;
    const char *name = last ? last + 1 : path;
    for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++) {
        if (strcmp(name, shipped[i].name) || both != shipped[i].both) continue;
        snprintf(to, HR_AUDIT_PATCH_BYTES,
                 report->is_json ? "\"deepspeed\": \"%.*s%s\"," : "deepspeed: %.*s%s",
                 (int)(name - path), path, shipped[i].moves);
        return true;
    }
    return false;
}

/* Whether a section "zero_optimization" of the file, or of the one beside it, was read. */
static const hr_audit_key *find_zero(const hr_audit_report *report)
{
    for (int32_t i = 0; i < report->key_count; i++)
        if (inside(&report->keys[i], zero)) return &report->keys[i];
    return NULL;
}

bool hr_patch_is_offload(hr_change which)
{
    return which == HR_CHANGE_OFFLOAD || which == HR_CHANGE_OFFLOAD_WEIGHTS;
}

bool hr_patch_offload(const hr_audit_report *report, hr_change which, char to[HR_AUDIT_PATCH_BYTES])
{
    const bool both = which == HR_CHANGE_OFFLOAD_WEIGHTS;
    if (!report->training.deepspeed) return false;
    if (find_zero(report)) return put_offload(report, both, to);
    return put_shipped(report, both, to);
}

void hr_patch_file(const hr_audit_report *report, hr_change which, char to[HR_AUDIT_KEY_BYTES])
{
    const hr_audit_key *key = hr_patch_is_offload(which) ? find_zero(report) : NULL;
    const char *colon = key ? strstr(key->key, ": ") : NULL;
    snprintf(to, HR_AUDIT_KEY_BYTES, "%.*s", colon ? (int)(colon - key->key) : 0,
             key ? key->key : "");
}

/* The formats of a DeepSpeed file: its sections with their other keys. */
bool hr_patch_format_sections(const hr_audit_report *report, char to[HR_AUDIT_PATCH_BYTES])
{
    static const char *const sections[] = { "bf16.", "fp16." };
    *to = 0;
    for (int32_t s = 0; s < 2; s++) {
        append(to, "%s\"%.4s\": { \"enabled\": %s", s ? "\n" : "", sections[s],
               s ? "true" : "false");
        for (int32_t i = 0; i < report->key_count; i++) {
            const char *leaf = inside(&report->keys[i], sections[s]);
            if (!leaf || !strcmp(leaf, "enabled")) continue;
            if (strpbrk(leaf, ".[") || strpbrk(report->keys[i].value, "\"\\[{")) return false;
            append(to, ", ");
            append_value(to, leaf, strlen(leaf), report->keys[i].value);
        }
        append(to, " },");
    }
    return strlen(to) + 1 < HR_AUDIT_PATCH_BYTES;
}
