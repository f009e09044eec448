/* SPDX-License-Identifier: Apache-2.0 */
/* cli_corpus_test.c - runs on corpora: prompts are masked like ignored labels of rows, mixtures and
 * compressed files stay within the plan, and `data inspect` shows what a run reads. */
#include <math.h>
#include <sys/stat.h>

#include "headroom/status.h"
#include <dirent.h>

#include "support/program.h"
#include "support/stored.h"

enum { T = 16, STEPS = 6, DOCUMENTS = 60 };

/* The numbers of a key in a metrics file. */
static int32_t read_all(const char *name, const char *key, double *values, int32_t most)
{
    FILE *metrics = fopen(name, "r");
    char line[1024];
    int32_t count = 0;
    assert_non_null(metrics);
    while (fgets(line, sizeof line, metrics)) {
        json_t *object = json_loads(line, 0, NULL);
        const json_t *found = json_object_get(object, key);
        if (json_is_number(found) && count < most) values[count++] = json_number_value(found);
        json_decref(object);
    }
    fclose(metrics);
    return count;
}

/* Prompts and completions as lines, and the same tokens as rows: bytes, with a zero between. */
static void put_both(const char *lines, const char *rows)
{
    static int64_t ids[DOCUMENTS * 64];
    static int32_t labels[DOCUMENTS * 64];
    static uint8_t tokens[DOCUMENTS * 64];
    static char masked[sizeof tokens];
    static char content[DOCUMENTS * 128];
    int64_t used = 0, count = 0;
    for (int i = 0; i < DOCUMENTS; i++) {
        char prompt[32], completion[32];
        const int prompt_bytes = sprintf(prompt, "what is %d?", i * i);
        const int completion_bytes = sprintf(completion, "the square of %d", i);
        used += sprintf(content + used, "{\"completion\":\"%s\",\"prompt\":\"%s\"}\n", completion,
                        prompt);
        if (i) tokens[count++] = 0;
        memset(masked + count, 1, (size_t)prompt_bytes);
        memcpy(tokens + count, prompt, (size_t)prompt_bytes);
        count += prompt_bytes;
        memcpy(tokens + count, completion, (size_t)completion_bytes);
        count += completion_bytes;
    }
    put(lines, content);
    const int64_t windows = (count - 1) / T;
    for (int64_t i = 0; i < windows * T; i++) {
        ids[i] = tokens[i];
        labels[i] = masked[i + 1] ? -100 : tokens[i + 1];
    }
    char shape[64];
    snprintf(shape, sizeof shape, "[%lld,%d]", (long long)windows, T);
    stored_file file = stored_begin();
    stored_add(&file, "input_ids", "I64", shape, ids, windows * T * 8);
    stored_add(&file, "labels", "I32", shape, labels, windows * T * 4);
    stored_end(&file, rows);
}

static void a_masked_prompt_equals_ignored_labels(void **state)
{
    (void)state;
    require_program();
    double lines[STEPS], rows[STEPS], counted[STEPS];
    put("recipe.yaml", tiny);
    put_both("a.jsonl", "a.safetensors");
    assert_int_equal(run("train recipe.yaml train.steps=6 data.train=a.jsonl data.document_end=0 "
                         "--out lines --metrics lines.jsonl"),
                     HR_OK);
    assert_non_null(strstr(out, "60 documents"));
    assert_non_null(strstr(out, "% masked from the loss"));
    assert_int_equal(run("train recipe.yaml train.steps=6 data.train=a.safetensors "
                         "memory.micro_batch=1 --metrics rows.jsonl"),
                     HR_OK);
    assert_int_equal(read_all("lines.jsonl", "loss", lines, STEPS), STEPS);
    assert_int_equal(read_all("rows.jsonl", "loss", rows, STEPS), STEPS);
    assert_memory_equal(lines, rows, sizeof lines);
    assert_int_equal(read_all("lines.jsonl", "tokens", lines, STEPS), STEPS);
    assert_int_equal(read_all("rows.jsonl", "tokens", counted, STEPS), STEPS);
    assert_memory_equal(lines, counted, sizeof lines);
    assert_true(lines[0] < 4 * T);
}

/* A directory, compressed files and a held-out share stay within the plan, and give the same losses
 * again from the cache with another micro-batch. */
