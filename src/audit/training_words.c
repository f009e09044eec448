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

static HR_PRINTF(4, 0) void add(hr_audit_report *report, int64_t line, bool decides,
                                const char *format, va_list list)
{
    report->doubt_count += decides;
    if (report->finding_count == HR_AUDIT_FINDINGS_MOST) {
        report->findings_left_out++;
        return;
    }
    hr_audit_finding *to = &report->findings[report->finding_count++];
    to->line = line;
    to->decides = decides;
    vsnprintf(to->text, sizeof to->text, format, list);
}

void hr_audit_find(hr_audit_report *report, int64_t line, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add(report, line, false, format, list);
    va_end(list);
}

void hr_audit_doubt(hr_audit_report *report, int64_t line, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add(report, line, true, format, list);
    va_end(list);
}

bool hr_audit_is_off(const char *value)
{
    static const char *const off[] = { "",     "false", "no", "off", "0", "0.0",
                                       "none", "null",  "[]", "{}",  "~" };
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (!strcasecmp(value, off[i])) return true;
    return false;
}

int64_t hr_audit_rows(const hr_audit_training *training)
{
    return training->preference && !training->single ? 2 : 1;
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
