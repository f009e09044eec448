/* SPDX-License-Identifier: Apache-2.0 */
/* cli_stages_test.c - runs of stages: one plan, every token once a pass, the same bits whatever the
 * strategy and however often the run is killed; and what is refused. */
#define _GNU_SOURCE
#include "headroom/status.h"
#include "support/program.h"

/* Ten stages from 4 to 40 tokens, some of whose lengths do not divide the others. */
static const char ten[] =
    "model: {family: yxanul, d_model: 32, n_layers: 2, n_heads: 4, n_kv_heads: 2, d_ff: 64, "
    "vocab_size: 256, embedding_rank: 8}\n"
    "data: {train: text.txt, valid: text.txt}\n"
    "train:\n"
    "  batch: 4\n"
    "  threads: 2\n"
    "  eval_every: 7\n"
    "  eval_batches: 2\n"
    "  checkpoint_every: 1\n"
    "  ema_decay: 0.9\n"
    "  sample_tokens: 3\n"
    "  sample_every: 9\n"
    "  steps: 40\n"
    "  schedule: {kind: cosine, warmup_steps: 3, unit: tokens}\n"
    "  stages:\n"
    "    - {seq_len: 4, batch: 32, lr_scale: 0.3, clip: 0.5}\n"
    "    - {at_step: 4, seq_len: 8, batch: 24, lr_scale: 0.4, warmup_steps: 2}\n"
    "    - {at_step: 8, seq_len: 10, batch: 20, dropout: 0.1}\n"
    "    - {at_step: 12, seq_len: 12, batch: 16, freeze: \"*layers.0.*\"}\n"
    "    - {at_step: 16, seq_len: 16, batch: 12, clip: none}\n"
    "    - {at_step: 20, seq_len: 20, batch: 9, attention: local, attention.block: 4}\n"
    "    - {at_step: 24, seq_len: 24, batch: 8, micro_batch: 4}\n"
    "    - {at_step: 28, seq_len: 32, batch: 6, freeze: \"E *norm*\"}\n"
    "    - {at_step: 32, seq_len: 36, batch: 4}\n"
    "    - {at_step: 36, seq_len: 40, batch: 4, lr_scale: 1}\n";

static void prepare(void)
{
    require_program();
    put_tiny_and_text();
    put("ten.yaml", ten);
}

static void must(const char *command)
{
    if (run("%s", command)) fail_msg("%s: %s", command, *err ? err : out);
}

static void kill_after(pid_t child, const void *context)
{
    usleep(*(const useconds_t *)context);
    assert_int_equal(kill(child, SIGKILL), 0);
}

/* A log without times: lines of steps have them in "clock". */
static void read_log(const char *path, char *text)
{
    get(path, text);
    for (char *clock = text; (clock = strstr(clock, ",\"clock\":{"));) {
        char *end = strchr(clock + 10, '}') + 1;
        memmove(clock, end, strlen(end) + 1);
    }
    char *last = strstr(text, "{\"arena_bytes_planned\"");
    if (last) *last = 0;
}

static void a_run_killed_forty_times_has_the_same_bits(void **state)
{
    static char whole[PROGRAM_TEXT_BYTES], killed[PROGRAM_TEXT_BYTES];
    enum { KILLS = 40 };
    (void)state;
    prepare();
    must("train ten.yaml --out whole");
    assert_arena_as_planned("ten.yaml");
    uint32_t draw = 20261128;
    int32_t kills = 0;
    for (int code = -1; code != 0;) {
        draw = draw * 1664525 + 1013904223;
        const useconds_t wait = (draw >> 16) % 30000;
        code = kills < KILLS ? run_acting("train ten.yaml --out killed", "step", kill_after, &wait)
                             : run("train ten.yaml --out killed");
        kills += code == -SIGKILL;
        if (code != 0 && code != -SIGKILL) fail_msg("code %d: %s", code, err);
        if (code == 0 && kills < KILLS) { /* it was faster than its killer */
            must("train ten.yaml --out again --fresh");
            assert_int_equal(system("rm -r killed; mv again unused; rm -r unused"), 0);
            code = -1;
        }
    }
    assert_int_equal(kills, KILLS);
    assert_same_file("whole/model.safetensors", "killed/model.safetensors");
    assert_same_file("whole/average/model.safetensors", "killed/average/model.safetensors");
    read_log("whole/metrics.jsonl", whole);
    read_log("killed/metrics.jsonl", killed);
    assert_string_equal(whole, killed);
}

