/* SPDX-License-Identifier: Apache-2.0 */
/* fit_test.c - the search against an enumerator that builds every strategy and asks the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "model/optimizer.h"
#include "ops/cpu.h"
#include "plan/compile.h"
#include "search/fit.h"
#include "support/random_freeze.h"

enum { SEED = 20261121, STRATEGIES_MOST = 20000, LAYERS_MOST = 16, BUDGETS = 9 };
enum { CASES = HR_COUNT < 15 ? 20 * HR_COUNT : 300 };

/* What a strategy comes to, by its program. */
typedef struct {
    int64_t floor, ps;
    hr_strategy strategy;
} built;

typedef struct {
    hr_config config;
    hr_rates rates;
    hr_fit fit;
    hr_region search, compile;
    built *list;
    int32_t count;
} scene;

static hr_region take(int64_t bytes)
{
    const int64_t rounded = (bytes + 63) / 64 * 64;
    void *memory = aligned_alloc(64, (size_t)rounded);
    assert_non_null(memory);
    return hr_region_over(memory, rounded);
}

/* Room for the deepest model of these tests, and rates that are guessed. */
static scene open_scene(void)
{
    scene s = { .count = 0 };
    hr_config largest;
    hr_config_default(&largest);
    largest.model.n_layers = LAYERS_MOST;
    largest.model.family = HR_FAMILY_GPT_NEO;
    largest.model.attention.sliding_window = 1;
    strcpy(largest.model.attention.layer_types, "full sliding"); /* takes more */
    largest.train.freeze[0] = '*';                               /* takes more */
    largest.memory.moments = HR_PLACE_FILE;                      /* takes more */
    largest.model.d_model = largest.model.d_ff = 800;
    largest.train.ema_decay = 0.9;
    largest.model.weights = HR_WEIGHTS_F8_E4M3; /* takes more */
    s.search = take(1);
    s.compile = take(hr_compile_bytes(&largest));
    hr_rates_guess(&hr_cpu_backend, hr_cpu_detect(), 2, &s.rates);
    return s;
}

static void close_scene(scene *s)
{
    free(s->list);
    free(s->search.base);
    free(s->compile.base);
}

static void build(scene *s, const hr_strategy *strategy, built *out)
{
    hr_error err;
    hr_compiled compiled;
    s->compile.used = 0;
    if (hr_compile_floor(&s->config, &hr_cpu_backend, strategy, 2, &s->compile, &compiled, &err) !=
        HR_OK)
        fail_msg("%s", err.message);
    *out = (built){ compiled.plan.floor_bytes, hr_cost_program(&compiled.program, &s->rates),
                    *strategy };
}

/* Every strategy of the space; false: there are too many. */
static bool enumerate(scene *s)
{
    static hr_intermediates kept[STRATEGIES_MOST][LAYERS_MOST];
    const int32_t layers = (int32_t)s->config.model.n_layers;
    int64_t micros[HR_FIT_MICROS_MOST], chunks[HR_FIT_CHUNKS_MOST];
    int64_t mlp[HR_FIT_TILES_MOST], attention[HR_FIT_TILES_MOST];
    const int32_t micro_count = hr_fit_micros(&s->config, micros);
    int64_t choices = 1;
    for (int32_t l = 0; l < layers; l++) choices *= s->fit.set_count;
    s->count = 0;
    for (int32_t m = 0; m < micro_count; m++) {
        const int32_t chunk_count = hr_fit_chunks(&s->config, micros[m], chunks);
        const int32_t mlps = hr_fit_mlp_tiles(&s->config, micros[m], mlp);
        const int32_t attentions = hr_fit_attention_tiles(&s->config, micros[m], attention);
        const int32_t lifetimes = micros[m] < s->config.train.batch ? 1 : 2;
        const int64_t grid = (int64_t)chunk_count * mlps * attentions * lifetimes * 2 * choices;
        if (s->count + grid > STRATEGIES_MOST) return false;
        for (int64_t i = 0; i < grid; i++) {
            int64_t at = i;
            hr_intermediates *recompute_set = kept[s->count];
            for (int32_t l = 0; l < layers; l++, at /= s->fit.set_count)
                recompute_set[l] = s->fit.sets[at % s->fit.set_count];
            hr_strategy strategy = { .micro_batch = micros[m] < s->config.train.batch ? micros[m]
                                                                                      : 0,
                                     .layer_count = layers,
                                     .recompute_set = recompute_set };
            strategy.loss_chunk = chunks[at % chunk_count], at /= chunk_count;
            strategy.mlp_tile = mlp[at % mlps], at /= mlps;
            strategy.attention_tile = attention[at % attentions], at /= attentions;
            strategy.consume = at % lifetimes, at /= lifetimes;
            strategy.dw_first = at;
            build(s, &strategy, &s->list[s->count++]);
        }
    }
    return true;
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = ((const built *)a)->floor, y = ((const built *)b)->floor;
    return (x > y) - (x < y);
}

