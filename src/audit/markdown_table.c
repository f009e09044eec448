/* SPDX-License-Identifier: Apache-2.0 */
/* audit/markdown_table.c - tables whose columns follow from each other: tokens of a batch, samples
 * and hours from tokens per second, logits, and the size of a number of parameters. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "audit/markdown.h"

enum { NONE, LENGTH, BATCH, TOKENS, RATE, SAMPLES, HOURS, LOGITS, COUNT, SIZE, ROLES };
enum { COLUMNS = 16 };

/* A cell as the range of its tokens. */
typedef struct {
    int32_t first, last; /* tokens */
} cell;

static int32_t split_cells(const hr_prose_line *line, cell cells[COLUMNS])
{
    int32_t count = 0;
    for (int32_t i = 1; i < line->token_count && count < COLUMNS; count++) {
        cells[count].first = i;
        while (i < line->token_count &&
               !(line->tokens[i].kind == HR_PROSE_MARK && line->tokens[i].mark == '|'))
            i++;
        cells[count].last = i++;
    }
    return count;
}

static void read_cell(const hr_prose_line *line, const cell *c, char text[96])
{
    int32_t n = 0;
    if (c->last > c->first) {
        const int32_t from = line->tokens[c->first].at;
        const int32_t to = line->tokens[c->last - 1].at + line->tokens[c->last - 1].length;
        for (int32_t i = from; i < to && n < 95; i++) text[n++] = line->text[i];
    }
    text[n] = 0;
}

/* What a column holds; `bytes`: its header names a unit of bytes. */
static int8_t role_of(const char *header, bool bytes)
{
    const bool per = strchr(header, '/') || strstr(header, " per ");
    if (strstr(header, "logits") && !strstr(header, "material")) return LOGITS;
    if (strstr(header, "hours") && strstr(header, "token")) return HOURS;
    if (per && strstr(header, "token") && strstr(header, "batch")) return TOKENS;
    if (per && strstr(header, "token") && strstr(header, "/s")) return RATE;
    if (per && strstr(header, "sample") && strstr(header, "/s")) return SAMPLES;
    if (strstr(header, "seq") || strstr(header, "context")) return LENGTH;
    if (strstr(header, "batch") && !per) return BATCH;
    return hr_prose_sizes_weights(header) && bytes ? SIZE
           : hr_prose_counts_parameters(header)    ? COUNT
                                                   : NONE;
}

static void open_table(const hr_prose_line *line, const cell *cells, int32_t count,
                       hr_prose_table *table)
{
    *table = (hr_prose_table){ .open = true, .columns = count };
    for (int32_t c = 0; c < count; c++) {
        char header[96];
        read_cell(line, &cells[c], header);
        hr_prose_read_unit(header, &table->units[c]);
        for (char *at = header; *at; at++) *at = (char)tolower((unsigned char)*at);
        table->roles[c] = role_of(header, table->units[c].power > 0);
        table->elements[c] = hr_prose_dtype_of(line, cells[c].first, cells[c].last);
        if (table->roles[c] != HOURS) continue;
        for (int32_t i = cells[c].first; i < cells[c].last; i++)
            if (line->tokens[i].kind == HR_PROSE_NUMBER)
                table->tokens = line->tokens[i].number.value;
    }
}

static const hr_prose_token *only_number(const hr_prose_line *line, const cell *c)
{
    const hr_prose_token *found = NULL;
    for (int32_t i = c->first; i < c->last; i++) {
        if (line->tokens[i].kind != HR_PROSE_NUMBER) continue;
        if (found || hr_prose_is_unclear(line, i)) return NULL;
        found = &line->tokens[i];
    }
    return found;
}

/* The one number in the column of a role; null: none, or several columns. */
static const hr_prose_token *value_of(const hr_prose_line *line, const cell *cells, int32_t count,
                                      const hr_prose_table *table, int8_t role)
{
    const hr_prose_token *found = NULL;
    for (int32_t c = 0; c < count && c < table->columns; c++) {
        if (table->roles[c] != role) continue;
        if (found) return NULL;
        found = only_number(line, &cells[c]);
        if (!found) return NULL;
    }
    return found;
}

