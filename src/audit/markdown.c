/* SPDX-License-Identifier: Apache-2.0 */
/* audit/markdown.c - takes claims from a text: "A × B × C × bytes = N", "N params → M MB", tables
 * and totals. A line that looks like a claim and has no formula is listed and not judged. */
#include "audit/markdown.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- products */

static bool is_number(const hr_prose_line *line, int32_t i)
{
    return i < line->token_count && line->tokens[i].kind == HR_PROSE_NUMBER;
}

static bool is_mark(const hr_prose_line *line, int32_t i, char mark)
{
    return i < line->token_count && line->tokens[i].kind == HR_PROSE_MARK &&
           line->tokens[i].mark == mark;
}

/* "/param" of "2 bytes/param": of each element that another factor counts. */
static bool is_each(const hr_prose_line *line, int32_t i)
{
    static const char *const words[] = { "param", "weight", "elem", "value", "float", "token" };
    if (!is_mark(line, i, '/') || i + 1 >= line->token_count) return false;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (hr_prose_begins(line, i + 1, words[w])) return true;
    return false;
}

/* Skips words behind a number, and one group in parentheses: "32768 (Broca)", "2048 dim". */
static int32_t after_words(const hr_prose_line *line, int32_t i)
{
    for (int32_t words = 0; i < line->token_count && words < 4; words++) {
        if (line->tokens[i].kind == HR_PROSE_WORD) i++;
        else if (is_each(line, i)) i += 2;
        else if (is_mark(line, i, '(')) {
            int32_t end = i + 1;
            while (end < line->token_count && end < i + 6 && !is_mark(line, end, ')')) end++;
            if (!is_mark(line, end, ')')) return i;
            i = end + 1;
        } else break;
    }
    return i;
}

typedef struct {
    hr_quantity value;
    double slack;
    int32_t next; /* token behind it */
    int32_t factors;
    bool failed;
    bool has_element; /* a factor is 1, 2, 4, 8 or 16, and may be the bytes of an element */
} product;

/* Reads "A words × B words × C" from token i on. */
static product read_product(const hr_prose_line *line, int32_t i)
{
    product p = { .value = hr_quantity_of(1, HR_AUDIT_PLAIN) };
    for (int32_t n = 0; n < 12; n++) {
        const hr_stated *number = &line->tokens[i].number;
        hr_error ignored;
        const hr_quantity factor = hr_quantity_of_real(number->value, number->dimension);
        /* "10⁹": a sign of several bytes that belongs to the number. */
        const hr_prose_token *token = &line->tokens[i];
        p.failed |= (unsigned char)line->text[token->at + token->length] >= 0x80;
        p.failed |= number->relation != '=' || number->percent || hr_prose_is_unclear(line, i) ||
                    hr_quantity_apply('*', p.value, factor, &p.value, &ignored) != HR_OK;
        p.slack += hr_prose_slack(number);
        p.has_element |= number->value == 1 || number->value == 2 || number->value == 4 ||
                         number->value == 8 || number->value == 16;
        p.factors++;
        p.next = after_words(line, i + 1);
        if (p.next >= line->token_count || line->tokens[p.next].kind != HR_PROSE_TIMES ||
            !is_number(line, p.next + 1))
            return p;
        i = p.next + 1;
    }
    p.failed = true;
    return p;
}

/* The size of an element that makes a product a stated size: 1 if the product is it already, as in
 * "2 (bf16 bytes) x 8B = 16 GB"; without a dtype the first of 4, 2 and 1 for which the claim is
 * true; that of the line's dtype if it is true, or if it can be nothing else; 0: not known. */
static double element_bytes(const hr_prose_line *line, const hr_stated *stated, const product *p)
{
    static const double sizes[] = { 4, 2, 1 };
    const double named = hr_prose_dtype(line), count = p->value.value;
    if (p->factors > 1 && hr_prose_is_true(stated, count, p->slack)) return 1;
    for (int32_t i = 0; named == 0 && i < 3; i++)
        if (hr_prose_is_true(stated, count * sizes[i], p->slack)) return sizes[i];
    if (named == 0 || hr_prose_is_true(stated, count * named, p->slack)) return named;
    return p->has_element || !hr_prose_is_of_weights(line) ? 0 : named;
}

