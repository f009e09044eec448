/* SPDX-License-Identifier: Apache-2.0 */
/* model/module_names.c - tries the forms of a word in turn. */
#include "model/module_names.h"

#include <fnmatch.h>
#include <string.h>

#include "base/regex.h"
#include "base/words.h"
#include "graph/program.h"

static bool is_regex(const char *word, size_t length)
{
    return length > 2 && word[0] == '/' && word[length - 1] == '/';
}

bool hr_module_is_named(const char *word, int16_t layer, const char *module)
{
    const size_t length = strlen(module), part = strlen(word);
    if (!strcmp(word, HR_ALL_LINEAR)) return layer != HR_NONE;
    if (is_regex(word, part)) return hr_regex_matches(word + 1, (int)part - 2, module);
    if (fnmatch(word, module, 0) == 0) return true;
    return part < length && module[length - part - 1] == '.' &&
           !strcmp(module + length - part, word);
}

hr_status hr_module_word_check(const char *key, const char *word, hr_error *err)
{
    const size_t length = strlen(word), most = *word == '/' ? HR_WORD_BYTES - 2 : HR_PATTERN_MOST;
    if (length > most)
        return hr_fail(err, HR_USAGE, "%s: a word has more than %d characters: %.20s...", key,
                       (int)most, word);
    if (word[0] != '/' || (is_regex(word, length) && hr_regex_is_valid(word + 1, (int)length - 2)))
        return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "%s: %s is not a regular expression between slashes, or has a part that is not "
                   "read",
                   key, word);
}
