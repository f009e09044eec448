/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate_test.c - `headroom eval`: logits and losses compared with PyTorch, bit-identical for
 * every budget; windows of a text. */
#include <math.h>

#include "config/config.h"
#include "headroom/evaluate.h"
#include "headroom/status.h"
#include "mem/process.h"
#include "model/family.h"
#include "support/evaluating.h"

static const char *const families[] = { "gpt_neox",   "gpt2",    "llama_gqa",
                                        "qwen3_tied", "gpt_neo", "qwen2_mixed" };
enum { FAMILIES = sizeof families / sizeof *families };
#define LOGIT_TOLERANCE 2e-5
#define ORACLE HR_ORACLES "/hf/%s"

/* A line of --per-token; `at` moves to the next line. */
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

static void logits_equal_those_of_pytorch(void **state)
{
    (void)state;
    require_program();
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

/* The program computes in fp32 or bf16, the library in fp16, too. */
static void the_library_evaluates_in_fp16(void **state)
{
    char folder[600], tokens[640];
    hr_infer_request model = { .size = sizeof model, .folder = folder, .format = HR_FORMAT_FP16 };
    const hr_evaluate_request request = {
        .size = sizeof request, .model = &model, .tokens = tokens, .logits_out = "made"
    };
    oracle_file golden = { 0 }, made = { 0 };
    hr_evaluate_result result;
    hr_error error;
    int64_t bytes = 0, made_bytes = 0;
    (void)state;
    snprintf(folder, sizeof folder, ORACLE, "gpt_neox");
    snprintf(tokens, sizeof tokens, "%s/golden.safetensors", folder);
    open_golden(&golden, "gpt_neox");
    if (hr_evaluate(&request, &result, &error) != HR_OK) fail_msg("%s", error.message);
    assert_true(oracle_open(&made, "made"));
    const float *wanted = oracle_tensor(&golden, "", "logits", &bytes);
    const float *logits = oracle_tensor(&made, "", "logits", &made_bytes);
    assert_int_equal(bytes, made_bytes);
    for (int64_t i = 0; i < bytes / (int64_t)sizeof *logits; i++)
        assert_true(fabsf(logits[i] - wanted[i]) <= 0.01f);
    oracle_close(&made);
    oracle_close(&golden);
    model.format = HR_FORMAT_FP16 + 1;
    assert_int_equal(hr_evaluate(&request, &result, &error), HR_USAGE);
}

/* -log softmax(logits)[target], computed differently: from the sum of differences. */
static double cost(const float *logits, int64_t count, int64_t target)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += exp((double)logits[i] - (double)logits[target]);
    return log(sum);
}

