/* SPDX-License-Identifier: Apache-2.0 */
/* devices/device_names.c - finds devices by the names that people and drivers give them.
 *
 * A name is compared in lower case and without separators, with and without the words of the maker
 * in front. What is not a name of the table is looked up among those that drivers print. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/writer.h"
#include "config/config.h"
#include "headroom/devices.h"

enum { PLAIN_BYTES = 2 * HR_DEVICE_NAME_BYTES, LISTED_MOST = 8, PREFIX_LETTERS = 2 };

/* Names that nvidia-smi, rocminfo and Metal print, without the words of the maker, and the rows
 * that they mean. Bytes and formats are those of the row; its sources name other rates. */
static const struct {
    const char *printed, *row;
} aliases[] = {
    { "a100-sxm4-40gb", "a100-40gb" },
    { "a100-sxm-40gb", "a100-40gb" },
    { "a100-pcie-40gb", "a100-40gb" },
    { "a100-40gb-pcie", "a100-40gb" },
    { "a100-sxm4-80gb", "a100-80gb" },
    { "a100-sxm-80gb", "a100-80gb" },
    { "a100-80gb-pcie", "a100-80gb" },
    { "a100-pcie-80gb", "a100-80gb" },
    { "h100-80gb-hbm3", "h100" },
    { "h100-sxm", "h100" },
    { "h100-sxm5-80gb", "h100" },
    { "h100-80gb", "h100" },
    { "h100-pcie-80gb", "h100-pcie" },
    { "h200-sxm", "h200" },
    { "v100-sxm2-16gb", "v100-16gb" },
    { "v100-pcie-16gb", "v100-16gb" },
    { "v100-sxm2-32gb", "v100-32gb" },
    { "v100-sxm3-32gb", "v100-32gb" },
    { "v100-pcie-32gb", "v100-32gb" },
    { "p100-pcie-16gb", "p100" },
    { "rtx-6000-ada-generation", "rtx-6000-ada" },
    { "rtx-pro-6000-blackwell-workstation-edition", "rtx-pro-6000" },
    { "rtx-pro-6000-blackwell", "rtx-pro-6000" },
    { "instinct-mi300x-oam", "mi300x" },
    { "mi300x-oam", "mi300x" },
};
enum { ALIASES = sizeof aliases / sizeof *aliases };

const hr_device_facts *hr_device_row(const hr_device_list *own, int32_t index)
{
    const int32_t count = own ? own->count : 0;
    return index < count ? &own->rows[index] : hr_device_at(index - count);
}

bool hr_device_is_hidden(const hr_device_list *own, int32_t index)
{
    const int32_t count = own ? own->count : 0;
    for (int32_t i = 0; i < count && index >= count; i++)
        if (!strcmp(own->rows[i].name, hr_device_row(own, index)->name)) return true;
    return false;
}

/* Lower case, and dashes for blanks and underscores. */
static void normalize(const char *name, char plain[PLAIN_BYTES])
{
    size_t bytes = 0;
    for (; name[bytes] && bytes + 1 < PLAIN_BYTES; bytes++) {
        const char c = name[bytes];
        plain[bytes] = c;
        if (c >= 'A' && c <= 'Z') plain[bytes] = (char)(c - 'A' + 'a');
        if (c == ' ' || c == '_') plain[bytes] = '-';
    }
    plain[bytes] = 0;
}

/* The part of a normalized name that follows the words of the maker, which people may leave out. */
static const char *without_maker(const char *plain)
{
    static const char *const words[] = { "nvidia-", "geforce-",  "tesla-",
                                         "amd-",    "instinct-", "apple-" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncmp(plain, words[i], strlen(words[i]))) plain += strlen(words[i]);
    return plain;
}

/* Whether two names differ only in dashes: rtx4090 and rtx-4090. */
static bool same_letters(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '-') a++;
        while (*b == '-') b++;
        if (*a != *b) return false;
        if (!*a) return true;
    }
}

/* The name without the series in front, as people call a card: 4090, a6000. */
static const char *without_series(const char *name)
{
    return !strncmp(name, "rtx-", 4) || !strncmp(name, "gtx-", 4) ? name + 4 : name;
}

static const hr_device_facts *find_row(const char *name, const hr_device_list *own)
{
    for (int32_t i = 0; hr_device_row(own, i); i++)
        if (!strcmp(hr_device_row(own, i)->name, name)) return hr_device_row(own, i);
    for (int32_t i = 0; hr_device_row(own, i); i++)
        if (same_letters(hr_device_row(own, i)->name, name)) return hr_device_row(own, i);
    return NULL;
}

