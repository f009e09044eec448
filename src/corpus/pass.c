/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/pass.c - iterates over the files of a text; handles plain texts and files of ids. */
#include "corpus/pass.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"

/* ---- plain texts */

static hr_status next_text(hr_pass *pass, bool *end, hr_error *err)
{
    int64_t count;
    const int64_t room = hr_min(pass->buffer_bytes, HR_INPUT_STREAM_BYTES);
    const hr_status status = hr_input_stream_read(&pass->input_stream, pass->buffer, room, &count,
                                                  err);
    if (status != HR_OK) return status;
    const hr_stream *stream = pass->stream;
    const bool begins = !pass->begun;
    const hr_line_span text = { .text = pass->buffer, .bytes = count };
    const int64_t at = pass->offset, first = hr_max(stream->from - at, 0);
    const int64_t last = hr_min(stream->to - at, count);
    *end = count < room;
    pass->offset += count;
    /* An empty file is not a document. Of a split file, skip the bytes of the other side. */
    if ((begins && count == 0) || (stream->split && first >= last)) return HR_OK;
    if (begins) pass->excluded = hr_pass_is_excluded(pass, &text, 1);
    pass->begun = true;
    const bool ends = *end || last < count || stream->to == pass->offset;
    hr_pass_put(pass, (hr_piece){ .bytes = pass->buffer + first,
                                  .count = last - first,
                                  .begins = begins,
                                  .ends = ends,
                                  .segment_ends = ends,
                                  .targets = true,
                                  .offset = at + first });
    return HR_OK;
}

/* ---- ids */

static hr_status next_ids(hr_pass *pass, bool *end, hr_error *err)
{
    const int64_t document_end = pass->desc->document_end;
    if (pass->id_at == pass->id_count) {
        const hr_status status = hr_shard_import_next(&pass->tokens, &pass->input_stream,
                                                      pass->desc->vocab_size, pass->buffer,
                                                      pass->ids, &pass->id_count, err);
        pass->id_at = 0;
        *end = pass->id_count == 0;
        if (status != HR_OK || *end) return status;
    }
    int64_t last = pass->id_at;
    while (last < pass->id_count - 1 && pass->ids[last] != document_end) last++;
    hr_pass_put(pass, (hr_piece){ .ids = pass->ids + pass->id_at,
                                  .count = last + 1 - pass->id_at,
                                  .begins = !pass->begun,
                                  .targets = true,
                                  .offset = pass->tokens.read - pass->id_count + pass->id_at });
    pass->begun = pass->ids[last] != document_end;
    pass->id_at = last + 1;
    return HR_OK;
}

/* ---- files */

static hr_status open_file(hr_pass *pass, hr_error *err)
{
    const hr_listed *file = &pass->list->files[pass->file];
    hr_status status = hr_input_stream_open(
        &pass->input_stream, hr_list_path(pass->list, pass->file), file->sort.packing, err);
    if (status != HR_OK) return status;
    pass->open = true;
    pass->offset = 0;
    if (file->sort.kind != HR_FILE_TOKENS) pass->begun = pass->excluded = false;
    if (file->sort.kind == HR_FILE_LINES) hr_pass_lines_begin(pass);
    pass->id_at = pass->id_count = 0;
    if (file->sort.kind == HR_FILE_TOKENS)
        status = hr_shard_import_begin(&pass->tokens, &pass->input_stream, file->ids_bytes,
                                       pass->buffer, err);
    return status;
}

/* Adds a file's size, kind and id width to the identity. */
static void close_file(hr_pass *pass)
{
    const hr_listed *file = &pass->list->files[pass->file];
    const int64_t mark[] = { pass->input_stream.bytes, file->sort.kind, file->sort.packing,
                             file->ids_bytes };
    hr_input_stream_close(&pass->input_stream);
    if (!pass->stream->alone) hr_input_stream_add(&pass->input_stream, mark, sizeof mark);
    pass->open = false;
    pass->file++;
}

