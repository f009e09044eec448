/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate_test.c - `headroom eval`: logits and losses beside PyTorch's, the same bits whatever the
 * budget; windows of a text; and what must be refused. */
#include <math.h>

#include "headroom/config.h"
#include "headroom/status.h"
#include "mem/process.h"
#include "model/family.h"
#include "support/oracle.h"
#include "support/program.h"
#include "support/stored.h"

static const char *const families[] = { "gpt_neox", "gpt2", "llama_gqa", "qwen3_tied" };
enum { FAMILIES = sizeof families / sizeof *families };
#define LOGIT_TOLERANCE 2e-5
#define ORACLE HR_SHARED "/oracles/hf/%s"

static void require_oracles(void)
{
    require_program();
    if (access(HR_SHARED "/oracles/hf/gpt2/golden.safetensors", R_OK) == 0) return;
    print_message("skip: the oracles are not there\n");
    skip();
}

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value)) fail_msg("no number %s in: %s", name, out);
    return json_number_value(value);
}

/* The plan held, and the process had no more. */
static json_t *kept_plan(void)
{
    json_t *facts = out_json();
    assert_true(!hr_process_is_exact() ||
                number(facts, "process_bytes_measured") <= number(facts, "process_bytes_planned"));
    assert_true(number(facts, "arena_bytes_used") == number(facts, "arena_bytes_planned"));
    return facts;
}

/* What `headroom eval <arguments> --json` says. */
static __attribute__((format(printf, 1, 2))) json_t *evaluated(const char *format, ...)
{
    char arguments[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    if (run("eval %s --json", arguments) != HR_OK) fail_msg("%s: %s", arguments, err);
    return kept_plan();
}

/* A line of --per-token; `at` goes on behind it. */
typedef struct {
    long long sequence, position;
    int id;
    double loss;
} listed_loss;

static listed_loss next_loss(char **at)
{
    listed_loss line;
    int length;
    assert_int_equal(sscanf(*at,
                            "{\"sequence\": %lld, \"position\": %lld, \"id\": %d, "
                            "\"loss\": %lf}\n%n",
                            &line.sequence, &line.position, &line.id, &line.loss, &length),
                     4);
    *at += length;
    return line;
}

static void open_golden(oracle_file *golden, const char *family)
{
    char path[600];
    snprintf(path, sizeof path, ORACLE "/golden.safetensors", family);
    assert_true(oracle_open(golden, path));
}

static void same_bytes(const char *path, const char *other)
{
    char command[256];
    snprintf(command, sizeof command, "cmp %s %s", path, other);
    assert_int_equal(system(command), 0);
}

static void logits_are_those_of_others(void **state)
{
    (void)state;
    require_oracles();
    for (int32_t f = 0; f < FAMILIES; f++) {
        oracle_file golden = { 0 }, made = { 0 };
        int64_t bytes = 0, made_bytes = 0;
        double worst = 0;
        open_golden(&golden, families[f]);
        json_decref(evaluated(ORACLE " --tokens " ORACLE "/golden.safetensors --logits-out made",
                              families[f], families[f]));
        assert_true(oracle_open(&made, "made"));
        const float *wanted = oracle_tensor(&golden, "", "logits", &bytes);
        const float *logits = oracle_tensor(&made, "", "logits", &made_bytes);
        assert_int_equal(bytes, made_bytes);
        assert_true(json_equal(json_object_get(json_object_get(made.header, "logits"), "shape"),
                               json_object_get(json_object_get(golden.header, "logits"), "shape")));
        for (int64_t i = 0; i < bytes / (int64_t)sizeof *logits; i++)
            worst = fmax(worst, fabs((double)logits[i] - (double)wanted[i]));
        print_message("%s: logits differ by %.2e at most\n", families[f], worst);
        assert_true(worst <= LOGIT_TOLERANCE);
        oracle_close(&made);
        oracle_close(&golden);
    }
}

/* -log softmax(logits)[target], another way round: from the sum of differences. */
static double cost(const float *logits, int64_t count, int64_t target)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += exp((double)logits[i] - (double)logits[target]);
    return log(sum);
}

