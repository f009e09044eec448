/* SPDX-License-Identifier: Apache-2.0 */
/* cli/manual.c - prints manual pages from the tables of the parser. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* Prints text escaped for roff: backslashes and dashes, and no line that begins with a request. */
static void roff(const char *text)
{
    for (const char *at = text; *at; at++) {
        const bool line_starts = at == text || at[-1] == '\n';
        if (line_starts && (*at == '.' || *at == '\'')) printf("\\&");
        if (*at == '\\') printf("\\e");
        else if (*at == '-') printf("\\-");
        else putchar(*at);
    }
}

static void paragraph(const char *bold, const char *plain, const char *text, const char *more)
{
    printf(".TP\n\\fB");
    roff(bold);
    printf("\\fR%s", *plain ? " " : "");
    roff(plain);
    printf("\n");
    roff(text);
    roff(more);
    printf("\n");
}

static void put_options(const hr_cli_command *command)
{
    for (int32_t id = 0; hr_cli_option_at(id); id++) {
        const hr_cli_option *option = hr_cli_option_at(id);
        char name[32], times[32];
        if (!hr_cli_takes(command, id)) continue;
        snprintf(name, sizeof name, "--%s", option->name);
        paragraph(name, option->argument ? option->argument : "", option->text,
                  hr_cli_repeat_note(option, times));
    }
}

static void put_statuses(void)
{
    static const hr_status statuses[] = { HR_OK,       HR_FAILURE,   HR_USAGE,
                                          HR_NO_FIT,   HR_BROKEN,    HR_CORRUPT,
                                          HR_DIVERGED, HR_UNDECIDED, HR_INTERRUPTED };
    printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        char code[16];
        snprintf(code, sizeof code, "%d", statuses[i]);
        paragraph(code, "", hr_status_name(statuses[i]), "");
    }
    paragraph("130, 143", "", "interrupted, no new checkpoint", "");
}

static void put_environment(void)
{
    static const char *const variables[][2] = {
        { "HEADROOM_DATA", "Folder of corpora that data.train names, such as wikitext-2." },
        { "HEADROOM_CACHE_LIMIT", "Largest size of the cache of token shards; 16GiB, or none." },
        { "XDG_CACHE_HOME", "Folder of the cache and of calibrations; ~/.cache." },
        { "TMPDIR", "Folder of temporary files of eval, prove and adapter." },
        { "NO_COLOR", "If set, plans have no colors on a terminal." },
    };
    printf(".SH ENVIRONMENT\n");
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        paragraph(variables[i][0], "", variables[i][1], "");
}

static void put_command(const hr_cli_command *command)
{
    char operands[HR_CLI_OPERANDS_BYTES];
    printf(".SS ");
    roff(command->name);
    printf(" ");
    roff(hr_cli_operands(command, operands));
    printf("\n%c", toupper(command->text[0]));
    roff(command->text + 1);
    printf(".\n");
    roff(command->more);
    printf("\n");
    put_options(command);
}

void hr_cli_print_command_manual(const hr_cli_command *command)
{
    char operands[HR_CLI_OPERANDS_BYTES];
    printf(".TH HEADROOM\\-");
    for (const char *at = command->name; *at; at++) {
        if (*at == ' ') printf("\\-");
        else putchar(toupper(*at));
    }
    printf(" 1\n.SH NAME\nheadroom\\-");
    for (const char *at = command->name; *at; at++) printf(*at == ' ' ? "\\-" : "%c", *at);
    printf(" \\- ");
    roff(command->text);
    printf("\n.SH SYNOPSIS\n.B headroom ");
    roff(command->name);
    printf("\n");
    roff(hr_cli_operands(command, operands));
    printf("\n[\\fIoption\\fR ...]\n.SH DESCRIPTION\n");
    roff(command->more);
    printf("\n.SH OPTIONS\n");
    put_options(command);
    put_statuses();
    printf(".SH SEE ALSO\n.BR headroom (1),\nwhich has the keys of recipes and the glossary.\n");
}

void hr_cli_print_manual(void)
{
    printf(".TH HEADROOM 1\n"
           ".SH NAME\n"
           "headroom \\- train language models within a memory budget\n"
           ".SH SYNOPSIS\n"
           ".B headroom\n"
           ".I COMMAND\n"
           "[\\fIoperand\\fR ...] [\\fIoption\\fR ...]\n"
           ".SH DESCRIPTION\n"
           "headroom plans all memory of a run before it starts. It refuses a run\n"
           "that does not fit and lists changes that make it fit. It allocates the "
           "memory once and\nnever allocates again.\n.SH COMMANDS\n");
    for (int32_t i = 0; hr_cli_command_at(i); i++) put_command(hr_cli_command_at(i));
    printf(".SH KEYS OF A RECIPE\n");
    for (int32_t i = 0; hr_config_key(i); i++) {
        const hr_key *key = hr_config_key(i);
        char takes[HR_TAKES_BYTES], text[512];
        snprintf(text, sizeof text, "%s. Value: %s; default %s.", key->text,
                 hr_key_takes(key, takes), *key->default_text ? key->default_text : "unset");
        paragraph(key->name, "", text, "");
    }
    printf(".SH GLOSSARY\n");
    for (int32_t i = 0; hr_cli_term_at(i); i++)
        paragraph(hr_cli_term_at(i)->name, "", hr_cli_term_at(i)->text, "");
    put_environment();
    put_statuses();
}
