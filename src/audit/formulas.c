/* SPDX-License-Identifier: Apache-2.0 */
/* audit/formulas.c - the table of functions. Most are a product of sizes, times the bytes of an
 * element. */
#include "audit/formulas.h"

#include <stdio.h>
#include <string.h>

#include "audit/models.h"

enum { TAKES_MOST = 8 };

static const hr_formula formulas[] = {
    { "tensor", "... dtype=fp32" },           /* bytes of a tensor with these sizes */
    { "matrix", "a b dtype=fp32" },           /* bytes of a matrix */
    { "logits", "T V B=1 dtype=fp32" },       /* B x T x V */
    { "hidden", "T d B=1 dtype=fp32" },       /* the rows of one layer: B x T x d */
    { "scores", "T H B=1 dtype=fp32" },       /* attention weights of one layer: B x H x T x T */
    { "kv_cache", "T L G K B=1 dtype=bf16" }, /* keys and values: 2 x L x B x T x G x K */
    { "params", "model*" },                   /* elements of a model's parameters */
    { "weights", "model* dtype=fp32" },       /* bytes of the weights */
    { "gradients", "model* dtype=fp32" },     /* bytes of the gradients */
    { "adam", "model* dtype=fp32" },          /* bytes of the two moments of Adam */
    { "lora", "rank inputs outputs" }, /* elements of an adapter: rank x (inputs + outputs) */
};
enum { FORMULAS = sizeof formulas / sizeof *formulas };

const hr_formula *hr_formula_find(const char *name)
{
    for (int32_t i = 0; i < FORMULAS; i++)
        if (!strcmp(formulas[i].name, name)) return &formulas[i];
    return NULL;
}

const hr_formula *hr_formula_nearest(const char *name)
{
    return &formulas[hr_audit_nearest(name, formulas, sizeof *formulas, FORMULAS)];
}

