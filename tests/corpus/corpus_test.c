/* SPDX-License-Identifier: Apache-2.0 */
/* corpus_test.c - documents from files of every kind, independent of buffer sizes; held-out shares,
 * masks, and errors with positions. */
#include "corpus_case.h"

#include "base/random.h"
#include "support/in_folder.h"

static char out[1 << 20];

static void put(const char *name, const char *content)
{
    hr_folder_write(hr_folder_path(&folder, name), content, (int64_t)strlen(content));
}

/* A description in which @ in the recipe's text stands for the folder. */
static hr_corpus_desc describe(const char *train)
{
    static char text[2048];
    int64_t used = 0;
    for (; *train; train++) {
        if (*train == '@') used += sprintf(text + used, "%s/", folder.path);
        else text[used++] = *train;
    }
    text[used] = 0;
    return hr_corpus_case_desc(text, "");
}

static void assert_rendered(const hr_corpus_desc *desc, const char *wanted)
{
    hr_error err = { HR_OK, "" };
    if (hr_corpus_case_render_train(desc, out, sizeof out, NULL, &err) != HR_OK)
        fail_msg("%s", err.message);
    assert_string_equal(out, wanted);
}

static void assert_refused(const hr_corpus_desc *desc, hr_status wanted, const char *sentence)
{
    hr_error err = { HR_OK, "" };
    const hr_status status = hr_corpus_case_render_train(desc, out, sizeof out, NULL, &err);
    hr_corpus_case_assert_refused(status, &err, wanted, sentence);
}

static void a_text_file_is_a_document_and_so_is_each_json_line(void **state)
{
    (void)state;
    put("a.txt", "one\ntwo\n");
    put("b.txt", "");
    put("c.jsonl", "{\"text\":\"three\"}\n\n{\"id\":1,\"text\":\"fo\\nur\"}\r\n{\"text\":\"\"}\n"
                   "{\"text\":\"five\"}");
    hr_corpus_desc desc = describe("@a.txt");
    assert_rendered(&desc, "[one\ntwo\n]");
    desc = describe("@");
    assert_rendered(&desc, "[one\ntwo\n][three][fo\nur][][five]");
    desc = describe("@c.jsonl; @a.txt");
    assert_rendered(&desc, "[three][fo\nur][][five][one\ntwo\n]");
    put("d.jsonl", "\xef\xbb\xbf{\"content\":\"six\"}\n");
    desc = describe("@d.jsonl");
    desc.text_field = "content";
    assert_rendered(&desc, "[six]");
}

static void prompts_are_masked_and_completions_are_not(void **state)
{
    (void)state;
    put("a.jsonl", "{\"prompt\":\"2+2=\",\"completion\":\"4\"}\n"
                   "{\"completion\":\"no\",\"prompt\":\"yes?\"}\n"
                   "{\"prompt\":\"\",\"completion\":\"alone\"}\n"
                   "{\"text\":\"plain\",\"prompt\":1.5}\n");
    hr_corpus_desc desc = describe("@a.jsonl");
    desc.skip_bad_lines = true;
    assert_rendered(&desc, "[(2+2=)4][(yes?)no][()alone]");
    put("a.jsonl", "{\"q\":\"2+2=\",\"a\":\"4\"}\n{\"text\":\"plain\",\"q\":\"left out\"}");
    desc.prompt_field = "q";
    desc.completion_field = "a";
    assert_rendered(&desc, "[(2+2=)4][plain]");
}

static int64_t append(char *to, const char *text)
{
    const size_t bytes = strlen(text);
    memcpy(to, text, bytes);
    return (int64_t)bytes;
}

