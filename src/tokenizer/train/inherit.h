/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/inherit.h - applies the merges of stage 1 to the words of stage 2.
 *
 * A word can be cut between two bytes that no inherited merge ever joins. The part between two
 * cuts, an atom, recurs often and is merged only once. */
#ifndef HR_TOKENIZER_TRAIN_INHERIT_H
#define HR_TOKENIZER_TRAIN_INHERIT_H

#include "headroom/status.h"
#include "tokenizer/train/token_table.h"

typedef struct {
    uint32_t left, right, joined; /* ids of the inherited vocabulary; HR_NO_TOKEN: not a token */
} hr_inherited_merge;

/* Read-only once it is built. Ids below 256 are bytes. */
typedef struct {
    hr_vocabulary vocabulary;
    hr_inherited_merge *merges; /* [count], in rank order */
    uint64_t *ranks;       /* [1 << rank_bits] hash table (open addressing) from pair to rank + 1 */
    uint8_t *first, *last; /* first and last byte of a token */
    uint8_t joins[256][32]; /* bit b of joins[a]: some merge joins byte a and byte b */
    int32_t rank_bits;
    int64_t count, characters_max;
} hr_inherited;

/* Number of lines of merges.txt that are used, including a "#version" header. */
int64_t hr_inherited_lines(const char *text, int64_t bytes, int64_t lines_max);

int64_t hr_inherited_bytes(int64_t merges);

/* Reads the first `lines_max` lines of a merges.txt; the header counts as a line. Merges that would
 * make tokens of `characters_max` characters or more are ignored.
 * Errors  CORRUPT  a line that is not two tokens, with its number. */
HR_MUST_CHECK hr_status hr_inherited_place(hr_inherited *inherited, hr_region *region,
                                           const char *path, const char *text, int64_t bytes,
                                           int64_t lines_max, int64_t characters_max,
                                           hr_error *err);

/* Bytes of word [bytes] up to the first cut. Pure. */
static inline int64_t hr_inherited_atom(const hr_inherited *inherited, const uint8_t *word,
                                        int64_t bytes)
{
    int64_t at = 1;
    while (at < bytes && inherited->joins[word[at - 1]][word[at] >> 3] >> (word[at] & 7) & 1) at++;
    return at;
}

/* Bytes of scratch for atoms of up to `atom_bytes_most` bytes. */
int64_t hr_inherited_scratch_bytes(int64_t atom_bytes_most);

/* Applies the merges to an atom [bytes].
 *
 *   there   in, out [count]; set for each merge whose pair is in the atom after all merges of some
 *           lower rank, even if another merge consumes the pair first
 *   tokens  out [bytes]; ids of the inherited vocabulary
 *
 * Returns the number of tokens. */
int64_t hr_inherited_merge_atom(const hr_inherited *inherited, uint8_t *there, const uint8_t *atom,
                                int64_t bytes, void *scratch, uint32_t *tokens);

#endif
