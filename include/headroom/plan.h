/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/plan.h - plans the memory of a run: whether it fits, what uses the memory, and which
 * changes would help. */
#ifndef HEADROOM_PLAN_H
#define HEADROOM_PLAN_H

#include "headroom/config.h"
#include "headroom/devices.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_STRATEGY_TEXT_BYTES = 8192, HR_TIMES_TEXT_BYTES = 160 };

/* Disk space of a run with train.out: bytes, rounded up to 4 KiB blocks unless stated otherwise. */
typedef struct {
    /* exact size of the weight, moment and average files of one checkpoint */
    int64_t tensor_bytes;
    int64_t checkpoint_bytes; /* upper limit of one checkpoint with its small files */
    /* largest number of checkpoints at one time, including the one being written */
    int64_t checkpoints;
    /* train.keep_every if the number of steps is unknown: one more checkpoint per so many steps;
     * else 0 */
    int64_t every_steps;
    /* upper limit of metrics.jsonl and TensorBoard; per step if the number of steps is unknown */
    int64_t log_bytes;
    int64_t steps; /* of the run; 0: unknown before the text is read */
    /* upper limit of the token shards; -1: unknown before the texts are read. Shards are in
     * data.cache, or without it in train.out */
    int64_t shard_bytes;
    int64_t bytes; /* checkpoints and log together, as far as known; without the next three */
    /* of the file with the optimizer's moments while the run lasts; 0: they are in memory */
    int64_t moments_bytes;
    int64_t spilled_bytes; /* of layer inputs in the same file (memory.spill); 0: none are */
    /* of weights that stay in the files of model.from, which are there before; 0: none do */
    int64_t base_bytes;
} hr_plan_disk;

/* The device of a plan for a machine that is not here. */
typedef struct {
    char name[HR_DEVICE_NAME_BYTES]; /* empty: the plan is for this machine */
    char title[HR_DEVICE_TITLE_BYTES];
    bool is_card; /* process_bytes are those of the arena, in the memory of the card */
    bool own;     /* of a file of the user */
    int64_t usable_bytes, reserve_bytes;
    int64_t host_bytes, disk_bytes; /* 0: not given */
    /* of a card: process memory outside the arena, in host memory. Set by hr_plan_make */
    int64_t host_needed_bytes;
    /* the file of moments, and with train.out checkpoints, logs and shards. Set by hr_plan_make */
    int64_t disk_needed_bytes;
    /* For a refusal: the smallest device of the table that holds the smallest plan, of the same
     * group if there is one, and the bytes that it needs there. Empty: none. */
    char larger[HR_DEVICE_NAME_BYTES];
    hr_device_group larger_group;
    int64_t larger_bytes;
} hr_plan_device;

/* One stage of a plan (headroom/stages.h). */
typedef struct {
    bool fits;
    int64_t first_step, steps; /* steps 0: unknown, of the last one */
    int64_t seq_len, batch, micro_batch, loss_chunk;
    int64_t process_bytes; /* of its plan; of its smallest plan if it does not fit */
    int64_t arena_bytes, floor_bytes;
    double lr_scale;
    double step_seconds;  /* predicted */
    double bound_seconds; /* as in hr_plan_answer */
    int32_t recomputing;  /* layers that recompute something */
    bool releases;        /* gradients are released during the backward pass */
} hr_plan_stage;

