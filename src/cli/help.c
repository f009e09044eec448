/* SPDX-License-Identifier: Apache-2.0 */
/* cli/help.c - headroom help. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

enum { LINE_COLUMNS = 100 };

void hr_cli_print_row(const char *left, int columns, const char *text)
{
    const int length = (int)strlen(left), width = LINE_COLUMNS - columns - 3;
    if (length > columns) printf("  %s\n%*s", left, columns + 3, "");
    else printf("  %-*s ", columns, left);
    while (*text) {
        int end = (int)strlen(text);
        if (end > width) {
            end = width;
            while (end > 0 && text[end] != ' ') end--;
            if (end == 0) end = (int)strcspn(text, " ");
        }
        printf("%.*s\n", end, text);
        text += end + strspn(text + end, " ");
        if (*text) printf("%*s", columns + 3, "");
    }
}

static void print_options(const hr_cli_command *command)
{
    for (int32_t id = 0; hr_cli_option_at(id); id++) {
        if (!hr_cli_takes(command, id)) continue;
        const hr_cli_option *option = hr_cli_option_at(id);
        char left[48], times[32], text[512];
        snprintf(left, sizeof left, "--%s%s%s", option->name, option->argument ? " " : "",
                 option->argument ? option->argument : "");
        snprintf(text, sizeof text, "%s%s", option->text, hr_cli_repeat_note(option, times));
        hr_cli_print_row(left, 23, text);
    }
}

static void print_line(const hr_cli_command *command)
{
    char left[96], operands[HR_CLI_OPERANDS_BYTES];
    snprintf(left, sizeof left, "headroom %s %s", command->name,
             hr_cli_operands(command, operands));
    hr_cli_print_row(left, 37, command->text);
}

static void print_overview(void)
{
    printf("headroom trains language models within a memory budget.\n\nusage:\n");
    for (int32_t i = 0; hr_cli_command_at(i); i++) print_line(hr_cli_command_at(i));
    printf("\nRECIPE is a YAML file with the settings of a run, RUN_DIR the --out of a run, "
           "MODEL_DIR a folder\n"
           "with config.json and safetensors, such as RUN_DIR. headroom COMMAND --help lists the "
           "options of a\n"
           "command, headroom help TERM explains a word of the output, headroom help terms all of "
           "them.\n"
           "headroom presets lists recipes to start from:\n\n"
           "    headroom plan quickstart\n"
           "    headroom train quickstart data.train=FILE data.valid=5%% --out run\n");
}

void hr_cli_print_group(const char *group)
{
    printf("usage: headroom %s COMMAND [options]\n\ncommands:\n", group);
    for (int32_t i = 0; hr_cli_command_at(i); i++)
        if (hr_cli_is_of_group(hr_cli_command_at(i), group)) print_line(hr_cli_command_at(i));
    printf("\nheadroom %s COMMAND --help lists the options of a command.\n", group);
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

enum { SIMILAR_MAX = 3 };

/* The words most similar to an unknown one, most similar first. */
typedef struct {
    char wanted[64], names[SIMILAR_MAX][64];
    int32_t costs[SIMILAR_MAX], count;
} similar_words;

static void copy_lower(char copy[64], const char *word)
{
    size_t i = 0;
    for (; word[i] && i < 63; i++) copy[i] = (char)tolower((unsigned char)word[i]);
    copy[i] = 0;
}

static void consider(similar_words *s, const char *name)
{
    char lower[64];
    copy_lower(lower, name);
    const int32_t cost = hr_word_cost(s->wanted, lower);
    int32_t place = s->count;
    if (cost == INT32_MAX) return;
    for (int32_t i = 0; i < s->count; i++)
        if (!strcmp(s->names[i], name)) return; /* the group of the previous command */
    while (place > 0 && cost < s->costs[place - 1]) place--;
    if (place == SIMILAR_MAX) return;
    if (s->count < SIMILAR_MAX) s->count++;
    for (int32_t i = s->count - 1; i > place; i--) {
        s->costs[i] = s->costs[i - 1];
        memcpy(s->names[i], s->names[i - 1], sizeof s->names[i]);
    }
    s->costs[place] = cost;
    snprintf(s->names[place], sizeof s->names[place], "%s", name);
}

/* Reports a word that is neither a command nor a term, with similar ones. */
static int fail_word(const char *word)
{
    similar_words s = { .count = 0 };
    char list[256] = "";
    hr_error err;
    copy_lower(s.wanted, word);
    for (int32_t i = 0; hr_cli_command_at(i); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s", hr_cli_command_at(i)->name);
        name[strcspn(name, " ")] = 0;
        consider(&s, name);
    }
    for (int32_t i = 0; hr_cli_term_at(i); i++) consider(&s, hr_cli_term_at(i)->name);
    for (int32_t i = 0; i < s.count; i++) {
        const size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", s.names[i]);
    }
    (void)hr_fail(&err, HR_USAGE,
                  "\"%.40s\" is not a command or a term%s%s (headroom help lists the commands, "
                  "headroom help terms the terms)",
                  word,
                  !s.count       ? ""
                  : s.count == 1 ? "; the nearest is "
                                 : "; the nearest are ",
                  list);
    return hr_cli_fail(&err);
}

int hr_cli_help(const hr_cli_arguments *arguments)
{
    const char *shell = arguments->values[HR_OPTION_COMPLETION];
    const char *name = arguments->operand_count ? arguments->operands[0] : NULL;
    const char *second = arguments->operand_count > 1 ? arguments->operands[1] : NULL;
    char words[64] = "";
    for (int32_t i = 0; i < arguments->operand_count; i++) { /* "tokenize train", "loss chunk" */
        const size_t length = strlen(words);
        snprintf(words + length, sizeof words - length, "%s%.30s", i ? " " : "",
                 arguments->operands[i]);
    }
    const hr_cli_command *command = name ? hr_cli_command_find(words) : NULL;
    const bool group = name && !second && hr_cli_is_group(name);
    if (shell && !hr_cli_print_completion(shell)) {
        hr_error err;
        (void)hr_fail(&err, HR_USAGE, "--completion takes bash, zsh or fish; got \"%.40s\"", shell);
        return hr_cli_fail(&err);
    }
    if (shell) return HR_OK;
    if (name && !strcmp(words, "terms")) {
        hr_cli_print_terms();
        return HR_OK;
    }
    const hr_cli_term *term = name && !command && !group ? hr_cli_term_find(words) : NULL;
    if (term) {
        printf("%s: %s\n", term->name, term->text);
        return HR_OK;
    }
    if (name && hr_cli_is_group(name) && !command && !group)
        return hr_cli_fail_command(name, second);
    if (name && !command && !group) return fail_word(words);
    const bool manual = arguments->values[HR_OPTION_MAN];
    if (manual && command) hr_cli_print_command_manual(command);
    else if (manual) hr_cli_print_manual();
    else if (group) hr_cli_print_group(name);
    else hr_cli_print_help(command);
    return HR_OK;
}
