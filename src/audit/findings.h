/* SPDX-License-Identifier: Apache-2.0 */
/* audit/findings.h - what the readers of the kinds of files share. */
#ifndef HR_AUDIT_FINDINGS_H
#define HR_AUDIT_FINDINGS_H

#include "audit/entries.h"
#include "audit/quantity.h"

/* Adds a judged claim, and one that was not checked. Beyond the limits they only count. */
void hr_audit_add(hr_audit_report *report, const hr_audit_claim *claim);
void hr_audit_skip(hr_audit_report *report, int64_t line, const char *text, int64_t length,
                   const char *why);

/* Checks the claims of a list {claim, is, where}. Errors USAGE. */
HR_MUST_CHECK hr_status hr_audit_claims(const char *path, hr_entries *entries,
                                        hr_audit_report *report, hr_error *err);

/* Checks the claims of a text. It is changed neither in content nor length. */
void hr_audit_markdown(const char *text, int64_t bytes, hr_audit_report *report);

/* The folder of a path; empty for the current one. Returns folder. */
const char *hr_audit_folder(const char *path, char folder[HR_PATH_BYTES]);

#endif