/* "(4.1 GB)" or "(4.1 GB!)" at token i: the result once more. */
static bool is_again(const hr_prose_line *line, int32_t i)
{
    return is_mark(line, i, '(') && is_number(line, i + 1) &&
           (is_mark(line, i + 2, ')') || (is_mark(line, i + 2, '!') && is_mark(line, i + 3, ')')));
}

/* Skips the words behind a result, but not the result once more. */
static int32_t after_result(const hr_prose_line *line, int32_t i)
{
    while (i < line->token_count && line->tokens[i].kind == HR_PROSE_WORD) i++;
    return is_again(line, i) ? i : after_words(line, i);
}

/* "2**30", "16 GB + 2 GB", "2.5 PFLOPS": a result that the number alone is not. A plain number may
 * have a word behind it, but none that looks like a unit: "4 Gbit", "3 TOPS". */
static bool is_only_begun(const hr_prose_line *line, int32_t i)
{
    const hr_prose_token *next = &line->tokens[i + 1];
    if (hr_prose_is_unclear(line, i)) return true;
    if (i + 1 >= line->token_count) return false;
    if (next->kind == HR_PROSE_MARK && next->mark == '^') return true;
    if (next->kind == HR_PROSE_MARK && strchr("+-/", next->mark)) return is_number(line, i + 2);
    if (next->kind != HR_PROSE_WORD || line->tokens[i].number.dimension != HR_AUDIT_PLAIN)
        return false;
    for (int32_t c = 0; c < next->length; c++) {
        const unsigned char letter = (unsigned char)line->text[next->at + c];
        if (letter >= 0x80 || isupper(letter)) return true;
    }
    return false;
}

/* "12 x 768 at T = 1024", "and V = 50257": what is equal to the number has a name of its own. */
static bool names_another(const hr_prose_line *line, int32_t equals)
{
    static const char *const links[] = { "at", "with", "and", "for", "where", "when" };
    if (equals < 2) return false;
    const hr_prose_token *link = &line->tokens[equals - 2], *name = link + 1;
    if (link->kind != HR_PROSE_WORD || name->kind != HR_PROSE_WORD || name->length > 2)
        return false;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if ((int32_t)strlen(links[i]) == link->length &&
            !strncasecmp(line->text + link->at, links[i], (size_t)link->length))
            return true;
    return false;
}

/* Checks the results behind a product, "= 5.1M params → 20MB" or "= 4,194 MB (4.1 GB)", and moves
 * its end behind them. */
static int32_t check_results(const hr_prose_line *line, int32_t begin, product *p,
                             hr_audit_report *report)
{
    char formula[HR_AUDIT_LINE_BYTES];
    int32_t i = p->next, claims = 0;
    const int32_t from = line->tokens[begin].at;
    snprintf(formula, sizeof formula, "%.*s",
             (int)(line->tokens[i - 1].at + line->tokens[i - 1].length - from), line->text + from);
    for (int32_t n = 0; n < 4 && i < line->token_count; n++) {
        const bool again = n > 0 && is_again(line, i);
        if (!again && line->tokens[i].kind != HR_PROSE_EQUALS) break;
        if (!is_number(line, i + 1) || (!again && names_another(line, i))) break;
        const hr_prose_token *result = &line->tokens[i + 1];
        hr_quantity right = p->value;
        char text[HR_AUDIT_LINE_BYTES];
        snprintf(text, sizeof text, "%s", formula);
        /* A chain of products, "= 8 × 4 = 32", is not a result; nor is a percentage. */
        if (i + 2 < line->token_count && line->tokens[i + 2].kind == HR_PROSE_TIMES) break;
        if (result->number.percent || is_only_begun(line, i + 1)) break;
        /* "405B parameters and T = 1,048,576" says nothing about the first number. */
        if (p->factors == 1 && n == 0 && result->number.dimension != HR_AUDIT_BYTES) break;
        if (right.dimension == HR_AUDIT_PLAIN && result->number.dimension == HR_AUDIT_BYTES) {
            const double bytes = element_bytes(line, &result->number, p);
            if (bytes == 0) break;
            right = hr_quantity_of_real(right.value * bytes, HR_AUDIT_BYTES);
            if (bytes > 1) snprintf(text, sizeof text, "%.160s at %.0f bytes each", formula, bytes);
        }
        if (right.dimension != result->number.dimension) break;
        hr_prose_judge(line, result, right, p->slack, text, report);
        for (int32_t f = begin; f < i; f++) line->read[f] = true;
        claims++;
        i = p->next = after_result(line, i + 2);
    }
    return claims;
}

