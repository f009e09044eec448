/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/named.c - the tables of named corpora: those whose files are found by name, and those of
 * which only the origin is known.
 *
 * Names are compared without case, dashes, underscores and blanks, and without the owner before a
 * slash: Salesforce/WikiText-2 is wikitext-2. */
#include "corpus/named.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

enum { FILES = 3, FOUND_BYTES = 4096, WORD_BYTES = 48 };

typedef struct {
    const char *name;
    const char *train[FILES], *valid[FILES]; /* file names, the first one that exists is used */
    const char *source, *dataset;            /* where it is published; its configuration there */
} corpus;

static const corpus corpora[] = {
    { "wikitext-2",
      { "train.txt", "wiki.train.tokens" },
      { "valid.txt", "wiki.valid.tokens" },
      "https://huggingface.co/datasets/Salesforce/wikitext",
      "wikitext-2-v1" },
    { "wikitext-103",
      { "train.txt", "wiki.train.tokens" },
      { "valid.txt", "wiki.valid.tokens" },
      "https://huggingface.co/datasets/Salesforce/wikitext",
      "wikitext-103-v1" },
};

/* Corpora that are too large to fetch whole, or are one small file. */
typedef struct {
    const char *words;           /* names as they are compared, separated by blanks */
    const char *dataset, *setup; /* on Hugging Face; its configuration, or empty */
} origin;

static const origin origins[] = {
    { "slimpajama slimpajama627b", "cerebras/SlimPajama-627B", "" },
    { "slimpajama6b", "DKYoon/SlimPajama-6B", "" },
    { "finewebedu", "HuggingFaceFW/fineweb-edu", "sample-10BT" },
    { "fineweb", "HuggingFaceFW/fineweb", "sample-10BT" },
    { "openwebtext owt", "Skylion007/openwebtext", "" },
    { "c4 allenaic4", "allenai/c4", "en" },
    { "tinystories", "roneneldan/TinyStories", "" },
    { "pile thepile pileuncopyrighted", "monology/pile-uncopyrighted", "" },
};

/* Copies a name in the form in which names are compared. Returns false if it is longer than any. */
static bool copy_word(const char *name, int64_t bytes, char word[WORD_BYTES])
{
    int64_t first = bytes, length = 0;
    while (first && name[first - 1] != '/') first--;
    for (int64_t i = first; i < bytes; i++) {
        if (strchr("-_ ", name[i])) continue;
        if (length == WORD_BYTES - 1) return false;
        word[length++] = (char)tolower((unsigned char)name[i]);
    }
    word[length] = 0;
    return length > 0;
}

static const corpus *find(const char *name, int64_t bytes)
{
    char word[WORD_BYTES], known[WORD_BYTES];
    if (!copy_word(name, bytes, word)) return NULL;
    for (size_t i = 0; i < sizeof corpora / sizeof *corpora; i++) {
        const int64_t known_bytes = (int64_t)strlen(corpora[i].name);
        if (copy_word(corpora[i].name, known_bytes, known) && !strcmp(word, known))
            return &corpora[i];
    }
    return NULL;
}

/* Whether a word is one of some that are separated by blanks. */
static bool is_among(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; *at; at += strspn(at, " ")) {
        const size_t known = strcspn(at, " ");
        if (known == length && !memcmp(at, word, length)) return true;
        at += known;
    }
    return false;
}

static const origin *find_origin(const char *name, int64_t bytes)
{
    char word[WORD_BYTES];
    if (!copy_word(name, bytes, word)) return NULL;
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++)
        if (is_among(origins[i].words, word)) return &origins[i];
    return NULL;
}

/* Whether the name is spelled as in the table; another spelling may be that of a file. */
static bool is_exact(const corpus *named, const char *name, int64_t bytes)
{
    return (int64_t)strlen(named->name) == bytes && !memcmp(named->name, name, (size_t)bytes);
}

