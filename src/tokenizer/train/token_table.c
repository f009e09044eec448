/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/token_table.c - polynomial hashes mod 2^61 - 1: h(xy) = h(x) B^|y| + h(y). */
#include "tokenizer/train/token_table.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"

#define PRIME ((UINT64_C(1) << 61) - 1)
#define BASE UINT64_C(0x12345678f0e1d2c3)

static uint64_t times(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    const uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    const uint64_t sum = a + b;
    return sum >= PRIME ? sum - PRIME : sum;
}

static int32_t bits_for(int64_t tokens_max)
{
    int32_t bits = 4;
    while (INT64_C(1) << bits < 2 * tokens_max) bits++;
    return bits;
}

int64_t hr_merge_vocabulary_bytes(int64_t tokens_max, int64_t leaves_max)
{
    const int64_t tokens = tokens_max * (int64_t)sizeof(hr_vocabulary_token);
    const int64_t stack = (tokens_max + 1) * 4, slots = INT64_C(4) << bits_for(tokens_max);
    return hr_round_up(tokens, 64) + hr_round_up(stack, 64) + hr_round_up(slots, 64) +
           hr_round_up(leaves_max, 64);
}

void hr_vocabulary_place(hr_vocabulary *vocabulary, hr_region *region, int64_t tokens_max,
                         int64_t leaves_max)
{
    *vocabulary = (hr_vocabulary){ .tokens_max = tokens_max,
                                   .leaves_max = leaves_max,
                                   .slot_bits = bits_for(tokens_max) };
    vocabulary->tokens = hr_region_take(region, tokens_max, sizeof *vocabulary->tokens);
    vocabulary->stack = hr_region_take(region, tokens_max + 1, 4);
    vocabulary->slots = hr_region_take(region, INT64_C(1) << vocabulary->slot_bits, 4);
    vocabulary->leaves = hr_region_take(region, leaves_max, 1);
    HR_ASSERT(vocabulary->tokens && vocabulary->stack && vocabulary->slots && vocabulary->leaves);
}

/* Iterates over the leaves of a token or of a pair. Two such iterators compare texts. */
typedef struct {
    const hr_vocabulary *vocabulary;
    uint32_t left, right; /* the parts; left HR_NO_TOKEN: a leaf with text `text` */
    const uint8_t *text;
} spelling;

static const uint8_t *leaf_text(const hr_vocabulary *v, uint32_t id, int64_t *bytes)
{
    *bytes = v->tokens[id].bytes;
    return v->leaves + v->tokens[id].right;
}

/* Byte `at` of the text of a token. */
static uint8_t byte_at(const hr_vocabulary *v, uint32_t id, int64_t at)
{
    while (v->tokens[id].left != HR_NO_TOKEN) {
        const int64_t left_bytes = v->tokens[v->tokens[id].left].bytes;
        if (at < left_bytes) {
            id = v->tokens[id].left;
        } else {
            at -= left_bytes;
            id = v->tokens[id].right;
        }
    }
    return v->leaves[v->tokens[id].right + at];
}

static uint8_t spelling_at(const spelling *s, int64_t at)
{
    if (s->left == HR_NO_TOKEN) return s->text[at];
    const int64_t left_bytes = s->vocabulary->tokens[s->left].bytes;
    return at < left_bytes ? byte_at(s->vocabulary, s->left, at)
                           : byte_at(s->vocabulary, s->right, at - left_bytes);
}

static bool same(const hr_vocabulary *v, uint32_t id, const spelling *s, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        if (byte_at(v, id, i) != spelling_at(s, i)) return false;
    return true;
}

/* The slot of this text, or the free slot where it belongs. */
static uint32_t *find(const hr_vocabulary *v, const spelling *s, uint64_t hash, int64_t bytes)
{
    const uint64_t mask = (UINT64_C(1) << v->slot_bits) - 1;
    uint64_t i = hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - v->slot_bits);
    for (;; i = (i + 1) & mask) {
        const uint32_t slot = v->slots[i];
        if (!slot) return &v->slots[i];
        const hr_vocabulary_token *token = &v->tokens[slot - 1];
        if (token->hash == hash && token->bytes == bytes && same(v, slot - 1, s, bytes))
            return &v->slots[i];
    }
}

static void hash_text(const char *text, int64_t bytes, uint64_t *hash, uint64_t *power)
{
    *hash = 0;
    *power = 1;
    for (int64_t i = 0; i < bytes; i++) {
        *hash = plus(times(*hash, BASE % PRIME), (uint8_t)text[i] + UINT64_C(1));
        *power = times(*power, BASE % PRIME);
    }
}

uint32_t hr_vocabulary_find(const hr_vocabulary *v, const char *text, int64_t bytes)
{
    uint64_t hash, power;
    const spelling s = { v, HR_NO_TOKEN, 0, (const uint8_t *)text };
    hash_text(text, bytes, &hash, &power);
    return *find(v, &s, hash, bytes) - 1;
}