/* The best of all that are within a limit. */
static const built *best_within(const scene *s, int64_t limit)
{
    const built *best = NULL;
    for (int32_t i = 0; i < s->count; i++) {
        const built *b = &s->list[i];
        if (b->floor > limit) continue;
        if (!best || b->ps < best->ps || (b->ps == best->ps && b->floor < best->floor)) best = b;
    }
    return best;
}

static void say(const scene *s, const char *who, const hr_strategy *st, int64_t floor, int64_t ps)
{
    print_message("%s: micro %lld chunk %lld mlp %lld attention %lld dw first %d consumed %d sets",
                  who, (long long)st->micro_batch, (long long)st->loss_chunk,
                  (long long)st->mlp_tile, (long long)st->attention_tile, st->dw_first,
                  st->consume);
    for (int64_t l = 0; l < s->config.model.n_layers; l++)
        print_message(" %03x", st->recompute_set[l]);
    print_message(", floor %lld, %lld ps\n", (long long)floor, (long long)ps);
}

static void compare(scene *s, uint64_t turn, int64_t limit)
{
    hr_intermediates recompute_set[LAYERS_MOST];
    hr_error err;
    built really;
    hr_fit_found found = { .strategy.recompute_set = recompute_set };
    const built *best = best_within(s, limit);
    const hr_status status = hr_fit_fastest(&s->fit, limit, &found, &err);
    if (!best) {
        assert_int_equal(status, HR_NO_FIT);
        return;
    }
    if (status != HR_OK) fail_msg("turn %llu: %s", (unsigned long long)turn, err.message);
    build(s, &found.strategy, &really);
    if (found.step_ps == best->ps && found.floor_bytes == best->floor && found.proven &&
        really.floor == found.floor_bytes && really.ps == found.step_ps)
        return;
    say(s, "best", &best->strategy, best->floor, best->ps);
    say(s, "found", &found.strategy, found.floor_bytes, found.step_ps);
    say(s, "really", &found.strategy, really.floor, really.ps);
    fail_msg("turn %llu: within %lld bytes", (unsigned long long)turn, (long long)limit);
}

/* Every other recipe freezes something, such that the remaining layers train the same
 * parameters. */
static void freeze(hr_config *config, uint64_t turn)
{
    const int32_t kind = turn % 2 ? (int32_t)between(SEED, turn, 36, 1, FREEZE_ANY - 1) : 0;
    random_freeze(config, kind, SEED, turn);
    (void)random_stored(config, SEED, turn);
}

/* Every third recipe keeps its moments in a file, if its optimizer can. Its layers are wide enough
 * for that. */
static void move_moments(hr_config *config, uint64_t turn)
{
    if (turn % 3 || hr_optimizers[config->train.optimizer.kind].whole) return;
    config->memory.moments = HR_PLACE_FILE;
    config->model.d_model *= 4;
    config->model.d_ff *= 4;
}

