/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a line of JSON Lines: both JSON parsers agree on its validity, and the texts
 * do not depend on how the line is split. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "corpus/lines.h"

enum { MOST = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

typedef struct {
    uint8_t text[HR_LINE_FIELDS][MOST];
    int64_t bytes[HR_LINE_FIELDS];
    uint32_t found;
    const char *problem;
} fields;

static const char *const names[HR_LINE_FIELDS] = { "text", "prompt", "completion" };

static void keep(fields *f, const hr_line *line)
{
    for (int32_t i = 0; i < line->span_count; i++) {
        const hr_line_span *span = &line->spans[i];
        if (span->bytes < 0 || span->bytes > MOST - f->bytes[span->field]) __builtin_trap();
        if (span->begins && f->bytes[span->field]) __builtin_trap();
        memcpy(f->text[span->field] + f->bytes[span->field], span->text, (size_t)span->bytes);
        f->bytes[span->field] += span->bytes;
    }
}

/* Each part is in its own allocation, so reads past its end are detected. */
static void read_in_parts(const uint8_t *content, int64_t bytes, int64_t part, bool stops,
                          fields *f)
{
    hr_line line;
    int64_t at = 0, fill = 0;
    memset(f, 0, sizeof *f);
    hr_line_begin(&line, names);
    do {
        fill = fill + part < bytes - at ? fill + part : bytes - at;
        const bool last = at + fill == bytes;
        int64_t used = 0, here = 1;
        uint8_t *copy = malloc((size_t)fill + 1);
        uint8_t *exact = copy + 1; /* writes in front of it are detected */
        memcpy(exact, content + at, (size_t)fill);
        while (here > 0 && (used == 0 || (last && used < fill))) {
            here = hr_line_read(&line, exact + used, fill - used, last, stops);
            if (here < 0 || here > fill - used) __builtin_trap();
            keep(f, &line);
            used += here;
        }
        free(copy);
        at += used;
        fill -= used;
        if (!last && fill > HR_LINE_AHEAD && !stops && !line.problem) __builtin_trap();
        if (last) break;
    } while (!line.problem);
    hr_line_is_whole(&line);
    f->found = line.found;
    f->problem = line.problem;
}

/* -1: undecided. */
static int judge(const uint8_t *content, int64_t bytes)
{
    static char copy[MOST];
    memcpy(copy, content, (size_t)bytes);
    for (int64_t i = 0; i + 6 <= bytes; i++)
        if (!memcmp(content + i, "\\u0000", 6)) return -1;
    hr_json json = hr_json_over(copy, bytes);
    hr_json_kind kind = hr_json_next(&json);
    uint32_t found = 0;
    if (kind != HR_JSON_OBJECT) return 0;
    while ((kind = hr_json_next(&json)) == HR_JSON_KEY) {
        int32_t field = -1;
        for (int32_t i = 0; i < HR_LINE_FIELDS; i++)
            if (hr_json_is(&json, names[i])) field = i;
        kind = hr_json_next(&json);
        if (field >= 0 && (kind != HR_JSON_STRING || found >> field & 1)) return 0;
        if (field >= 0) found |= UINT32_C(1) << field;
        else if (!hr_json_skip(&json, kind)) break;
    }
    if (json.problem && strstr(json.problem, "32 deep")) return -1;
    return kind == HR_JSON_CLOSE && hr_json_next(&json) == HR_JSON_END;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static fields whole, parts;
    if (count > MOST - 64) return 0;
    read_in_parts(bytes, (int64_t)count, (int64_t)count + 1, false, &whole);
    const int other = judge(bytes, (int64_t)count);
    if (other >= 0 && other != !whole.problem) __builtin_trap();
    for (int64_t part = 1; part < 40; part += 1 + part / 3) {
        read_in_parts(bytes, (int64_t)count, part, part & 1, &parts);
        if (parts.problem != whole.problem) __builtin_trap();
        if (!whole.problem && memcmp(&parts, &whole, sizeof whole) != 0) __builtin_trap();
    }
    return 0;
}
