/* SPDX-License-Identifier: Apache-2.0 */
/* audit/audit.c - finds out what a file is, and has it read. */
#include "audit/findings.h"

#include <string.h>

#include "audit/training.h"
#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "base/words.h"

static bool begins(const char *text, int64_t bytes, const char *with)
{
    const size_t length = strlen(with);
    return bytes >= (int64_t)length && !memcmp(text, with, length);
}

/* Bytes of the UTF-8 character at `b`; 0: it is none. Overlong forms and surrogates pass. */
static int64_t character_bytes(const unsigned char *b, int64_t left)
{
    const int64_t bytes = b[0] < 0x80             ? 1
                          : (b[0] & 0xe0) == 0xc0 ? 2
                          : (b[0] & 0xf0) == 0xe0 ? 3
                          : (b[0] & 0xf8) == 0xf0 ? 4
                                                  : 0;
    for (int64_t i = 1; i < bytes; i++)
        if (i >= left || (b[i] & 0xc0) != 0x80) return 0;
    return bytes;
}

static hr_status check_encoding(const char *path, const unsigned char *b, int64_t bytes,
                                hr_error *err)
{
    int64_t line = 1;
    for (int64_t at = 0, next; at < bytes; at += next) {
        next = character_bytes(b + at, bytes - at);
        if (!next)
            return hr_fail(
                err, HR_USAGE,
                "%s:%lld: byte %#x is not UTF-8; convert the file, such as with iconv -f "
                "latin1 -t utf-8",
                path, (long long)line, b[at]);
        line += b[at] == '\n';
    }
    return HR_OK;
}

/* What cannot be audited, by its first bytes. */
static hr_status check_content(const char *path, const char *text, int64_t bytes, hr_error *err)
{
    const unsigned char *b = (const unsigned char *)text;
    const bool pickle = (bytes > 1 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5) ||
                        begins(text, bytes, "ccopy_reg\n") || begins(text, bytes, "c__main__\n") ||
                        begins(text, bytes, "(dp0\n") || begins(text, bytes, "(lp0\n");
    if (pickle)
        return hr_fail(err, HR_USAGE,
                       "%s is a pickle, which runs code when it is read; save the settings as JSON "
                       "(TrainingArguments.to_json_string) or YAML",
                       path);
    if (begins(text, bytes, "PK\003\004"))
        return hr_fail(
            err, HR_USAGE,
            "%s is a zip archive, as torch.save writes pickles, which run code when they "
            "are read; save the settings as JSON or YAML",
            path);
    if (memchr(text, 0, (size_t)bytes))
        return hr_fail(err, HR_USAGE, "%s is not text: it has zero bytes", path);
    return check_encoding(path, b, bytes, err);
}

static hr_status read_file(const char *path, hr_region *region, char **text, int64_t *bytes,
                           hr_error *err)
{
    int file;
    hr_status status = hr_file_open(path, &file, bytes, err);
    if (status != HR_OK) return status;
    char first[4] = { 0 };
    if (*bytes > HR_AUDIT_FILE_BYTES) {
        status = hr_file_read(file, path, 0, first, sizeof first, err);
        if (status == HR_OK) status = check_content(path, first, 4, err);
        if (status == HR_OK)
            status = hr_fail(err, HR_USAGE, "%s has %lld bytes; an audit reads at most %d", path,
                             (long long)*bytes, HR_AUDIT_FILE_BYTES);
        hr_file_close(&file);
        return status;
    }
    *text = hr_region_take(region, 1, *bytes + 1);
    status = *text ? hr_file_read(file, path, 0, *text, *bytes, err)
                   : hr_fail(err, HR_FAILURE, "%s: too little memory", path);
    hr_file_close(&file);
    return status;
}

/* Whether a file is prose: by its name, or by content that is no mapping. */
static bool is_prose(const char *path, const char *text)
{
    static const char *const prose[] = { ".md", ".markdown", ".txt", ".rst" };
    static const char *const structured[] = { ".yaml", ".yml", ".json" };
    for (size_t i = 0; i < sizeof prose / sizeof *prose; i++)
        if (hr_ends_with(path, prose[i])) return true;
    for (size_t i = 0; i < sizeof structured / sizeof *structured; i++)
        if (hr_ends_with(path, structured[i])) return false;
    return *text == '#' && text[1] != '!' && strstr(text, "\n#") && strchr(text, '|');
}

static bool is_json(const char *path, const char *text)
{
    return text[strspn(text, " \t\r\n")] == '{' || hr_ends_with(path, ".json");
}

static hr_status read_entries(const char *path, const char *text, int64_t bytes, hr_region *region,
                              hr_entries *entries, hr_error *err)
{
    return is_json(path, text) ? hr_entries_read_json(path, text, bytes, region, entries, err)
                               : hr_entries_read_yaml(path, region, entries, err);
}

static hr_audit_kind kind_of(const hr_entries *entries, bool is_json)
{
    if (hr_entries_has(entries, "claims[0].claim") || hr_entries_has(entries, "[0].claim") ||
        hr_entries_has(entries, "claim") || hr_entries_has(entries, "claims[0].is"))
        return HR_AUDIT_CLAIMS;
    return hr_training_kind(entries, is_json);
}

