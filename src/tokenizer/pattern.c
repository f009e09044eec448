/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/pattern.c - PCRE2 with memory from a fixed pool and a limit on the steps of each
 * search. */
#include "tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "tokenizer/pattern_syntax.h"

enum {
    TRANSLATED_BYTES = 8 << 10,
    /* Steps of one search. The longest match of a common pattern takes about three steps per byte.
     * This many take about a tenth of a second. */
    STEPS_MOST = 20 * 1000 * 1000,
    /* PCRE2 doubles its buffer, and the old and the new one exist at the same time. */
    HEAP_KIB_MOST = (HR_PATTERN_WORKSPACE_BYTES >> 10) / 4
};

/* A pool for allocations of PCRE2. Single allocations are never freed. */
typedef struct {
    uint8_t *base;
    int64_t bytes, used;
} pool;

struct hr_pattern {
    pool memory;
    pcre2_code *code;
    int64_t before;
};

struct hr_pattern_workspace {
    pool memory;
    int64_t kept; /* pool use before a match; matching resets to it */
    const hr_pattern *pattern;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

static void *pool_take(PCRE2_SIZE bytes, void *context)
{
    pool *memory = context;
    const int64_t rounded = bytes > PTRDIFF_MAX / 2 ? INT64_MAX / 2
                                                    : hr_round_up((int64_t)bytes, 16);
    if (rounded > memory->bytes - memory->used) return NULL;
    memory->used += rounded;
    return memory->base + memory->used - rounded;
}

static void pool_ignore(void *taken, void *context)
{
    (void)taken;
    (void)context;
}

int64_t hr_pattern_bytes(int64_t pattern_bytes)
{
    return hr_round_up((int64_t)sizeof(hr_pattern), 64) + 16384 + 64 * pattern_bytes;
}

static pcre2_code *compile(const char *text, int64_t bytes, pcre2_compile_context *context,
                           int *code, PCRE2_SIZE *at)
{
    /* ^ and $ match at line breaks in Oniguruma's Ruby syntax. */
    return pcre2_compile((PCRE2_SPTR)text, (PCRE2_SIZE)bytes,
                         PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, code,
                         at, context);
}

typedef struct {
    pcre2_compile_context *context;
    pool *memory;
} compiler;

/* PCRE2 before 10.40 knows no \p{sc:...}, and \p{Han} is the script there. */
static bool is_script(void *context, const char *name, int64_t bytes)
{
    const compiler *c = context;
    const int64_t kept = c->memory->used;
    char text[64]; /* longer than all names of scripts */
    int code;
    PCRE2_SIZE at;
    const int length = snprintf(text, sizeof text, "\\p{sc:%.*s}", (int)hr_min(bytes, 50), name);
    const bool known = compile(text, length, c->context, &code, &at) != NULL;
    c->memory->used = kept;
    return known;
}

/* Not inlined: the translated text needs no stack while a pattern matches. */
static __attribute__((noinline)) hr_status translate(hr_pattern *pattern, const char *text,
                                                     int64_t bytes, hr_error *err)
{
    char made[TRANSLATED_BYTES], why[128] = "it needs more memory than its length allows";
    int code = 0;
    PCRE2_SIZE at = 0;
    int64_t made_bytes = 0;
    pcre2_general_context *general = pcre2_general_context_create(pool_take, pool_ignore,
                                                                  &pattern->memory);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    if (context) {
        compiler probe = { context, &pattern->memory };
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        const char *differs = hr_pattern_translate(text, bytes, is_script, &probe, made,
                                                   sizeof made, &made_bytes);
        if (differs)
            return hr_fail(err, HR_CORRUPT,
                           "pattern \"%.*s\": %s is not supported, because PCRE2 and Oniguruma "
                           "interpret it differently",
                           (int)hr_min(bytes, 200), text, differs);
        if (made_bytes < 0)
            return hr_fail(err, HR_CORRUPT, "pattern \"%.*s\": it is too long",
                           (int)hr_min(bytes, 200), text);
        pattern->code = compile(made, made_bytes, context, &code, &at);
    }
    if (pattern->code) return HR_OK;
    if (context && code != PCRE2_ERROR_HEAP_FAILED)
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    if (made_bytes != bytes || memcmp(made, text, (size_t)bytes)) /* another byte of the text */
        return hr_fail(err, HR_CORRUPT, "pattern \"%.*s\": PCRE2 error: %s",
                       (int)hr_min(bytes, 200), text, why);
    return hr_fail(err, HR_CORRUPT, "pattern \"%.*s\": PCRE2 error at byte %lld: %s",
                   (int)hr_min(bytes, 200), text, (long long)at, why);
}

hr_status hr_pattern_place(hr_pattern **pattern, hr_region *region, const char *text, int64_t bytes,
                           hr_error *err)
{
    const int64_t room = hr_pattern_bytes(bytes);
    hr_pattern *made = hr_region_take(region, room, 1);
    if (!made) return hr_fail(err, HR_NO_FIT, "pattern: needs %lld more bytes", (long long)room);
    const int64_t own = hr_round_up((int64_t)sizeof *made, 64);
    made->memory = (pool){ (uint8_t *)made + own, room - own, 0 };
    const hr_status status = translate(made, text, bytes, err);
    if (status != HR_OK) return status;
    uint32_t characters = 0;
    pcre2_pattern_info(made->code, PCRE2_INFO_MAXLOOKBEHIND, &characters);
    made->before = 4 *
                   ((int64_t)characters + 1); /* one more, to know that the text begins earlier */
    *pattern = made;
    return HR_OK;
}

int64_t hr_pattern_before(const hr_pattern *pattern)
{
    return pattern->before;
}

hr_status hr_pattern_workspace_place(hr_pattern_workspace **work, hr_region *region,
                                     const hr_pattern *pattern, hr_error *err)
{
    hr_pattern_workspace *made = hr_region_take_raw(region, HR_PATTERN_WORKSPACE_BYTES, 1);
    if (!made)
        return hr_fail(err, HR_NO_FIT, "pattern: needs %d bytes per thread",
                       HR_PATTERN_WORKSPACE_BYTES);
    const int64_t own = hr_round_up((int64_t)sizeof *made, 64);
    *made = (hr_pattern_workspace){
        .pattern = pattern, .memory = { (uint8_t *)made + own, HR_PATTERN_WORKSPACE_BYTES - own }
    };
    pcre2_general_context *general = pcre2_general_context_create(pool_take, pool_ignore,
                                                                  &made->memory);
    if (general) {
        made->data = pcre2_match_data_create_from_pattern(pattern->code, general);
        made->context = pcre2_match_context_create(general);
    }
    if (!made->data || !made->context)
        return hr_fail(err, HR_NO_FIT, "pattern: its groups do not fit in %d bytes",
                       HR_PATTERN_WORKSPACE_BYTES);
    pcre2_set_match_limit(made->context, STEPS_MOST);
    pcre2_set_heap_limit(made->context, HEAP_KIB_MOST);
    made->kept = made->memory.used;
    *work = made;
    return HR_OK;
}

hr_found hr_pattern_search(hr_pattern_workspace *work, const uint8_t *text, int64_t from,
                           int64_t bytes, bool begins, bool whole, hr_piece *match)
{
    const uint32_t options = PCRE2_NO_UTF_CHECK | (begins ? 0 : PCRE2_NOTBOL) |
                             (whole ? 0 : PCRE2_PARTIAL_HARD);
    work->memory.used = work->kept;
    const int found = pcre2_match(work->pattern->code, text, (PCRE2_SIZE)bytes, (PCRE2_SIZE)from,
                                  options, work->data, work->context);
    if (found == PCRE2_ERROR_PARTIAL) return HR_FOUND_MORE;
    if (found == PCRE2_ERROR_NOMATCH) return whole ? HR_FOUND_NONE : HR_FOUND_MORE;
    if (found < 0) return HR_FOUND_WRONG;
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(work->data);
    if (ends[0] > ends[1])
        return HR_FOUND_WRONG; /* \K in a look-ahead may set the start after the end */
    *match = (hr_piece){ (uint32_t)ends[0], (uint32_t)ends[1] };
    return HR_FOUND;
}