/* Whether a cell is no sum, range or difference. */
static bool is_plain(const hr_prose_line *line, const cell *c)
{
    for (int32_t i = c->first; i < c->last; i++)
        if (line->tokens[i].kind == HR_PROSE_TIMES ||
            (line->tokens[i].kind == HR_PROSE_MARK && strchr("+-/^", line->tokens[i].mark)))
            return false;
    return true;
}

static double slack_of(const hr_prose_token *t)
{
    return hr_prose_slack(&t->number);
}

/* Whether a further column has a plain number, such as devices or accumulation, which may be a
 * factor of the tokens of a batch. */
static bool has_more(const hr_prose_line *line, const cell *cells, int32_t count,
                     const hr_prose_table *table)
{
    for (int32_t c = 0; c < count && c < table->columns; c++) {
        if (table->roles[c] != NONE && table->roles[c] != COUNT) continue;
        for (int32_t i = cells[c].first; i < cells[c].last; i++)
            if (line->tokens[i].kind == HR_PROSE_NUMBER && !line->tokens[i].number.percent &&
                line->tokens[i].number.dimension == HR_AUDIT_PLAIN)
                return true;
    }
    return false;
}

static int32_t check_logits(const hr_prose_line *line, const hr_prose_token *size,
                            const hr_prose_token *length, const hr_prose_facts *facts,
                            hr_audit_report *report)
{
    static const double bytes[] = { 4, 2, 1 };
    double right = 0;
    int32_t known = 0;
    if (!facts->vocabulary || facts->several || !size->number.power) return 0;
    for (int32_t i = 0; i < 3; i++) known += facts->dtypes[i];
    for (int32_t i = 0; i < 3; i++) {
        const double value = length->number.value * facts->vocabulary * bytes[i];
        hr_audit_claim claim = { 0 };
        if (!facts->dtypes[i]) continue;
        hr_claim_judge(&size->number, hr_quantity_of_real(value, HR_AUDIT_BYTES), &claim);
        if (known == 1 || claim.verdict != HR_VERDICT_WRONG) right = value;
    }
    if (!right) return 0;
    char formula[HR_AUDIT_LINE_BYTES];
    snprintf(formula, sizeof formula, "logits: %.0f tokens x %.0f words x %.0f bytes",
             length->number.value, facts->vocabulary,
             right / length->number.value / facts->vocabulary);
    hr_prose_judge(line, size, hr_quantity_of_real(right, HR_AUDIT_BYTES), slack_of(length),
                   formula, report);
    return 1;
}

int32_t hr_prose_logits(const hr_prose_line *line, const hr_prose_facts *facts,
                        hr_audit_report *report)
{
    const hr_prose_token *size = NULL, *length = NULL;
    for (int32_t i = 0; i + 2 < line->token_count; i++) {
        const hr_prose_token *t = &line->tokens[i];
        const char *word = line->text + t->at;
        if (t->kind != HR_PROSE_WORD || t[1].kind != HR_PROSE_EQUALS ||
            t[2].kind != HR_PROSE_NUMBER)
            continue;
        if (t->length == 6 && !strncasecmp(word, "logits", 6)) size = t + 2;
        if (t->length == 7 && !strncasecmp(word, "seq_len", 7)) length = t + 2;
    }
    return size && length ? check_logits(line, size, length, facts, report) : 0;
}

/* Whether the first word of a row says that its size is that of weights. */
static bool is_of_weights(const hr_prose_line *line)
{
    static const char *const words[] = { "model", "weights", "parameters", "params" };
    for (int32_t i = 0; i < line->token_count && i < 4; i++)
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            if (hr_prose_begins(line, i, words[w])) return true;
    return false;
}

/* "| Model parameters | 8.72 GB | 3.92B params in bfloat16 |" */
static int32_t check_parameters(const hr_prose_line *line, hr_audit_report *report)
{
    const double bytes = hr_prose_dtype(line);
    const hr_prose_token *size = NULL, *count = NULL;
    for (int32_t i = 0; i < line->token_count; i++) {
        const hr_prose_token *t = &line->tokens[i];
        if (t->kind != HR_PROSE_NUMBER) continue;
        const bool params = hr_prose_begins(line, i + 1, "param");
        if (params && count) return 0;
        if (params) count = t;
        else if (t->number.power && size) return 0;
        else if (t->number.power) size = t;
    }
    if (!size || !count || bytes == 0 || !is_of_weights(line) || !hr_prose_is_of_weights(line))
        return 0;
    char formula[HR_AUDIT_LINE_BYTES];
    snprintf(formula, sizeof formula, "%.*s parameters x %.0f bytes", (int)count->length,
             line->text + count->at, bytes);
    const double slack = count->number.value > 0 ? count->number.step / 2 / count->number.value : 0;
    hr_prose_judge(line, size, hr_quantity_of_real(count->number.value * bytes, HR_AUDIT_BYTES),
                   slack, formula, report);
    return 1;
}