static const struct {
    const char *name;
    double bytes;
} dtypes[] = {
    { "fp32", 4 },   { "float32", 4 },       { "f32", 4 },  { "bf16", 2 },  { "bfloat16", 2 },
    { "fp16", 2 },   { "float16", 2 },       { "f16", 2 },  { "fp8", 1 },   { "f8_e4m3", 1 },
    { "int8", 1 },   { "uint8", 1 },         { "i8", 1 },   { "fp64", 8 },  { "float64", 8 },
    { "int64", 8 },  { "int32", 4 },         { "bool", 1 }, { "nf4", 0.5 }, { "fp4", 0.5 },
    { "int4", 0.5 }, { "float8_e4m3fn", 1 },
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* Bytes of an element of a dtype; 0: unknown. */
static double dtype_size(const char *name)
{
    for (int32_t i = 0; i < DTYPES; i++)
        if (!strcmp(dtypes[i].name, name)) return dtypes[i].bytes;
    return 0;
}

static hr_status fail_dtype(const char *name, hr_error *err)
{
    return hr_fail(err, HR_USAGE, "%.40s is no dtype; the nearest is %s", name,
                   dtypes[hr_audit_nearest(name, dtypes, sizeof *dtypes, DTYPES)].name);
}

/* The parameters of a formula with the arguments that they got. */
typedef struct {
    char names[TAKES_MOST][16];
    char defaults[TAKES_MOST][16]; /* empty: required */
    const hr_argument *given[TAKES_MOST];
    int32_t count;
    bool any_sizes; /* "..." */
    bool model;     /* the first is a model: more named arguments are its keys */
} binding;

static binding read_takes(const hr_formula *formula)
{
    binding b = { .count = 0 };
    const char *at = formula->takes;
    while (*at && b.count < TAKES_MOST) {
        const size_t length = strcspn(at, " ");
        const size_t name = strcspn(at, "=* ");
        if (!strncmp(at, "...", 3)) b.any_sizes = true;
        else {
            snprintf(b.names[b.count], sizeof b.names[0], "%.*s", (int)name, at);
            if (at[name] == '=')
                snprintf(b.defaults[b.count], sizeof b.defaults[0], "%.*s",
                         (int)(length - name - 1), at + name + 1);
            b.model |= at[name] == '*';
            b.count++;
        }
        at += length + (at[length] == ' ');
    }
    return b;
}

static int32_t find_name(const binding *b, const char *name)
{
    for (int32_t i = 0; i < b->count; i++)
        if (!strcmp(b->names[i], name)) return i;
    return -1;
}

/* Binds arguments to names; sizes of "..." and keys of a model stay in the list. */
static hr_status bind(const hr_formula *formula, const hr_argument *arguments, int32_t count,
                      binding *b, hr_error *err)
{
    int32_t next = 0;
    for (int32_t i = 0; i < count; i++) {
        const hr_argument *argument = &arguments[i];
        int32_t at = *argument->name ? find_name(b, argument->name) : -1;
        if (*argument->name && at < 0) {
            if (b->model) continue;
            return hr_fail(err, HR_USAGE, "%s has no argument %.24s; it takes %s", formula->name,
                           argument->name, formula->takes);
        }
        if (at < 0 && b->any_sizes) {
            if (!argument->value.is_text) continue;
            at = find_name(b, "dtype");
        } else if (at < 0) {
            while (next < b->count && b->given[next]) next++;
            at = next;
            if (argument->value.is_text && find_name(b, "dtype") >= 0 && at != 0 &&
                dtype_size(argument->value.text))
                at = find_name(b, "dtype");
        }
        if (at >= b->count || b->given[at])
            return hr_fail(err, HR_USAGE, "%s takes %s; there are more", formula->name,
                           formula->takes);
        b->given[at] = argument;
    }
    for (int32_t i = 0; i < b->count; i++)
        if (!b->given[i] && !*b->defaults[i] && !(b->model && i == 0))
            return hr_fail(err, HR_USAGE, "%s takes %s; %s is missing", formula->name,
                           formula->takes, b->names[i]);
    return HR_OK;
}

/* Multiplies a size into the product. */
static hr_status times(hr_quantity size, const char *name, hr_quantity *product, hr_error *err)
{
    hr_error inner;
    if (size.dimension != HR_AUDIT_PLAIN || size.value < 0)
        return hr_fail(err, HR_USAGE, "%s is a count, without a unit and not negative", name);
    if (hr_quantity_apply('*', size, *product, product, &inner) != HR_OK)
        return hr_fail(err, HR_USAGE, "%s: %s", name, inner.message);
    return HR_OK;
}

static hr_status times_dtype(const binding *b, hr_quantity *product, hr_error *err)
{
    const int32_t at = find_name(b, "dtype");
    if (at < 0) return HR_OK;
    const hr_argument *given = b->given[at];
    if (given && !given->value.is_text)
        return hr_fail(err, HR_USAGE, "dtype takes a name such as bf16");
    const char *name = given ? given->value.text : b->defaults[at];
    const double bytes = dtype_size(name);
    if (bytes == 0) return fail_dtype(name, err);
    product->dimension = HR_AUDIT_PLAIN;
    return hr_quantity_apply('*', hr_quantity_of_real(bytes, HR_AUDIT_BYTES), *product, product,
                             err);
}

/* The product of all sizes that were given, "..." first. */
static hr_status multiply(const hr_formula *formula, const binding *b, const hr_argument *arguments,
                          int32_t count, hr_quantity *product, hr_error *err)
{
    hr_status status = HR_OK;
    int32_t sizes = 0;
    for (int32_t i = 0; b->any_sizes && status == HR_OK && i < count; i++) {
        if (*arguments[i].name || arguments[i].value.is_text) continue;
        status = times(arguments[i].value.number, "a size", product, err);
        sizes++;
    }
    if (status == HR_OK && b->any_sizes && !sizes)
        return hr_fail(err, HR_USAGE, "%s: its sizes are missing, such as %s(512, 64)",
                       formula->name, formula->name);
    for (int32_t i = 0; status == HR_OK && i < b->count; i++) {
        const hr_argument *given = b->given[i];
        if (!strcmp(b->names[i], "dtype")) continue;
        if (given && given->value.is_text)
            return hr_fail(err, HR_USAGE, "%s of %s takes a number, not %.40s", b->names[i],
                           formula->name, given->value.text);
        if (given) status = times(given->value.number, b->names[i], product, err);
    }
    return status == HR_OK ? times_dtype(b, product, err) : status;
}

/* Parameters of the first argument: a number of them, or a model. */
static hr_status model_of(const hr_formula *formula, const binding *b, const hr_argument *arguments,
                          int32_t count, const char *folder, hr_quantity *product, hr_error *err)
{
    const hr_argument *first = b->given[0];
    int64_t parameters;
    for (int32_t i = 0; first && !first->value.is_text && i < count; i++)
        if (*arguments[i].name && find_name(b, arguments[i].name) < 0)
            return hr_fail(err, HR_USAGE, "%s belongs to a model, not to a number of parameters",
                           arguments[i].name);
    if (first && !first->value.is_text)
        return times(first->value.number, "the number of parameters", product, err);
    hr_argument keys[HR_ARGUMENTS_MOST];
    int32_t key_count = 0, named = 0;
    for (int32_t i = 0; i < count; i++) named += find_name(b, arguments[i].name) < 0;
    if (!first && !named)
        return hr_fail(
            err, HR_USAGE,
            "%s: its model is missing, such as %s(70M) or %s(\"presets/needle-70m.yaml\")",
            formula->name, formula->name, formula->name);
    for (int32_t i = 0; i < count; i++) {
        if (!*arguments[i].name || find_name(b, arguments[i].name) >= 0) continue;
        if (key_count == HR_ARGUMENTS_MOST) return hr_fail(err, HR_USAGE, "too many arguments");
        keys[key_count++] = arguments[i];
    }
    const hr_status status = hr_model_parameters(first ? first->value.text : "", folder, keys,
                                                 key_count, &parameters, err);
    *product = hr_quantity_of(parameters, HR_AUDIT_PLAIN);
    return status;
}

/* rank x (inputs + outputs) */
static hr_status adapter(const binding *b, hr_quantity *product, hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t i = 0; status == HR_OK && i < b->count; i++) {
        hr_quantity ignored = hr_quantity_of(0, HR_AUDIT_PLAIN);
        if (b->given[i]->value.is_text)
            return hr_fail(err, HR_USAGE, "%s of lora takes a number, not %.40s", b->names[i],
                           b->given[i]->value.text);
        status = times(b->given[i]->value.number, b->names[i], &ignored, err);
    }
    if (status == HR_OK)
        status = hr_quantity_apply('+', b->given[1]->value.number, b->given[2]->value.number,
                                   product, err);
    return status == HR_OK ? times(b->given[0]->value.number, "rank", product, err) : status;
}

hr_status hr_formula_apply(const hr_formula *formula, const hr_argument *arguments, int32_t count,
                           const char *folder, hr_quantity *out, hr_error *err)
{
    binding b = read_takes(formula);
    hr_quantity product = hr_quantity_of(1, HR_AUDIT_PLAIN);
    hr_status status = bind(formula, arguments, count, &b, err);
    if (status != HR_OK) return status;
    if (!strcmp(formula->name, "lora")) status = adapter(&b, &product, err);
    else if (b.model) {
        status = model_of(formula, &b, arguments, count, folder, &product, err);
        if (status == HR_OK) status = times_dtype(&b, &product, err);
    } else status = multiply(formula, &b, arguments, count, &product, err);
    const bool twice = !strcmp(formula->name, "kv_cache") || !strcmp(formula->name, "adam");
    if (status == HR_OK && twice)
        status = hr_quantity_apply('*', hr_quantity_of(2, HR_AUDIT_PLAIN), product, &product, err);
    /* The weights of attention have T twice. */
    if (status == HR_OK && !strcmp(formula->name, "scores"))
        status = hr_quantity_apply('*', b.given[0]->value.number, product, &product, err);
    if (status == HR_OK) *out = product;
    return status;
}
