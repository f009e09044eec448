/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/corpus.c - assigns the files of a recipe to its texts. */
#define _GNU_SOURCE /* memmem */
#include "corpus/corpus.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"
#include "corpus/named.h"
#include "corpus/pass.h"
#include "corpus/synthetic.h"
#include "headroom/config.h"
#include "text/shard.h"

struct hr_corpus {
    hr_corpus_desc desc;
    hr_spec train, valid;
    hr_list list;
    hr_corpus_view view;
    hr_stream streams[HR_SPEC_PARTS_MAX + 1];
    char names[HR_SPEC_PARTS_MAX + 1][HR_PATH_BYTES];
    hr_pass pass;
    hr_synthetic synthetic[2]; /* of training and validation */
};

/* ---- memory */

/* Which formats the files may have, judged by the names in the description. */
typedef struct {
    bool gzip, zstd, lines, tokens;
} needs;

static void add_needs(needs *n, const hr_spec *spec)
{
    for (int32_t i = 0; i < spec->count; i++) {
        const hr_spec_part *part = &spec->parts[i];
        int64_t first = part->path_bytes;
        while (first && !strchr("*?[]", part->path[first - 1])) first--;
        const bool names_one = first == 0 && !hr_spec_is_folder(part);
        /* keep a character before the extension, which hr_file_sort_of requires */
        first -= first > 0;
        const hr_file_sort sort = hr_file_sort_of(part->path + first, part->path_bytes - first);
        const bool ending = names_one || sort.known || sort.kind != HR_FILE_TEXT;
        const bool packing = ending || sort.packing != HR_FILE_PLAIN;
        n->gzip |= packing ? sort.packing == HR_FILE_GZIP : true;
        n->zstd |= packing ? sort.packing == HR_FILE_ZSTD : true;
        n->lines |= ending ? sort.kind == HR_FILE_LINES : true;
        n->tokens |= part->ids_bytes || part->synthetic ||
                     (ending ? sort.kind == HR_FILE_TOKENS : !hr_spec_is_folder(part));
    }
}

static bool has_synthetic(const hr_spec *spec)
{
    for (int32_t i = 0; i < spec->count; i++)
        if (spec->parts[i].synthetic) return true;
    return false;
}

/* Synthetic ids are a whole text, and have no tokenizer that a text could share. */
static hr_status check_synthetic(const hr_spec *train, const hr_spec *valid, hr_error *err)
{
    const bool trains = has_synthetic(train), validates = has_synthetic(valid);
    if ((trains && train->count > 1) || (validates && valid->count > 1))
        return hr_fail(err, HR_USAGE, "%s: synthetic is a whole text; remove the other parts",
                       trains && train->count > 1 ? "data.train" : "data.valid");
    if ((trains && valid->count && !validates) || (validates && train->count && !trains))
        return hr_fail(err, HR_USAGE, "%s is synthetic and %s is not: use synthetic for both%s",
                       trains ? "data.train" : "data.valid", trains ? "data.valid" : "data.train",
                       trains ? ", or a share such as data.valid=5%" : "");
    return HR_OK;
}

static hr_status read_specs(const hr_corpus_desc *desc, hr_spec *train, hr_spec *valid,
                            hr_error *err)
{
    hr_status status = hr_spec_read(train, "data.train", desc->train, err);
    if (status == HR_OK) status = hr_spec_read(valid, "data.valid", desc->valid, err);
    if (status != HR_OK) return status;
    if (train->share > 0)
        return hr_fail(err, HR_USAGE, "data.train=%.40s: only data.valid takes a percentage",
                       desc->train);
    if (valid->weighted)
        return hr_fail(err, HR_USAGE, "data.valid: weights are for data.train only");
    return check_synthetic(train, valid, err);
}

static int64_t buffer_bytes(const needs *n, const hr_corpus_desc *desc)
{
    const int64_t line = desc->line_bytes ? desc->line_bytes : HR_CORPUS_LINE_BYTES;
    return n->lines && (!desc->line_bytes || line < HR_INPUT_STREAM_BYTES) ? line
                                                                           : HR_INPUT_STREAM_BYTES;
}

