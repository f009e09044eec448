/* SPDX-License-Identifier: Apache-2.0 */
/* base/regex.c - walks an expression with the set of positions in the text that it can have
 * reached, instead of trying one way after another. */
#include "base/regex.h"

#include <ctype.h>
#include <string.h>

enum { WORDS = (HR_REGEX_TEXT_MOST + 64) / 64, REPEATS_MOST = HR_REGEX_TEXT_MOST };

/* Positions in the text. */
typedef struct {
    unsigned long long bits[WORDS];
} places;

typedef struct {
    const char *at, *end, *text;
    int length; /* of the text */
    int depth;
    int nested; /* repetitions within each other, in the atom that was walked last */
    bool bad;
} walk;

static places alternatives(walk *w, places from);

static bool has(const places *p, int i)
{
    return p->bits[i / 64] >> i % 64 & 1;
}

static void put(places *p, int i)
{
    p->bits[i / 64] |= 1ULL << i % 64;
}

static places both(places a, places b)
{
    for (int i = 0; i < WORDS; i++) a.bits[i] |= b.bits[i];
    return a;
}

static bool is_empty(const places *p)
{
    return !memcmp(p, &(places){ { 0 } }, sizeof *p);
}

static bool takes(walk *w, char letter)
{
    if (w->at == w->end || *w->at != letter) return false;
    w->at++;
    return true;
}

static char next(walk *w)
{
    if (w->at == w->end) w->bad = true;
    return w->at == w->end ? 0 : *w->at++;
}

/* Adds what an escape stands for to a set of letters. */
static void escape(walk *w, bool set[256])
{
    const unsigned char c = (unsigned char)next(w);
    if (c != 'd' && c != 'w' && isalnum(c)) w->bad = true; /* \b, \1 and others */
    for (int i = 0; i < 128; i++)
        if (c == 'd' ? isdigit(i) : c == 'w' ? isalnum(i) || i == '_' : i == c) set[i] = true;
}

static void class(walk *w, bool set[256])
{
    const bool negated = takes(w, '^');
    bool first = true;
    for (; !w->bad && (first || w->at == w->end || *w->at != ']'); first = false) {
        const unsigned char from = (unsigned char)next(w);
        if (from == '\\') {
            escape(w, set);
            continue;
        }
        unsigned char to = from;
        if (w->end - w->at > 1 && w->at[0] == '-' && w->at[1] != ']') {
            w->at++;
            to = (unsigned char)next(w);
            w->bad |= to == '\\' || to < from;
        }
        for (int i = from; i <= to; i++) set[i] = true;
    }
    (void)next(w); /* ] */
    for (int i = 0; i < 256 && negated; i++) set[i] = !set[i];
}

/* One letter of a set, from each position. */
static places letter(walk *w, char c, places from)
{
    bool set[256] = { false };
    places to = { { 0 } };
    if (c == '\\') escape(w, set);
    else if (c == '[') class(w, set);
    else if (c == '.') memset(set, true, sizeof set);
    else set[(unsigned char)c] = true;
    for (int i = 0; i < w->length; i++)
        if (has(&from, i) && set[(unsigned char)w->text[i]]) put(&to, i + 1);
    return to;
}

/* Counts a repetition of what was walked, whose time multiplies with those within it. */
static void nest(walk *w)
{
    if (++w->nested > HR_REGEX_NESTED_MOST) w->bad = true;
}

/* The positions where what stands ahead does not match: a walk from each. */
static places not_ahead(walk *w, places from)
{
    const char *const at = w->at;
    places to = { { 0 } };
    for (int i = 0; i <= w->length && !w->bad; i++) {
        places one = { { 0 } };
        put(&one, i);
        w->at = at;
        one = alternatives(w, one);
        if (has(&from, i) && is_empty(&one)) put(&to, i);
        if (i == 0) nest(w);
    }
    return to;
}

static places group(walk *w, places from)
{
    places to;
    if (++w->depth > HR_REGEX_DEPTH_MOST) w->bad = true;
    if (w->bad) return from;
    if (takes(w, '?')) {
        const char kind = next(w);
        if (kind == '!') to = not_ahead(w, from);
        else to = alternatives(w, from);
        w->bad |= kind != '!' && kind != ':';
    } else to = alternatives(w, from);
    w->depth--;
    if (!takes(w, ')')) w->bad = true;
    return to;
}

static places atom(walk *w, places from)
{
    const char c = next(w);
    places to = { { 0 } };
    if (c == '(') return group(w, from);
    if (c == '^' || c == '$') {
        const int i = c == '^' ? 0 : w->length;
        if (has(&from, i)) put(&to, i);
        return to;
    }
    if (!c || strchr("*+?{}])|", c)) w->bad = true;
    return w->bad ? from : letter(w, c, from);
}

static int number(walk *w)
{
    int value = 0;
    if (w->at == w->end || !isdigit((unsigned char)*w->at)) w->bad = true;
    while (w->at < w->end && isdigit((unsigned char)*w->at) && value <= REPEATS_MOST)
        value = 10 * value + (*w->at++ - '0');
    if (value > REPEATS_MOST) w->bad = true;
    return value;
}

/* Reads how often an atom may repeat. */
static void repetition(walk *w, int *least, int *most)
{
    *least = *most = 1;
    if (takes(w, '*')) *least = 0, *most = REPEATS_MOST;
    else if (takes(w, '+')) *most = REPEATS_MOST;
    else if (takes(w, '?')) *least = 0;
    else if (takes(w, '{')) {
        *least = *most = number(w);
        if (takes(w, ',')) *most = w->at < w->end && *w->at == '}' ? REPEATS_MOST : number(w);
        if (!takes(w, '}') || *most < *least) w->bad = true;
    } else return;
    (void)takes(w, '?'); /* the shortest match first: the whole text matches or it does not */
}

static places repeated(walk *w, places from)
{
    const char *const at = w->at;
    const int before = w->nested;
    int least, most;
    w->nested = 0;
    places to = atom(w, from);
    repetition(w, &least, &most);
    const char *const end = w->at;
    if (most > 1) nest(w);
    const int nested = w->nested > before ? w->nested : before;
    w->nested = nested;
    if (least == 1 && most == 1) return to;
    places now = from, reached = from;
    if (least > 0) reached = (places){ { 0 } };
    for (int i = 1; i <= most && !w->bad && !is_empty(&now); i++) {
        w->at = at;
        now = atom(w, now);
        const places last = reached;
        if (i >= least) reached = both(reached, now);
        if (i > least && !memcmp(&last, &reached, sizeof last)) break;
    }
    w->at = end;
    w->nested = nested;
    return reached;
}

static places alternatives(walk *w, places from)
{
    places to = { { 0 } };
    do {
        places now = from;
        while (!w->bad && w->at < w->end && *w->at != '|' && *w->at != ')') now = repeated(w, now);
        to = both(to, now);
    } while (!w->bad && takes(w, '|'));
    return to;
}

static bool match(const char *expression, int length, const char *text, bool *valid)
{
    walk w = {
        .at = expression, .end = expression + length, .text = text, .length = (int)strlen(text)
    };
    places start = { { 0 } };
    put(&start, 0);
    const places to = alternatives(&w, start);
    *valid = !w.bad && w.at == w.end;
    return *valid && has(&to, w.length);
}

bool hr_regex_is_valid(const char *expression, int length)
{
    bool valid;
    (void)!match(expression, length, "", &valid);
    return valid;
}

bool hr_regex_matches(const char *expression, int length, const char *text)
{
    bool valid;
    return strlen(text) <= HR_REGEX_TEXT_MOST && match(expression, length, text, &valid);
}