static void every_strategy_has_the_same_bits(void **state)
{
    const char *const ways[] = {
        "memory.micro_batch=1",
        "memory.recompute=layers memory.loss_chunk=40",
        "memory.moments=file",
        "train.threads=1",
        *SANITIZED_BUDGET ? SANITIZED_BUDGET : "memory.budget=26000000",
    };
    (void)state;
    prepare();
    must("train ten.yaml --out whole");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (run("train ten.yaml --fresh --out other %s", ways[i])) fail_msg("%s: %s", ways[i], err);
        assert_arena_as_planned(ways[i]);
        assert_same_file("whole/model.safetensors", "other/model.safetensors");
    }
}

/* The set is judged, and a plan that moves what lives through the run is refused. */
static void the_plans_of_a_run_are_judged_together(void **state)
{
    static char text[PROGRAM_TEXT_BYTES];
    (void)state;
    prepare();
    must("plan ten.yaml --out plan.json --schedule lr.svg");
    assert_non_null(strstr(out, "10 stages"));
    must("verify plan-1.json plan-2.json plan-3.json plan-4.json plan-5.json plan-6.json "
         "plan-7.json plan-8.json plan-9.json plan-10.json");
    assert_non_null(strstr(out, "10 plans: each is valid, and what lives through the run is at "
                                "the same bytes in all"));
    get("lr.svg", text);
    assert_non_null(strstr(text, "stage 10 from step 36"));
    assert_int_equal(system("cp plan-1.json plan-11.json"), 0);
    assert_int_equal(run("plan ten.yaml --out plan.json"), HR_USAGE);
    assert_non_null(strstr(err, "plan-11.json: exists, and the run has only 10 stages"));
    assert_int_equal(unlink("plan-11.json"), 0);
    must("plan ten.yaml --json");
    json_t *plan = out_json(), *stages = json_object_get(plan, "stages"), *stage;
    size_t i;
    json_int_t most = 0;
    assert_int_equal(json_array_size(stages), 10);
    assert_true(json_is_null(json_object_get(plan, "minimum_bytes")));
    json_array_foreach(stages, i, stage)
    {
        const json_int_t arena = json_integer_value(json_object_get(stage, "arena_bytes"));
        assert_int_equal(arena, json_integer_value(json_object_get(stage, "floor_bytes")));
        if (arena > most) most = arena;
    }
    assert_int_equal(most, json_integer_value(json_object_get(plan, "arena_bytes")));
    json_decref(plan);
    /* A stage that stands alone has neither the positions of the longest nor their table. */
    must("plan ten.yaml --stage 1 --out alone.json");
    assert_int_equal(run("verify alone.json plan-2.json"), HR_BROKEN);
    must("plan ten.yaml train.stages= train.optimizer.kind=sgd --out other.json");
    assert_int_equal(run("verify plan-1.json other.json"), HR_BROKEN);
    assert_says("is at byte");
    must("plan ten.yaml train.stages= train.ema_decay=0 --out other.json");
    assert_int_equal(run("verify other.json plan-10.json"), HR_BROKEN);
}

static json_int_t last_tokens(const char *path)
{
    static char text[PROGRAM_TEXT_BYTES];
    get(path, text);
    json_int_t tokens = 0;
    for (char *at = text; (at = strstr(at, "\"tokens\":"));) {
        const char *grad = strstr(at, "\"clock\"");
        const json_int_t here = strtoll(at += strlen("\"tokens\":"), NULL, 10);
        const char *end = strchr(at, '\n');
        if (grad && end && grad < end) tokens = here;
    }
    return tokens;
}

/* The tokens of one pass, and of two, are all targets but the last of the text. */
static void a_pass_through_all_stages_uses_every_token_once(void **state)
{
    char tokens[32];
    (void)state;
    prepare();
    for (int epochs = 1; epochs <= 2; epochs++) {
        if (run("train ten.yaml train.steps=auto train.epochs=%d --fresh --out passes", epochs))
            fail_msg("%s", err);
        const char *line = strstr(out, "train  ");
        assert_non_null(line);
        assert_int_equal(sscanf(line, "train  %31s", tokens), 1);
        char digits[32], *to = digits;
        for (const char *at = tokens; *at; at++)
            if (*at != ',') *to++ = *at;
        *to = 0;
        assert_int_equal(last_tokens("passes/metrics.jsonl"), epochs * (atoll(digits) - 1));
    }
}

