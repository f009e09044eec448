/* SPDX-License-Identifier: Apache-2.0 */
/* admission/largest.c - the largest valid value of a key that fits. Searches by doubling, then by
 * bisection; hr_config_check says which values are valid. A probe finds the smallest plan with a
 * value, which is several times as fast as finding the fastest plan. */
#include <stdio.h>
#include <string.h>

#include "admission/probes.h"
#include "admission/queries.h"
#include "base/account.h"
#include "base/checked.h"
#include "config/config_keys.h"
#include "plan/strategy_file.h"
#include "report/frontier.h"

enum {
    WINDOW = 1 << 20,   /* values checked for the next valid one */
    WINDOW_READ = 1024, /* the same if each check reads a strategy file */
    LIST_MOST = 64,     /* up to this many valid values are tried one by one */
    KNOWN_MOST = 256,
    DESERTS_MOST = 16,
    BLOCK_TOKENS = 64, /* micro-batches of such sequences split into tiles of multiples of it */
    MEND_MOST = 4
};

/* The values to search: all, only multiples of BLOCK_TOKENS, or only the others. */
typedef enum { ALL, BLOCKS, OTHERS } kinds;

typedef struct {
    hr_probes *probes;
    hr_config config; /* the searched key holds the value to try */
    const hr_config_row *row;
    int64_t start;           /* value of the recipe */
    int64_t low, high;       /* range of the key, without 0 if 0 has a word of its own */
    int64_t available_bytes; /* the budget, or memory available on the machine */
    struct {
        int64_t value, bytes;
        bool exact; /* false: the bytes only say whether the value fits */
        bool has_file, fits;
    } known[KNOWN_MOST];
    int32_t known_count;
    struct {
        int64_t first, last; /* no value of the kind is valid in this range */
        kinds kind;
    } deserts[DESERTS_MOST];
    int32_t desert_count;
    bool has_file;                        /* the last value has states in a file */
    bool at_once;                         /* also set memory.micro_batch to the value */
    char reason[HR_ERROR_BYTES];          /* error of the last value that cannot be planned */
    hr_intermediates recompute_set[4096]; /* of the strategy file read by is_legal */
} asking;

static void set(asking *a, int64_t value)
{
    memcpy((char *)&a->config + a->row->offset, &value, sizeof value);
    if (a->at_once) a->config.memory.micro_batch = value;
}

static bool is_spent(const asking *a)
{
    return hr_probes_are_spent(a->probes);
}

static bool is_of(kinds kind, int64_t value)
{
    return kind == ALL || (value % BLOCK_TOKENS == 0) == (kind == BLOCKS);
}

static bool is_legal(asking *a, int64_t value)
{
    set(a, value);
    if (hr_config_check(&a->config, NULL) != HR_OK) return false;
    if (!*a->config.memory.strategy) return true;
    hr_strategy strategy = { .recompute_set = a->recompute_set };
    return hr_strategy_read(&a->config, a->config.memory.strategy, &strategy, NULL) == HR_OK;
}

static int64_t window_of(const asking *a)
{
    return *a->config.memory.strategy ? WINDOW_READ : WINDOW;
}

/* Records a range without valid values: to check a million values takes longer than one plan. */
static void note_desert(asking *a, kinds kind, int64_t first, int64_t last)
{
    if (last - first < WINDOW_READ || a->desert_count == DESERTS_MOST) return;
    a->deserts[a->desert_count].first = first;
    a->deserts[a->desert_count].last = last;
    a->deserts[a->desert_count++].kind = kind;
}

/* Returns whether a value lies in a known range without valid values, [*first, *last]. */
static bool in_desert(const asking *a, kinds kind, int64_t value, int64_t *first, int64_t *last)
{
    for (int32_t i = 0; i < a->desert_count; i++) {
        if (a->deserts[i].kind != ALL && a->deserts[i].kind != kind) continue;
        if (value < a->deserts[i].first || value > a->deserts[i].last) continue;
        *first = a->deserts[i].first;
        *last = a->deserts[i].last;
        return true;
    }
    return false;
}

