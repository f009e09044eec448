/* SPDX-License-Identifier: Apache-2.0 */
/* expression_test.c - formulas of claims, numbers as people write them, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/expression.h"
#include "audit/models.h"
#include "config/config.h"

static void is_worth(const char *text, int64_t whole, hr_audit_dimension dimension)
{
    hr_quantity value;
    hr_error err;
    if (hr_expression_evaluate(text, "", &value, &err) != HR_OK)
        fail_msg("%s: %s", text, err.message);
    assert_true(value.is_whole);
    assert_int_equal(value.whole, whole);
    assert_int_equal(value.dimension, dimension);
}

static void is_refused(const char *text, const char *said)
{
    hr_quantity value = { .whole = 7 };
    hr_error err = { HR_OK, "" };
    const hr_status status = hr_expression_evaluate(text, "", &value, &err);
    if (status != HR_USAGE || !strstr(err.message, said))
        fail_msg("%s: expected \"%s\", got %d \"%s\"", text, said, status, err.message);
    assert_int_equal(value.whole, 7);
}

static void arithmetic_keeps_dimensions_and_precedence(void **state)
{
    (void)state;
    is_worth("2 + 3 * 4", 14, HR_AUDIT_PLAIN);
    is_worth("(2 + 3) * 4", 20, HR_AUDIT_PLAIN);
    is_worth("8 - 2 - 1", 5, HR_AUDIT_PLAIN);
    is_worth("-(2 - 5)", 3, HR_AUDIT_PLAIN);
    is_worth("8192+1", 8193, HR_AUDIT_PLAIN);
    is_worth("16 / 4 / 2", 2, HR_AUDIT_PLAIN);
    is_worth("10K * 512 * 4 bytes", 20480000, HR_AUDIT_BYTES);
    is_worth("1 GiB + 1 MB", 1073741824 + 1000000, HR_AUDIT_BYTES);
    is_worth("4 GB / 2 GB", 2, HR_AUDIT_PLAIN);
    is_worth("32768 \xc3\x97 32000 x 4 bytes", INT64_C(4194304000), HR_AUDIT_BYTES);
    is_worth("1073741824 * 1073741824 * 7", INT64_C(8070450532247928832), HR_AUDIT_PLAIN);
}

static void functions_are_products_of_shapes(void **state)
{
    (void)state;
    is_worth("logits(T=131072, V=151936, dtype=bf16)", INT64_C(39829110784), HR_AUDIT_BYTES);
    is_worth("logits(131072, 151936, bf16)", INT64_C(39829110784), HR_AUDIT_BYTES);
    is_worth("logits(V=10, T=3, B=2)", 240, HR_AUDIT_BYTES);
    is_worth("12 * tensor(32, 8, 128, 128, 64, fp32)", INT64_C(12884901888), HR_AUDIT_BYTES);
    is_worth("tensor(32,128,128)", 32 * 128 * 128 * 4, HR_AUDIT_BYTES);
    is_worth("matrix(3, 5, dtype=fp16)", 30, HR_AUDIT_BYTES);
    is_worth("scores(T=128, H=8, B=32, dtype=bf16)", 32 * 8 * 128 * 128 * 2, HR_AUDIT_BYTES);
    is_worth("hidden(T=7, d=11)", 7 * 11 * 4, HR_AUDIT_BYTES);
    is_worth("kv_cache(T=4096, L=32, G=8, K=128)", INT64_C(536870912), HR_AUDIT_BYTES);
    is_worth("adam(10M)", 80000000, HR_AUDIT_BYTES);
    is_worth("weights(7, dtype=nf4) * 2", 7, HR_AUDIT_BYTES);
    is_worth("lora(rank=16, inputs=4096, outputs=14336)", 294912, HR_AUDIT_PLAIN);
    is_worth("params(family=llama, d_model=64, n_layers=2, n_heads=4, d_ff=128, vocab_size=100)",
             2 * 100 * 64 + 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64), HR_AUDIT_PLAIN);
}

static void what_has_no_meaning_is_named(void **state)
{
    (void)state;
    is_refused("", "a number is missing");
    is_refused("2 +", "a number is missing");
    is_refused("2 3", "an operator is missing at column 3");
    is_refused("(2", "a parenthesis is not closed");
    is_refused("2)", "a parenthesis that nothing opens");
    is_refused("(2, 3)", "a comma outside of a function");
    is_refused("2, 3", "a comma outside of a function");
    is_refused("1 / 0", "a division by zero");
    is_refused("1 GB + 1", "bytes + a plain number has no meaning");
    is_refused("1 GB * 1 GB", "bytes * bytes has no meaning");
    is_refused("10 Gb", "Gb");
    is_refused("7Q", "a number with an unknown unit");
    is_refused("vocab * 4", "vocab is not known");
    is_refused("logit(T=1, V=1)", "logit is not a function; the nearest is logits");
    is_refused("logits(T=1)", "V is missing");
    is_refused("logits(T=1, V=2, X=3)", "logits has no argument X");
    is_refused("logits(T=1, V=2, T=3)", "there are more");
    is_refused("logits(T=1, V=2, dtype=bf61)", "bf61 is no dtype; the nearest is bf16");
    is_refused("logits(T=1, V=2, dtype=4)", "dtype takes a name");
    is_refused("logits(T=1 GB, V=2)", "T is a count");
    is_refused("tensor(fp32)", "tensor: its sizes are missing, such as tensor(512, 64)");
    is_refused("tensor()", "tensor: its sizes are missing");
    is_refused("tensor( ) * 2", "tensor: its sizes are missing");
    is_refused("tensor(512, , 4)", "argument 2 of tensor is missing at column 13");
    is_refused("tensor(512,)", "argument 2 of tensor is missing");
    is_refused("logits(,3)", "argument 1 of logits is missing");
    is_refused("logits(T=, V=3)", "the value of T is missing");
    is_refused("logits()", "T is missing");
    is_refused("lora(3)", "inputs is missing");
    is_refused("params()", "params: its model is missing, such as params(70M)");
    is_refused("adam(dtype=bf16)", "adam: its model is missing");
    is_refused("()", "a number is missing");
    is_refused("tensor(-)", "a number is missing");
    is_refused("tensor(4, -1)", "a size is a count");
    is_refused("tensor(9e18, 9e18)", "a result above 9e18");
    is_refused("77777777777777777777", "a number above 9e18");
    is_refused("params(\"no/such/Modell-9B\")", "is not a known model; the nearest is");
    is_refused("params(family=llama, d_modle=64)", "d_modle");
    is_refused("1,024 * 4", "a comma outside of a function");
    is_refused("0e999 * 4", "a number above 9e18");
    is_refused("params(7B, vocab_size=50000)", "vocab_size belongs to a model");
    is_refused("lora(8, foo, bar)", "inputs of lora takes a number, not foo");
    is_refused("lora(8, 16, -3)", "outputs is a count");
    is_refused("matrix(\"a, 2)", "a word without an end");
    char deep[200] = "";
    for (int i = 0; i < 40; i++) strcat(deep, "(");
    is_refused(deep, "more than 32 open parentheses");
}

static void claim_is(const char *text, double right, hr_audit_dimension dimension,
                     hr_audit_verdict verdict, const char *said)
{
    hr_stated stated;
    hr_error err;
    hr_audit_claim claim = { 0 };
    if (hr_stated_parse(text, &stated, &err) != HR_OK) fail_msg("%s: %s", text, err.message);
    hr_claim_judge(&stated, hr_quantity_of_real(right, dimension), &claim);
    if (claim.verdict != verdict || !strstr(claim.sentence, said))
        fail_msg("%s: %d \"%s\"", text, claim.verdict, claim.sentence);
}

static void a_claim_is_judged_by_its_digits(void **state)
{
    (void)state;
    claim_is("37.09 GiB", 39829110784.0, HR_AUDIT_BYTES, HR_VERDICT_TRUE, "true: 39.83 GB");
    claim_is("37.09 GB", 39829110784.0, HR_AUDIT_BYTES, HR_VERDICT_UNIT, "right in GiB");
    claim_is("39.83 GiB", 39829110784.0, HR_AUDIT_BYTES, HR_VERDICT_UNIT, "right in GB");
    claim_is("256 MB", 262144000.0, HR_AUDIT_BYTES, HR_VERDICT_UNIT, "1000 x 1024 bytes");
    claim_is("4.1 GB", 4194304000.0, HR_AUDIT_BYTES, HR_VERDICT_TRUE, "cut off");
    claim_is("4.2 GB", 4194304000.0, HR_AUDIT_BYTES, HR_VERDICT_TRUE, "true: 4.194 GB");
    claim_is("4.3 GB", 4194304000.0, HR_AUDIT_BYTES, HR_VERDICT_WRONG, "2.5 % too high");
    claim_is("~1,400", 1406.25, HR_AUDIT_PLAIN, HR_VERDICT_TRUE, "true");
    claim_is("1,400", 1406.25, HR_AUDIT_PLAIN, HR_VERDICT_WRONG, "0.4 % too low");
    claim_is(">80GB", 81e9, HR_AUDIT_BYTES, HR_VERDICT_TRUE, "true");
    claim_is("<1 GB", 1e9, HR_AUDIT_BYTES, HR_VERDICT_WRONG, "neither less nor more");
    claim_is(">1 GB", 1e9, HR_AUDIT_BYTES, HR_VERDICT_WRONG, "neither less nor more");
    claim_is("1GB+", 1e9, HR_AUDIT_BYTES, HR_VERDICT_TRUE, "true");
    claim_is("<1 GB", 2e9, HR_AUDIT_BYTES, HR_VERDICT_WRONG, "2 times the claim");
    claim_is("40GB+", 5e9, HR_AUDIT_BYTES, HR_VERDICT_WRONG, "8 times the true value");
    claim_is("48%", 0.475, HR_AUDIT_PLAIN, HR_VERDICT_TRUE, "47.5 %");
    claim_is("5.1M params", 5120000, HR_AUDIT_PLAIN, HR_VERDICT_TRUE, "5,120,000");
    claim_is("5.6 hours", 20000, HR_AUDIT_SECONDS, HR_VERDICT_TRUE, "5.556 hours");
    claim_is("0 MB", 1e6, HR_AUDIT_BYTES, HR_VERDICT_WRONG, "it is 1.000 MB");
}

static void unknown_units_are_named_with_the_nearest(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "12 Gb", "Gb is no unit; the nearest is GB" },
        { "12 gb", "gb is no unit; the nearest is GB" },
        { "12 mb", "mb is no unit; the nearest is MB" },
        { "12 kb", "kb is no unit; the nearest is kB" },
        { "12gib", "gib is no unit; the nearest is GiB" },
        { "12 G", "G is no unit; the nearest is GB" },
        { "12 sec", "sec is no unit; the nearest is seconds" },
        { "12Mib", "Mib is no unit; the nearest is MiB" },
        { "3 furlongs", "furlongs is no unit; there are MB, GB, MiB, GiB" },
        { "GB", "is no number" },
        { "", "is no number" },
        { "1e400 GB", "above 9e18" },
        { "1e19", "above 9e18" },
        { "4 M", "M stands directly behind its number" },
        { "5 GB today", "today is no unit" },
        { "5 GB!", "\"!\" is not part" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_stated stated;
        hr_error err = { HR_OK, "" };
        if (hr_stated_parse(cases[i][0], &stated, &err) != HR_USAGE ||
            !strstr(err.message, cases[i][1]))
            fail_msg("%s: \"%s\"", cases[i][0], err.message);
    }
}

/* The numbers that the repositories of the models show. */
static void known_models_have_their_published_sizes(void **state)
{
    (void)state;
    const hr_known_model *known;
    for (int32_t i = 0; (known = hr_known_model_at(i)); i++) {
        const hr_known_model *found;
        hr_config config;
        hr_error err;
        hr_config_default(&config);
        if (hr_model_read(known->source, "", &config, &found, &err) != HR_OK ||
            hr_config_check_model(&config, &err) != HR_OK)
            fail_msg("%s: %s", known->source, err.message);
        if (found->parameters != known->parameters)
            fail_msg("%s is found as %s", known->source, found->name);
        if (hr_model_count(&config) != known->parameters)
            fail_msg("%s: %lld parameters", known->name, (long long)hr_model_count(&config));
    }
}