static void families_and_optimizers_cross_a_switch(void **state)
{
    static const char *const families[] = { "llama", "mistral", "qwen2",    "qwen3", "needle",
                                            "gpt2",  "gpt_neo", "gpt_neox", "opt",   "wide" };
    static const char *const optimizers[] = { "adamw", "sgd", "lion", "adafactor", "adam" };
    enum { FAMILIES = sizeof families / sizeof *families };
    (void)state;
    require_program();
    put_tiny_and_text();
    for (int i = 0; i < FAMILIES; i++) {
        const char *stages = "seq_len=8 batch=12; at_step=3 seq_len=20 batch=4 lr_scale=0.5; "
                             "at_tokens=500 batch=6";
        char settings[512];
        snprintf(settings, sizeof settings,
                 "tiny.yaml model.family=%s data.train=text.txt data.valid=text.txt train.steps=9 "
                 "train.checkpoint_every=2 train.eval_every=4 train.eval_batches=1 "
                 "train.optimizer.kind=%s train.dtype=%s \"train.stages=%s\"",
                 families[i], optimizers[i % 5], i % 2 ? "bf16" : "fp32", stages);
        if (run("train %s --fresh --out whole", settings)) fail_msg("%s: %s", settings, err);
        assert_arena_as_planned(settings);
        for (int k = 1; k <= 3; k++)
            if (run("train %s --out parts%d train.max_seconds=none", settings, i) &&
                !strstr(err, "complete"))
                fail_msg("%s: %s", settings, err);
        char parts[64];
        snprintf(parts, sizeof parts, "parts%d/model.safetensors", i);
        assert_same_file("whole/model.safetensors", parts);
        if (run("plan %s --out plan.json", settings) ||
            run("verify plan-1.json plan-2.json plan-3.json"))
            fail_msg("%s: %s", settings, err);
    }
}

static void stages_read_different_texts(void **state)
{
    (void)state;
    prepare();
    must("help keys");
    put("second text.txt", out);
    put("mixed.yaml",
        "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32}\n"
        "train:\n  batch: 4\n  seq_len: 16\n  steps: 12\n  checkpoint_every: 1\n  stages:\n"
        "    - {data: \"text.txt weight=3; second text.txt weight=1\"}\n"
        "    - {at_step: 5, seq_len: 12, data: second text.txt}\n"
        "    - {at_step: 9, data: \"second text.txt weight=1; text.txt weight=1\"}\n");
    must("train mixed.yaml --out whole");
    assert_non_null(strstr(out, "second text.txt  "));
    assert_arena_as_planned("mixed.yaml");
    const useconds_t wait = 1000;
    for (int i = 0; i < 4; i++)
        (void)run_acting("train mixed.yaml --out killed", "step", kill_after, &wait);
    must("train mixed.yaml --out killed");
    assert_same_file("whole/model.safetensors", "killed/model.safetensors");
    assert_int_equal(run("train mixed.yaml data.train=text.txt --out other"), HR_USAGE);
    assert_says("leave data.train out");
    must("data inspect mixed.yaml --out mixed"); /* no share of a run whose stages have their own */
    assert_null(strstr(out, "epochs in this run"));
    must("data inspect mixed.yaml --out mixed --stage 1");
    assert_non_null(strstr(out, "epochs in this run"));
    assert_int_equal(run("train mixed.yaml \"train.stages=data=text.txt; at_step=3\" --out other"),
                     HR_USAGE);
    assert_says("stage 2: has no data, and stage 1 has");
}

/* An evaluation has the text of the recipe's batches, to the end of the last window, whatever the
 * micro-batch: of 48 tokens, 3 windows of 20, and 7 of 7. */
