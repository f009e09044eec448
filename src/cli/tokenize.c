/* SPDX-License-Identifier: Apache-2.0 */
/* cli/tokenize.c - headroom tokenize encode, decode, inspect, count and compare. */
#include "headroom/tokenize.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "headroom/progress.h"

enum { DECODED = 1024 };

typedef struct {
    bool prints, json;
    int64_t printed; /* ids printed of this text */
    hr_progress progress;
    int64_t begun_ns;
    char text[16384];
    int64_t used;
} screen;

static void flush(screen *s)
{
    fwrite(s->text, 1, (size_t)s->used, stdout);
    s->used = 0;
}

static void put(screen *s, const char *text, int64_t bytes)
{
    if (s->used + bytes > (int64_t)sizeof s->text) flush(s);
    memcpy(s->text + s->used, text, (size_t)bytes);
    s->used += bytes;
}

static void put_text(screen *s, const char *text)
{
    put(s, text, (int64_t)strlen(text));
}

static void ids(void *context, const uint32_t *values, int64_t count)
{
    screen *s = context;
    char word[16], *const behind = word + sizeof word;
    if (!s->printed && count && s->json) put_text(s, "{\"ids\": [");
    for (int64_t i = 0; i < count; i++) {
        char *at = behind;
        uint32_t id = values[i];
        do *--at = (char)('0' + id % 10);
        while (id /= 10);
        if (s->printed++) {
            *--at = ' ';
            if (s->json) *--at = ',';
        }
        put(s, at, behind - at);
    }
}

static void end(void *context)
{
    screen *s = context;
    if (!s->printed && s->json) put_text(s, "{\"ids\": [");
    put_text(s, s->json ? "]}\n" : "\n");
    s->printed = 0;
}

static void show_progress(void *context, int64_t done, int64_t all)
{
    screen *s = context;
    char line[HR_PROGRESS_BYTES], left[64] = "", time[HR_COUNT_BYTES];
    if (!s->progress.terminal) return;
    const int64_t now = hr_cli_now_ns();
    const double seconds = (double)(now - s->begun_ns) * 1e-9;
    if (all > done && done > 0)
        snprintf(left, sizeof left, " of %.1f MB, %s left", (double)all * 1e-6,
                 hr_duration_print(floor(seconds * (double)(all - done) / (double)done), time));
    snprintf(line, sizeof line, "%.1f MB%s, %.1f MB/s", (double)done * 1e-6, left,
             (double)done * 1e-6 / (seconds > 0 ? seconds : 1));
    hr_progress_note(&s->progress, line, now);
}

static hr_status open_setting(const hr_cli_arguments *arguments, const char *path,
                              hr_tokenize_setting *setting, hr_error *err)
{
    *setting = (hr_tokenize_setting){ .path = path,
                                      .pattern = arguments->values[HR_OPTION_PATTERN] };
    if (!path)
        return hr_fail(err, HR_USAGE, "%s needs --tokenizer FILE, FOLDER or bytes",
                       arguments->command->name);
    return hr_cli_whole(arguments, HR_OPTION_THREADS, &setting->threads, err);
}

static const char *text_of(const hr_cli_arguments *arguments)
{
    return arguments->operand_count ? arguments->operands[0] : "-";
}

/* Opens the tokenizer, encodes a file and closes it. */
static hr_status encode(const hr_cli_arguments *arguments, const char *path, const char *file,
                        screen *s, hr_tokenize_info *info, hr_tokenize_result *result,
                        double *seconds, hr_error *err)
{
    const volatile sig_atomic_t *interrupts = hr_cli_catch_signals(NULL);
    hr_tokenize *tokenize = NULL;
    hr_tokenize_setting setting;
    hr_status status = open_setting(arguments, path, &setting, err);
    if (status == HR_OK) status = hr_tokenize_open(&tokenize, &setting, err);
    if (status != HR_OK) return status;
    const hr_tokenize_request request = { .size = sizeof request,
                                          .around = !arguments->values[HR_OPTION_BARE],
                                          .lines = arguments->values[HR_OPTION_JSONL] != NULL,
                                          .ids = s->prints ? ids : NULL,
                                          .end = s->prints ? end : NULL,
                                          .progress = show_progress,
                                          .context = s,
                                          .interrupts = interrupts };
    s->begun_ns = hr_cli_now_ns();
    status = hr_tokenize_file(tokenize, file, &request, result, err);
    *seconds = (double)(hr_cli_now_ns() - s->begun_ns) * 1e-9;
    hr_progress_end(&s->progress);
    *info = *hr_tokenize_view(tokenize);
    hr_tokenize_close(&tokenize);
    flush(s);
    return status;
}

