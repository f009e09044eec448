/* SPDX-License-Identifier: Apache-2.0 */
/* cli/json.c - how every command prints JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

json_t *hr_cli_json_string(const char *text)
{
    char *plain = NULL;
    size_t bytes;
    FILE *to = open_memstream(&plain, &bytes);
    if (!to) return NULL;
    hr_cli_write_text(to, text, (int64_t)strlen(text));
    json_t *string = fclose(to) ? NULL : json_stringn(plain, bytes);
    free(plain);
    return string;
}

static bool lost;

hr_status hr_cli_print_json(json_t *object, size_t flags)
{
    const bool failed = !object || json_dumpf(object, stdout, JSON_INDENT(2) | flags);
    json_decref(object);
    if (!failed) printf("\n");
    lost = lost || (failed && !ferror(stdout)); /* which main() reports */
    return failed ? HR_FAILURE : HR_OK;
}

bool hr_cli_json_arrived(void)
{
    if (lost)
        fputs("headroom: the JSON is incomplete: a text in it is not UTF-8, or memory ran out\n",
              stderr);
    return !lost;
}