static void an_evaluation_is_of_the_same_text_in_any_micro_batch(void **state)
{
    static const struct {
        const char *stage;
        int micro, tokens;
    } cases[] = { { "seq_len=20 batch=12", 12, 60 },
                  { "seq_len=20 batch=12", 2, 60 },
                  { "seq_len=7 batch=10", 10, 49 },
                  { "seq_len=7 batch=10", 1, 49 } };
    char losses[4][32];
    (void)state;
    prepare();
    for (int i = 0; i < 4; i++) {
        if (run("train tiny.yaml data.train=text.txt data.valid=text.txt train.batch=3 "
                "train.eval_every=3 train.eval_batches=1 \"train.stages=%s\" memory.micro_batch=%d "
                "--fresh --out run",
                cases[i].stage, cases[i].micro))
            fail_msg("%s", err);
        const char *line = strstr(out, "validation loss ");
        int tokens = 0;
        assert_non_null(line);
        assert_int_equal(sscanf(line, "validation loss %31s over %d", losses[i], &tokens), 2);
        assert_int_equal(tokens, cases[i].tokens);
        if (i % 2) assert_string_equal(losses[i], losses[i - 1]);
    }
}

/* Batches that are skipped do not leave the last steps without text. */
static void a_run_that_rewinds_has_text_to_the_end(void **state)
{
    static char text[PROGRAM_TEXT_BYTES];
    (void)state;
    prepare();
    put_tiny_and_blot();
    must("train tiny.yaml data.train=text.txt --out run train.steps=auto train.epochs=1 "
         "train.schedule.kind=constant train.optimizer.lr=0.01 train.checkpoint_every=10 "
         "train.detect_spikes=true train.bad_steps=rewind train.bad_steps_max=1000 train.seed=11 "
         "\"train.stages=seq_len=16; at_step=150 seq_len=32\"");
    assert_non_null(strstr(err, "the batch is skipped"));
    get("run/metrics.jsonl", text);
    assert_non_null(strstr(text, "\"loss\":"));
    assert_null(strstr(text, "\"loss\":null"));
}

/* A checkpoint that is due right before a switch has every file: its writer reads the program. */
static void checkpoints_before_switches_are_whole(void **state)
{
    enum { STAGES = 20 };
    char list[1024];
    static char text[PROGRAM_TEXT_BYTES];
    int length = snprintf(list, sizeof list, "seq_len=4");
    (void)state;
    prepare();
    for (int i = 1; i < STAGES; i++)
        length += snprintf(list + length, sizeof list - (size_t)length, "; at_step=%d seq_len=%d",
                           i, 4 + i % 5);
    if (run("train tiny.yaml data.train=text.txt model.n_layers=24 train.steps=%d "
            "train.checkpoint_every=1 train.keep_last=%d train.ema_decay=0.9 --out run "
            "\"train.stages=%s\"",
            STAGES, STAGES, list))
        fail_msg("%s", err);
    assert_int_equal(system("cat run/checkpoints/*/manifest.json > manifests"), 0);
    get("manifests", text);
    static const char *const files[] = { "\"moment_1.safetensors\"", "\"moment_2.safetensors\"" };
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        int count = 0;
        for (const char *at = text; (at = strstr(at, files[f])); at++) count++;
        if (count < STAGES - 1) fail_msg("%s: %d times", files[f], count);
    }
}

static void a_changed_list_goes_on_where_it_is_allowed(void **state)
{
    (void)state;
    prepare();
    put("a.txt", "a text for two windows of eight tokens and for some more\n");
    static const char first[] =
        "train tiny.yaml train.checkpoint_every=1 --out run 'train.stages=data=\"text.txt "
        "weight=3; "
        "a.txt weight=1\" seq_len=8; at_step=%d seq_len=12 data=a.txt' train.steps=%d";
    if (run(first, 2, 4)) fail_msg("%s", err);
    assert_int_equal(run(first, 3, 6), HR_USAGE);
    assert_says("stage 2 was \"at_step=2 seq_len=12 data=a.txt\" and is \"at_step=3 ");
    char allowed[512];
    snprintf(allowed, sizeof allowed, "%s --allow-change train.stages", first);
    if (run(allowed, 5, 8)) fail_msg("%s", err);
    assert_non_null(strstr(out, "stage 2 of 2"));
}

