/* SPDX-License-Identifier: Apache-2.0 */
/* cli_source_test.c - data that a recipe names without a file: synthetic ids, corpora by name. */
#include <sys/stat.h>

#include "headroom/status.h"
#include "support/program.h"

static const char source[] = "data.train='synthetic tokens=40000' data.valid='synthetic "
                             "tokens=2000' train.batch=8 train.seq_len=32 train.kernels=avx2";

static json_int_t planned(const char *arguments)
{
    assert_int_equal(run("plan tiny.yaml %s --json", arguments), HR_OK);
    json_t *plan = out_json();
    const json_int_t bytes = json_integer_value(json_object_get(plan, "process_bytes"));
    json_decref(plan);
    return bytes;
}

/* Nothing beats 1.7293 nats, and a model that knows only frequencies has 5.3338
 * (tests/corpus/synthetic_ids.py 256 0 0 0). */
static void training_on_synthetic_ids_learns_their_transitions(void **state)
{
    (void)state;
    put_tiny_and_text();
    const json_int_t bytes = planned(source);
    assert_int_equal(
        run("train tiny.yaml %s train.steps=250 train.optimizer.lr=0.03 --out learned", source),
        HR_OK);
    assert_string_equal(err, "");
    const char *at = strstr(out, "process memory ");
    assert_non_null(at);
    json_int_t said = 0;
    for (at += sizeof "process memory " - 1; *at != ' '; at++)
        if (*at != ',') said = 10 * said + (*at - '0');
    assert_int_equal(said, bytes);
    assert_non_null(strstr(out, "\ntrain  40,000 tokens, 100.00 % in the vocabulary\n"));
    assert_non_null(strstr(out, "\nvalid  2,000 tokens, 100.00 % in the vocabulary\n"));
    const char *loss = strstr(out, "validation loss ");
    assert_non_null(loss);
    const double value = atof(loss + sizeof "validation loss " - 1);
    if (value < 1.7 || value > 4.5) fail_msg("validation loss %g", value);
}

static void same_files(const char *a, const char *b)
{
    static char first[PROGRAM_TEXT_BYTES], second[PROGRAM_TEXT_BYTES];
    size_t sizes[2];
    const char *const paths[] = { a, b };
    char *const texts[] = { first, second };
    for (int32_t i = 0; i < 2; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%s", program_folder, paths[i]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        sizes[i] = fread(texts[i], 1, PROGRAM_TEXT_BYTES, file);
        fclose(file);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_true(sizes[0] > 1000 && sizes[0] < PROGRAM_TEXT_BYTES);
    assert_memory_equal(first, second, sizes[0]);
}

static void a_resumed_run_on_synthetic_ids_has_the_same_weights(void **state)
{
    (void)state;
    char arguments[400];
    put_tiny_and_text();
    assert_int_equal(run("train tiny.yaml %s train.steps=150 --out whole", source), HR_OK);
    snprintf(arguments, sizeof arguments, "train tiny.yaml %s train.steps=150 --out parts", source);
    assert_int_equal(run_interrupted(arguments, "step ", false), HR_INTERRUPTED);
    assert_int_equal(run("%s", arguments), HR_OK);
    assert_non_null(strstr(out, "resume"));
    same_files("whole/model.safetensors", "parts/model.safetensors");
}

static void presets_train_on_synthetic_ids_of_any_vocabulary(void **state)
{
    (void)state;
    static const char *const vocabularies[] = { "5", "255", "300", "70000" };
    put("words.yaml", "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32}\n"
                      "data: {tokenizer: words, train: synthetic tokens=2000}\n"
                      "train: {batch: 4, seq_len: 16, steps: 2, sample_tokens: 32}\n");
    for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++) {
        assert_int_equal(run("train words.yaml model.vocab_size=%s data.valid=10%% --out v%s",
                             vocabularies[i], vocabularies[i]),
                         HR_OK);
        assert_string_equal(err, "headroom: token ids have no text: data.tokenizer and "
                                 "train.sample_tokens are not used\n");
        assert_non_null(strstr(out, "\ntrain  1,800 tokens"));
        assert_non_null(strstr(out, "\nvalid  200 tokens"));
        assert_int_equal(run("data inspect words.yaml model.vocab_size=%s --out v%s --json",
                             vocabularies[i], vocabularies[i]),
                         HR_OK);
        json_t *report = out_json();
        const json_t *text = json_array_get(json_object_get(report, "texts"), 0);
        assert_int_equal(json_integer_value(json_object_get(text, "tokens")), 2000);
        json_decref(report);
    }
}