static int32_t check_row(const hr_prose_line *line, const cell *cells, int32_t count,
                         const hr_prose_facts *facts, const hr_prose_table *table,
                         hr_audit_report *report)
{
    const hr_prose_token *of[ROLES];
    char formula[HR_AUDIT_LINE_BYTES];
    int32_t claims = 0;
    for (int8_t role = LENGTH; role < ROLES; role++)
        of[role] = value_of(line, cells, count, table, role);
    if (of[TOKENS] && of[LENGTH] && of[BATCH] && !has_more(line, cells, count, table)) {
        const double tokens = of[LENGTH]->number.value * of[BATCH]->number.value;
        snprintf(formula, sizeof formula, "sequence length %.0f x batch %.0f",
                 of[LENGTH]->number.value, of[BATCH]->number.value);
        hr_prose_judge(line, of[TOKENS], hr_quantity_of_real(tokens, HR_AUDIT_PLAIN),
                       slack_of(of[LENGTH]) + slack_of(of[BATCH]), formula, report);
        claims++;
    }
    if (of[SAMPLES] && of[RATE] && of[LENGTH] && of[LENGTH]->number.value > 0) {
        snprintf(formula, sizeof formula, "%.0f tokens/s / %.0f tokens", of[RATE]->number.value,
                 of[LENGTH]->number.value);
        hr_prose_judge(
            line, of[SAMPLES],
            hr_quantity_of_real(of[RATE]->number.value / of[LENGTH]->number.value, HR_AUDIT_PLAIN),
            slack_of(of[RATE]) + slack_of(of[LENGTH]), formula, report);
        claims++;
    }
    if (of[HOURS] && of[RATE] && table->tokens > 0 && of[RATE]->number.value > 0) {
        snprintf(formula, sizeof formula, "%.0f tokens / %.0f tokens/s / 3600", table->tokens,
                 of[RATE]->number.value);
        /* "27.8", or "27.8 h", which is a time. */
        const hr_audit_dimension unit = of[HOURS]->number.dimension;
        const double scale = unit == HR_AUDIT_SECONDS ? 1 : 3600;
        hr_prose_judge(line, of[HOURS],
                       hr_quantity_of_real(table->tokens / of[RATE]->number.value / scale, unit),
                       slack_of(of[RATE]), formula, report);
        claims++;
    }
    for (int32_t c = 0; of[COUNT] && c < count && c < table->columns; c++) {
        const bool size = table->roles[c] == SIZE && is_plain(line, &cells[c]);
        const hr_prose_token *stated = size ? only_number(line, &cells[c]) : NULL;
        if (!stated) continue;
        const double element = table->elements[c] > 0 ? table->elements[c] : hr_prose_dtype(line);
        claims += hr_prose_weights_row(line, of[COUNT], stated, element, report);
    }
    if (of[LOGITS] && of[LENGTH])
        claims += check_logits(line, of[LOGITS], of[LENGTH], facts, report);
    return claims;
}

int32_t hr_prose_row(hr_prose_line *line, const hr_prose_facts *facts, hr_prose_table *table,
                     hr_audit_report *report)
{
    cell cells[COLUMNS];
    const int32_t count = split_cells(line, cells);
    const char *text = line->text + strspn(line->text, " ");
    if (!table->open) {
        open_table(line, cells, count, table);
        return 0;
    }
    if (!text[strspn(text, "|-: ")]) return 0;
    for (int32_t c = 0; c < count && c < table->columns; c++)
        if (table->units[c].scale > 1)
            line->sized |= hr_prose_apply_unit(line, cells[c].first, cells[c].last,
                                               &table->units[c]);
    const int32_t claims = check_row(line, cells, count, facts, table, report);
    return claims ? claims : check_parameters(line, report);
}