uint32_t hr_vocabulary_leaf(hr_vocabulary *v, const char *text, int64_t bytes, int32_t byte)
{
    uint64_t hash, power;
    const spelling s = { v, HR_NO_TOKEN, 0, (const uint8_t *)text };
    hash_text(text, bytes, &hash, &power);
    uint32_t *slot = find(v, &s, hash, bytes);
    if (!*slot) {
        HR_ASSERT(v->count < v->tokens_max && v->leaves_bytes + bytes <= v->leaves_max);
        memcpy(v->leaves + v->leaves_bytes, text, (size_t)bytes);
        v->tokens[v->count] = (hr_vocabulary_token){ .hash = hash,
                                                     .power = power,
                                                     .left = HR_NO_TOKEN,
                                                     .right = (uint32_t)v->leaves_bytes,
                                                     .bytes = bytes };
        v->leaves_bytes += bytes;
        *slot = ++v->count;
    }
    hr_vocabulary_token *token = &v->tokens[*slot - 1];
    token->characters = 1;
    token->words = byte != ' ';
    token->starts_space = token->ends_space = byte == ' ';
    token->ends_colon = byte == ':';
    return *slot - 1;
}

uint32_t hr_vocabulary_join(hr_vocabulary *v, uint32_t left, uint32_t right)
{
    const hr_vocabulary_token *a = &v->tokens[left], *b = &v->tokens[right];
    const uint64_t hash = plus(times(a->hash, b->power), b->hash);
    const int64_t bytes = a->bytes + b->bytes;
    const spelling s = { v, left, right, 0 };
    uint32_t *slot = find(v, &s, hash, bytes);
    if (!*slot) {
        HR_ASSERT(v->count < v->tokens_max);
        *slot = ++v->count;
        v->tokens[*slot - 1] = (hr_vocabulary_token){ .hash = hash,
                                                      .power = times(a->power, b->power),
                                                      .left = left,
                                                      .right = right,
                                                      .bytes = bytes };
    }
    /* A special token may have the same text. From now on it also occurs in the corpus. */
    hr_vocabulary_token *token = &v->tokens[*slot - 1];
    const int64_t characters = (int64_t)a->characters + b->characters;
    const int32_t words = a->words + b->words - (!a->ends_space && !b->starts_space);
    token->characters = (uint32_t)hr_min(characters, UINT32_MAX / 2);
    token->words = (uint16_t)hr_min(words, UINT16_MAX);
    token->starts_space = a->starts_space;
    token->ends_space = b->ends_space;
    token->ends_colon = b->ends_colon;
    token->has_colon_space = a->has_colon_space || b->has_colon_space ||
                             (a->ends_colon && b->starts_space);
    return *slot - 1;
}

bool hr_vocabulary_refuses(const hr_vocabulary *v, uint32_t left, uint32_t right)
{
    const hr_vocabulary_token *a = &v->tokens[left], *b = &v->tokens[right];
    return a->has_colon_space || b->has_colon_space || (a->ends_colon && b->starts_space) ||
           a->words + b->words - (!a->ends_space && !b->starts_space) > 4;
}

void hr_vocabulary_spell(const hr_vocabulary *v, uint32_t id, hr_vocabulary_put *put, void *context)
{
    int64_t depth = 0;
    v->stack[depth++] = id;
    while (depth > 0) {
        const uint32_t top = v->stack[--depth];
        if (v->tokens[top].left == HR_NO_TOKEN) {
            int64_t bytes;
            const uint8_t *text = leaf_text(v, top, &bytes);
            put(context, text, bytes);
            continue;
        }
        v->stack[depth++] = v->tokens[top].right;
        v->stack[depth++] = v->tokens[top].left;
    }
}

uint32_t hr_byte_point(uint8_t byte)
{
    if ((byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174) return byte;
    /* The other bytes in ascending order: 0 to 32, 127 to 160, 173. */
    if (byte <= 32) return 256u + byte;
    return byte == 173 ? 256u + 67 : 256u + 33 + (byte - 127u);
}

int32_t hr_point_spell(uint32_t point, char text[HR_SPELL_BYTES])
{
    if (point < 0x80) {
        text[0] = (char)point;
        return 1;
    }
    const int32_t bytes = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (int32_t i = bytes - 1; i > 0; i--, point >>= 6) text[i] = (char)(0x80 | (point & 0x3f));
    text[0] = (char)((0xf00 >> bytes & 0xff) | point);
    return bytes;
}

int32_t hr_byte_spell(uint8_t byte, char text[HR_SPELL_BYTES])
{
    return hr_point_spell(hr_byte_point(byte), text);
}
