/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/audit.h - reads what others state about memory, and does the arithmetic again.
 *
 * The file is a list of claims, a Markdown document, a recipe, or the training configuration of
 * another program. Nothing of it is run, and no key of it is dropped without a word. docs/audit.md
 * has the formats. */
#ifndef HEADROOM_AUDIT_H
#define HEADROOM_AUDIT_H

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HR_AUDIT_FILE_BYTES = 1048576, /* limit of a file */
    HR_AUDIT_CLAIMS_MOST = 512,
    HR_AUDIT_UNREAD_MOST = 512,
    HR_AUDIT_WORD_BYTES = 96,
    HR_AUDIT_VALUE_BYTES = 96,
    HR_AUDIT_LINE_BYTES = 200,
    HR_AUDIT_SENTENCE_BYTES = 320
};

/* What a file is: enumerator, word of --kind, words for people. */
#define HR_AUDIT_KIND_LIST(X) \
    X(AUTO, auto, "detected") \
    X(CLAIMS, claims, "claims file") \
    X(MARKDOWN, markdown, "text") \
    X(RECIPE, recipe, "recipe") \
    X(HF, hf, "Hugging Face Trainer") \
    X(TRL, trl, "TRL") \
    X(AXOLOTL, axolotl, "axolotl") \
    X(LLAMA_FACTORY, llama - factory, "LLaMA-Factory") \
    X(TORCHTUNE, torchtune, "torchtune") \
    X(DEEPSPEED, deepspeed, "DeepSpeed") \
    X(MLX, mlx - lm, "mlx-lm")

#define HR_AUDIT_KIND_ID(id, word, text) HR_AUDIT_##id,
typedef enum { HR_AUDIT_KIND_LIST(HR_AUDIT_KIND_ID) HR_AUDIT_KINDS } hr_audit_kind;
#undef HR_AUDIT_KIND_ID

/* The word of --kind, and the words for people. Pure. */
const char *hr_audit_kind_word(hr_audit_kind kind);
const char *hr_audit_kind_text(hr_audit_kind kind);

typedef enum { HR_AUDIT_PLAIN, HR_AUDIT_BYTES, HR_AUDIT_SECONDS } hr_audit_dimension;

typedef enum {
    HR_VERDICT_TRUE,
    HR_VERDICT_UNIT, /* the digits are right in another unit: "37.09 GB" that are GiB */
    HR_VERDICT_WRONG
} hr_audit_verdict;

/* A claim and what is true. */
typedef struct {
    int64_t line;
    hr_audit_verdict verdict;
    char stated[HR_AUDIT_WORD_BYTES];       /* "37.09 GB" */
    char formula[HR_AUDIT_LINE_BYTES];      /* "logits(T=131072, V=151936, dtype=bf16)" */
    char where[HR_AUDIT_WORD_BYTES];        /* the source that the file names; may be empty */
    char right[HR_AUDIT_VALUE_BYTES];       /* the right value, in words */
    char sentence[HR_AUDIT_SENTENCE_BYTES]; /* the verdict */
    hr_audit_dimension dimension;
    double stated_value, right_value; /* in bytes, seconds or units */
    int64_t right_whole;              /* right_value as a whole number; -1: it is none */
} hr_audit_claim;

/* A line that looks like a claim and was not checked. */
typedef struct {
    int64_t line;
    char text[HR_AUDIT_LINE_BYTES];
    char why[HR_AUDIT_WORD_BYTES];
} hr_audit_unread;

typedef struct {
    hr_audit_kind kind;
    int32_t claim_count, unread_count;
    int32_t claims_left_out, unread_left_out; /* beyond the limits; still counted in the verdict */
    int32_t verdicts[3];                      /* how many, by hr_audit_verdict */
    hr_audit_claim claims[HR_AUDIT_CLAIMS_MOST];
    hr_audit_unread unread[HR_AUDIT_UNREAD_MOST];
} hr_audit_report;

typedef struct {
    hr_audit_kind kind; /* HR_AUDIT_AUTO: by its content */
    void *memory;       /* [memory_bytes] scratch, at least HR_AUDIT_MEMORY_BYTES */
    int64_t memory_bytes;
} hr_audit_request;

enum { HR_AUDIT_MEMORY_BYTES = 8 * HR_AUDIT_FILE_BYTES };

/* Reads the file and checks its claims.
 *
 *   report  out
 *
 * Errors   USAGE  missing or unreadable; longer than HR_AUDIT_FILE_BYTES; a pickle; content that
 *                 belongs to no kind; an expression with an unknown unit, name or dimension: with
 *                 the line and the nearest name.
 * Threads  any. */
HR_MUST_CHECK hr_status hr_audit_file(const char *path, const hr_audit_request *request,
                                      hr_audit_report *report, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