/* The smallest valid value in [value, end); -1 if none within the window. */
static int64_t from(asking *a, kinds kind, int64_t value, int64_t end)
{
    int64_t last = hr_min(a->high, end - 1), dry_first, dry_last;
    last = hr_min(last, value + window_of(a));
    value = hr_max(value, a->low);
    while (value <= last && in_desert(a, kind, value, &dry_first, &dry_last)) value = dry_last + 1;
    const int64_t begin = value;
    for (; value <= last; value++)
        if (is_of(kind, value) && is_legal(a, value)) break;
    note_desert(a, kind, begin, hr_min(value, last + 1) - 1);
    return value <= last ? value : -1;
}

/* The largest valid value in (below, value]; -1 if none within the window. */
static int64_t down_from(asking *a, kinds kind, int64_t value, int64_t below)
{
    const int64_t last = hr_max(hr_max(a->low, below + 1), value - window_of(a));
    int64_t dry_first, dry_last;
    while (value >= last && in_desert(a, kind, value, &dry_first, &dry_last)) value = dry_first - 1;
    for (; value >= last; value--)
        if (is_of(kind, value) && is_legal(a, value)) return value;
    return -1;
}

/* A valid value between the two, near the middle; -1 if none. */
static int64_t between(asking *a, kinds kind, int64_t low, int64_t high)
{
    const int64_t middle = low + (high - low) / 2;
    const int64_t above = from(a, kind, hr_max(middle, low + 1), high);
    return above >= 0 ? above : down_from(a, kind, middle, low);
}

/* The largest valid value; `low` is valid. */
static int64_t end_of(asking *a, kinds kind, int64_t low)
{
    int64_t high = hr_min(a->high, INT64_MAX / 4) + 1, next = low;
    while (next >= 0) {
        low = next;
        if (low > a->high / 2) break;
        next = from(a, kind, hr_max(2 * low, low + 1), high);
        if (next < 0) high = hr_min(high, hr_max(2 * low, low + 1));
    }
    while ((next = between(a, kind, low, high)) >= 0) low = next;
    return low;
}

/* ---- probes */

/* Bytes that the process may use with the last value that was asked for. */
static int64_t available(const asking *a)
{
    const int32_t threads = a->config.train.threads ? (int32_t)a->config.train.threads
                                                    : a->probes->machine->threads;
    return hr_account_process(a->config.memory.budget, a->probes->machine->process.page_bytes,
                              a->available_bytes, threads, a->has_file);
}

/* Process bytes of the smallest plan with a value; INT64_MAX if it cannot be planned here. Without
 * `exact`: bytes close to that, which fit only if a plan fits. */
static hr_status bytes_as(asking *a, int64_t value, bool exact, int64_t *bytes, hr_error *err)
{
    int32_t i = 0;
    while (i < a->known_count && a->known[i].value != value) i++;
    if (i < a->known_count && (a->known[i].exact || !exact)) {
        *bytes = a->known[i].bytes;
        a->has_file = a->known[i].has_file;
        return HR_OK;
    }
    set(a, value);
    a->has_file = a->config.memory.moments == HR_PLACE_FILE ||
                  a->config.memory.spill == HR_SPILL_AUTO;
    const int64_t budget = hr_max(available(a), 1);
    const hr_status status = exact ? hr_probe_least(a->probes, &a->config, bytes, err)
                                   : hr_probe_any(a->probes, &a->config, budget, bytes, err);
    if (status == HR_USAGE || status == HR_CORRUPT) return status;
    if (status != HR_OK) {
        *bytes = INT64_MAX;
        memcpy(a->reason, err->message, sizeof a->reason);
    }
    a->has_file = a->probes->has_file;
    if (i == KNOWN_MOST) return HR_OK;
    a->known_count = (int32_t)hr_max(a->known_count, i + 1);
    a->known[i].value = value;
    a->known[i].bytes = *bytes;
    a->known[i].exact = exact;
    a->known[i].has_file = a->has_file;
    a->known[i].fits = *bytes <= available(a);
    return HR_OK;
}

