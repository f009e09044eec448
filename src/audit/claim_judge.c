/* SPDX-License-Identifier: Apache-2.0 */
/* audit/claim_judge.c - a stated number beside the right one. */
#include <math.h>
#include <stdio.h>

#include "audit/quantity.h"

/* Rounding of a decimal number to binary must not decide. */
static bool near(double stated, double right, double tolerance)
{
    return fabs(stated - right) <= tolerance * (1 + 1e-9);
}

typedef enum { AS_ROUNDED, AS_CUT, AS_ABOUT, NOT } agreement;

static agreement agrees(const hr_stated *s, double right)
{
    if (s->relation == '<') return right < s->value ? AS_ROUNDED : NOT;
    if (s->relation == '>') return right > s->value ? AS_ROUNDED : NOT;
    if (s->relation == '+') return right >= s->value ? AS_ROUNDED : NOT;
    if (near(s->value, right, s->step / 2)) return AS_ROUNDED;
    if (right >= s->value && right < s->value + s->step) return AS_CUT;
    return s->approximate && near(s->value, right, s->step) ? AS_ABOUT : NOT;
}

/* What the unit would have to be for the digits to be right. */
static const char *other_unit(const hr_stated *s, double right, char text[96])
{
    static const char *const decimal[] = { "", "kB", "MB", "GB", "TB" };
    static const char *const binary[] = { "", "KiB", "MiB", "GiB", "TiB" };
    hr_stated other = *s;
    if (!s->power || s->relation != '=') return NULL;
    const double mantissa = s->value / s->scale, step = s->step / s->scale;
    const double scales[] = { pow(s->binary ? 1000 : 1024, s->power),
                              pow(1000, s->power - 1) * 1024, pow(1024, s->power - 1) * 1000 };
    for (int32_t i = 0; i < (s->power > 1 ? 3 : 1); i++) {
        other.value = mantissa * scales[i];
        other.step = step * scales[i];
        /* Digits that are cut off count only if there are enough of them to be no accident. */
        const bool cut = other.value >= 100 * other.step && right >= other.value &&
                         right < other.value + other.step;
        const double tolerance = s->approximate ? other.step : other.step / 2;
        if (!near(other.value, right, tolerance) && !cut) continue;
        if (!i) {
            snprintf(text, 96, "%s", (s->binary ? decimal : binary)[s->power]);
            return text;
        }
        const double whole = i == 1 ? 1000 : 1024, part = i == 1 ? 1024 : 1000;
        if (s->power == 2) snprintf(text, 96, "units of %.0f x %.0f bytes", whole, part);
        else snprintf(text, 96, "units of %.0f^%d x %.0f bytes", whole, s->power - 1, part);
        return text;
    }
    return NULL;
}

static void say_wrong(const hr_stated *s, double right, hr_audit_claim *claim)
{
    const double factor = s->value > 0 && right > 0 ? s->value / right : 0;
    char by[64] = "";
    if (factor >= 1.95) snprintf(by, sizeof by, "; the claim is %.3g times the true value", factor);
    else if (factor > 1)
        snprintf(by, sizeof by, "; the claim is %.1f %% too high", (factor - 1) * 100);
    else if (factor == 1) snprintf(by, sizeof by, ", which is neither less nor more");
    else if (factor > 0.513)
        snprintf(by, sizeof by, "; the claim is %.1f %% too low", (1 - factor) * 100);
    else if (factor > 0)
        snprintf(by, sizeof by, "; the true value is %.3g times the claim", 1 / factor);
    snprintf(claim->sentence, sizeof claim->sentence, "wrong: it is %s%s", claim->right, by);
}

void hr_claim_judge(const hr_stated *stated, hr_quantity right, hr_audit_claim *claim)
{
    char unit[96];
    hr_stated s = *stated;
    /* "8B" beside bytes means bytes only if written so; a plain number beside bytes is bytes. */
    hr_quantity_print(right, claim->right);
    if (s.percent) snprintf(claim->right, sizeof claim->right, "%.4g %%", right.value * 100);
    claim->dimension = right.dimension;
    claim->stated_value = s.value;
    claim->right_value = right.value;
    claim->right_whole = right.is_whole ? right.whole : -1;
    const agreement how = agrees(&s, right.value);
    claim->verdict = HR_VERDICT_TRUE;
    if (how == AS_ROUNDED)
        snprintf(claim->sentence, sizeof claim->sentence, "true: %s", claim->right);
    else if (how == AS_CUT)
        snprintf(claim->sentence, sizeof claim->sentence, "true, cut off and not rounded: %s",
                 claim->right);
    else if (how == AS_ABOUT)
        snprintf(claim->sentence, sizeof claim->sentence, "true as an approximation: %s",
                 claim->right);
    if (how != NOT) return;
    if (other_unit(&s, right.value, unit)) {
        claim->verdict = HR_VERDICT_UNIT;
        snprintf(claim->sentence, sizeof claim->sentence,
                 "wrong unit: the digits are right in %s; it is %s", unit, claim->right);
        return;
    }
    claim->verdict = HR_VERDICT_WRONG;
    say_wrong(&s, right.value, claim);
}