static void ids_need_no_tokenizer(void **state)
{
    (void)state;
    static const char model[] = "train.seq_len=8 train.batch=2 train.steps=2 model.d_model=16 "
                                "model.n_layers=1 model.n_heads=2 model.vocab_size=64";
    char ids[400] = "";
    for (size_t i = 0; i < sizeof ids; i += 2) ids[i] = (char)(i % 120 / 2);
    put_bytes("v.bin", ids, sizeof ids);
    put("empty.yaml", "{}\n");
    assert_int_equal(run("train empty.yaml 'data.train=v.bin ids=u16' %s", model), HR_OK);
    assert_string_equal(err, "");
    assert_int_equal(
        run("train empty.yaml 'data.train=v.bin ids=u16' data.tokenizer=words %s", model), HR_OK);
    assert_string_equal(err, "headroom: token ids have no text: data.tokenizer is not used\n");
    assert_int_equal(run("plan empty.yaml 'data.train=v.bin weight=1; w.bin.gz weight=2' %s "
                         "train.sample_tokens=9",
                         model),
                     HR_USAGE);
    assert_non_null(strstr(err, "but the tokenizer of the ids in v.bin weight=1; w.bin.gz"));
    assert_int_equal(run("plan empty.yaml 'data.train=v.bin; b.txt' %s", model), HR_USAGE);
    assert_non_null(strstr(err, "data.tokenizer bytes needs 256 at least"));
}

/* ---- named corpora */

static void make(const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", program_folder, name);
    assert_int_equal(mkdir(path, 0777), 0);
}

#define COMMAND(name) \
    "https://huggingface.co/datasets/Salesforce/wikitext has it: mkdir -p data/" name \
    " && pip install datasets && python3 -c \"from datasets import load_dataset as d; " \
    "[open('data/" name "/'+t+'.txt', 'w').write(''.join(d('Salesforce/wikitext', '" name \
    "-v1', split=s)['text'])) for t, s in (('train', 'train'), ('valid', 'validation'))]\"\n"

static const char missing[] =
    "headroom: data.train: neither train.txt nor wiki.train.tokens is in data/wikitext-2, "
    "$HEADROOM_DATA/wikitext-2 or ~/.cache/headroom/data/wikitext-2; " COMMAND("wikitext-2");

static const char missing_valid[] =
    "headroom: data.valid: neither valid.txt nor wiki.valid.tokens is in data/wikitext-2, "
    "$HEADROOM_DATA/wikitext-2 or ~/.cache/headroom/data/wikitext-2; " COMMAND("wikitext-2");

static const char missing_103[] =
    "headroom: data.train: neither train.txt nor wiki.train.tokens is in data/wikitext-103, "
    "$HEADROOM_DATA/wikitext-103 or ~/.cache/headroom/data/wikitext-103; " COMMAND("wikitext-103");

