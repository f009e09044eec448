/* SPDX-License-Identifier: Apache-2.0 */
/* cli/manual.c - prints the manual page and the shell completion from the tables of the parser. */
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

static void manual_command(const hr_cli_command *command)
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
    for (int32_t id = 0; hr_cli_option_at(id); id++) {
        const hr_cli_option *option = hr_cli_option_at(id);
        char name[32], times[32];
        if (!hr_cli_takes(command, id)) continue;
        snprintf(name, sizeof name, "--%s", option->name);
        paragraph(name, option->argument ? option->argument : "", option->text,
                  hr_cli_repeat_note(option, times));
    }
}

void hr_cli_print_manual(void)
{
    static const hr_status statuses[] = { HR_OK,       HR_FAILURE,   HR_USAGE,
                                          HR_NO_FIT,   HR_BROKEN,    HR_CORRUPT,
                                          HR_DIVERGED, HR_UNDECIDED, HR_INTERRUPTED };
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
    for (int32_t i = 0; hr_cli_command_at(i); i++) manual_command(hr_cli_command_at(i));
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
    printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        char code[16];
        snprintf(code, sizeof code, "%d", statuses[i]);
        paragraph(code, "", hr_status_name(statuses[i]), "");
    }
    paragraph("130, 143", "", "interrupted, no new checkpoint", "");
}

static void completion_options(const hr_cli_command *command)
{
    /* The second word of a command is a pattern of its own. */
    const char *space = strchr(command->name, ' ');
    if (space) printf("    '%s') options='", command->name);
    else printf("    %s' '*) options='", command->name);
    for (int32_t id = 0; hr_cli_option_at(id); id++)
        if (hr_cli_takes(command, id)) printf("--%s ", hr_cli_option_at(id)->name);
    printf("' keys=%s;;\n", command->keys ? "yes" : "");
}

/* Prints "checkpoint) subcommands='list verify prune ';;" per group: commands of a group are
 * neighbors in the table. */
static void completion_subcommands(void)
{
    for (int32_t i = 0; hr_cli_command_at(i);) {
        const char *name = hr_cli_command_at(i)->name, *space = strchr(name, ' ');
        const size_t first = space ? (size_t)(space - name) + 1 : 0;
        if (!space) i++;
        if (!space) continue;
        printf("    %.*s) subcommands='", (int)first - 1, name);
        for (; hr_cli_command_at(i) && !strncmp(hr_cli_command_at(i)->name, name, first); i++)
            printf("%s ", hr_cli_command_at(i)->name + first);
        printf("';;\n");
    }
}

void hr_cli_print_completion(void)
{
    printf("# bash completion for headroom: source this file\n"
           "_headroom()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} options= keys= subcommands=\n"
           "    local commands='");
    const char *last = "";
    for (int32_t i = 0; hr_cli_command_at(i); i++) {
        const char *name = hr_cli_command_at(i)->name;
        const int length = (int)strcspn(name, " ");
        if (strncmp(name, last, (size_t)length + 1) != 0) printf("%.*s ", length, name);
        last = name;
    }
    printf("'\n    local all_keys='");
    for (int32_t i = 0; hr_config_key(i); i++) printf("%s= ", hr_config_key(i)->name);
    printf("'\n    local presets='");
    for (const hr_cli_preset *preset = hr_cli_preset_rows; preset->name; preset++)
        printf("%s ", preset->name);
    printf("'\n    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n");
    for (int32_t i = 0; hr_cli_command_at(i); i++) completion_options(hr_cli_command_at(i));
    printf("    esac\n    case \"${COMP_WORDS[1]}\" in\n");
    completion_subcommands();
    printf("    esac\n"
           "    if [[ $COMP_CWORD -eq 1 || ${COMP_WORDS[1]} == help && $word != -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    if [[ $COMP_CWORD -eq 2 && $subcommands && $word != -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$subcommands\" -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    if [[ $word == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
           "    [[ ${COMP_WORDS[1]} == presets ]] && all_keys=$presets keys=yes || "
           "all_keys+=$presets\n"
           "    [[ $keys ]] && COMPREPLY+=($(compgen -W \"$all_keys\" -- \"$word\"))\n"
           "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
           "}\n"
           "complete -o filenames -F _headroom headroom\n");
}
