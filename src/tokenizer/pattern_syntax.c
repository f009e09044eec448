/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/pattern_syntax.c - what Oniguruma's classes contain, in properties of PCRE2.
 *
 * The characters that are listed one by one got the property after Unicode 14, which PCRE2 10.42
 * has. But 00B2 to 00BE, as in Latin-1 of Oniguruma, are in \w alone, and in no class with it.
 *
 * Source  measured: each class over the characters of Unicode 14, beside the package tokenizers. */
#include "tokenizer/pattern_syntax.h"

#include <string.h>

#include "base/checked.h"

#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define ALPHA \
    "\\p{Alphabetic}\\x{363}-\\x{36f}\\x{c04}\\x{f82}\\x{f83}\\x{1dd3}-\\x{1de6}\\x{11080}\\x{" \
    "11081}"
#define LOWER "\\p{Lowercase}\\x{10fc}\\x{a7f2}-\\x{a7f4}\\x{ab69}"

/* Names of [:name:] and \p{name}, and what is in them. */
static const struct {
    const char *name;
    const char *set; /* null: it is refused */
    bool posix;
} classes[] = {
    { "word", WORD, true },
    { "alpha", ALPHA, true },
    { "alnum", ALPHA "\\p{Nd}", true },
    { "lower", LOWER, true },
    { "punct", "\\p{P}\\p{S}", true },
    { "upper", "\\p{Uppercase}", true },
    { "graph", NULL, true },
    { "print", NULL, true },
    { "alpha", ALPHA, false },
    { "alphabetic", ALPHA, false },
    { "lower", LOWER, false },
    { "lowercase", LOWER, false },
};
enum { CLASSES = sizeof classes / sizeof *classes, NAME_BYTES = 48 };

static const char word[] = WORD "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";

typedef struct {
    const char *text;
    int64_t at, bytes;
    bool inside;    /* inside a character class */
    int64_t opened; /* where its first character is */
    bool folds;     /* (?i) was seen */
    hr_pattern_is_script_fn *is_script;
    void *context;
    char *out;
    int64_t room, made;
    bool is_full; /* out has no room */
    const char *why;
} translation;

static void put(translation *t, const char *text, int64_t bytes)
{
    if (bytes > t->room - t->made) {
        t->is_full = true;
        return;
    }
    memcpy(t->out + t->made, text, (size_t)bytes);
    t->made += bytes;
}

static void put_text(translation *t, const char *text)
{
    put(t, text, (int64_t)strlen(text));
}

/* Writes a set, or all other characters, of which a class cannot have a part. */
static void put_set(translation *t, const char *set, bool negated)
{
    if (t->inside && negated) {
        t->why = "a negated class (\\W, \\P{...}, [:^...:]) within brackets";
        return;
    }
    if (!t->inside) put_text(t, negated ? "[^" : "[");
    put_text(t, set);
    if (!t->inside) put_text(t, "]");
}

/* Writes a place with a word character on one side only; negated: on both sides or on none. */
static void put_boundary(translation *t, bool negated)
{
    static const char *const parts[2][4] = { { "(?:(?<=[", "])(?![", "])|(?<![", "])(?=[" },
                                             { "(?:(?<=[", "])(?=[", "])|(?<![", "])(?![" } };
    for (int32_t i = 0; i < 4; i++) {
        put_text(t, parts[negated][i]);
        put_text(t, word);
    }
    put_text(t, "]))");
}