/* Summary of a plan. All sizes are in bytes unless stated otherwise. */
typedef struct {
    bool fits;
    hr_plan_device device;
    int64_t process_bytes; /* of the chosen plan; of the smallest plan if nothing fits */
    int64_t minimum_bytes; /* process memory of the smallest plan */
    /* the budget; without one the memory of the machine, or what is left of it */
    int64_t available_bytes;
    int64_t machine_bytes; /* without a budget: the memory of the machine or its cgroup; else 0 */
    int64_t memory_bytes;  /* memory of this machine or its cgroup, whatever the budget */
    int64_t arena_bytes, floor_bytes;
    int64_t bound_bytes; /* proven lower limit of this plan's arena */
    int64_t file_bytes;  /* of the space file: moments, and inputs of layers (memory.spill) */
    hr_plan_disk disk;   /* set by hr_plan_make and hr_train, as stop_seconds and disk_rate */
    /* page tables and other kernel memory that a cgroup counts in addition to the process */
    int64_t kernel_bytes;
    int64_t parameters, trained_parameters; /* number of elements */
    /* with adapters: weights of the base; weights, masters and states of the adapters */
    int64_t base_bytes, adapter_bytes;
    /* weights of the base that stay in its files (memory.weights), and bytes of them that a step
     * reads, at bytes per second */
    int64_t away_bytes, read_bytes, read_rate;
    bool read_rate_measured;
    int64_t wide_adapters; /* whose rank is above the smaller side of their matrix */
    int64_t micro_batch;   /* sequences */
    int64_t loss_chunk;    /* tokens */
    /* training: 6 x weights in products + attention of computed blocks */
    int64_t flops_per_token;
    /* pairs of blocks, or of tokens with a sliding window, that attention computes in one sequence,
     * of all causal pairs; equal without a pattern and a window */
    int64_t attention_kept, attention_causal;
    double step_seconds; /* predicted time of a training step */
    /* its operations alone; its transfers to and from a file alone. They overlap */
    double compute_seconds, file_seconds;
    bool norm_pass;      /* the norm of released gradients takes a pass of its own */
    double stop_seconds; /* upper limit from a signal to the exit */
    double disk_rate;    /* bytes per second that disk times assume */
    /* proven: no plan is faster within the available bytes; 0: unknown; -1: no other plans were
     * searched */
    double bound_seconds;
    bool cut; /* the search for a faster plan reached its limit of work */
    int32_t threads;
    /* of a run of stages, each as hr_plan_stage; null: it has none. The rest of the answer is of
     * `stage`: the largest, or of those that do not fit the one that needs most */
    const hr_plan_stage *stages;
    int32_t stage_count, stage;
    char rung[16];                         /* instruction set: ref, avx2, avx512, avx512bf16, amx */
    char packing[16];                      /* at floor, proven, open */
    char times[HR_TIMES_TEXT_BYTES];       /* source of the predicted times */
    char strategy[HR_STRATEGY_TEXT_BYTES]; /* YAML, in the format of memory.strategy */
} hr_plan_answer;

/* ---- details: the content of the text output, as data */

enum {
    HR_PLAN_NAME_BYTES = 96,
    HR_PLAN_LINES_MOST = 8,
    HR_PLAN_PHASES_MOST = 8,
    HR_PLAN_PARTS_MOST = 24,
    HR_PLAN_LARGEST_MOST = 8,
    HR_PLAN_REMOVALS_MOST = 12,
    HR_PLAN_CHANGES_MOST = 28,
    HR_PLAN_USED_MOST = 6,
    HR_PLAN_CHANGE_BYTES = 256,
    HR_PLAN_UNTRIED_BYTES = 1024,
    HR_PLAN_SHAPE_BYTES = 128,
    HR_PLAN_CURVE_MOST = 64
};

/* A named number of bytes: a line of the process memory, a phase, a component of the peak, or a
 * tensor. */
typedef struct {
    char name[HR_PLAN_NAME_BYTES];
    char why[HR_PLAN_NAME_BYTES]; /* "saved for backward"; may be empty */
    int64_t bytes;
} hr_plan_part;

/* A change that was tried. Every number comes from a plan that was built. */
typedef struct {
    /* The keys to set, "model.d_ff=256", separated by a space, as a shell takes them; for a
     * removal, words such as "recompute outputs of norms in every layer". */
    char what[HR_PLAN_CHANGE_BYTES];
    char price[HR_PLAN_CHANGE_BYTES]; /* costs other than time; may be empty */
    int64_t bytes;        /* process memory with the change; for a refusal the smallest */
    int64_t gained_bytes; /* saving compared with no change */
    /* predicted cost per step: of a removal compared with this plan, otherwise with the fastest
     * plan without a budget; 0 if the mathematics changes */
    double seconds_lost;
    bool untimed; /* seconds_lost is unknown: the limit of work was reached before */
    bool changes_mathematics;
} hr_plan_change;

/* A tensor with its shape as numbers and letters: "[131,072 x 151,936] bf16 = B x T x V x 2". */
typedef struct {
    char name[HR_PLAN_NAME_BYTES];
    char shape[HR_PLAN_SHAPE_BYTES];
    int64_t bytes; /* 0: none */
} hr_plan_tensor;