static void losses_are_those_of_others(void **state)
{
    (void)state;
    require_oracles();
    for (int32_t f = 0; f < FAMILIES; f++) {
        oracle_file golden = { 0 };
        int64_t bytes = 0, tokens = 0;
        double sum = 0, listed = 0;
        char text[PROGRAM_TEXT_BYTES];
        open_golden(&golden, families[f]);
        json_t *facts = evaluated(ORACLE " --tokens " ORACLE "/golden.safetensors --per-token list",
                                  families[f], families[f]);
        const float *logits = oracle_tensor(&golden, "", "logits", &bytes);
        const int64_t *labels = oracle_tensor(&golden, "", "labels", &bytes);
        const int64_t rows = bytes / 8, V = 101, T = 23;
        get("list", text);
        char *line = text;
        for (int64_t i = 0; i < rows; i++) {
            if (labels[i] < 0) continue;
            const double wanted = cost(logits + i * V, V, labels[i]);
            const listed_loss told = next_loss(&line);
            assert_int_equal(told.sequence, i / T);
            assert_int_equal(told.position, i % T + 1);
            assert_int_equal(told.id, labels[i]);
            assert_true(fabs(told.loss - wanted) <= LOGIT_TOLERANCE);
            sum += wanted;
            listed += told.loss;
            tokens++;
        }
        assert_string_equal(line, "");
        assert_true(json_is_true(json_object_get(facts, "labels")));
        assert_int_equal(number(facts, "tokens"), tokens);
        assert_true(fabs(number(facts, "loss") - sum / (double)tokens) <= 1e-5);
        assert_true(fabs(number(facts, "loss_sum") - listed) <= 1e-8);
        assert_true(fabs(number(facts, "perplexity") / exp(sum / (double)tokens) - 1) <= 1e-5);
        assert_null(json_object_get(facts, "bits_per_byte"));
        json_decref(facts);
        oracle_close(&golden);
    }
}

/* ---- a model of bytes and a text */

/* A trained model in `model`, and `text.txt`. */
static void put_model(const char *family, int32_t positions, const char *sizes)
{
    char more[64] = "";
    require_program();
    put_tiny_and_text();
    if (positions) snprintf(more, sizeof more, "model.positions=%d", (int)positions);
    assert_int_equal(run("train tiny.yaml data.train=text.txt train.out=model train.seed=3 "
                         "model.family=%s %s %s train.sample_tokens=0",
                         family, more, sizes),
                     HR_OK);
}

/* Random ids [B, T], and no labels. */
static void put_tokens(const char *name, int32_t B, int32_t T, int32_t V, bool wide)
{
    int64_t *ids = malloc((size_t)(B * T) * sizeof *ids);
    int32_t *narrow = malloc((size_t)(B * T) * sizeof *narrow);
    char shape[64];
    for (int64_t i = 0; i < B * T; i++) ids[i] = narrow[i] = (int32_t)((i * 7919 + i / 3) % V);
    snprintf(shape, sizeof shape, "[%d,%d]", (int)B, (int)T);
    stored_file file = stored_begin();
    stored_add(&file, "input_ids", wide ? "I64" : "I32", shape, wide ? (void *)ids : narrow,
               B * T * (wide ? 8 : 4));
    stored_end(&file, name);
    free(narrow);
    free(ids);
}