int64_t hr_corpus_bytes(const hr_corpus_desc *desc)
{
    hr_spec train, valid;
    needs n = { 0 };
    if (read_specs(desc, &train, &valid, NULL) != HR_OK) return 0;
    add_needs(&n, &train);
    add_needs(&n, &valid);
    return hr_round_up(sizeof(hr_corpus), 64) + hr_list_bytes(&train, &valid) +
           hr_input_stream_bytes(n.gzip, n.zstd) + hr_round_up(buffer_bytes(&n, desc), 64) +
           (n.tokens ? HR_SHARD_IMPORT_AT_ONCE * (int64_t)sizeof(uint32_t) : 0);
}

static void place(hr_corpus *corpus, hr_region *region)
{
    needs n = { 0 };
    add_needs(&n, &corpus->train);
    add_needs(&n, &corpus->valid);
    corpus->list = hr_list_place(region, &corpus->train, &corpus->valid);
    hr_pass *pass = &corpus->pass;
    pass->list = &corpus->list;
    pass->desc = &corpus->desc;
    pass->buffer_bytes = buffer_bytes(&n, &corpus->desc);
    pass->buffer = hr_region_take_raw(region, 1, pass->buffer_bytes);
    if (n.tokens) pass->ids = hr_region_take_raw(region, HR_SHARD_IMPORT_AT_ONCE, sizeof(uint32_t));
    HR_ASSERT(pass->buffer && (pass->ids || !n.tokens));
    hr_input_stream_place(&pass->input_stream, region, n.gzip, n.zstd);
}

/* ---- texts */

static hr_status check_part(const hr_spec_part *part, bool validation, bool alone, hr_error *err)
{
    char path[HR_PATH_BYTES];
    int file;
    int64_t bytes;
    if (part->synthetic || hr_spec_is_folder(part) || hr_list_is_pattern(part)) return HR_OK;
    const hr_status known = hr_named_check(part->path, part->path_bytes, validation, alone, err);
    if (known != HR_OK) return known;
    snprintf(path, sizeof path, "%.*s", (int)part->path_bytes, part->path);
    const hr_status status = hr_list_open(path, &file, &bytes, err);
    if (status == HR_OK) hr_file_close(&file);
    return status;
}

hr_status hr_corpus_read(const hr_corpus_desc *desc, hr_error *err)
{
    hr_spec train, valid;
    int64_t shares[HR_SPEC_PARTS_MAX], block;
    const hr_status status = read_specs(desc, &train, &valid, err);
    if (status != HR_OK || !train.weighted) return status;
    return hr_spec_shares(&train, shares, &block, err);
}

hr_status hr_corpus_check(const hr_corpus_desc *desc, hr_error *err)
{
    hr_spec train, valid;
    hr_status status = hr_corpus_read(desc, err);
    if (status == HR_OK) status = read_specs(desc, &train, &valid, err);
    if (status != HR_OK) return status;
    for (int32_t i = 0; i < train.count && status == HR_OK; i++)
        status = check_part(&train.parts[i], false, train.count == 1, err);
    for (int32_t i = 0; i < valid.count && status == HR_OK; i++)
        status = check_part(&valid.parts[i], true, valid.count == 1, err);
    return status;
}

/* Checks that either all files of all texts are ids, or none. */
static hr_status check_kinds(const hr_corpus *corpus, hr_error *err)
{
    const hr_list *list = &corpus->list;
    int32_t ids = -1, text = -1;
    for (int32_t i = 0; i < list->count; i++)
        *(list->files[i].sort.kind == HR_FILE_TOKENS ? &ids : &text) = i;
    if (ids >= 0 && text >= 0)
        return hr_fail(err, HR_USAGE,
                       "%.200s has token ids and %.200s has text: the tokenizer of the ids is not "
                       "known, so all data must be of one kind",
                       hr_list_path(list, ids), hr_list_path(list, text));
    if (ids >= 0 && corpus->valid.share > 0)
        return hr_fail(
            err, HR_USAGE,
            "data.valid=%.40s: a percentage needs text, and %.200s has token ids: give a "
            "file of token ids",
            corpus->desc.valid, hr_list_path(list, ids));
    return HR_OK;
}