/* Opens the search of a recipe in the bytes that it says it needs. */
static void open_fit(scene *s)
{
    hr_error err;
    free(s->search.base);
    s->search = take(hr_fit_bytes(&s->config));
    if (hr_fit_open(&s->fit, &s->config, &s->rates, 2, &s->search, &err) != HR_OK)
        fail_msg("%s", err.message);
}

/* The same, and leaves `left` of the sets, the first and the last among them. */
static void open_search(scene *s, uint64_t turn, int32_t left)
{
    hr_error err;
    if (hr_config_check(&s->config, &err) != HR_OK) fail_msg("%s", err.message);
    s->compile.used = 0;
    open_fit(s);
    const int32_t all = s->fit.set_count;
    for (int32_t i = 1; i < left && i < all - 1; i++) {
        const int32_t j = (int32_t)between(SEED, turn, 40 + (uint32_t)i, i, all - 2);
        const hr_intermediates set = s->fit.sets[i];
        s->fit.sets[i] = s->fit.sets[j];
        s->fit.sets[j] = set;
    }
    if (all > left) {
        s->fit.sets[left - 1] = s->fit.sets[all - 1];
        s->fit.set_count = left;
    }
}

/* A recipe whose space is small enough: some knobs set, a few recompute sets left; or nearly all
 * recompute sets and no cuts. */
static void pose(scene *s, uint64_t turn)
{
    const bool many = turn % 8 == 3;
    s->config = random_config(SEED, turn);
    hr_config *config = &s->config;
    config->model.n_layers = between(SEED, turn, 30, 2, 4);
    config->memory.recompute = HR_RECOMPUTE_AUTO;
    config->train.seq_len = draw(SEED, turn, 31) % 2 ? 64 : config->train.seq_len;
    config->train.batch = between(SEED, turn, 32, 1, 4);
    if (many) {
        config->model.n_layers = 2;
        config->train.seq_len = 64;
        config->train.batch = 1;
        config->memory.loss_chunk = 64;
    }
    config->train.optimizer.clip = draw(SEED, turn, 35) % 2;
    if (draw(SEED, turn, 33) % 2) config->memory.micro_batch = config->train.batch;
    if (draw(SEED, turn, 34) % 2) config->memory.loss_chunk = 64 * config->train.seq_len;
    freeze(config, turn);
    move_moments(config, turn);
    if (turn % 5 == 1) config->memory.spill = HR_SPILL_AUTO;
    config->memory.recompute_again = turn % 4 == 1;
    config->memory.product_norm = turn % 4 == 2;
    const int32_t left = many ? (HR_COUNT > 1 ? 64 : 32) : config->model.n_layers > 2 ? 3 : 6;
    open_search(s, turn, left);
}

/* A recipe with full and sliding attention: in more layers than a proxy model has, in both orders,
 * in turn and in blocks. */
static void pose_mixed(scene *s, uint64_t turn)
{
    static const char *const lists[] = { "full sliding",     "sliding full",   "full*2 sliding*3",
                                         "sliding*4 full*2", "full sliding*2", "sliding full*4" };
    static const int32_t families[] = { HR_FAMILY_GPT_NEO, HR_FAMILY_QWEN2, HR_FAMILY_QWEN3 };
    const int32_t list = (int32_t)(turn % 6);
    s->config = random_config_of(families[turn / 6 % 3], SEED, turn);
    hr_config *config = &s->config;
    config->model.n_layers = list == 3 ? 6 : between(SEED, turn, 30, 5, 6);
    config->model.attention.pattern = 0;
    config->train.seq_len = 64 * between(SEED, turn, 31, 1, 2);
    config->model.attention.sliding_window = between(SEED, turn, 37, 1, config->train.seq_len - 1);
    strcpy(config->model.attention.layer_types, lists[list]);
    config->train.batch = between(SEED, turn, 32, 1, 2);
    config->memory.recompute = HR_RECOMPUTE_AUTO;
    config->memory.micro_batch = config->train.batch;
    if (turn % 3) config->memory.loss_chunk = 64;
    if (turn % 4 == 1) random_freeze(config, FREEZE_KINDS, SEED, turn);
    move_moments(config, turn);
    (void)random_stored(config, SEED, turn);
    open_search(s, turn, config->model.n_layers > 5 ? 2 : 3);
}