static void a_mixture_trains_within_its_plan_and_again_from_its_cache(void **state)
{
    (void)state;
    require_program();
    double first[STEPS], second[STEPS];
    static char content[40000];
    int64_t used = 0;
    put("recipe.yaml", tiny);
    assert_int_equal(mkdir("text", 0777), 0);
    for (int i = 0; i < 200; i++)
        used += sprintf(content + used,
                        "{\"id\":%d,\"text\":\"document %d \\u00e9 of a few words"
                        "\"}\n",
                        i, i);
    put("text/a.jsonl", content);
    put("text/b.txt", content);
    put_both("c.jsonl", "c.safetensors");
    assert_int_equal(system("gzip text/a.jsonl text/b.txt"), 0);
    const char *command = "train recipe.yaml train.steps=6 \"data.train=text/ weight=0.7; c.jsonl "
                          "weight=0.3\" data.valid=10%% data.cache=cache %s --metrics %s";
    assert_int_equal(run(command, "", "first.jsonl"), HR_OK);
    assert_non_null(strstr(out, "text/  "));
    assert_non_null(strstr(out, "valid  "));
    assert_null(strstr(out, "(cached)"));
    assert_int_equal(run(command, "memory.micro_batch=1", "second.jsonl"), HR_OK);
    assert_non_null(strstr(out, "(cached)"));
    assert_int_equal(read_all("first.jsonl", "loss", first, STEPS), STEPS);
    assert_int_equal(read_all("second.jsonl", "loss", second, STEPS), STEPS);
    assert_memory_equal(first, second, sizeof first);
}

static json_t *inspect(const char *words)
{
    assert_int_equal(run("data inspect recipe.yaml --json --out made %s", words), HR_OK);
    json_t *read = json_loads(out, 0, NULL);
    assert_non_null(read);
    return read;
}

static int64_t number(const json_t *read, int32_t text, const char *key)
{
    const json_t *texts = json_object_get(read, "texts");
    return json_integer_value(json_object_get(json_array_get(texts, (size_t)text), key));
}

static void inspect_shows_the_texts_of_a_recipe(void **state)
{
    (void)state;
    require_program();
    put("recipe.yaml", tiny);
    put_both("a.jsonl", "a.safetensors");
    put("b.txt", "a text of some length, of which windows are made, and then some more of it");
    json_t *read = inspect("data.train='a.jsonl weight=3; b.txt weight=1' data.valid=b.txt");
    assert_int_equal(json_array_size(json_object_get(read, "texts")), 3);
    assert_int_equal(number(read, 0, "documents"), DOCUMENTS);
    assert_int_equal(number(read, 0, "longest"), 29);
    assert_int_equal(number(read, 0, "bad_lines"), 0);
    assert_int_equal(number(read, 1, "tokens"), 74);
    assert_int_equal(number(read, 2, "tokens"), 74);
    const json_t *second = json_array_get(json_object_get(read, "texts"), 1);
    assert_true(json_real_value(json_object_get(second, "share")) == 0.25);
    /* 3 steps of 4 rows, of 4 windows of 16 tokens */
    assert_true(json_real_value(json_object_get(second, "passes")) == 0.75);
    const json_t *samples = json_object_get(read, "samples");
    size_t i;
    const json_t *sample, *before = NULL;
    json_array_foreach(samples, i, sample)
    {
        if (before && json_equal(json_object_get(before, "name"), json_object_get(sample, "name")))
            assert_true(json_integer_value(json_object_get(sample, "token")) >
                        json_integer_value(json_object_get(before, "token")));
        before = sample;
    }
    assert_int_equal(i, 9); /* one of the text of 74 tokens, which is one document */
    const char *prompt = json_string_value(json_object_get(json_array_get(samples, 0), "prompt"));
    assert_memory_equal(prompt, "what is ", 8);
    json_decref(read);
    assert_int_equal(run("data inspect recipe.yaml data.train=a.jsonl --out made"), HR_OK);
    assert_non_null(strstr(out, "  documents  60, "));
    assert_non_null(strstr(out, "[completion] the square of "));
    assert_non_null(strstr(out, "(cached)"));
}

/* Number of cache files with this text in their names. */
static int cached(const char *part)
{
    DIR *folder = opendir("cache");
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        count += strstr(entry->d_name, part) != NULL;
    if (folder) closedir(folder);
    return count;
}