static hr_status bytes_with(asking *a, int64_t value, int64_t *bytes, hr_error *err)
{
    return bytes_as(a, value, true, bytes, err);
}

static hr_status fits(asking *a, int64_t value, bool *yes, hr_error *err)
{
    int64_t bytes = INT64_MAX;
    const hr_status status = bytes_as(a, value, false, &bytes, err);
    set(a, value);
    *yes = bytes <= available(a);
    return status;
}

/* Returns whether a sequence of a multiple of 64 tokens may need fewer bytes than a shorter one
 * that is none: only multiples let several sequences be cut at every 64 tokens
 * (hr_strategy_unit). */
static bool blocks_matter(const asking *a)
{
    return !strcmp(a->row->key.name, "train.seq_len") && a->config.train.batch > 1 &&
           a->config.memory.micro_batch != 1;
}

/* ---- search */

/* Doubles a value that fits until one does not fit. Afterwards *low fits, and *high does not fit or
 * is past the end. If doubling leaves the bytes unchanged, tries the largest valid value next. */
static hr_status gallop(asking *a, kinds kind, int64_t *low, int64_t *high, hr_error *err)
{
    bool yes = true, ended = false;
    int64_t bytes = INT64_MAX, before;
    hr_status status = bytes_as(a, *low, false, &before, err);
    while (status == HR_OK && yes && !is_spent(a)) {
        const int64_t next = *low <= a->high / 2 ? from(a, kind, hr_max(2 * *low, *low + 1), *high)
                                                 : -1;
        const int64_t value = next < 0 ? end_of(a, kind, *low) : next;
        if (value == *low) return HR_OK;
        status = fits(a, value, &yes, err);
        if (status == HR_OK) status = bytes_as(a, value, false, &bytes, err);
        if (yes) *low = value;
        else *high = value;
        if (!yes || bytes != before || ended) {
            before = bytes;
            continue;
        }
        const int64_t end = end_of(a, kind, value);
        ended = true;
        status = fits(a, end, &yes, err);
        if (yes) *low = end;
        else *high = end;
    }
    return status;
}

/* The largest value of a kind that fits, -1 if none. Assumes that bytes rise with the value. Begins
 * at `start` or below: the answer is often near the value of the recipe, and a plan with a distant
 * value can take long. No value from `end` on fits, unless it is -1. */
static hr_status climb(asking *a, kinds kind, int64_t start, int64_t end, int64_t *best,
                       hr_error *err)
{
    bool yes = false;
    int64_t low = from(a, kind, a->low, INT64_MAX);
    int64_t high = end < 0 ? hr_min(a->high, INT64_MAX / 4) + 1 : end;
    *best = -1;
    if (low < 0 || low >= high) return HR_OK;
    hr_status status = HR_OK;
    start = down_from(a, kind, hr_min(start, high - 1), low);
    if (low < start) {
        status = fits(a, start, &yes, err);
        if (status == HR_OK && yes) low = start;
        else high = start;
    }
    if (status == HR_OK && !yes) status = fits(a, low, &yes, err);
    if (status != HR_OK || !yes) return status;
    if (end < 0 && high != start) status = gallop(a, kind, &low, &high, err);
    for (int64_t next;
         status == HR_OK && !is_spent(a) && (next = between(a, kind, low, high)) >= 0;) {
        status = fits(a, next, &yes, err);
        if (yes) low = next;
        else high = next;
    }
    *best = low;
    return status;
}

/* The smallest value above another that is known not to fit; -1: none. */
static int64_t lowest_refused(const asking *a, int64_t above)
{
    int64_t least = -1;
    for (int32_t i = 0; i < a->known_count; i++) {
        const int64_t value = a->known[i].value;
        if (value <= above || a->known[i].fits) continue;
        if (least < 0 || value < least) least = value;
    }
    return least;
}

