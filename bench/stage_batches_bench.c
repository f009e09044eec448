/* SPDX-License-Identifier: Apache-2.0 */
/* stage_batches_bench RECIPE SHARD STEPS [KEY=VALUE...]: writes the batches of the first steps of a
 * run of stages to standard output: for each step its batch and length as int32, then ids and
 * targets [batch, length] as int32. bench/curriculum --compare gives them to PyTorch. */
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "headroom/stages.h"
#include "text/batch.h"
#include "text/cursor.h"

static int fail(const hr_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

static int write_step(hr_batches *batches, const hr_stage *stage, int64_t step, hr_error *err)
{
    const int64_t count = stage->batch * stage->seq_len;
    const int32_t shape[] = { (int32_t)stage->batch, (int32_t)stage->seq_len };
    int32_t *ids = malloc((size_t)count * sizeof *ids);
    int32_t *targets = malloc((size_t)count * sizeof *targets);
    int64_t filled;
    if (!ids || !targets) return fail(&(hr_error){ .message = "out of memory" });
    if (hr_batches_fill(batches, step, 0, stage->batch, ids, targets, &filled, err) != HR_OK)
        return fail(err);
    fwrite(shape, sizeof shape, 1, stdout);
    fwrite(ids, sizeof *ids, (size_t)count, stdout);
    fwrite(targets, sizeof *targets, (size_t)count, stdout);
    free(ids);
    free(targets);
    return 0;
}

int main(int argc, char **argv)
{
    hr_config config;
    hr_error err;
    hr_stages stages;
    hr_batches *batches = NULL;
    hr_batch_cursor cursor = { { 0 } };
    int64_t lengths[HR_STAGES_MAX], current = -1;
    if (argc < 4) {
        fprintf(stderr, "usage: %s RECIPE SHARD STEPS [KEY=VALUE...]\n", argv[0]);
        return 2;
    }
    hr_config_default(&config);
    if (hr_config_read(&config, argv[1], &err) != HR_OK) return fail(&err);
    for (int i = 4; i < argc; i++)
        if (hr_config_set_word(&config, argv[i], &err) != HR_OK) return fail(&err);
    if (hr_config_stages(&config, &stages, &err) != HR_OK) return fail(&err);
    if (!stages.count) return fail(&(hr_error){ .message = "the recipe has no stages" });
    for (int32_t i = 0; i < stages.count; i++) lengths[i] = stages.at[i].seq_len;
    const hr_batch_desc desc = { .shard = argv[2],
                                 .name = argv[2],
                                 .vocab_size = config.model.vocab_size,
                                 .T = stages.at[0].seq_len,
                                 .batch = stages.at[0].batch,
                                 .training = true,
                                 .seed = (uint64_t)config.train.seed,
                                 .unit = hr_passes_unit(lengths, stages.count),
                                 .longest = stages.longest };
    void *memory = aligned_alloc(64, (size_t)hr_batches_bytes(1));
    if (!memory || hr_batches_open(&batches, memory, &desc, &err) != HR_OK) return fail(&err);
    for (int64_t step = 0, steps = strtoll(argv[3], NULL, 10); step < steps; step++) {
        const int32_t index = hr_stages_find(&stages, step);
        const hr_stage *stage = &stages.at[index];
        const hr_batch_stage of = { .T = stage->seq_len, .batch = stage->batch, .first = step };
        if (index != current && step) cursor = hr_batches_cursor(batches, step);
        if (index != current) hr_batches_enter(batches, &of, &cursor, 0);
        current = index;
        if (write_step(batches, stage, step, &err)) return 1;
    }
    hr_batches_close(&batches);
    free(memory);
    return 0;
}
