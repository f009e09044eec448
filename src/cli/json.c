/* SPDX-License-Identifier: Apache-2.0 */
/* cli/json.c - how every command prints JSON. */
#include <jansson.h>
#include <stdio.h>

#include "cli.h"

hr_status hr_cli_print_json(json_t *object, size_t flags)
{
    const int failed = !object || json_dumpf(object, stdout, JSON_INDENT(2) | flags);
    json_decref(object);
    printf("\n");
    return failed ? HR_FAILURE : HR_OK;
}