/* A recipe of sequences that are no multiple of 64, in micro-batches of one, of several, or of any
 * number. */
static void pose_odd(scene *s, uint64_t turn)
{
    s->config = random_config(SEED, turn);
    hr_config *config = &s->config;
    config->model.n_layers = 2;
    config->memory.recompute = HR_RECOMPUTE_AUTO;
    config->memory.loss_chunk = 0;
    config->train.seq_len = 64 * between(SEED, turn, 31, 1, 3) + between(SEED, turn, 38, 1, 63);
    config->train.batch = between(SEED, turn, 32, 1, 2);
    config->memory.micro_batch = turn % 3 == 1 ? 1 : turn % 3 == 2 ? config->train.batch : 0;
    freeze(config, turn);
    move_moments(config, turn);
    if (turn % 2) config->memory.spill = HR_SPILL_AUTO;
    config->memory.recompute_again = turn % 3 == 1;
    config->memory.product_norm = turn % 24 == 23; /* these have no tiles */
    open_search(s, turn, 4);
}

/* The least floor; the strategy that is said to have it, has it. No scene: not compared. */
static int64_t least_of(scene *s, hr_fit *fit, hr_intermediates *recompute_set)
{
    hr_fit_found found = { .strategy.recompute_set = recompute_set };
    hr_error err;
    built really;
    if (hr_fit_least(fit, INT64_MAX, 0, &found, &err) != HR_OK) fail_msg("%s", err.message);
    if (!s) return found.floor_bytes;
    build(s, &found.strategy, &really);
    if (really.floor != found.floor_bytes) {
        say(s, "found", &found.strategy, found.floor_bytes, 0);
        say(s, "really", &found.strategy, really.floor, really.ps);
        fail_msg("the smallest floor differs from its proxy models");
    }
    return found.floor_bytes;
}

/* A search that may end at the first floor of at most `enough` finds one, with its strategy; if
 * there is none, it finds the least. */
static void compare_enough(scene *s, int64_t least, int64_t enough)
{
    hr_intermediates sets[LAYERS_MOST];
    hr_fit_found found = { .strategy.recompute_set = sets };
    hr_error err;
    built really;
    if (hr_fit_least(&s->fit, INT64_MAX, enough, &found, &err) != HR_OK)
        fail_msg("%s", err.message);
    if (enough < least) assert_int_equal(found.floor_bytes, least);
    else assert_true(found.floor_bytes <= enough);
    build(s, &found.strategy, &really);
    if (really.floor == found.floor_bytes) return;
    say(s, "found", &found.strategy, found.floor_bytes, 0);
    say(s, "really", &found.strategy, really.floor, really.ps);
    fail_msg("a floor of at most %lld bytes differs from its proxy models", (long long)enough);
}

/* Compares the search with all strategies: the least floor, and the fastest within some limits. */
static void compare_all(scene *s, uint64_t turn)
{
    hr_intermediates lowest[LAYERS_MOST];
    qsort(s->list, (size_t)s->count, sizeof *s->list, ascending);
    const int64_t least = least_of(s, &s->fit, lowest);
    if (least != s->list[0].floor)
        say(s, "least", &s->list[0].strategy, s->list[0].floor, s->list[0].ps);
    assert_int_equal(least, s->list[0].floor);
    for (int32_t b = 0; b < BUDGETS; b++) {
        const int64_t limit = s->list[(int64_t)(s->count - 1) * b / (BUDGETS - 1)].floor;
        compare(s, turn, limit);
        compare_enough(s, least, limit);
    }
    compare(s, turn, least - 1);
    compare_enough(s, least, least - 1);
}