/* Every budget and every number of threads, down to the least: the same bits. */
static void cuts_change_no_bit(void **state)
{
    (void)state;
    put_model("llama", 0, "model.d_model=128 model.d_ff=1024");
    put_tokens("ids", 3, 2000, 256, true);
    put_tokens("narrow", 3, 2000, 256, false);
    for (int32_t bf16 = 0; bf16 < 2; bf16++) {
        const char *format = bf16 ? "bf16" : "fp32";
        json_t *facts = evaluated("model --tokens ids --logits-out whole --format %s --threads 1",
                                  format);
        const int64_t most = (int64_t)number(facts, "process_bytes_planned");
        assert_int_equal(number(facts, "at_a_time"), 2);
        assert_int_equal(number(facts, "chunk"), 1024);
        json_decref(facts);
        assert_int_equal(run("eval model --tokens narrow --logits-out part --format %s", format),
                         HR_OK);
        same_bytes("part", "whole");
        double one = 0, chunk = 0, tile = 0, loss = 0;
        int32_t fits = 0;
        for (int64_t budget = most;; budget -= 3 << 20) {
            if (run("eval model --tokens ids --logits-out part --format %s --threads 2 --budget "
                    "%lld --json",
                    format, (long long)budget) != HR_OK)
                break;
            facts = kept_plan();
            assert_true(number(facts, "process_bytes_planned") <= (double)budget);
            one = number(facts, "at_a_time");
            chunk = number(facts, "chunk");
            tile = number(facts, "mlp_tile");
            json_decref(facts);
            same_bytes("part", "whole");
            facts = evaluated("model --tokens ids --format %s --budget %lld", format,
                              (long long)budget);
            if (fits++) assert_true(loss == number(facts, "loss_sum"));
            loss = number(facts, "loss_sum");
            json_decref(facts);
        }
        assert_non_null(strstr(err, "2000 tokens at a time need at least "));
        print_message("%s: %d budgets, down to %g, %g and %g\n", format, (int)fits, one, chunk,
                      tile);
        assert_true(fits > 2);
        assert_true(one == 1 && chunk == 64 && tile >= 64 && tile < 2000);
    }
    assert_int_equal(run("eval model --tokens ids --logits-out none --budget 1MiB"), HR_NO_FIT);
    assert_non_null(strstr(err, "2000 tokens at a time need at least "));
    assert_non_null(strstr(err, "there are 1,048,576 bytes"));
    assert_int_not_equal(access("none", F_OK), 0);
}

/* A window by hand: its ids as tokens, logits of all of them, and the last `fresh` counted. */
static double cost_of_window(const uint8_t *text, int64_t first, int64_t length, int64_t fresh)
{
    int64_t *ids = malloc((size_t)length * sizeof *ids), bytes = 0;
    char shape[64];
    double sum = 0;
    for (int64_t i = 0; i < length; i++) ids[i] = text[first + i];
    snprintf(shape, sizeof shape, "[1,%d]", (int)length);
    stored_file file = stored_begin();
    stored_add(&file, "input_ids", "I64", shape, ids, length * 8);
    stored_end(&file, "window");
    assert_int_equal(run("eval model --tokens window --logits-out made"), HR_OK);
    oracle_file made = { 0 };
    assert_true(oracle_open(&made, "made"));
    const float *logits = oracle_tensor(&made, "", "logits", &bytes);
    assert_int_equal(bytes, length * 256 * 4);
    for (int64_t t = length - fresh; t < length; t++)
        sum += cost(logits + t * 256, 256, text[first + t + 1]);
    oracle_close(&made);
    free(ids);
    return sum;
}

static void windows_hold_every_byte_once(void **state)
{
    static const struct {
        int32_t bytes, context, stride;
    } cases[] = { { 100, 32, 32 }, { 100, 32, 12 }, { 97, 48, 48 }, { 33, 32, 1 },
                  { 20, 64, 64 },  { 2, 8, 3 },     { 65, 32, 31 } };
    (void)state;
    put_model("gpt2", 64, "");
    char text[PROGRAM_TEXT_BYTES], list[PROGRAM_TEXT_BYTES];
    get("text.txt", text);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int64_t N = cases[c].bytes, T = cases[c].context, S = cases[c].stride;
        FILE *file = fopen("some.txt", "w");
        fwrite(text, 1, (size_t)N, file);
        fclose(file);
        double sum = 0;
        int64_t windows = 0;
        for (int64_t asked = 0; asked < N - 1; windows++) {
            const int64_t first = windows * S;
            const int64_t length = N - 1 - first < T ? N - 1 - first : T;
            sum += cost_of_window((const uint8_t *)text, first, length, first + length - asked);
            asked = first + length;
        }
        json_t *facts = evaluated("model --file some.txt --context %d --stride %d --per-token list",
                                  (int)T, (int)S);
        assert_int_equal(number(facts, "tokens"), N - 1);
        assert_int_equal(number(facts, "sequences"), windows);
        assert_true(fabs(number(facts, "loss_sum") - sum) <= 1e-4);
        assert_true(fabs(number(facts, "bits_per_byte") - sum / (double)(N - 1) / log(2)) <= 1e-5);
        json_decref(facts);
        get("list", list);
        char *line = list;
        for (int64_t at = 1; at < N; at++) {
            const listed_loss told = next_loss(&line);
            assert_int_equal(told.position, at);
            assert_int_equal(told.id, (uint8_t)text[at]);
        }
        assert_string_equal(line, "");
    }
    assert_int_equal(run("eval model --file text.txt --context 32 --stride 8"), HR_OK);
    assert_non_null(strstr(out, "windows of 32, each 8 behind the one before\n"));
    assert_int_equal(run("eval model --file text.txt"), HR_OK);
    assert_non_null(strstr(out, "windows of 64, disjoint\n"));
}

