/* SPDX-License-Identifier: Apache-2.0 */
/* ops/host/host.c - properties of the operations that the trainer runs. */
#include "ops/host/host.h"

const hr_op hr_initialise_op = { .name = "initialise", .in = "", .out = "WWWWWWWW", .host = true };
const hr_op hr_batch_op = { .name = "batch", .in = "", .out = "RRWWR", .host = true };
const hr_op hr_prompt_op = { .name = "prompt", .in = "", .out = "rW", .host = true };
const hr_op hr_sample_op = { .name = "sample", .in = "r", .out = "", .host = true };
const hr_op hr_emit_op = { .name = "emit", .in = "r", .out = "", .host = true };
const hr_op hr_report_op = { .name = "report", .in = "WWWW", .out = "", .host = true };
const hr_op hr_save_op = { .name = "save", .in = "wWWWWWW", .out = "", .host = true };

static int64_t staging(const void *attr, int64_t rows, int32_t threads)
{
    (void)rows;
    (void)threads;
    return ((const hr_host_attr *)attr)->staging_bytes;
}

const hr_op_facts hr_initialise_host = { .scratch_bytes = staging };
const hr_op_facts hr_batch_host = { 0 };
const hr_op_facts hr_prompt_host = { 0 };
const hr_op_facts hr_sample_host = { .scratch_bytes = staging };
const hr_op_facts hr_emit_host = { .scratch_bytes = staging };
const hr_op_facts hr_report_host = { 0 };
const hr_op_facts hr_save_host = { .scratch_bytes = staging };
