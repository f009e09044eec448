/* SPDX-License-Identifier: Apache-2.0 */
/* audit/markdown.h - the lines of a text, as words and numbers. */
#ifndef HR_AUDIT_MARKDOWN_H
#define HR_AUDIT_MARKDOWN_H

#include "audit/findings.h"

enum { HR_PROSE_LINE_BYTES = 1024, HR_PROSE_TOKENS_MOST = 128, HR_PROSE_ADDENDS_MOST = 32 };

typedef enum {
    HR_PROSE_WORD,
    HR_PROSE_NUMBER,
    HR_PROSE_TIMES,  /* × * x */
    HR_PROSE_EQUALS, /* = → ≈ */
    HR_PROSE_MARK    /* any other character, in `mark` */
} hr_prose_kind;

typedef struct {
    hr_prose_kind kind;
    char mark;
    hr_stated number;
    int32_t at, length; /* in the line */
    bool of_column;     /* a number whose unit stands in the header of its column */
} hr_prose_token;

/* A line without emphasis and code marks. */
typedef struct {
    const char *raw; /* [raw_length], in the file */
    int64_t raw_length;
    char text[HR_PROSE_LINE_BYTES];
    int32_t length;
    int64_t number; /* from 1 */
    hr_prose_token tokens[HR_PROSE_TOKENS_MOST];
    int32_t token_count;
    bool *read; /* [token_count]: numbers that were checked, or that a checked one follows from */
    bool cut;   /* too long: it is not read */
    bool sized; /* a row with a number in a column of sizes or of parameters */
} hr_prose_line;

/* What a document says once and tables use. */
typedef struct {
    double vocabulary; /* 0: none, or several */
    bool several;
    bool dtypes[3]; /* mentioned: 4, 2 and 1 bytes */
} hr_prose_facts;

/* A size that a later "Total" may sum. */
typedef struct {
    hr_stated size;
    int64_t line;
    char tag[24]; /* the dtype in parentheses behind the name; empty: none */
} hr_prose_addend;

typedef struct {
    hr_prose_addend list[HR_PROSE_ADDENDS_MOST];
    int32_t count;
    bool broken;    /* a line of the block has no size or a range */
    bool several;   /* a size in it may count several times: a total may be another sum */
    bool done;      /* its total was read; other totals may follow */
    bool ruled;     /* the last line is a rule */
    int32_t indent; /* of its lines */
} hr_prose_sum;

/* The columns of the open table. */
typedef struct {
    int8_t roles[16];    /* of each column */
    hr_stated units[16]; /* of its header; scale 1: none */
    double elements[16]; /* bytes of the dtype that it names; 0: none */
    double tokens;       /* of "hours to 1B tokens" */
    int32_t columns;
    bool open;
} hr_prose_table;

/* Splits a line of the file. Returns the bytes taken, with the line end. */
int64_t hr_prose_take_line(const char *text, int64_t bytes, int64_t number, hr_prose_line *line);

/* Adds what a line says about the vocabulary and dtypes. */
void hr_prose_learn(const hr_prose_line *line, hr_prose_facts *facts);

/* Bytes of an element of the one dtype that the line names; 0: none or several. Pure. */
double hr_prose_dtype(const hr_prose_line *line);
double hr_prose_dtype_of(const hr_prose_line *line, int32_t first, int32_t last); /* in tokens */

/* Returns whether a word is the name of a dtype. Pure. */
bool hr_prose_is_dtype(const hr_prose_line *line, const hr_prose_token *token);

/* Whether token i is a word that begins so, in letters of any case. Pure. */
bool hr_prose_begins(const hr_prose_line *line, int32_t i, const char *begin);

/* Whether nothing but weights or elements can have the size that the line states: it names them,
 * and no gradients, optimizer or other memory. Pure. */
bool hr_prose_is_of_weights(const hr_prose_line *line);

/* Whether the number at token i may not be what was read: an unknown unit follows ("312 TFLOPS",
 * "6.3 Mb", "100 K"), or it is part of a number with another comma ("1,5 GB", "4,1k"). Pure. */
bool hr_prose_is_unclear(const hr_prose_line *line, int32_t i);

/* The relative uncertainty of a rounded factor, "~5" or "11M"; 0: it is exact. Pure. */
double hr_prose_slack(const hr_stated *number);

/* Whether a stated size is that of so many bytes, within the uncertainty of its factors. Pure. */
bool hr_prose_is_true(const hr_stated *stated, double bytes, double slack);

/* Compares text [at, at + length) of the line, judged against `right`, and adds the claim.
 * `slack` is the relative uncertainty of rounded factors: a claim within it is true. */
void hr_prose_judge(const hr_prose_line *line, const hr_prose_token *stated, hr_quantity right,
                    double slack, const char *formula, hr_audit_report *report);

/* Reads the unit that the header of a column names, "Memory (GB)" or "Params (M)"; scale 1: none,
 * several, or a rate. */
void hr_prose_read_unit(const char *header, hr_stated *unit);

/* Gives the only number in the tokens [first, last) of a cell the unit of its column, unless it has
 * one. Returns whether the cell has a number. */
bool hr_prose_apply_unit(hr_prose_line *line, int32_t first, int32_t last, const hr_stated *unit);

/* Whether a header, in lower case, is of a column with all parameters, or with the size of nothing
 * but the weights. Pure. */
bool hr_prose_counts_parameters(const char *header);
bool hr_prose_sizes_weights(const char *header);

/* Checks a size against a number of parameters of `element` bytes; 0: not known, so that no size is
 * wrong. Returns how many claims it had. */
int32_t hr_prose_weights_row(const hr_prose_line *line, const hr_prose_token *count,
                             const hr_prose_token *size, double element, hr_audit_report *report);

/* Checks a row of a table, a header included. Returns how many claims it had. */
int32_t hr_prose_row(hr_prose_line *line, const hr_prose_facts *facts, hr_prose_table *table,
                     hr_audit_report *report);

/* Checks "seq_len=4096, logits=1.16GB". Returns how many claims it had. */
int32_t hr_prose_logits(const hr_prose_line *line, const hr_prose_facts *facts,
                        hr_audit_report *report);

/* Checks a "Total" against the sizes before it, or remembers the size of the line. Returns how many
 * claims it had. */
int32_t hr_prose_total(const hr_prose_line *line, hr_prose_sum *sum, hr_audit_report *report);

#endif
