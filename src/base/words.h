/* SPDX-License-Identifier: Apache-2.0 */
/* base/words.h - words of a text, separated by blanks or commas; groups end at a semicolon. */
#ifndef HR_BASE_WORDS_H
#define HR_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define HR_WORDS_BETWEEN " \t\r\n,"

enum { HR_WORD_BYTES = 512, HR_PATTERN_MOST = 126 /* letters of a pattern */ };

/* Whether a text ends in another. */
static inline bool hr_ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

/* The group after the one that starts at `group`; null: there is none. */
static inline const char *hr_words_next_group(const char *group)
{
    const char *end = strchr(group, ';');
    return end ? end + 1 : NULL;
}

/* Whether a word is KEY=VALUE. */
static inline bool hr_word_is_setting(const char *word)
{
    return *word != '/' && strchr(word, '=') != NULL;
}

/* The words from `at` to the end of a group. */
typedef struct {
    const char *at; /* text after the word */
    char text[HR_WORD_BYTES];
} hr_words;

/* Reads the next word. False at the end of the group. Truncates a word that is too long. */
static inline bool hr_words_next(hr_words *w)
{
    w->at += strspn(w->at, HR_WORDS_BETWEEN);
    const size_t length = strcspn(w->at, HR_WORDS_BETWEEN ";");
    snprintf(w->text, sizeof w->text, "%.*s", (int)length, w->at);
    w->at += length;
    return length > 0;
}

#endif
