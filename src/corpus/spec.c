/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/spec.c - parses options from the end of a part, so a path may contain blanks. */
#include "corpus/spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"

#define WEIGHT_MAX 1e9
#define TOKENS_MOST (INT64_C(1) << 40)
enum { WORD_BYTES = 48, SHOWN = 160 };

static void trim(const char **text, int64_t *bytes)
{
    while (*bytes && **text == ' ') {
        ++*text;
        --*bytes;
    }
    while (*bytes && (*text)[*bytes - 1] == ' ') --*bytes;
}

static hr_status read_weight(hr_spec_part *part, const char *key, const char *value, hr_error *err)
{
    double weight = 0;
    if (hr_real_parse(value, &weight) && weight > 0 && weight <= WEIGHT_MAX) {
        part->weight = weight;
        return HR_OK;
    }
    return hr_fail(err, HR_USAGE,
                   "%s: weight=%.40s of %.*s: a weight is a number above 0 and at most 1e9", key,
                   value, SHOWN, part->path);
}

static hr_status read_ids(hr_spec_part *part, const char *key, const char *value, hr_error *err)
{
    part->ids_bytes = !strcmp(value, "u16") ? 2 : !strcmp(value, "u32") ? 4 : 0;
    if (part->ids_bytes) return HR_OK;
    return hr_fail(err, HR_USAGE, "%s: ids=%.40s of %.*s: ids takes u16 or u32", key, value, SHOWN,
                   part->path);
}

static hr_status read_tokens(hr_spec_part *part, const char *key, const char *value, hr_error *err)
{
    int64_t tokens = 0;
    if (hr_integer_parse(value, &tokens) && tokens >= 2 && tokens <= TOKENS_MOST) {
        part->tokens = tokens;
        return HR_OK;
    }
    return hr_fail(err, HR_USAGE, "%s: tokens=%.40s of synthetic: takes an integer from 2 to %lld",
                   key, value, (long long)TOKENS_MOST);
}

static hr_status read_seed(hr_spec_part *part, const char *key, const char *value, hr_error *err)
{
    int64_t seed = 0;
    if (hr_integer_parse(value, &seed) && seed >= 0) {
        part->seed = seed;
        return HR_OK;
    }
    return hr_fail(err, HR_USAGE, "%s: seed=%.40s of synthetic: takes an integer from 0 on", key,
                   value);
}

/* Whether a part begins with the word synthetic. */
static bool is_synthetic(const hr_spec_part *part)
{
    static const char word[] = "synthetic";
    const int64_t bytes = sizeof word - 1;
    return part->path_bytes >= bytes && !memcmp(part->path, word, (size_t)bytes) &&
           (part->path_bytes == bytes || part->path[bytes] == ' ');
}

/* Removes the last word of the part if it is an option. */
static hr_status take_word(hr_spec_part *part, const char *key, uint32_t *given, bool *taken,
                           hr_error *err)
{
    static const struct {
        const char *name;
        hr_status (*read)(hr_spec_part *, const char *, const char *, hr_error *);
    } files[] = { { "weight=", read_weight }, { "ids=", read_ids } },
      synthetic[] = { { "tokens=", read_tokens }, { "seed=", read_seed } };
    const __typeof__(*files) *words = part->synthetic ? synthetic : files;
    int64_t first = part->path_bytes;
    while (first && part->path[first - 1] != ' ') first--;
    const int64_t bytes = part->path_bytes - first;
    *taken = false;
    for (int32_t i = 0; i < 2 && first > 0; i++) {
        const int64_t name_bytes = (int64_t)strlen(words[i].name);
        if (bytes < name_bytes || memcmp(part->path + first, words[i].name, (size_t)name_bytes))
            continue;
        char value[WORD_BYTES];
        if (*given >> i & 1)
            return hr_fail(err, HR_USAGE, "%s: %.*s is given twice; remove one", key,
                           (int)name_bytes - 1, words[i].name);
        *given |= UINT32_C(1) << i;
        snprintf(value, sizeof value, "%.*s", (int)(bytes - name_bytes),
                 part->path + first + name_bytes);
        part->path_bytes = first;
        trim(&part->path, &part->path_bytes);
        *taken = true;
        return words[i].read(part, key, value, err);
    }
    return HR_OK;
}

static hr_status read_part(hr_spec_part *part, const char *key, hr_error *err)
{
    bool taken = true;
    uint32_t given = 0;
    part->synthetic = is_synthetic(part);
    while (taken) {
        const hr_status status = take_word(part, key, &given, &taken, err);
        if (status != HR_OK) return status;
    }
    if (part->synthetic && memchr(part->path, ' ', (size_t)part->path_bytes))
        return hr_fail(err, HR_USAGE, "%s: synthetic takes tokens=N and seed=N; got \"%.*s\"", key,
                       (int)hr_min(part->path_bytes, SHOWN), part->path);
    if (part->path_bytes) return HR_OK;
    return hr_fail(err, HR_USAGE, "%s: a part between semicolons is empty", key);
}