static void the_search_finds_what_an_enumerator_finds(void **state)
{
    scene s = open_scene();
    int32_t done = 0, consumed = 0, with_stored = 0;
    int64_t strategies = 0;
    (void)state;
    s.list = malloc(STRATEGIES_MOST * sizeof *s.list);
    print_message("seed %d\n", SEED);
    for (uint64_t turn = 0; done < CASES; turn++) {
        pose(&s, turn);
        if (!enumerate(&s)) continue;
        done++;
        with_stored += s.config.model.weights != HR_WEIGHTS_COMPUTE;
        strategies += s.count;
        for (int32_t i = 0; i < s.count; i++) consumed += s.list[i].strategy.consume;
        compare_all(&s, turn);
    }
    print_message("%d recipes, %d with stored weights, %lld strategies, %d of them with consumed "
                  "gradients\n",
                  done, with_stored, (long long)strategies, consumed);
    assert_true(with_stored > done / 8);
    close_scene(&s);
}

static void so_it_does_in_layers_of_two_kinds(void **state)
{
    scene s = open_scene();
    int32_t done = 0, mixed = 0;
    int64_t strategies = 0;
    (void)state;
    s.list = malloc(STRATEGIES_MOST * sizeof *s.list);
    for (uint64_t turn = 0; done < CASES; turn++) {
        pose_mixed(&s, turn);
        if (!enumerate(&s)) continue;
        done++;
        mixed += hr_proxy_is_mixed(&s.fit.proxy);
        strategies += s.count;
        compare_all(&s, turn);
    }
    print_message("%d recipes, %d with two kinds between the first and the last layer, %lld "
                  "strategies\n",
                  done, mixed, (long long)strategies);
    assert_true(mixed > CASES / 2);
    close_scene(&s);
}

static void so_it_does_for_sequences_of_any_length(void **state)
{
    scene s = open_scene();
    int32_t done = 0, cut = 0;
    (void)state;
    s.list = malloc(STRATEGIES_MOST * sizeof *s.list);
    for (uint64_t turn = 0; done < CASES; turn++) {
        pose_odd(&s, turn);
        if (!enumerate(&s)) continue;
        done++;
        for (int32_t i = 0; i < s.count; i++)
            cut += s.list[i].strategy.mlp_tile % s.config.train.seq_len != 0;
        compare_all(&s, turn);
    }
    print_message("%d recipes, %d strategies with tiles inside of sequences\n", done, cut);
    assert_true(cut > 100 * CASES);
    close_scene(&s);
}

/* For models that are too deep to enumerate: the predicted floor and time equal those of the
 * program, and a larger limit never gives a slower strategy. */
static void deep_models_match_their_proxy_models(void **state)
{
    scene s = open_scene();
    (void)state;
    for (uint64_t turn = 0; turn < 8 * HR_COUNT; turn++) {
        hr_intermediates recompute_set[LAYERS_MOST];
        hr_error err;
        built really;
        int64_t before = INT64_MAX;
        if (turn % 2) pose_mixed(&s, turn / 2);
        else pose(&s, turn);
        s.config.model.n_layers = between(SEED, turn, 50, turn % 2 ? 7 : 5, LAYERS_MOST);
        freeze(&s.config, turn);
        open_fit(&s);
        const int64_t least = least_of(&s, &s.fit, recompute_set);
        for (int32_t b = 0; b < BUDGETS; b++) {
            hr_fit_found found = { .strategy.recompute_set = recompute_set };
            const int64_t limit = least + least * b / 6;
            if (hr_fit_fastest(&s.fit, limit, &found, &err) != HR_OK) fail_msg("%s", err.message);
            build(&s, &found.strategy, &really);
            /* Rounding of a step that grows with depth, the sum of all squares, is not linear. */
            if (really.floor != found.floor_bytes ||
                llabs(really.ps - found.step_ps) > really.ps / 10000000 ||
                found.floor_bytes > limit || found.step_ps > before) {
                say(&s, "found", &found.strategy, found.floor_bytes, found.step_ps);
                say(&s, "really", &found.strategy, really.floor, really.ps);
                fail_msg("turn %llu: %lld layers within %lld bytes", (unsigned long long)turn,
                         (long long)s.config.model.n_layers, (long long)limit);
            }
            before = found.step_ps;
        }
    }
    close_scene(&s);
}