/* The largest value that is no multiple of BLOCK_TOKENS, given the largest multiple that fits. It
 * lies below the smallest multiple that does not: what a sequence can do, a shorter multiple can.
 * In micro-batches of one sequence it lies little below, so the search begins there. */
static hr_status climb_others(asking *a, int64_t multiple, int64_t *best, hr_error *err)
{
    const int64_t start = from(a, OTHERS, multiple + 1, INT64_MAX);
    return climb(a, OTHERS, start, lowest_refused(a, multiple), best, err);
}

/* If there are few valid values, finds the largest that fits by trying them from the top. At the
 * limit of work, only the smallest is left to try. */
static hr_status try_all(asking *a, bool *few, int64_t *best, hr_error *err)
{
    int64_t list[LIST_MOST];
    int32_t count = 0;
    int64_t value = from(a, ALL, a->low, INT64_MAX);
    while (value >= 0 && count < LIST_MOST) {
        list[count++] = value;
        value = from(a, ALL, value + 1, INT64_MAX);
    }
    *few = value < 0;
    *best = -1;
    hr_status status = HR_OK;
    for (int32_t i = count - 1; *few && i >= 0 && *best < 0 && status == HR_OK; i--) {
        bool yes;
        if (is_spent(a)) i = 0;
        status = fits(a, list[i], &yes, err);
        if (yes) *best = list[i];
    }
    return status;
}

/* Makes the fastest plan for the value. First tries the next larger values: the fastest plan may
 * fit where the smallest does not, because it tries more strategies if packing leaves a gap. */
static hr_status confirm_value(asking *a, hr_largest *answer, hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t i = 0; i < MEND_MOST && status == HR_OK && !is_spent(a); i++) {
        const int64_t next = from(a, ALL, answer->value + 1, INT64_MAX);
        int64_t bytes = INT64_MAX;
        if (next < 0) break;
        status = bytes_with(a, next, &bytes, err);
        set(a, next);
        if (status != HR_OK || bytes == INT64_MAX || bytes - available(a) > bytes / 256) break;
        if (bytes > available(a)) {
            const hr_status refused = hr_probe_fastest(a->probes, &a->config, available(a),
                                                       &answer->plan, err);
            if (refused == HR_NO_FIT) break;
            if (refused != HR_OK) return refused;
        }
        answer->value = next;
    }
    if (status == HR_OK) status = bytes_as(a, answer->value, false, &answer->value_bytes, err);
    if (status != HR_OK) return status;
    set(a, answer->value);
    answer->available_bytes = available(a);
    status = hr_probe_fastest(a->probes, &a->config, answer->available_bytes, &answer->plan, err);
    if (status == HR_OK)
        status = bytes_as(a, answer->value, !is_spent(a), &answer->value_bytes, err);
    return status;
}

/* Finds the smallest valid value from which on the bytes no longer change. */
static hr_status find_free(asking *a, hr_largest *answer, hr_error *err)
{
    int64_t bytes, high = down_from(a, ALL, answer->value - 1, a->low - 1);
    int64_t low = from(a, ALL, a->low, INT64_MAX);
    if (high < 0) return HR_OK;
    hr_status status = bytes_with(a, high, &bytes, err);
    if (status != HR_OK || bytes != answer->value_bytes) return status;
    answer->outcome = HR_LARGEST_FREE;
    status = bytes_with(a, low, &bytes, err);
    if (status != HR_OK || bytes == answer->value_bytes) return status;
    for (int64_t next;
         status == HR_OK && !is_spent(a) && (next = between(a, ALL, low, high)) >= 0;) {
        status = bytes_with(a, next, &bytes, err);
        if (bytes == answer->value_bytes) high = next;
        else low = next;
    }
    answer->free_from = high;
    return status;
}

