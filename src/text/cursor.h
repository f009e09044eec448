/* SPDX-License-Identifier: Apache-2.0 */
/* text/cursor.h - positions in the passes over a text whose windows change their length.
 *
 * A pass over `tokens` tokens goes through blocks of `unit` tokens, the last of which may be
 * shorter. Windows are cut from a block one after the other, and none leaves its block: at its end
 * a window is as short as what is left. So windows of any lengths, in turn, have each token once a
 * pass. A position counts tokens over all passes. All functions are pure and take constant time. */
#ifndef HR_TEXT_CURSOR_H
#define HR_TEXT_CURSOR_H

#include <stdint.h>

typedef struct {
    int64_t tokens, unit; /* both at least 1 */
} hr_passes;

/* The unit for windows of these lengths: a multiple of the longest, at most 16 times it, of which
 * the fewest tokens are in windows that are cut short; the smallest of these. */
int64_t hr_passes_unit(const int64_t *lengths, int32_t count);

/* The position after `windows` windows of T tokens from a position. */
int64_t hr_passes_after(hr_passes passes, int64_t position, int64_t windows, int64_t T);

/* The number of windows of T tokens from a position to the end of pass `pass`, counted from 1. 0 if
 * the position is not before it. */
int64_t hr_passes_windows_to(hr_passes passes, int64_t position, int64_t pass, int64_t T);

/* Tokens of the window of T tokens at a position: fewer at the end of a block. */
int64_t hr_passes_window(hr_passes passes, int64_t position, int64_t T);

#endif