/* When layers train different parameters, each is costed as if it trained all of them: the
 * result fits, and nothing is claimed to be proven. A weight that is trained in another layer is
 * not stored in the proxy models, so the time to dequantize it is missing. */
static void layers_that_differ_are_not_underrated(void **state)
{
    scene s = open_scene();
    int32_t differ = 0;
    (void)state;
    for (uint64_t turn = 0; turn < 12 * HR_COUNT; turn++) {
        hr_intermediates recompute_set[LAYERS_MOST];
        hr_error err;
        built really;
        pose(&s, turn);
        s.config.model.n_layers = between(SEED, turn, 52, 2, LAYERS_MOST);
        random_freeze(&s.config, FREEZE_ANY, SEED, turn);
        const bool is_stored = random_stored(&s.config, SEED, turn);
        open_fit(&s);
        const int64_t least = least_of(NULL, &s.fit, recompute_set);
        for (int32_t b = 0; b < BUDGETS; b++) {
            hr_fit_found found = { .strategy.recompute_set = recompute_set };
            if (hr_fit_fastest(&s.fit, least + least * b / 12, &found, &err) != HR_OK)
                fail_msg("%s", err.message);
            build(&s, &found.strategy, &really);
            assert_true(really.floor <= found.floor_bytes);
            assert_true(really.ps <= found.step_ps || is_stored);
            assert_true(found.proven == s.fit.proxy.trained.uniform);
        }
        differ += !s.fit.proxy.trained.uniform;
    }
    assert_true(differ > 4 * HR_COUNT);
    close_scene(&s);
}

/* Too little room for the lists: states are left out, and the answer says so. What it says that no
 * strategy takes less than is never more than the best takes; what it found is within the limit,
 * and no faster than the best. */
static void where_room_is_short_the_gap_is_honest(void **state)
{
    scene s = open_scene();
    int32_t unproven = 0, gaps = 0;
    (void)state;
    for (uint64_t turn = 0; turn < 16 * HR_COUNT; turn++) {
        hr_intermediates best_sets[LAYERS_MOST], short_sets[LAYERS_MOST];
        hr_error err;
        pose(&s, turn);
        s.config.model.n_layers = between(SEED, turn, 51, 2, LAYERS_MOST);
        freeze(&s.config, turn);
        open_fit(&s);
        const int64_t least = least_of(&s, &s.fit, best_sets);
        const int64_t room = s.fit.layers.most;
        for (int32_t b = 1; b < BUDGETS; b++) {
            hr_fit_found best = { .strategy.recompute_set = best_sets },
                         found = { .strategy.recompute_set = short_sets };
            built really;
            const int64_t limit = least + least * b / 12;
            s.fit.layers.most = room;
            assert_int_equal(hr_fit_fastest(&s.fit, limit, &best, &err), HR_OK);
            if (!best.proven) continue; /* the limit of work ends the search of some deep models */
            s.fit.layers.most = 3 * s.config.model.n_layers;
            if (hr_fit_fastest(&s.fit, limit, &found, &err) != HR_OK) fail_msg("%s", err.message);
            assert_true(found.proven ? found.bound_ps == found.step_ps
                                     : found.bound_ps <= found.step_ps);
            assert_true(found.bound_ps <= best.step_ps);
            assert_true(found.step_ps >= best.step_ps);
            assert_true(found.floor_bytes <= limit);
            build(&s, &found.strategy, &really);
            assert_int_equal(really.floor, found.floor_bytes);
            unproven += !found.proven;
            gaps += found.bound_ps < found.step_ps;
        }
    }
    print_message("%d unproven, %d of them with a gap\n", unproven, gaps);
    assert_true(gaps > 0);
    close_scene(&s);
}

/* From the least to plenty: never slower with more, nor larger than it may be, and each the bound
 * of what it says it proved. */
