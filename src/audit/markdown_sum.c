/* SPDX-License-Identifier: Apache-2.0 */
/* audit/markdown_sum.c - a line "Total: ~3.2GB" below lines with one size each.
 *
 * "Total (FP8)" sums the lines without a dtype and those with (FP8). "Total saved" and "Total VRAM
 * of the card" are no sums. A total that does not agree is wrong only if it is clear what it sums:
 * a rule is above it, it has no dtype, all lines are equally indented, and none is a size of
 * several, such as "2 x 28 GB" or "0.5 GB per layer". */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "audit/markdown.h"

/* The last size of a line outside of parentheses; `others` out: how many sizes come before it
 * without "=" between. */
static const hr_prose_token *size_of(const hr_prose_line *line, int32_t *others)
{
    const hr_prose_token *found = NULL;
    int32_t open = 0;
    *others = 0;
    for (int32_t i = 0; i < line->token_count; i++) {
        const hr_prose_token *t = &line->tokens[i];
        const bool mark = t->kind == HR_PROSE_MARK;
        if (mark && t->mark == '(') open++;
        if (mark && t->mark == ')' && open) open--;
        if (open) continue;
        if (t->kind == HR_PROSE_EQUALS) *others = 0, found = NULL;
        if (t->kind != HR_PROSE_NUMBER || !t->number.power) continue;
        *others += found != NULL;
        found = t;
        /* "500-800 MB" */
        const bool range = i > 1 && line->tokens[i - 1].kind == HR_PROSE_MARK &&
                           line->tokens[i - 1].mark == '-' &&
                           line->tokens[i - 2].kind == HR_PROSE_NUMBER;
        *others += range || hr_prose_is_unclear(line, i);
    }
    return found;
}

/* The dtype in parentheses before the size: "FP8" of "Model (FP8): 187.3 MB". */
static void tag_of(const hr_prose_line *line, const hr_prose_token *size, char tag[24])
{
    const char *open = strchr(line->text, '('), *close = open ? strchr(open, ')') : NULL;
    *tag = 0;
    if (!close || open > line->text + size->at || close - open > 20) return;
    for (int32_t i = 0; i < line->token_count; i++) {
        const hr_prose_token *t = &line->tokens[i];
        if (line->text + t->at == open + 1 && t->at + t->length == close - line->text &&
            hr_prose_is_dtype(line, t))
            snprintf(tag, 24, "%.*s", (int)(close - open - 1), open + 1);
    }
}

static bool is_word(const hr_prose_line *line, int32_t i, const char *word)
{
    const hr_prose_token *t = &line->tokens[i];
    return i < line->token_count && t->kind == HR_PROSE_WORD &&
           t->length == (int32_t)strlen(word) &&
           !strncasecmp(line->text + t->at, word, strlen(word));
}

/* The token of the first word "Total"; -1: the line begins with something else. */
static int32_t find_total(const hr_prose_line *line)
{
    for (int32_t i = 0; i < line->token_count && i < 3; i++) {
        if (line->tokens[i].kind == HR_PROSE_WORD) return is_word(line, i, "total") ? i : -1;
        if (line->tokens[i].kind == HR_PROSE_NUMBER) return -1;
    }
    return -1;
}

/* "Total:", "Total (FP8):", "Total estimated memory: ": a sum. "Total saved" is none. */
static bool is_sum(const hr_prose_line *line, int32_t total)
{
    for (int32_t i = total + 1; i < line->token_count; i++) {
        const hr_prose_token *t = &line->tokens[i];
        if (t->kind == HR_PROSE_MARK && strchr("()", t->mark)) continue;
        if (t->kind != HR_PROSE_WORD) return true;
        if (!hr_prose_is_dtype(line, t) && !is_word(line, i, "memory") &&
            !is_word(line, i, "estimated"))
            return false;
    }
    return true;
}

/* "Optimizer: 2 x 28 GB", "(per layer): 0.5 GB", "of which logits: 1 GB": the size in the line is
 * not what it adds to a sum. */
static bool is_one_of_several(const hr_prose_line *line, const hr_prose_token *size)
{
    static const char *const words[] = { "per", "each", "including", "which" };
    bool times = false;
    for (int32_t i = 0; i < line->token_count; i++) {
        const hr_prose_token *t = &line->tokens[i];
        if (t->kind == HR_PROSE_EQUALS && t < size) times = false;
        times |= t->kind == HR_PROSE_TIMES;
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            if (is_word(line, i, words[w])) return true;
    }
    const bool each = size + 1 < line->tokens + line->token_count &&
                      size[1].kind == HR_PROSE_MARK && size[1].mark == '/';
    return times || each;
}

