/* SPDX-License-Identifier: Apache-2.0 */
/* plan/instance.c - reads and writes packing problems; the whole file is in memory. */
#include "plan/instance.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/number.h"
#include "base/random.h"
#include "headroom/pack.h"

typedef enum { ID, LOWER, UPPER, BYTES, OFFSET, COLUMNS } column;

static const char *const names[COLUMNS] = { "id", "lower", "upper", "size", "offset" };

/* One value of a line, without surrounding blanks. */
typedef struct {
    const char *text;
    int32_t bytes;
} value;

typedef struct {
    const char *path;
    hr_instance *instance;
    const char *at, *end;   /* the unread rest */
    int32_t line;           /* 1-based */
    int32_t column_count;   /* in the header */
    int32_t place[COLUMNS]; /* column index; -1: absent */
    int64_t bytes_sum;
    hr_error *err;
} reader;

/* A value for an error message: truncated, without control characters. */
static const char *quote(value v, char text[48])
{
    const int32_t bytes = v.bytes < 40 ? v.bytes : 40;
    for (int32_t i = 0; i < bytes; i++) {
        const char letter = v.text[i];
        text[i] = letter >= ' ' && letter < 127 ? letter : '?';
    }
    strcpy(text + bytes, bytes < v.bytes ? "..." : "");
    return text;
}

/* The next value of the line that ends at `end`. *at moves behind its comma; null after the
 * last. */
static value next_value(const char **at, const char *end)
{
    const char *from = *at, *comma = memchr(from, ',', (size_t)(end - from));
    const char *to = comma ? comma : end;
    *at = comma ? comma + 1 : NULL;
    while (from < to && (*from == ' ' || *from == '\t')) from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r')) to--;
    return (value){ from, (int32_t)(to - from) };
}

/* The next line that is not empty, [*from, *to). False at the end of the file. */
static bool next_line(reader *r, const char **from, const char **to)
{
    while (r->at < r->end) {
        const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
        *from = r->at;
        *to = newline ? newline : r->end;
        r->at = newline ? newline + 1 : r->end;
        r->line++;
        const char *at = *from;
        if (next_value(&at, *to).bytes > 0 || at) return true;
    }
    return false;
}

static hr_status read_header(reader *r)
{
    const char *at, *end;
    char text[48];
    for (int32_t c = 0; c < COLUMNS; c++) r->place[c] = -1;
    if (!next_line(r, &at, &end))
        return hr_fail(r->err, HR_CORRUPT,
                       "%s, line 1: no header; it must name id,lower,upper,size", r->path);
    for (; at; r->column_count++) {
        const value name = next_value(&at, end);
        int32_t c = 0;
        while (c < COLUMNS && ((int32_t)strlen(names[c]) != name.bytes ||
                               memcmp(names[c], name.text, (size_t)name.bytes) != 0))
            c++;
        if (c == COLUMNS)
            return hr_fail(
                r->err, HR_CORRUPT,
                "%s, line %d: unknown column \"%s\"; the columns are id,lower,upper,size and "
                "optionally offset",
                r->path, r->line, quote(name, text));
        if (r->place[c] >= 0)
            return hr_fail(r->err, HR_CORRUPT, "%s, line %d: column %s occurs twice", r->path,
                           r->line, names[c]);
        r->place[c] = r->column_count;
    }
    for (int32_t c = 0; c < OFFSET; c++)
        if (r->place[c] < 0)
            return hr_fail(r->err, HR_CORRUPT, "%s, line %d: column %s is missing from the header",
                           r->path, r->line, names[c]);
    return HR_OK;
}

static hr_status read_number(reader *r, column c, value v, int64_t *number)
{
    char text[48];
    if (v.bytes > 0 && v.bytes < (int32_t)sizeof text) {
        memcpy(text, v.text, (size_t)v.bytes);
        text[v.bytes] = 0;
        if (strlen(text) == (size_t)v.bytes && hr_integer_parse(text, number)) return HR_OK;
    }
    return hr_fail(r->err, HR_CORRUPT, "%s, line %d: %s \"%s\" is not an integer below 2^63",
                   r->path, r->line, names[c], quote(v, text));
}

