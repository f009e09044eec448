/* SPDX-License-Identifier: Apache-2.0 */
/* audit/markdown_header.c - units in the header of a table, "Memory (GB)" and "Params (M)", and the
 * rows below: their numbers have the unit of their column. */
#define _GNU_SOURCE /* strcasestr */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "audit/markdown.h"

enum { WORD_BYTES = 24 };

/* A word of a header, and what stands around it. */
typedef struct {
    char text[WORD_BYTES];
    bool alone; /* "(M)", "[in M]": all that is in its brackets */
    bool rate;  /* "GB/s", "GB per second" */
} header_word;

/* The words of brackets before a unit: "(in GB)". */
static int32_t begin_of_group(const char *header, int32_t at)
{
    while (at > 0 && header[at - 1] == ' ') at--;
    if (at > 2 && !strncasecmp(header + at - 2, "in", 2) && strchr(" ([", header[at - 3])) at -= 2;
    while (at > 0 && header[at - 1] == ' ') at--;
    return at;
}

/* Reads the word at `at`. Returns the byte behind it. */
static int32_t read_word(const char *header, int32_t at, header_word *word)
{
    static const char *const seconds[] = { "/s", "/ s", "ps", " per s", "-" };
    int32_t end = at;
    while (isalnum((unsigned char)header[end])) end++;
    snprintf(word->text, sizeof word->text, "%.*s", (int)(end - at), header + at);
    const int32_t begin = begin_of_group(header, at);
    const char *behind = header + end + strspn(header + end, " ");
    word->alone = begin > 0 && strchr("([", header[begin - 1]) && *behind && strchr(")]", *behind);
    word->rate = false;
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
        word->rate |= !strncasecmp(header + end, seconds[i], strlen(seconds[i]));
    return end;
}

/* "GB" or "gb", and no "Gb". */
static bool is_bytes(const char *word, hr_stated *unit)
{
    static const char *const names[] = { "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB" };
    char text[WORD_BYTES + 2];
    bool lower = true;
    for (const char *c = word; *c; c++) lower &= islower((unsigned char)*c) != 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], word) != 0 && !(lower && !strcasecmp(names[i], word))) continue;
        snprintf(text, sizeof text, "1 %s", names[i]);
        return hr_stated_scan(text, (int64_t)strlen(text), unit) > 0 && unit->power > 0;
    }
    return false;
}

/* "(M)" and "(millions)" of what is counted. "(B)" of a batch and "(T)" of a length are symbols. */
static bool is_count(const char *header, const header_word *word, hr_stated *unit)
{
    static const struct {
        const char *name, *number;
    } words[] = { { "million", "1M" },  { "millions", "1M" }, { "billion", "1B" },
                  { "billions", "1B" }, { "thousand", "1K" }, { "thousands", "1K" } };
    char text[WORD_BYTES + 1] = "";
    const bool letter = word->alone && word->text[0] && !word->text[1] &&
                        strchr("kKMB", word->text[0]);
    if (!strcasestr(header, "param") && !strcasestr(header, "token")) return false;
    if (letter) snprintf(text, sizeof text, "1%s", word->text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(words[i].name, word->text))
            snprintf(text, sizeof text, "%s", words[i].number);
    return *text && hr_stated_scan(text, (int64_t)strlen(text), unit) > 0;
}

void hr_prose_read_unit(const char *header, hr_stated *unit)
{
    hr_stated found = { .scale = 1 }, one;
    int32_t units = 0;
    for (int32_t at = 0; header[at];) {
        header_word word;
        if (!isalnum((unsigned char)header[at])) {
            at++;
            continue;
        }
        at = read_word(header, at, &word);
        if (!is_bytes(word.text, &one) && !is_count(header, &word, &one)) continue;
        if (units && !strcmp(one.unit, found.unit)) continue;
        units++;
        found = one;
        if (word.rate) units = 2;
    }
    *unit = units == 1 ? found : (hr_stated){ .scale = 1 };
}

bool hr_prose_apply_unit(hr_prose_line *line, int32_t first, int32_t last, const hr_stated *unit)
{
    hr_prose_token *only = NULL;
    int32_t numbers = 0;
    for (int32_t i = first; i < last; i++) {
        if (line->tokens[i].kind != HR_PROSE_NUMBER) continue;
        numbers++;
        only = hr_prose_is_unclear(line, i) ? NULL : &line->tokens[i];
    }
    if (numbers != 1 || !only || *only->number.unit || only->number.percent) return numbers > 0;
    hr_stated *n = &only->number;
    n->value *= unit->scale;
    n->step *= unit->scale;
    n->scale = unit->scale;
    n->power = unit->power;
    n->binary = unit->binary;
    n->dimension = unit->dimension;
    memcpy(n->unit, unit->unit, sizeof n->unit);
    only->of_column = true;
    if (!hr_stated_in_range(n)) only->kind = HR_PROSE_WORD;
    return true;
}

/* ---- columns of parameters and of their size */

static bool has_any(const char *header, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(header, words[i])) return true;
    return false;
}

bool hr_prose_counts_parameters(const char *header)
{
    static const char *const parts[] = { "active", "train", "lora",  "adapter", "frozen",
                                         "per",    "/",     "ratio", "%",       "embed" };
    return strstr(header, "param") && !strstr(header, "bytes") &&
           !has_any(header, parts, sizeof parts / sizeof *parts);
}

bool hr_prose_sizes_weights(const char *header)
{
    static const char *const others[] = {
        "grad",  "optim", "adam", "moment", "state",  "train",      "cache", "kv",
        "activ", "total", "peak", "with",   "master", "buffer",     "over",  "/",
        "ratio", " per ", "lora", "reduc",  "save",   "checkpoint",
    };
    static const char *const weights[] = { "weight", "param", "model size" };
    return has_any(header, weights, sizeof weights / sizeof *weights) &&
           !has_any(header, others, sizeof others / sizeof *others);
}

int32_t hr_prose_weights_row(const hr_prose_line *line, const hr_prose_token *count,
                             const hr_prose_token *size, double element, hr_audit_report *report)
{
    static const double sizes[] = { 4, 2, 1 };
    char formula[HR_AUDIT_LINE_BYTES];
    const double slack = hr_prose_slack(&count->number);
    double bytes = element;
    if (!size->number.power || count->number.dimension != HR_AUDIT_PLAIN || count->number.percent)
        return 0;
    for (int32_t i = 0; bytes == 0 && i < 3; i++)
        if (hr_prose_is_true(&size->number, count->number.value * sizes[i], slack))
            bytes = sizes[i];
    if (bytes == 0) return 0;
    snprintf(formula, sizeof formula, "%.*s%s parameters x %.0f bytes", (int)count->length,
             line->text + count->at, count->of_column ? count->number.unit : "", bytes);
    hr_prose_judge(line, size, hr_quantity_of_real(count->number.value * bytes, HR_AUDIT_BYTES),
                   slack, formula, report);
    return 1;
}
