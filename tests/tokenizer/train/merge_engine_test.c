/* SPDX-License-Identifier: Apache-2.0 */
/* merge_engine_test.c - the engine and inherited merges against a trainer that recounts everything
 * for every merge, over random words of few letters, in which pairs overlap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "tokenizer/train/engine.h"
#include "tokenizer/train/inherit.h"

enum { WORDS = 24, LETTERS = 40, TOKENS = 64, ENTRIES = 4096, MERGES = 256, PAIRS = 128 };

/* ---- the slow trainer: words as lists of ids, texts of tokens as strings */

typedef struct {
    int a, b;
    int64_t count; /* at the last recount */
    bool words[WORDS];
    bool gone;
} entry;

typedef struct {
    int words[WORDS][LETTERS], lengths[WORDS];
    int64_t counts[WORDS];
    int word_count, token_count, entry_count, merge_count;
    char names[TOKENS + 1][512];
    int64_t kept[PAIRS][PAIRS]; /* what merging a pair left of its count */
    entry entries[ENTRIES];
    int merges[MERGES][2];
    int64_t longest; /* tokens have fewer characters */
} slow;

static int64_t count_pair(const slow *s, int a, int b)
{
    int64_t count = s->kept[a][b];
    for (int w = 0; w < s->word_count; w++)
        for (int i = 0; i + 1 < s->lengths[w]; i++)
            if (s->words[w][i] == a && s->words[w][i + 1] == b) count += s->counts[w];
    return count;
}

static void add_entry(slow *s, int a, int b, const bool words[WORDS], bool replaces)
{
    const int64_t count = count_pair(s, a, b);
    if (count <= 0) return;
    for (int i = 0; replaces && i < s->entry_count; i++)
        if (s->entries[i].a == a && s->entries[i].b == b) s->entries[i].gone = true;
    assert_true(s->entry_count < ENTRIES);
    entry *e = &s->entries[s->entry_count++];
    *e = (entry){ .a = a, .b = b, .count = count };
    memcpy(e->words, words, sizeof e->words);
}

static int token_of(slow *s, const char *name)
{
    for (int i = 0; i < s->token_count; i++)
        if (!strcmp(s->names[i], name)) return i;
    assert_true(s->token_count < TOKENS + 1);
    strcpy(s->names[s->token_count], name);
    return s->token_count++;
}

static bool may_grow(const slow *s, int a, int b)
{
    return (int64_t)(strlen(s->names[a]) + strlen(s->names[b])) < s->longest;
}

static void merge_slowly(slow *s, const entry *e, bool replaces)
{
    static bool gained[2][PAIRS][WORDS]; /* on the left of the new token, and on the right */
    char name[1024];
    const int a = e->a, b = e->b, before = s->token_count;
    snprintf(name, sizeof name, "%s%s", s->names[a], s->names[b]);
    assert_true(strlen(name) < 512);
    const int joined = token_of(s, name);
    assert_true(joined == before); /* no token is made twice: the engine relies on this */
    memset(gained, 0, sizeof gained);
    assert_true(s->merge_count < MERGES);
    s->merges[s->merge_count][0] = a;
    s->merges[s->merge_count++][1] = b;
    for (int w = 0; w < s->word_count; w++) {
        int *word = s->words[w], *length = &s->lengths[w];
        for (int i = 0; e->words[w] && i + 1 < *length; i++) {
            if (word[i] != a || word[i + 1] != b) continue;
            word[i] = joined;
            memmove(word + i + 1, word + i + 2, sizeof *word * (size_t)(--*length - i - 1));
            s->kept[a][b] += s->counts[w];
            if (i > 0 && may_grow(s, word[i - 1], joined)) gained[0][word[i - 1]][w] = true;
            if (i + 1 < *length && may_grow(s, joined, word[i + 1]))
                gained[word[i + 1] != joined][word[i + 1]][w] = true;
        }
    }
    for (int side = 0; side < 2; side++)
        for (int other = 0; other < s->token_count; other++) {
            bool any = false;
            for (int w = 0; w < s->word_count; w++) any = any || gained[side][other][w];
            if (!any) continue;
            if (side) add_entry(s, joined, other, gained[side][other], replaces);
            else add_entry(s, other, joined, gained[side][other], replaces);
        }
}

