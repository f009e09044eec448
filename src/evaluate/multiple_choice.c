/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/multiple_choice.c - parses JSON Lines into two tables. Contexts and choices point into
 * the text, which is decoded in place. */
#include "evaluate/multiple_choice.h"

#include <string.h>

#include "base/checked.h"
#include "base/json.h"

/* Upper bounds for the tables: one question per line, two quotation marks per string. */
static void count(const char *text, int64_t bytes, int64_t *lines, int64_t *strings)
{
    int64_t marks = 0;
    *lines = 1;
    for (int64_t i = 0; i < bytes; i++) {
        *lines += text[i] == '\n';
        marks += text[i] == '"';
    }
    *strings = marks / 2 + 1;
}

int64_t hr_multiple_choice_bytes(const char *text, int64_t bytes)
{
    const int64_t alignment = 2 * 64;
    int64_t lines, strings;
    count(text, bytes, &lines, &strings);
    return lines * (int64_t)sizeof(hr_sequences_question) +
           strings * (int64_t)sizeof(hr_sequences_choice) + alignment;
}

static bool is_blank(const char *line, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
    return true;
}

static hr_status fail_line(const hr_sequences *source, int64_t line, const char *what,
                           hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, "%s, line %lld: %s", source->path, (long long)line, what);
}

/* Reads the choices of a line. Returns null, or the problem. */
static const char *read_choices(hr_sequences *source, hr_json *json)
{
    hr_sequences_question *question = &source->questions[source->question_count];
    if (hr_json_next(json) != HR_JSON_ARRAY) return "choices is not an array";
    for (;;) {
        const hr_json_kind kind = hr_json_next(json);
        if (kind == HR_JSON_CLOSE) return NULL;
        if (kind != HR_JSON_STRING) return "a choice is not a string";
        if (json->value_bytes == 0) return "a choice is empty";
        source->choices[question->first + question->count++] = (hr_sequences_choice){
            json->value, json->value_bytes, (int32_t)source->question_count
        };
    }
}

static const char *read_context(hr_sequences_question *question, hr_json *json)
{
    if (hr_json_next(json) != HR_JSON_STRING) return "the context is not a string";
    question->context = json->value;
    question->bytes = json->value_bytes;
    return NULL;
}

static const char *read_answer(hr_sequences_question *question, hr_json *json)
{
    if (hr_json_next(json) == HR_JSON_NUMBER && hr_json_integer(json, &question->answer))
        return NULL;
    return "the answer is not the index of a choice";
}

/* Keys that were found. */
typedef struct {
    bool choices, context, answer;
} there;

/* Reads the value of the current key. Returns null, or the problem. */
static const char *read_value(hr_sequences *source, hr_json *json, there *t)
{
    hr_sequences_question *question = &source->questions[source->question_count];
    if (hr_json_is(json, "choices")) {
        if (t->choices) return "choices occurs twice";
        t->choices = true;
        return read_choices(source, json);
    }
    if (hr_json_is(json, "context")) {
        if (t->context) return "context occurs twice";
        t->context = true;
        return read_context(question, json);
    }
    if (hr_json_is(json, "answer")) {
        if (t->answer) return "answer occurs twice";
        t->answer = true;
        return read_answer(question, json);
    }
    return hr_json_skip(json, hr_json_next(json)) ? NULL : json->problem;
}

/* A JSON syntax error is reported in preference to a wrong type. */
static const char *read_line(hr_sequences *source, hr_json *json)
{
    hr_sequences_question *question = &source->questions[source->question_count];
    there t = { 0 };
    if (hr_json_next(json) != HR_JSON_OBJECT) return "not a JSON object";
    for (;;) {
        const hr_json_kind kind = hr_json_next(json);
        if (kind == HR_JSON_CLOSE) break;
        if (kind != HR_JSON_KEY) return json->problem;
        const char *problem = read_value(source, json, &t);
        if (problem) return json->problem ? json->problem : problem;
    }
    if (hr_json_next(json) != HR_JSON_END) return json->problem;
    if (question->bytes == 0) return "context is missing or empty";
    if (question->count < 2) return "fewer than two choices";
    if (!t.answer || question->answer < 0 || question->answer >= question->count)
        return "the answer is not the index of a choice, counted from 0";
    return NULL;
}

hr_status hr_multiple_choice_open(hr_sequences *source, const char *path, char *text, int64_t bytes,
                                  hr_region *region, hr_error *err)
{
    int64_t lines, strings, line = 0;
    count(text, bytes, &lines, &strings);
    source->path = path;
    source->questions = hr_region_take(region, lines, sizeof *source->questions);
    source->choices = hr_region_take(region, strings, sizeof *source->choices);
    if (!source->questions || !source->choices)
        return hr_fail(err, HR_FAILURE, "out of memory for the questions of %s", path);
    for (char *at = text, *end = text + bytes; at < end; at++) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        const int64_t length = (newline ? newline : end) - at;
        line++;
        if (!is_blank(at, length)) {
            hr_json json = line == 1 ? hr_json_over_file(at, length) : hr_json_over(at, length);
            hr_sequences_question *question = &source->questions[source->question_count];
            *question = (hr_sequences_question){ .first = source->rows, .line = line };
            const char *problem = read_line(source, &json);
            if (problem) return fail_line(source, line, problem, err);
            source->question_count++;
            source->rows += question->count;
            for (int64_t c = 0; c < question->count; c++)
                source->length = hr_max(source->length,
                                        question->bytes - 1 +
                                            source->choices[question->first + c].bytes);
        }
        at += length;
    }
    if (source->question_count) return HR_OK;
    return hr_fail(err, HR_CORRUPT, "%s has no questions", path);
}

