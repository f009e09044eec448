/* SPDX-License-Identifier: Apache-2.0 */
/* base/assert.h - assertions against programmer errors. They stay on in release builds; never
 * assert on input. */
#ifndef HR_BASE_ASSERT_H
#define HR_BASE_ASSERT_H

/* Prints the file, line and condition to standard error and aborts. */
_Noreturn void hr_assert_failed(const char *file, int line, const char *claim);

#define HR_ASSERT(claim) ((claim) ? (void)0 : hr_assert_failed(__FILE__, __LINE__, #claim))

#ifdef NDEBUG
#define HR_DEBUG_ASSERT(claim) ((void)0)
#else
#define HR_DEBUG_ASSERT(claim) HR_ASSERT(claim)
#endif

#endif