/* A signal while a shard is written: the texts of its tokens are printed just before. */
static void an_interrupted_inspect_leaves_nothing_behind(void **state)
{
    (void)state;
    require_program();
    int status;
    put("recipe.yaml", tiny);
    FILE *file = fopen("long.txt", "w");
    assert_non_null(file);
    for (int i = 0; i < 1 << 20; i++) fprintf(file, "line %d of many, which take their time\n", i);
    fclose(file);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c",
              "exec \"$HEADROOM\" data inspect recipe.yaml data.train=long.txt data.cache=cache "
              "model.vocab_size=600 data.tokenizer=" HR_SOURCE "/tests/tokenizer/cases/gpt2.json "
              ">out.txt 2>err.txt",
              (char *)0);
        _exit(127);
    }
    while (!cached(".vocabulary")) assert_int_equal(waitpid(child, &status, WNOHANG), 0);
    assert_int_equal(kill(child, SIGINT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    get("err.txt", err);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 128 + SIGINT) fail_msg("%d: %s", status, err);
    assert_non_null(strstr(err, "interrupted while"));
    assert_non_null(strstr(err, "what was unfinished is removed"));
    assert_int_equal(cached(".partial") + cached(".tokens"), 0);
    put("long.txt", "a text of some length, of which windows are made, and more of it");
    assert_int_equal(run("data inspect recipe.yaml data.train=long.txt data.cache=cache"), HR_OK);
}

static void unreadable_input_has_its_exit_code(void **state)
{
    (void)state;
    require_program();
    put("recipe.yaml", tiny);
    put("bad.jsonl", "{\"text\":\"fine\"}\n{\"text\":\n");
    put("a.parquet", "PAR1");
    put("raw.bin", "ab");
    static const struct {
        const char *words, *sentence;
        int code;
    } cases[] = {
        { "data.train=none.txt", "none.txt: no such file", HR_USAGE },
        { "data.train='*.csv'", "*.csv: no file matches", HR_USAGE },
        { "data.train=bad.jsonl", "bad.jsonl: line 2: byte 8: unexpected end", HR_CORRUPT },
        { "data.train=a.parquet", "is a table of columns", HR_USAGE },
        { "data.train=raw.bin", "add ids=u16", HR_USAGE },
        { "data.train='bad.jsonl weight=0; raw.bin weight=1'", "a weight is a number above 0",
          HR_USAGE },
        { "data.train=bad.jsonl data.text_field=prompt", "they must differ", HR_USAGE },
        { "data.train=bad.jsonl data.document_end=x", "data.document_end takes a token id",
          HR_USAGE },
        { "data.train=bad.jsonl data.document_end=256", "must be below", HR_USAGE },
        { "data.train=1%", "only data.valid takes a percentage", HR_USAGE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("data inspect recipe.yaml --out made %s", cases[i].words),
                         cases[i].code);
        if (!strstr(err, cases[i].sentence)) fail_msg("%s: %s", cases[i].words, err);
    }
    /* A plan reads no text, but it checks the data keys. */
    assert_int_equal(run("plan recipe.yaml data.train=none/"), HR_OK);
    assert_int_equal(run("plan recipe.yaml data.train='a weight=1; b'"), HR_USAGE);
    assert_non_null(strstr(err, "1 of 2 parts have a weight, b has none"));
    assert_int_equal(run("data look recipe.yaml"), HR_USAGE);
    assert_non_null(strstr(err, "\"look\" is not a command of data (headroom help data"));
}

static void a_share_that_is_too_small_is_named_by_its_key(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("train tiny.yaml data.train=text.txt data.valid=0.006%% --out run"),
                     HR_CORRUPT);
    assert_non_null(strstr(out, "\nvalid  1 token, 100.00 % in the vocabulary\n"));
    assert_string_equal(err, "headroom: data.valid=0.006%: has 1 token, but one window of "
                             "train.seq_len=16 needs 17: give a longer text\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_masked_prompt_equals_ignored_labels),
        IN_A_FOLDER(a_mixture_trains_within_its_plan_and_again_from_its_cache),
        IN_A_FOLDER(inspect_shows_the_texts_of_a_recipe),
        IN_A_FOLDER(an_interrupted_inspect_leaves_nothing_behind),
        IN_A_FOLDER(unreadable_input_has_its_exit_code),
        IN_A_FOLDER(a_share_that_is_too_small_is_named_by_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
