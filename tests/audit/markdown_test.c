/* SPDX-License-Identifier: Apache-2.0 */
/* markdown_test.c - claims in a text: which are found, what they are compared with, and what is
 * only listed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/findings.h"

static hr_audit_report report;

static void read_text(const char *text)
{
    memset(&report, 0, sizeof report);
    hr_audit_markdown(text, (int64_t)strlen(text), &report);
}

/* The text has this one claim. */
static void has_claim(const char *text, const char *stated, hr_audit_verdict verdict, double right)
{
    read_text(text);
    if (report.claim_count != 1) fail_msg("%s: %d claims", text, report.claim_count);
    const hr_audit_claim *claim = report.claims;
    if (strcmp(claim->stated, stated) || claim->verdict != verdict || claim->right_value != right)
        fail_msg("%s: %s %d %.0f", text, claim->stated, claim->verdict, claim->right_value);
}

static void has_none(const char *text, int32_t listed)
{
    read_text(text);
    if (report.claim_count || report.unread_count != listed)
        fail_msg("%s: %d claims, %d listed", text, report.claim_count, report.unread_count);
}

static void products_are_claims(void **state)
{
    (void)state;
    has_claim("- Size: 32000 vocab \xc3\x97 2048 dim \xc3\x97 4 bytes = **256 MB**", "256 MB",
              HR_VERDICT_UNIT, 262144000);
    has_claim("8192 x 32000 x 4 bytes = 1.05 GB", "1.05 GB", HR_VERDICT_TRUE, 1048576000);
    has_claim("`1024 * 1024 * 2 bytes` = 3 MB", "3 MB", HR_VERDICT_WRONG, 2097152);
    has_claim("Layers: 6 \xc3\x97 11M = 60M params", "60M", HR_VERDICT_WRONG, 66e6);
    has_claim("Layers: 6 \xc3\x97 ~11M = 64M params", "64M", HR_VERDICT_TRUE, 66e6);
    has_claim("about 76M params \xe2\x86\x92 304MB (fp32)", "304MB", HR_VERDICT_TRUE, 304e6);
    has_claim("76M params in bf16 \xe2\x86\x92 304MB", "304MB", HR_VERDICT_WRONG, 152e6);
    read_text("32768 (Broca) \xc3\x97 32000 (vocab) \xc3\x97 4 bytes = 4,194 MB (5.1 GB!)");
    assert_int_equal(report.claim_count, 2);
    assert_int_equal(report.verdicts[HR_VERDICT_TRUE], 1);
    assert_int_equal(report.verdicts[HR_VERDICT_WRONG], 1);
}

static void what_is_no_formula_is_not_judged(void **state)
{
    (void)state;
    has_none("a speedup of 2-3\xc3\x97 for matmul", 0);
    has_none("16\xc3\x97"
             "16 tiles = fast",
             0);
    has_none("batch 2^10 \xc3\x97 4 = 9", 0);
    has_none("needs 40 GB of memory", 1);
    has_none("saves 3 \xc3\x97 5 = 60 % of it", 0);
    has_none("76M params \xe2\x86\x92 1.7 GB", 1); /* with the optimizer? nobody says */
    has_none("x = 4\ny = 5 * z", 0);
    has_none("4 bytes \xc3\x97 4 bytes = 16 bytes", 0);
    has_none("500-800 MB", 1);
    has_none("1 \xc3\x97 2 = 3 \xc3\x97 4", 0);
}

/* A number that was checked, and one beside it that was not. */
static void a_size_beside_a_claim_is_listed(void **state)
{
    static const char *const lines[] = {
        "76M params \xe2\x86\x92 304MB (fp32), and activations of 77 GB",
        "2 \xc3\x97 3 = 6, and it takes 77 GB of memory",
        "| Params (M) | Weights fp32 (MB) | KV cache (GB) |\n| - | - | - |\n| 100 | 400 | 12345 |",
        "| seq_len | batch size | tokens per batch | Memory (GB) |\n| - | - | - | - |\n"
        "| 2048 | 4 | 8192 | 9.99 |",
    };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        read_text(lines[i]);
        if (report.claim_count != 1 || report.unread_count != 1)
            fail_msg("%s: %d claims, %d listed", lines[i], report.claim_count, report.unread_count);
    }
    read_text("80 GB \xc3\x97 8 = 640 GB\n4 x 1024 x 1 MB = 4,096 MB (4.1 GB)");
    assert_int_equal(report.claim_count, 3);
    assert_int_equal(report.unread_count, 0);
}

