/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/sidecar_files.h - the files beside weights that a conversion copies: model config and
 * tokenizer. */
#ifndef HR_CHECKPOINT_SIDECAR_FILES_H
#define HR_CHECKPOINT_SIDECAR_FILES_H

#include "checkpoint/safetensors.h"

enum { HR_SIDECAR_FILES = 10, HR_SIDECAR_FILE_BYTES = 1 << 20 };

typedef struct {
    const char *source; /* folder; null: nothing to copy */
    const char *destination;
    const hr_stored_dtype *dtype;  /* dtype to write into config.json; null: leave it unchanged */
    bool quantized;                /* config.json gets the quantization_config of F8_E4M3 */
    bool dequantized;              /* config.json loses its quantization_config */
    char *memory;                  /* [HR_SIDECAR_FILE_BYTES] scratch */
    bool copied[HR_SIDECAR_FILES]; /* files copied so far */
} hr_sidecar_files;

/* Whether a conversion copies files with this name. */
bool hr_sidecar_files_have(const char *name);

/* Checks that the files can be copied.
 * Errors   USAGE    the destination already has one of these files
 *          CORRUPT  config.json is not JSON, or larger than half of HR_SIDECAR_FILE_BYTES. */
HR_MUST_CHECK hr_status hr_sidecar_files_check(const hr_sidecar_files *sidecars, hr_error *err);

/* Copies the files into the destination, each completely or not at all. Errors as hr_file_begin. */
HR_MUST_CHECK hr_status hr_sidecar_files_copy(hr_sidecar_files *sidecars, hr_error *err);

/* Removes the files that were copied. */
void hr_sidecar_files_remove(const hr_sidecar_files *sidecars);

#endif