static void begin_slowly(slow *s)
{
    for (int a = 0; a < s->token_count; a++)
        for (int b = 0; b < s->token_count; b++) {
            bool words[WORDS] = { false };
            for (int w = 0; w < s->word_count; w++)
                for (int i = 0; i + 1 < s->lengths[w]; i++)
                    if (s->words[w][i] == a && s->words[w][i + 1] == b) words[w] = true;
            add_entry(s, a, b, words, false);
        }
}

static bool refused(const char *text)
{
    int parts = 0;
    for (const char *c = text; *c; c++) parts += *c != ' ' && (c == text || c[-1] == ' ');
    return strstr(text, ": ") || parts > 4;
}

static void train_slowly(slow *s, int tokens, int64_t least, bool filters)
{
    while (s->token_count < tokens) {
        entry *best = NULL;
        for (int i = 0; i < s->entry_count; i++) {
            entry *e = &s->entries[i];
            if (e->gone) continue;
            if (!best || e->count > best->count ||
                (e->count == best->count &&
                 (e->a < best->a || (e->a == best->a && e->b < best->b))))
                best = e;
        }
        if (!best) return;
        const int64_t now = count_pair(s, best->a, best->b);
        if (now != best->count) {
            best->count = now;
            continue;
        }
        if (now < 1 || now < least) return;
        char name[1024];
        snprintf(name, sizeof name, "%s%s", s->names[best->a], s->names[best->b]);
        best->gone = true;
        if (filters && refused(name)) continue;
        const entry taken = *best;
        merge_slowly(s, &taken, false);
    }
}

static bool inherit_slowly(slow *s, const char *left, const char *right)
{
    for (int i = s->entry_count - 1; i >= 0; i--) {
        entry *e = &s->entries[i];
        if (e->gone || strcmp(s->names[e->a], left) != 0 || strcmp(s->names[e->b], right) != 0)
            continue;
        e->gone = true;
        const entry taken = *e;
        merge_slowly(s, &taken, true);
        return true;
    }
    return false;
}

/* ---- the engine on the same words */

typedef struct {
    hr_engine engine;
    void *memory;
    hr_error err;
} fast;

static const char letters[] = "ab: cdefghij";

static void begin_fast(fast *f, const slow *s, int letter_count, const hr_engine_rules *rules,
                       int64_t positions, int64_t pairs)
{
    int64_t slots = 1;
    for (int w = 0; w < s->word_count; w++) slots += s->lengths[w];
    const hr_engine_sizes sizes = { .slots = slots,
                                    .positions = positions ? positions : 12 * slots + 4096,
                                    .pairs = pairs ? pairs : 16384,
                                    .tokens = TOKENS + 1,
                                    .leaves = 64,
                                    .merges = 4096,
                                    .words = s->word_count };
    const int64_t corpus_bytes = hr_engine_corpus_bytes(&sizes);
    const int64_t bytes = corpus_bytes + hr_engine_bytes(&sizes);
    f->memory = aligned_alloc(64, (size_t)bytes);
    memset(f->memory, 0xa5, (size_t)bytes);
    hr_region region = hr_region_over(f->memory, bytes);
    hr_engine *e = &f->engine;
    hr_engine_place_corpus(e, &region, &sizes);
    assert_true(region.used <= corpus_bytes);
    hr_engine_place(e, &region);
    e->rules = *rules;
    for (int i = 0; i < letter_count; i++)
        assert_int_equal(hr_vocabulary_leaf(&e->vocabulary, &letters[i], 1, letters[i]), i);
    int64_t at = 0;
    for (int w = 0; w < s->word_count; w++) {
        e->counts[w] = s->counts[w];
        for (int i = 0; i < s->lengths[w]; i++) {
            e->owners[at] = (uint32_t)w;
            e->slots[at++] = (uint32_t)s->words[w][i] | (i ? 0 : HR_SLOT_FIRST);
        }
    }
    e->slots[at++] = HR_SLOT_END;
    e->slot_count = at;
}

static void train_fast(fast *f)
{
    bool made = true;
    while (made) assert_int_equal(hr_engine_step(&f->engine, &made, &f->err), HR_OK);
}

static void expect_same(const fast *f, const slow *s)
{
    assert_int_equal(f->engine.vocabulary.count, s->token_count);
    assert_int_equal(f->engine.merge_count, s->merge_count);
    for (int i = 0; i < s->merge_count; i++) {
        assert_int_equal(f->engine.merges[i].left, s->merges[i][0]);
        assert_int_equal(f->engine.merges[i].right, s->merges[i][1]);
    }
}

static uint64_t seed = 1;

static int draw(int below)
{
    seed = hr_random_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (int)(seed >> 33) % below;
}

