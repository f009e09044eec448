/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/sidecar_files.h - files that stand beside weights and go along when those are converted:
 * which model it is, and its tokenizer. */
#ifndef HR_CKPT_SIDECAR_FILES_H
#define HR_CKPT_SIDECAR_FILES_H

#include "ckpt/safetensors.h"

enum { HR_SIDECAR_FILES = 10, HR_SIDECAR_FILE_BYTES = 1 << 20 };

typedef struct {
    const char *source; /* folder; null: there are none */
    const char *destination;
    const hr_stored_dtype *dtype;  /* that config.json is to name; null: as it does */
    char *memory;                  /* [HR_SIDECAR_FILE_BYTES] while a function runs */
    bool copied[HR_SIDECAR_FILES]; /* so far */
} hr_sidecar_files;

/* Whether a file of this name goes along. */
bool hr_sidecar_files_have(const char *name);

/* That they can go along.
 * Errors   USAGE    the destination has one of these names
 *          CORRUPT  config.json is no JSON, or half of HR_SIDECAR_FILE_BYTES long. */
HR_MUST_CHECK hr_status hr_sidecar_files_check(const hr_sidecar_files *sidecars, hr_error *err);

/* Copies them into the destination, each whole or not at all. Errors as hr_file_begin. */
HR_MUST_CHECK hr_status hr_sidecar_files_copy(hr_sidecar_files *sidecars, hr_error *err);

/* Removes those that were copied. */
void hr_sidecar_files_remove(const hr_sidecar_files *sidecars);

#endif