static hr_status check_row(reader *r, const hr_instance_row *row)
{
    if (row->id_bytes == 0)
        return hr_fail(r->err, HR_CORRUPT, "%s, line %d: the id is empty", r->path, r->line);
    if (row->bytes < 0)
        return hr_fail(r->err, HR_CORRUPT, "%s, line %d: size %" PRId64 " is negative", r->path,
                       r->line, row->bytes);
    if (row->upper <= row->lower)
        return hr_fail(r->err, HR_CORRUPT,
                       "%s, line %d: a lifetime that starts at %" PRId64 " must end after it, not "
                       "at %" PRId64,
                       r->path, r->line, row->lower, row->upper);
    if (!hr_checked_add(r->bytes_sum, row->bytes, &r->bytes_sum))
        return hr_fail(r->err, HR_CORRUPT,
                       "%s, line %d: with size %" PRId64 " all sizes add up to 2^63 bytes or more",
                       r->path, r->line, row->bytes);
    return HR_OK;
}

static hr_status read_row(reader *r, const char *at, const char *end, hr_instance_row *row)
{
    value values[COLUMNS] = { { 0 } };
    int32_t count = 0;
    for (; at; count++) {
        const value v = next_value(&at, end);
        if (count < COLUMNS) values[count] = v;
    }
    if (count != r->column_count)
        return hr_fail(r->err, HR_CORRUPT, "%s, line %d: %d values, the header has %d columns",
                       r->path, r->line, count, r->column_count);
    const value id = values[r->place[ID]];
    *row = (hr_instance_row){ .id = (int32_t)(id.text - r->instance->text),
                              .id_bytes = id.bytes,
                              .line = r->line };
    int64_t *const numbers[COLUMNS] = {
        [LOWER] = &row->lower, [UPPER] = &row->upper, [BYTES] = &row->bytes
    };
    for (int32_t c = LOWER; c <= BYTES; c++) {
        const hr_status status = read_number(r, c, values[r->place[c]], numbers[c]);
        if (status != HR_OK) return status;
    }
    return check_row(r, row);
}

static hr_status out_of_memory(const char *path, hr_error *err)
{
    return hr_fail(err, HR_FAILURE, "%s: out of memory", path);
}

/* The row array doubles when full. A line has at least two bytes, so the file size bounds it. */
static hr_status read_rows(reader *r)
{
    hr_instance *instance = r->instance;
    const char *at, *end;
    int32_t room = 0;
    while (next_line(r, &at, &end)) {
        if (instance->count == HR_PACK_ROWS_MAX)
            return hr_fail(r->err, HR_CORRUPT, "%s, line %d: more than %d rows, the limit", r->path,
                           r->line, HR_PACK_ROWS_MAX);
        if (instance->count == room) {
            room = room ? 2 * room : 256;
            void *rows = realloc(instance->rows, (size_t)room * sizeof *instance->rows);
            if (!rows) return out_of_memory(r->path, r->err);
            instance->rows = rows;
        }
        const hr_status status = read_row(r, at, end, &instance->rows[instance->count]);
        if (status != HR_OK) return status;
        instance->count++;
    }
    return HR_OK;
}

static uint64_t hash_id(const char *text, int32_t bytes)
{
    uint64_t hash = (uint64_t)bytes;
    for (int32_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, text + i, (size_t)hr_min(8, bytes - i));
        hash = hr_random_mix(hash ^ word) + UINT64_C(0x9e3779b97f4a7c15);
    }
    return hash;
}

/* Finds duplicate ids with a hash table that is at most half full. */
static hr_status check_ids(const char *path, const hr_instance *instance, hr_error *err)
{
    int64_t slots = 2;
    while (slots < 2 * (int64_t)instance->count) slots *= 2;
    int32_t *table = malloc((size_t)slots * sizeof *table);
    if (!table) return out_of_memory(path, err);
    memset(table, -1, (size_t)slots * sizeof *table);
    hr_status status = HR_OK;
    for (int32_t i = 0; i < instance->count && status == HR_OK; i++) {
        const hr_instance_row *row = &instance->rows[i];
        const char *id = instance->text + row->id;
        int64_t slot = (int64_t)(hash_id(id, row->id_bytes) & (uint64_t)(slots - 1));
        for (; table[slot] >= 0; slot = (slot + 1) & (slots - 1)) {
            const hr_instance_row *other = &instance->rows[table[slot]];
            char text[48];
            if (other->id_bytes != row->id_bytes) continue;
            if (memcmp(instance->text + other->id, id, (size_t)row->id_bytes) != 0) continue;
            status = hr_fail(err, HR_CORRUPT, "%s, line %d: id \"%s\" is already used in line %d",
                             path, row->line, quote((value){ id, row->id_bytes }, text),
                             other->line);
            break;
        }
        table[slot] = i;
    }
    free(table);
    return status;
}