/* Lines much longer than the buffer; its end splits escapes and characters. */
static void a_line_of_any_length_is_read_with_a_buffer_of_any_size(void **state)
{
    (void)state;
    static char content[200000], wanted[200000];
    int64_t used = 0, wanted_bytes = 0;
    for (int line = 0; line < 40; line++) {
        const bool prompt = line % 3 == 2;
        used += sprintf(content + used, "{\"meta\":[\"%0*d\",{}],\"%s\":\"", 7 * line, 0,
                        prompt ? "prompt" : "text");
        wanted[wanted_bytes++] = '[';
        if (prompt) wanted[wanted_bytes++] = '(';
        for (int i = 0; i < line * line; i++) {
            const bool cut = prompt && i == line * line / 2;
            if (cut) used += sprintf(content + used, "\",\"x\":0,\"completion\":\"");
            if (cut) wanted[wanted_bytes++] = ')';
            used += append(content + used, i % 5 ? "\\u20ac" : i % 3 ? "\xc3\xa9" : "e");
            wanted_bytes += append(wanted + wanted_bytes, i % 5   ? "\xe2\x82\xac"
                                                          : i % 3 ? "\xc3\xa9"
                                                                  : "e");
        }
        used += sprintf(content + used, "\",\"more\":%d}\n", line);
        wanted[wanted_bytes++] = ']';
    }
    wanted[wanted_bytes] = 0;
    put("a.jsonl", content);
    hr_corpus_desc desc = describe("@a.jsonl");
    assert_rendered(&desc, wanted);
    for (desc.line_bytes = 64; desc.line_bytes < 20000; desc.line_bytes += desc.line_bytes / 3)
        assert_rendered(&desc, wanted);
}

