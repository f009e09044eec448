/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/component.h - an object with a type in a tokenizer.json: a normalizer, pre-tokenizer,
 * post-processor or decoder, with the members of all types. */
#ifndef HR_TOKENIZER_COMPONENT_H
#define HR_TOKENIZER_COMPONENT_H

#include "base/json.h"
#include "tokenizer/tokenizer.h"

enum {
    HR_COMPONENT_TYPE_BYTES = 48,
    HR_COMPONENT_ITEMS_MAX = HR_TOKENIZER_AROUND_MAX,
    HR_COMPONENT_IDS_MAX = 4
};

/* Texts point into the file. */
typedef struct {
    char type[HR_COMPONENT_TYPE_BYTES];
    const char *pattern;
    int64_t pattern_bytes;
    bool is_string, has_behavior, inverts, individual, adds_space, uses_regex, has_children;
    hr_pretokenizer_behavior behavior;
    char unknown_behavior[32];
    /* Items of a template: special token names; null: the text. */
    const char *items[HR_COMPONENT_ITEMS_MAX];
    int64_t item_bytes[HR_COMPONENT_ITEMS_MAX];
    int32_t item_count;
    bool item_wrong;
    const char *names[HR_COMPONENT_ITEMS_MAX]; /* special tokens of a template, and their ids */
    int64_t name_bytes[HR_COMPONENT_ITEMS_MAX], ids[HR_COMPONENT_ITEMS_MAX][HR_COMPONENT_IDS_MAX];
    int32_t id_counts[HR_COMPONENT_ITEMS_MAX], name_count;
    int64_t sep, cls; /* of RobertaProcessing and BertProcessing; -1: none */
    const char *content, *prepend, *replacement, *map;
    int64_t content_bytes, prepend_bytes, replacement_bytes, map_bytes;
    char scheme[16];        /* of Metaspace; "": not in the file */
    bool unprefixed, whole; /* add_prefix_space is false; split is false */
    bool strip_left, strip_right;
    int64_t start, stop;
} hr_component;

/* Reads a member after its key. Members of no interest are skipped.
 *
 *   children  out, set to true: the value is an array of components, and is open now
 *
 * Returns false if the JSON is invalid or has an unexpected type. */
bool hr_component_read_member(hr_json *json, hr_component *c, bool *children);

#endif