/* Reads the recipe of a file, or the text that is not null. */
static hr_status read_recipe(const char *path, const char *text, hr_audit_report *report,
                             hr_error *err)
{
    hr_status status = text ? hr_config_read_text(report->config, text, path, err)
                            : hr_config_read(report->config, path, err);
    if (status == HR_OK) status = hr_config_adopt(report->config, err);
    return status == HR_OK ? hr_config_check(report->config, err) : status;
}

/* Whether a text has nothing to read: blanks, and comments and marks of YAML. */
static bool is_blank(const char *text, int64_t bytes)
{
    for (int64_t at = hr_json_mark_bytes(text, bytes); at < bytes;) {
        const char *line = text + at;
        const char *end = memchr(line, '\n', (size_t)(bytes - at));
        const int64_t length = end ? end - line : bytes - at;
        int64_t blanks = 0;
        while (blanks < length && strchr(" \t\r", line[blanks])) blanks++;
        const bool mark = length - blanks >= 3 && !memcmp(line + blanks, "---", 3);
        if (blanks < length && line[blanks] != '#' && !mark) return false;
        at += length + 1;
    }
    return true;
}

/* Refuses a file without any setting or claim, whatever it should be. */
static hr_status check_entries(const char *path, const hr_entries *entries, hr_error *err)
{
    const hr_entry *only = entries->count == 1 ? entries->list : NULL;
    const hr_entry *claims = hr_entries_find(entries, "claims");
    if (!entries->count ||
        (only && !*only->key && !only->is_text &&
         (only->is_null || !strcmp(only->value, "{}") || !strcmp(only->value, "[]"))))
        return hr_fail(err, HR_USAGE, "%s is empty: it has no settings and no claims", path);
    if (only && !*only->key)
        return hr_fail(err, HR_USAGE, "%s is a single value, and has no settings and no claims",
                       path);
    if (only && only == claims && (only->is_null || !strcmp(only->value, "[]")))
        return hr_fail(err, HR_USAGE, "%s has no claims: its list is empty", path);
    return HR_OK;
}

static hr_status fail_kind(const char *path, const hr_entries *entries, hr_error *err)
{
    if (hr_entries_has(entries, "distributed_type") ||
        hr_entries_has(entries, "compute_environment"))
        return hr_fail(err, HR_USAGE,
                       "%s configures accelerate and names no model or batch; audit the training "
                       "file, with --processes",
                       path);
    if (hr_entries_has(entries, "architectures") || hr_entries_has(entries, "hidden_size"))
        return hr_fail(err, HR_USAGE,
                       "%s describes a model and no training; give its folder to the audit of a "
                       "training file with --model",
                       path);
    return hr_fail(err, HR_USAGE,
                   "%s is no file that an audit knows; --kind says what it is, such as axolotl",
                   path);
}

hr_status hr_audit_file(const char *path, const hr_audit_request *given, hr_audit_report *report,
                        hr_error *err)
{
    hr_audit_request request;
    hr_status status = hr_options_take(&request, sizeof request, given, err);
    memset(report, 0, sizeof *report);
    if (status != HR_OK) return status;
    hr_region region = hr_region_over(request.memory, request.memory_bytes);
    hr_entries entries;
    char *text = NULL;
    int64_t bytes;
    hr_audit_kind kind = request.kind;
    report->config = hr_config_new();
    if (!report->config) return hr_fail(err, HR_FAILURE, "out of memory for an audit");
    if (request.recipe) {
        report->kind = HR_AUDIT_RECIPE;
        return read_recipe(path, request.recipe, report, err);
    }
    status = read_file(path, &region, &text, &bytes, err);
    if (status == HR_OK) status = check_content(path, text, bytes, err);
    if (status != HR_OK) return status;
    if (is_blank(text, bytes))
        return hr_fail(err, HR_USAGE, "%s is empty: it has no settings and no claims", path);
    if (kind == HR_AUDIT_AUTO && is_prose(path, text)) kind = HR_AUDIT_MARKDOWN;
    if (kind == HR_AUDIT_MARKDOWN) {
        report->kind = kind;
        hr_audit_markdown(text, bytes, report);
        return HR_OK;
    }
    if (hr_ends_with(path, ".toml"))
        return hr_fail(err, HR_USAGE, "%s is TOML, as of torchtitan, which an audit does not read",
                       path);
    status = read_entries(path, text, bytes, &region, &entries, err);
    if (status == HR_OK) status = check_entries(path, &entries, err);
    if (status != HR_OK) return status;
    report->is_json = is_json(path, text);
    if (kind == HR_AUDIT_AUTO) kind = kind_of(&entries, report->is_json);
    report->kind = kind;
    if (kind == HR_AUDIT_CLAIMS) return hr_audit_claims(path, &entries, report, err);
    if (kind == HR_AUDIT_RECIPE) return read_recipe(path, NULL, report, err);
    if (hr_foreign_of(kind))
        return hr_audit_training_file(path, kind, &request, &entries, report, err);
    return fail_kind(path, &entries, err);
}
