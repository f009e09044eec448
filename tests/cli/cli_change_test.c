/* SPDX-License-Identifier: Apache-2.0 */
/* cli_change_test.c - resuming a run with a changed recipe: accepted changes, refused changes with
 * the command that allows them, and model.from together with a preset. */
#include "headroom/status.h"
#include "support/program.h"

static const char constant[] = "train tiny.yaml train.schedule.kind=constant data.train=text.txt";

static void shell(const char *command)
{
    assert_int_equal(system(command), 0);
}

static void prepare(void)
{
    require_program();
    put_tiny_and_text();
}

static void more_steps_of_a_constant_schedule_equal_the_longer_run(void **state)
{
    (void)state;
    prepare();
    assert_int_equal(run("%s --out whole train.steps=8", constant), HR_OK);
    assert_int_equal(run("%s --out run train.steps=5", constant), HR_OK);
    assert_int_equal(run("%s --out run train.steps=8", constant), HR_OK);
    assert_string_equal(err, "headroom: train.steps was \"5\" and is \"8\" (allowed)\n");
    assert_non_null(strstr(out, "step 8/8"));
    shell("cmp whole/model.safetensors run/model.safetensors");
}

static void a_schedule_of_another_length_is_reported(void **state)
{
    (void)state;
    prepare();
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run"), HR_OK);
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run train.steps=6"), HR_OK);
    assert_non_null(strstr(err, "the run has 6 steps, and was complete with 3: from step 4 on the "
                                "learning rate follows the longer schedule, with 0.00055\n"));
    assert_non_null(strstr(out, "step 6/6"));
}

static void a_finished_run_with_fewer_steps_is_complete(void **state)
{
    (void)state;
    prepare();
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run"), HR_OK);
    for (int32_t steps = 1; steps <= 3; steps++) {
        assert_int_equal(run("train tiny.yaml data.train=text.txt --out run train.steps=%d", steps),
                         HR_OK);
        assert_non_null(
            strstr(out, "run  the run is complete, at step 3; use --fresh to start over"));
        assert_null(strstr(out, "plan   ")); /* nothing is planned or loaded */
    }
    /* Other changes are still compared with what the run has. */
    assert_int_equal(run("train tiny.yaml data.train=tiny.yaml --out run train.steps=2"), HR_USAGE);
    assert_non_null(strstr(err, "data.train: the text has changed since the run began"));
}

static void a_text_is_identified_by_its_content_and_not_by_its_path(void **state)
{
    static const char words[] = "train tiny.yaml --out run train.steps=6";
    (void)state;
    prepare();
    shell("mkdir there && cp text.txt there/moved.txt && cp text.txt second.txt && "
          "tail -c 3000 text.txt >other.txt && cp other.txt there/other.txt");
    assert_int_equal(run("train tiny.yaml data.train=text.txt data.valid=other.txt --out run"),
                     HR_OK);
    assert_int_equal(run("%s data.train=there/moved.txt data.valid=there/other.txt", words), HR_OK);
    assert_null(strstr(err, "data."));
    assert_int_equal(run("%s data.train=other.txt data.valid=text.txt", words), HR_USAGE);
    assert_non_null(strstr(err, "data.train: the text has changed since the run began"));
    assert_non_null(strstr(err, "--allow-change data.valid --allow-change data.train\n"));
    assert_int_equal(run("%s data.train=other.txt data.valid=there/other.txt train.seed=7", words),
                     HR_USAGE);
    assert_non_null(strstr(err, "headroom: train.seed was \"0\" and is \"7\"\n"
                                "headroom: data.train was \"there/moved.txt\" and is "
                                "\"other.txt\" (compared by content)\n"));
    assert_non_null(strstr(err, "1 change is not allowed; "));
    assert_int_equal(run("%s data.train=text.txt", words), HR_USAGE);
    assert_non_null(strstr(err, "data.valid was \"there/other.txt\" and is \"\"\n"));
}

static void one_command_allows_all_that_a_change_needs(void **state)
{
    static const char words[] = "train tiny.yaml data.train=text.txt --out run train.steps=6";
    (void)state;
    prepare();
    assert_int_equal(run("%s data.valid=10%%", words), HR_OK);
    assert_int_equal(run("%s data.valid= train.seed=7", words), HR_USAGE);
    assert_non_null(strstr(err, "--allow-change data.valid --allow-change data.train "
                                "--allow-change train.seed\n"));
    assert_int_equal(run("%s data.valid= train.seed=7 train.steps=8 --allow-change data.valid "
                         "--allow-change data.train --allow-change train.seed",
                         words),
                     HR_OK);
}