static void draw_words(slow *s, int letter_count)
{
    *s = (slow){ .word_count = 1 + draw(WORDS), .longest = INT64_MAX };
    for (int i = 0; i < letter_count; i++) {
        s->names[i][0] = letters[i];
        s->token_count++;
    }
    for (int w = 0; w < s->word_count; w++) {
        s->counts[w] = 1 + draw(draw(4) ? 3 : 50);
        s->lengths[w] = draw(LETTERS + 1);
        const int run = 1 + draw(6); /* pairs overlap in runs of one letter */
        for (int i = 0; i < s->lengths[w]; i++)
            s->words[w][i] = i && draw(run) ? s->words[w][i - 1] : draw(letter_count);
    }
}

static slow *one, *two;

static void merges_equal_those_of_recounting_each_time(void **state)
{
    (void)state;
    for (int round = 0; round < 1500; round++) {
        const int letter_count = 1 + draw(4);
        fast f;
        draw_words(one, letter_count);
        if (!draw(3)) one->longest = 2 + draw(8);
        const hr_engine_rules rules = { .vocabulary_max = letter_count + draw(TOKENS - 4),
                                        .least = draw(4),
                                        .characters_max = one->longest,
                                        .filters = !draw(3) };
        begin_fast(&f, one, letter_count, &rules, 0, 0);
        assert_int_equal(hr_engine_count(&f.engine, 1, &f.err), HR_OK);
        train_fast(&f);
        begin_slowly(one);
        train_slowly(one, (int)rules.vocabulary_max, rules.least, rules.filters);
        expect_same(&f, one);
        free(f.memory);
    }
}

/* Writes the merges of the slow trainer as merges.txt; returns its bytes. */
static int64_t spell_merges(const slow *s, char *text)
{
    int64_t bytes = sprintf(text, "#version: 0.2\n");
    for (int i = 0; i < s->merge_count; i++)
        for (int part = 0; part < 2; part++) {
            for (const char *c = s->names[s->merges[i][part]]; *c; c++)
                bytes += hr_byte_spell((uint8_t)*c, text + bytes);
            text[bytes++] = part ? '\n' : ' ';
        }
    return bytes;
}

static void expect_token(const slow *s, int expected, const hr_inherited *in, uint32_t id)
{
    char text[2048];
    int64_t bytes = 0;
    for (const char *c = s->names[expected]; *c; c++)
        bytes += hr_byte_spell((uint8_t)*c, text + bytes);
    assert_int_equal(hr_vocabulary_find(&in->vocabulary, text, bytes), id);
}

static void inherited_merges_equal_a_replay_one_by_one(void **state)
{
    (void)state;
    int dropped = 0, cuts = 0;
    char *text = malloc(1 << 20);
    for (int round = 0; round < 1000; round++) {
        const int letter_count = 2 + draw(3);
        uint8_t there[MERGES] = { 0 };
        draw_words(one, letter_count);
        *two = *one;
        begin_slowly(one);
        train_slowly(one, letter_count + draw(40), 0, false);
        if (draw(2))
            draw_words(two, letter_count); /* another text, in which some merges do not occur */
        const slow words = *two;
        begin_slowly(two);
        const int64_t bytes = spell_merges(one, text);
        const int64_t room = hr_inherited_bytes(one->merge_count + 1) + 4096;
        hr_region region = hr_region_over(aligned_alloc(64, (size_t)(room + 63) / 64 * 64), room);
        hr_inherited in;
        hr_error err;
        assert_int_equal(
            hr_inherited_place(&in, &region, "merges.txt", text, bytes, INT64_MAX, INT64_MAX, &err),
            HR_OK);
        assert_int_equal(in.count, one->merge_count);
        bool made[MERGES];
        for (int i = 0; i < one->merge_count; i++)
            made[i] = inherit_slowly(two, one->names[one->merges[i][0]],
                                     one->names[one->merges[i][1]]);
        for (int w = 0; w < words.word_count; w++) {
            uint8_t word[3 * LETTERS];
            uint32_t tokens[3 * LETTERS];
            char scratch[8192];
            int64_t at = 0, count = 0;
            const int64_t length = words.lengths[w];
            for (int i = 0; i < length; i++) word[i] = (uint8_t)letters[words.words[w][i]];
            assert_true(hr_inherited_scratch_bytes(length) <= (int64_t)sizeof scratch);
            while (at < length) {
                const int64_t atom = hr_inherited_atom(&in, word + at, length - at);
                count += hr_inherited_merge_atom(&in, there, word + at, atom, scratch,
                                                 tokens + count);
                at += atom;
                cuts += at < length;
            }
            assert_int_equal(count, two->lengths[w]);
            for (int i = 0; i < count; i++) expect_token(two, two->words[w][i], &in, tokens[i]);
        }
        for (int i = 0; i < one->merge_count; i++) {
            assert_int_equal(there[i], made[i]);
            dropped += !made[i];
        }
        free(region.base);
    }
    free(text);
    assert_true(dropped > 100 && cuts > 100);
}

