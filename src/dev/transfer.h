/* SPDX-License-Identifier: Apache-2.0 */
/* dev/transfer.h - the file of a run, and the services that move values between the arena and other
 * spaces: that file, and the files of a frozen model.
 *
 * The file of the run exists while the run lasts and is worth nothing without it: a resumed run
 * writes it anew from its checkpoint. */
#ifndef HR_DEV_TRANSFER_H
#define HR_DEV_TRANSFER_H

#include "dev/executor.h"
#include "dev/space_file.h"
#include "graph/transfer.h"

typedef struct {
    hr_space_file file;
    int64_t tickets[HR_SLOTS_MOST]; /* of the first operand of the transfer in each slot */
    /* What the file is created from. */
    hr_space_file_options options;
    hr_region tables;
    uint8_t *stacks;
} hr_transfer_file;

/* Bytes in a region for a file of at most `file_bytes`. Pure. */
int64_t hr_transfer_file_bytes(int64_t file_bytes);

/* Places the object; the file does not exist yet.
 *
 *   of  of the file; bytes > 0. The strings must outlive the object
 *
 * Returns null if the region is too small. */
hr_transfer_file *hr_transfer_file_place(hr_region *region, const hr_block_file_options *of);

/* Creates the file, after removing the one that is open. Errors as hr_space_file_open. */
HR_MUST_CHECK hr_status hr_transfer_file_open(hr_transfer_file *file, hr_error *err);

/* Returns the first failure of a transfer since the file was created; HR_OK: none.
 *   failure  out; may be null */
HR_MUST_CHECK hr_status hr_transfer_file_failure(hr_transfer_file *file, hr_error *failure);

/* The transfers of a program: those that it has none of stay zero. */
typedef struct {
    hr_transfer_file *file;
    hr_base_source base;
    int64_t tickets[HR_BASE_SLOTS]; /* of the base, by slot */
} hr_transfers_of_run;

/* The handlers of transfers. The file has to be open, and the source ready, while they run. */
hr_services hr_transfer_services(hr_transfers_of_run *transfers);

/* Removes the file. Accepts null and a closed one. */
void hr_transfer_file_close(hr_transfer_file *file);

#endif