static void what_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *settings, *sentence;
        int code;
    } wrong[] = {
        { "\"train.stages=seq_len=8; at_step=5 seq_len=9; at_step=5 seq_len=10\"",
          "stage 3: begins at step 5, and the stage before at step 5: stages must rise", HR_USAGE },
        { "\"train.stages=seq_len=8; seq_len=9\"", "stage 2: gives neither at_step nor at_tokens",
          HR_USAGE },
        { "\"train.stages=at_step=2\"", "the first stage begins at step 0, not at step 2",
          HR_USAGE },
        { "\"train.stages=; \"", "is empty", HR_USAGE },
        { "\"train.stages=seq_len=8; at_step=50 seq_len=9\"",
          "stage 2: begins at step 50, and the run ends after train.steps=40", HR_USAGE },
        { "\"train.stages=batch=6 micro_batch=4\"", "memory.micro_batch 4 does not divide",
          HR_USAGE },
        { "\"train.stages=lr_scale=-0.5\"", "lr_scale takes a number from 0", HR_USAGE },
        { "\"train.stages=lr_scale=nan\"", "lr_scale takes a number from 0", HR_USAGE },
        { "\"train.stages=steps=4 batch=2\"",
          "use at_step: a stage lasts until the next one begins", HR_USAGE },
        { "\"train.stages=seq_len=8; at_step=3 data=text.txt\"",
          "stage 1: has no data, and stage 2 has", HR_USAGE },
        { "\"train.stages=optimizer=sgd\"", "use train.optimizer.kind\n", HR_USAGE },
        { "\"train.stages=batch_size=4\"", "\"batch_size\" is not a key of a stage; use batch",
          HR_USAGE },
        { "\"train.stages=seq_len=4 seq_len=5\"", "seq_len is given twice", HR_USAGE },
        { "\"train.stages=freeze=*\"", "freezes all", HR_USAGE },
        { "model.family=gpt2 model.n_kv_heads=auto model.embedding_rank=auto model.positions=16 "
          "\"train.stages=seq_len=8; at_step=9 seq_len=17\"",
          "stage 2: train.seq_len 17 is more than model.positions 16", HR_USAGE },
        { "\"train.stages=seq_len=8; at_step=9 seq_len=100000\" memory.budget=40MiB",
          "stage 2 of 2, 4 x 100000 tokens from step 9: the run needs at least", HR_NO_FIT },
        { "\"train.stages=seq_len=8; at_step=9 seq_len=120000\"",
          "one window of a stage with seq_len=120000", HR_CORRUPT },
        { "train.steps=auto \"train.stages=seq_len=8; at_step=9999 seq_len=16\"",
          "stage 2: begins at step 9999, and train.epochs=1 has", HR_USAGE },
        { "train.epochs=3", "which counts; give train.steps=auto, too", HR_USAGE },
        { "train.stages= train.epochs=3", "the recipe has train.steps ", HR_USAGE },
        { "\"train.stages=seq_len=8..64 over many steps\"", "is not a range", HR_USAGE },
        { "\"train.stages=clip=1 seq_len=8..64 over 9 steps by doubling\"", "stands alone",
          HR_USAGE },
        { "\"train.stages=seq_len=8..64 over 30 steps by doubling keeping tokens more\"",
          "is not a range", HR_USAGE },
        { "\"train.stages=data=1..a.txt\" data.train=", "1..a.txt", HR_USAGE },
        { "memory.strategy=strategy.yaml", "memory.strategy is for one length and batch",
          HR_USAGE },
    };
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int code = run("train ten.yaml --out no %s", wrong[i].settings);
        if (code != wrong[i].code) fail_msg("%s: %d, %s", wrong[i].settings, code, err);
        assert_says(wrong[i].sentence);
    }
    assert_int_equal(run("plan ten.yaml memory.budget=21MiB"), HR_NO_FIT);
    assert_non_null(strstr(out, "needs most, and does not fit"));
    assert_non_null(strstr(out, "changes that make it fit"));
    assert_null(strstr(out, "\n  train.batch=")); /* each stage has its own */
    assert_null(strstr(out, "\n  train.seq_len="));
    must("train ten.yaml train.steps=37 --out changed");
    assert_int_equal(run("train ten.yaml --out changed \"train.stages=seq_len=4 batch=32\""),
                     HR_USAGE);
    assert_says("train.stages: stage 1 was \"seq_len=4 batch=32 lr_scale=0.3 clip=0.5\" and is "
                "\"seq_len=4 batch=32\"");
    assert_int_equal(run("plan ten.yaml --stage 11"), HR_USAGE);
    assert_says("there is no stage 11; train.stages has 10");
    assert_int_equal(run("train ten.yaml --stage 1 train.steps=1"), HR_OK);
    assert_non_null(strstr(out, "step 1/1 "));
    assert_int_equal(run("train ten.yaml --stage 2 train.steps=1"), HR_USAGE);
    assert_non_null(strstr(err, "and the run ends after train.steps=1"));
}