/* The loss of a text is what the run that made the model said of it at its end. */
static void every_family_says_what_its_run_said(void **state)
{
    (void)state;
    require_program();
    char text[PROGRAM_TEXT_BYTES];
    put_tiny_and_text();
    get("text.txt", text);
    text[8 * 64 + 1] = 0; /* eight batches, and what comes after */
    put("valid.txt", text);
    for (int32_t k = 0; k < 2 * HR_FAMILIES; k++) {
        hr_config config;
        hr_config_default(&config);
        config.model.family = k / 2;
        const char *family = hr_family_of(&config)->name, *format = k % 2 ? "bf16" : "fp32";
        if (run("train tiny.yaml data.train=text.txt data.valid=valid.txt train.out=%s%s "
                "model.family=%s train.format=%s train.optimizer.lr=0.01 train.sample_tokens=0 "
                "--metrics metrics",
                family, format, family, format) != HR_OK)
            fail_msg("%s: %s", family, err);
        get("metrics", text);
        const char *said = strstr(text, "\"valid_loss\":");
        assert_non_null(said);
        const double valid = strtod(strchr(said, ':') + 1, NULL);
        json_t *facts = evaluated("%s%s --file valid.txt --context 16 --format %s", family, format,
                                  format);
        const double loss = number(facts, "loss");
        json_decref(facts);
        if (!(fabs(loss - valid) <= (k % 2 ? 1e-3 : 1e-6)))
            fail_msg("%s %s: %.9f, and the run said %.9f", family, format, loss, valid);
    }
}

/* ---- multiple choice */

/* What the bytes of `answer` cost behind `context`. */
static double cost_of_answer(const char *context, const char *answer)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s", context, answer);
    return cost_of_window((const uint8_t *)whole, 0, (int64_t)strlen(whole) - 1,
                          (int64_t)strlen(answer));
}

static void answers_are_the_likeliest(void **state)
{
    (void)state;
    static const char *const questions[][4] = {
        { "train.batch ", "sequences", "a", "of the whole number" },
        { "x", "train.", "the learning rate", "zz" },
        { "\\u00e4 \\\\\\\"", "e", "\\u00fc", "0 to 1" },
        { "model.d_", "model", "q", "eeeeeeeeeeee" },
        { "whole numb", "er", "rr", "e" },
    };
    static const char *const plain[] = { "\xc3\xa4 \\\"", "\xc3\xbc" }; /* what it decodes to */
    enum { QUESTIONS = sizeof questions / sizeof *questions };
    put_model("gpt2", 64, "");
    FILE *file = fopen("q.jsonl", "w");
    int32_t right = 0, right_by_length = 0;
    double sum = 0;
    int64_t tokens = 0;
    for (int32_t q = 0; q < QUESTIONS; q++) {
        double best = INFINITY, best_mean = INFINITY;
        int32_t likeliest = 0, by_length = 0;
        const int32_t answer = (q + 1) % 3;
        fprintf(file,
                "%s{\"id\": [1, {}], \"choices\": [\"%s\", \"%s\", \"%s\"], \"answer\": %d, "
                "\"context\": \"%s\"}\n",
                q == 2 ? "\n  \r\n" : "", questions[q][1], questions[q][2], questions[q][3],
                (int)answer, questions[q][0]);
        for (int32_t c = 0; c < 3; c++) {
            const char *context = q == 2 ? plain[0] : questions[q][0];
            const char *choice = q == 2 && c == 1 ? plain[1] : questions[q][c + 1];
            const double loss = cost_of_answer(context, choice);
            const double mean = loss / (double)strlen(choice);
            if (loss < best) likeliest = c;
            if (mean < best_mean) by_length = c;
            best = fmin(best, loss);
            best_mean = fmin(best_mean, mean);
            sum += loss;
            tokens += (int64_t)strlen(choice);
        }
        right += likeliest == answer;
        right_by_length += by_length == answer;
    }
    fclose(file);
    json_t *facts = evaluated("model --choices q.jsonl");
    assert_int_equal(number(facts, "questions"), QUESTIONS);
    assert_int_equal(number(facts, "sequences"), 3 * QUESTIONS);
    assert_int_equal(number(facts, "right"), right);
    assert_int_equal(number(facts, "right_by_length"), right_by_length);
    assert_int_equal(number(facts, "tokens"), tokens);
    assert_true(fabs(number(facts, "loss_sum") - sum) <= 1e-4);
    json_decref(facts);
    print_message("%d right, %d by length\n", (int)right, (int)right_by_length);
    assert_true(right != right_by_length); /* else the figures say little */
}