/* Parses a share such as "0.5%". */
static bool read_share(const char *text, int64_t bytes, double *share)
{
    char number[WORD_BYTES];
    if (bytes < 2 || bytes > WORD_BYTES || text[bytes - 1] != '%') return false;
    snprintf(number, sizeof number, "%.*s", (int)bytes - 1, text);
    return hr_real_parse(number, share);
}

static hr_status check_weights(hr_spec *spec, const char *key, hr_error *err)
{
    int32_t weighted = 0;
    for (int32_t i = 0; i < spec->count; i++) weighted += spec->parts[i].weight > 0;
    spec->weighted = weighted > 0 && spec->count > 1;
    if (!weighted || weighted == spec->count) return HR_OK;
    const hr_spec_part *part = spec->parts;
    while (part->weight > 0) part++;
    return hr_fail(err, HR_USAGE,
                   "%s: %d of %d parts have a weight, %.*s has none: give all parts a weight, "
                   "or none",
                   key, weighted, spec->count, (int)part->path_bytes, part->path);
}

hr_status hr_spec_read(hr_spec *spec, const char *key, const char *text, hr_error *err)
{
    hr_spec read = { .count = 0 };
    int64_t whole = (int64_t)strlen(text);
    trim(&text, &whole);
    if (read_share(text, whole, &read.share)) {
        if (!(read.share > 0 && read.share < 100))
            return hr_fail(err, HR_USAGE, "%s=%.40s: a percentage lies between 0%% and 100%%", key,
                           text);
        read.share /= 100;
        *spec = read;
        return HR_OK;
    }
    read.share = 0;
    for (const char *at = text, *end = text + whole; whole && at <= end;) {
        const char *semicolon = memchr(at, ';', (size_t)(end - at));
        hr_spec_part part = { .path = at, .path_bytes = (semicolon ? semicolon : end) - at };
        trim(&part.path, &part.path_bytes);
        /* a semicolon after the last part is allowed */
        if (!part.path_bytes && !semicolon && read.count) break;
        if (read.count == HR_SPEC_PARTS_MAX)
            return hr_fail(err, HR_USAGE, "%s: has more than %d parts", key, HR_SPEC_PARTS_MAX);
        const hr_status status = read_part(&part, key, err);
        if (status != HR_OK) return status;
        read.parts[read.count++] = part;
        if (!semicolon) break;
        at = semicolon + 1;
    }
    const hr_status status = check_weights(&read, key, err);
    if (status == HR_OK) *spec = read;
    return status;
}

bool hr_spec_is_folder(const hr_spec_part *part)
{
    return part->path[part->path_bytes - 1] == '/';
}

bool hr_spec_is_pattern(const hr_spec_part *part)
{
    for (int64_t i = 0; i < part->path_bytes; i++)
        if (strchr("*?[", part->path[i])) return true;
    return false;
}

/* ---- shares */

/* Rounds weights to shares of `block` rows by largest remainder; returns whether all are exact. */
static bool round_shares(const hr_spec *spec, double sum, int64_t block, int64_t *shares)
{
    double remainder[HR_SPEC_PARTS_MAX], worst = 0;
    int64_t left = block;
    for (int32_t i = 0; i < spec->count; i++) {
        const double exact = spec->parts[i].weight / sum * (double)block;
        shares[i] = (int64_t)floor(exact + 1e-9 * (double)block / HR_MIX_BLOCK_MAX);
        remainder[i] = exact - (double)shares[i];
        worst = fmax(worst, fabs(remainder[i]));
        left -= shares[i];
    }
    for (; left > 0; left--) {
        int32_t most = 0;
        for (int32_t i = 1; i < spec->count; i++)
            if (remainder[i] > remainder[most]) most = i;
        shares[most]++;
        remainder[most] -= 1;
    }
    return worst < 1e-9 * (double)block;
}

hr_status hr_spec_shares(const hr_spec *spec, int64_t *shares, int64_t *block, hr_error *err)
{
    double sum = 0;
    for (int32_t i = 0; i < spec->count; i++) sum += spec->parts[i].weight;
    int64_t rows = 1;
    while (!round_shares(spec, sum, rows, shares) && rows < HR_MIX_BLOCK_MAX) rows++;
    for (int32_t i = 0; i < spec->count; i++)
        if (shares[i] < 1)
            return hr_fail(
                err, HR_USAGE,
                "data.train: weight %g of %.*s is less than one row of all %d: increase it, "
                "or remove the part",
                spec->parts[i].weight, (int)spec->parts[i].path_bytes, spec->parts[i].path,
                HR_MIX_BLOCK_MAX);
    *block = rows;
    return HR_OK;
}
