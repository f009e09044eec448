/* SPDX-License-Identifier: Apache-2.0 */
/* cli/help.c - headroom help: what people read first. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

static void print_options(const hr_cli_command *command)
{
    for (int32_t id = 0; hr_cli_option_at(id); id++) {
        if (!hr_cli_takes(command, id)) continue;
        const hr_cli_option *option = hr_cli_option_at(id);
        char left[48], times[32];
        snprintf(left, sizeof left, "--%s%s%s", option->name, option->argument ? " " : "",
                 option->argument ? option->argument : "");
        printf("  %-22s %s%s\n", left, option->text, hr_cli_times(option, times));
    }
}

static void print_overview(void)
{
    printf("headroom trains language models within a memory budget.\n\nusage:\n");
    for (int32_t i = 0; hr_cli_command_at(i); i++) {
        const hr_cli_command *command = hr_cli_command_at(i);
        char left[96], operands[HR_CLI_OPERANDS_BYTES];
        snprintf(left, sizeof left, "%s %s", command->name, hr_cli_operands(command, operands));
        printf("  headroom %-40s %s\n", left, command->text);
    }
    printf(
        "\nheadroom COMMAND --help lists the options of a command; headroom help TERM explains a\n"
        "word of the output, and headroom help terms all of them. presets/ has recipes:\n\n"
        "    headroom plan presets/quickstart.yaml\n"
        "    headroom train presets/quickstart.yaml data.train=FILE data.valid=5%% --out run\n");
}

void hr_cli_print_help(const hr_cli_command *command)
{
    if (!command) {
        print_overview();
        return;
    }
    char operands[HR_CLI_OPERANDS_BYTES];
    printf("usage: headroom %s %s%s[options]\n\n%c%s.\n%s\n\noptions:\n", command->name,
           hr_cli_operands(command, operands), *command->operands ? " " : "",
           toupper(command->text[0]), command->text + 1, command->more);
    print_options(command);
}

int hr_cli_help(const hr_cli_arguments *arguments)
{
    const char *shell = arguments->values[HR_OPTION_COMPLETION];
    const char *name = arguments->operand_count ? arguments->operands[0] : NULL;
    char words[64] = "";
    for (int32_t i = 0; i < arguments->operand_count; i++) { /* "tokenize train", "loss chunk" */
        const size_t length = strlen(words);
        snprintf(words + length, sizeof words - length, "%s%.30s", i ? " " : "",
                 arguments->operands[i]);
    }
    if (name) name = words;
    if (shell && strcmp(shell, "bash")) {
        hr_error err;
        (void)hr_fail(&err, HR_USAGE, "--completion takes bash; got \"%.40s\"", shell);
        return hr_cli_fail(&err);
    }
    const hr_cli_term *term = name ? hr_cli_term_find(name) : NULL;
    if (name && !strcmp(name, "terms")) {
        hr_cli_print_terms();
        return HR_OK;
    }
    if (term) {
        printf("%s: %s\n", term->name, term->text);
        return HR_OK;
    }
    if (name && !hr_cli_command_find(name)) return hr_cli_fail_command(name);
    if (shell) hr_cli_print_completion();
    else if (arguments->values[HR_OPTION_MAN]) hr_cli_print_manual();
    else hr_cli_print_help(name ? hr_cli_command_find(name) : NULL);
    return HR_OK;
}