static void a_tokenizer_is_identified_by_its_content(void **state)
{
    static const char words[] =
        "train tiny.yaml data.train=text.txt model.vocab_size=300 --out run";
    (void)state;
    prepare();
    assert_int_equal(run("tokenize train text.txt --out a --vocab-size 300"), HR_OK);
    assert_int_equal(run("tokenize train text.txt --out b --vocab-size 280"), HR_OK);
    shell("cp -r a copy");
    assert_int_equal(run("%s data.tokenizer=a", words), HR_OK);
    assert_int_equal(run("%s data.tokenizer=copy train.steps=6", words), HR_OK);
    assert_int_equal(run("%s data.tokenizer=b train.steps=8", words), HR_USAGE);
    assert_non_null(strstr(err, "data.tokenizer: the tokenizer has changed since the run began"));
    assert_null(strstr(err, "--allow-change data.train"));
    assert_int_equal(run("%s data.tokenizer=b train.steps=8 --allow-change data.tokenizer", words),
                     HR_OK);
}

static void the_weights_of_a_mixture_are_not_part_of_the_path(void **state)
{
    (void)state;
    prepare();
    shell("tail -c 3000 text.txt >other.txt && cp other.txt copy.txt");
    static const char words[] = "train tiny.yaml --out run train.steps=6";
    assert_int_equal(run("train tiny.yaml --out run "
                         "data.train='text.txt weight=0.75; other.txt weight=0.25'"),
                     HR_OK);
    assert_int_equal(run("%s data.train='text.txt weight=0.5; other.txt weight=0.5'", words),
                     HR_USAGE);
    assert_non_null(strstr(err, "1 change is not allowed; allow it with --allow-change"));
    assert_int_equal(run("%s data.train='text.txt weight=3; other.txt weight=1'", words), HR_OK);
    assert_int_equal(run("%s data.train='text.txt weight=0.75; copy.txt weight=0.25'", words),
                     HR_OK);
}

/* The error ends with the command on a line of its own. */
static void a_refused_change_prints_the_command_that_allows_it(void **state)
{
    (void)state;
    prepare();
    shell("cp text.txt 'a \"b\" it'\\''s.txt'");
    const char *quoted = "'a \"b\" it'\\''s.txt'";
    assert_int_equal(run("train tiny.yaml data.train=%s --out run", quoted), HR_OK);
    assert_int_equal(run("train tiny.yaml --out=run data.train=%s train.steps=5 train.seed=7 "
                         "--metrics m.jsonl train.optimizer.lr=0.02 --allow-change train.seed "
                         "train.optimizer.weight_decay=0.5",
                         quoted),
                     HR_USAGE);
    assert_non_null(
        strstr(err, "2 changes are not allowed; allow each with --allow-change, use --fresh to "
                    "start over, or give another --out\n"));
    const char *told = strstr(err, "headroom: to go on with these changes, type:\n  ");
    assert_non_null(told);
    const char *command = strchr(told, '\n') + 3;
    assert_non_null(strstr(command, "'data.train=a \"b\" it'\\''s.txt'"));
    assert_int_equal(system(command), HR_OK);
    get("m.jsonl", out);
    assert_non_null(strstr(out, "\"step\":5,"));
}

/* No --allow-change makes the checkpoint readable, so none is offered. */
static void a_change_that_no_checkpoint_allows_is_refused_with_all_keys(void **state)
{
    static const struct {
        const char *words, *said, *because;
    } cases[] = {
        { "model.d_ff=64 train.seed=7 train.steps=5",
          "headroom: model.d_ff was \"32\" and is \"64\"\n"
          "headroom: train.steps was \"3\" and is \"5\" (allowed)\n"
          "headroom: train.seed was \"0\" and is \"7\"\n",
          "its weights have another shape or format" },
        { "model.d_ff=64 --allow-change model.d_ff",
          "headroom: model.d_ff was \"32\" and is \"64\" (allowed)\n",
          "its weights have another shape or format" },
        { "model.family=llama", "headroom: model.family was \"gpt_neox\" and is \"llama\"\n",
          "its weights have another shape or format" },
        { "train.freeze='*embed_in*'", "headroom: train.freeze was \"\" and is \"*embed_in*\"\n",
          "its optimizer states are of other parameters" },
    };
    (void)state;
    prepare();
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run"), HR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[1024];
        snprintf(expected, sizeof expected,
                 "%sheadroom: run has a run, at step 3, that cannot go on with this recipe: %s; "
                 "use --fresh to start over, or give another --out\n",
                 cases[i].said, cases[i].because);
        assert_int_equal(run("train tiny.yaml data.train=text.txt --out run %s", cases[i].words),
                         HR_USAGE);
        assert_string_equal(err, expected);
        assert_string_equal(out, "");
    }
    /* The same size under another value. */
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run model.positions=16 "
                         "train.steps=4 --allow-change model.positions"),
                     HR_OK);
}

