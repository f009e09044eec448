/* SPDX-License-Identifier: Apache-2.0 */
/* text/word_table.h - a table of distinct words whose size is fixed before the first word is seen.
 *
 * Words are numbered in the order in which they were first seen; open addressing finds them again.
 * One table counts; another, filled from a vocabulary, turns words into ids. */
#ifndef HR_TEXT_WORD_TABLE_H
#define HR_TEXT_WORD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HR_WORDS_MAX = 1 << 27,  /* so that all text can be addressed with 32 bits */
    HR_WORDS_TEXT_BYTES = 16 /* bytes of text planned for a word, on average over the table */
};

/* Per word: 16 bytes here, 16 of text, 4 in each of 2 to 4 slots. */
typedef struct {
    uint32_t text, bytes; /* where its text lies in the table's */
    int64_t count;
} hr_word;

typedef struct {
    hr_word *words;  /* [words_max], in first-seen order */
    uint32_t *slots; /* [1 << slot_bits]; 0: free, else a word's index + 1 */
    uint8_t *text;
    int64_t words_max, word_count, text_max, text_bytes;
    int slot_bits;
} hr_word_table;

/* Bytes of a table for `words_max` words, 1 <= words_max <= HR_WORDS_MAX. Pure. */
int64_t hr_words_bytes(int64_t words_max);

/* Builds an empty table in memory [hr_words_bytes(words_max)], aligned to 64. */
hr_word_table hr_words_place(void *memory, int64_t words_max);

/* The same with so many bytes of text for all words together. */
int64_t hr_words_bytes_for(int64_t words_max, int64_t text_max);
hr_word_table hr_words_place_for(void *memory, int64_t words_max, int64_t text_max);

/* Forgets all words. */
void hr_words_clear(hr_word_table *table);

/* The hash by which a table finds a word. Pure. */
uint64_t hr_words_hash(const uint8_t *word, int64_t bytes);

/* Index of a word, or -1: it is not there. `hash` is the word's. Any thread. */
int64_t hr_words_find(const hr_word_table *table, const uint8_t *word, int64_t bytes,
                      uint64_t hash);

/* Index of a word, added with count 0 when it is new; -1: the table or its text is full. */
int64_t hr_words_add(hr_word_table *table, const uint8_t *word, int64_t bytes, uint64_t hash);

/* Writes the indices of the `most` most frequent words, most frequent first, ties in first-seen
 * order, into order [most]. Returns how many there are: most, or fewer where the table has fewer.
 * Cost  word_count x log(most). */
int64_t hr_words_rank(const hr_word_table *table, uint32_t *order, int64_t most);

#endif
