/* SPDX-License-Identifier: Apache-2.0 */
/* cli_progress_test.c - progress on a terminal: every kind of work is shown when it begins. */
#include <pty.h>

#include "headroom/status.h"
#include "support/program.h"

static char shown[PROGRAM_TEXT_BYTES];

/* Runs `headroom <arguments>` with a terminal as standard error; its output is in `shown`. */
static int run_on_terminal(const char *arguments)
{
    char command[PROGRAM_COMMAND_BYTES];
    int terminal, slave, status;
    size_t used = 0;
    snprintf(command, sizeof command, "exec \"$HEADROOM\" %s >out.txt", arguments);
    if (openpty(&terminal, &slave, NULL, NULL, NULL) != 0) {
        hr_test_skip("terminal", "no pseudo-terminal can be opened");
    }
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(slave, STDERR_FILENO);
        close(terminal);
        execl("/bin/sh", "sh", "-c", command, (char *)0);
        _exit(127);
    }
    close(slave);
    for (ssize_t got; (got = read(terminal, shown + used, sizeof shown - 1 - used)) > 0;)
        used += (size_t)got;
    shown[used] = 0;
    close(terminal);
    assert_int_equal(waitpid(child, &status, 0), child);
    get("out.txt", out);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void assert_shown_in_order(const char *const *works, size_t count)
{
    const char *at = shown;
    for (size_t i = 0; i < count; i++) {
        const char *found = strstr(at, works[i]);
        if (!found) fail_msg("%s: not shown after what came before: %s", works[i], shown);
        at = found;
    }
}

static void every_part_of_a_run_is_shown(void **state)
{
    static const char *const first[] = {
        "planning",      "allocating memory", "initializing weights",  "evaluating: 0 %",
        "sampling: 0 %", "saving: 0 %",       "writing the checkpoint"
    };
    static const char *const again[] = { "planning", "loading the checkpoint: 0 %",
                                         "evaluating: 0 %" };
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run_on_terminal("train tiny.yaml data.train=text.txt data.valid=text.txt "
                                     "train.sample_tokens=8 --out run"),
                     HR_OK);
    assert_shown_in_order(first, sizeof first / sizeof *first);
    assert_int_equal(run_on_terminal("train tiny.yaml data.train=text.txt data.valid=text.txt "
                                     "train.sample_tokens=8 --out run train.steps=5"),
                     HR_OK);
    assert_shown_in_order(again, sizeof again / sizeof *again);
    assert_int_equal(run_on_terminal("train tiny.yaml data.train=text.txt model.from=run "
                                     "--out more"),
                     HR_OK);
    assert_non_null(strstr(shown, "loading weights: 0 %"));
}

static void an_evaluation_shows_its_parts(void **state)
{
    static const char *const works[] = { "planning", "allocating memory", "loading weights: 0 %",
                                         "evaluating: 0 %" };
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run"), HR_OK);
    assert_int_equal(run_on_terminal("eval run --file text.txt"), HR_OK);
    assert_shown_in_order(works, sizeof works / sizeof *works);
    assert_int_equal(run_on_terminal("generate run --prompt ab --max-tokens 4"), HR_OK);
    assert_non_null(strstr(shown, "loading weights: 0 %"));
    assert_int_equal(run_on_terminal("plan tiny.yaml"), HR_OK);
    assert_non_null(strstr(shown, "planning"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(every_part_of_a_run_is_shown),
        IN_A_FOLDER(an_evaluation_shows_its_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