static int fail(const hr_error *err)
{
    const int code = hr_cli_fail(err);
    return err->status == HR_INTERRUPTED ? hr_cli_signal_code() : code;
}

int hr_cli_tokenize_encode(const hr_cli_arguments *arguments)
{
    static screen s;
    hr_tokenize_info info;
    hr_tokenize_result result;
    double seconds;
    hr_error err;
    s = (screen){ .prints = true,
                  .json = arguments->values[HR_OPTION_JSON] != NULL,
                  .progress = hr_progress_begin(isatty(STDOUT_FILENO) ? -1 : STDERR_FILENO) };
    if (encode(arguments, arguments->values[HR_OPTION_TOKENIZER], text_of(arguments), &s, &info,
               &result, &seconds, &err) != HR_OK)
        return fail(&err);
    return HR_OK;
}

int hr_cli_tokenize_count(const hr_cli_arguments *arguments)
{
    static screen s;
    hr_tokenize_info info;
    hr_tokenize_result r;
    double seconds;
    hr_error err;
    s = (screen){ .progress = hr_progress_begin(STDERR_FILENO) };
    if (encode(arguments, arguments->values[HR_OPTION_TOKENIZER], text_of(arguments), &s, &info, &r,
               &seconds, &err) != HR_OK)
        return fail(&err);
    if (arguments->values[HR_OPTION_JSON])
        printf("{\"bytes\": %lld, \"texts\": %lld, \"ids\": %lld, \"seconds\": %.3f}\n",
               (long long)r.bytes, (long long)r.texts, (long long)r.ids, seconds);
    else
        printf("%s tokens, %s bytes, %s text%s: %.3f bytes per token; %.3f s, %.1f MB/s\n",
               hr_cli_count(r.ids), hr_cli_count(r.bytes), hr_cli_count(r.texts),
               r.texts == 1 ? "" : "s", r.ids ? (double)r.bytes / (double)r.ids : 0, seconds,
               (double)r.bytes * 1e-6 / (seconds > 0 ? seconds : 1));
    return HR_OK;
}

int hr_cli_tokenize_compare(const hr_cli_arguments *arguments)
{
    static screen s;
    const bool json = arguments->values[HR_OPTION_JSON] != NULL;
    hr_error err;
    for (int32_t i = 1; i < arguments->operand_count; i++) {
        const char *path = arguments->operands[i];
        hr_tokenize_info info;
        hr_tokenize_result r;
        double seconds;
        s = (screen){ .progress = hr_progress_begin(STDERR_FILENO) };
        if (encode(arguments, path, arguments->operands[0], &s, &info, &r, &seconds, &err) != HR_OK)
            return fail(&err);
        const double bytes = r.ids ? (double)r.bytes / (double)r.ids : 0;
        if (json) {
            json_t *row = json_pack("{s:o, s:I, s:I, s:I, s:f, s:f}", "tokenizer",
                                    hr_cli_json_string(path), "vocabulary", (json_int_t)info.ids,
                                    "ids", (json_int_t)r.ids, "bytes", (json_int_t)r.bytes,
                                    "bytes_per_token", bytes, "seconds", seconds);
            json_dumpf(row, stdout, JSON_PRESERVE_ORDER);
            json_decref(row);
            printf("\n");
            continue;
        }
        if (i == 1)
            printf("%11s %12s %12s %9s %9s  %s\n", "vocabulary", "tokens", "bytes/token", "seconds",
                   "MB/s", "tokenizer");
        printf("%11s %12s %12.3f %9.3f %9.1f  %s\n", hr_cli_count(info.ids), hr_cli_count(r.ids),
               bytes, seconds, (double)r.bytes * 1e-6 / (seconds > 0 ? seconds : 1), path);
        fflush(stdout);
    }
    return HR_OK;
}

static void print_ids(const char *name, const uint32_t *list, int32_t count)
{
    printf("%s", name);
    for (int32_t i = 0; i < count; i++) printf(i ? ", %u" : "%u", list[i]);
    printf("\n");
}