/* As find_row, and also by the title in the table, and the names that drivers print and that people
 * shorten. */
static const hr_device_facts *find_alias(const char *name, const hr_device_list *own)
{
    char title[PLAIN_BYTES];
    for (int32_t i = 0; hr_device_row(own, i); i++) {
        normalize(hr_device_row(own, i)->title, title);
        if (same_letters(without_maker(title), name)) return hr_device_row(own, i);
    }
    for (int32_t i = 0; i < ALIASES; i++)
        if (same_letters(aliases[i].printed, name)) return find_row(aliases[i].row, NULL);
    for (int32_t i = 0; hr_device_row(own, i); i++)
        if (same_letters(without_series(hr_device_row(own, i)->name), name))
            return hr_device_row(own, i);
    return NULL;
}

/* Letters of `known` if `name` begins with it and goes on with another word, such as "ti" or
 * "laptop"; else 0. Dashes do not matter. */
static int32_t begins_with(const char *name, const char *known)
{
    int32_t letters = 0;
    for (;; name++, known++, letters++) {
        while (*name == '-') name++;
        while (*known == '-') known++;
        if (!*known) return *name >= '0' && *name <= '9' ? 0 : letters;
        if (*name != *known) return 0;
    }
}

static void consider(const char *name, const char *known, const char *row, int32_t *least,
                     const char **best)
{
    const int32_t cost = hr_word_cost(name, known);
    if (cost < *least) *best = row;
    *least = (int32_t)hr_min(cost, *least);
}

static const char *nearest(const char *name, const hr_device_list *own)
{
    const char *best = NULL;
    int32_t least = INT32_MAX, most = 0;
    for (int32_t i = 0; hr_device_row(own, i); i++) {
        const char *row = hr_device_row(own, i)->name;
        const int32_t letters = (int32_t)hr_max(begins_with(name, row),
                                                begins_with(name, without_series(row)));
        if (letters > most) best = row;
        most = (int32_t)hr_max(most, letters);
    }
    if (best) return best;
    for (int32_t i = 0; hr_device_row(own, i); i++)
        consider(name, hr_device_row(own, i)->name, hr_device_row(own, i)->name, &least, &best);
    for (int32_t i = 0; i < ALIASES; i++)
        consider(name, aliases[i].printed, aliases[i].row, &least, &best);
    for (int32_t i = 0; hr_device_row(own, i) && !best; i++)
        consider(name, without_series(hr_device_row(own, i)->name), hr_device_row(own, i)->name,
                 &least, &best);
    return best;
}

/* Lists the devices whose names begin with `name`. Returns how many there are. */
static int32_t list_beginning(const char *name, const hr_device_list *own, hr_writer *list)
{
    int32_t count = 0;
    const size_t letters = strlen(name);
    if (letters < PREFIX_LETTERS) return 0;
    for (int32_t i = 0; hr_device_row(own, i); i++) {
        const char *row = hr_device_row(own, i)->name;
        if (hr_device_is_hidden(own, i)) continue;
        if (strncmp(row, name, letters) && strncmp(without_series(row), name, letters)) continue;
        if (count < LISTED_MOST) hr_put(list, "%s%s", count ? ", " : "", row);
        count++;
    }
    if (count > LISTED_MOST) hr_put(list, " and %d more", count - LISTED_MOST);
    return count;
}

hr_status hr_device_find(const char *name, const hr_device_list *own,
                         const hr_device_facts **device, hr_error *err)
{
    char plain[PLAIN_BYTES], listed[LISTED_MOST * (HR_DEVICE_NAME_BYTES + 2) + 32] = "";
    normalize(name, plain);
    const char *bare = without_maker(plain);
    /* First as given: a device of a file may be called tesla-lab. */
    const hr_device_facts *row = find_row(plain, own);
    if (!row) row = find_row(bare, own);
    if (!row) row = find_alias(bare, own);
    if (row) {
        *device = row;
        return HR_OK;
    }
    hr_writer list = { listed, sizeof listed };
    const int32_t count = list_beginning(bare, own, &list);
    if (count > 1)
        return hr_fail(err, HR_USAGE, "\"%.40s\" fits several devices; name one of %s", name,
                       listed);
    const char *similar = count ? listed : nearest(bare, own);
    return hr_fail(err, HR_USAGE,
                   "\"%.40s\" is not a known device%s%s (headroom devices lists all)", name,
                   similar ? "; the nearest is " : "", similar ? similar : "");
}
