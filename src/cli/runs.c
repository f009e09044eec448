/* SPDX-License-Identifier: Apache-2.0 */
/* cli/runs.c - headroom runs: compares the logs and the recipes of runs. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "headroom/checkpoint.h"
#include "headroom/runs.h"

/* A line of a log is shorter (docs/log.md). */
enum { LINE_BYTES = 32 << 10, NAME_COLUMNS = 32 };

/* What a log is read for. */
typedef struct {
    hr_run *run;
    int64_t tokens;  /* those that all runs have; 0: not known yet */
    bool csv, draws; /* print each line; keep losses for a chart */
} reading;

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void print_csv(const reading *r, const json_t *line)
{
    printf("\"");
    for (const char *at = r->run->folder, *end; *at; at = end) {
        end = at + strcspn(at, "\"");
        hr_cli_put_text(at, end - at);
        if (*end) printf("\"\"");
        end += *end != 0;
    }
    printf("\",%lld,%lld", (long long)r->run->steps, (long long)r->run->tokens);
    const double values[] = { r->run->seconds, number(line, "loss"), number(line, "valid_loss"),
                              number(line, "lr") };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (isnan(values[i])) printf(",");
        else printf(",%.9g", values[i]);
    printf("\n");
}

static void take_line(const reading *r, const json_t *line)
{
    hr_run *run = r->run;
    const double valid = number(line, "valid_loss");
    if (!isnan(number(line, "process_bytes_planned"))) {
        run->planned = (int64_t)number(line, "process_bytes_planned");
        run->measured = (int64_t)number(line, "process_bytes_measured");
        return;
    }
    const char *event = json_string_value(json_object_get(line, "event"));
    if (event && strcmp(event, "evaluation")) return;
    if (isnan(number(line, "step"))) return;
    run->steps = (int64_t)number(line, "step");
    if (event) {
        run->valid = valid;
        run->best = isnan(run->best) || valid < run->best ? valid : run->best;
    } else {
        if (!isnan(number(line, "tokens"))) run->tokens = (int64_t)number(line, "tokens");
        const double seconds = number(json_object_get(line, "clock"), "seconds");
        if (!isnan(seconds)) run->seconds = seconds;
        if (!isnan(number(line, "loss"))) run->loss = number(line, "loss");
        if (run->tokens <= r->tokens) run->common = run->loss;
    }
    if (r->draws)
        hr_run_losses_add(event ? &run->valid_losses : &run->losses,
                          (hr_run_loss){ (double)run->steps, (double)run->tokens, run->seconds,
                                         event ? valid : number(line, "loss") });
    if (r->csv) print_csv(r, line);
}

/* The last line may be incomplete: the run may go on at this moment. */
static hr_status read_log(const reading *r, hr_error *err)
{
    char path[HR_PATH_BYTES + 32], *text = malloc(LINE_BYTES);
    hr_status status = HR_OK;
    snprintf(path, sizeof path, "%s/metrics.jsonl", r->run->folder);
    struct stat there;
    const bool is_file = stat(path, &there) == 0 && S_ISREG(there.st_mode);
    FILE *file = text && is_file ? fopen(path, "r") : NULL;
    if (!file)
        status = hr_fail(err, HR_USAGE,
                         "%.900s: cannot be read; give folders of runs, the --out "
                         "of headroom train",
                         path);
    for (int64_t number = 1; status == HR_OK && fgets(text, LINE_BYTES, file); number++) {
        if (!strchr(text, '\n') && feof(file)) break;
        json_t *line = json_loads(text, JSON_ALLOW_NUL, NULL);
        if (json_object_get(line, "step") || json_object_get(line, "arena_bytes_planned"))
            take_line(r, line);
        else
            status = hr_fail(err, HR_CORRUPT, "%.900s: line %lld is not of a log of headroom", path,
                             (long long)number);
        json_decref(line);
    }
    if (file) fclose(file);
    free(text);
    return status;
}

static void take_newest(void *context, const hr_checkpoint *checkpoint)
{
    int64_t *newest = context;
    if (*newest < 0 && !checkpoint->problem) *newest = checkpoint->step;
}

