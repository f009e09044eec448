/* SPDX-License-Identifier: Apache-2.0 */
/* config/yaml_events.c - runs libyaml over a text, or over a file that is read in pieces. */
#include "config/yaml_events.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { BYTES_MAX = 1048576 };

typedef struct {
    const char *path, *what;
    int fd, read_errno;
    int64_t bytes; /* read so far */
} source;

hr_status hr_yaml_fail(const char *path, int64_t line, const char *sentence, hr_error *err)
{
    enum { PATH_SHOWN = 160 };
    const size_t length = strlen(path);
    if (length > PATH_SHOWN) path += length - PATH_SHOWN;
    return hr_fail(err, HR_USAGE, "%s:%lld: %s", path, (long long)line, sentence);
}

static int read_some(void *data, unsigned char *buffer, size_t room, size_t *got)
{
    source *s = data;
    ssize_t count;
    do count = read(s->fd, buffer, room);
    while (count < 0 && errno == EINTR);
    if (count < 0) {
        s->read_errno = errno;
        return 0;
    }
    s->bytes += count;
    *got = (size_t)count;
    return s->bytes <= BYTES_MAX;
}

static hr_status fail_large(const source *s, hr_error *err)
{
    return hr_fail(err, HR_USAGE, "%s has more than %d bytes, the limit of a %s", s->path,
                   BYTES_MAX, s->what);
}

static hr_status fail_parsing(const source *s, const yaml_parser_t *parser, hr_error *err)
{
    hr_error inner;
    const char *problem = parser->problem ? parser->problem : "";
    if (s->read_errno)
        return hr_fail(err, HR_USAGE, "%s cannot be read: %s", s->path, strerror(s->read_errno));
    if (s->bytes > BYTES_MAX) return fail_large(s, err);
    if (parser->error == YAML_MEMORY_ERROR)
        return hr_fail(err, HR_FAILURE, "%s: out of memory", s->path);
    if (parser->error == YAML_READER_ERROR)
        return hr_fail(err, HR_USAGE, "%s: byte %lld: not YAML: %s", s->path,
                       (long long)parser->problem_offset, problem);
    (void)hr_fail(&inner, HR_USAGE, "not YAML: %s", problem);
    return hr_yaml_fail(s->path, (int64_t)parser->problem_mark.line + 1, inner.message, err);
}

static hr_status take_all(const source *s, yaml_parser_t *parser, hr_yaml_take *take, void *context,
                          hr_error *err)
{
    /* A byte of YAML yields two events at most: "{a}" is a key and its empty value. */
    for (int64_t events = 0; events < 2 * BYTES_MAX; events++) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) return fail_parsing(s, parser, err);
        const bool last = event.type == YAML_STREAM_END_EVENT;
        const hr_status status = take(context, &event, (int64_t)event.start_mark.line + 1);
        yaml_event_delete(&event);
        if (status != HR_OK || last) return status;
    }
    return hr_fail(err, HR_USAGE, "%s: not YAML", s->path);
}

/* Reads the text, or the open file if it is null. */
static hr_status read_source(source *s, const char *text, hr_yaml_take *take, void *context,
                             hr_error *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return hr_fail(err, HR_FAILURE, "%s: out of memory", s->path);
    if (text) yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    else yaml_parser_set_input(&parser, read_some, s);
    const hr_status status = take_all(s, &parser, take, context, err);
    yaml_parser_delete(&parser);
    return status;
}

hr_status hr_yaml_read_open(int file, const char *path, const char *what, hr_yaml_take *take,
                            void *context, hr_error *err)
{
    source s = { .path = path, .what = what, .fd = file };
    return read_source(&s, NULL, take, context, err);
}

hr_status hr_yaml_read_text(const char *text, const char *name, const char *what,
                            hr_yaml_take *take, void *context, hr_error *err)
{
    source s = { .path = name, .what = what, .fd = -1, .bytes = (int64_t)strlen(text) };
    if (s.bytes > BYTES_MAX) return fail_large(&s, err);
    return read_source(&s, text, take, context, err);
}

hr_status hr_yaml_read(const char *path, const char *what, hr_yaml_take *take, void *context,
                       hr_error *err)
{
    int file;
    int64_t bytes;
    hr_error why;
    hr_status status = hr_file_open(path, &file, &bytes, &why);
    if (status != HR_OK) return hr_fail(err, status, "%s %s", what, why.message);
    status = hr_yaml_read_open(file, path, what, take, context, err);
    hr_file_close(&file);
    return status;
}