typedef struct {
    int32_t step_count, peak_step;
    char peak[HR_PLAN_NAME_BYTES];          /* "layer 3 backward, MLP down-projection" */
    hr_plan_part lines[HR_PLAN_LINES_MOST]; /* process memory; they sum to process_bytes */
    /* peak live bytes of each phase; the largest is floor_bytes */
    hr_plan_part phases[HR_PLAN_PHASES_MOST];
    hr_plan_part parts[HR_PLAN_PARTS_MOST]; /* components at the peak; they sum to floor_bytes */
    /* largest tensors at the peak, in descending order */
    hr_plan_part largest[HR_PLAN_LARGEST_MOST];
    /* for a refusal: a component that exceeds the available bytes alone, under any strategy; bytes
     * 0: none */
    hr_plan_part alone;
    /* for a plan: what would save memory at a cost in time, cheapest per byte first */
    hr_plan_change removals[HR_PLAN_REMOVALS_MOST];
    /* for a refusal: changes that would fit, cheapest first; and those that save memory, but not
     * enough alone. The last of these save nothing, although one may expect it: price says why */
    hr_plan_change changes[HR_PLAN_CHANGES_MOST], partial[HR_PLAN_CHANGES_MOST];
    /* for a refusal: keys that the limit of work left untried, or without exact bytes,
     * separated by commas */
    char untried[HR_PLAN_UNTRIED_BYTES];
    /* for a refusal: what the smallest plan does to need no more, and the bytes that each saves */
    hr_plan_part used[HR_PLAN_USED_MOST];
    /* for a refusal: process memory without any of these, and the largest tensor then; bytes 0:
     * unknown */
    int64_t whole_bytes;
    hr_plan_tensor whole_largest;
    int32_t line_count, phase_count, part_count, largest_count, removal_count, change_count;
    int32_t partial_count, used_count;
    /* largest live bytes in each of curve_count equal parts of a step */
    int64_t curve[HR_PLAN_CURVE_MOST];
    int32_t curve_count, curve_peak;      /* curve_peak: the part with the largest value */
    int32_t curve_first, curve_last;      /* operations that the curve shows */
    int32_t curve_backward, curve_update; /* the first of that section or pass; 0: none */
    /* the components of each part at its largest operation, by curve_names; they sum to curve[i] */
    int64_t curve_parts[HR_PLAN_CURVE_MOST][HR_PLAN_PARTS_MOST];
    const char *curve_names[HR_PLAN_PARTS_MOST];            /* constants; null: none */
    char shapes[HR_PLAN_LARGEST_MOST][HR_PLAN_SHAPE_BYTES]; /* of `largest`, as hr_plan_tensor */
} hr_plan_details;

/* Called a few times a second while plans are searched. It must return soon. */
typedef struct {
    void (*search)(void *context); /* null: none */
    void *context;
} hr_plan_progress;

/* Optional outputs. Everything may be null. */
typedef struct {
    size_t size; /* of this struct */
    /* path for the whole plan as JSON: docs/plan-file.md. Of stages one file each, with their
     * number before the suffix: plan-1.json */
    const char *file;
    char *text; /* [text_bytes] out: the plan, or the refusal, as text */
    int64_t text_bytes;
    bool program;             /* text lists the step program instead */
    bool colour;              /* text may use ANSI colours */
    bool blocks;              /* text may use UTF-8 block characters */
    hr_plan_stage *stages;    /* [HR_STAGES_MAX] out: those of the answer, which points here */
    hr_plan_details *details; /* out: the same content as data */
    const char *page;         /* path for the plan as an HTML page; null: none */
    const char *snapshot;     /* path for a memory snapshot of PyTorch; null: none */
    const char *calibrations; /* directory of calibrations; null: step times are estimated */
    const hr_device_choice *device; /* that the plan is for; null: this machine */
    hr_plan_progress progress;
} hr_plan_outputs;

/* Plans a run of this config. Call hr_config_adopt and hr_config_adopt_data first, and with formats
 * of states that are auto hr_plan_choose_states.
 *
 * Errors   NO_FIT  with the bytes needed and available; `answer`, text and details are still
 *                  written, including the changes that would fit
 *          USAGE   contradictory keys
 *          FAILURE  the file cannot be written.
 * Threads  one call at a time per process, because it measures the process. */
HR_MUST_CHECK hr_status hr_plan_make(const hr_config *config, const hr_plan_outputs *outputs,
                                     hr_plan_answer *answer, hr_error *err);

/* Replaces train.state.master=auto and train.state.moments=auto by formats: those of the checkpoint
 * that a run would resume from, otherwise the first with which the recipe fits. Formats that change
 * no bit come first, then those that memory.allow names, the most bytes first; if nothing fits, the
 * last of these is left. Does nothing without auto.
 *
 *   outputs  its device, calibrations and progress; may be null
 *   fresh    a run would not resume
 *   said     out: what was chosen, and why
 *
 * Errors   USAGE  memory.allow has another word; contradictory keys. Others as hr_plan_make.
 * Threads  as hr_plan_make. */
HR_MUST_CHECK hr_status hr_plan_choose_states(hr_config *config, const hr_plan_outputs *outputs,
                                              bool fresh, char said[HR_ERROR_BYTES], hr_error *err);

/* Draws the learning rate over the steps of a run, with its stages, to an SVG file.
 * Errors   USAGE  train.steps is not given; the file cannot be written there, or is another one. */
HR_MUST_CHECK hr_status hr_plan_schedule(const hr_config *config, const char *svg, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