/* The recipe of the newest checkpoint. A run may have none. */
static void read_recipe(hr_run *run)
{
    char path[HR_PATH_BYTES + 64];
    int64_t newest = -1; /* step of the newest checkpoint */
    const hr_checkpoint_events events = { .context = &newest, .found = take_newest };
    if (hr_checkpoint_list(run->folder, false, &events, NULL, NULL) != HR_OK || newest < 0) return;
    snprintf(path, sizeof path, "%s/checkpoints/step-%012lld/recipe.yaml", run->folder,
             (long long)newest);
    run->recipe = hr_config_new();
    if (run->recipe && hr_config_read(run->recipe, path, NULL) == HR_OK) return;
    hr_config_free(run->recipe);
    run->recipe = NULL;
}

/* ---- text */

/* Characters of UTF-8: bytes that do not continue one. */
static int characters(const char *text)
{
    int count = 0;
    for (; *text; text++) count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static int columns_of(const hr_run *runs, int32_t count)
{
    int most = 4;
    for (int32_t i = 0; i < count; i++) {
        const int length = characters(runs[i].folder);
        most = length > most ? length : most;
    }
    return most > NAME_COLUMNS ? NAME_COLUMNS : most;
}

/* Prints the end of a name that is longer than the column, without line breaks. */
static void print_name(const char *name, int columns)
{
    int length = characters(name);
    while (length > columns || ((unsigned char)*name & 0xc0) == 0x80) {
        length -= ((unsigned char)*name & 0xc0) != 0x80;
        name++;
    }
    for (const char *end; *name; name = end) {
        char part[HR_PATH_BYTES];
        end = name + strcspn(name, "\n\r\t\v\f");
        snprintf(part, sizeof part, "%.*s", (int)(end - name), name);
        hr_cli_put_string(part);
        if (*end) putchar('?'), end++;
    }
    printf("%*s", columns - length, "");
}

static void print_real(double value)
{
    if (isnan(value)) printf(" %9s", "-");
    else printf(" %9.4f", value);
}

static void print_count(int64_t value, int columns)
{
    printf(" %*s", columns, value ? hr_cli_count(value) : "-");
}

static void print_runs(const hr_run *runs, int32_t count, int64_t tokens)
{
    const int columns = columns_of(runs, count);
    printf("%-*s %9s %15s %9s %9s %9s %9s %9s %9s %15s %15s\n", columns, "run", "steps", "tokens",
           "seconds", "tokens/s", "loss", "at equal", "valid", "best", "planned", "measured");
    for (int32_t i = 0; i < count; i++) {
        const hr_run *r = &runs[i];
        print_name(r->folder, columns);
        print_count(r->steps, 9);
        print_count(r->tokens, 15);
        printf(" %9.1f", r->seconds);
        print_count(r->seconds > 0 ? (int64_t)((double)r->tokens / r->seconds + 0.5) : 0, 9);
        print_real(r->loss);
        print_real(r->common);
        print_real(r->valid);
        print_real(r->best);
        print_count(r->planned, 15);
        print_count(r->measured, 15);
        printf("\n");
    }
    printf(
        "\nat equal: the loss after at most %s tokens, which all have; planned, measured: bytes\n",
        hr_cli_count(tokens));
}

/* The keys whose values are not the same in all runs. */
static void print_differences(const hr_run *runs, int32_t count)
{
    char text[HR_VALUE_BYTES];
    const hr_key *key;
    int32_t row = -1;
    bool found = false;
    while ((key = hr_runs_next_difference(runs, count, row + 1, &row))) {
        if (!found) printf("\nwhat differs in their recipes\n");
        found = true;
        printf("  %-32s", key->name);
        for (int32_t i = 0; i < count; i++) printf("  %s", hr_run_value(&runs[i], key->name, text));
        printf("\n");
    }
    for (int32_t i = 0; i < count; i++)
        if (!runs[i].recipe) {
            printf("\n");
            print_name(runs[i].folder, characters(runs[i].folder));
            printf(" has no checkpoint, so its recipe is not known\n");
        }
}

/* ---- JSON */

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *count_or_null(int64_t value)
{
    return value ? json_integer(value) : json_null();
}

static json_t *run_json(const hr_run *r)
{
    return json_pack("{s:o, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:o, s:o}", "run",
                     hr_cli_json_string(r->folder), "steps", (json_int_t)r->steps, "tokens",
                     (json_int_t)r->tokens, "seconds", r->seconds, "loss", real(r->loss),
                     "loss_at_equal_tokens", real(r->common), "valid_loss", real(r->valid),
                     "best_valid_loss", real(r->best), "planned_bytes", count_or_null(r->planned),
                     "measured_bytes", count_or_null(r->measured));
}

static hr_status print_json(const hr_run *runs, int32_t count, int64_t tokens)
{
    char text[HR_VALUE_BYTES];
    const hr_key *key;
    int32_t row = -1;
    json_t *all = json_array(), *differences = json_object();
    for (int32_t i = 0; i < count; i++) json_array_append_new(all, run_json(&runs[i]));
    while ((key = hr_runs_next_difference(runs, count, row + 1, &row))) {
        json_t *values = json_array();
        for (int32_t i = 0; i < count; i++)
            json_array_append_new(
                values, runs[i].recipe ? hr_cli_json_string(hr_run_value(&runs[i], key->name, text))
                                       : json_null());
        json_object_set_new(differences, key->name, values);
    }
    return hr_cli_print_json(json_pack("{s:I, s:o, s:o}", "equal_tokens", (json_int_t)tokens,
                                       "runs", all, "differences", differences),
                             0);
}

static hr_status read_all(const hr_cli_arguments *arguments, hr_run *runs, int64_t *tokens,
                          hr_error *err)
{
    const bool csv = arguments->values[HR_OPTION_RUNS_CSV];
    const bool draws = arguments->values[HR_OPTION_RUNS_HTML];
    hr_status status = HR_OK;
    *tokens = INT64_MAX;
    for (int32_t i = 0; i < arguments->operand_count && status == HR_OK; i++) {
        runs[i] = (hr_run){
            .folder = arguments->operands[i], .loss = NAN, .valid = NAN, .best = NAN, .common = NAN
        };
        status = read_log(&(reading){ .run = &runs[i], .csv = csv, .draws = draws }, err);
        if (runs[i].tokens < *tokens) *tokens = runs[i].tokens;
    }
    return status;
}

static hr_status compare(const hr_cli_arguments *arguments, hr_run *runs, hr_error *err)
{
    const int32_t count = arguments->operand_count;
    const bool csv = arguments->values[HR_OPTION_RUNS_CSV];
    const bool json = arguments->values[HR_OPTION_JSON];
    const char *page = arguments->values[HR_OPTION_RUNS_HTML];
    int64_t tokens;
    if (csv && page) return hr_fail(err, HR_USAGE, "--csv and --html exclude each other; give one");
    if (json && (csv || page))
        return hr_fail(err, HR_USAGE, "--json and --%s exclude each other; give one",
                       csv ? "csv" : "html");
    hr_status status = page ? hr_runs_check_page(page, err) : HR_OK;
    if (status != HR_OK) return status;
    if (csv) printf("run,step,tokens,seconds,loss,valid_loss,lr\n");
    status = read_all(arguments, runs, &tokens, err);
    if (status != HR_OK || csv) return status;
    for (int32_t i = 0; i < count && status == HR_OK; i++) {
        runs[i].best = runs[i].loss = runs[i].common = NAN;
        status = read_log(&(reading){ .run = &runs[i], .tokens = tokens }, err);
        read_recipe(&runs[i]);
    }
    if (status != HR_OK) return status;
    if (json) return print_json(runs, count, tokens);
    print_runs(runs, count, tokens);
    if (count > 1) print_differences(runs, count);
    return page ? hr_runs_write_page(page, runs, count, tokens, err) : HR_OK;
}

int hr_cli_runs(const hr_cli_arguments *arguments)
{
    hr_error err;
    hr_run *runs = calloc((size_t)arguments->operand_count, sizeof *runs);
    hr_status status = runs ? compare(arguments, runs, &err)
                            : hr_fail(&err, HR_FAILURE, "out of memory for the runs");
    for (int32_t i = 0; runs && i < arguments->operand_count; i++) hr_config_free(runs[i].recipe);
    free(runs);
    if (status == HR_OK) return HR_OK;
    fflush(stdout);
    return hr_cli_fail(&err);
}
