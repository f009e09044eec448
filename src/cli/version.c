/* SPDX-License-Identifier: Apache-2.0 */
/* cli/version.c - headroom version. */
#include <stdio.h>

#include "cli.h"
#include "headroom/version.h"

int hr_cli_version(const hr_cli_arguments *arguments)
{
    (void)arguments;
    printf("headroom %s\n", HR_VERSION);
    return HR_OK;
}
