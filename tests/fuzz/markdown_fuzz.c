/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a text with claims: every claim and every listed line is in the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "audit/findings.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static hr_audit_report report;
    int64_t lines = 1;
    char *text = malloc(count + !count);
    memcpy(text, bytes, count);
    memset(&report, 0, sizeof report);
    hr_audit_markdown(text, (int64_t)count, &report);
    for (size_t i = 0; i < count; i++) lines += text[i] == '\n';
    for (int32_t i = 0; i < report.claim_count; i++)
        if (report.claims[i].line < 1 || report.claims[i].line > lines ||
            !report.claims[i].stated[0])
            abort();
    for (int32_t i = 0; i < report.unread_count; i++)
        if (report.unread[i].line < 1 || report.unread[i].line > lines) abort();
    free(text);
    return 0;
}
