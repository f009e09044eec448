/* SPDX-License-Identifier: Apache-2.0 */
/* audit/entries.h - a YAML or JSON file of any structure as a flat list: "lora_parameters.rank" or
 * "claims[3].claim", with its text and line.
 *
 * Anchors, aliases and merge keys (<<) of YAML are resolved: each use is a copy. The number of
 * entries and the bytes of their texts are bounded, so a small file cannot grow large. */
#ifndef HR_AUDIT_ENTRIES_H
#define HR_AUDIT_ENTRIES_H

#include <stdbool.h>

#include "base/region.h"
#include "headroom/status.h"

enum { HR_ENTRIES_MOST = 4096, HR_ENTRY_KEY_BYTES = 256, HR_ENTRY_DEPTH_MOST = 16 };

typedef struct {
    const char *key, *value; /* value of an empty list or map: "[]", "{}"; of null: "" */
    int64_t line;
    bool is_null;
    bool is_text; /* quoted, or a JSON string: never a number or a truth value */
    bool merged;  /* from a merge key; an entry of the same name replaces it */
    bool used;    /* for readers that list what they did not read */
} hr_entry;

typedef struct {
    hr_entry *list; /* [HR_ENTRIES_MOST] in the region */
    int32_t count;
    hr_region *region;
} hr_entries;

/* Read a file into `region`. Errors USAGE: path, line and what is wrong, such as a key that is
 * given twice. */
HR_MUST_CHECK hr_status hr_entries_read_yaml(const char *path, hr_region *region, hr_entries *out,
                                             hr_error *err);
HR_MUST_CHECK hr_status hr_entries_read_json(const char *path, const char *text, int64_t bytes,
                                             hr_region *region, hr_entries *out, hr_error *err);

/* The entry with that key, or null. Pure. */
hr_entry *hr_entries_find(const hr_entries *entries, const char *key);

/* Returns whether any entry is named so, or below it: "trainer" for "trainer.epochs". Pure. */
bool hr_entries_has(const hr_entries *entries, const char *key);

/* Adds an entry with copies of both texts, or replaces a merged one.
 * Errors   USAGE  the key is there already, or too many. */
HR_MUST_CHECK hr_status hr_entries_add(hr_entries *entries, const char *path, const hr_entry *entry,
                                       hr_error *err);

#endif