/* Writes why there is no larger valid value. */
static void say_end(asking *a, const hr_largest *answer, char reason[HR_LARGEST_REASON_BYTES])
{
    hr_error why = { .message = "" };
    char takes[HR_TAKES_BYTES];
    hr_strategy strategy = { .recompute_set = a->recompute_set };
    set(a, hr_max(answer->value + 1, a->low));
    hr_status status = hr_config_check(&a->config, &why);
    if (status == HR_OK && *a->config.memory.strategy)
        status = hr_strategy_read(&a->config, a->config.memory.strategy, &strategy, &why);
    if (answer->value < a->high && status != HR_OK)
        snprintf(reason, HR_LARGEST_REASON_BYTES, "%s", why.message);
    else
        snprintf(reason, HR_LARGEST_REASON_BYTES, "%s takes an %s", a->row->key.name,
                 hr_key_takes(&a->row->key, takes));
}

/* Describes the next values above the answer. */
static hr_status look_around(asking *a, hr_largest *answer, hr_error *err)
{
    hr_status status = HR_OK;
    answer->next = from(a, ALL, answer->value + 1, INT64_MAX);
    if (answer->next < 0) {
        answer->outcome = HR_LARGEST_END;
        say_end(a, answer, answer->reason);
        return find_free(a, answer, err);
    }
    answer->outcome = HR_LARGEST_FOUND;
    status = bytes_with(a, answer->next, &answer->next_bytes, err);
    if (status == HR_OK && answer->next_bytes == INT64_MAX) {
        answer->next_bytes = -1;
        memcpy(answer->reason, a->reason, sizeof answer->reason);
    }
    if (!blocks_matter(a)) return status;
    answer->beyond = from(a, BLOCKS, answer->value + 1, INT64_MAX);
    if (answer->beyond == answer->next) answer->beyond = -1;
    if (status == HR_OK && answer->beyond >= 0)
        status = bytes_with(a, answer->beyond, &answer->beyond_bytes, err);
    if (answer->beyond_bytes == INT64_MAX) answer->beyond_bytes = -1;
    return status;
}

static hr_status find_none(asking *a, hr_largest *answer, hr_error *err)
{
    char needed[64], there[64];
    answer->outcome = HR_LARGEST_NONE;
    answer->next = from(a, ALL, a->low, INT64_MAX);
    if (answer->next < 0) {
        say_end(a, answer, answer->reason);
        return hr_fail(err, HR_USAGE, "no value of %s is valid: %s", a->row->key.name,
                       answer->reason);
    }
    const hr_status status = bytes_with(a, answer->next, &answer->next_bytes, err);
    if (status != HR_OK) return status;
    set(a, answer->next);
    answer->available_bytes = available(a);
    if (answer->next_bytes == INT64_MAX) {
        answer->next_bytes = -1;
        memcpy(answer->reason, a->reason, sizeof answer->reason);
        return hr_fail(err, HR_NO_FIT, "%s", a->reason);
    }
    return hr_fail(
        err, HR_NO_FIT, "no %s fits: with %lld the run needs at least %s, %s %s", a->row->key.name,
        (long long)answer->next, hr_bytes_print(answer->next_bytes, needed),
        a->config.memory.budget ? "the limit is" : "the memory available on this machine is",
        hr_bytes_print(answer->available_bytes, there));
}

/* Finds the largest batch that runs as one micro-batch. If a larger batch only adds micro-batches,
 * this is the more useful answer. */
static hr_status find_at_once(asking *a, hr_largest *answer, hr_error *err)
{
    if (answer->outcome != HR_LARGEST_FREE && answer->outcome != HR_LARGEST_END) return HR_OK;
    a->at_once = true;
    a->known_count = 0;
    a->desert_count = 0;
    hr_status status = climb(a, ALL, a->start, -1, &answer->at_once, err);
    if (status == HR_OK && answer->at_once > 0) {
        status = bytes_as(a, answer->at_once, !is_spent(a), &answer->at_once_bytes, err);
        answer->tokens_at_once = answer->at_once * a->config.train.seq_len;
        answer->at_once_cut = is_spent(a);
    }
    a->at_once = false;
    a->config.memory.micro_batch = 0;
    return status;
}