static uint32_t maps_of(const hr_list *list, const hr_stream *stream, int64_t document_end)
{
    uint32_t holds = stream->count > 1 ? HR_SHARD_DOCUMENTS : 0;
    for (int32_t i = stream->first; i < stream->first + stream->count; i++) {
        const hr_file_kind kind = list->files[i].sort.kind;
        if (kind == HR_FILE_LINES) return HR_SHARD_DOCUMENTS | HR_SHARD_MASKS;
        if (kind == HR_FILE_TOKENS) return document_end >= 0 ? HR_SHARD_DOCUMENTS : 0;
    }
    return holds;
}

/* Makes a text of files [first, first + count) of the list. */
static void make_text(hr_corpus *corpus, int32_t index, hr_corpus_text *text, int32_t first,
                      int32_t count, hr_stream_side side)
{
    const hr_list *list = &corpus->list;
    hr_stream *stream = &corpus->streams[index];
    *stream = (hr_stream){ .pass = &corpus->pass,
                           .first = first,
                           .count = count,
                           .side = side,
                           .share = corpus->valid.share,
                           .to = INT64_MAX };
    const hr_listed *file = &list->files[first];
    stream->alone = count == 1 && side == HR_STREAM_ALL && file->sort.kind == HR_FILE_TEXT &&
                    file->sort.packing == HR_FILE_PLAIN;
    text->files = count;
    for (int32_t i = first; i < first + count; i++) text->bytes += list->files[i].bytes;
    text->documents = hr_pass_documents(stream);
    text->documents.name = corpus->names[index];
    text->documents.is_ids = file->sort.kind == HR_FILE_TOKENS;
    text->documents.holds = maps_of(list, stream, corpus->desc.document_end);
}

static void name_text(hr_corpus *corpus, int32_t index, const char *path, int64_t bytes)
{
    snprintf(corpus->names[index], HR_PATH_BYTES, "%.*s", (int)bytes, path);
}

/* Appends the files of some parts to the list. */
static hr_status list_parts(hr_corpus *corpus, const hr_spec_part *parts, int32_t count,
                            hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t i = 0; i < count && status == HR_OK; i++)
        status = hr_list_add(&corpus->list, &parts[i], err);
    return status;
}

/* Makes a text of synthetic ids. A share of the training tokens is drawn for validation, like the
 * tokens of data.valid=synthetic. */
static void make_synthetic(hr_corpus *corpus, bool validation, hr_corpus_text *text)
{
    const hr_spec_part *train = corpus->train.parts, *valid = corpus->valid.parts;
    hr_synthetic *s = &corpus->synthetic[validation];
    const int64_t given = train->tokens ? train->tokens : HR_SYNTHETIC_TRAIN_TOKENS;
    const int64_t held = (int64_t)(corpus->valid.share * (double)given);
    const bool own = validation && corpus->valid.count > 0;
    int64_t tokens = validation ? held : given - held;
    if (own) tokens = valid->tokens ? valid->tokens : HR_SYNTHETIC_VALID_TOKENS;
    const int64_t seed = own && (valid->seed || !corpus->train.count) ? valid->seed : train->seed;
    hr_synthetic_begin(s, corpus->desc.vocab_size, tokens, (uint64_t)seed, validation,
                       corpus->pass.ids);
    const int32_t index = validation ? HR_SPEC_PARTS_MAX : 0;
    text->documents = hr_synthetic_documents(s);
    text->documents.name = corpus->names[index];
    name_text(corpus, index, "synthetic", sizeof "synthetic" - 1);
}