/* A number that belongs to something before it: "2^10 × 4", "a/3 × 4", "3 + 4 × 2". A bullet at the
 * start of the line is nothing. */
static bool is_part(const hr_prose_line *line, int32_t i)
{
    const hr_prose_token *before = i ? &line->tokens[i - 1] : NULL;
    if (!before || before->kind != HR_PROSE_MARK || !strchr("^/+-%", before->mark)) return false;
    return i > 1 || !strchr("+-", before->mark);
}

/* Products, and numbers of parameters with their size. */
static int32_t check_products(const hr_prose_line *line, hr_audit_report *report)
{
    int32_t claims = 0;
    for (int32_t i = 0; i < line->token_count;) {
        if (!is_number(line, i)) {
            i++;
            continue;
        }
        product p = read_product(line, i);
        const bool counted = p.factors == 1 && hr_prose_begins(line, i + 1, "param") &&
                             p.value.dimension == HR_AUDIT_PLAIN;
        const bool part = is_part(line, i);
        const bool after = i && line->tokens[i - 1].kind == HR_PROSE_TIMES;
        if (!p.failed && !part && !after && (p.factors > 1 || counted) &&
            p.next < line->token_count && line->tokens[p.next].kind == HR_PROSE_EQUALS)
            claims += check_results(line, i, &p, report);
        i = p.next > i ? p.next : i + 1;
    }
    return claims;
}

/* ---- the text */

static bool has_size(const hr_prose_line *line)
{
    if (line->sized) return true;
    for (int32_t i = 0; i < line->token_count; i++) {
        const hr_stated *n = &line->tokens[i].number;
        if (line->tokens[i].kind != HR_PROSE_NUMBER) continue;
        if (n->power || (n->scale >= 1e6 && hr_prose_begins(line, i + 1, "param"))) return true;
    }
    return false;
}

/* Whether a line with a checked number has a size that is none of its. */
static bool has_another_size(const hr_prose_line *line)
{
    for (int32_t i = 0; i < line->token_count; i++)
        if (line->tokens[i].kind == HR_PROSE_NUMBER && line->tokens[i].number.power &&
            !line->read[i])
            return true;
    return false;
}

typedef struct {
    bool read[HR_PROSE_TOKENS_MOST];
    hr_prose_facts facts;
    hr_prose_table table;
    hr_prose_sum sum;
    hr_prose_line line;
} reader;

static void read_line(reader *r, hr_audit_report *report)
{
    hr_prose_line *line = &r->line;
    const char *text = line->text + strspn(line->text, " ");
    int64_t blanks = 0;
    int32_t claims = 0;
    memset(r->read, 0, sizeof r->read);
    line->read = r->read;
    while (blanks < line->raw_length && line->raw[blanks] == ' ') blanks++;
    if (line->cut) {
        hr_audit_skip(report, line->number, line->raw + blanks, line->raw_length - blanks,
                      "the line is too long");
        return;
    }
    if (*text == '|') {
        r->sum.count = 0;
        claims = hr_prose_row(line, &r->facts, &r->table, report);
    } else {
        r->table.open = false;
        claims = check_products(line, report);
        if (!claims) claims = hr_prose_logits(line, &r->facts, report);
        claims += hr_prose_total(line, &r->sum, report);
    }
    if (claims ? has_another_size(line) : has_size(line))
        hr_audit_skip(report, line->number, line->raw + blanks, line->raw_length - blanks,
                      "no formula");
}

void hr_audit_markdown(const char *text, int64_t bytes, hr_audit_report *report)
{
    reader r = { .read = { 0 } };
    int64_t number = 0;
    for (int64_t at = 0; at < bytes;) {
        at += hr_prose_take_line(text + at, bytes - at, ++number, &r.line);
        hr_prose_learn(&r.line, &r.facts);
    }
    number = 0;
    for (int64_t at = 0; at < bytes;) {
        at += hr_prose_take_line(text + at, bytes - at, ++number, &r.line);
        read_line(&r, report);
    }
}
