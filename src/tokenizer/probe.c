/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/probe.c - finds the files of a tokenizer and computes the memory that it needs. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/words.h"
#include "tokenizer/nfc.h"
#include "tokenizer/normalizing.h"
#include "tokenizer/reading.h"
#include "tokenizer/sentencepiece.h"

/* Scratch for the normalization of added tokens. */
enum {
    NORMALIZING_BYTES = sizeof(hr_normalizing) + sizeof(hr_normalize_composing) + (1 << 16) +
                        HR_NORMALIZER_STRIPS_MAX * HR_NORMALIZE_RUNS * sizeof(hr_normalize_run)
};

/* Writes `folder`/`name` to path; false: too long, or no such file. */
static bool beside(const char *folder, const char *name, char *path)
{
    const int bytes = snprintf(path, HR_TOKENIZER_PATH_BYTES, "%s/%s", folder, name);
    return bytes > 0 && bytes < HR_TOKENIZER_PATH_BYTES && hr_file_exists(path);
}

static hr_status find_files(hr_tokenizer_source *source, const char *path, hr_error *err)
{
    char folder[HR_TOKENIZER_PATH_BYTES];
    if (!strcmp(path, "words") && !hr_file_exists(path))
        return hr_fail(err, HR_USAGE,
                       "the tokenizer words has no vocabulary of its own; give the folder of a "
                       "model that was trained with it");
    if (strlen(path) >= sizeof folder)
        return hr_fail(err, HR_USAGE, "the tokenizer's path is longer than %d bytes",
                       HR_TOKENIZER_PATH_BYTES);
    source->form = hr_ends_with(path, ".tiktoken") ? HR_TOKENIZER_RANKS : HR_TOKENIZER_JSON;
    memcpy(source->path, path, strlen(path) + 1);
    memcpy(folder, path, strlen(path) + 1);
    if (hr_file_is_directory(path)) {
        if (beside(folder, "tokenizer.json", source->path)) return HR_OK;
        if (!beside(folder, "vocab.json", source->path) &&
            beside(folder, "tokenizer.model", source->path)) {
            source->form = HR_TOKENIZER_MODEL;
            return HR_OK;
        }
    } else if (hr_ends_with(path, "vocab.json") || hr_ends_with(path, "merges.txt")) {
        char *slash = strrchr(folder, '/');
        if (slash) *slash = 0;
        else snprintf(folder, sizeof folder, ".");
    } else {
        if (source->form == HR_TOKENIZER_JSON && hr_sentencepiece_is(path))
            source->form = HR_TOKENIZER_MODEL;
        return HR_OK;
    }
    if (beside(folder, "vocab.json", source->path) &&
        beside(folder, "merges.txt", source->merges)) {
        source->form = HR_TOKENIZER_PAIR;
        return HR_OK;
    }
    return hr_fail(err, HR_USAGE,
                   "%.500s: no tokenizer found: needs tokenizer.json, vocab.json with merges.txt, "
                   "or tokenizer.model",
                   folder);
}

static hr_status choose_pattern(hr_tokenizer_source *source, const char *pattern, hr_error *err)
{
    static const struct {
        const char *name, *pattern, *file;
    } patterns[] = { { "gpt2", hr_pattern_gpt2, "r50k_base.tiktoken" },
                     { "gpt2", hr_pattern_gpt2, "p50k_base.tiktoken" },
                     { "gpt2", hr_pattern_gpt2, "gpt2.tiktoken" },
                     { "cl100k", hr_pattern_cl100k, "cl100k_base.tiktoken" },
                     { "o200k", hr_pattern_o200k, "o200k_base.tiktoken" },
                     { "qwen", hr_pattern_qwen, "qwen.tiktoken" } };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (pattern ? strcmp(pattern, patterns[i].name)
                    : !hr_ends_with(source->path, patterns[i].file))
            continue;
        source->pattern = patterns[i].pattern;
        return HR_OK;
    }
    if (pattern)
        return hr_fail(err, HR_USAGE, "--pattern: %.40s is not one of gpt2, cl100k, o200k, qwen",
                       pattern);
    return hr_fail(err, HR_USAGE,
                   "%.500s: a .tiktoken file does not contain its split pattern; give it with "
                   "--pattern: gpt2, cl100k, o200k or qwen",
                   source->path);
}

/* Counts the bytes and lines of a file. */
static hr_status count_lines(const char *path, int64_t *bytes, int64_t *lines, hr_error *err)
{
    char buffer[1 << 16];
    int file = -1;
    hr_status status = hr_file_open(path, &file, bytes, err);
    *lines = 1;
    for (int64_t at = 0; status == HR_OK && at < *bytes;) {
        const int64_t count = hr_min(*bytes - at, (int64_t)sizeof buffer);
        status = hr_file_read(file, path, at, buffer, count, err);
        for (int64_t i = 0; status == HR_OK && i < count; i++) *lines += buffer[i] == '\n';
        at += count;
    }
    hr_file_close(&file);
    return status;
}

static hr_status count_ranks(hr_tokenizer_source *source, hr_error *err)
{
    int64_t lines = 0;
    const hr_status status = count_lines(source->path, &source->outline.bytes, &lines, err);
    if (status != HR_OK) return status;
    source->size = (hr_bpe_size){ .ids = hr_min(lines, HR_BPE_IDS_MAX),
                                  .pairs = hr_min(source->outline.bytes, HR_BPE_RANKS_MAX - 2),
                                  .text_bytes = source->outline.bytes,
                                  .whole_first = true };
    return HR_OK;
}

/* Bytes of normalized added tokens: the charsmaps in use expand a character to 18 at most, and a
 * prefix has at most 64 characters. */