/* ---- what is refused */

static void refused(const char *arguments, int code, const char *sentence)
{
    assert_int_equal(run("%s", arguments), code);
    if (!strstr(err, sentence)) fail_msg("%s: said %s", arguments, err);
    assert_string_equal(out, "");
}

static void put_one(const char *name, const char *dtype, const char *shape, const char *tensor,
                    int64_t value, int64_t bytes)
{
    int64_t values[64];
    for (int32_t i = 0; i < 64; i++) values[i] = value;
    stored_file file = stored_begin();
    stored_add(&file, tensor, dtype, shape, values, bytes);
    stored_end(&file, name);
}

/* Windows are no longer than the positions that a rotary model is known for, unless it is asked. */
static void windows_are_those_that_the_model_is_known_for(void **state)
{
    (void)state;
    put_model("llama", 40, "");
    json_t *facts = evaluated("model --file text.txt");
    assert_true(number(facts, "length") == 40 && number(facts, "stride") == 40);
    json_decref(facts);
    facts = evaluated("model --file text.txt --context 50");
    assert_true(number(facts, "length") == 50);
    json_decref(facts);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    put_model("gpt2", 64, "");
    put_tokens("long", 2, 65, 256, true);
    assert_int_equal(run("train tiny.yaml data.train=text.txt train.out=rotary model.family=llama "
                         "train.sample_tokens=0"),
                     HR_OK);
    put_one("floats", "F32", "[2,4]", "input_ids", 1, 32);
    put_one("flat", "I64", "[8]", "input_ids", 1, 64);
    put_one("empty", "I64", "[0,8]", "input_ids", 1, 0);
    put_one("other", "I64", "[1,8]", "ids", 1, 64);
    put_one("large", "I64", "[1,8]", "input_ids", 256, 64);
    put_one("huge", "I64", "[1,8]", "input_ids", INT64_C(1) << 32, 64);
    put_one("below", "I64", "[1,8]", "input_ids", -1, 64);
    refused("eval model --tokens long --logits-out o", HR_USAGE,
            "long has sequences of 65 tokens, the model 64 positions");
    refused("eval model --tokens floats", HR_CORRUPT, "input_ids is of type F32");
    refused("eval model --tokens flat", HR_CORRUPT, "input_ids has shape [8]");
    refused("eval model --tokens empty", HR_CORRUPT, "input_ids has shape [0, 8]");
    refused("eval model --tokens other", HR_CORRUPT, "other: has no tensor input_ids");
    refused("eval model --tokens large --logits-out o", HR_CORRUPT,
            "large: input_ids[0, 0] is 256; the model has ids 0 to 255");
    refused("eval model --tokens huge", HR_CORRUPT, "[0, 0] is 4294967296; the model has ids");
    refused("eval model --tokens below", HR_CORRUPT, "[0, 0] is -1; the model has ids 0 to 255");
    refused("eval model --tokens missing", HR_USAGE, "missing");
    refused("eval model --tokens model", HR_USAGE, "model");
    refused("eval model --file text.txt --context 65", HR_USAGE,
            "--context 65 is more than the model's 64 positions");
    refused("eval model --file text.txt --context 8 --stride 9", HR_USAGE,
            "--stride 9 would leave out tokens between windows of 8");
    refused("eval model --file text.txt --stride 0", HR_USAGE, "--stride 0");
    refused("eval model --file text.txt --logits-out o", HR_USAGE, "--logits-out needs --tokens");
    refused("eval model --tokens large --logits-out large", HR_USAGE,
            "--logits-out large is the file large, which is read");
    refused("eval model --tokens large --logits-out ./large", HR_USAGE, "is the file large, which");
    refused("eval model --tokens large --per-token large", HR_USAGE, "--per-token large is the f");
    refused("eval model --file text.txt --per-token text.txt", HR_USAGE, "is the file text.txt");
    refused("eval model --tokens large --logits-out model/model.safetensors", HR_USAGE,
            "is the file model/model.safetensors, which is read; give another place");
    refused("eval model --file text.txt --tokens long", HR_USAGE, "give one of --tokens");
    refused("eval model", HR_USAGE, "give one of --tokens");
    refused("eval model --file text.txt --kernels mmx", HR_USAGE,
            "--kernels: mmx is not on this machine");
    refused("eval model --file text.txt --threads 257", HR_USAGE,
            "--threads takes a whole number from 0 to 256");
    refused("eval model --file text.txt --threads 999999999999", HR_USAGE, "given 999999999999");
    refused("eval nothing --file text.txt", HR_USAGE, "nothing");
    refused("eval '' --file text.txt", HR_USAGE, "the name of the model's folder is empty");
    assert_int_equal(system("truncate -s 4G far.txt"), 0);
    refused("eval rotary --file far.txt --context 4000000000", HR_USAGE,
            "are the most that can be planned; give a smaller --context");
    put("one.txt", "a");
    refused("eval model --file one.txt", HR_USAGE, "one.txt has 1 byte");
    static const struct {
        const char *text, *sentence;
    } lines[] = {
        { "\n\n", "q has no question" },
        { "{}\n", "q, line 1: there is no context" },
        { "\n[1]\n", "q, line 2: it is no JSON object" },
        { "{'context': 3}", "line 1: the context is no string" },
        { "{'context': '\xff'}", "line 1: bytes that are not UTF-8" },
        { "{'context': '\\ud800'}", "line 1: no such escape" },
        { "{'context': '\\u0000'}", "line 1: no such escape" },
        { "{'context': 'a\tb'}", "line 1: a control character in a text" },
        { "{'answer': tru}", "line 1: no value" },
        { "{'context': 'a', 'context': 'b'}", "line 1: the context is there twice" },
        { "{'choices': [], 'choices': ['a', 'c']}", "line 1: choices are there twice" },
        { "{'answer': 0, 'answer': 0}", "line 1: the answer is there twice" },
        { "{'context': 'a', 'choices': 'b'}", "line 1: choices are no array" },
        { "{'context': 'a', 'choices': ['b', 2]}", "line 1: a choice is no string" },
        { "{'context': 'a', 'choices': ['b', '']}", "line 1: a choice is empty" },
        { "{'context': 'a', 'choices': ['b'], 'answer': 0}", "there are no two choices" },
        { "{'context': 'a', 'choices': ['b', 'c']}", "the answer is not the number" },
        { "{'context': 'a', 'choices': ['b', 'c'], 'answer': 2}", "the answer is not" },
        { "{'context': 'a', 'choices': ['b', 'c'], 'answer': -1}", "the answer is not" },
        { "{'context': 'a', 'choices': ['b', 'c'], 'answer': 'b'}", "the answer is not" },
        { "{'context': 'a', 'choices': ['b', 'c'], 'answer': 0} 1", "q, line 1: " },
        { "{'context': 'a', 'choices': ['b', 'c", "q, line 1: " },
        { "{'context': '0123456789012345678901234567890123456789012345678901234567890123', "
          "'choices': ['b', 'cd'], 'answer': 0}",
          "q has sequences of 65 tokens, the model 64 positions" },
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s", lines[i].text);
        for (char *at = text; *at; at++)
            if (*at == '\'') *at = '"';
        put("q", text);
        refused("eval model --choices q", strstr(lines[i].sentence, "65") ? HR_USAGE : HR_CORRUPT,
                lines[i].sentence);
    }
    refused("eval model --choices missing", HR_USAGE, "missing");
    refused("eval model --tokens long --logits-out no/o", HR_USAGE, "no");
    assert_int_not_equal(access("o", F_OK), 0);
    /* Numbers that are none, of logits and of weights. */
    const char *weights = "model/model.safetensors", *norm = "transformer.ln_f.weight";
    oracle_spoil(weights, norm, 3e38f, 16);
    refused("eval model --file text.txt", HR_DIVERGED, "are not finite");
    oracle_spoil(weights, norm, NAN, 1);
    refused("eval model --file text.txt", HR_CORRUPT,
            "model: tensor transformer.ln_f.weight has elements that are not finite");
    /* A file that was there stays as it is when a run is refused. */
    put("o", "kept");
    refused("eval model --tokens large --logits-out o", HR_CORRUPT, "256");
    get("o", out);
    assert_string_equal(out, "kept");
}

