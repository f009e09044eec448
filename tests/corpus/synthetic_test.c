/* SPDX-License-Identifier: Apache-2.0 */
/* synthetic_test.c - synthetic ids: the same on every machine, distributed as documented, and texts
 * of a recipe like others. tests/corpus/synthetic_ids.py computes the fixed ids a second time. */
#include "corpus_case.h"

#include <math.h>

#include "corpus/synthetic.h"

enum { AT_ONCE = HR_SYNTHETIC_AT_ONCE };
static uint32_t ids[AT_ONCE];

static void fixed_seeds_give_fixed_ids(void **state)
{
    (void)state;
    static const struct {
        int64_t V, seed;
        uint32_t lane, ids[10];
    } known[] = {
        { 256, 0, 0, { 156, 59, 188, 27, 220, 251, 2, 21, 2, 2 } },
        { 10000, 0, 0, { 3996, 2635, 7532, 2763, 2876, 875, 4, 7219, 4, 4 } },
        { 7, 3, 1, { 2, 4, 1, 2, 4, 1, 2, 0, 3, 6 } },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        hr_synthetic s;
        hr_synthetic_begin(&s, known[i].V, 10, (uint64_t)known[i].seed, known[i].lane, ids);
        assert_int_equal(hr_synthetic_next(&s), 10);
        assert_memory_equal(ids, known[i].ids, sizeof known[i].ids);
        assert_int_equal(hr_synthetic_next(&s), 0);
    }
}

static void the_successor_permutes_the_ids_of_every_vocabulary(void **state)
{
    (void)state;
    for (int64_t V = 1; V <= 300; V++) {
        bool hit[300] = { false };
        hr_synthetic s;
        hr_synthetic_begin(&s, V, 100, (uint64_t)V, 0, ids);
        assert_in_range(s.a, 1, V > 1 ? V - 1 : 1);
        for (int64_t x = 0; x < V; x++) {
            const int64_t y = (s.a * x + s.c) % V;
            assert_false(hit[y]);
            hit[y] = true;
        }
    }
}

/* Probability that an id is drawn, by the definition in corpus/synthetic.h. */
static double drawn(int64_t V, int64_t id)
{
    int32_t octaves = 0;
    double sum = 0;
    for (int64_t rest = V; rest; rest >>= 1) octaves++;
    for (int32_t e = 0; e < octaves; e++)
        for (int64_t k = (INT64_C(1) << e) - 1; k < (INT64_C(2) << e) - 1; k++)
            if (k % V == id) sum += 1.0 / octaves / (double)(INT64_C(1) << e);
    return sum;
}

/* Counts of n trials with probability p lie within five standard deviations. */
static void check_count(int64_t V, int64_t id, int64_t count, double n, double p)
{
    if (fabs((double)count - n * p) > 5 * sqrt(n * p * (1 - p)) + 1)
        fail_msg("V %lld, id %lld: %lld of %.0f, expected %.0f", (long long)V, (long long)id,
                 (long long)count, n, n * p);
}

/* Given the id before, the next one is its successor or drawn: P(y|x) = z(y) / 4 + [y = S(x)] 3/4.
 */
static void transitions_have_the_documented_probabilities(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 1, 2, 3, 7, 64, 100, 256 };
    enum { TOKENS = 1 << 18, V_MOST = 256 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        static int64_t others[V_MOST], pairs[V_MOST];
        const int64_t V = sizes[i];
        int64_t before = -1, followed = 0, count;
        hr_synthetic s;
        hr_synthetic_begin(&s, V, TOKENS, 20260401 + i, 0, ids);
        memset(others, 0, sizeof others);
        memset(pairs, 0, sizeof pairs);
        while ((count = hr_synthetic_next(&s)) > 0)
            for (int64_t k = 0; k < count; k++) {
                const int64_t id = ids[k];
                assert_true(id >= 0 && id < V);
                const bool successor = before >= 0 && id == (s.a * before + s.c) % V;
                if (before == 0) pairs[id]++;
                if (before >= 0) followed += successor;
                others[id] += !successor;
                before = id;
            }
        int64_t zeros = 0;
        for (int64_t id = 0; id < V; id++) zeros += pairs[id];
        for (int64_t id = 0; id < V; id++)
            check_count(V, id, pairs[id], (double)zeros,
                        drawn(V, id) / 4 + (id == s.c ? 0.75 : 0)); /* S(0) = c */
        assert_true((double)followed / (TOKENS - 1) > 0.745);
    }
}

static void the_largest_vocabulary_has_ids_below_it(void **state)
{
    (void)state;
    hr_synthetic s;
    int64_t most = 0, count;
    hr_synthetic_begin(&s, INT64_C(1) << 30, 3 * AT_ONCE + 5, UINT64_MAX, 1, ids);
    int64_t all = 0;
    while ((count = hr_synthetic_next(&s)) > 0) {
        for (int64_t i = 0; i < count; i++) most = ids[i] > most ? ids[i] : most;
        all += count;
    }
    assert_int_equal(all, 3 * AT_ONCE + 5);
    assert_in_range(most, INT64_C(1) << 29, (INT64_C(1) << 30) - 1);
}

/* ---- as texts of a recipe */

static int64_t count_tokens(const hr_documents *documents)
{
    hr_error err;
    hr_piece piece;
    int64_t count = 0;
    assert_true(documents->is_ids);
    assert_int_equal(documents->open(documents->context, "counting", NULL, &err), HR_OK);
    for (;;) {
        assert_int_equal(documents->next(documents->context, &piece, &err), HR_OK);
        if (!piece.path) break;
        assert_int_equal(piece.begins, count == 0);
        count += piece.count;
    }
    documents->close(documents->context);
    return count;
}