static void print_inspected(const hr_tokenize_info *info, const char *path)
{
    char bytes[64];
    printf("%s: %s\n", path, info->form);
    printf("  ids            %s, of which %s have a token", hr_cli_count(info->ids),
           hr_cli_count(info->tokens));
    if (info->hole >= 0) printf("; first unused id %lld", (long long)info->hole);
    printf("\n  model          %s", info->model);
    if (strcmp(info->model, "byte-level BPE") && strcmp(info->model, "bytes"))
        printf(", %s", info->falls_back ? "byte fallback" : "no byte fallback");
    printf("\n  merges         %s\n", hr_cli_count(info->merges));
    printf("  added tokens   %s, of which %s are special\n", hr_cli_count(info->added),
           hr_cli_count(info->special));
    printf("  longest token  %s bytes\n", hr_cli_count(info->longest_bytes));
    printf("  normalizer     %s\n", info->nfc          ? "NFC (Unicode 9, as in the reference)"
                                    : info->normalizes ? "as in the file"
                                                       : "none");
    if (!info->stage_count) printf("  pre-tokenizer  none\n");
    for (int32_t i = 0; i < info->stage_count; i++) {
        printf("  %-13s  %s", i ? "  then" : "pre-tokenizer", info->stages[i]);
        if (!strcmp(info->stages[i], "pcre2"))
            printf(": no built-in scanner for this pattern; PCRE2 has the classes of Unicode 14 "
                   "and U+180E in \\s, the reference has Unicode 16 without it");
        printf("\n");
    }
    printf("  encoding       %s\n",
           !info->orderly   ? "by merges: some tokens consist of later tokens"
           : info->by_words ? "left to right within words, then merges across words"
                            : "left to right");
    if (info->first_count) print_ids("  before text    ", info->first, info->first_count);
    if (info->last_count) print_ids("  after text     ", info->last, info->last_count);
    if (info->end_id >= 0) printf("  EOS token id   %lld\n", (long long)info->end_id);
    printf("  memory         %s\n", hr_bytes_print(info->table_bytes, bytes));
}

int hr_cli_tokenize_inspect(const hr_cli_arguments *arguments)
{
    const char *path = arguments->operands[0];
    hr_tokenize *tokenize = NULL;
    hr_tokenize_setting setting;
    hr_error err;
    hr_status status = open_setting(arguments, path, &setting, &err);
    setting.decodes_only = true;
    if (status == HR_OK) status = hr_tokenize_open(&tokenize, &setting, &err);
    if (status != HR_OK) return fail(&err);
    const hr_tokenize_info *info = hr_tokenize_view(tokenize);
    if (arguments->values[HR_OPTION_JSON]) {
        json_t *stages = json_array();
        for (int32_t i = 0; i < info->stage_count; i++)
            json_array_append_new(stages, json_string(info->stages[i]));
        json_t *row = json_pack(
            "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:o, s:b, s:b, s:I, s:I}",
            "form", info->form, "model", info->model, "ids", (json_int_t)info->ids, "tokens",
            (json_int_t)info->tokens, "hole", (json_int_t)info->hole, "merges",
            (json_int_t)info->merges, "added", (json_int_t)info->added, "special",
            (json_int_t)info->special, "longest_bytes", (json_int_t)info->longest_bytes, "nfc",
            (int)info->nfc, "normalizes", (int)info->normalizes, "stages", stages, "orderly",
            (int)info->orderly, "by_words", (int)info->by_words, "end_id", (json_int_t)info->end_id,
            "table_bytes", (json_int_t)info->table_bytes);
        json_dumpf(row, stdout, JSON_INDENT(2));
        json_decref(row);
        printf("\n");
    } else {
        print_inspected(info, path);
    }
    hr_tokenize_close(&tokenize);
    return HR_OK;
}

/* ---- decode */

typedef struct {
    hr_tokenize *tokenize;
    const char *name; /* of the input, for error messages */
    bool skips, json;
    uint32_t ids[DECODED];
    int64_t count;
    char *text;
    int64_t room;
} decoding;

static void decode(decoding *d, bool ends)
{
    for (int64_t at = 0, used; at < d->count; at += used) {
        const int64_t bytes = hr_tokenize_decode(d->tokenize, d->ids + at, d->count - at, d->skips,
                                                 d->text, d->room, &used);
        if (d->json) hr_cli_put_json_text(d->text, bytes);
        else fwrite(d->text, 1, (size_t)bytes, stdout);
    }
    d->count = 0;
    if (!ends) return;
    const int64_t bytes = hr_tokenize_decode_end(d->tokenize, d->text);
    if (d->json) hr_cli_put_json_text(d->text, bytes);
    else fwrite(d->text, 1, (size_t)bytes, stdout);
}

static void add_id(decoding *d, uint32_t id)
{
    if (d->count == DECODED) decode(d, false);
    d->ids[d->count++] = id;
}

