/* SPDX-License-Identifier: Apache-2.0 */
/* cli/command.c - prints a command as a line that can be pasted into a shell. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* Prints a word, in single quotes unless no shell interprets any of its characters. */
static void put_word(FILE *file, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-";
    if (*word && !word[strspn(word, plain)]) {
        fputs(word, file);
        return;
    }
    fputc('\'', file);
    for (; *word; word++)
        if (*word == '\'') fputs("'\\''", file);
        else fputc(*word, file);
    fputc('\'', file);
}

static void put_option(FILE *file, const hr_cli_option *option, const char *value)
{
    fprintf(file, " --%s", option->name);
    if (!option->argument) return;
    fputc(*value == '-' ? '=' : ' ', file);
    put_word(file, value);
}

void hr_cli_put_command(FILE *file, const hr_cli_arguments *arguments)
{
    put_word(file, arguments->program);
    fprintf(file, " %s", arguments->command->name);
    for (int32_t i = 0; i < arguments->operand_count; i++) {
        fputc(' ', file);
        put_word(file, arguments->operands[i]);
    }
    for (int32_t id = 0; hr_cli_option_at(id); id++) {
        const hr_cli_option *option = hr_cli_option_at(id);
        if (arguments->values[id] && !option->most) put_option(file, option, arguments->values[id]);
        int32_t count;
        const char *const *values = hr_cli_repeated(arguments, id, &count);
        for (int32_t i = 0; i < count; i++) put_option(file, option, values[i]);
    }
}