static void recipes_name_the_number_of_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *train, *valid;
        int64_t train_tokens, valid_tokens;
    } cases[] = {
        { "synthetic", "", HR_SYNTHETIC_TRAIN_TOKENS, 0 },
        { "synthetic", "synthetic", HR_SYNTHETIC_TRAIN_TOKENS, HR_SYNTHETIC_VALID_TOKENS },
        { "synthetic tokens=100000", "2%", 98000, 2000 },
        { " synthetic seed=9  tokens=50001 ", "synthetic tokens=17", 50001, 17 },
        { "", "synthetic tokens=99", 0, 99 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_corpus_case opened;
        hr_error err;
        const hr_corpus_desc desc = hr_corpus_case_desc(cases[i].train, cases[i].valid);
        assert_int_equal(hr_corpus_case_open(&opened, &desc, &err), HR_OK);
        const hr_corpus_view *view = hr_corpus_texts(opened.corpus);
        if (cases[i].train_tokens)
            assert_int_equal(count_tokens(&view->train[0].documents), cases[i].train_tokens);
        else assert_int_equal(view->train_count, 0);
        assert_int_equal(view->has_valid, cases[i].valid_tokens > 0);
        if (view->has_valid)
            assert_int_equal(count_tokens(&view->valid.documents), cases[i].valid_tokens);
        assert_null(hr_corpus_file(opened.corpus, &view->valid, 0));
        assert_null(hr_corpus_file(opened.corpus, &view->train[0], 0));
        hr_corpus_case_close(&opened);
    }
}

static hr_text_hash hash_of(const char *train, const char *valid, bool validation)
{
    hr_corpus_case opened;
    hr_error err;
    hr_text_hash hash;
    int64_t bytes;
    const hr_corpus_desc desc = hr_corpus_case_desc(train, valid);
    assert_int_equal(hr_corpus_case_open(&opened, &desc, &err), HR_OK);
    const hr_corpus_view *view = hr_corpus_texts(opened.corpus);
    const hr_documents *documents = validation ? &view->valid.documents : &view->train[0].documents;
    assert_int_equal(documents->identify(documents->context, NULL, &hash, &bytes, &err), HR_OK);
    assert_true(bytes > 0);
    hr_corpus_case_close(&opened);
    return hash;
}

static void the_identity_is_of_seed_tokens_and_side(void **state)
{
    (void)state;
    const hr_text_hash hash = hash_of("synthetic", "synthetic", false);
    assert_true(hr_text_hash_equal(hash, hash_of("synthetic seed=0 tokens=4194304", "", false)));
    assert_false(hr_text_hash_equal(hash, hash_of("synthetic seed=1", "", false)));
    assert_false(hr_text_hash_equal(hash, hash_of("synthetic tokens=4194303", "", false)));
    assert_false(hr_text_hash_equal(hash, hash_of("synthetic", "50%", false)));
    const hr_text_hash valid = hash_of("synthetic seed=5", "synthetic", true);
    assert_true(hr_text_hash_equal(valid, hash_of("synthetic seed=5", "synthetic seed=5", true)));
    assert_false(hr_text_hash_equal(valid, hash_of("synthetic", "synthetic", true)));
    assert_false(hr_text_hash_equal(hash_of("synthetic tokens=99", "", false),
                                    hash_of("synthetic", "synthetic tokens=99", true)));
}

static void wrong_descriptions_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        { "synthetic; a.txt", "", "data.train: synthetic is a whole text; remove the other parts" },
        { "a.txt", "synthetic; synthetic",
          "data.valid: synthetic is a whole text; remove the other parts" },
        { "synthetic", "a.txt",
          "data.train is synthetic and data.valid is not: use synthetic for both, or a share such "
          "as data.valid=5%" },
        { "a.txt", "synthetic",
          "data.valid is synthetic and data.train is not: use synthetic for both" },
        { "synthetic tokens=1", "",
          "data.train: tokens=1 of synthetic: takes an integer from 2 to 1099511627776" },
        { "synthetic tokens=many", "",
          "data.train: tokens=many of synthetic: takes an integer from 2 to 1099511627776" },
        { "synthetic seed=-1", "", "data.train: seed=-1 of synthetic: takes an integer from 0 on" },
        { "synthetic weight=1", "",
          "data.train: synthetic takes tokens=N and seed=N; got \"synthetic weight=1\"" },
        { "synthetic text.txt", "",
          "data.train: synthetic takes tokens=N and seed=N; got \"synthetic text.txt\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_error err;
        const hr_corpus_desc desc = hr_corpus_case_desc(cases[i][0], cases[i][1]);
        assert_int_equal(hr_corpus_read(&desc, &err), HR_USAGE);
        assert_string_equal(err.message, cases[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_seeds_give_fixed_ids),
        cmocka_unit_test(the_successor_permutes_the_ids_of_every_vocabulary),
        cmocka_unit_test(transitions_have_the_documented_probabilities),
        cmocka_unit_test(the_largest_vocabulary_has_ids_below_it),
        cmocka_unit_test(recipes_name_the_number_of_tokens),
        cmocka_unit_test(the_identity_is_of_seed_tokens_and_side),
        cmocka_unit_test(wrong_descriptions_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
