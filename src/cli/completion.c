/* SPDX-License-Identifier: Apache-2.0 */
/* cli/completion.c - prints the completion of shells from the tables of the parser. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

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

/* Prints the words of the tables, in single quotes. */
static void put_commands(void)
{
    const char *last = "";
    for (int32_t i = 0; hr_cli_command_at(i); i++) {
        const char *name = hr_cli_command_at(i)->name;
        const int length = (int)strcspn(name, " ");
        if (strncmp(name, last, (size_t)length + 1) != 0) printf("%.*s ", length, name);
        last = name;
    }
}

static void put_keys(void)
{
    for (int32_t i = 0; hr_config_key(i); i++) printf("%s= ", hr_config_key(i)->name);
}

static void put_presets(void)
{
    for (const hr_cli_preset *preset = hr_cli_preset_rows; preset->name; preset++)
        printf("%s ", preset->name);
}

/* What bash and zsh have in common: the lists, and those of the command in two words.
 *   first, second  how the shell names the first two words */
static void put_lists(const char *first, const char *second)
{
    printf("    local options= keys= subcommands= commands='");
    put_commands();
    printf("'\n    local all_keys='");
    put_keys();
    printf("'\n    local presets='");
    put_presets();
    printf("'\n    case \"%s %s\" in\n", first, second);
    for (int32_t i = 0; hr_cli_command_at(i); i++) completion_options(hr_cli_command_at(i));
    printf("    esac\n    case \"%s\" in\n", first);
    completion_subcommands();
    printf("    esac\n");
}

static void print_bash(void)
{
    printf("# bash completion for headroom: source this file\n"
           "_headroom()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]}\n");
    put_lists("${COMP_WORDS[1]}", "${COMP_WORDS[2]}");
    printf("    if [[ $COMP_CWORD -eq 1 || ${COMP_WORDS[1]} == help && $word != -* ]]; then\n"
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
           "    local IFS=$'\\n' value=\n" /* names with blanks */
           "    [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]] && value=yes\n"
           "    [[ $word == = ]] && word= value=yes\n"
           "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
           "    [[ $value ]] && return\n"
           "    IFS=$' \\t\\n'\n"
           "    [[ ${COMP_WORDS[1]} == presets ]] && all_keys=$presets keys=yes || "
           "all_keys+=$presets\n"
           "    [[ $keys ]] && COMPREPLY+=($(compgen -W \"$all_keys\" -- \"$word\"))\n"
           "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace +o filenames\n"
           "}\n"
           "complete -o filenames -F _headroom headroom\n");
}

static void print_zsh(void)
{
    printf("#compdef headroom\n"
           "_headroom()\n{\n");
    put_lists("$words[2]", "$words[3]");
    printf("    if [[ $CURRENT -eq 2 || $words[2] == help && $PREFIX != -* ]]; then\n"
           "        compadd -- ${=commands}\n"
           "        return\n"
           "    fi\n"
           "    if [[ $CURRENT -eq 3 && -n $subcommands && $PREFIX != -* ]]; then\n"
           "        compadd -- ${=subcommands}\n"
           "        return\n"
           "    fi\n"
           "    if [[ $PREFIX == -* ]]; then\n"
           "        compadd -- ${=options}\n"
           "        return\n"
           "    fi\n"
           "    if [[ $PREFIX == *=* ]]; then\n"
           "        compset -P '*='\n"
           "        _files\n"
           "        return\n"
           "    fi\n"
           "    [[ $words[2] == presets ]] || _files\n"
           "    [[ -n $keys || $words[2] == presets ]] && compadd -- ${=presets}\n"
           "    [[ -n $keys ]] && compadd -S '' -- ${=all_keys}\n"
           "}\n"
           /* The file is the function that compinit loads, or is sourced. */
           "if [[ $funcstack[1] == _headroom ]]; then\n"
           "    _headroom \"$@\"\n"
           "else\n"
           "    compdef _headroom headroom\n"
           "fi\n");
}

/* Prints text inside single quotes of fish. */
static void quote_fish(const char *text)
{
    for (const char *at = text; *at; at++) printf(*at == '\'' || *at == '\\' ? "\\%c" : "%c", *at);
}

/* "complete -c headroom -n '__headroom_is tokenize train'" */
static void put_fish_condition(const char *name)
{
    printf("complete -c headroom -n '__headroom_is %s'", name);
}

static void print_fish(void)
{
    printf("# fish completion for headroom\n"
           "function __headroom_is --description 'whether these are the first words'\n"
           "    set -l words (commandline -opc)\n"
           "    set -l last (math (count $argv) + 1)\n"
           "    test (count $words) -ge $last; or return 1\n"
           "    set -l given (string join -- ' ' $words[2..$last])\n"
           "    set -l wanted (string join -- ' ' $argv)\n"
           "    test \"$given\" = \"$wanted\"\n"
           "end\n"
           "complete -c headroom -n 'test (count (commandline -opc)) -eq 1' -f -a '");
    put_commands();
    printf("'\ncomplete -c headroom -n '__headroom_is help' -f -a '");
    put_commands();
    printf("'\n");
    for (int32_t i = 0; hr_cli_command_at(i); i++) {
        const hr_cli_command *command = hr_cli_command_at(i);
        const char *space = strchr(command->name, ' ');
        if (space)
            printf("complete -c headroom -n '__headroom_is %.*s; and test (count (commandline "
                   "-opc)) -eq 2' -f -a '%s' -d '",
                   (int)(space - command->name), command->name, space + 1);
        if (space) quote_fish(command->text);
        if (space) printf("'\n");
        for (int32_t id = 0; hr_cli_option_at(id); id++) {
            const hr_cli_option *option = hr_cli_option_at(id);
            if (!hr_cli_takes(command, id)) continue;
            put_fish_condition(command->name);
            printf(" -l %s%s -d '", option->name, option->argument ? " -r" : "");
            quote_fish(option->text);
            printf("'\n");
        }
        if (!command->keys && strcmp(command->name, "presets")) continue;
        put_fish_condition(command->name);
        printf(" -a '");
        if (command->keys) put_keys();
        put_presets();
        printf("'\n");
    }
}

bool hr_cli_print_completion(const char *shell)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shell, shells[i].name) != 0) continue;
        shells[i].print();
        return true;
    }
    return false;
}
