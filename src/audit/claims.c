/* SPDX-License-Identifier: Apache-2.0 */
/* audit/claims.c - a file of claims: a list of {claim: "37.09 GB", is: logits(...)}. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/expression.h"
#include "audit/findings.h"
#include "config/yaml_events.h"

typedef struct {
    const hr_entry *claim, *is, *where;
} fields;

static const struct {
    const char *name;
    int32_t offset;
} known[] = { { "claim", offsetof(fields, claim) },
              { "is", offsetof(fields, is) },
              { "where", offsetof(fields, where) } };
enum { KNOWN = sizeof known / sizeof *known };

/* Splits "claims[12].is" into 12 and "is". Returns null for any other name. */
static const char *split(const char *key, int64_t *index)
{
    char *end;
    if (!strncmp(key, "claims", 6)) key += 6;
    if (*key != '[') return NULL;
    *index = strtoll(key + 1, &end, 10);
    return end[0] == ']' && end[1] == '.' ? end + 2 : NULL;
}

static hr_status fail_at(const char *path, const hr_entry *entry, const char *what, hr_error *err)
{
    return hr_yaml_fail(path, entry->line, what, err);
}

static hr_status put(const char *path, const hr_entry *entry, const char *name, fields *f,
                     hr_error *err)
{
    char sentence[160];
    for (int32_t i = 0; i < KNOWN; i++) {
        if (!strcmp(known[i].name, name)) {
            memcpy((char *)f + known[i].offset, &entry, sizeof entry);
            return HR_OK;
        }
    }
    snprintf(sentence, sizeof sentence,
             "%.40s is no key of a claim; the nearest is %s (claim, is and where are read)", name,
             known[hr_audit_nearest(name, known, sizeof *known, KNOWN)].name);
    return fail_at(path, entry, sentence, err);
}

/* Makes the dimension of the claim that of its formula, or says why it cannot be. */
static const char *match(hr_stated *stated, hr_audit_dimension right)
{
    if (stated->dimension == right) return NULL;
    if (right == HR_AUDIT_BYTES && !strcmp(stated->unit, "B")) {
        stated->value /= stated->scale;
        stated->step /= stated->scale;
        stated->scale = 1;
        stated->dimension = right;
        return NULL;
    }
    if (stated->dimension == HR_AUDIT_SECONDS && right == HR_AUDIT_PLAIN)
        return "the claim is a time, but its formula gives a plain number; give that a unit, "
               "such as * 1 s";
    if (right == HR_AUDIT_BYTES) return "the formula gives bytes; give the claim a unit such as MB";
    return stated->dimension == HR_AUDIT_BYTES
               ? "the claim is in bytes, but its formula gives a plain number"
               : "the claim and its formula have different units";
}

static hr_status judge(const char *path, const char *folder, const fields *f,
                       hr_audit_report *report, hr_error *err)
{
    hr_error inner;
    hr_stated stated;
    hr_quantity right;
    hr_audit_claim claim = { .line = f->claim->line };
    hr_status status = hr_stated_parse(f->claim->value, &stated, &inner);
    if (status != HR_OK) return fail_at(path, f->claim, inner.message, err);
    status = hr_expression_evaluate(f->is->value, folder, &right, &inner);
    if (status != HR_OK) return fail_at(path, f->is, inner.message, err);
    const char *why = match(&stated, right.dimension);
    if (why) return fail_at(path, f->claim, why, err);
    snprintf(claim.stated, sizeof claim.stated, "%s", f->claim->value);
    snprintf(claim.formula, sizeof claim.formula, "%s", f->is->value);
    if (f->where) snprintf(claim.where, sizeof claim.where, "%s", f->where->value);
    hr_claim_judge(&stated, right, &claim);
    hr_audit_add(report, &claim);
    return HR_OK;
}

static hr_status end_claim(const char *path, const char *folder, const fields *f, int64_t line,
                           hr_audit_report *report, hr_error *err)
{
    if (!f->claim || !f->is)
        return hr_yaml_fail(
            path, line, f->claim ? "a claim without its formula: is" : "a formula without a claim",
            err);
    return judge(path, folder, f, report, err);
}

hr_status hr_audit_claims(const char *path, hr_entries *entries, hr_audit_report *report,
                          hr_error *err)
{
    char folder[HR_PATH_BYTES];
    fields f = { NULL };
    int64_t current = -1, line = 1;
    hr_status status = HR_OK;
    hr_audit_folder(path, folder);
    for (int32_t i = 0; status == HR_OK && i < entries->count; i++) {
        const hr_entry *entry = &entries->list[i];
        int64_t index = 0;
        const bool alone = !strchr(entry->key, '[') && !strchr(entry->key, '.');
        const char *name = alone ? entry->key : split(entry->key, &index);
        if (!name) return fail_at(path, entry, "not a list of claims: {claim: ..., is: ...}", err);
        if (index != current && current >= 0)
            status = end_claim(path, folder, &f, line, report, err);
        if (index != current) f = (fields){ NULL };
        current = index;
        line = entry->line;
        if (status == HR_OK) status = put(path, entry, name, &f, err);
    }
    return status == HR_OK ? end_claim(path, folder, &f, line, report, err) : status;
}