/* A model in shards, and its links; every name under which it or its tokenizer is read. What is
 * refused leaves each file as it was. */
static void nothing_of_the_model_is_written_over(void **state)
{
    (void)state;
    static const char *const outputs[][2] = {
        { "shards/model-00001-of-00002.safetensors", "which is read" },
        { "shards/../shards/model-00002-of-00002.safetensors", "which is read" },
        { "shards/model.safetensors.index.json", "which is read" },
        { "shards/tokenizer.json", "which is read" },
        { "shards/notes", "which the model may have" },
        { "shards/model.safetensors", "would be taken for a part of the model in shards" },
        { "shards/config.json", "which is read" },
        { "./shards/vocab.json", "would be taken for a part" },
        { "shards/merges.txt", "would be taken for a part" },
        { "beside", "which is read" },
        { "other/tokenizer.json", "is the file other/tokenizer.json, which is read" },
        { "pair/merges.txt", "is the file pair/merges.txt, which is read" },
    };
    put_model("llama", 0, "model.d_model=64 model.d_ff=256");
    put_tokens("ids", 1, 8, 256, true);
    assert_int_equal(run("convert model shards --shard-bytes 200kB"), HR_OK);
    assert_int_equal(access("shards/model-00002-of-00002.safetensors", R_OK), 0);
    assert_int_equal(
        system("mkdir other pair && echo >shards/notes && echo {} >other/tokenizer.json "
               "&& cp other/tokenizer.json shards && echo >pair/merges.txt && "
               "echo >pair/vocab.json && ln shards/config.json beside && "
               "cat shards/* other/* pair/* >before"),
        0);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        for (int32_t k = 0; k < 2; k++) {
            const char *tokenizer = outputs[i][0][0] == 'o'   ? "--tokenizer other"
                                    : outputs[i][0][0] == 'p' ? "--tokenizer pair/vocab.json"
                                                              : "";
            char arguments[256];
            snprintf(arguments, sizeof arguments, "eval shards --tokens ids %s %s %s", tokenizer,
                     k ? "--per-token" : "--logits-out", outputs[i][0]);
            refused(arguments, HR_USAGE, outputs[i][1]);
        }
    assert_int_equal(system("cat shards/* other/* pair/* | cmp - before"), 0);
    json_decref(evaluated("shards --tokens ids --logits-out logits"));
    for (int32_t k = 0; k < 2; k++) { /* what no model is made of may lie in its folder */
        json_decref(evaluated("shards --tokens ids --per-token shards/losses.jsonl"));
        json_decref(evaluated("shards --tokens ids --logits-out shards/logits.safetensors"));
    }
}

