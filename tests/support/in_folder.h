/* SPDX-License-Identifier: Apache-2.0 */
/* support/in_folder.h - one temporary folder for all cases of a test file. */
#ifndef HR_TESTS_IN_FOLDER_H
#define HR_TESTS_IN_FOLDER_H

#include "support/folder.h"

static hr_folder folder;

static inline int set_up(void **state)
{
    (void)state;
    folder = hr_folder_open();
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    hr_folder_close(&folder);
    return 0;
}

#endif
