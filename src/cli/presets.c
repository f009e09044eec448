/* SPDX-License-Identifier: Apache-2.0 */
/* cli/presets.c - the recipes of presets/, which are part of the program.
 *
 * The first paragraph of a preset's comment says what it is, with its number of parameters. */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { NAMED_MOST = 3, ABOUT_BYTES = 1024 };

const hr_cli_preset *hr_cli_preset_find(const char *name)
{
    for (const hr_cli_preset *preset = hr_cli_preset_rows; preset->name; preset++)
        if (!strcmp(preset->name, name)) return preset;
    return NULL;
}

/* ---- reading */

/* What people call a preset by: the method, the data or the card of its document. */
static const struct {
    const char *word, *preset;
} other_names[] = {
    { "npt", "npt-llama-3.1-8b" },
    { "neuro-plastic", "npt-llama-3.1-8b" },
    { "nsa", "long-4b-131k" },
    { "native-sparse-attention", "long-4b-131k" },
    { "ultra-conservative", "neurogen-ultra" },
    { "conservative", "neurogen-ultra" },
    { "wikitext", "needle-70m" },
    { "wikitext-2", "needle-70m" },
    { "slimpajama", "neurogen-balanced" },
    { "gtx-1650", "neurogen-balanced" },
    { "superbpe", "yxanul-197m" },
    { "curriculum", "yxanul-197m" },
};

/* Copies a name in lower case, words joined by "-"; or without what joins them. */
static void copy_word(const char *name, bool joined, char word[HR_WORD_LETTERS_MAX + 1])
{
    int32_t length = 0;
    for (; *name && length < HR_WORD_LETTERS_MAX; name++) {
        const bool joins = strchr("_- .", *name);
        if (joins && joined) continue;
        word[length++] = (char)(*name == '_' || *name == ' ' ? '-' : tolower((unsigned char)*name));
    }
    word[length] = 0;
}

/* The cost of a preset's name for a word: as it is written, or without dashes and points. */
static int32_t cost_of(const char *word, const char *preset)
{
    char given[HR_WORD_LETTERS_MAX + 1], known[HR_WORD_LETTERS_MAX + 1];
    const int32_t cost = hr_word_cost(word, preset);
    copy_word(word, true, given);
    copy_word(preset, true, known);
    const int32_t joined = hr_word_cost(given, known);
    return cost < joined ? cost : joined;
}

/* The last component of a path, or the last two, which a preset in a folder has. */
static void word_of(const char *path, bool folder, char word[HR_WORD_LETTERS_MAX + 1])
{
    const char *slash = strrchr(path, '/');
    while (folder && slash && slash > path && slash[-1] != '/') slash--;
    copy_word(!slash ? path : *slash == '/' ? slash + 1 : slash, false, word);
    char *ending = strstr(word, ".yaml");
    if (ending) *ending = 0;
}

/* Writes the names of the presets most similar to the file's name: "; the nearest preset is
 * pythia-70m". */
static void name_similar(const char *path, char *text, size_t bytes)
{
    char word[HR_WORD_LETTERS_MAX + 1], in_folder[HR_WORD_LETTERS_MAX + 1];
    const char *names[NAMED_MOST];
    int32_t costs[NAMED_MOST], count = 0;
    word_of(path, false, word);
    word_of(path, true, in_folder);
    for (const hr_cli_preset *preset = hr_cli_preset_rows; preset->name; preset++) {
        const bool nested = strchr(preset->name, '/');
        if (nested && !strchr(in_folder, '/')) continue;
        const int32_t cost = cost_of(nested ? in_folder : word, preset->name);
        int32_t at = count;
        if (cost == INT32_MAX) continue;
        while (at > 0 && costs[at - 1] > cost) at--;
        if (at == NAMED_MOST) continue;
        const int32_t moved = (count < NAMED_MOST ? count : NAMED_MOST - 1) - at;
        memmove(names + at + 1, names + at, (size_t)moved * sizeof *names);
        memmove(costs + at + 1, costs + at, (size_t)moved * sizeof *costs);
        names[at] = preset->name;
        costs[at] = cost;
        count += count < NAMED_MOST;
    }
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (!strcmp(word, other_names[i].word)) names[0] = other_names[i].preset, count = 1;
    *text = 0;
    /* one may be more similar than all others, by more than the length of its name */
    if (count > 1 && costs[0] / (HR_WORD_LETTERS_MAX + 1) < costs[1] / (HR_WORD_LETTERS_MAX + 1))
        count = 1;
    for (int32_t i = 0; i < count; i++) {
        const size_t used = strlen(text);
        const char *first = count > 1 ? "; the nearest presets are " : "; the nearest preset is ";
        snprintf(text + used, bytes - used, "%s%s", i ? ", " : first, names[i]);
    }
}

