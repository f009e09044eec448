/* SPDX-License-Identifier: Apache-2.0 */
/* audit/report.c - collects claims and unread lines within the limits of a report. */
#include <stdio.h>
#include <string.h>

#include "audit/findings.h"

const char *hr_audit_kind_word(hr_audit_kind kind)
{
#define WORD(id, word, text) [HR_AUDIT_##id] = word,
    static const char *const words[] = { HR_AUDIT_KIND_LIST(WORD) };
#undef WORD
    return kind >= 0 && kind < HR_AUDIT_KINDS ? words[kind] : "?";
}

const char *hr_audit_kind_text(hr_audit_kind kind)
{
#define TEXT(id, word, text) [HR_AUDIT_##id] = text,
    static const char *const texts[] = { HR_AUDIT_KIND_LIST(TEXT) };
#undef TEXT
    return kind >= 0 && kind < HR_AUDIT_KINDS ? texts[kind] : "?";
}

const char *hr_audit_folder(const char *path, char folder[HR_PATH_BYTES])
{
    const char *last = strrchr(path, '/');
    snprintf(folder, HR_PATH_BYTES, "%.*s", last ? (int)(last - path) : 0, path);
    if (last == path) snprintf(folder, HR_PATH_BYTES, "/");
    return folder;
}

void hr_audit_add(hr_audit_report *report, const hr_audit_claim *claim)
{
    report->verdicts[claim->verdict]++;
    if (report->claim_count == HR_AUDIT_CLAIMS_MOST) report->claims_left_out++;
    else report->claims[report->claim_count++] = *claim;
}

void hr_audit_skip(hr_audit_report *report, int64_t line, const char *text, int64_t length,
                   const char *why)
{
    if (report->unread_count == HR_AUDIT_UNREAD_MOST) {
        report->unread_left_out++;
        return;
    }
    hr_audit_unread *to = &report->unread[report->unread_count++];
    to->line = line;
    const int shown = (int)(length < HR_AUDIT_LINE_BYTES ? length : HR_AUDIT_LINE_BYTES - 1);
    snprintf(to->text, sizeof to->text, "%.*s", shown, text);
    snprintf(to->why, sizeof to->why, "%s", why);
}