static hr_status decode_numbers(decoding *d, FILE *file, hr_error *err)
{
    int64_t at = 0, id = -1;
    for (int c = getc(file);; c = getc(file), at++) {
        if (c >= '0' && c <= '9') {
            id = (id < 0 ? 0 : id) * 10 + c - '0';
            if (id <= UINT32_MAX) continue;
        } else if (c == EOF || c == ' ' || c == ',' || c == '\n' || c == '\t' || c == '\r') {
            if (id >= 0) add_id(d, (uint32_t)id);
            id = -1;
            if (c != EOF) continue;
            decode(d, true);
            return HR_OK;
        }
        return hr_fail(err, HR_CORRUPT,
                       "%.300s: byte %lld: expected a token id, a space, a comma or a newline",
                       d->name, (long long)at);
    }
}

static hr_status decode_lines(decoding *d, FILE *file, hr_error *err)
{
    char *line = NULL;
    size_t room = 0;
    hr_status status = HR_OK;
    for (int64_t number = 1; status == HR_OK; number++) {
        const ssize_t bytes = getline(&line, &room, file);
        if (bytes < 0) break;
        const size_t mark = number == 1 && bytes >= 3 && !memcmp(line, "\xef\xbb\xbf", 3) ? 3 : 0;
        json_error_t problem;
        json_t *object = json_loadb(line + mark, (size_t)bytes - mark, 0, &problem);
        const json_t *list = json_object_get(object, "ids");
        const json_t *id;
        size_t i;
        bool wrong = !json_is_array(list);
        json_array_foreach(list, i, id)
        {
            const json_int_t value = json_integer_value(id);
            wrong |= !json_is_integer(id) || value < 0 || value > UINT32_MAX;
        }
        if (wrong) {
            status = hr_fail(
                err, HR_CORRUPT, "%.300s: line %lld: %.200s", d->name, (long long)number,
                object ? "\"ids\" is missing or not a list of token ids" : problem.text);
        } else {
            printf("{\"text\": \"");
            json_array_foreach(list, i, id) add_id(d, (uint32_t)json_integer_value(id));
            decode(d, true);
            printf("\"}\n");
        }
        json_decref(object);
    }
    free(line);
    return status;
}

/* Opens a regular file; a pipe without a writer would block. */
static hr_status open_ids(const char *path, FILE **file, hr_error *err)
{
    struct stat there;
    *file = strcmp(path, "-") ? NULL : stdin;
    if (*file) return HR_OK;
    if (stat(path, &there) != 0)
        return hr_fail(err, HR_USAGE, "%.300s: %s", path,
                       errno == ENOENT ? "no such file" : strerror(errno));
    if (!S_ISREG(there.st_mode))
        return hr_fail(err, HR_USAGE, "%.300s: is a %s, a file is needed; - reads standard input",
                       path, S_ISDIR(there.st_mode) ? "directory" : "device or pipe");
    *file = fopen(path, "r");
    return *file ? HR_OK : hr_fail(err, HR_USAGE, "%.300s: %s", path, strerror(errno));
}

int hr_cli_tokenize_decode(const hr_cli_arguments *arguments)
{
    static decoding d;
    const char *path = text_of(arguments);
    hr_tokenize_setting setting;
    hr_error err;
    hr_status status = open_setting(arguments, arguments->values[HR_OPTION_TOKENIZER], &setting,
                                    &err);
    setting.decodes_only = true;
    FILE *file = NULL;
    if (status == HR_OK) status = open_ids(path, &file, &err);
    d = (decoding){ .name = file == stdin ? "standard input" : path,
                    .skips = !arguments->values[HR_OPTION_KEEP_SPECIAL],
                    .json = arguments->values[HR_OPTION_JSONL] != NULL };
    if (status == HR_OK) status = hr_tokenize_open(&d.tokenize, &setting, &err);
    if (status == HR_OK) {
        d.room = hr_tokenize_room(d.tokenize) + 65536;
        d.text = malloc((size_t)d.room);
        status = d.text ? HR_OK
                        : hr_fail(&err, HR_NO_FIT, "decoding needs %lld bytes", (long long)d.room);
    }
    if (status == HR_OK)
        status = d.json ? decode_lines(&d, file, &err) : decode_numbers(&d, file, &err);
    if (status == HR_OK && ferror(file))
        status = hr_fail(&err, HR_FAILURE, "%.300s: cannot be read", d.name);
    free(d.text);
    hr_tokenize_close(&d.tokenize);
    if (file && file != stdin) fclose(file);
    return status == HR_OK ? HR_OK : fail(&err);
}