/* Adds the settings of the description to the identity. */
static void add_settings(hr_pass *pass)
{
    const hr_corpus_desc *desc = pass->desc;
    const hr_stream *stream = pass->stream;
    char text[4 * HR_LINE_NAME_BYTES + 128];
    if (stream->alone) return;
    const int bytes = snprintf(
        text, sizeof text, "1 \"%s\" \"%s\" \"%s\" skip=%d side=%d of %.17g%s", desc->text_field,
        desc->prompt_field, desc->completion_field, desc->skip_bad_lines, (int)stream->side,
        stream->side == HR_STREAM_ALL ? 0 : stream->share, stream->split ? " by position" : "");
    HR_ASSERT(bytes < (int)sizeof text);
    hr_input_stream_add(&pass->input_stream, text, bytes);
}

static void begin(hr_stream *stream, const char *work, const hr_text_progress *progress)
{
    hr_pass *pass = stream->pass;
    int64_t total = 0;
    for (int32_t i = stream->first; i < stream->first + stream->count; i++)
        total += pass->list->files[i].bytes;
    hr_input_stream_close(&pass->input_stream);
    hr_input_stream_begin(&pass->input_stream, work, progress, total);
    pass->stream = stream;
    pass->file = stream->first;
    pass->open = pass->begun = pass->excluded = false;
    pass->bad_lines = 0;
    pass->queued = pass->returned = 0;
}

static hr_status identify(void *context, const hr_text_progress *progress, hr_text_hash *hash,
                          int64_t *bytes, hr_error *err)
{
    hr_stream *stream = context;
    hr_pass *pass = stream->pass;
    hr_status status = HR_OK;
    begin(stream, "reading text", progress);
    while (status == HR_OK && pass->file < stream->first + stream->count) {
        status = hr_input_stream_open(&pass->input_stream, hr_list_path(pass->list, pass->file),
                                      HR_FILE_PLAIN, err);
        if (status == HR_OK)
            status = hr_input_stream_pass(&pass->input_stream, pass->buffer, pass->buffer_bytes,
                                          err);
        if (status == HR_OK) close_file(pass);
    }
    hr_input_stream_close(&pass->input_stream);
    if (status != HR_OK) return status;
    add_settings(pass);
    *hash = hr_input_stream_hash(&pass->input_stream);
    *bytes = pass->input_stream.done;
    return HR_OK;
}

static hr_status open_pass(void *context, const char *work, const hr_text_progress *progress,
                           hr_error *err)
{
    (void)err;
    begin(context, work, progress);
    return HR_OK;
}

static hr_status next(void *context, hr_piece *piece, hr_error *err)
{
    const hr_stream *stream = context;
    hr_pass *pass = stream->pass;
    HR_ASSERT(pass->stream == stream);
    while (pass->returned == pass->queued) {
        bool end = false;
        hr_status status = HR_OK;
        pass->returned = pass->queued = 0;
        if (!pass->open && pass->file == stream->first + stream->count) {
            add_settings(pass);
            *piece = (hr_piece){ 0 };
            return HR_OK;
        }
        if (!pass->open) status = open_file(pass, err);
        if (status != HR_OK) return status;
        switch (pass->list->files[pass->file].sort.kind) {
        case HR_FILE_LINES: status = hr_pass_lines_next(pass, &end, err); break;
        case HR_FILE_TOKENS: status = next_ids(pass, &end, err); break;
        default: status = next_text(pass, &end, err); break;
        }
        if (status != HR_OK) return status;
        if (end) close_file(pass);
    }
    *piece = pass->queue[pass->returned++];
    return HR_OK;
}

static hr_text_hash seen(void *context, int64_t *bad_lines)
{
    const hr_stream *stream = context;
    *bad_lines = stream->pass->bad_lines;
    return hr_input_stream_hash(&stream->pass->input_stream);
}

static void close_pass(void *context)
{
    const hr_stream *stream = context;
    hr_input_stream_close(&stream->pass->input_stream);
}

hr_documents hr_pass_documents(hr_stream *stream)
{
    return (hr_documents){ .context = stream,
                           .identify = identify,
                           .open = open_pass,
                           .next = next,
                           .seen = seen,
                           .close = close_pass };
}
