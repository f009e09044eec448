/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/inherit.h - the merges of a first stage, made again where words are longer.
 *
 * Between two bytes that no inherited merge ever joins a word can be cut; what lies between such
 * cuts, an atom, is there again and again and is merged once. */
#ifndef HR_TOKENIZER_TRAIN_INHERIT_H
#define HR_TOKENIZER_TRAIN_INHERIT_H

#include "headroom/status.h"
#include "tokenizer/train/token_table.h"

typedef struct {
    uint32_t left, right, joined; /* ids of the inherited vocabulary; HR_NO_TOKEN: has no token */
} hr_inherited_merge;

/* For reading, once it is made. Ids below 256 are bytes. */
typedef struct {
    hr_vocabulary vocabulary;
    hr_inherited_merge *merges; /* [count], in their order */
    uint64_t *ranks;            /* [1 << rank_bits] of pairs by open addressing: rank + 1 */
    uint8_t *first, *last;      /* bytes at the ends of a token */
    uint8_t joins[256][32];     /* bit b of joins[a]: some merge joins bytes a and b */
    int32_t rank_bits;
    int64_t count, characters_max;
} hr_inherited;

/* Lines of merges.txt that are looked at, the first being "#version"; the merges among them. */
int64_t hr_inherited_lines(const char *text, int64_t bytes, int64_t lines_max);

int64_t hr_inherited_bytes(int64_t merges);

/* Reads the first `lines_max` lines of a merges.txt: one less merges. Those that would make tokens
 * of `characters_max` characters or more are never made.
 * Errors  CORRUPT  a line that is not two words: says which. */
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

/* Scratch for atoms of up to so many bytes. */
int64_t hr_inherited_scratch_bytes(int64_t atom_bytes_most);

/* Merges an atom [bytes].
 *
 *   there   in, out [count]; set for merges that were there to be made at their turn, if only to
 *           vanish before: their pair stood in the atom when all merges of some rank were done
 *   tokens  out [bytes]; ids of the inherited vocabulary
 *
 * Returns how many. */
int64_t hr_inherited_merge_atom(const hr_inherited *inherited, uint8_t *there, const uint8_t *atom,
                                int64_t bytes, void *scratch, uint32_t *tokens);

#endif
