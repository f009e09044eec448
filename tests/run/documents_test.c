/* SPDX-License-Identifier: Apache-2.0 */
/* documents_test.c - data.documents=separate in a whole run: windows of several documents give the
 * losses of windows of one document each, and no token depends on an earlier document. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/family.h"
#include "support/child.h"
#include "support/folder.h"

/* Documents of 32 bytes, in JSON Lines. */
enum { TOKENS = 32, DOCUMENTS = 17, STEPS = 4 };

static hr_folder folder;

static void write_documents(const char *name, uint64_t seed)
{
    static char text[DOCUMENTS * (TOKENS + 32)];
    int64_t bytes = 0;
    for (int64_t i = 0; i < DOCUMENTS; i++) {
        bytes += sprintf(text + bytes, "{\"text\": \"");
        for (int64_t t = 0; t < TOKENS; t++)
            text[bytes++] = (char)('a' + hr_random_mix(seed + (uint64_t)(i * TOKENS + t)) % 20);
        bytes += sprintf(text + bytes, "\"}\n");
    }
    hr_folder_write(hr_folder_path(&folder, name), text, bytes);
}

static int make_texts(void **state)
{
    (void)state;
    folder = hr_folder_open();
    write_documents("train.jsonl", 1);
    write_documents("valid.jsonl", 2);
    return 0;
}

static int drop_texts(void **state)
{
    (void)state;
    hr_folder_close(&folder);
    return 0;
}

/* All documents except the last in one batch, `together` documents per window. */
static hr_config config_of(int32_t family, int64_t together, int32_t documents)
{
    hr_config config;
    hr_config_default(&config);
    config.model.family = family;
    config.model.d_model = 32;
    config.model.n_layers = 2;
    config.model.n_heads = 2;
    config.model.d_ff = 64;
    if (hr_family_of(&config)->traits & HR_LEARNS_POSITIONS) config.model.positions = 8 * TOKENS;
    config.data.documents = documents;
    snprintf(config.data.document_end, sizeof config.data.document_end, "none");
    config.train.batch = (DOCUMENTS - 1) / together;
    config.train.seq_len = together * TOKENS;
    config.train.steps = STEPS;
    config.train.threads = 2;
    config.train.optimizer.lr = 0.01;
    snprintf(config.data.train, sizeof config.data.train, "%s/train.jsonl", folder.path);
    snprintf(config.data.valid, sizeof config.data.valid, "%s/valid.jsonl", folder.path);
    snprintf(config.data.cache, sizeof config.data.cache, "%s", folder.path);
    return config;
}

static child_outcome outcome_of(const hr_config *config)
{
    const child_outcome *run = child_run(config, (child_wishes){ 0 });
    if (run->status != HR_OK) fail_msg("%s", run->err.message);
    return *run;
}

/* Compares losses with a tolerance: the order of the documents in a batch differs, and so does that
 * of the sums. */
static void windows_of_several_documents_train_like_windows_of_one(void **state)
{
    (void)state;
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        hr_config one = config_of(family, 1, HR_DOCUMENTS_SEPARATE);
        if (hr_family_of(&one)->traits & HR_HAS_STATES) continue;
        const child_outcome alone = outcome_of(&one);
        for (int64_t together = 2; together <= 8; together *= 2) {
            hr_config several = config_of(family, together, HR_DOCUMENTS_SEPARATE);
            const child_outcome apart = outcome_of(&several);
            for (int32_t i = 0; i < STEPS; i++)
                if (!(fabs(apart.steps[i].loss - alone.steps[i].loss) < 1e-5))
                    fail_msg("%s, %d documents in a window: %.9g in step %d, alone %.9g",
                             hr_family_of(&one)->name, (int)together, apart.steps[i].loss, i + 1,
                             alone.steps[i].loss);
            assert_true(fabs(apart.result.valid_loss - alone.result.valid_loss) < 1e-5);
            several.data.documents = HR_DOCUMENTS_JOINED;
            const child_outcome joined = outcome_of(&several);
            double most = 0;
            for (int32_t i = 0; i < STEPS; i++)
                most = fmax(most, fabs(joined.steps[i].loss - alone.steps[i].loss));
            assert_true(most > 1e-3);
        }
        print_message("%s: %.6f to %.6f\n", hr_family_of(&one)->name, alone.steps[0].loss,
                      alone.steps[STEPS - 1].loss);
    }
}

static void recurrent_models_refuse_separate_documents(void **state)
{
    (void)state;
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        const hr_config config = config_of(family, 2, HR_DOCUMENTS_SEPARATE);
        hr_error err;
        if (!(hr_family_of(&config)->traits & HR_HAS_STATES)) continue;
        assert_int_equal(hr_config_check(&config, &err), HR_USAGE);
        assert_non_null(strstr(err.message, "data.documents must be joined"));
    }
}

int main(int argc, char **argv)
{
    if (argc == 3) return child_main(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_several_documents_train_like_windows_of_one),
        cmocka_unit_test(recurrent_models_refuse_separate_documents),
    };
    return cmocka_run_group_tests(tests, make_texts, drop_texts);
}