/* Long atoms use a different algorithm. */
static void long_atoms_are_merged_like_short_ones(void **state)
{
    (void)state;
    static const char merges[] = "#version: 0.2\na b\nb a\na a\nab ab\naa aa\nabab a\nba b\nb b\n";
    const int64_t room = hr_inherited_bytes(16) + 4096;
    hr_region region = hr_region_over(aligned_alloc(64, (size_t)(room + 63) / 64 * 64), room);
    hr_inherited in;
    hr_error err;
    assert_int_equal(hr_inherited_place(&in, &region, "merges.txt", merges, sizeof merges - 1,
                                        INT64_MAX, INT64_MAX, &err),
                     HR_OK);
    for (int round = 0; round < 300; round++) {
        uint8_t atom[600], there[16] = { 0 }, expected_there[16] = { 0 };
        uint32_t tokens[600], expected[600];
        int64_t count = 100 + draw(500);
        for (int64_t i = 0; i < count; i++) atom[i] = draw(3) ? 'a' : 'b';
        for (int64_t i = 0; i < count; i++) expected[i] = atom[i];
        void *scratch = malloc((size_t)hr_inherited_scratch_bytes(count));
        const int64_t got = hr_inherited_merge_atom(&in, there, atom, count, scratch, tokens);
        for (int64_t rank = -1; rank < in.count; rank++) {
            int64_t to = 0;
            for (int64_t i = 0; i < count; i++) {
                const bool here = rank >= 0 && i + 1 < count &&
                                  expected[i] == in.merges[rank].left &&
                                  expected[i + 1] == in.merges[rank].right;
                expected[to++] = here ? in.merges[rank].joined : expected[i];
                i += here;
            }
            count = to;
            for (int64_t later = rank + 1; later < in.count; later++)
                for (int64_t i = 0; i + 1 < count; i++)
                    if (expected[i] == in.merges[later].left &&
                        expected[i + 1] == in.merges[later].right)
                        expected_there[later] = 1;
        }
        assert_int_equal(got, count);
        assert_memory_equal(tokens, expected, sizeof *tokens * (size_t)count);
        assert_memory_equal(there, expected_there, (size_t)in.count);
        free(scratch);
    }
    free(region.base);
}

static void invalid_lines_of_merges_are_named(void **state)
{
    (void)state;
    static const char *const wrong[] = { "#version: 0.2\na b\nab\n", "#version: 0.2\na b\nab c d\n",
                                         "#version: 0.2\na b\n c\n", "#version: 0.2\na b\nc \n",
                                         "#version: 0.2\na b\n\n" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int64_t bytes = (int64_t)strlen(wrong[i]), room = hr_inherited_bytes(8) + 4096;
        hr_region region = hr_region_over(aligned_alloc(64, (size_t)(room + 63) / 64 * 64), room);
        hr_inherited in;
        hr_error err;
        assert_int_equal(
            hr_inherited_place(&in, &region, "m.txt", wrong[i], bytes, INT64_MAX, INT64_MAX, &err),
            HR_CORRUPT);
        assert_string_equal(err.message, "m.txt: line 3 is not two tokens separated by a space");
        region.used = 0;
        assert_int_equal(
            hr_inherited_place(&in, &region, "m.txt", wrong[i], bytes, 2, INT64_MAX, &err), HR_OK);
        assert_int_equal(in.count, 1); /* the header counts as a line, as for `head -n 2` */
        free(region.base);
    }
}