/* The place of a class by its name; -1: there is none. Case, blanks, - and _ do not count. */
static int32_t find_class(const char *name, int64_t bytes, bool posix)
{
    char plain[NAME_BYTES];
    int32_t count = 0;
    for (int64_t i = 0; i < bytes && count < NAME_BYTES - 1; i++) {
        const char c = name[i];
        if (c == ' ' || c == '-' || c == '_') continue;
        plain[count++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    plain[count] = 0;
    for (int32_t i = 0; i < CLASSES; i++)
        if (classes[i].posix == posix && !strcmp(classes[i].name, plain)) return i;
    return -1;
}

/* Translates \p{name}, \p{^name} or \P{name}, whose braces are at `open` and `close`. */
static void put_property(translation *t, int64_t open, int64_t close)
{
    bool negated = t->text[open - 1] == 'P';
    const char *name = t->text + open + 1;
    int64_t bytes = close - open - 1;
    if (bytes && *name == '^') {
        negated = !negated;
        name++;
        bytes--;
    }
    const int32_t found = find_class(name, bytes, false);
    if (found >= 0) put_set(t, classes[found].set, negated);
    else if (t->is_script(t->context, name, bytes)) {
        put_text(t, negated ? "\\P{sc:" : "\\p{sc:");
        put(t, name, bytes);
        put_text(t, "}");
    } else put(t, t->text + open - 2, close + 1 - open + 2);
    t->at = close + 1;
}

/* Translates what begins with a backslash. */
static void put_escape(translation *t)
{
    const char *here = t->text + t->at;
    const int64_t left = t->bytes - t->at;
    const char c = left > 1 ? here[1] : 0;
    const char *close = left > 2 && here[2] == '{' ? memchr(here, '}', (size_t)left) : NULL;
    if (c && strchr("hHyYOKzuUQE", c)) {
        t->why = "one of \\h \\H \\y \\Y \\O \\K \\z \\u \\Q";
        return;
    }
    if ((c == 'p' || c == 'P') && close) {
        put_property(t, t->at + 2, close - t->text);
        return;
    }
    const int64_t taken = close ? close + 1 - here : hr_min(left, 2);
    if (c == 'w' || c == 'W') put_set(t, t->inside ? WORD : word, c == 'W');
    else if (c == 'v') put_text(t, "\\x0b");
    else if ((c == 'b' || c == 'B') && !t->inside) put_boundary(t, c == 'B');
    else put(t, here, taken);
    t->at += taken;
}

/* Translates [:name:] or [:^name:]; false: there is none here. */
static bool put_posix(translation *t)
{
    const char *here = t->text + t->at, *end = t->text + t->bytes, *at = here + 2;
    const bool negated = at < end && *at == '^';
    const char *name = at + negated;
    for (at = name; at < end && *at >= 'a' && *at <= 'z';) at++;
    if (end - at < 2 || at[0] != ':' || at[1] != ']') return false;
    const int32_t found = find_class(name, at - name, true);
    t->at += at + 2 - here;
    if (found < 0) put(t, here, at + 2 - here);
    else if (!classes[found].set) t->why = "[:graph:] or [:print:]";
    else put_set(t, classes[found].set, negated);
    return true;
}

/* Reads the options of (?imxs-imxs: and of (?i). */
static void check_options(translation *t)
{
    int64_t letter = t->at + 2;
    while (letter < t->bytes && t->text[letter] && strchr("imxs-", t->text[letter])) letter++;
    for (int64_t at = t->at + 2; at < letter; at++) {
        if (t->text[at] != 'i' && t->text[at] != '-') t->why = "an option other than (?i)";
        t->folds |= t->text[at] == 'i';
    }
}

/* Whether two letters can match one character without regard to case: a ligature, or sharp s. */
static bool is_ligature(char a, char b)
{
    static const char pairs[][3] = { "ss", "ff", "fi", "fl", "st" };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if ((a | 0x20) == pairs[i][0] && (b | 0x20) == pairs[i][1]) return true;
    return false;
}

static void put_one(translation *t)
{
    const char c = t->text[t->at], next = t->at + 1 < t->bytes ? t->text[t->at + 1] : 0;
    if (c == '\\') {
        put_escape(t);
        return;
    }
    if (t->inside) {
        if (c == ']' && t->at > t->opened) t->inside = false;
        if (c == '[' && next == ':' && put_posix(t)) return;
        if (c == '[') t->why = "a nested class";
        if (c == '&' && next == '&') t->why = "a class intersection, &&";
    } else if (c == '[') {
        t->inside = true;
        t->opened = t->at + 1 + (next == '^');
    } else if (c == '{' && next == ',') {
        t->why = "{,n}";
    } else if (c == '}' && next == '+') {
        t->why = "{n,m}+";
    } else if (c == '(' && next == '?') {
        check_options(t);
    } else if (t->folds && is_ligature(c, next)) {
        t->why = "(?i) with ss, ff, fi, fl or st";
    }
    put(t, &c, 1);
    t->at++;
}

const char *hr_pattern_translate(const char *text, int64_t bytes,
                                 hr_pattern_is_script_fn *is_script, void *context, char *out,
                                 int64_t room, int64_t *out_bytes)
{
    translation t = { .text = text,
                      .bytes = bytes,
                      .is_script = is_script,
                      .context = context,
                      .out = out,
                      .room = room };
    while (t.at < bytes && !t.why && !t.is_full) put_one(&t);
    *out_bytes = t.is_full ? -1 : t.made;
    return t.why;
}