/* Rounded when it is read or when it is loaded, a row of the table is the same. */
static void weights_in_bf16_are_as_small_as_those_of_an_answer(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put_tokens("ids", 3, 16, 256, true);
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        hr_config config;
        hr_config_default(&config);
        config.model.family = family;
        const char *name = hr_family_of(&config)->name;
        if (run("train tiny.yaml data.train=text.txt train.out=%s model.family=%s "
                "train.sample_tokens=0",
                name, name) != HR_OK)
            fail_msg("%s: %s", name, err);
        json_t *asked = evaluated("%s --tokens ids --format bf16", name);
        assert_int_equal(run("generate %s --prompt-ids 1 --print-ids --max-tokens 2 --format bf16 "
                             "--json",
                             name),
                         HR_OK);
        json_t *answered = out_json();
        assert_int_equal(number(asked, "weight_bytes"), number(answered, "weight_bytes"));
        json_decref(asked);
        json_decref(answered);
    }
}

/* Nothing is asked for after the seal. */
static void the_seal_holds(void **state)
{
    (void)state;
    static const char *const what[] = { "--tokens ids --logits-out o --format bf16",
                                        "--tokens ids --per-token p", "--file text.txt",
                                        "--choices q" };
    const char *trap = getenv("HR_TRAP");
    if (!trap) {
        print_message("skip: there is no trap in this build\n");
        skip();
    }
    put_model("gpt2", 64, "");
    put_tokens("ids", 3, 40, 256, false);
    put("q", "{\"context\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": 0}");
    setenv("LD_PRELOAD", trap, 1);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        if (run("eval model %s", what[i]) != HR_OK) fail_msg("%s: %s", what[i], err);
    unsetenv("LD_PRELOAD");
}