/* What the new optimizer needs and the checkpoint does not have starts at zero; nothing that the
 * former one kept is taken for it. */
static void another_optimizer_starts_its_states_anew(void **state)
{
    static const char *const kinds[] = { "sgd", "lion", "adafactor", "adam", "adamw" };
    static const char *const said[] = {
        "the checkpoint has no momentum.safetensors: momentum starts at zero\n",
        "the checkpoint has no lion_momentum.safetensors: momentum starts at zero\n",
        "the checkpoint has no adafactor_rows.safetensors: rows starts at zero\n"
        "headroom: the checkpoint has no adafactor_columns.safetensors: columns starts at zero\n",
        "the checkpoint has no moment_1.safetensors: moment 1 starts at zero\n"
        "headroom: the checkpoint has no moment_2.safetensors: moment 2 starts at zero\n",
        NULL,
    };
    (void)state;
    prepare();
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run"), HR_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(run("train tiny.yaml data.train=text.txt --out run train.steps=%d "
                             "train.optimizer.kind=%s",
                             4 + i, kinds[i]),
                         HR_USAGE);
        assert_int_equal(run("train tiny.yaml data.train=text.txt --out run train.steps=%d "
                             "train.optimizer.kind=%s --allow-change train.optimizer.kind",
                             4 + i, kinds[i]),
                         HR_OK);
        if (said[i]) assert_non_null(strstr(err, said[i]));
        else assert_null(strstr(err, "at zero"));
    }
    assert_int_equal(access("run/checkpoints/step-000000000008/moment_2.safetensors", F_OK), 0);
    assert_int_equal(access("run/checkpoints/step-000000000008/momentum.safetensors", F_OK), -1);
}

/* Where all windows of a text are equal, a run goes on with another optimizer as a new run from its
 * weights begins: the number of an update counts from where the states start, and is saved. */
static void another_optimizer_counts_its_updates_from_its_first(void **state)
{
    static const char words[] = "train tiny.yaml data.train=same.txt data.cache=cache "
                                "train.schedule.kind=constant train.schedule.warmup_steps=0";
    static const char *const kinds[] = { "adamw", "adafactor", "muon" };
    (void)state;
    prepare();
    shell("head -c 900 /dev/zero | tr '\\0' a > same.txt");
    assert_int_equal(run("%s --out old train.optimizer.kind=sgd", words), HR_OK);
    for (int i = 0; i < 3; i++) {
        shell("rm -rf run new; cp -r old run");
        assert_int_equal(run("%s --out new model.from=old train.steps=2 train.optimizer.kind=%s",
                             words, kinds[i]),
                         HR_OK);
        for (int steps = 4; steps <= 5; steps++)
            assert_int_equal(run("%s --out run train.steps=%d train.optimizer.kind=%s "
                                 "--allow-change train.optimizer.kind",
                                 words, steps, kinds[i]),
                             HR_OK);
        shell("cmp run/model.safetensors new/model.safetensors");
        shell("grep -q '\"uncounted\":3' run/checkpoints/step-000000000005/manifest.json");
    }
}

/* A first moment that Adafactor gets later starts at zero; one that it loses is not read. */
static void a_first_moment_of_adafactor_may_come_and_go(void **state)
{
    static const char beta1[] = "train.optimizer.adafactor.beta1";
    static const char words[] = "train tiny.yaml data.train=text.txt --out run "
                                "train.optimizer.kind=adafactor";
    (void)state;
    prepare();
    assert_int_equal(run("%s", words), HR_OK);
    assert_int_equal(access("run/checkpoints/step-000000000003/adafactor_moment.safetensors", F_OK),
                     -1);
    assert_int_equal(run("%s train.steps=4 %s=0.9", words, beta1), HR_USAGE);
    assert_int_equal(run("%s train.steps=4 %s=0.9 --allow-change %s", words, beta1, beta1), HR_OK);
    assert_non_null(strstr(err, "the checkpoint has no adafactor_moment.safetensors: moment 1 "
                                "starts at zero\n"));
    assert_int_equal(access("run/checkpoints/step-000000000004/adafactor_moment.safetensors", F_OK),
                     0);
    assert_int_equal(run("%s train.steps=5 --allow-change %s", words, beta1), HR_OK);
    assert_null(strstr(err, "at zero"));
}