static void losses_equal_those_of_pytorch(void **state)
{
    (void)state;
    require_program();
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

/* ---- a byte model and a text */

/* Every budget down to the minimum and every number of threads give the same bits. */
static void chunks_and_threads_change_no_bit(void **state)
{
    (void)state;
    put_model("llama", 0, "model.d_model=128 model.d_ff=1024");
    put_tokens("ids", 3, 2000, 256, true);
    put_tokens("narrow", 3, 2000, 256, false);
    for (int32_t bf16 = 0; bf16 < 2; bf16++) {
        const char *format = bf16 ? "bf16" : "fp32";
        json_t *facts = evaluated("model --tokens ids --logits-out whole --dtype %s --threads 1",
                                  format);
        const int64_t most = (int64_t)number(facts, "process_bytes_planned");
        assert_int_equal(number(facts, "at_a_time"), 2);
        assert_int_equal(number(facts, "chunk"), 1024);
        json_decref(facts);
        assert_int_equal(run("eval model --tokens narrow --logits-out part --dtype %s", format),
                         HR_OK);
        same_bytes("part", "whole");
        double one = 0, chunk = 0, tile = 0, loss = 0;
        int32_t fits = 0;
        for (int64_t budget = most;; budget -= 3 << 20) {
            if (run("eval model --tokens ids --logits-out part --dtype %s --threads 2 --budget "
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
            facts = evaluated("model --tokens ids --dtype %s --threads 2 --budget %lld", format,
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
    assert_non_null(strstr(err, "1,048,576 bytes"));
    assert_int_not_equal(access("none", F_OK), 0);
}

/* A window computed directly: its bytes as tokens, all logits, and the last `fresh` scored. */
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

static void windows_predict_every_byte_once(void **state)
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
    assert_non_null(strstr(out, "windows of 32 tokens, stride 8\n"));
    assert_int_equal(run("eval model --file text.txt"), HR_OK);
    assert_non_null(strstr(out, "windows of 64 tokens, no overlap\n"));
}

/* The loss of a text equals the loss that training printed at its end. */
static void the_loss_of_every_family_equals_that_of_its_run(void **state)
{
    (void)state;
    require_program();
    char text[PROGRAM_TEXT_BYTES];
    put_tiny_and_text();
    get("text.txt", text);
    text[8 * 64 + 1] = 0; /* eight batches, and the targets */
    put("valid.txt", text);
    for (int32_t k = 0; k < 2 * HR_FAMILIES; k++) {
        hr_config config;
        hr_config_default(&config);
        config.model.family = k / 2;
        const char *family = hr_family_of(&config)->name, *format = k % 2 ? "bf16" : "fp32";
        if (run("train tiny.yaml data.train=text.txt data.valid=valid.txt train.out=%s%s "
                "model.family=%s train.dtype=%s train.optimizer.lr=0.01 train.sample_tokens=0 "
                "--metrics metrics",
                family, format, family, format) != HR_OK)
            fail_msg("%s: %s", family, err);
        get("metrics", text);
        const char *said = strstr(text, "\"valid_loss\":");
        assert_non_null(said);
        const double valid = strtod(strchr(said, ':') + 1, NULL);
        json_t *facts = evaluated("%s%s --file valid.txt --context 16 --dtype %s", family, format,
                                  format);
        const double loss = number(facts, "loss");
        json_decref(facts);
        if (!(fabs(loss - valid) <= (k % 2 ? 1e-3 : 1e-6)))
            fail_msg("%s %s: %.9f, and the run said %.9f", family, format, loss, valid);
    }
}

/* ---- multiple choice */

/* Loss of the bytes of `answer` after `context`. */
static double cost_of_answer(const char *context, const char *answer)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s", context, answer);
    return cost_of_window((const uint8_t *)whole, 0, (int64_t)strlen(whole) - 1,
                          (int64_t)strlen(answer));
}

static void the_likeliest_choice_is_the_answer(void **state)
{
    (void)state;
    static const char *const questions[][4] = {
        { "train.batch ", "sequences", "a", "of the whole number" },
        { "x", "train.", "the learning rate", "zz" },
        { "\\u00e4 \\\\\\\"", "e", "\\u00fc", "0 to 1" },
        { "model.d_", "model", "q", "eeeeeeeeeeee" },
        { "whole numb", "er", "rr", "e" },
    };
    static const char *const plain[] = { "\xc3\xa4 \\\"", "\xc3\xbc" }; /* decoded text */
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
    assert_true(right != right_by_length); /* otherwise the figures show little */
}

/* ---- refusals */

/* A row of the table is the same whether it is rounded when it is read or when it is loaded. */
static void bf16_weights_take_the_same_bytes_as_in_generation(void **state)
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
        json_t *asked = evaluated("%s --tokens ids --dtype bf16", name);
        assert_int_equal(run("generate %s --prompt-ids 1 --print-ids --max-tokens 2 --dtype bf16 "
                             "--json",
                             name),
                         HR_OK);
        json_t *answered = out_json();
        assert_int_equal(number(asked, "weight_bytes"), number(answered, "weight_bytes"));
        json_decref(asked);
        json_decref(answered);
    }
}

/* Nothing allocates after the seal. */
static void nothing_allocates_after_the_seal(void **state)
{
    (void)state;
    static const char *const what[] = { "--tokens ids --logits-out o --dtype bf16",
                                        "--tokens ids --per-token p", "--file text.txt",
                                        "--choices q" };
    const char *trap = hr_test_require_trap();
    put_model("gpt2", 64, "");
    put_tokens("ids", 3, 40, 256, false);
    put("q", "{\"context\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": 0}");
    setenv("LD_PRELOAD", trap, 1);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        if (run("eval model %s", what[i]) != HR_OK) fail_msg("%s: %s", what[i], err);
    unsetenv("LD_PRELOAD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(logits_equal_those_of_pytorch),
        IN_A_FOLDER(the_library_evaluates_in_fp16),
        IN_A_FOLDER(losses_equal_those_of_pytorch),
        IN_A_FOLDER(chunks_and_threads_change_no_bit),
        IN_A_FOLDER(windows_predict_every_byte_once),
        IN_A_FOLDER(the_loss_of_every_family_equals_that_of_its_run),
        IN_A_FOLDER(the_likeliest_choice_is_the_answer),
        IN_A_FOLDER(nothing_allocates_after_the_seal),
        IN_A_FOLDER(bf16_weights_take_the_same_bytes_as_in_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
