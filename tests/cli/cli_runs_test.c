/* SPDX-License-Identifier: Apache-2.0 */
/* cli_runs_test.c - headroom runs: the numbers of logs, the loss at equal tokens, the keys in which
 * recipes differ, CSV, and logs that are broken or still written. */
#include <jansson.h>

#include "headroom/status.h"
#include "support/program.h"

static const char constant[] = "train tiny.yaml train.schedule.kind=constant data.train=text.txt";

static void prepare(void)
{
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("%s --out one train.steps=4", constant), HR_OK);
    assert_int_equal(run("%s --out two train.steps=2 train.seed=7 data.valid=text.txt", constant),
                     HR_OK);
}

static void shell(const char *command)
{
    assert_int_equal(system(command), 0);
}

/* What a log has in its line of a step, as it is printed. */
static void loss_of(const char *folder, int step, char text[32])
{
    char command[256];
    double loss = 0;
    snprintf(command, sizeof command,
             "grep '^{\"step\":%d,' %s/metrics.jsonl | sed 's/.*\"loss\":\\([0-9.]*\\),.*/\\1/' "
             ">loss.txt",
             step, folder);
    shell(command);
    FILE *file = fopen("loss.txt", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lf", &loss), 1);
    fclose(file);
    snprintf(text, 32, " %9.4f", loss);
}

static void runs_are_compared_at_equal_tokens(void **state)
{
    char last[32], common[32], expected[128];
    (void)state;
    prepare();
    assert_int_equal(run("runs one two"), HR_OK);
    loss_of("one", 4, last);
    loss_of("one", 2, common);
    snprintf(expected, sizeof expected, "%s%s         -         -", last, common);
    assert_non_null(strstr(out, expected));
    loss_of("two", 2, last);
    snprintf(expected, sizeof expected, "%s%s ", last, last);
    assert_non_null(strstr(out, expected));
    assert_non_null(strstr(out, "\nwhat differs in their recipes\n"));
    assert_non_null(strstr(out, "\n  train.seed                        0  7\n"));
    assert_non_null(strstr(out, "\n  train.steps                       4  2\n"));
    assert_null(strstr(out, "model.d_model"));
    assert_null(strstr(out, "train.out"));
    assert_int_equal(run("runs one"), HR_OK);
    assert_null(strstr(out, "what differs"));
}

static void every_step_is_a_line_of_csv(void **state)
{
    (void)state;
    prepare();
    assert_int_equal(run("runs one two --csv"), HR_OK);
    int32_t lines = 0, steps = 0;
    for (const char *at = out; (at = strchr(at, '\n')); at++) {
        lines++;
        steps += !strncmp(at + 1, "\"one\",", 6);
    }
    assert_int_equal(strncmp(out, "run,step,tokens,seconds,loss,valid_loss,lr\n\"one\",1,", 51), 0);
    assert_int_equal(steps, 4);
    assert_int_equal(lines, 1 + 4 + 2 + 1); /* with one evaluation */
}

static void the_same_is_printed_as_json(void **state)
{
    (void)state;
    prepare();
    shell("mv one \"$(printf 'o\\377')\"");
    assert_int_equal(run("runs \"$(printf 'o\\377')\" two --json"), HR_OK);
    json_t *all = json_loads(out, 0, NULL), *runs = json_object_get(all, "runs");
    assert_int_equal(json_array_size(runs), 2);
    json_t *one = json_array_get(runs, 0), *two = json_array_get(runs, 1);
    assert_string_equal(json_string_value(json_object_get(one, "run")), "o?");
    assert_int_equal(json_integer_value(json_object_get(one, "steps")), 4);
    assert_true(json_is_null(json_object_get(one, "valid_loss")));
    assert_true(json_is_real(json_object_get(two, "valid_loss")));
    assert_true(json_equal(json_object_get(all, "equal_tokens"), json_object_get(two, "tokens")));
    assert_true(
        json_equal(json_object_get(two, "loss_at_equal_tokens"), json_object_get(two, "loss")));
    json_t *seeds = json_object_get(json_object_get(all, "differences"), "train.seed");
    assert_string_equal(json_string_value(json_array_get(seeds, 1)), "7");
    json_decref(all);
    assert_int_equal(run("runs two --json --csv"), HR_USAGE);
    assert_non_null(strstr(err, "--json and --csv exclude each other; give one"));
}

/* A column has characters of names, not bytes, and the end of those that are longer. */
static void names_are_cut_and_padded_by_characters(void **state)
{
    (void)state;
    prepare();
    shell("mv one läufe; mv two abcdefghijklmnopqrstuvwxyz0123456789é");
    assert_int_equal(run("runs läufe abcdefghijklmnopqrstuvwxyz0123456789é"), HR_OK);
    assert_non_null(strstr(out, "\nläufe                                    4 "));
    assert_non_null(strstr(out, "\nfghijklmnopqrstuvwxyz0123456789é         2 "));
}

/* What is on a page is checked by tests/report/check_page.py. */
static void a_page_is_written_or_refused_first(void **state)
{
    static char page[PROGRAM_TEXT_BYTES];
    (void)state;
    prepare();
    assert_int_equal(run("runs one two --html runs.html"), HR_OK);
    assert_non_null(strstr(out, "what differs in their recipes"));
    get("runs.html", page);
    assert_non_null(strstr(page, "<td>train.seed</td><td>0</td><td>7</td>"));
    assert_int_equal(run("runs one --html runs.html"), HR_OK); /* replaces a page */
    get("runs.html", page);
    assert_null(strstr(page, "What differs"));
    assert_int_equal(system("cp -r one \"$(printf 'o\\377')\""), 0); /* no UTF-8 */
    assert_int_equal(run("runs one \"$(printf 'o\\377')\" --html runs.html"), HR_OK);
    get("runs.html", page);
    assert_non_null(strstr(page, "o&#65533;"));
    assert_null(strchr(page, '\377'));
    assert_int_equal(run("runs none --html text.txt"), HR_USAGE);
    assert_non_null(strstr(err, "text.txt: exists and is not a page"));
    assert_int_equal(run("runs none --html no/runs.html"), HR_USAGE);
    assert_null(strstr(err, "metrics.jsonl"));
    assert_int_equal(run("runs one --csv --html runs.html"), HR_USAGE);
    assert_non_null(strstr(err, "--csv and --html exclude each other; give one"));
    assert_string_equal(out, "");
}

static void broken_logs_are_refused(void **state)
{
    (void)state;
    prepare();
    shell("printf '{\"step\":5,\"lo' >>one/metrics.jsonl");
    assert_int_equal(run("runs one two"), HR_OK); /* it is being written */
    shell("printf 'ss\\n' >>one/metrics.jsonl");
    assert_int_equal(run("runs one two"), HR_CORRUPT);
    assert_non_null(strstr(err, "one/metrics.jsonl: line "));
    assert_int_equal(run("runs two none"), HR_USAGE);
    assert_non_null(strstr(err, "none/metrics.jsonl: cannot be read; give folders of runs"));
    shell("mkdir odd && echo '{\"hello\":1}' >odd/metrics.jsonl");
    assert_int_equal(run("runs two odd"), HR_CORRUPT);
    shell(
        "head -2 one/metrics.jsonl >odd/metrics.jsonl && head -c 300 /dev/zero >>odd/metrics.jsonl "
        "&& echo >>odd/metrics.jsonl && tail -1 one/metrics.jsonl >>odd/metrics.jsonl");
    assert_int_equal(run("runs odd"), HR_CORRUPT);
    assert_non_null(strstr(err, "odd/metrics.jsonl: line 3 is not of a log of headroom"));
    shell("rm odd/metrics.jsonl && mkfifo odd/metrics.jsonl");
    assert_int_equal(run("runs two odd"), HR_USAGE);
    shell("rm -r two/checkpoints");
    assert_int_equal(run("runs two two"), HR_OK);
    assert_non_null(strstr(out, "two has no checkpoint, so its recipe is not known\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(runs_are_compared_at_equal_tokens),
        IN_A_FOLDER(every_step_is_a_line_of_csv),
        IN_A_FOLDER(the_same_is_printed_as_json),
        IN_A_FOLDER(names_are_cut_and_padded_by_characters),
        IN_A_FOLDER(a_page_is_written_or_refused_first),
        IN_A_FOLDER(broken_logs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
