/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/named.c - the table of named corpora. */
#include "corpus/named.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

enum { FILES = 3, FOUND_BYTES = 4096 };

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

static const corpus *find(const char *name, int64_t bytes)
{
    for (size_t i = 0; i < sizeof corpora / sizeof *corpora; i++)
        if ((int64_t)strlen(corpora[i].name) == bytes &&
            !memcmp(corpora[i].name, name, (size_t)bytes))
            return &corpora[i];
    return NULL;
}

bool hr_named_find(const char *name, bool validation, const char *const *folders, int32_t count,
                   char *path, int64_t bytes)
{
    const corpus *named = find(name, (int64_t)strlen(name));
    if (!named) return false;
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

hr_status hr_named_check(const char *name, int64_t bytes, hr_error *err)
{
    const corpus *named = find(name, bytes);
    if (!named) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "%s is in none of data/%s, $HEADROOM_DATA/%s and ~/.cache/headroom/data/%s; %s "
                   "has it: mkdir -p data/%s && pip install datasets && python3 -c \"from datasets "
                   "import load_dataset as d; [open('data/%s/'+t+'.txt', 'w').write(''.join(d("
                   "'Salesforce/wikitext', '%s', split=s)['text'])) for t, s in (('train', "
                   "'train'), ('valid', 'validation'))]\"",
                   named->name, named->name, named->name, named->name, named->source, named->name,
                   named->name, named->dataset);
}