/* With room for few pairs the floor rises and all pairs are recounted often. */
static void too_little_room_changes_no_merge(void **state)
{
    (void)state;
    int64_t recounts = 0;
    int floors = 0;
    for (int round = 0; round < 600; round++) {
        const int letter_count = 4 + draw(9);
        fast f;
        draw_words(one, letter_count);
        const hr_engine_rules rules = { .vocabulary_max = letter_count + 20,
                                        .characters_max = INT64_MAX };
        begin_slowly(one);
        *two = *one;
        train_slowly(one, (int)rules.vocabulary_max, 0, false);
        begin_fast(&f, two, letter_count, &rules, 8192, 2 * (letter_count + 20) + 3 + draw(8));
        assert_int_equal(hr_engine_count(&f.engine, 1, &f.err), HR_OK);
        floors += f.engine.floor_count > 1 || f.engine.floor_key != UINT64_MAX;
        train_fast(&f);
        expect_same(&f, one);
        recounts += f.engine.recounts - 1;
        free(f.memory);
    }
    assert_true(recounts > 100 && floors > 20);
}

static void an_error_says_what_does_not_fit(void **state)
{
    (void)state;
    fast f;
    *one = (slow){
        .word_count = 1, .lengths = { LETTERS }, .counts = { 1 }, .token_count = 1, .names = { "a" }
    };
    const hr_engine_rules rules = { .vocabulary_max = 9, .characters_max = INT64_MAX };
    begin_fast(&f, one, 1, &rules, 40, 300);
    assert_int_equal(hr_engine_count(&f.engine, 1, &f.err), HR_NO_FIT);
    assert_string_equal(
        f.err.message,
        "pairs: the most frequent token occurs 39 times, too often for 40 positions");
    free(f.memory);
}

static void equal_texts_share_one_id(void **state)
{
    (void)state;
    const int64_t bytes = hr_merge_vocabulary_bytes(16, 64);
    void *memory = aligned_alloc(64, (size_t)bytes);
    hr_region region = hr_region_over(memory, bytes);
    hr_vocabulary v;
    hr_vocabulary_place(&v, &region, 16, 64);
    const uint32_t special = hr_vocabulary_leaf(&v, "abc", 3, -1);
    const uint32_t a = hr_vocabulary_leaf(&v, "a", 1, 'a');
    const uint32_t b = hr_vocabulary_leaf(&v, "b", 1, 'b');
    const uint32_t c = hr_vocabulary_leaf(&v, "c", 1, 'c');
    assert_int_equal(hr_vocabulary_leaf(&v, "a", 1, 'a'), a);
    const uint32_t ab = hr_vocabulary_join(&v, a, b);
    assert_int_equal(ab, 4);
    assert_int_equal(hr_vocabulary_join(&v, ab, c), special);
    const uint32_t bc = hr_vocabulary_join(&v, b, c);
    assert_int_equal(hr_vocabulary_join(&v, a, bc), special);
    assert_int_equal(v.tokens[special].characters, 3);
    assert_int_equal(hr_vocabulary_find(&v, "bc", 2), bc);
    assert_int_equal(hr_vocabulary_find(&v, "cb", 2), HR_NO_TOKEN);
    free(memory);
}

/* The 256 characters in the order of GPT-2's bytes_to_unicode. */
static void bytes_map_to_the_characters_of_gpt2(void **state)
{
    (void)state;
    int others = 0;
    for (int byte = 0; byte < 256; byte++) {
        const bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
                            (byte >= 0xae && byte <= 0xff);
        const uint32_t expected = itself ? (uint32_t)byte : 256u + (uint32_t)others++;
        assert_int_equal(hr_byte_point((uint8_t)byte), expected);
    }
    assert_int_equal(others, 68);
    char text[HR_SPELL_BYTES];
    assert_int_equal(hr_byte_spell(' ', text), 2);
    assert_memory_equal(text, "\xc4\xa0", 2);
    assert_int_equal(hr_point_spell(0x20ac, text), 3);
    assert_memory_equal(text, "\xe2\x82\xac", 3);
    assert_int_equal(hr_point_spell(0x1f600, text), 4);
    assert_memory_equal(text, "\xf0\x9f\x98\x80", 4);
}

int main(void)
{
    one = malloc(sizeof *one);
    two = malloc(sizeof *two);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_equal_those_of_recounting_each_time),
        cmocka_unit_test(inherited_merges_equal_a_replay_one_by_one),
        cmocka_unit_test(long_atoms_are_merged_like_short_ones),
        cmocka_unit_test(invalid_lines_of_merges_are_named),
        cmocka_unit_test(too_little_room_changes_no_merge),
        cmocka_unit_test(an_error_says_what_does_not_fit),
        cmocka_unit_test(equal_texts_share_one_id),
        cmocka_unit_test(bytes_map_to_the_characters_of_gpt2),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(one);
    free(two);
    return failed;
}
