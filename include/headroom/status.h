/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/status.h - the status of an operation, and the error sentence behind it.
 *
 * A status is also the exit code of the command. An error has one sentence: it names the object,
 * the number needed and the number available. */
#ifndef HEADROOM_STATUS_H
#define HEADROOM_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    HR_OK = 0,
    HR_FAILURE = 1,     /* the system refused: a write, a thread, a device */
    HR_USAGE = 2,       /* command line, recipe, or a path that is missing or unreadable */
    HR_NO_FIT = 3,      /* more bytes are needed than are allowed */
    HR_BROKEN = 4,      /* a broken guarantee: overlap in a plan, measured memory above the plan */
    HR_CORRUPT = 5,     /* damaged or unusable content */
    HR_DIVERGED = 6,    /* a loss, norm or weight that is not finite */
    HR_UNDECIDED = 7,   /* unknown: the time limit was reached, or a file says too little */
    HR_INTERRUPTED = 75 /* interrupted, with everything saved */
} hr_status;

enum { HR_ERROR_BYTES = 640 };

typedef struct {
    hr_status status;
    char message[HR_ERROR_BYTES]; /* one sentence, no newline, always terminated */
} hr_error;

#define HR_MUST_CHECK __attribute__((warn_unused_result))
#define HR_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Writes the sentence and returns the status: `return hr_fail(...)` reports an error.
 *
 *   err     out; may be null, then only the status is returned
 *   status  not HR_OK
 *
 * Threads  one thread per object. */
hr_status hr_fail(hr_error *err, hr_status status, const char *format, ...) HR_PRINTF(3, 4);

/* The name of a status as in the documentation: "does not fit". Never null. */
const char *hr_status_name(hr_status status);

#ifdef __cplusplus
}
#endif
#endif
