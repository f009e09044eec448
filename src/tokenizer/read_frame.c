/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/read_frame.c - checks that a tokenizer.json is valid JSON around its two large members,
 * vocabulary and merges, which are checked when they are read. */
#include <string.h>

#include "base/json.h"
#include "tokenizer/reading.h"

/* The JSON file without its two large members, vocabulary and merges, each replaced by a number.
 * The members are checked when they are read; the frame is checked on its own. */
typedef struct {
    const hr_json_index_member *left_out[2]; /* in file order; null: none */
    char *text;
    int64_t bytes;
} frame;

static void find_long(const hr_json_index *outline, frame *f)
{
    const hr_json_index_member *vocab = hr_json_index_model(outline, "vocab");
    const hr_json_index_member *merges = hr_json_index_model(outline, "merges");
    const bool merges_first = vocab && merges && merges->at < vocab->at;
    f->left_out[0] = merges_first || !vocab ? merges : vocab;
    f->left_out[1] = !vocab || !merges ? NULL : merges_first ? vocab : merges;
    f->bytes = outline->bytes;
    for (int32_t i = 0; i < 2; i++)
        if (f->left_out[i]) f->bytes -= f->left_out[i]->bytes - 1;
}

static void fill_frame(const char *file, frame *f)
{
    int64_t from = 0, to = 0;
    for (int32_t i = 0; i < 2 && f->left_out[i]; i++) {
        const int64_t bytes = f->left_out[i]->at - from;
        memcpy(f->text + to, file + from, (size_t)bytes);
        f->text[to + bytes] = '0';
        from = f->left_out[i]->at + f->left_out[i]->bytes;
        to += bytes + 1;
    }
    memcpy(f->text + to, file + from, (size_t)(f->bytes - to));
}

/* The offset in the file of an offset in the frame. */
static int64_t place_in_file(const frame *f, int64_t at)
{
    for (int32_t i = 0; i < 2 && f->left_out[i] && at > f->left_out[i]->at; i++)
        at += f->left_out[i]->bytes - 1;
    return at;
}

hr_status hr_read_check_json(const hr_tokenizer_source *source, const char *text, hr_region scratch,
                             hr_error *err)
{
    frame f;
    find_long(&source->outline, &f);
    f.text = hr_region_take_raw(&scratch, f.bytes, 1);
    if (!f.text) return hr_fail(err, HR_NO_FIT, "tokenizer tables: the region is too small");
    fill_frame(text, &f);
    hr_json json = hr_json_over_file(f.text, f.bytes);
    hr_json_kind kind = hr_json_next(&json);
    while (kind != HR_JSON_WRONG && kind != HR_JSON_END) kind = hr_json_next(&json);
    if (kind == HR_JSON_WRONG)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "invalid JSON at byte %lld: %s", source->path,
                       (long long)place_in_file(&f, json.at), json.problem);
    return HR_OK;
}