static void more_bytes_are_never_slower(void **state)
{
    static const char *const presets[] = { "quickstart", "pythia-70m", "needle-70m" };
    enum { STEPS = HR_COUNT < 5 ? 40 * HR_COUNT : 200 };
    hr_rates rates;
    hr_error err;
    (void)state;
    hr_rates_guess(&hr_cpu_backend, hr_cpu_detect(), 2, &rates);
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        char path[512];
        hr_intermediates recompute_set[LAYERS_MOST];
        hr_config config;
        hr_fit fit;
        hr_fit_found plenty = { .strategy.recompute_set = recompute_set };
        int64_t before_ps = INT64_MAX, before_bytes = 0;
        hr_config_default(&config);
        snprintf(path, sizeof path, "%s/presets/%s.yaml", HR_SOURCE, presets[i]);
        if (hr_config_read(&config, path, &err) != HR_OK) fail_msg("%s", err.message);
        config.memory.recompute = HR_RECOMPUTE_AUTO;
        hr_region region = take(hr_fit_bytes(&config));
        assert_int_equal(hr_fit_open(&fit, &config, &rates, 2, &region, &err), HR_OK);
        const int64_t least = least_of(NULL, &fit, recompute_set);
        assert_int_equal(hr_fit_fastest(&fit, INT64_MAX / 4, &plenty, &err), HR_OK);
        for (int64_t b = 0; b <= STEPS; b++) {
            hr_fit_found found = { .strategy.recompute_set = recompute_set };
            const int64_t limit = least + (plenty.floor_bytes - least) / STEPS * b;
            if (hr_fit_fastest(&fit, limit, &found, &err) != HR_OK) fail_msg("%s", err.message);
            assert_true(found.proven);
            assert_int_equal(found.bound_ps, found.step_ps);
            assert_true(found.floor_bytes <= limit);
            assert_true(found.step_ps <= before_ps);
            /* As fast as with less is as small as with less. */
            if (found.step_ps == before_ps) assert_int_equal(found.floor_bytes, before_bytes);
            before_ps = found.step_ps;
            before_bytes = found.floor_bytes;
        }
        assert_true(before_ps >= plenty.step_ps);
        free(region.base);
    }
}

/* Where a recipe gives the chunk of the loss, the head's bytes are not always the least of a step:
 * what the least floor is, the search for the fastest within it has to find. */
/* The table of gradient norms grows with depth, and only in some sections. Which section has the
 * peak depends on the tiles. */
static void the_least_floor_of_a_deep_preset_is_that_of_its_program(void **state)
{
    static const char *const presets[] = { "opt-125m", "llama-3.2-1b", "qwen2-0.5b", "qwen3-0.6b" };
    hr_error err;
    (void)state;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        char path[512];
        hr_intermediates recompute_set[32];
        scene s = { .count = 0 };
        hr_config_default(&s.config);
        snprintf(path, sizeof path, "%s/presets/%s.yaml", HR_SOURCE, presets[i]);
        if (hr_config_read(&s.config, path, &err) != HR_OK) fail_msg("%s", err.message);
        hr_rates_guess(&hr_cpu_backend, hr_cpu_detect(), 2, &s.rates);
        s.search = take(hr_fit_bytes(&s.config));
        s.compile = take(hr_compile_bytes(&s.config));
        assert_int_equal(hr_fit_open(&s.fit, &s.config, &s.rates, 2, &s.search, &err), HR_OK);
        least_of(&s, &s.fit, recompute_set);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_search_finds_what_an_enumerator_finds),
        cmocka_unit_test(so_it_does_for_sequences_of_any_length),
        cmocka_unit_test(so_it_does_in_layers_of_two_kinds),
        cmocka_unit_test(deep_models_match_their_proxy_models),
        cmocka_unit_test(layers_that_differ_are_not_underrated),
        cmocka_unit_test(where_room_is_short_the_gap_is_honest),
        cmocka_unit_test(more_bytes_are_never_slower),
        cmocka_unit_test(the_least_floor_of_a_deep_preset_is_that_of_its_program),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
