/* SPDX-License-Identifier: Apache-2.0 */
/* cli/fail.c - prints errors, and those of unknown commands and of outputs that cannot be files. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

int hr_cli_fail(const hr_error *err)
{
    fflush(stdout);
    /* The message may quote a file. */
    fputs("headroom: ", stderr);
    hr_cli_write_text(stderr, err->message, (int64_t)strlen(err->message));
    fputc('\n', stderr);
    return err->status;
}

/* Lists the commands of a group without its name: "encode, decode or train". */
static const char *list_group(const char *group, char *text, size_t bytes)
{
    const size_t name_bytes = strlen(group) + 1;
    int32_t last = 0;
    size_t used = 0;
    for (int32_t i = 0; hr_cli_command_at(i); i++)
        if (hr_cli_is_of_group(hr_cli_command_at(i), group)) last = i;
    for (int32_t i = 0; i <= last; i++) {
        const hr_cli_command *command = hr_cli_command_at(i);
        if (!hr_cli_is_of_group(command, group) || used >= bytes) continue;
        const char *between = !used ? "" : i == last ? " or " : ", ";
        const int wrote = snprintf(text + used, bytes - used, "%s%s", between,
                                   command->name + name_bytes);
        used += (size_t)wrote;
    }
    return text;
}

/* Finds the name most similar to `word` among the commands of a group (without the group's name),
 * or among all commands and groups for null. Returns an empty text when none is similar. */
static const char *similar_command(const char *word, const char *group, char name[64])
{
    int32_t least = INT32_MAX;
    *name = 0;
    for (int32_t i = 0; hr_cli_command_at(i); i++) {
        const hr_cli_command *command = hr_cli_command_at(i);
        char known[64];
        if (group && !hr_cli_is_of_group(command, group)) continue;
        snprintf(known, sizeof known, "%s", command->name + (group ? strlen(group) + 1 : 0));
        if (!group) known[strcspn(known, " ")] = 0;
        const int32_t cost = hr_word_cost(word, known);
        if (cost >= least) continue;
        least = cost;
        memcpy(name, known, sizeof known);
    }
    return name;
}

int hr_cli_fail_command(const char *name, const char *second)
{
    hr_error err;
    char similar[64], list[128];
    const bool group = hr_cli_is_group(name);
    const char *word = group && second ? second : name;
    similar_command(word, group ? name : NULL, similar);
    if (group && !second)
        (void)hr_fail(&err, HR_USAGE, "%s needs a command: %s (headroom %s --help)", name,
                      list_group(name, list, sizeof list), name);
    else
        (void)hr_fail(&err, HR_USAGE,
                      "\"%.40s\" is not a command%s%s%s%s (headroom help%s%s lists all)", word,
                      group ? " of " : "", group ? name : "", *similar ? "; the nearest is " : "",
                      similar, group ? " " : "", group ? name : "");
    return hr_cli_fail(&err);
}

hr_status hr_cli_check_file(const char *option, const char *path, hr_error *err)
{
    struct stat there;
    if (!path || stat(path, &there) != 0 || S_ISREG(there.st_mode)) return HR_OK;
    return hr_fail(err, HR_USAGE, "--%s %.200s: is %s, a file cannot be written there", option,
                   path, S_ISDIR(there.st_mode) ? "a directory" : "a device or a pipe");
}

hr_status hr_cli_check_out(const char *path, hr_error *err)
{
    return hr_cli_check_file("out", path, err);
}

/* Whether two paths are of one file, which need not exist. */
static bool is_one_file(const char *a, const char *b)
{
    struct stat there[2];
    const char *const paths[] = { a, b };
    if (!strcmp(a, b) || (stat(a, &there[0]) == 0 && stat(b, &there[1]) == 0 &&
                          there[0].st_dev == there[1].st_dev && there[0].st_ino == there[1].st_ino))
        return true;
    const char *names[2];
    for (int32_t i = 0; i < 2; i++) {
        char folder[PATH_MAX];
        const char *slash = strrchr(paths[i], '/');
        names[i] = slash ? slash + 1 : paths[i];
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - paths[i]) + 1 : 1,
                 slash ? paths[i] : ".");
        if (stat(folder, &there[i]) != 0) return false;
    }
    return !strcmp(names[0], names[1]) && there[0].st_dev == there[1].st_dev &&
           there[0].st_ino == there[1].st_ino;
}

hr_status hr_cli_check_outputs(const hr_cli_arguments *arguments, hr_error *err)
{
    static const hr_cli_option_id outputs[] = {
        HR_OPTION_PLAN_OUT, HR_OPTION_PACK_OUT,   HR_OPTION_SVG,       HR_OPTION_SCHEDULE,
        HR_OPTION_HTML,     HR_OPTION_SNAPSHOT,   HR_OPTION_TRACE,     HR_OPTION_PROFILE_HTML,
        HR_OPTION_METRICS,  HR_OPTION_LOGITS_OUT, HR_OPTION_PER_TOKEN,
    };
    enum { COUNT = sizeof outputs / sizeof *outputs };
    const char *const *values = arguments->values;
    for (int32_t i = 0; i < COUNT; i++)
        for (int32_t j = i + 1; j < COUNT; j++)
            if (values[outputs[i]] && values[outputs[j]] &&
                is_one_file(values[outputs[i]], values[outputs[j]]))
                return hr_fail(err, HR_USAGE, "--%s and --%s both write %.1000s",
                               hr_cli_option_at(outputs[i])->name,
                               hr_cli_option_at(outputs[j])->name, values[outputs[i]]);
    return HR_OK;
}
