/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/status.h - how every operation says whether it worked, and if not, why.
 *
 * A status is also the exit code of the command. An error carries one sentence, written once where
 * the trouble was found: it names the object, the number needed and the number there is. */
#ifndef HEADROOM_STATUS_H
#define HEADROOM_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    HR_OK = 0,
    HR_FAILURE = 1,     /* the system refused: a write, a thread, a device */
    HR_USAGE = 2,       /* command line, recipe, or a path that is missing or unreadable */
    HR_NO_FIT = 3,      /* the bytes needed are more than the bytes allowed */
    HR_BROKEN = 4,      /* a promise broken: overlap in a plan, measured above planned */
    HR_CORRUPT = 5,     /* content that is damaged or cannot be used */
    HR_DIVERGED = 6,    /* a loss, norm or weight that is not finite */
    HR_UNDECIDED = 7,   /* the time given ran out */
    HR_INTERRUPTED = 75 /* interrupted, and everything saved */
} hr_status;

enum { HR_ERROR_BYTES = 640 };

typedef struct {
    hr_status status;
    char message[HR_ERROR_BYTES]; /* one sentence, no newline, always terminated */
} hr_error;

#define HR_MUST_CHECK __attribute__((warn_unused_result))
#define HR_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Writes the sentence and returns the status, so that `return hr_fail(...)` is the whole report.
 *
 *   err     out; may be null, then only the status is passed on
 *   status  not HR_OK
 *
 * Threads  one thread per object. */
hr_status hr_fail(hr_error *err, hr_status status, const char *format, ...) HR_PRINTF(3, 4);

/* A word for a status, as the documentation writes it: "does not fit". Never null. */
const char *hr_status_name(hr_status status);

#ifdef __cplusplus
}
#endif
#endif