/* Forms that look like a product with a result, and are none or more than one. */
static void what_only_looks_like_a_product_is_left(void **state)
{
    (void)state;
    has_none("2\xc3\x97"
             "10\xe2\x81\xb9 \xc3\x97 4 bytes = 8 GB",
             1);
    has_none("32 \xc3\x97 4096\xc2\xb2 \xc3\x97 4 bytes = 2 GB", 1);
    has_none("2 x 10^9 x 4 bytes = 8 GB", 1);
    has_none("3 + 4 x 2 bytes = 11 bytes", 0);
    has_none("4 x 2 bytes + 3 = 11 bytes", 0);
    has_none("70B \xc3\x97 1.1/8 bytes \xe2\x89\x88 ~9.6GB", 1);
    has_none("N \xc3\x97 4096 \xc3\x97 2 bytes = 8 GB", 1);
    has_none("8M vectors \xc3\x97 1024-dim \xc3\x97 4 bytes = 32 GB raw", 1);
    has_none("405B parameters and T = 1,048,576", 1);
    has_none("llama 12 x 768 at T=1024 is fast", 0);
    has_none("the layer is 12 x 64 with V = 50257", 0);
    has_claim("12 x 768 = 9216 and T=1024", "9216", HR_VERDICT_TRUE, 9216);
    has_none("128 + 72 = 200 bytes", 0);
    has_claim("314B params \xc3\x97 2 bytes/param = 628 GB", "628 GB", HR_VERDICT_TRUE, 628e9);
    has_claim("4,096 * 24 KB ~= 98 MB", "~ 98 MB", HR_VERDICT_TRUE, 98304000);
    has_claim("- 8 * 16 * 2048 * 151936 * 2 bytes = ~75 GB", "~75 GB", HR_VERDICT_UNIT,
              8.0 * 16 * 2048 * 151936 * 2);
    has_claim("8 * 128 * 2 = 2048 bytes", "2048 bytes", HR_VERDICT_TRUE, 2048);
}

static void totals_sum_the_lines_above(void **state)
{
    (void)state;
    has_none("- a: 128 MB (25%)\n- b: 1.5 GB\n- **Total**: ~1.6 GB (leaves 2 GB)\n", 3);
    has_claim("a: 1 GB\nb: 2 GB\n---\nTotal: 5 GB\n", "5 GB", HR_VERDICT_WRONG, 3e9);
    has_claim("a: 3 GB\nb: 4 GB\n---\nTotal: 8 GB\n", "8 GB", HR_VERDICT_WRONG, 7e9);
    has_none("a: ~3 GB\nb: ~4 GB\n---\nTotal: 8 GB\n", 3);
    has_none("Model (FP8): 100 MB\nModel (BF16): 200 MB\nAdam: 800 MB\nTotal (BF16): 1.0 GB\n", 4);
    read_text("a: 500 x 1000 x 4 bytes = 2 MB\nb: 250 x 1000 x 4 bytes = 1 MB\nTotal: 3 MB\n");
    assert_int_equal(report.verdicts[HR_VERDICT_TRUE], 3);
    /* The first is 39.83 GB. */
    read_text("a: 131072 x 151936 x 2 bytes = 37.09 GB\nb: 1000 x 1000 x 74000 bytes = 74 GB\n"
              "Total: 111 GB\n");
    assert_int_equal(report.verdicts[HR_VERDICT_TRUE], 1);
    assert_true(report.claims[2].right_value == 39829110784 + 74e9);
    has_none("a: 1 GB\nb: 2 GB\nTotal: 5 GB\n", 3);
    has_none("a: 4 GB\n  - b: 2 GB\n  - c: 2 GB\n---\nTotal: 4 GB\n", 4);
    has_none("a: 1 GB\n\nb: 2 GB\n\nTotal: 4 GB\n", 3);
    has_none("a: 1 GB\nb: as before\nTotal: 4 GB\n", 2);
    has_none("Model (FP8): 100 MB\nModel (BF16): 200 MB\nAdam: 800 MB\nTotal (BF16): 3 GB\n", 4);
}

