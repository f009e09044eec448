/* SPDX-License-Identifier: Apache-2.0 */
/* cli/main.c - runs the command and checks that its output was written. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "headroom/doctor.h"

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
    const bool arrived = hr_cli_json_arrived() && output_arrived();
    return arrived || code != HR_OK ? code : HR_FAILURE;
}