static void an_interrupt_leaves_no_file(void **state)
{
    (void)state;
    put_model("llama", 0, "model.d_model=256 model.d_ff=1024");
    put_tokens("ids", 512, 1024, 256, false);
    assert_int_equal(system("timeout --preserve-status -s INT 0.5 \"$HEADROOM\" eval model "
                            "--tokens ids --logits-out o --threads 1 >out.txt 2>err.txt; "
                            "test $? = 130 && test ! -e o && test ! -s out.txt"),
                     0);
    get("err.txt", err);
    assert_said("interrupted; no file was written");
}

/* A pass through many layers, long beside any of them: an interrupt does not wait for its end. */
static void an_interrupt_ends_a_pass_within_a_layer(void **state)
{
    (void)state;
    put_model("llama", 0, "model.d_model=64 model.d_ff=256 model.n_layers=64");
    put_tokens("ids", 1, 2048, 256, false);
    assert_int_equal(system("timeout --preserve-status -s INT -k 20 2 \"$HEADROOM\" eval model "
                            "--tokens ids --threads 1 --kernels ref >out.txt 2>err.txt; "
                            "test $? = 130"),
                     0);
    get("err.txt", err);
    assert_said("interrupted; no file was written");
}

static void text_needs_a_tokenizer(void **state)
{
    (void)state;
    require_oracles();
    put("bytes.txt", "abc");
    refused("eval " HR_SHARED "/oracles/hf/gpt2 --file bytes.txt", HR_USAGE,
            "has no tokenizer for its 101 tokens");
    refused("eval " HR_SHARED "/oracles/hf/gpt2 --file bytes.txt --tokenizer words", HR_USAGE,
            "words");
    assert_int_equal(run("eval " HR_SHARED "/oracles/hf/gpt2 --file bytes.txt --tokenizer bytes"),
                     HR_OK);
    put("far.txt", "abz");
    refused("eval " HR_SHARED "/oracles/hf/gpt2 --file far.txt --tokenizer bytes", HR_USAGE,
            "far.txt: byte 2 is 122; the model has ids 0 to 100");
}

int main(void)
{
    const struct CMUnitTest tests[] = { IN_A_FOLDER(logits_are_those_of_others),
                                        IN_A_FOLDER(losses_are_those_of_others),
                                        IN_A_FOLDER(cuts_change_no_bit),
                                        IN_A_FOLDER(windows_hold_every_byte_once),
                                        IN_A_FOLDER(every_family_says_what_its_run_said),
                                        IN_A_FOLDER(answers_are_the_likeliest),
                                        IN_A_FOLDER(the_seal_holds),
                                        IN_A_FOLDER(an_interrupt_leaves_no_file),
                                        IN_A_FOLDER(an_interrupt_ends_a_pass_within_a_layer),
                                        IN_A_FOLDER(windows_are_those_that_the_model_is_known_for),
                                        IN_A_FOLDER(what_cannot_be_is_refused),
                                        IN_A_FOLDER(nothing_of_the_model_is_written_over),
                                        IN_A_FOLDER(
                                            weights_in_bf16_are_as_small_as_those_of_an_answer),
                                        IN_A_FOLDER(text_needs_a_tokenizer) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