static hr_status load(const char *path, hr_instance *instance, int64_t *bytes, hr_error *err)
{
    int file;
    hr_status status = hr_file_open(path, &file, bytes, err);
    if (status != HR_OK) return status;
    if (*bytes > HR_INSTANCE_BYTES_MAX)
        status = hr_fail(err, HR_CORRUPT,
                         "%s: has %" PRId64 " bytes, more than the %d that are read", path, *bytes,
                         HR_INSTANCE_BYTES_MAX);
    if (status == HR_OK) instance->text = malloc((size_t)*bytes + 1);
    if (status == HR_OK && !instance->text) status = out_of_memory(path, err);
    if (status == HR_OK) status = hr_file_read(file, path, 0, instance->text, *bytes, err);
    hr_file_close(&file);
    return status;
}

hr_status hr_instance_read(const char *path, hr_instance *instance, hr_error *err)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    int64_t bytes = 0;
    *instance = (hr_instance){ 0 };
    hr_status status = load(path, instance, &bytes, err);
    if (status != HR_OK) return status;
    reader r = { .path = path, .instance = instance, .at = instance->text, .err = err };
    r.end = r.at + bytes;
    if (bytes >= 3 && memcmp(r.at, byte_order_mark, 3) == 0) r.at += 3;
    status = read_header(&r);
    if (status == HR_OK) status = read_rows(&r);
    if (status == HR_OK) status = check_ids(path, instance, err);
    return status;
}

typedef struct {
    hr_file_out file;
    char held[1 << 14];
    int32_t held_bytes;
} writer;

static hr_status put(writer *w, const char *text, int32_t bytes, hr_error *err)
{
    hr_status status = HR_OK;
    if (bytes > (int32_t)sizeof w->held - w->held_bytes) {
        status = hr_file_append(&w->file, w->held, w->held_bytes, err);
        w->held_bytes = 0;
    }
    if (status == HR_OK && bytes > (int32_t)sizeof w->held)
        return hr_file_append(&w->file, text, bytes, err);
    if (status != HR_OK) return status;
    memcpy(w->held + w->held_bytes, text, (size_t)bytes);
    w->held_bytes += bytes;
    return HR_OK;
}

static const char header[] = "id,lower,upper,size,offset\n";

static hr_status write_rows(writer *w, const hr_instance *instance, hr_error *err)
{
    hr_status status = put(w, header, sizeof header - 1, err);
    for (int32_t i = 0; i < instance->count && status == HR_OK; i++) {
        const hr_instance_row *row = &instance->rows[i];
        char numbers[96];
        const int32_t bytes = snprintf(numbers, sizeof numbers,
                                       ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n",
                                       row->lower, row->upper, row->bytes, row->offset);
        status = put(w, instance->text + row->id, row->id_bytes, err);
        if (status == HR_OK) status = put(w, numbers, bytes, err);
    }
    return status == HR_OK ? hr_file_append(&w->file, w->held, w->held_bytes, err) : status;
}

hr_status hr_instance_check(const char *path, hr_error *err)
{
    return hr_file_check_kind(path, header, "file of rows with offsets", err);
}

hr_status hr_instance_write(const char *path, const hr_instance *instance, hr_error *err)
{
    writer w = { .held_bytes = 0 };
    hr_status status = hr_file_begin_path(&w.file, path, err);
    if (status != HR_OK) return status;
    status = write_rows(&w, instance, err);
    if (status == HR_OK) return hr_file_commit(&w.file, err);
    hr_file_abort(&w.file);
    return status;
}

void hr_instance_close(hr_instance *instance)
{
    free(instance->text);
    free(instance->rows);
    *instance = (hr_instance){ 0 };
}
