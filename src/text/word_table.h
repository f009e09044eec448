/* SPDX-License-Identifier: Apache-2.0 */
/* text/word_table.h - a hash table of distinct words with a fixed capacity.
 *
 * Words are numbered in the order of their first occurrence and found by open addressing. One table
 * counts; another one, filled from a vocabulary, maps words to ids. */
#ifndef HR_TEXT_WORD_TABLE_H
#define HR_TEXT_WORD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HR_WORD_BYTES = 64 * 1024, /* longer words are refused */
    HR_WORDS_MAX = 1 << 27,    /* all text can be addressed with 32 bits */
    HR_WORDS_TEXT_BYTES = 16   /* planned bytes of text per word, on average */
};

/* Memory per word: 16 bytes here, 16 of text, 4 in each of 2 to 4 slots. */
typedef struct {
    uint32_t text, bytes; /* position in the table's text */
    int64_t count;
} hr_word;

typedef struct {
    hr_word *words;  /* [words_max], by first occurrence */
    uint32_t *slots; /* [1 << slot_bits]; 0: free, else a word's index + 1 */
    uint8_t *text;
    int64_t words_max, word_count, text_max, text_bytes;
    int slot_bits;
} hr_word_table;

/* Bytes of a table for `words_max` words, 1 <= words_max <= HR_WORDS_MAX. Pure. */
int64_t hr_words_bytes(int64_t words_max);

/* Builds an empty table in memory [hr_words_bytes(words_max)], aligned to 64. */
hr_word_table hr_words_place(void *memory, int64_t words_max);

/* The same with `text_max` bytes for the text of all words. */
int64_t hr_words_bytes_for(int64_t words_max, int64_t text_max);
hr_word_table hr_words_place_for(void *memory, int64_t words_max, int64_t text_max);

/* Removes all words. */
void hr_words_clear(hr_word_table *table);

/* The hash of a word. Pure. */
uint64_t hr_words_hash(const uint8_t *word, int64_t bytes);

/* Index of a word, or -1 if it is absent. `hash` is the word's. Any thread. */
int64_t hr_words_find(const hr_word_table *table, const uint8_t *word, int64_t bytes,
                      uint64_t hash);

/* Index of a word; a new word is added with count 0. -1: the table or its text is full. */
int64_t hr_words_add(hr_word_table *table, const uint8_t *word, int64_t bytes, uint64_t hash);

/* Writes the indices of the `most` most frequent words into order [most], most frequent first, ties
 * by first occurrence. Returns their number: at most `most`, fewer if the table has fewer.
 * Cost  word_count x log(most). */
int64_t hr_words_rank(const hr_word_table *table, uint32_t *order, int64_t most);

#endif