static hr_status list_train(hr_corpus *corpus, hr_error *err)
{
    const hr_spec *spec = &corpus->train;
    hr_corpus_view *view = &corpus->view;
    const hr_stream_side side = corpus->valid.share > 0 ? HR_STREAM_KEPT : HR_STREAM_ALL;
    int64_t shares[HR_SPEC_PARTS_MAX] = { 0 };
    hr_status status = HR_OK;
    if (spec->count == 0) return HR_OK;
    if (spec->weighted) status = hr_spec_shares(spec, shares, &view->block, err);
    view->train_count = spec->weighted ? spec->count : 1;
    if (spec->parts->synthetic) {
        make_synthetic(corpus, false, &view->train[0]);
        return HR_OK;
    }
    for (int32_t i = 0; i < view->train_count && status == HR_OK; i++) {
        const int32_t first = corpus->list.count;
        status = list_parts(corpus, &spec->parts[i], spec->weighted ? 1 : spec->count, err);
        if (status != HR_OK) return status;
        make_text(corpus, i, &view->train[i], first, corpus->list.count - first, side);
        view->train[i].share = shares[i];
        if (spec->weighted || spec->count == 1)
            name_text(corpus, i, spec->parts[i].path, spec->parts[i].path_bytes);
        else name_text(corpus, i, "data.train", sizeof "data.train" - 1);
    }
    return status;
}

/* ---- holding out the end of a single text */

enum {
    BOUNDARY_BYTES = 1 << 14,
    BEFORE = 3 /* bytes that an empty line takes, with the end before */
};

/* Where the first line after an empty one begins in text [bytes], from `at` on; `bytes`: nowhere.
 */
static int64_t find_paragraph(const char *text, int64_t bytes, int64_t at)
{
    for (int64_t next = at; next <= bytes; next++) {
        const char *line = memchr(text + next - 1, '\n', (size_t)(bytes - next + 1));
        if (!line) return bytes;
        next = line + 1 - text;
        if (line[-1] == '\n' || (line[-1] == '\r' && line[-2] == '\n')) return next;
    }
    return bytes;
}

/* Finds the beginning of a paragraph in text [bytes] from `at` on, or else of a line, or else of a
 * character; `at` if there is none. BEFORE <= at. */
static int64_t find_boundary(const char *text, int64_t bytes, int64_t at)
{
    const int64_t paragraph = find_paragraph(text, bytes, at);
    const char *line = memchr(text + at - 1, '\n', (size_t)(bytes - at + 1));
    int64_t character = at;
    if (paragraph < bytes) return paragraph;
    if (line && line + 1 < text + bytes) return line + 1 - text;
    while (character < bytes && (text[character] & 0xc0) == 0x80) character++;
    return character < bytes ? character : at;
}

/* The held-out share of a single plain text is its end. It begins at the first boundary after the
 * exact position, at most BOUNDARY_BYTES and half of the share later. */
static hr_status split_text(hr_corpus *corpus, hr_error *err)
{
    char text[BEFORE + BOUNDARY_BYTES];
    hr_corpus_view *view = &corpus->view;
    const char *path = hr_list_path(&corpus->list, 0);
    int file;
    int64_t bytes;
    if (corpus->list.files[0].sort.packing != HR_FILE_PLAIN)
        return hr_fail(
            err, HR_USAGE,
            "data.valid=%.40s: %.200s is a single compressed text, from which no share can "
            "be held out: decompress it, or use data.valid=FILE",
            corpus->desc.valid, path);
    hr_status status = hr_list_open(path, &file, &bytes, err);
    if (status != HR_OK) return status;
    const int64_t held = (int64_t)((double)bytes * corpus->valid.share), at = bytes - held;
    const int64_t room = hr_min((held + 1) / 2, BOUNDARY_BYTES), before = hr_min(at, BEFORE);
    memset(text, 0, BEFORE); /* stands for the bytes before the file's first byte */
    status = hr_file_read(file, path, at - before, text + BEFORE - before, room + before, err);
    hr_file_close(&file);
    if (status != HR_OK) return status;
    const int64_t cut = at - BEFORE + find_boundary(text, BEFORE + room, BEFORE);
    hr_stream *train = &corpus->streams[0], *valid = &corpus->streams[HR_SPEC_PARTS_MAX];
    train->split = valid->split = true;
    train->to = valid->from = cut;
    valid->to = bytes;
    view->train[0].bytes = cut;
    view->valid.bytes = bytes - cut;
    return HR_OK;
}