static void names_of_one_shape_find_one_model(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        { "NousResearch/Meta-Llama-3-8B-Instruct", "llama-3-8b" },
        { "unsloth/Llama-3.2-1B-Instruct-bnb-4bit", "llama-3.2-1b" },
        { "mlx-community/Mistral-7B-Instruct-v0.3-4bit", "mistral-7b-v0.3" },
        { "TinyLlama/TinyLlama_v1.1", "tinyllama-1.1b" },
        { "Qwen/Qwen2.5-Coder-7B-Instruct", "qwen2.5-7b" },
        { "EleutherAI/pythia-70m-deduped", "pythia-70m" },
        { "EleutherAI/pythia-12b", "pythia-12b" },
        { "HuggingFaceH4/zephyr-7b-beta", "zephyr-7b" },
        { "mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo" },
        { "mistralai/Mistral-Small-24B-Instruct-2501", "mistral-small-24b" },
        { "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1-distill-qwen-7b" },
        { "Qwen/Qwen3-4B-Thinking-2507", "qwen3-4b" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const hr_known_model *found = hr_known_model_find(names[i][0]);
        if (!found || strcmp(found->name, names[i][1]))
            fail_msg("%s: %s", names[i][0], found ? found->name : "unknown");
    }
    assert_null(hr_known_model_find("google/gemma-2-9b"));
    assert_null(hr_known_model_find("Qwen/Qwen2.5-7B-Omni"));
    assert_null(hr_known_model_find(""));
}

