/* SPDX-License-Identifier: Apache-2.0 */
/* audit/markdown_judge.c - a claim of a text, with the uncertainty of its factors. */
#include <math.h>
#include <stdio.h>

#include "audit/markdown.h"

double hr_prose_slack(const hr_stated *number)
{
    const bool rounded = number->approximate ||
                         (number->scale >= 1000 && number->dimension == HR_AUDIT_PLAIN);
    return rounded && number->value > 0 ? number->step / 2 / number->value : 0;
}

bool hr_prose_is_true(const hr_stated *stated, double bytes, double slack)
{
    hr_audit_claim claim = { 0 };
    hr_claim_judge(stated, hr_quantity_of_real(bytes, HR_AUDIT_BYTES), &claim);
    return claim.verdict == HR_VERDICT_TRUE ||
           fabs(stated->value - bytes) <= slack * bytes + stated->step / 2;
}

void hr_prose_judge(const hr_prose_line *line, const hr_prose_token *stated, hr_quantity right,
                    double slack, const char *formula, hr_audit_report *report)
{
    hr_audit_claim claim = { .line = line->number };
    const bool of_column = stated->of_column;
    line->read[stated - line->tokens] = true;
    snprintf(claim.stated, sizeof claim.stated, "%.*s%s%s", (int)stated->length,
             line->text + stated->at, of_column && stated->number.power ? " " : "",
             of_column ? stated->number.unit : "");
    snprintf(claim.formula, sizeof claim.formula, "%s", formula);
    hr_claim_judge(&stated->number, right, &claim);
    if (claim.verdict != HR_VERDICT_TRUE && slack > 0 &&
        fabs(stated->number.value - right.value) <= slack * right.value + stated->number.step / 2) {
        claim.verdict = HR_VERDICT_TRUE;
        snprintf(claim.sentence, sizeof claim.sentence,
                 "true within the rounding of its factors: %s", claim.right);
    }
    hr_audit_add(report, &claim);
}
