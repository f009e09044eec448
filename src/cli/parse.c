/* SPDX-License-Identifier: Apache-2.0 */
/* cli/parse.c - parses options and operands according to the table. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "headroom/foreign.h"

/* Returns the option of the command that is most similar to `name`, or the only one that starts
 * with it, such as --out for -o; null: none. */
static const char *similar_option(const hr_cli_command *command, const char *name)
{
    const char *similar = NULL, *begun = NULL;
    int32_t least = INT32_MAX, begun_count = 0;
    for (int32_t id = 0; hr_cli_option_at(id); id++) {
        const char *known = hr_cli_option_at(id)->name;
        if (!hr_cli_takes(command, id)) continue;
        if (*name && !strncmp(name, known, strlen(name))) {
            begun = known;
            begun_count++;
        }
        const int32_t cost = hr_word_cost(name, known);
        if (cost < least) similar = known;
        least = cost < least ? cost : least;
    }
    return similar ? similar : begun_count == 1 ? begun : NULL;
}

/* Whether a key of a recipe is meant, as for --batch_size 32: writes what to use instead. */
static bool advise_key(const hr_cli_command *command, const char *name, char **words, int32_t count,
                       char advice[HR_ADVICE_BYTES])
{
    char key[64];
    const char *value = strchr(words[0], '=') ? strchr(words[0], '=') + 1 : "";
    if (!command->keys) return false;
    if (!*value && count > 1 && words[1][0] != '-' && !strchr(words[1], '=')) value = words[1];
    snprintf(key, sizeof key, "%s", name);
    for (char *at = key; *at; at++) *at = *at == '-' ? '_' : *at;
    if (!hr_config_name(key)) return hr_config_advise(key, value, advice);
    snprintf(advice, HR_ADVICE_BYTES, "use %s=%.40s", key, *value ? value : "VALUE");
    return true;
}

static hr_status fail_option(const hr_cli_command *command, char **words, int32_t count,
                             int32_t length, hr_error *err)
{
    char name[64] = "", advice[HR_ADVICE_BYTES];
    const char *word = words[0];
    strncat(name, word + strspn(word, "-"), sizeof name - 1);
    name[strcspn(name, "=")] = 0;
    if (advise_key(command, name, words, count, advice))
        return hr_fail(err, HR_USAGE, "%.*s is not an option of %s%s %s (headroom %s --help)",
                       length, word, command->name, strncmp(advice, "use ", 4) ? ":" : ";", advice,
                       command->name);
    const char *similar = similar_option(command, name);
    return hr_fail(err, HR_USAGE, "%.*s is not an option of %s%s%s (headroom %s --help)", length,
                   word, command->name, similar ? "; the nearest is --" : "",
                   similar ? similar : "", command->name);
}

/* Returns the option that `word` [length, without "=VALUE"] names; -1: none. */
static int32_t option_find(const hr_cli_command *command, const char *word, int32_t length)
{
    if (length == 2 && !strncmp(word, "-h", 2)) return HR_OPTION_HELP;
    if (strncmp(word, "--", 2)) return -1;
    for (int32_t id = 0; hr_cli_option_at(id); id++) {
        const char *name = hr_cli_option_at(id)->name;
        if (!hr_cli_takes(command, id) || (int32_t)strlen(name) != length - 2) continue;
        if (!strncmp(name, word + 2, (size_t)(length - 2))) return id;
    }
    for (int32_t id = 0; hr_cli_option_at(id); id++) {
        const hr_cli_option *option = hr_cli_option_at(id);
        const char *old = option->old_name;
        if (!old || !hr_cli_takes(command, id) || (int32_t)strlen(old) != length - 2) continue;
        if (strncmp(old, word + 2, (size_t)(length - 2)) != 0) continue;
        fprintf(stderr, "headroom: --%s is deprecated: use --%s\n", old, option->name);
        return id;
    }
    return -1;
}

const char *const *hr_cli_repeated(const hr_cli_arguments *arguments, int32_t id, int32_t *count)
{
    int32_t first = 0;
    while (first < arguments->repeated_count && arguments->repeated_id[first] != id) first++;
    *count = 0;
    while (first + *count < arguments->repeated_count &&
           arguments->repeated_id[first + *count] == id)
        ++*count;
    return arguments->repeated + first;
}