hr_status hr_cli_read_recipe(hr_config *config, const char *name, hr_error *err)
{
    char similar[200], shown[96];
    const hr_cli_preset *preset = hr_cli_preset_find(name);
    if (preset) {
        snprintf(shown, sizeof shown, "preset %s", name);
        return hr_config_read_text(config, preset->text, shown, err);
    }
    if (access(name, F_OK) == 0 || errno != ENOENT) return hr_config_read(config, name, err);
    name_similar(name, similar, sizeof similar);
    if (!*similar) return hr_config_read(config, name, err);
    return hr_fail(err, HR_USAGE, "recipe %.200s: no such file%s (headroom presets lists all)",
                   name, similar);
}

/* ---- listing */

/* The first paragraph of the comment, on one line. */
static void copy_about(const hr_cli_preset *preset, char text[ABOUT_BYTES])
{
    size_t used = 0;
    for (const char *line = preset->text; !strncmp(line, "# ", 2);) {
        const size_t length = strcspn(line, "\n");
        used += (size_t)snprintf(text + used, ABOUT_BYTES - used, "%s%.*s", used ? " " : "",
                                 (int)length - 2, line + 2);
        if (used >= ABOUT_BYTES) break;
        line += length + (line[length] == '\n');
    }
}

/* The first number of the comment that counts parameters; 0: none. */
static long long parameters_of(const char *about)
{
    const char *end = strstr(about, " parameters");
    long long count = 0, unit = 1;
    for (; end && end > about && strchr("0123456789,", end[-1]); end--) {
        if (end[-1] == ',') continue;
        count += (end[-1] - '0') * unit;
        unit *= 10;
    }
    return count;
}

/* Cuts the text after its first sentence. */
static void keep_sentence(char *text)
{
    for (char *at = strchr(text, '.'); at; at = strchr(at + 1, '.'))
        if (at[1] == ' ') {
            *at = 0;
            return;
        }
    const size_t length = strlen(text);
    if (length && text[length - 1] == '.') text[length - 1] = 0;
}

static void print_list(void)
{
    enum { COLUMNS = 35 };
    for (const hr_cli_preset *preset = hr_cli_preset_rows; preset->name; preset++) {
        char about[ABOUT_BYTES], left[64];
        copy_about(preset, about);
        const long long count = parameters_of(about);
        keep_sentence(about);
        snprintf(left, sizeof left, "%-20s %14s", preset->name, count ? hr_cli_count(count) : "");
        hr_cli_print_row(left, COLUMNS, about);
    }
    printf("\nThe number is that of the parameters. headroom plan NAME plans a preset, headroom "
           "presets NAME\nprints its recipe, to edit.\n");
}

static json_t *json_of(const hr_cli_preset *preset)
{
    char about[ABOUT_BYTES];
    copy_about(preset, about);
    return json_pack("{s:s, s:I, s:s, s:s}", "name", preset->name, "parameters",
                     (json_int_t)parameters_of(about), "about", about, "recipe", preset->text);
}

static int print_json(void)
{
    json_t *list = json_array();
    for (const hr_cli_preset *preset = hr_cli_preset_rows; preset->name; preset++)
        json_array_append_new(list, json_of(preset));
    return hr_cli_print_json(list, 0);
}

int hr_cli_presets(const hr_cli_arguments *arguments)
{
    hr_error err;
    char similar[200];
    const char *name = arguments->operand_count ? arguments->operands[0] : NULL;
    if (!name && arguments->values[HR_OPTION_JSON]) return print_json();
    if (!name) {
        print_list();
        return HR_OK;
    }
    const hr_cli_preset *preset = hr_cli_preset_find(name);
    if (preset && arguments->values[HR_OPTION_JSON]) return hr_cli_print_json(json_of(preset), 0);
    if (preset) {
        printf("%s", preset->text);
        return HR_OK;
    }
    name_similar(name, similar, sizeof similar);
    (void)hr_fail(&err, HR_USAGE, "\"%.60s\" is not a preset%s (headroom presets lists all)", name,
                  similar);
    return hr_cli_fail(&err);
}