/* No shape of another architecture is offered as the nearest name of these. */
static void architectures_that_are_not_read_are_named(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "google/gemma-3-4b-it", "google/gemma-3-4b-it is of the Gemma architecture, which" },
        { "microsoft/Phi-4-mini-instruct", "is of the Phi architecture" },
        { "mistralai/Mixtral-8x7B-v0.1", "is a mixture of experts" },
        { "Qwen/Qwen3-30B-A3B", "is a mixture of experts" },
        { "Qwen/Qwen3.5-122B-A10B", "is a mixture of experts" },
        { "Qwen/Qwen1.5-MoE-A2.7B", "is a mixture of experts" },
        { "Qwen/Qwen2.5-VL-7B-Instruct", "is a model of images" },
        { "HuggingFaceTB/SmolLM3-3B", "is of the SmolLM3 architecture" },
        { "acme/Fancy-9B", "acme/Fancy-9B is not a known model; the nearest is" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_config config;
        hr_error err;
        hr_config_default(&config);
        assert_int_equal(hr_model_read(cases[i][0], "", &config, NULL, &err), HR_USAGE);
        if (!strstr(err.message, cases[i][1])) fail_msg("%s: %s", cases[i][0], err.message);
    }
    hr_config config;
    hr_config_default(&config);
    for (int32_t i = 0; hr_known_model_at(i); i++)
        assert_null(hr_unknown_architecture(hr_known_model_at(i)->source));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_keeps_dimensions_and_precedence),
        cmocka_unit_test(functions_are_products_of_shapes),
        cmocka_unit_test(what_has_no_meaning_is_named),
        cmocka_unit_test(a_claim_is_judged_by_its_digits),
        cmocka_unit_test(unknown_units_are_named_with_the_nearest),
        cmocka_unit_test(known_models_have_their_published_sizes),
        cmocka_unit_test(names_of_one_shape_find_one_model),
        cmocka_unit_test(architectures_that_are_not_read_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