/* With the change another stage may need most. */
static void a_change_that_is_not_enough_has_the_bytes_of_all_stages(void **state)
{
    json_t *change;
    size_t i;
    (void)state;
    require_program();
    put_tiny_and_text();
    put("ramp.yaml", "model: {family: gpt_neox, d_model: 64, n_layers: 3, n_heads: 4, d_ff: 256, "
                     "vocab_size: 2048}\n"
                     "data: {train: text.txt, valid: text.txt}\n"
                     "train: {threads: 2, dtype: bf16, steps: 400, batch: 64, seq_len: 128, "
                     "stages: {batch: 16..64 over 100 steps by 16}}\n");
    assert_int_equal(run("plan ramp.yaml --budget 12MiB --json"), HR_NO_FIT);
    json_t *plan = out_json();
    json_t *list = json_object_get(json_object_get(plan, "why"), "not_enough");
    assert_true(json_array_size(list) > 10);
    json_array_foreach(list, i, change)
    {
        const char *what = json_string_value(json_object_get(change, "what"));
        const json_int_t said = json_integer_value(json_object_get(change, "process_bytes"));
        assert_int_equal(run("plan ramp.yaml %s --budget 12MiB --json", what), HR_NO_FIT);
        json_t *changed = out_json();
        const json_int_t least = json_integer_value(json_object_get(changed, "minimum_bytes"));
        json_decref(changed);
        if (least != said) fail_msg("%s: %lld, not %lld", what, (long long)said, (long long)least);
    }
    json_decref(plan);
}

/* The short form is the list that it stands for. */
static void a_range_is_a_list(void **state)
{
    static char list[PROGRAM_TEXT_BYTES];
    (void)state;
    prepare();
    must("plan ten.yaml \"train.stages=seq_len: 8..64 over 30 steps by doubling keeping tokens\" "
         "train.batch=2 --json");
    strcpy(list, out);
    must(
        "plan ten.yaml \"train.stages=at_step=0 seq_len=8 batch=16; at_step=10 seq_len=16 batch=8; "
        "at_step=20 seq_len=32 batch=4; at_step=30 seq_len=64 batch=2\" train.batch=2 --json");
    assert_string_equal(list, out);
    put("range.yaml", "train:\n  steps: 90\n  batch: 3\n"
                      "  stages: {batch: 4..16 over 60 steps by 4}\n");
    must("plan range.yaml --json");
    json_t *plan = out_json(), *stages = json_object_get(plan, "stages");
    assert_int_equal(json_array_size(stages), 4);
    for (size_t i = 0; i < 4; i++) {
        json_t *stage = json_array_get(stages, i);
        assert_int_equal(json_integer_value(json_object_get(stage, "batch")), 4 * (i + 1));
        assert_int_equal(json_integer_value(json_object_get(stage, "first_step")), 20 * i);
    }
    json_decref(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_run_killed_forty_times_has_the_same_bits),
        IN_A_FOLDER(every_strategy_has_the_same_bits),
        IN_A_FOLDER(the_plans_of_a_run_are_judged_together),
        IN_A_FOLDER(a_pass_through_all_stages_uses_every_token_once),
        IN_A_FOLDER(families_and_optimizers_cross_a_switch),
        IN_A_FOLDER(stages_read_different_texts),
        IN_A_FOLDER(an_evaluation_is_of_the_same_text_in_any_micro_batch),
        IN_A_FOLDER(a_run_that_rewinds_has_text_to_the_end),
        IN_A_FOLDER(checkpoints_before_switches_are_whole),
        IN_A_FOLDER(a_changed_list_goes_on_where_it_is_allowed),
        IN_A_FOLDER(a_change_that_is_not_enough_has_the_bytes_of_all_stages),
        IN_A_FOLDER(what_cannot_be_is_refused),
        IN_A_FOLDER(a_range_is_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