static int64_t normalized_bytes(const hr_json_index *outline)
{
    return hr_json_index_top(outline, "normalizer")
               ? 18 * outline->added_bytes + 4 * HR_NORMALIZER_TEXT_MAX * outline->added_count
               : 0;
}

/* Sets source->words from the type of the model. */
static hr_status read_type(hr_tokenizer_source *source, hr_error *err)
{
    const hr_json_index_member *type = hr_json_index_model(&source->outline, "type");
    char text[32] = "";
    int file = -1;
    int64_t bytes;
    if (!type || type->bytes >= (int64_t)sizeof text) return HR_OK;
    hr_status status = hr_file_open(source->path, &file, &bytes, err);
    if (status == HR_OK)
        status = hr_file_read(file, source->path, type->at, text, type->bytes, err);
    hr_file_close(&file);
    source->words = strstr(text, "\"WordLevel\"") != NULL;
    return status;
}

static hr_status count_json(hr_tokenizer_source *source, hr_error *err)
{
    const bool pair = source->form == HR_TOKENIZER_PAIR;
    hr_json_index *outline = &source->outline;
    hr_status status = hr_json_index_read(outline, source->path, pair, err);
    int64_t lines = 0;
    if (status == HR_OK) status = read_type(source, err);
    if (status != HR_OK || source->words) return status;
    if (pair) status = count_lines(source->merges, &source->merges_bytes, &lines, err);
    if (status != HR_OK) return status;
    const int64_t merges = pair ? lines : outline->merge_count;
    if (outline->id_most >= HR_BPE_IDS_MAX || merges >= HR_BPE_RANKS_MAX - 1)
        return hr_fail(err, HR_CORRUPT,
                       HR_OF_FILE "%lld merges and ids up to %lld; the limits are %d and %d",
                       source->path, (long long)merges, (long long)outline->id_most,
                       HR_BPE_RANKS_MAX - 2, HR_BPE_IDS_MAX - 1);
    source->size = (hr_bpe_size){ .ids = outline->id_most + 1,
                                  .pairs = merges,
                                  /* Normalization may make added tokens longer. */
                                  .text_bytes = outline->vocab_bytes + outline->added_bytes +
                                                normalized_bytes(outline),
                                  /* Whether the file needs it is not known yet. */
                                  .whole_first = true };
    return HR_OK;
}

hr_status hr_one_line(hr_status status, hr_error *err)
{
    if (status == HR_OK || !err) return status;
    for (char *at = err->message; *at; at++)
        if ((uint8_t)*at < ' ' || *at == 127) *at = '?';
    return status;
}

/* Bytes of the file without its vocabulary and merges, which hr_read_check_json copies. */
static int64_t checked_bytes(const hr_json_index *outline)
{
    const hr_json_index_member *vocab = hr_json_index_model(outline, "vocab");
    const hr_json_index_member *merges = hr_json_index_model(outline, "merges");
    return outline->bytes - (vocab ? vocab->bytes : 0) - (merges ? merges->bytes : 0) + 2;
}

static hr_status look(hr_tokenizer_source *source, const char *path, const char *pattern,
                      hr_error *err)
{
    hr_status status = find_files(source, path, err);
    if (status != HR_OK) return status;
    if (pattern && source->form != HR_TOKENIZER_RANKS)
        return hr_fail(err, HR_USAGE, HR_OF_FILE "has its own pattern; --pattern is for .tiktoken",
                       source->path);
    if (source->form == HR_TOKENIZER_RANKS) {
        status = choose_pattern(source, pattern, err);
        if (status == HR_OK) status = count_ranks(source, err);
    } else if (source->form == HR_TOKENIZER_MODEL) {
        status = hr_sentencepiece_count(source, err);
    } else {
        status = count_json(source, err);
    }
    if (status != HR_OK || source->words) return status;
    const hr_json_index_member *pre = hr_json_index_top(&source->outline, "pre_tokenizer");
    const int64_t patterns = pre ? pre->bytes : 0;
    const int64_t added = source->outline.added_count + 1;
    const hr_json_index_member *normalizer = hr_json_index_top(&source->outline, "normalizer");
    const bool model = source->form == HR_TOKENIZER_MODEL;
    const int64_t map_bytes = model ? source->outline.bytes : normalizer ? normalizer->bytes : 0;
    source->table_bytes = (int64_t)sizeof(hr_tokenizer) + hr_bpe_bytes(source->size) +
                          source->size.ids + 64 * patterns +
                          HR_PRETOKENIZER_STAGES_MAX * INT64_C(20000) +
                          5 * added * (int64_t)sizeof(hr_added_token) +
                          source->outline.added_bytes + normalized_bytes(&source->outline) +
                          2 * 64 * added + hr_charsmap_bytes(map_bytes) +
                          (model || source->outline.listed ? 8 * source->size.ids + 64 : 0) +
                          (model ? source->outline.bytes : 0) + 4096;
    const int64_t making = hr_keys_bytes(source->size.ids) + hr_bpe_scratch_bytes(source->size) +
                           (int64_t)sizeof(hr_nfc_scratch) +
                           (normalizer || model ? NORMALIZING_BYTES : 0) +
                           (model ? 16 * source->size.ids + 5 * 64 : 0);
    source->scratch_bytes = source->outline.bytes + source->merges_bytes +
                            hr_max(making, checked_bytes(&source->outline)) + 4096;
    return HR_OK;
}

hr_status hr_tokenizer_probe(hr_tokenizer_source *source, const char *path, const char *pattern,
                             hr_error *err)
{
    *source = (hr_tokenizer_source){ .pattern = NULL };
    return hr_one_line(look(source, path, pattern, err), err);
}