static void a_bad_line_ends_the_pass_or_is_skipped_and_counted(void **state)
{
    (void)state;
    static const struct {
        const char *line, *sentence;
    } bad[] = {
        { "{\"text\":\"a\"", "line 2: byte 11: unexpected end" },
        { "{\"text\":1}", "line 2: byte 8: the field is not a string" },
        { "not json", "line 2: byte 0: not a JSON object" },
        { "{\"texts\":\"a\"}", "line 2: has no \"text\"; if its text is in \"texts\", set "
                               "data.text_field=texts" },
        { "{}", "line 2: has no \"text\"; fix it, or skip such lines with data.bad_lines=skip" },
        { "{\"prompt\":\"a\"}", "line 2: has \"prompt\" and no \"completion\"" },
        { "{\"completion\":\"a\"}", "line 2: has \"completion\" and no \"prompt\"" },
        { "{\"text\":\"\xff\"}", "line 2: byte 9: bytes that are not UTF-8" },
        { "{\"text\":\"a long one whose end is bad, with much before it, longer than a buffer "
          "of sixty-four bytes is\\x\"}",
          "line 2: byte 102: an unknown escape" },
        { "{\"id\":\"a long one that has no text at all, and is longer than any buffer of "
          "sixty-four bytes is\"}",
          "line 2: has no \"text\"; if its text is in \"id\"" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char content[512];
        snprintf(content, sizeof content, "{\"text\":\"one\"}\n%s\n{\"text\":\"three\"}\n%s",
                 bad[i].line, bad[i].line);
        put("a.jsonl", content);
        for (int narrow = 0; narrow < 2; narrow++) {
            hr_corpus_desc desc = describe("@a.jsonl");
            hr_error err = { HR_OK, "" };
            int64_t bad_lines;
            desc.line_bytes = narrow ? 64 : 0;
            assert_refused(&desc, HR_CORRUPT, bad[i].sentence);
            desc.skip_bad_lines = true;
            assert_int_equal(hr_corpus_case_render_train(&desc, out, sizeof out, &bad_lines, &err),
                             HR_OK);
            assert_string_equal(out, "[one][three]");
            assert_int_equal(bad_lines, 2);
        }
    }
}

static void a_long_line_needs_its_prompt_before_its_completion(void **state)
{
    (void)state;
    char filler[101], content[512];
    memset(filler, 'x', 100);
    filler[100] = 0;
    hr_corpus_desc desc = describe("@a.jsonl");
    snprintf(content, sizeof content, "{\"completion\":\"%s\",\"prompt\":\"p\"}", filler);
    put("a.jsonl", content);
    snprintf(out, sizeof out, "[(p)%s]", filler);
    char wanted[512];
    strcpy(wanted, out);
    assert_rendered(&desc, wanted);
    desc.line_bytes = 64;
    assert_refused(&desc, HR_CORRUPT, "and its completion comes before the prompt");
    snprintf(content, sizeof content, "{\"prompt\":\"%s\",\"text\":\"t\"}", filler);
    put("a.jsonl", content);
    assert_refused(&desc, HR_CORRUPT, "and its text comes after a prompt");
    snprintf(content, sizeof content, "{\"text\":\"t\",\"prompt\":\"%s\",\"completion\":\"c\"}",
             filler);
    put("a.jsonl", content);
    assert_rendered(&desc, "[t]");
    desc.line_bytes = 0;
    assert_rendered(&desc, "[t]");
}

/* ---- ids */

static void put_ids(const char *name, int32_t magic, int32_t version, int32_t declared,
                    int32_t count, int32_t id_bytes)
{
    static uint8_t content[1024 + 4 * 40000];
    int64_t used = 0;
    memset(content, 0, sizeof content);
    if (magic) {
        memcpy(content, (int32_t[]){ magic, version, declared }, 12);
        used = 1024;
    }
    for (int32_t i = 0; i < count; i++, used += id_bytes) {
        const uint32_t id = i % 5 == 4 ? 0 : (uint32_t)(100 + i % 40000);
        memcpy(content + used, &id, (size_t)id_bytes);
    }
    hr_folder_write(hr_folder_path(&folder, name), content, used);
}

static void shards_of_other_programs_are_read_if_their_format_is_known(void **state)
{
    (void)state;
    put_ids("gpt2.bin", 20240520, 1, 7, 7, 2);
    put_ids("llama.bin", 20240801, 7, 7, 7, 4);
    put_ids("raw.bin", 0, 0, 0, 7, 2);
    hr_corpus_desc desc = describe("@gpt2.bin");
    assert_rendered(&desc, "[#100#101#102#103#0#105#106]");
    desc = describe("@llama.bin");
    assert_rendered(&desc, "[#100#101#102#103#0#105#106]");
    desc = describe("@raw.bin ids=u16");
    assert_rendered(&desc, "[#100#101#102#103#0#105#106]");
    put_ids("raw.dat", 0, 0, 0, 7, 2);
    desc = describe("@raw.dat ids=u16");
    assert_rendered(&desc, "[#100#101#102#103#0#105#106]");
    desc = describe("@gpt2.bin; @llama.bin");
    desc.document_end = 0;
    assert_rendered(&desc, "[#100#101#102#103#0][#105#106#100#101#102#103#0][#105#106]");
}

static void ids_of_unknown_origin_are_refused(void **state)
{
    (void)state;
    put_ids("raw.bin", 0, 0, 0, 600, 2);
    hr_corpus_desc desc = describe("@raw.bin");
    assert_refused(&desc, HR_USAGE, "add ids=u16 after its name");
    put_ids("a.bin", 20240520, 1, 600, 600, 2);
    desc = describe("@a.bin ids=u16");
    assert_refused(&desc, HR_USAGE, "has a header with its type: remove ids=u16");
    put_ids("a.bin", 20240520, 2, 600, 600, 2);
    desc = describe("@a.bin");
    assert_refused(&desc, HR_CORRUPT,
                   "its header says version 2 and 600 tokens; version 1 is read");
    put_ids("a.bin", 20240520, 1, 601, 600, 2);
    assert_refused(&desc, HR_CORRUPT, "its header says 601 tokens, it has 600");
    put_ids("a.bin", 20240520, 1, 599, 600, 2);
    assert_refused(&desc, HR_CORRUPT, "its header says 599 tokens, it has more than 599");
    put_ids("a.bin", 20240522, 1, 600, 600, 2);
    assert_refused(&desc, HR_USAGE, "has no llm.c header");
    desc = describe("@raw.bin ids=u16");
    desc.vocab_size = 150;
    assert_refused(&desc, HR_CORRUPT,
                   "token 50 is 150, but ids must be below model.vocab_size=150");
    put("odd.bin", "abc");
    desc = describe("@odd.bin ids=u16");
    assert_refused(&desc, HR_CORRUPT, "ends with an incomplete id of 2 bytes");
    put("array.npy", "\x93NUMPY\x01");
    desc = describe("@array.npy ids=u16");
    assert_refused(&desc, HR_USAGE, "is a NumPy file, whose header would be read as ids");
    put("a.txt", "text");
    desc = describe("@a.txt ids=u16");
    assert_refused(&desc, HR_USAGE, "has ids=u16, but the name of a text");
    put("r.safetensors", "rows");
    desc = describe("@a.txt; @r.safetensors");
    assert_refused(&desc, HR_USAGE, "rows of token ids are a whole text");
    desc = describe("@raw.bin ids=u16; @a.txt");
    assert_refused(&desc, HR_USAGE, "has token ids and ");
    desc = describe("@raw.bin ids=u16");
    desc.valid = "1%";
    assert_refused(&desc, HR_USAGE, "a percentage needs text");
}

/* ---- held out */

static int64_t documents_in(const char *rendered)
{
    int64_t count = 0;
    for (; *rendered; rendered++) count += *rendered == '[';
    return count;
}

/* Renders the documents of both sides; returns how many are held out. */
static int64_t hold_out(const char *train, const char *share, char *kept, char *held)
{
    hr_corpus_case opened;
    hr_error err = { HR_OK, "" };
    hr_corpus_desc desc = describe(train);
    desc.valid = share;
    int64_t bad_lines;
    if (hr_corpus_case_open(&opened, &desc, &err) != HR_OK) fail_msg("%s", err.message);
    const hr_corpus_view *view = hr_corpus_texts(opened.corpus);
    assert_true(view->has_valid && view->held_out);
    assert_int_equal(
        hr_corpus_case_render(&view->train[0].documents, kept, sizeof out, &bad_lines, NULL, &err),
        HR_OK);
    assert_int_equal(
        hr_corpus_case_render(&view->valid.documents, held, sizeof out, &bad_lines, NULL, &err),
        HR_OK);
    hr_corpus_case_close(&opened);
    return documents_in(held);
}

static void documents_are_held_out_by_their_content(void **state)
{
    (void)state;
    static char content[1 << 19], kept[sizeof out], held[sizeof out], less[sizeof out];
    int64_t used = 0;
    for (int i = 0; i < 4000; i++)
        used += sprintf(content + used,
                        i % 2 ? "{\"text\":\"document %d\"}\n"
                              : "{\"prompt\":\"document\",\"completion\":\"%d\"}\n",
                        i);
    put("a.jsonl", content);
    const int64_t count = hold_out("@a.jsonl", "10%", kept, held);
    assert_in_range(count, 320, 480); /* four standard deviations */
    assert_int_equal(documents_in(kept), 4000 - count);
    /* A smaller share holds out a subset. */
    const int64_t fewer = hold_out("@a.jsonl", "2.5%", kept, less);
    assert_in_range(fewer, 60, 140);
    int64_t at = 0;
    for (const char *document = strtok(less, "]"); document; document = strtok(NULL, "]"), at++)
        assert_non_null(strstr(held, document));
    assert_int_equal(at, fewer);
    /* The side of a document does not depend on its file, its position or its other fields. */
    char swapped[sizeof less];
    put("b.jsonl", "{\"id\":7,\"text\":\"document 1\"}");
    for (int i = 1; i < 40; i += 2) {
        char line[64], wanted[64];
        snprintf(line, sizeof line, "{\"id\":7,\"text\":\"document %d\"}\n", i);
        snprintf(wanted, sizeof wanted, "[document %d]", i);
        put("b.jsonl", line);
        assert_int_equal(hold_out("@b.jsonl", "10%", kept, swapped), strstr(held, wanted) != NULL);
    }
}

/* Concatenates the pieces of a text. */
static int64_t join(const hr_documents *documents, char *text)
{
    hr_piece piece;
    hr_error err = { HR_OK, "" };
    int64_t bytes = 0;
    assert_int_equal(documents->open(documents->context, "", NULL, &err), HR_OK);
    for (bool begins = true, ended = false;; begins = false, ended = piece.ends) {
        assert_int_equal(documents->next(documents->context, &piece, &err), HR_OK);
        assert_int_equal(ended, !piece.path);
        if (!piece.path) break;
        assert_int_equal(piece.begins, begins);
        assert_int_equal(piece.segment_ends, piece.ends);
        memcpy(text + bytes, piece.bytes, (size_t)piece.count);
        bytes += piece.count;
    }
    documents->close(documents->context);
    text[bytes] = 0;
    return bytes;
}

/* Holds out a share of "a.txt"; the held-out end must begin with `first`. */
static void assert_split(const char *content, const char *share, const char *first, int64_t most)
{
    static char text[1 << 20];
    hr_corpus_case opened;
    hr_error err = { HR_OK, "" };
    hr_corpus_desc desc = describe("@a.txt");
    hr_text_hash kept, held, again;
    int64_t bytes, bad_lines;
    desc.valid = share;
    put("a.txt", content);
    if (hr_corpus_case_open(&opened, &desc, &err) != HR_OK) fail_msg("%s", err.message);
    const hr_corpus_view *view = hr_corpus_texts(opened.corpus);
    const hr_documents *train = &view->train[0].documents, *valid = &view->valid.documents;
    const int64_t train_bytes = join(train, text), valid_bytes = join(valid, text + train_bytes);
    assert_string_equal(text, content);
    assert_memory_equal(text + train_bytes, first, strlen(first));
    assert_in_range(valid_bytes, 1, most);
    assert_int_equal(view->train[0].bytes, train_bytes);
    assert_int_equal(view->valid.bytes, valid_bytes);
    again = valid->seen(valid->context, &bad_lines);
    assert_int_equal(valid->identify(valid->context, NULL, &held, &bytes, &err), HR_OK);
    assert_true(hr_text_hash_equal(held, again));
    assert_int_equal(train->identify(train->context, NULL, &kept, &bytes, &err), HR_OK);
    assert_false(hr_text_hash_equal(kept, held));
    hr_corpus_case_close(&opened);
}

static void the_end_of_a_single_text_is_held_out(void **state)
{
    (void)state;
    static char content[700000 + 64];
    assert_split("one\ntwo\n\nthree\nfour\n\nfive\nsix\n", "50%", "five\n", 16);
    assert_split("one\r\ntwo\r\n\r\nthree\r\nfour\r\n\r\nfive\r\nsix\r\n", "50%", "five\r", 18);
    assert_split("one\ntwo\n\nthree\nfour\n", "55%", "three\n", 11);
    assert_split("one\r\ntwo\r\n\r\nthree\r\nf\r\n", "45.5%", "three\r", 10);
    assert_split("one\ntwo\nthree\nfour\nfive\nsix\n", "50%", "four\n", 14);
    assert_split("one two three four", "50%", "hree four", 9);
    assert_split("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", "30%", "\xc3\xa4", 3);
    int64_t used = 0; /* several buffers, on both sides */
    while (used < 700000) used += sprintf(content + used, "line %d\n", (int)used);
    assert_split(content, "50%", "line ", 350000);
    assert_split(content, "0.01%", "line ", 70);
    assert_split(content, "99.99%", "line ", 699999);
}

static void a_share_of_a_compressed_text_is_refused(void **state)
{
    (void)state;
    hr_error err = { HR_OK, "" };
    hr_corpus_case opened;
    hr_corpus_desc desc = describe("@a.txt.gz");
    desc.valid = "5%";
    put("a.txt.gz", "");
    hr_corpus_case_assert_refused(
        hr_corpus_case_open(&opened, &desc, &err), &err, HR_USAGE,
        "is a single compressed text, from which no share can be held out");
}

static void long_documents_are_held_out_completely(void **state)
{
    (void)state;
    static char content[1 << 19], kept[sizeof out], held[sizeof out];
    int64_t used = 0, bytes = 0;
    for (int i = 0; i < 40; i++) {
        used += sprintf(content + used, "{\"text\":\"%05d", i);
        for (int k = 0; k < 300 * i; k++) content[used++] = (char)('a' + k % 26);
        bytes += 5 + 300 * i;
        used += sprintf(content + used, "\"}\n");
    }
    put("a.jsonl", content);
    const int64_t count = hold_out("@a.jsonl", "50%", kept, held);
    assert_in_range(count, 6, 34);
    assert_int_equal(strlen(kept) + strlen(held), bytes + 2 * 40);
    hr_corpus_case opened;
    hr_error err;
    int64_t bad_lines;
    hr_corpus_desc desc = describe("@a.jsonl");
    desc.valid = "50%";
    desc.line_bytes = 70000; /* first above HR_HELD_BYTES, then below */
    for (; desc.line_bytes > 64; desc.line_bytes /= 8) {
        assert_int_equal(hr_corpus_case_open(&opened, &desc, &err), HR_OK);
        const hr_documents *side = &hr_corpus_texts(opened.corpus)->valid.documents;
        assert_int_equal(hr_corpus_case_render(side, out, sizeof out, &bad_lines, NULL, &err),
                         HR_OK);
        /* A buffer shorter than HR_HELD_BYTES may change a document's side, but never splits it. */
        for (const char *at = out; (at = strchr(at, '[')); at++) {
            const char *end = strchr(at, ']');
            assert_non_null(end);
            char document[16];
            snprintf(document, sizeof document, "%.5s", at + 1);
            assert_int_equal(end - at - 1, 5 + 300 * atoi(document));
        }
        hr_corpus_case_close(&opened);
    }
}

/* ---- identity */

static hr_text_hash identity_of(const hr_corpus_desc *desc)
{
    hr_corpus_case opened;
    hr_error err = { HR_OK, "" };
    hr_text_hash hash;
    int64_t bytes;
    if (hr_corpus_case_open(&opened, desc, &err) != HR_OK) fail_msg("%s", err.message);
    const hr_documents *documents = &hr_corpus_texts(opened.corpus)->train[0].documents;
    assert_int_equal(documents->identify(documents->context, NULL, &hash, &bytes, &err), HR_OK);
    hr_corpus_case_close(&opened);
    return hash;
}

static void every_change_of_documents_changes_their_identity(void **state)
{
    (void)state;
    hr_text_hash seen[16];
    int32_t count = 0;
    put("a.txt", "{\"text\":\"a\"}\n");
    put("a.jsonl", "{\"text\":\"a\"}\n");
    put("ab.txt", "{\"text\":\"a\"}\n{\"text\":\"a\"}\n");
    hr_corpus_desc desc = describe("@a.txt");
    const hr_text_hash alone = seen[count++] = identity_of(&desc);
    desc = describe("@a.jsonl");
    seen[count++] = identity_of(&desc);
    desc.skip_bad_lines = true;
    seen[count++] = identity_of(&desc);
    desc.text_field = "other";
    seen[count++] = identity_of(&desc);
    desc = describe("@a.jsonl");
    desc.valid = "1%";
    seen[count++] = identity_of(&desc);
    desc.valid = "2%";
    seen[count++] = identity_of(&desc);
    desc = describe("@a.txt; @a.txt");
    seen[count++] = identity_of(&desc);
    desc = describe("@ab.txt");
    seen[count++] = identity_of(&desc);
    desc = describe("@a.txt; @a.jsonl");
    seen[count++] = identity_of(&desc);
    for (int32_t i = 0; i < count; i++)
        for (int32_t k = 0; k < i; k++) assert_false(hr_text_hash_equal(seen[i], seen[k]));
    /* The name and other files do not change the identity. */
    put("b.txt", "{\"text\":\"a\"}\n");
    desc = describe("@b.txt");
    assert_true(hr_text_hash_equal(identity_of(&desc), alone));
}

static void memory_is_known_before_any_file_is_opened(void **state)
{
    (void)state;
    const hr_corpus_desc plain = hr_corpus_case_desc("a.txt", ""),
                         lines = hr_corpus_case_desc("a.jsonl", "");
    const hr_corpus_desc gzip = hr_corpus_case_desc("a.txt.gz", ""),
                         zstd = hr_corpus_case_desc("a.zst", "");
    const hr_corpus_desc known = hr_corpus_case_desc("*.txt", ""),
                         all = hr_corpus_case_desc("a/", "");
    const hr_corpus_desc wrong = hr_corpus_case_desc("a weight=0", "");
    assert_true(hr_corpus_bytes(&plain) < 400 << 10);
    assert_true(hr_corpus_bytes(&lines) < 1300 << 10);
    assert_true(hr_corpus_bytes(&gzip) < 800 << 10);
    assert_true(hr_corpus_bytes(&zstd) < 10 << 20);
    assert_true(hr_corpus_bytes(&known) < 10 << 20);
    assert_true(hr_corpus_bytes(&all) < 20 << 20);
    assert_int_equal(hr_corpus_bytes(&wrong), 0);
    print_message(
        "a file %lld, lines %lld, gzip %lld, zstd %lld, *.txt %lld, a folder %lld bytes\n",
        (long long)hr_corpus_bytes(&plain), (long long)hr_corpus_bytes(&lines),
        (long long)hr_corpus_bytes(&gzip), (long long)hr_corpus_bytes(&zstd),
        (long long)hr_corpus_bytes(&known), (long long)hr_corpus_bytes(&all));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_text_file_is_a_document_and_so_is_each_json_line),
        TEST(prompts_are_masked_and_completions_are_not),
        TEST(a_line_of_any_length_is_read_with_a_buffer_of_any_size),
        TEST(a_bad_line_ends_the_pass_or_is_skipped_and_counted),
        TEST(a_long_line_needs_its_prompt_before_its_completion),
        TEST(shards_of_other_programs_are_read_if_their_format_is_known),
        TEST(ids_of_unknown_origin_are_refused),
        TEST(documents_are_held_out_by_their_content),
        TEST(the_end_of_a_single_text_is_held_out),
        TEST(a_share_of_a_compressed_text_is_refused),
        TEST(long_documents_are_held_out_completely),
        TEST(every_change_of_documents_changes_their_identity),
        TEST(memory_is_known_before_any_file_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