static void columns_follow_from_each_other(void **state)
{
    (void)state;
    has_claim("| Seq Length | Batch Size | Tokens/Batch |\n|---|---|---|\n| 8 | 8,192 | 65,000 |\n",
              "65,000", HR_VERDICT_WRONG, 65536);
    has_claim("| Seq Len | Tokens/sec | Hours to 1B tokens |\n|-|-|-|\n| 8 | ~50,000 | 5.6 |\n",
              "5.6", HR_VERDICT_TRUE, 1e9 / 50000 / 3600);
    has_claim("| Seq Len | Tokens/sec | Samples/sec |\n|-|-|-|\n| 64 | ~42,000 | ~650 |\n", "~650",
              HR_VERDICT_TRUE, 656.25);
    has_claim("vocab size of 151,936 in bfloat16\n\n| Sequence Length | Logits Size |\n|--|--|\n"
              "| 4,096 | 1.16 GB |\n",
              "1.16 GB", HR_VERDICT_UNIT, 4096.0 * 151936 * 2);
    has_claim("| Parameters | 8.72 GB | 3.92B params in bfloat16 |\n|-|-|-|\n"
              "| Parameters | 8.72 GB | 3.92B params in bfloat16 |\n",
              "8.72 GB", HR_VERDICT_WRONG, 7.84e9);
    has_none("| Optimizer | 8.72 GB | 3.92B params in bfloat16 |\n|-|-|-|\n"
             "| Optimizer | 8.72 GB | 3.92B params in bfloat16 |\n",
             2);
    /* Two sizes of the vocabulary: it is not known which one holds. */
    has_none("vocab size 100 000\nvocab size 32,000\nvocab size 50,257\nfp32\n"
             "| Sequence | Logits |\n|--|--|\n| 4,096 | 1.16 GB |\n",
             1);
}

#define COLUMNS(a, b, x, y) "| Model | " a " | " b " |\n|---|---|---|\n| m | " x " | " y " |\n"

static void the_header_names_the_unit_of_its_column(void **state)
{
    (void)state;
    has_claim(COLUMNS("Params (M)", "fp32 weights (MB)", "70", "280"), "280 MB", HR_VERDICT_TRUE,
              280e6);
    has_claim(COLUMNS("Params (M)", "fp32 weights (MB)", "197", "~900"), "~900 MB",
              HR_VERDICT_WRONG, 788e6);
    has_claim(COLUMNS("#Params [B]", "Weights (GB, bf16)", "70.6", "131.5"), "131.5 GB",
              HR_VERDICT_UNIT, 141.2e9);
    has_claim(COLUMNS("Parameters (millions)", "Model size, in gb", "500", "1"), "1 GB",
              HR_VERDICT_TRUE, 1e9);
    has_claim(COLUMNS("Parameters", "Model size (GiB)", "7.0B", "13.0"), "13.0 GiB",
              HR_VERDICT_TRUE, 14e9);
    /* The unit of a cell comes before that of its column. */
    has_claim(COLUMNS("Params (M)", "bf16 weights (GB)", "1.5B", "3000 MB"), "3000 MB",
              HR_VERDICT_TRUE, 3e9);
    has_claim("| Seq Length | Batch | Tokens per batch (K) |\n|-|-|-|\n| 128 | 1024 | 140 |\n",
              "140K", HR_VERDICT_WRONG, 131072);
    /* Without a formula, a row is listed: it is never dropped. */
    has_none("| Batch | Memory (GB) |\n|-|-|\n| 4 | 11.2 |\n| 8 | 20-22 |\n| 16 | OOM |\n", 2);
    has_none(COLUMNS("Params (B)", "Peak memory (GiB)", "7", "60"), 1);
    has_none(COLUMNS("Params (B)", "Training weights + states (GB)", "7", "112"), 1);
    has_none(COLUMNS("Params (B)", "Weights (GB)", "7", "5"), 1);
    has_none(COLUMNS("Params (B)", "bf16 weights (GB)", "7", "2 x 7"), 1);
    has_none(COLUMNS("Params (B)", "bf16 weights (GB)", "7", "14-15"), 1);
    has_none(COLUMNS("Trainable params (M)", "Weights (GB)", "7", "14"), 1);
    has_none(COLUMNS("Params", "Layers", "70", "6"), 0);
    /* Rates and symbols are no units. */
    has_none(COLUMNS("Bandwidth (GB/s)", "Speed (GB per second)", "900", "800"), 0);
    has_none(COLUMNS("Batch (B)", "Length (T)", "4", "2048"), 0);
    has_none(COLUMNS("Memory (GB or GiB)", "Traffic (Gb)", "4", "2"), 0);
}