static hr_status add(hr_sequences *source, hr_tokens *tokens, const char *text, int64_t bytes,
                     bool ends, hr_error *err)
{
    return hr_tokens_add(tokens, (const uint8_t *)text, bytes, ends, source->path, 0, err);
}

/* When context and choice are a single token, no token precedes it. The id that ends documents then
 * goes before it, as before a text in training; it is stored before every choice for this
 * purpose. */
static hr_status prepend_document_end(hr_sequences *source, hr_sequences_choice *choice,
                                      hr_error *err)
{
    if (source->document_end < 0)
        return fail_line(
            source, source->questions[choice->question].line,
            "context and choice are one token together, so there is no context to score "
            "it with: write a longer context",
            err);
    choice->id_first--;
    choice->id_count++;
    choice->asked = 1;
    return HR_OK;
}

/* A choice starts at the token count of the context tokenized alone. So as many tokens of context +
 * choice are not scored; but the last token is always scored, and the first never. */
hr_status hr_multiple_choice_encode(hr_sequences *source, hr_tokens *tokens, hr_error *err)
{
    int64_t alone = 0;
    source->length = 0;
    source->document_end = hr_tokens_document_end(tokens);
    const uint32_t end = (uint32_t)source->document_end;
    for (int64_t row = 0; row < source->rows; row++) {
        hr_sequences_choice *choice = &source->choices[row];
        const hr_sequences_question *question = &source->questions[choice->question];
        const int64_t before = source->ids.count;
        hr_status status = HR_OK;
        if (row == question->first) {
            status = add(source, tokens, question->context, question->bytes, true, err);
            alone = source->ids.count - before;
        }
        if (status == HR_OK && source->document_end >= 0)
            status = hr_ids_file_add(&source->ids, &end, 1, err);
        choice->id_first = source->ids.count;
        if (status == HR_OK)
            status = add(source, tokens, question->context, question->bytes, false, err);
        if (status == HR_OK) status = add(source, tokens, choice->text, choice->bytes, true, err);
        if (status != HR_OK) return status;
        choice->id_count = source->ids.count - choice->id_first;
        choice->asked = hr_max(hr_min(alone, choice->id_count - 1), 1);
        if (choice->id_count < 2) status = prepend_document_end(source, choice, err);
        if (status != HR_OK) return status;
        source->length = hr_max(source->length, choice->id_count - 1);
    }
    return hr_ids_file_flush(&source->ids, err);
}

static void no_more(const hr_sequences *source, int64_t from, int32_t *ids, int32_t *targets)
{
    for (int64_t t = from; t < source->length; t++) {
        ids[t] = 0;
        targets[t] = -1;
    }
}

static hr_status read_ids(const hr_sequences *source, const hr_sequences_choice *choice,
                          int32_t *ids, int32_t *targets, hr_error *err)
{
    const int64_t last = choice->id_count - 1;
    hr_status status = hr_ids_file_read(&source->ids, choice->id_first, last, ids, err);
    if (status == HR_OK)
        status = hr_ids_file_read(&source->ids, choice->id_first + 1, last, targets, err);
    for (int64_t t = 0; t + 1 < choice->asked; t++) targets[t] = -1;
    no_more(source, last, ids, targets);
    return status;
}

hr_status hr_multiple_choice_read(const hr_sequences *source, int64_t row, int32_t *ids,
                                  int32_t *targets, hr_error *err)
{
    const hr_sequences_choice *choice = &source->choices[row];
    const hr_sequences_question *question = &source->questions[choice->question];
    const int64_t last = question->bytes + choice->bytes - 1;
    if (source->ids.file >= 0) return read_ids(source, choice, ids, targets, err);
    for (int64_t t = 0; t <= last; t++) {
        const bool is_asked = t >= question->bytes;
        const int32_t id = is_asked ? (uint8_t)choice->text[t - question->bytes]
                                    : (uint8_t)question->context[t];
        if (id >= source->vocabulary)
            return hr_fail(
                err, HR_USAGE, "%s, line %lld: byte %d is not among the %lld tokens of the model",
                source->path, (long long)question->line, id, (long long)source->vocabulary);
        if (t < last) ids[t] = id;
        if (t > 0) targets[t - 1] = is_asked ? id : -1;
    }
    no_more(source, last, ids, targets);
    return HR_OK;
}

void hr_multiple_choice_record(const hr_sequences *source, int64_t row, double loss, int64_t tokens,
                               hr_multiple_choice_best *best, hr_evaluate_result *result)
{
    const hr_sequences_question *question = &source->questions[source->choices[row].question];
    const int64_t choice = row - question->first;
    const double mean = loss / (double)tokens;
    if (choice == 0 || loss < best->loss) {
        best->loss = loss;
        best->likeliest = choice;
    }
    if (choice == 0 || mean < best->mean) {
        best->mean = mean;
        best->by_length = choice;
    }
    if (choice + 1 < question->count) return;
    result->questions++;
    result->right += best->likeliest == question->answer;
    result->right_by_length += best->by_length == question->answer;
}
