/* SPDX-License-Identifier: Apache-2.0 */
/* base/assert.h - programmer errors. They stay on in release; input is never asserted on. */
#ifndef HR_BASE_ASSERT_H
#define HR_BASE_ASSERT_H

/* Prints the place and the claim on standard error and aborts. */
_Noreturn void hr_assert_failed(const char *file, int line, const char *claim);

#define HR_ASSERT(claim) ((claim) ? (void)0 : hr_assert_failed(__FILE__, __LINE__, #claim))

#ifdef NDEBUG
#define HR_DEBUG_ASSERT(claim) ((void)0)
#else
#define HR_DEBUG_ASSERT(claim) HR_ASSERT(claim)
#endif

#endif
