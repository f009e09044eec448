/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/plan.h - will it fit, what eats it, what to change. */
#ifndef HEADROOM_PLAN_H
#define HEADROOM_PLAN_H

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_STRATEGY_TEXT_BYTES = 8192, HR_TIMES_TEXT_BYTES = 160 };

/* What a run with train.out takes on disks. In bytes, in blocks of 4 KiB as file systems give them,
 * unless it says otherwise. */
typedef struct {
    int64_t tensor_bytes; /* of one checkpoint: its files of weights, moments and average, exact */
    int64_t checkpoint_bytes; /* of one checkpoint, with its small files, at most */
    int64_t checkpoints; /* count that exists at once, at most: those kept and one being written */
    int64_t every_steps; /* train.keep_every, where the number of steps is not known: one more for
                            each so many steps; else 0 */
    int64_t log_bytes;   /* metrics.jsonl and TensorBoard, at most; of one step where the number of
                            steps is not known */
    int64_t steps;       /* of the run; 0: not known before the text is read */
    int64_t shard_bytes; /* token shards of the texts, at most; -1: not known before they are read.
                            They lie in data.cache, or without that in train.out */
    int64_t bytes;       /* checkpoints and log together, as far as they are known */
} hr_plan_disk;

/* What a plan comes to. All in bytes unless it says otherwise. */
typedef struct {
    bool fits;
    int64_t process_bytes; /* of the plan chosen; of the smallest one when nothing fits */
    int64_t minimum_bytes; /* process bytes of the smallest plan of all */
    int64_t
        available_bytes;   /* the budget; or what the machine has, or has left where that counts */
    int64_t machine_bytes; /* without a budget: what the machine has, or its cgroup; else 0 */
    int64_t memory_bytes;  /* memory of this machine, or of its cgroup, whatever the budget */
    int64_t arena_bytes, floor_bytes;
    int64_t bound_bytes;  /* no arena of this plan is smaller, as far as that is proven */
    hr_plan_disk disk;    /* written by hr_plan_make and hr_train */
    int64_t kernel_bytes; /* page tables and kernel: what a cgroup is charged beside the process */
    int64_t parameters, trained_parameters; /* count */
    int64_t micro_batch;                    /* sequences */
    int64_t loss_chunk;                     /* tokens */
    int64_t flops_per_token; /* of training: 6 x weights in products + attention of kept blocks */
    double step_seconds;     /* of training, predicted */
    double stop_seconds;     /* from a signal to the exit, at worst */
    double disk_rate;        /* bytes a second, that it is reckoned with */
    double bound_seconds;    /* no plan of the space is faster in the bytes available; 0: of
                              that nothing is known; -1: others were not looked at */
    int32_t threads;
    char rung[16];                         /* kernels: ref, avx2, avx512, avx512bf16, amx */
    char packing[16];                      /* at floor, proven, open */
    char times[HR_TIMES_TEXT_BYTES];       /* where predictions come from */
    char strategy[HR_STRATEGY_TEXT_BYTES]; /* YAML, as memory.strategy takes it */
} hr_plan_answer;

/* ---- why: what the text for people shows, for programs */

enum {
    HR_PLAN_NAME_BYTES = 96,
    HR_PLAN_LINES_MOST = 8,
    HR_PLAN_PHASES_MOST = 8,
    HR_PLAN_PARTS_MOST = 24,
    HR_PLAN_LARGEST_MOST = 8,
    HR_PLAN_CHANGES_MOST = 12,
    HR_PLAN_CURVE_MOST = 64
};

/* Some bytes: a line of the process, a phase, a component at the peak, a tensor. */
typedef struct {
    char name[HR_PLAN_NAME_BYTES];
    char why[HR_PLAN_NAME_BYTES]; /* "kept for the backward pass"; may be empty */
    int64_t bytes;
} hr_plan_part;

/* Something to change, tried out: every number is that of a plan that was built. */
typedef struct {
    /* To be typed, "model.d_ff=256", two with a blank between; of a removal in words, "outputs of
     * norms again in every layer". */
    char what[HR_PLAN_NAME_BYTES];
    char price[HR_PLAN_NAME_BYTES]; /* what changes beside time, in words; may be empty */
    int64_t bytes;                  /* process bytes with the change; of a refusal the least */
    int64_t gained_bytes;           /* how many less than without */
    double seconds_lost; /* of a step, predicted: against the fastest plan without any budget, of a
                            removal against this plan; 0 where the mathematics changes */
    bool changes_mathematics;
} hr_plan_change;

typedef struct {
    int32_t step_count, peak_step;
    char peak[HR_PLAN_NAME_BYTES];            /* "layer 3 backward, MLP down-projection" */
    hr_plan_part lines[HR_PLAN_LINES_MOST];   /* of the process; together process_bytes */
    hr_plan_part phases[HR_PLAN_PHASES_MOST]; /* most bytes alive in each; the most: floor_bytes */
    hr_plan_part parts[HR_PLAN_PARTS_MOST];   /* alive at the peak; together floor_bytes */
    hr_plan_part largest[HR_PLAN_LARGEST_MOST]; /* tensors alive at the peak, the largest first */
    hr_plan_part alone; /* of a refusal: what exceeds the bytes available by itself, whatever the
                           strategy; 0 bytes: nothing does */
    hr_plan_change removals[HR_PLAN_CHANGES_MOST]; /* of a plan: what would take bytes from it at
                                                      what time, the cheapest byte first */
    hr_plan_change changes[HR_PLAN_CHANGES_MOST]; /* of a refusal: what would fit, cheapest first */
    int32_t line_count, phase_count, part_count, largest_count, removal_count, change_count;
    int64_t curve[HR_PLAN_CURVE_MOST]; /* most bytes alive in equal stretches of a training step */
    int32_t curve_count, curve_peak;   /* curve_peak: the stretch with the most */
} hr_plan_details;

/* Called again and again while plans are searched, a few times a second. It must return soon. */
typedef struct {
    void (*search)(void *context); /* null: none */
    void *context;
} hr_plan_progress;

/* What else to write. Everything may be left null. */
typedef struct {
    const char *file; /* the whole plan as JSON: docs/plan-file.md */
    char *text;       /* [text_bytes] out: the plan, or the refusal, for people */
    int64_t text_bytes;
    bool program;             /* text is the step program instead */
    bool colour;              /* text has escapes for colour: it goes to a terminal */
    bool blocks;              /* text has block characters: what shows it takes UTF-8 */
    hr_plan_details *details; /* out: why, for programs */
    const char *calibrations; /* directory of calibrations; null: times are guessed */
    hr_plan_progress progress;
} hr_plan_outputs;

/* Plans a run of this config.
 *
 * Errors   NO_FIT  says bytes needed and available; `answer`, text and details, with what would
 *                  make it fit, are written all the same
 *          USAGE   the config contradicts itself. FAILURE  the file cannot be written.
 * Threads  one call at a time in a process: it measures the process. */
HR_MUST_CHECK hr_status hr_plan_make(const hr_config *config, const hr_plan_outputs *outputs,
                                     hr_plan_answer *answer, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
