/* SPDX-License-Identifier: Apache-2.0 */
/* cli/main.c - finds the command and sees that what it printed arrived. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

int hr_cli_fail(const hr_error *err)
{
    fflush(stdout);
    fprintf(stderr, "headroom: %s\n", err->message);
    return err->status;
}

int hr_cli_fail_command(const char *name)
{
    const char *nearest = "";
    int32_t least = INT32_MAX;
    for (int32_t i = 0; hr_cli_command_at(i); i++) {
        const char *known = hr_cli_command_at(i)->name;
        const int32_t distance = hr_word_distance(name, known);
        if (distance >= least || !hr_word_is_near(name, known)) continue;
        least = distance;
        nearest = known;
    }
    hr_error err;
    (void)hr_fail(&err, HR_USAGE, "\"%.40s\" is not a command%s%s (headroom help lists all)", name,
                  *nearest ? "; the nearest is " : "", nearest);
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

static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    if (!strcmp(name, "--version")) name = "version";
    int32_t words = 1; /* of the command's name: "train", "tokenize train" */
    const hr_cli_command *command = NULL;
    if (argc > 2) {
        char two[64];
        snprintf(two, sizeof two, "%.30s %.30s", name, argv[2]);
        command = hr_cli_command_find(two);
        if (command) words = 2;
    }
    if (!command) command = hr_cli_command_find(name);
    if (!command) return hr_cli_fail_command(name);
    hr_cli_arguments arguments;
    hr_error err;
    const int32_t count = argc > 1 + words ? argc - 1 - words : 0;
    if (hr_cli_parse(command, argv + argc - count, count, &arguments, &err) != HR_OK)
        return hr_cli_fail(&err);
    if (!arguments.values[HR_OPTION_HELP]) return command->run(&arguments);
    hr_cli_print_help(command);
    return HR_OK;
}

/* A reader that went away (EPIPE) knows; everybody else is told. */
static bool output_arrived(void)
{
    const bool failed_before = ferror(stdout);
    if (fflush(stdout) == 0 && !failed_before) return true;
    if (errno != EPIPE)
        fprintf(stderr, "headroom: standard output cannot be written: %s\n", strerror(errno));
    return false;
}

/* Of standard streams that are closed the numbers would go to the next files opened, and lines
 * meant for people into those. What takes their places refuses to be written, as they do. */
static void keep_streams_apart(void)
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

/* What is written appears whole at its end, so a signal may end the process at any time; a run that
 * has something to save answers by itself (train.c). An interrupt that was ignored when the program
 * began is answered all the same: shells start what goes into the background so, and kill -INT has
 * to save it. */
static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = interrupted };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv)
{
    keep_streams_apart();
    /* Planned memory: stdio would take its buffer from the heap at the first line. */
    static char buffer[16384];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* past ulimit -f a write fails, and is answered like a full disk */
    catch_signals();
    const int code = run(argc, argv);
    return output_arrived() || code != HR_OK ? code : HR_FAILURE;
}
