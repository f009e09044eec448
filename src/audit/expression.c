/* SPDX-License-Identifier: Apache-2.0 */
/* audit/expression.c - two stacks: values, and operators with the parentheses that are open. */
#include "audit/expression.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "audit/formulas.h"

enum { VALUES_MOST = 64, OPEN_MOST = 32 };

/* An open parenthesis: of a function, or a group. */
typedef struct {
    const hr_formula *formula; /* null: a group */
    int32_t values, operators; /* below it on the stacks */
    int32_t named;             /* arguments so far */
    char name[24];             /* of the argument that is being read; empty: it has none */
} frame;

typedef struct {
    const char *text, *at, *folder;
    hr_argument values[VALUES_MOST];
    char operators[VALUES_MOST];
    frame frames[OPEN_MOST];
    int32_t value_count, operator_count, frame_count;
    hr_error *err;
} evaluation;

static hr_status fail(const evaluation *e, const char *what)
{
    return hr_fail(e->err, HR_USAGE, "%s at column %d of \"%.80s\"", what,
                   (int)(e->at - e->text) + 1, e->text);
}

static int32_t base_of_operators(const evaluation *e)
{
    return e->frame_count ? e->frames[e->frame_count - 1].operators : 0;
}

static hr_status push(evaluation *e, const hr_expression_value *value)
{
    if (e->value_count == VALUES_MOST) return fail(e, "too many values");
    hr_argument *top = &e->values[e->value_count++];
    *top = (hr_argument){ .value = *value };
    return HR_OK;
}

static int32_t rank(char operation)
{
    return operation == 'n' ? 3 : operation == '*' || operation == '/' ? 2 : 1;
}

/* Applies the operators above the open parenthesis that bind at least as strongly. */
static hr_status reduce(evaluation *e, int32_t least)
{
    hr_error inner;
    while (e->operator_count > base_of_operators(e) &&
           rank(e->operators[e->operator_count - 1]) >= least) {
        const char operation = e->operators[--e->operator_count];
        hr_expression_value *b = &e->values[e->value_count - 1].value;
        hr_expression_value *a = operation == 'n' ? b : &e->values[e->value_count - 2].value;
        if (a->is_text || b->is_text) return fail(e, "a word where a number belongs");
        const hr_quantity left = operation == 'n' ? hr_quantity_of(0, b->number.dimension)
                                                  : a->number;
        const hr_status status = hr_quantity_apply(operation == 'n' ? '-' : operation, left,
                                                   b->number, &a->number, &inner);
        if (status != HR_OK) return fail(e, inner.message);
        e->value_count -= operation != 'n';
    }
    return HR_OK;
}

static hr_status push_operator(evaluation *e, char operation)
{
    hr_status status = operation == 'n' ? HR_OK : reduce(e, rank(operation));
    if (status != HR_OK) return status;
    if (e->operator_count == VALUES_MOST) return fail(e, "too many operators");
    e->operators[e->operator_count++] = operation;
    return HR_OK;
}

static hr_status open_frame(evaluation *e, const hr_formula *formula)
{
    if (e->frame_count == OPEN_MOST) return fail(e, "more than 32 open parentheses");
    e->frames[e->frame_count++] = (frame){ formula, e->value_count, e->operator_count, 0, "" };
    return HR_OK;
}

static hr_status fail_argument(const evaluation *e, const frame *f)
{
    char what[96] = "a number is missing in the parentheses";
    if (f->formula && *f->name) snprintf(what, sizeof what, "the value of %s is missing", f->name);
    else if (f->formula)
        snprintf(what, sizeof what, "argument %d of %s is missing", (int)f->named + 1,
                 f->formula->name);
    return fail(e, what);
}

/* The end of an argument: names the value on the stack. */
static hr_status end_argument(evaluation *e)
{
    hr_status status = reduce(e, 0);
    if (status != HR_OK) return status;
    frame *f = &e->frames[e->frame_count - 1];
    if (e->value_count != f->values + f->named + 1) return fail_argument(e, f);
    memcpy(e->values[e->value_count - 1].name, f->name, sizeof f->name);
    *f->name = 0;
    f->named++;
    return HR_OK;
}

static hr_status close_frame(evaluation *e)
{
    hr_error inner;
    if (!e->frame_count) return fail(e, "a parenthesis that nothing opens");
    const frame *top = &e->frames[e->frame_count - 1];
    const bool none = top->formula && !top->named && e->value_count == top->values;
    hr_status status = none ? HR_OK : end_argument(e);
    if (status != HR_OK) return status;
    const frame f = e->frames[--e->frame_count];
    if (!f.formula) {
        if (f.named != 1) return fail(e, "a comma outside of a function");
        if (e->values[f.values].value.is_text) return fail(e, "a word where a number belongs");
        return HR_OK;
    }
    hr_expression_value result = { .is_text = false };
    status = hr_formula_apply(f.formula, &e->values[f.values], f.named, e->folder, &result.number,
                              &inner);
    if (status != HR_OK) return hr_fail(e->err, HR_USAGE, "%s", inner.message);
    e->value_count = f.values;
    return push(e, &result);
}

/* A name: a function, the name of an argument, or a word such as a dtype. `operand_next` stays set
 * after the name of an argument and an opened function. */
