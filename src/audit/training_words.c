/* SPDX-License-Identifier: Apache-2.0 */
/* audit/training_words.c - sentences and words that the readers of training files share. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "audit/training.h"
#include "config/yaml_events.h"

bool hr_audit_contains(const char *text, const char *part)
{
    const size_t length = strlen(part);
    for (; *text; text++)
        if (!strncasecmp(text, part, length)) return true;
    return false;
}

void hr_audit_find(hr_audit_report *report, int64_t line, const char *format, ...)
{
    va_list list;
    if (report->finding_count == HR_AUDIT_FINDINGS_MOST) {
        report->findings_left_out++;
        return;
    }
    hr_audit_finding *to = &report->findings[report->finding_count++];
    to->line = line;
    va_start(list, format);
    vsnprintf(to->text, sizeof to->text, format, list);
    va_end(list);
}

hr_status hr_reading_fail(const hr_reading *r, const hr_entry *entry, const char *takes)
{
    char sentence[240];
    snprintf(sentence, sizeof sentence, "%.80s takes %s, not \"%.60s\"", entry->key, takes,
             entry->value);
    return hr_yaml_fail(r->path, entry->line, sentence, r->err);
}

const char *hr_audit_dtype_name(hr_audit_dtype dtype)
{
    static const char *const names[] = { "fp32", "bf16", "fp16", "int8", "nf4", "fp32" };
    return names[dtype];
}

const char *hr_audit_size(double bytes, char text[HR_AUDIT_VALUE_BYTES])
{
    return hr_quantity_print(hr_quantity_of_real(bytes, HR_AUDIT_BYTES), text);
}

const char *hr_audit_value(const hr_audit_report *report, const char *key)
{
    for (int32_t i = 0; i < report->key_count; i++)
        if (!strcmp(report->keys[i].key, key)) return report->keys[i].value;
    return NULL;
}