/* The bytes of an element are one factor, or what the line says of its weights. */
static void the_bytes_of_an_element_count_once(void **state)
{
    (void)state;
    has_claim("`2 (bf16 bytes) * 8B (num of params) = 16GB`", "16GB", HR_VERDICT_TRUE, 16e9);
    has_claim("bf16: 7B \xc3\x97 2 = 14 GB", "14 GB", HR_VERDICT_TRUE, 14e9);
    has_claim("7B \xc3\x97 2 (fp16) = 14 GB", "14 GB", HR_VERDICT_TRUE, 14e9);
    has_claim("fp32 gradients: 1B \xc3\x97 4 = 4 GB", "4 GB", HR_VERDICT_TRUE, 4e9);
    has_claim("1024 x 1024 x 4 = 4 MB (fp32)", "4 MB", HR_VERDICT_TRUE, 4194304);
    has_claim("Adam in fp32: 7B \xc3\x97 8 = 56 GB", "56 GB", HR_VERDICT_TRUE, 56e9);
    has_claim("bf16: 3 \xc3\x97 7B = 42 GB", "42 GB", HR_VERDICT_TRUE, 42e9);
    has_claim("fp32 weights: 3 \xc3\x97 7B = 42 GB", "42 GB", HR_VERDICT_WRONG, 84e9);
    has_none("fp32 weights: 2 \xc3\x97 7B = 42 GB", 1);
    has_none("fp32: 3 \xc3\x97 7B = 42 GB", 1);
    has_none("7B params \xe2\x86\x92 112 GB with Adam in fp32", 1);
    has_none("| Model states | 112 GB | 7B params in fp32 |\n|-|-|-|\n"
             "| Model states | 112 GB | 7B params in fp32 |\n",
             2);
}

static void numbers_that_are_not_understood_are_not_judged(void **state)
{
    (void)state;
    has_none("2**14*2**14*4 = 1073741824", 0);
    has_none("2 ** 14 * 4 = 1", 0);
    has_none("(3)**2 * 4 = 36", 0);
    has_none("8 \xc3\x97 2 = 2**4", 0);
    has_none("8 \xc3\x97 2 = 10 + 6", 0);
    has_none("16\xc3\x97"
             "175 = 2.8 terabytes",
             1);
    has_none("312 TFLOPS \xc3\x97 8 = 2.5 PFLOPS", 0);
    has_none("789 \xc3\x97 8 bit = 6.3 Mb", 0);
    has_none("3 \xc3\x97 100 K = 300K", 0);
    has_none("3 \xc3\x97 100 = 0.3 TOPS", 0);
    has_none("10 \xe2\x88\x92 2 \xc3\x97 2 = 6", 0);
    has_none("10 \xc3\xb7 2 \xc3\x97 4 = 20", 0);
    has_none("2 \xc2\xb7 3 \xc3\x97 4 = 24", 0);
    has_none("1,5 GB \xc3\x97 2 = 3 GB", 1);
    has_none("8 \xc3\x97 512 = 4,1k", 0);
    has_none("1.000.000 \xc3\x97 4 bytes = 4 MB", 1);
    has_none("1'000 \xc3\x97 4 bytes = 4 MB", 1);
    has_none("1 000 \xc3\x97 4 bytes = 4 MB", 1);
    has_claim("1.024 \xc3\x97 4 bytes = 4 bytes", "4 bytes", HR_VERDICT_TRUE, 4.096);
    has_none("2 \xc3\x97 3 = 1e400 GB", 0);
    has_claim("7B \xc3\x97 2 = 14 gigabytes", "14 gigabytes", HR_VERDICT_TRUE, 14e9);
    has_claim("16 \xc3\x97 175 GB = 2.8 Terabytes", "2.8 Terabytes", HR_VERDICT_TRUE, 2800e9);
    has_claim("8 GPUs \xc3\x97 80 GB = 600 GB", "600 GB", HR_VERDICT_WRONG, 640e9);
    has_claim("1,024 \xc3\x97 2 = 2,049", "2,049", HR_VERDICT_WRONG, 2048);
}

