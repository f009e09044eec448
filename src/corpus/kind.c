/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/kind.c - matches file name extensions, the last one first. */
#include "corpus/kind.h"

#include <string.h>
#include <strings.h>

/* Removes the extension if the name has it. */
static bool remove_extension(const char *name, int64_t *bytes, const char *extension)
{
    const int64_t length = (int64_t)strlen(extension);
    if (*bytes <= length || strncasecmp(name + *bytes - length, extension, (size_t)length) != 0)
        return false;
    *bytes -= length;
    return true;
}

hr_file_sort hr_file_sort_of(const char *name, int64_t bytes)
{
    static const struct {
        const char *extension;
        hr_file_kind kind;
    } endings[] = { { ".txt", HR_FILE_TEXT },     { ".jsonl", HR_FILE_LINES },
                    { ".ndjson", HR_FILE_LINES }, { ".json", HR_FILE_LINES },
                    { ".bin", HR_FILE_TOKENS },   { ".parquet", HR_FILE_TABLE },
                    { ".arrow", HR_FILE_TABLE },  { ".safetensors", HR_FILE_ROWS } };
    hr_file_sort sort = { HR_FILE_TEXT, HR_FILE_PLAIN, false };
    if (remove_extension(name, &bytes, ".gz")) sort.packing = HR_FILE_GZIP;
    else if (remove_extension(name, &bytes, ".zst")) sort.packing = HR_FILE_ZSTD;
    for (int32_t i = 0; i < (int32_t)(sizeof endings / sizeof *endings); i++) {
        if (!remove_extension(name, &bytes, endings[i].extension)) continue;
        sort.kind = endings[i].kind;
        sort.known = sort.kind == HR_FILE_TEXT || sort.kind == HR_FILE_LINES;
        break;
    }
    return sort;
}
