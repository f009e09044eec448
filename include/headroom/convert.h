/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/convert.h - weights from one folder into another: shards, names and types of numbers.
 *
 * Folders are those that headroom writes and those of Hugging Face: config.json and safetensors. A
 * tensor keeps its bytes unless a type is asked for. */
#ifndef HEADROOM_CONVERT_H
#define HEADROOM_CONVERT_H

#include <signal.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *source;      /* folder, or one safetensors file */
    const char *destination; /* folder; made if it is missing, and without weights so far */
    int64_t shard_bytes; /* most bytes of tensors a file, but for a larger tensor; 0: one file */
    const char *prefix;  /* "none", "model.", "transformer.", "gpt_neox."; null: as they are */
    const char *dtype;   /* "f32", "f16", "bf16" for all that is one of these; null: as it is */
    const volatile sig_atomic_t *interrupts; /* once above 0 it ends; null: there are none */
} hr_convert_request;

typedef struct {
    int32_t tensors, files;
    int32_t changed; /* tensors whose type became another */
    int64_t bytes;   /* of all tensors, as written */
} hr_convert_report;

/* Writes the destination: config.json and what belongs to a tokenizer, as they are but for the type
 * in config.json; then the weights, each file whole under its name or not there; then their index.
 * After an error nothing of that is left, nor the folder, where this made it.
 *
 *   report  out; untouched after an error
 *
 * Errors   USAGE    the source is missing or unreadable; the destination has weights, or a file
 *                   that would go along; a word that is none of these
 *          CORRUPT  the source lies about itself; its config.json is no JSON; two tensors would
 *                   have one name; with a dtype, an element that is not finite or that the type
 *                   cannot hold
 *          FAILURE  a full disk among them
 *          INTERRUPTED  as it was asked to
 *          NO_FIT   no memory for the table of tensors.
 * Threads  one at a time in a process. */
HR_MUST_CHECK hr_status hr_convert(const hr_convert_request *request, hr_convert_report *report,
                                   hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
