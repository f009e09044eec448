/* SPDX-License-Identifier: Apache-2.0 */
/* cli/main.c - runs the command and checks that its output was written. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "headroom/doctor.h"

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

static bool is_help(const char *word)
{
    return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    if (is_help(name)) name = "help";
    if (!strcmp(name, "--version")) name = "version";
    int32_t words = 1; /* words in the command's name: "train", "tokenize train" */
    const hr_cli_command *command = NULL;
    if (argc > 2) {
        char two[64];
        snprintf(two, sizeof two, "%.30s %.30s", name, argv[2]);
        command = hr_cli_command_find(two);
        if (command) words = 2;
    }
    if (!command) command = hr_cli_command_find(name);
    const char *second = argc > 2 ? argv[2] : NULL;
    if (!command && second && hr_cli_is_group(name) && is_help(second)) {
        hr_cli_print_group(name);
        return HR_OK;
    }
    if (!command) return hr_cli_fail_command(name, second);
    hr_cli_arguments arguments;
    hr_error err;
    const int32_t count = argc > 1 + words ? argc - 1 - words : 0;
    if (hr_cli_parse(command, argv + argc - count, count, &arguments, &err) != HR_OK)
        return hr_cli_fail(&err);
    arguments.program = argv[0];
    if (arguments.values[HR_OPTION_HELP]) {
        hr_cli_print_help(command);
        return HR_OK;
    }
    if (!command->small && hr_machine_check_stack(&err) != HR_OK) return hr_cli_fail(&err);
    return command->run(&arguments);
}

/* Reports write errors on standard output, except EPIPE: the reader closed it on purpose. */
static bool output_arrived(void)
{
    const bool failed_before = ferror(stdout);
    if (fflush(stdout) == 0 && !failed_before) return true;
    if (errno != EPIPE)
        fprintf(stderr, "headroom: standard output cannot be written: %s\n", strerror(errno));
    return false;
}

/* If a standard stream is closed, the next opened file would get its number, and messages would be
 * written into it. So closed streams are replaced with descriptors that refuse writes, as closed
 * ones do. */
static void reserve_closed_streams(void)
{
    int file = open("/dev/null", O_RDONLY);
    while (file >= 0 && file <= STDERR_FILENO) file = open("/dev/null", O_RDONLY);
    if (file >= 0) close(file);
}

static void interrupted(int number)
{
    static const char said[] = "headroom: interrupted; nothing was saved\n";
    (void)!write(STDERR_FILENO, said, sizeof said - 1);
    _exit(128 + number);
}

/* Commands write files completely at the end, so a signal may end the process at any time; train
 * installs its own handlers (train.c). SIGINT is handled even if it was ignored at the start:
 * shells ignore it for background jobs, and kill -INT must save the run. */
static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = interrupted };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv)
{
    reserve_closed_streams();
    /* Part of the planned memory: stdio would allocate its buffer from the heap at the first
     * line. */
    static char buffer[16384];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond ulimit -f then fails and is handled like a full
                               * disk */
    catch_signals();
    const int code = run(argc, argv);
    return output_arrived() || code != HR_OK ? code : HR_FAILURE;
}
