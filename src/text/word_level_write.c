/* SPDX-License-Identifier: Apache-2.0 */
/* text/word_level_write.c - writes a vocabulary of words into the template. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "text/word_level.h"
#include "text/word_level_file.h"

static hr_status put(hr_file_out *out, const char *text, int64_t bytes, hr_error *err)
{
    return hr_file_append(out, text, bytes, err);
}

/* Writes one entry: "word": id, */
static hr_status put_word(hr_file_out *out, const char *word, int64_t bytes, int64_t id,
                          hr_error *err)
{
    char text[4096], number[32];
    hr_status status = put(out, id ? ",\n\"" : "\n\"", id ? 3 : 2, err);
    for (int64_t done = 0, taken = 0; done < bytes && status == HR_OK; done += taken) {
        const int64_t length = hr_json_escape(text, sizeof text, word + done, bytes - done, &taken);
        status = put(out, text, length, err);
    }
    const int length = snprintf(number, sizeof number, "\":%lld", (long long)id);
    return status == HR_OK ? put(out, number, length, err) : status;
}

hr_status hr_word_level_write(hr_vocabulary *vocabulary, const char *folder, hr_error *err)
{
    static const char before[] =
        "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],\n"
        "\"normalizer\":" HR_WORD_LEVEL_NORMALIZER
        ",\n\"pre_tokenizer\":" HR_WORD_LEVEL_PRE_TOKENIZER ",\n"
        "\"post_processor\":null,\"decoder\":null,\n\"model\":{\"type\":\"WordLevel\",\"vocab\":{";
    static const char behind[] = "},\n\"unk_token\":\"<UNK>\"}}\n";
    const int64_t used = hr_vocabulary_view(vocabulary)->used;
    hr_file_out out;
    hr_status status = hr_file_begin(&out, folder, "tokenizer.json", err);
    if (status != HR_OK) return status;
    status = put(&out, before, sizeof before - 1, err);
    for (int64_t id = 0; id < used && status == HR_OK; id++) {
        const char *word = id < HR_WORDS_SPECIAL ? hr_word_level_specials[id] : NULL;
        int64_t bytes = word ? (int64_t)strlen(word) : 0;
        if (!word) status = hr_vocabulary_word(vocabulary, id, &word, &bytes, err);
        if (status == HR_OK) status = put_word(&out, word, bytes, id, err);
    }
    if (status == HR_OK) status = put(&out, behind, sizeof behind - 1, err);
    if (status == HR_OK) return hr_file_commit(&out, err);
    hr_file_abort(&out);
    return status;
}