static hr_status take_name(evaluation *e, bool *operand_next)
{
    char name[HR_EXPRESSION_TEXT_BYTES];
    size_t length = 0;
    while (isalnum((unsigned char)e->at[length]) || e->at[length] == '_' || e->at[length] == '.')
        length++;
    snprintf(name, sizeof name, "%.*s", (int)length, e->at);
    const char *next = e->at + length + strspn(e->at + length, " ");
    frame *f = e->frame_count ? &e->frames[e->frame_count - 1] : NULL;
    if (*next == '(') {
        const hr_formula *formula = hr_formula_find(name);
        if (!formula)
            return hr_fail(e->err, HR_USAGE, "%.40s is not a function; the nearest is %s", name,
                           hr_formula_nearest(name)->name);
        e->at = next + 1;
        return open_frame(e, formula);
    }
    if (*next == '=' && f && f->formula && !*f->name && e->value_count == f->values + f->named) {
        if (length >= sizeof f->name) return fail(e, "a name that is too long");
        memcpy(f->name, name, length + 1);
        e->at = next + 1;
        return HR_OK;
    }
    if (!f || !f->formula)
        return hr_fail(e->err, HR_USAGE,
                       "%.40s is not known; outside of a function only numbers with units stand, "
                       "such as 4096 or 24 GB",
                       name);
    hr_expression_value word = { .is_text = true };
    memcpy(word.text, name, sizeof word.text);
    e->at += length;
    *operand_next = false;
    return push(e, &word);
}

static hr_status take_string(evaluation *e)
{
    const char quote = *e->at;
    const char *end = strchr(e->at + 1, quote);
    hr_expression_value word = { .is_text = true };
    if (!end || end - e->at > HR_EXPRESSION_TEXT_BYTES) return fail(e, "a word without an end");
    if (!e->frame_count || !e->frames[e->frame_count - 1].formula)
        return fail(e, "a word where a number belongs");
    snprintf(word.text, sizeof word.text, "%.*s", (int)(end - e->at - 1), e->at + 1);
    e->at = end + 1;
    return push(e, &word);
}

/* The end of an argument where its value belongs. Only "()" may be empty: the function itself says
 * which arguments it lacks. */
static hr_status end_empty(evaluation *e, bool *operand_next)
{
    const frame *f = &e->frames[e->frame_count - 1];
    if (*e->at == ',' || *f->name || f->named) return fail_argument(e, f);
    const hr_status status = close_frame(e);
    e->at += status == HR_OK;
    *operand_next = false;
    return status;
}

static hr_status take_operand(evaluation *e, bool *operand_next)
{
    hr_stated number;
    const frame *f = e->frame_count ? &e->frames[e->frame_count - 1] : NULL;
    if ((*e->at == ')' || *e->at == ',') && f && f->formula && e->operator_count == f->operators)
        return end_empty(e, operand_next);
    if (*e->at == '-' || *e->at == '(') {
        const char c = *e->at++;
        return c == '(' ? open_frame(e, NULL) : push_operator(e, 'n');
    }
    if (isalpha((unsigned char)*e->at) || *e->at == '_') return take_name(e, operand_next);
    *operand_next = false;
    if (*e->at == '"' || *e->at == '\'') return take_string(e);
    if (!isdigit((unsigned char)*e->at) && *e->at != '.') return fail(e, "a number is missing");
    /* A comma separates arguments: "tensor(32,128,128)". */
    const int64_t taken = hr_stated_scan(e->at, (int64_t)strcspn(e->at, ","), &number);
    if (taken < 0) return fail(e, "a number with an unknown unit");
    if (!hr_stated_in_range(&number)) return fail(e, "a number above 9e18");
    e->at += taken;
    /* "8192+1" is no "8192 or more". */
    if (e->at[-1] == '+') e->at--;
    const hr_expression_value value = { .number = hr_quantity_of_real(number.value,
                                                                      number.dimension) };
    return push(e, &value);
}

static hr_status take_operator(evaluation *e, bool *operand_next)
{
    static const char times[] = "\xc3\x97";
    if (*e->at == ')') {
        const hr_status status = close_frame(e);
        e->at += status == HR_OK;
        return status;
    }
    *operand_next = true;
    if (*e->at == ',') {
        if (!e->frame_count || !e->frames[e->frame_count - 1].formula)
            return fail(e, "a comma outside of a function");
        const hr_status status = end_argument(e);
        e->at += status == HR_OK;
        return status;
    }
    if (!strncmp(e->at, times, 2)) {
        e->at += 2;
        return push_operator(e, '*');
    }
    if (*e->at == '*' || *e->at == 'x') {
        e->at++;
        return push_operator(e, '*');
    }
    if (*e->at == '+' || *e->at == '-' || *e->at == '/') return push_operator(e, *e->at++);
    return fail(e, "an operator is missing");
}

hr_status hr_expression_evaluate(const char *text, const char *folder, hr_quantity *out,
                                 hr_error *err)
{
    evaluation e = { .text = text, .at = text, .folder = folder, .err = err };
    bool operand_next = true;
    hr_status status = HR_OK;
    if (strlen(text) >= HR_EXPRESSION_BYTES)
        return hr_fail(err, HR_USAGE, "an expression of more than %d bytes",
                       HR_EXPRESSION_BYTES - 1);
    while (status == HR_OK) {
        e.at += strspn(e.at, " \t\n");
        if (!*e.at) break;
        status = operand_next ? take_operand(&e, &operand_next) : take_operator(&e, &operand_next);
    }
    if (status == HR_OK && operand_next) status = fail(&e, "a number is missing");
    if (status == HR_OK && e.frame_count) status = fail(&e, "a parenthesis is not closed");
    if (status == HR_OK) status = reduce(&e, 0);
    if (status != HR_OK) return status;
    *out = e.values[0].value.number;
    return HR_OK;
}
