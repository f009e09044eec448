/* SPDX-License-Identifier: Apache-2.0 */
/* cli/work.c - the progress line. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

void hr_cli_show_work(hr_progress *progress, hr_cli_work *shown, const char *work, int64_t done,
                      int64_t total)
{
    char text[HR_PROGRESS_BYTES];
    const int64_t now_ns = hr_cli_now_ns();
    if (!progress->terminal) return;
    const bool begins = strcmp(shown->name, work) != 0;
    if (begins || done == 0) {
        snprintf(shown->name, sizeof shown->name, "%s", work);
        shown->begun_ns = now_ns;
    }
    /* Work that reports only its beginning is always shown, even just after another line. */
    if (begins) progress->shown_ns = 0;
    hr_progress_work_print(work, done, total, (double)(now_ns - shown->begun_ns) * 1e-9, text);
    hr_progress_note(progress, text, now_ns);
}

void hr_cli_planning_begin(hr_cli_planning *planning)
{
    planning->progress = hr_progress_begin(STDERR_FILENO);
    planning->begun_ns = hr_cli_now_ns();
    hr_progress_note(&planning->progress, "planning", planning->begun_ns);
}

void hr_cli_planning_show(void *planning)
{
    hr_cli_planning *p = planning;
    char text[HR_PROGRESS_BYTES];
    const int64_t now_ns = hr_cli_now_ns();
    hr_progress_work_print("planning", 1, 0, (double)(now_ns - p->begun_ns) * 1e-9, text);
    hr_progress_note(&p->progress, text, now_ns);
}

void hr_cli_planning_end(hr_cli_planning *planning)
{
    hr_progress_end(&planning->progress);
}

void hr_cli_show_bytes(hr_progress *progress, const char *work, int64_t bytes_done,
                       int64_t bytes_total)
{
    char text[HR_PROGRESS_BYTES];
    hr_cli_progress_text(work, bytes_done, bytes_total, text);
    hr_progress_note(progress, text, hr_cli_now_ns());
}
