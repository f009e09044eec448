/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/adapter.h - what a folder of adapters has, and adapters as a GGUF file. */
#ifndef HEADROOM_ADAPTER_H
#define HEADROOM_ADAPTER_H

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_ADAPTER_MODULES_MAX = 64 };

/* Modules with the same place in their layers: "self_attn.q_proj". */
typedef struct {
    char name[96];
    int64_t layers;                /* modules of this name; 1 outside of layers */
    int64_t rank_least, rank_most; /* 0: trained whole */
    int64_t parameters;
} hr_adapter_module;

typedef struct {
    hr_config *config; /* the keys of train.adapter, as the folder says; for hr_config_free */
    char base[HR_PATH_BYTES]; /* base_model_name_or_path; may be empty */
    int64_t tensors, parameters, bytes;
    char dtype[16];       /* "F32", or "mixed" */
    int32_t module_count; /* modules past the last row are in the sums alone */
    hr_adapter_module modules[HR_ADAPTER_MODULES_MAX];
} hr_adapter_report;

/* Reads the names and shapes of a PEFT folder, no values.
 *
 *   report  out; its config is for hr_config_free, also after an error
 *
 * Errors   USAGE    a file is missing
 *          CORRUPT  as for train.adapter.from; a tensor that is no part of an adapter
 *          NO_FIT   no memory for the table of tensors. */
HR_MUST_CHECK hr_status hr_adapter_inspect(const char *folder, hr_adapter_report *report,
                                           hr_error *err);

/* Writes the adapters of a PEFT folder, or FOLDER=FACTOR, as a GGUF file of version 3 in fp32, for
 * a base that llama.cpp knows: llama, mistral, qwen2, qwen3, gpt2, gpt_neox. There an adapter is
 * scaled by alpha / rank, so that other scales are folded into alpha, and into B where modules
 * differ.
 *
 *   tensors  out: their number
 *
 * Errors   USAGE    the base has another family; magnitudes, an embedding, a head, or a module that
 *                   is trained whole, which the format does not have; the file's folder is missing
 *          CORRUPT  as hr_adapter_inspect
 *          FAILURE, NO_FIT. */
HR_MUST_CHECK hr_status hr_adapter_to_gguf(const char *base, const char *adapter, const char *path,
                                           int64_t *tensors, hr_error *err);

/* Writes the change of one token of a capture (headroom/evaluate.h) as a PEFT folder of low-rank
 * adapters, which standard layers take.
 *
 *   adapter  the folder of NPT adapters that was captured
 *   token    row of the capture
 *   modules  out: their number
 *
 * Errors   USAGE    a file is missing; no such row; the folder has an adapter
 *          CORRUPT  the capture is of another adapter, or is not F32
 *          FAILURE, NO_FIT. */
HR_MUST_CHECK hr_status hr_adapter_replay(const char *adapter, const char *capture, int64_t token,
                                          const char *folder, int64_t *modules, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
