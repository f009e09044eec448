/* SPDX-License-Identifier: Apache-2.0 */
/* mem/sanitize.h - detects the sanitizer of this build: gcc defines a macro, clang a feature. */
#ifndef HR_MEM_SANITIZE_H
#define HR_MEM_SANITIZE_H

#if defined(__has_feature)
#define HR_FEATURE(name) __has_feature(name)
#else
#define HR_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || HR_FEATURE(address_sanitizer)
#define HR_ADDRESS_SANITIZER 1
#else
#define HR_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || HR_FEATURE(thread_sanitizer)
#define HR_THREAD_SANITIZER 1
#else
#define HR_THREAD_SANITIZER 0
#endif

#endif
