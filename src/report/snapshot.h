/* SPDX-License-Identifier: Apache-2.0 */
/* report/snapshot.h - a plan as a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot),
 * which its viewer opens: pytorch.org/memory_viz, or python -m torch.cuda._memory_viz.
 *
 * The trace has an allocation and a release for every range of the arena, in the order of the
 * operations, at its offset; the segment is the arena at the peak. A frame is a tensor, and the
 * operation that first writes it. Pickle of protocol 4, with nothing but numbers, texts, lists and
 * dictionaries. */
#ifndef HR_REPORT_SNAPSHOT_H
#define HR_REPORT_SNAPSHOT_H

#include "base/region.h"
#include "plan/compile.h"

/* How every snapshot begins. */
extern const char hr_snapshot_begin[];

/*   scratch  8 bytes for each storage; restored
 * Errors   as hr_file_begin_path and hr_file_append; FAILURE  scratch is too small. */
HR_MUST_CHECK hr_status hr_snapshot_write(const char *path, const hr_compiled *compiled,
                                          hr_region *scratch, hr_error *err);

#endif
