/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/convert.h - copies the weights of a model folder with other shards, names or dtypes.
 *
 * Folders have the format of headroom or Hugging Face: config.json and safetensors. A tensor keeps
 * its bytes unless a dtype is requested. */
#ifndef HEADROOM_CONVERT_H
#define HEADROOM_CONVERT_H

#include <signal.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t size;             /* of this struct */
    const char *source;      /* a folder, or one safetensors file */
    const char *destination; /* a folder without weights; created if it is missing */
    /* largest tensor bytes per file, exceeded only by a single larger tensor; 0: one file */
    int64_t shard_bytes;
    const char *prefix; /* "none", "model.", "transformer.", "gpt_neox."; null: unchanged */
    /* "f32", "f16" or "bf16": all floating-point tensors; "f8_e4m3": the matrices of layers, with
     * scales of blocks; null: unchanged */
    const char *dtype;
    /* PEFT folder that is merged into the matrices, or FOLDER=FACTOR; null: none */
    const char *adapter;
    const volatile sig_atomic_t *interrupts; /* above 0: stop; null: none */
} hr_convert_request;

typedef struct {
    int32_t tensors, files;
    int32_t changed; /* tensors whose dtype changed; new scales are not counted */
    int64_t bytes;   /* of all tensors, as written */
} hr_convert_report;

/* Writes the destination folder: config.json (with the new dtype) and the tokenizer files, then the
 * weights, each file atomically, then the index. After an error the written files are removed, and
 * the folder too if this call created it.
 *
 *   report  out; untouched after an error
 *
 * Errors   USAGE    the source is missing or unreadable; the destination already has weights or one
 *                   of the files to copy; an unknown prefix or dtype
 *          CORRUPT  the source is inconsistent; its config.json is not JSON; two tensors would get
 *                   the same name; with a dtype, an element is not finite or out of its range
 *          FAILURE  the system refused, for example a full disk
 *          INTERRUPTED  `interrupts` is above 0
 *          NO_FIT   no memory for the table of tensors.
 * Threads  one call at a time per process. */
HR_MUST_CHECK hr_status hr_convert(const hr_convert_request *request, hr_convert_report *report,
                                   hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