static void only_sums_are_totals(void **state)
{
    (void)state;
    static const char *const none[] = { "Total saved: 9 GB", "Total free: 9 GB",
                                        "Total VRAM of the card: 9 GB", "Total budget: 9 GB",
                                        "Total memory of the card: 9 GB" };
    static const char *const several[] = { "Optimizer: 2 x 28 GB",
                                           "Layers x 32: 0.5 GB",
                                           "Layers (per layer): 0.5 GB",
                                           "of which b: 0.5 GB",
                                           "b: 0.5 GB/layer",
                                           "b: 0.5 GB each",
                                           "b: 1,5 GB" };
    char text[200];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        snprintf(text, sizeof text, "a: 1 GB\nb: 2 GB\n---\n%s\n", none[i]);
        has_none(text, 3);
    }
    for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
        snprintf(text, sizeof text, "a: 1 GB\n%s\nc: 1 GB\n---\nTotal: 57 GB\n", several[i]);
        has_none(text, 4);
    }
    has_claim("a: 1 GB\nb: 2 GB\n---\nTotal estimated memory: 5 GB\n", "5 GB", HR_VERDICT_WRONG,
              3e9);
    read_text("a: 1 GB\nb: 2 x 1 GB = 2 GB\n---\nTotal: 3 GB\n");
    assert_int_equal(report.verdicts[HR_VERDICT_TRUE], 1);
}

static void columns_may_have_more_factors(void **state)
{
    (void)state;
    has_claim("| Seq | Batch | Tokens/batch |\n|-|-|-|\n| 4k | 8 | 32,768 |\n", "32,768",
              HR_VERDICT_TRUE, 32000);
    has_claim("| Seq | Batch | Tokens/batch | GPU |\n|-|-|-|-|\n| 8 | 8 | 65 | A100 |\n", "65",
              HR_VERDICT_WRONG, 64);
    has_none("| Seq | Batch | GPU | Tokens/batch |\n|-|-|-|-|\n| 4096 | 8 | 4 | 131,072 |\n", 0);
    has_none("| Seq | Batch | accum | Tokens/batch |\n|-|-|-|-|\n| 64 | 8 | 4 | 2048 |\n", 0);
    has_claim("| Seq | Tokens/s | hours to 1B tokens |\n|-|-|-|\n| 8 | 10,000 | 27.8 h |\n",
              "27.8 h", HR_VERDICT_TRUE, 1e9 / 10000);
    has_none("| Seq | Tokens/s | hours to 1B tokens |\n|-|-|-|\n| 8 | 10,000 | 1.2 days |\n", 0);
}

static void every_line_keeps_its_number(void **state)
{
    (void)state;
    read_text("\r\n\r\n2 \xc3\x97 3 bytes = 7 bytes\r\nfree: 3 GB\r\n");
    assert_int_equal(report.claims[0].line, 3);
    assert_int_equal(report.unread[0].line, 4);
    assert_string_equal(report.unread[0].text, "free: 3 GB");
}

static void limits_only_count(void **state)
{
    (void)state;
    static char text[600 * 24 + 1];
    text[0] = 0;
    for (int i = 0; i < 600; i++) memcpy(text + i * 24, "2 x 3 bytes = 6 bytes  \n", 25);
    read_text(text);
    assert_int_equal(report.claim_count, HR_AUDIT_CLAIMS_MOST);
    assert_int_equal(report.claims_left_out, 600 - HR_AUDIT_CLAIMS_MOST);
    assert_int_equal(report.verdicts[HR_VERDICT_TRUE], 600);
    static char wide[5000];
    memset(wide, 'a', sizeof wide - 1);
    has_none(wide, 1);
    assert_string_equal(report.unread[0].why, "the line is too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_claims),
        cmocka_unit_test(what_is_no_formula_is_not_judged),
        cmocka_unit_test(a_size_beside_a_claim_is_listed),
        cmocka_unit_test(what_only_looks_like_a_product_is_left),
        cmocka_unit_test(totals_sum_the_lines_above),
        cmocka_unit_test(the_header_names_the_unit_of_its_column),
        cmocka_unit_test(columns_follow_from_each_other),
        cmocka_unit_test(the_bytes_of_an_element_count_once),
        cmocka_unit_test(numbers_that_are_not_understood_are_not_judged),
        cmocka_unit_test(only_sums_are_totals),
        cmocka_unit_test(columns_may_have_more_factors),
        cmocka_unit_test(every_line_keeps_its_number),
        cmocka_unit_test(limits_only_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