/* Adds a value behind those of the same option. */
static void repeat(hr_cli_arguments *arguments, int32_t id, const char *value)
{
    int32_t count, at = arguments->repeated_count;
    const char *const *same = hr_cli_repeated(arguments, id, &count);
    arguments->repeated_count++;
    const int32_t place = count ? (int32_t)(same - arguments->repeated) + count : at;
    for (; at > place; at--) {
        arguments->repeated[at] = arguments->repeated[at - 1];
        arguments->repeated_id[at] = arguments->repeated_id[at - 1];
    }
    arguments->repeated[place] = value;
    arguments->repeated_id[place] = (int16_t)id;
}

/* Parses the option at words[0], with its value there or in the next word. *used out: number of
 * words consumed. */
static hr_status take_option(hr_cli_arguments *arguments, char **words, int32_t count,
                             int32_t *used, hr_error *err)
{
    const int32_t length = (int32_t)strcspn(words[0], "=");
    const int32_t id = option_find(arguments->command, words[0], length);
    if (id < 0) return fail_option(arguments->command, words, count, length, err);
    const hr_cli_option *option = hr_cli_option_at(id);
    const char *value = words[0][length] ? words[0] + length + 1 : NULL;
    if (arguments->values[id] && !option->most)
        return hr_fail(err, HR_USAGE, "--%s is given twice", option->name);
    int32_t times;
    (void)hr_cli_repeated(arguments, id, &times);
    if (option->most && (times == option->most || arguments->repeated_count == HR_CLI_REPEATS_MAX))
        return hr_fail(err, HR_USAGE, "--%s may be given at most %d times", option->name,
                       option->most);
    if (!option->argument && value)
        return hr_fail(err, HR_USAGE, "--%s takes no value; got \"%.40s\"", option->name, value);
    *used = 1;
    if (option->argument && !value) {
        if (count < 2)
            return hr_fail(err, HR_USAGE, "--%s needs %s", option->name, option->argument);
        value = words[1];
        *used = 2;
    }
    arguments->values[id] = value ? value : "";
    if (option->most) repeat(arguments, id, arguments->values[id]);
    return HR_OK;
}

/* The operand with this number, in the words of the help: "OUT_DIR". */
static const char *operand_name(const hr_cli_command *command, int32_t number)
{
    const char *name = command->operands;
    while (number-- > 0 && strchr(name, ' ')) name = strchr(name, ' ') + 1;
    return name;
}

static hr_status check_operands(const hr_cli_arguments *arguments, hr_error *err)
{
    const hr_cli_command *command = arguments->command;
    const int32_t count = arguments->operand_count;
    if (count < command->operand_least) {
        const char *name = operand_name(command, count);
        return hr_fail(err, HR_USAGE, "%s needs %.*s (headroom %s --help)", command->name,
                       (int)strcspn(name, " "), name, command->name);
    }
    const int32_t most = command->operand_most;
    if (most < 0 || count <= most || command->keys) return HR_OK;
    static const char *const words[] = { "no operands", "one operand", "two operands" };
    char many[32];
    snprintf(many, sizeof many, "at most %d operands", most);
    return hr_fail(err, HR_USAGE, "%s takes %s; \"%.60s\" is one too many", command->name,
                   most < 3 ? words[most] : many, arguments->operands[most]);
}

hr_status hr_cli_parse(const hr_cli_command *command, char **words, int32_t count,
                       hr_cli_arguments *arguments, hr_error *err)
{
    *arguments = (hr_cli_arguments){ .command = command, .operands = words };
    bool options_end = false;
    for (int32_t i = 0; i < count;) {
        const bool option = !options_end && words[i][0] == '-' && words[i][1];
        if (!option) {
            words[arguments->operand_count++] = words[i++];
            continue;
        }
        if (!strcmp(words[i], "--")) {
            options_end = true;
            i++;
            continue;
        }
        int32_t used = 0;
        const hr_status status = take_option(arguments, words + i, count - i, &used, err);
        if (status != HR_OK) return status;
        i += used;
    }
    if (arguments->values[HR_OPTION_HELP]) return HR_OK;
    const hr_status status = check_operands(arguments, err);
    return status == HR_OK ? hr_cli_check_outputs(arguments, err) : status;
}