static bool is_rule(const char *text)
{
    /* U+2500 and similar in a row, or dashes. */
    while (*text == ' ' || *text == '-' || *text == '=' || *text == '_' ||
           (unsigned char)*text >= 0x80)
        text++;
    return !*text;
}

/* What an addend may be away from its true size: a whole number without "~" is exact. */
static double rounding_of(const hr_stated *size)
{
    const bool rounded = size->approximate || size->step < size->scale;
    return rounded ? size->step / 2 : 0;
}

/* The claim that checked an addend; null: nothing did. */
static const hr_audit_claim *checked(const hr_audit_report *report, const hr_prose_addend *addend)
{
    for (int32_t i = 0; i < report->claim_count; i++)
        if (report->claims[i].line == addend->line &&
            report->claims[i].stated_value == addend->size.value)
            return &report->claims[i];
    return NULL;
}

/* A sum is of the right values of its addends, and of those that are true as they are written.
 * If some were not checked, the most that can be said is that it does not add up: one that does is
 * left unchecked too. */
static int32_t check_total(const hr_prose_line *line, const hr_prose_token *size,
                           const hr_prose_sum *sum, hr_audit_report *report)
{
    char tag[24];
    double total = 0, right = 0, uncertain = 0;
    int32_t used = 0, known = 0;
    tag_of(line, size, tag);
    for (int32_t i = 0; i < sum->count; i++) {
        if (*tag && *sum->list[i].tag && strcasecmp(tag, sum->list[i].tag)) continue;
        const hr_audit_claim *of = checked(report, &sum->list[i]);
        total += sum->list[i].size.value;
        const bool wrong = of && of->verdict != HR_VERDICT_TRUE;
        right += wrong ? of->right_value : sum->list[i].size.value;
        known += of != NULL;
        uncertain += rounding_of(&sum->list[i].size);
        used++;
    }
    if (used < 2 || sum->broken) return 0;
    const bool agrees = fabs(size->number.value - total) <= uncertain + size->number.step / 2;
    if (!agrees && (*tag || !sum->ruled || sum->several || size->number.relation != '=')) return 0;
    if (agrees && known < used) return 0;
    char formula[HR_AUDIT_LINE_BYTES];
    snprintf(formula, sizeof formula, "the sum of %d sizes above", (int)used);
    hr_prose_judge(line, size, hr_quantity_of_real(known < used ? total : right, HR_AUDIT_BYTES),
                   total > 0 && right == total ? uncertain / total : 0, formula, report);
    return 1;
}

int32_t hr_prose_total(const hr_prose_line *line, hr_prose_sum *sum, hr_audit_report *report)
{
    int32_t others;
    const char *text = line->text + strspn(line->text, " ");
    const hr_prose_token *size = size_of(line, &others);
    if (!*text || *text == '#' || text[0] == '`') {
        *sum = (hr_prose_sum){ .count = 0 };
        return 0;
    }
    if (is_rule(text)) {
        sum->ruled = sum->count > 0;
        return 0;
    }
    const int32_t word = find_total(line);
    if (word >= 0 && !is_sum(line, word)) {
        sum->broken = true;
        return 0;
    }
    if (word >= 0) {
        sum->done = true;
        return size && !others && sum->count ? check_total(line, size, sum, report) : 0;
    }
    const bool heading = !size && text[strlen(text) - 1] == ':';
    if (sum->done || heading) *sum = (hr_prose_sum){ .count = 0 };
    if (heading) return 0;
    if (!size || others || sum->count == HR_PROSE_ADDENDS_MOST) {
        sum->broken |= sum->count > 0;
        return 0;
    }
    sum->several |= is_one_of_several(line, size);
    const int32_t indent = (int32_t)(text - line->text);
    sum->broken |= sum->count > 0 && indent != sum->indent;
    sum->indent = indent;
    sum->ruled = false;
    hr_prose_addend *to = &sum->list[sum->count++];
    to->size = size->number;
    to->line = line->number;
    tag_of(line, size, to->tag);
    return 0;
}