static void a_command_allows_as_many_changes_as_there_are(void **state)
{
    static const char words[] =
        "model.norm_eps=2e-5 model.rope_theta=20000 model.rotary_fraction=0.5 model.dropout=0.1 "
        "model.parallel_residual=false train.batch=2 train.seed=7 train.eval_every=2 "
        "train.schedule.warmup_steps=1 train.z_loss=0.1 train.checkpoint_every=2 "
        "train.optimizer.lr=0.1 "
        "train.optimizer.beta1=0.8 train.optimizer.beta2=0.9 train.optimizer.eps=1e-7 "
        "train.optimizer.weight_decay=0.2 train.optimizer.clip=2 train.schedule.kind=constant";
    (void)state;
    prepare();
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run"), HR_OK);
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run train.steps=4 %s", words),
                     HR_USAGE);
    assert_non_null(strstr(err, "18 changes are not allowed; "));
    const char *told = strstr(err, "headroom: to go on with these changes, type:\n  ");
    assert_non_null(told);
    assert_int_equal(system(strchr(told, '\n') + 3), HR_OK);
}

static void model_from_on_the_command_line_replaces_the_preset_model(void **state)
{
    static const char preset[] = "model: {d_model: 32, n_layers: 3, n_heads: 4, d_ff: 64}\n"
                                 "train: {batch: 2, seq_len: 16, steps: 2, threads: 1}\n";
    (void)state;
    prepare();
    put("preset.yaml", preset);
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run"), HR_OK);
    assert_int_equal(run("train preset.yaml model.from=run data.train=text.txt --out more"), HR_OK);
    assert_non_null(strstr(out, "plan   10,448 parameters"));
    assert_string_equal(err,
                        "headroom: using the model in run; the recipe's model.d_model=32 and 3 "
                        "other model keys are ignored\n");
    put("llama.yaml", "model: {family: llama}\ntrain: {batch: 2, seq_len: 16, steps: 2}\n");
    assert_int_equal(run("plan llama.yaml model.from=run"), HR_OK);
    assert_string_equal(err, "headroom: using the model in run; the recipe's model.family=llama is "
                             "ignored\n");
    assert_int_equal(run("plan tiny.yaml model.from=run"), HR_OK);
    assert_string_equal(err, "");
    /* Keys given beside it, or in the same recipe, must still agree. */
    assert_int_equal(run("plan preset.yaml model.from=run model.d_model=32"), HR_USAGE);
    assert_non_null(strstr(err, "model.d_model is 32, but the model in run has 16; remove the key, "
                                "or use model.from= to build a new model\n"));
    put("both.yaml", "model: {from: run, d_model: 32}\ntrain: {batch: 2, seq_len: 16, steps: 2}\n");
    assert_int_equal(run("plan both.yaml"), HR_USAGE);
    /* It can be unset. */
    assert_int_equal(run("plan both.yaml model.from= model.n_heads=2"), HR_OK);
    assert_int_equal(run("plan preset.yaml model.from=run model.from="), HR_OK);
    assert_null(strstr(out, "10448 parameters"));
}

static void a_resumed_run_does_not_need_its_initial_weights(void **state)
{
    (void)state;
    prepare();
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out first"), HR_OK);
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run model.from=first"), HR_OK);
    shell("mv first other");
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run train.steps=4 "
                         "model.positions=16 model.tie_embeddings=false"),
                     HR_OK);
    assert_non_null(strstr(out, "step 4/4"));
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run model.from=other "
                         "train.steps=4"),
                     HR_USAGE);
    assert_non_null(strstr(err, "model.from was \"\" and is \"other\"\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(more_steps_of_a_constant_schedule_equal_the_longer_run),
        IN_A_FOLDER(a_schedule_of_another_length_is_reported),
        IN_A_FOLDER(a_finished_run_with_fewer_steps_is_complete),
        IN_A_FOLDER(a_text_is_identified_by_its_content_and_not_by_its_path),
        IN_A_FOLDER(one_command_allows_all_that_a_change_needs),
        IN_A_FOLDER(a_tokenizer_is_identified_by_its_content),
        IN_A_FOLDER(the_weights_of_a_mixture_are_not_part_of_the_path),
        IN_A_FOLDER(a_refused_change_prints_the_command_that_allows_it),
        IN_A_FOLDER(a_change_that_no_checkpoint_allows_is_refused_with_all_keys),
        IN_A_FOLDER(another_optimizer_starts_its_states_anew),
        IN_A_FOLDER(another_optimizer_counts_its_updates_from_its_first),
        IN_A_FOLDER(a_first_moment_of_adafactor_may_come_and_go),
        IN_A_FOLDER(a_command_allows_as_many_changes_as_there_are),
        IN_A_FOLDER(model_from_on_the_command_line_replaces_the_preset_model),
        IN_A_FOLDER(a_resumed_run_does_not_need_its_initial_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
