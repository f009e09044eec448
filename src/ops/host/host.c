/* SPDX-License-Identifier: Apache-2.0 */
/* ops/host/host.c - properties of the operations that the host runs. */
#include "ops/host/host.h"

_Static_assert(HR_LOOP_IDS <= 32, "a section is a bit of hr_op.host");

/* Sections that may hold a service. */
enum {
    LOAD = 1 << HR_LOOP_LOAD,
    FETCH = 1 << HR_LOOP_FETCH,
    NORM = 1 << HR_LOOP_NORM, /* a pass over the batch for the gradient norm */
    STEP = 1 << HR_LOOP_STEP,
    UPDATE = 1 << HR_LOOP_UPDATE,
    EVALUATION = 1 << HR_LOOP_EVALUATION,
    SAMPLE = 1 << HR_LOOP_SAMPLE,
    SAVE = 1 << HR_LOOP_SAVE,
    PROMPT = 1 << HR_LOOP_PROMPT,
    ANSWER = 1 << HR_LOOP_ANSWER,
    SEQUENCES = 1 << HR_LOOP_SEQUENCES
};

static int64_t staging(const void *attr, int64_t rows, int32_t threads)
{
    (void)rows;
    (void)threads;
    return ((const hr_host_attr *)attr)->staging_bytes;
}

const hr_op_facts hr_initialize_host = { .scratch_bytes = staging };
const hr_op_facts hr_batch_host = { 0 };
const hr_op_facts hr_prompt_host = { 0 };
const hr_op_facts hr_sample_host = { .scratch_bytes = staging };
const hr_op_facts hr_emit_host = { .scratch_bytes = staging };
const hr_op_facts hr_report_host = { 0 };
const hr_op_facts hr_save_host = { .scratch_bytes = staging };
const hr_op_facts hr_lookup_host = { 0 };
const hr_op_facts hr_fetch_begin_host = { 0 };
const hr_op_facts hr_fetch_wait_host = { 0 };
const hr_op_facts hr_spill_begin_host = { 0 };
const hr_op_facts hr_spill_wait_host = { 0 };

/* Operands, and what the service does:
 *
 *   initialize  out  master, weight, states ...      initial values of one parameter, generated or
 *                    scales                          read from files; a frozen weight that is not
 *                                                    fp32 has no master, and one with scales no
 *                                                    states
 *   batch       out  ids, targets, scale, lr,        the next batch of text, the loss scale, the
 *                    begins                          learning rate, and the starts of documents
 *   prompt      out  ids, position, targets          the prompt, its position and next tokens
 *   sample      in   logits                          chooses the next token
 *   emit        in   logits                          writes logits, or computes the loss against
 *                                                    the next tokens of a text; or of a parameter
 *                                                    what modulates it
 *   report      in   sums ...                        numbers for the log
 *   save        in   master, states ..., scales      writes one parameter in pieces
 *   lookup      in   ids, table in files             reads the rows of the table that the ids
 *               out  rows                            choose
 *   fetch_begin in   values in another space         begins to copy each to its window
 *               out  windows in the arena
 *   fetch_wait  in   those windows                   waits for the copies
 *   spill_begin in   windows in the arena            begins to copy each to its place in another
 *               out  values in another space         space
 *   spill_wait  in   those windows                   waits for the copies */
const hr_op hr_initialize_op = { .name = "initialize", .in = "", .out = "WWWWWWWW", .host = LOAD };
const hr_op hr_batch_op = { .name = "batch",
                            .in = "",
                            .out = "RRWWR",
                            .host = FETCH | NORM | STEP | EVALUATION };
const hr_op hr_prompt_op = { .name = "prompt",
                             .in = "",
                             .out = "rWR",
                             .host = SAMPLE | PROMPT | ANSWER | SEQUENCES };
const hr_op hr_sample_op = { .name = "sample",
                             .in = "r",
                             .out = "",
                             .host = SAMPLE | PROMPT | ANSWER };
const hr_op hr_emit_op = { .name = "emit", .in = "r", .out = "", .host = SEQUENCES };
const hr_op hr_report_op = { .name = "report",
                             .in = "WWWW",
                             .out = "",
                             .host = NORM | STEP | UPDATE | EVALUATION };
const hr_op hr_save_op = { .name = "save", .in = "wWWWWWWW", .out = "", .host = SAVE };

/* The passes of a model, which read its weights. */
enum { PASSES = NORM | STEP | EVALUATION | SAMPLE | PROMPT | ANSWER | SEQUENCES };
const hr_op hr_lookup_op = { .name = "lookup", .in = "rw", .out = "r", .host = PASSES };

/* Transfers move states where they are written, updated and read, and weights to their readers. */
enum { TRANSFERS = PASSES | LOAD | UPDATE | SAVE };
const hr_op hr_fetch_begin_op = { .name = "fetch_begin",
                                  .in = "wWWWWWWW",
                                  .out = "wWWWWWWW",
                                  .transfer = HR_TRANSFER_FETCH_BEGIN,
                                  .host = TRANSFERS };
const hr_op hr_fetch_wait_op = { .name = "fetch_wait",
                                 .in = "wWWWWWWW",
                                 .out = "",
                                 .transfer = HR_TRANSFER_FETCH_WAIT,
                                 .host = TRANSFERS };
const hr_op hr_spill_begin_op = { .name = "spill_begin",
                                  .in = "wWWWWWWW",
                                  .out = "wWWWWWWW",
                                  .transfer = HR_TRANSFER_SPILL_BEGIN,
                                  .host = TRANSFERS };
const hr_op hr_spill_wait_op = { .name = "spill_wait",
                                 .in = "wWWWWWWW",
                                 .out = "",
                                 .transfer = HR_TRANSFER_SPILL_WAIT,
                                 .host = TRANSFERS };