static void a_named_corpus_is_found_in_the_documented_folders(void **state)
{
    (void)state;
    static const char words[] = "data.train=wikitext-2 data.valid=wikitext-2 train.steps=1 "
                                "train.batch=2 train.seq_len=16 train.kernels=avx2";
    put_tiny_and_text();
    const json_int_t bytes = planned(words);
    assert_int_equal(run("train tiny.yaml %s --out w0", words), HR_USAGE);
    assert_string_equal(err, missing);
    assert_int_equal(run("data inspect tiny.yaml %s", words), HR_USAGE);
    assert_string_equal(err, missing);

    make("elsewhere");
    make("elsewhere/wikitext-2");
    put("elsewhere/wikitext-2/wiki.train.tokens", "a text that is longer than one window of it\n");
    put("elsewhere/wikitext-2/wiki.valid.tokens", "a text that is longer than one window\n");
    setenv("HEADROOM_DATA", "elsewhere", 1);
    assert_int_equal(run("train tiny.yaml %s --out w1", words), HR_OK);
    assert_non_null(strstr(out, "\ntrain  44 tokens"));
    assert_non_null(strstr(out, "\nvalid  38 tokens"));
    assert_int_equal(planned(words), bytes);

    make("data"); /* comes first, with its own names of files first */
    make("data/wikitext-2");
    put("data/wikitext-2/train.txt", "another text that is longer than one window of it\n");
    assert_int_equal(run("train tiny.yaml %s --out w2", words), HR_OK);
    assert_non_null(strstr(out, "\ntrain  50 tokens"));
    assert_non_null(strstr(out, "\nvalid  38 tokens"));
    assert_int_equal(planned(words), bytes);
    unsetenv("HEADROOM_DATA");
    assert_int_equal(run("train tiny.yaml %s --out w3", words), HR_USAGE);
    assert_string_equal(err, missing_valid);
    assert_int_equal(run("train tiny.yaml %s data.valid= --out w3", words), HR_OK);
    assert_int_equal(run("train tiny.yaml %s data.valid= data.train=WikiText2 --out w4", words),
                     HR_OK);
    put("WikiText2", "a file of that name that is longer than one window\n");
    assert_int_equal(run("train tiny.yaml %s data.valid= data.train=WikiText2 --out w5", words),
                     HR_OK);
    assert_non_null(strstr(out, "\ntrain  51 tokens"));
}

#define FROM(id, setup) \
    "; https://huggingface.co/datasets/" id " has it, and this writes its first 100,000 " \
    "documents: pip install datasets && python3 -c \"import json, itertools as i; from datasets " \
    "import load_dataset as d; [print(json.dumps({'text': r['text']})) for r in i.islice(d('" id \
    "'" setup ", split='train', streaming=True), 100000)]\" > part.jsonl; then "

static void a_corpus_that_is_not_here_says_where_it_is(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "data.train=WIKITEXT-103", missing_103 },
        { "data.train=Salesforce/WikiText_103", missing_103 },
        { "data.train=slimpajama", "headroom: data.train: there is no file slimpajama" FROM(
                                       "cerebras/SlimPajama-627B", "") "data.train=part.jsonl\n" },
        { "data.train=HuggingFaceFW/fineweb-edu",
          "headroom: data.train: there is no file HuggingFaceFW/fineweb-edu" FROM(
              "HuggingFaceFW/fineweb-edu", ", 'sample-10BT'") "data.train=part.jsonl\n" },
        { "data.train=text.txt data.valid=OpenWebText",
          "headroom: data.valid: there is no file OpenWebText" FROM("Skylion007/openwebtext",
                                                                    "") "data.valid=part.jsonl\n" },
        { "data.train=c4", "headroom: data.train: there is no file c4" FROM(
                               "allenai/c4", ", 'en'") "data.train=part.jsonl\n" },
        { "data.train=shakespeare_char",
          "headroom: data.train: there is no file shakespeare_char; curl -O "
          "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/"
          "input.txt fetches it; then data.train=input.txt\n" },
        { "data.train=wikitext", "headroom: data.train: there is no file wikitext; use "
                                 "data.train=wikitext-2 or wikitext-103\n" },
        { "data.train='wikitext-2 weight=1; text.txt weight=2'",
          "headroom: data.train: wikitext-2 is the name of a whole text; in a mixture, give its "
          "file, such as data/wikitext-2/train.txt\n" },
        { "data.train=speare", "headroom: speare: no such file\n" },
    };
    put_tiny_and_text();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("train tiny.yaml train.steps=1 %s --out w6", cases[i][0]), HR_USAGE);
        assert_string_equal(err, cases[i][1]);
    }
    put("c4", "a file of that name that is longer than one window of sixteen\n");
    assert_int_equal(run("train tiny.yaml train.steps=1 train.batch=1 train.seq_len=8 "
                         "data.train=c4 data.valid= --out w7"),
                     HR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_on_synthetic_ids_learns_their_transitions),
        cmocka_unit_test(a_resumed_run_on_synthetic_ids_has_the_same_weights),
        cmocka_unit_test(presets_train_on_synthetic_ids_of_any_vocabulary),
        cmocka_unit_test(ids_need_no_tokenizer),
        cmocka_unit_test(a_named_corpus_is_found_in_the_documented_folders),
        cmocka_unit_test(a_corpus_that_is_not_here_says_where_it_is),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
