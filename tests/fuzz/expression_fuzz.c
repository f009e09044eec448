/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as the formula of a claim, and as its number: a value, or one sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "audit/expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    hr_error err = { HR_OK, "" };
    hr_quantity value;
    hr_stated stated;
    hr_audit_claim claim = { 0 };
    char *text = malloc(count + 1);
    memcpy(text, bytes, count);
    text[count] = 0;
    const hr_status status = hr_expression_evaluate(text, "", &value, &err);
    if (status != HR_OK && (status != HR_USAGE || !err.message[0])) abort();
    if (status == HR_OK && !(value.value > -1e19 && value.value < 1e19)) abort();
    if (hr_stated_parse(text, &stated, &err) == HR_OK) {
        if (!(stated.step > 0)) abort();
        hr_claim_judge(&stated, status == HR_OK ? value : hr_quantity_of(1, HR_AUDIT_BYTES),
                       &claim);
        if (!claim.sentence[0]) abort();
    }
    free(text);
    return 0;
}