static hr_status list_valid(hr_corpus *corpus, hr_error *err)
{
    const hr_spec *spec = &corpus->valid;
    hr_corpus_view *view = &corpus->view;
    const int32_t first = spec->share > 0 ? 0 : corpus->list.count;
    if (spec->count == 0 && !(spec->share > 0)) return HR_OK;
    if (has_synthetic(spec) || (spec->share > 0 && has_synthetic(&corpus->train))) {
        view->has_valid = true;
        view->held_out = spec->share > 0;
        make_synthetic(corpus, true, &view->valid);
        return HR_OK;
    }
    if (spec->share > 0 && !corpus->list.count)
        return hr_fail(err, HR_USAGE, "data.valid=%.40s: a percentage needs text in data.train",
                       corpus->desc.valid);
    const hr_status status = list_parts(corpus, spec->parts, spec->count, err);
    if (status != HR_OK) return status;
    view->has_valid = true;
    view->held_out = spec->share > 0;
    make_text(corpus, HR_SPEC_PARTS_MAX, &view->valid, first, corpus->list.count - first,
              spec->share > 0 ? HR_STREAM_HELD : HR_STREAM_ALL);
    if (spec->count == 1)
        name_text(corpus, HR_SPEC_PARTS_MAX, spec->parts[0].path, spec->parts[0].path_bytes);
    else if (spec->share > 0)
        snprintf(corpus->names[HR_SPEC_PARTS_MAX], HR_PATH_BYTES, "data.valid=%.40s",
                 corpus->desc.valid);
    else name_text(corpus, HR_SPEC_PARTS_MAX, "data.valid", sizeof "data.valid" - 1);
    const bool one_text = corpus->list.count == 1 &&
                          corpus->list.files[0].sort.kind == HR_FILE_TEXT;
    return spec->share > 0 && one_text ? split_text(corpus, err) : HR_OK;
}

hr_status hr_corpus_open(hr_corpus **corpus, void *memory, int64_t bytes,
                         const hr_corpus_desc *desc, hr_error *err)
{
    hr_spec train, valid;
    hr_status status = read_specs(desc, &train, &valid, err);
    if (status != HR_OK) return status;
    const int64_t needed = hr_corpus_bytes(desc);
    if (bytes < needed)
        return hr_fail(err, HR_NO_FIT, "listing the text needs %lld bytes, %lld are available",
                       (long long)needed, (long long)bytes);
    hr_region region = hr_region_over(memory, bytes);
    hr_corpus *opened = hr_region_take(&region, 1, sizeof *opened);
    HR_ASSERT(opened);
    opened->desc = *desc;
    opened->train = train;
    opened->valid = valid;
    place(opened, &region);
    status = list_train(opened, err);
    if (status == HR_OK) status = list_valid(opened, err);
    if (status == HR_OK) status = check_kinds(opened, err);
    if (status == HR_OK) *corpus = opened;
    return status;
}

void hr_corpus_close(hr_corpus **corpus)
{
    if (*corpus) hr_input_stream_close(&(*corpus)->pass.input_stream);
    *corpus = NULL;
}

const hr_corpus_view *hr_corpus_texts(const hr_corpus *corpus)
{
    return &corpus->view;
}

const char *hr_corpus_file(const hr_corpus *corpus, const hr_corpus_text *text, int64_t index)
{
    if (!text->files) return NULL; /* synthetic */
    const hr_stream *stream = text->documents.context;
    if (index < 0 || index >= stream->count) return NULL;
    return hr_list_path(&corpus->list, stream->first + (int32_t)index);
}