static hr_status find(asking *a, hr_largest *answer, hr_error *err)
{
    int64_t other = -1;
    const bool apart = blocks_matter(a);
    bool few;
    hr_status status = try_all(a, &few, &answer->value, err);
    if (status == HR_OK && !few)
        status = climb(a, apart ? BLOCKS : ALL, a->start, -1, &answer->value, err);
    if (status == HR_OK && !few && apart) status = climb_others(a, answer->value, &other, err);
    if (status != HR_OK) return status;
    answer->value = hr_max(answer->value, other);
    if (answer->value < 0) return find_none(a, answer, err);
    const bool spent = is_spent(a), ends = from(a, ALL, answer->value + 1, INT64_MAX) < 0;
    answer->cut = spent && !ends;
    answer->below = lowest_refused(a, answer->value);
    status = confirm_value(a, answer, err);
    if (status != HR_OK || answer->cut) return status;
    if (spent) { /* whether memory grows with the key stays open */
        answer->outcome = HR_LARGEST_END;
        say_end(a, answer, answer->reason);
        return HR_OK;
    }
    status = look_around(a, answer, err);
    const bool batch = !strcmp(a->row->key.name, "train.batch") && !a->config.memory.micro_batch;
    return status == HR_OK && batch ? find_at_once(a, answer, err) : status;
}

static hr_status find_row(const char *key, const hr_config_row **row, hr_error *err)
{
    const int32_t index = hr_config_row_find(key);
    if (index < 0) return hr_config_fail_unknown(key, NULL, err);
    *row = &hr_config_rows()[index];
    if ((*row)->key.type == HR_KEY_INTEGER) return HR_OK;
    char takes[HR_TAKES_BYTES];
    return hr_fail(err, HR_USAGE, "%s (%s): --largest needs a key that takes an integer", key,
                   hr_key_takes(&(*row)->key, takes));
}

hr_status hr_query_largest(const hr_admission_machine *machine, const hr_config *config,
                           const char *key, const hr_plan_query *question, hr_largest *answer,
                           hr_error *err)
{
    hr_probes probes;
    const hr_config_row *row = NULL;
    hr_status status = find_row(key, &row, err);
    if (status == HR_OK && config->model.from[0] && !strncmp(key, "model.", 6))
        return hr_fail(err, HR_USAGE, "%s is given by the model in %.200s; remove model.from", key,
                       config->model.from);
    if (status == HR_OK && config->data.fixed_batch[0] &&
        (!strcmp(key, "train.batch") || !strcmp(key, "train.seq_len")))
        return hr_fail(err, HR_USAGE, "%s is given by %.200s; remove data.fixed_batch", key,
                       config->data.fixed_batch);
    if (status == HR_OK) status = hr_probes_open(&probes, machine, question, err);
    if (status != HR_OK) return status;
    const int64_t low = (int64_t)row->key.low;
    asking a = { .probes = &probes,
                 .config = *config,
                 .row = row,
                 .low = row->key.zero_word ? hr_max(low, 1) : low,
                 .high = (int64_t)row->key.high,
                 .available_bytes = config->memory.budget ? config->memory.budget
                                                          : machine->available_bytes };
    memcpy(&a.start, (const char *)config + row->offset, sizeof a.start);
    char lowest[32]; /* the key is given, as it is in the recipe that is asked for */
    snprintf(lowest, sizeof lowest, "%lld", (long long)a.low);
    status = hr_config_set(&a.config, key, lowest, err);
    if (status != HR_OK) return status;
    *answer = (hr_largest){ .key = &row->key,
                            .value = -1,
                            .next = -1,
                            .beyond = -1,
                            .free_from = -1,
                            .at_once = -1,
                            .below = -1 };
    status = find(&a, answer, err);
    answer->probes = probes.made;
    if ((status != HR_OK && status != HR_NO_FIT) || !question->text) return status;
    hr_writer writer = { question->text, question->text_bytes };
    hr_largest_print(answer, &writer);
    return status;
}
