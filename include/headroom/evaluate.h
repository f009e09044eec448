/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/evaluate.h - evaluates a model on given text, inside a plan.
 *
 * The model comes from a folder that headroom or Hugging Face wrote. The result is either all
 * logits, in a file, or the loss of each token. */
#ifndef HEADROOM_EVALUATE_H
#define HEADROOM_EVALUATE_H

#include "headroom/infer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t size; /* of this struct */
    const hr_infer_request *model;
    /* The input, exactly one of:
     *   tokens   a safetensors file with `input_ids` [B, T], I64 or I32. The target of a token is
     *            the next token of its sequence. With `labels` [B, T] in the file, labels[b,t] is
     *            the target of input_ids[b,t], and -100 is not counted
     *   text     a text file, evaluated in windows of `context` tokens
     *   choices  one JSON object per line with context, choices and answer, the 0-based index of
     *            the correct choice */
    const char *tokens, *text, *choices;
    /* For `text`: [key_count] data.text_field, data.prompt_field, data.completion_field and
     * data.bad_lines, as key=value; null: their defaults. */
    const char *const *keys;
    int64_t key_count;
    /* For `tokens`: a safetensors file for the logits [B, T, V], F32, written instead of losses;
     * null: none. */
    const char *logits_out;
    /* For NPT adapters: a safetensors file for what modulates tokens of the first sequence; null:
     * none. `positions` are theirs, rising, as "0-3 9"; null: the last. `prompt`, a text, may take
     * the place of the three inputs. */
    const char *capture_out, *positions, *prompt;
    /* A file for the loss of each token, one JSON object per line; null: none. */
    const char *per_token;
    const char *scratch; /* directory for temporary token ids of a text, 4 bytes each; null: /tmp */
    /* tokens per window; 0: the learned positions; without learned positions 1024, or the positions
     * of the model if fewer */
    int64_t context;
    /* tokens between the starts of windows; 0: the window length. A token that two windows share is
     * counted in the first */
    int64_t stride;
} hr_evaluate_request;

enum { HR_EVALUATE_CHANGES_MAX = 256 };

/* How NPT adapters change a matrix, and how far that layer is from the standard one. */
typedef struct {
    int64_t layer;
    char module[32]; /* within the layer: "mlp.gate_proj" */
    double norm;     /* Frobenius norm of the change, mean over tokens */
    double error; /* of the layer's output on the standard layer's input; the measure of training is
                   * the mean squared error */
} hr_evaluate_change;

typedef struct {
    /* windows, rows of input_ids, or choices; largest tokens per sequence */
    int64_t sequences, length;
    int64_t stride;           /* of a text; else 0 */
    int64_t bad_lines;        /* of a text: lines that data.bad_lines=skip skipped */
    int64_t at_a_time, chunk; /* sequences per pass; tokens per chunk of logits */
    /* positions that the model was made for; 0: any. Longer sequences are allowed if positions are
     * not learned */
    int64_t positions;
    int64_t mlp_tile;        /* tokens per MLP tile; 0: no tiling */
    int64_t tokens;          /* tokens that have a target */
    double loss_sum;         /* sum over these tokens, in nats */
    double loss, perplexity; /* per token; 0 without tokens */
    double bits_per_byte;    /* of a text (NaN: of no bytes), or with a byte tokenizer; else 0 */
    bool has_labels;         /* the token file has labels */
    /* of choices: correct answers by the sum, and by the mean, of token log-probabilities */
    int64_t questions, right, right_by_length;
    /* of NPT adapters, but not with logits_out and choices: the base alone, and the first rows of
     * matrices that have some */
    double base_loss_sum, base_loss, base_perplexity;
    int32_t captured; /* tokens */
    int32_t change_count;
    hr_evaluate_change changes[HR_EVALUATE_CHANGES_MAX];
    double run_seconds;
    hr_infer_result run;
} hr_evaluate_result;

/* Errors   USAGE     no folder; not exactly one input; text without a known tokenizer; ids outside
 *                    the vocabulary; more tokens than learned positions
 *          CORRUPT   the model folder, the token file, or a line of choices
 *          DIVERGED  a logit used for a loss is not finite
 *          NO_FIT    with the bytes needed and available
 *          BROKEN    measured memory above the plan
 *          FAILURE   the system refused
 *          INTERRUPTED  no file was written
 * Threads  one call at a time per process. */
HR_MUST_CHECK hr_status hr_evaluate(const hr_evaluate_request *request, hr_evaluate_result *result,
                                    hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