static bool is_file(const char *name, int64_t bytes)
{
    char path[FOUND_BYTES];
    return snprintf(path, sizeof path, "%.*s", (int)bytes, name) < (int)sizeof path &&
           hr_file_exists(path);
}

bool hr_named_find(const char *name, bool validation, const char *const *folders, int32_t count,
                   char *path, int64_t bytes)
{
    const int64_t name_bytes = (int64_t)strlen(name);
    const corpus *named = find(name, name_bytes);
    if (!named || (!is_exact(named, name, name_bytes) && is_file(name, name_bytes))) return false;
    const char *const *files = validation ? named->valid : named->train;
    for (int32_t i = 0; i < count; i++)
        for (int32_t k = 0; k < FILES && files[k]; k++) {
            char found[FOUND_BYTES];
            const int64_t length = snprintf(found, sizeof found, "%s/%s/%s", folders[i],
                                            named->name, files[k]);
            if (length >= (int64_t)sizeof found || length >= bytes || !hr_file_exists(found))
                continue;
            memcpy(path, found, (size_t)length + 1);
            return true;
        }
    return false;
}

static hr_status fail_missing(const corpus *named, bool validation, hr_error *err)
{
    const char *const *files = validation ? named->valid : named->train, *name = named->name;
    return hr_fail(
        err, HR_USAGE,
        "%s: neither %s nor %s is in data/%s, $HEADROOM_DATA/%s or "
        "~/.cache/headroom/data/%s; %s has it: mkdir -p data/%s && pip install datasets "
        "&& python3 -c \"from datasets import load_dataset as d; "
        "[open('data/%s/'+t+'.txt', 'w').write(''.join(d('Salesforce/wikitext', '%s', "
        "split=s)['text'])) for t, s in (('train', 'train'), ('valid', 'validation'))]\"",
        validation ? "data.valid" : "data.train", files[0], files[1], name, name, name,
        named->source, name, name, named->dataset);
}

hr_status hr_named_check(const char *name, int64_t bytes, bool validation, bool alone,
                         hr_error *err)
{
    enum { SHOWN = 80 };
    const int shown = (int)(bytes < SHOWN ? bytes : SHOWN);
    const corpus *named = find(name, bytes);
    const origin *from = find_origin(name, bytes);
    const char *key = validation ? "data.valid" : "data.train";
    char word[WORD_BYTES];
    if (named ? !is_exact(named, name, bytes) && is_file(name, bytes) : is_file(name, bytes))
        return HR_OK;
    if (named && alone) return fail_missing(named, validation, err);
    if (named)
        return hr_fail(err, HR_USAGE,
                       "%s: %s is the name of a whole text; in a mixture, give its file, such as "
                       "data/%s/%s",
                       key, named->name, named->name, named->train[0]);
    if (from)
        return hr_fail(err, HR_USAGE,
                       "%s: there is no file %.*s; https://huggingface.co/datasets/%s has it, and "
                       "this writes its first 100,000 documents: pip install datasets && python3 "
                       "-c \"import json, itertools as i; from datasets import load_dataset as d; "
                       "[print(json.dumps({'text': r['text']})) for r in i.islice(d('%s'%s%s%s, "
                       "split='train', streaming=True), 100000)]\" > part.jsonl; then "
                       "%s=part.jsonl",
                       key, shown, name, from->dataset, from->dataset, *from->setup ? ", '" : "",
                       from->setup, *from->setup ? "'" : "", key);
    if (!copy_word(name, bytes, word)) return HR_OK;
    if (is_among("shakespeare tinyshakespeare shakespearechar", word))
        return hr_fail(err, HR_USAGE,
                       "%s: there is no file %.*s; curl -O "
                       "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/"
                       "tinyshakespeare/input.txt fetches it; then %s=input.txt",
                       key, shown, name, key);
    if (!strcmp(word, "wikitext"))
        return hr_fail(err, HR_USAGE,
                       "%s: there is no file %.*s; use %s=wikitext-2 or wikitext-103", key, shown,
                       name, key);
    return HR_OK;
}
