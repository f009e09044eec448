/* SPDX-License-Identifier: Apache-2.0 */
/* cli/glossary.c - the terms of the output, one line each, for `headroom help TERM`, the manual
 * page and docs/glossary.md; a test compares them. No term is the name of a command. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli.h"

static const hr_cli_term terms[] = {
    { "activation", "An intermediate value of the model. Those that backward needs are saved or "
                    "recomputed." },
    { "activation checkpointing", "Recomputing activations during backward instead of saving them: "
                                  "see recompute." },
    { "arena", "The one block of memory that holds all tensors and workspace of a run. Its "
               "size and layout are fixed before training." },
    { "attention tile", "Tokens that attention processes at a time: whole sequences, or a part of "
                        "one. Smaller tiles need less memory; the result is the same." },
    { "backward order", "Whether backward computes the gradient of a weight before or after the "
                        "gradient of the input of its layer." },
    { "bad step", "A step whose loss or gradient norm is NaN or Inf, or an outlier with "
                  "train.detect_spikes. train.bad_steps says what happens then." },
    { "batch", "train.batch: sequences per optimizer step, over all micro-batches." },
    { "bits per byte", "Loss in bits, divided by the bytes of the text. It compares models with "
                       "different tokenizers." },
    { "bound", "A proven lower limit: no plan is faster, or no arena is smaller, than this." },
    { "budget", "The memory limit of the whole process: --budget or memory.budget." },
    { "cache directory", "The directory of tokenized data and calibrations: data.cache, or "
                         "~/.cache/headroom." },
    { "calibration", "Measured kernel timings of this machine. With them step times are predicted; "
                     "without them they are estimated from the instruction set." },
    { "d_model", "The width of the residual stream (hidden size)." },
    { "dtype", "The number format of weights and activations: fp32 or bf16. With bf16 the "
               "optimizer updates masters in the format of train.state.master. fp16 is that of "
               "activations alone; weights are fp32." },
    { "EMA", "Exponential moving average of the weights: train.ema_decay." },
    { "estimated from the instruction set", "No calibration is used: step times come from a table "
                                            "of typical speeds per instruction set." },
    { "floor", "The largest sum of live bytes at any operation. No arena can be smaller." },
    { "frontier", "The plans for which no other plan is both smaller and faster." },
    { "gradient accumulation", "Adding the gradients of several micro-batches before one optimizer "
                               "step." },
    { "gradient release", "Updating a weight during backward as soon as its gradient is complete, "
                          "so that not all gradients exist at once. Large ones are computed "
                          "in strips, which are gone after their update." },
    { "heap", "Memory of malloc. Its size is fixed before training." },
    { "image",
      "Program code, constants and shared libraries in memory. It differs a little between "
      "machines." },
    { "kernel",
      "In the process memory: allowance for the inexact RSS counters of Linux. Elsewhere: the code "
      "that computes one operation." },
    { "kernels", "The instruction set in use: ref, avx2, avx512, avx512bf16 or amx." },
    { "KV cache", "Keys and values of the previous tokens during generation." },
    { "lifetime", "The operations between the first write and the last read of a tensor. Tensors "
                  "with disjoint lifetimes share memory." },
    { "live bytes", "Bytes of all tensors whose lifetime includes an operation." },
    { "lookup tables", "Tables that are computed once, such as the angles of RoPE." },
    { "loss and norm sums", "Scalars: the loss and the norm of the gradient." },
    { "loss chunk",
      "memory.loss_chunk: tokens whose logits exist at a time; full: the micro-batch. "
      "Smaller chunks need less memory; the result is the same." },
    { "machine speed", "Speed during a measurement relative to the calibration; 1 is equal." },
    { "margin", "Memory that the plan leaves free: available minus process memory." },
    { "master weights", "The fp32 copy of bf16 weights that the optimizer updates." },
    { "memory", "In progress lines: resident memory of the process, of the planned maximum." },
    { "MFLOP per token", "Million floating-point operations per token, forward and backward." },
    { "micro-batch", "memory.micro_batch: sequences per forward and backward pass. The batch is a "
                     "multiple of it." },
    { "MLP tile", "Tokens that an MLP processes at a time. Smaller tiles need less memory; the "
                  "result is the same." },
    { "moment",
      "An optimizer state: moment 1 is the mean of gradients, moment 2 of their squares." },
    { "moment windows",
      "With memory.moments=file: memory for the pieces of moments that are being updated." },
    { "nats", "Natural-log units of the loss, as in PyTorch's cross_entropy." },
    { "operation", "One step of the planned program: a kernel call with its inputs and outputs." },
    { "optimizer states",
      "Values that the optimizer keeps per weight, such as the moments of Adam." },
    { "output head", "The projection from the last hidden states to the logits (lm_head)." },
    { "page tables and cache", "Kernel memory that a cgroup counts beside the process. It is not "
                               "part of the RSS." },
    { "pass", "One complete reading of the training data (epoch)." },
    { "peak", "The operation with the most live bytes, or the largest RSS of the process." },
    { "perplexity", "exp(loss)." },
    { "planning", "Memory that planning needed beyond that of the run. It is freed before "
                  "training." },
    { "preset", "A ready recipe in presets/." },
    { "process memory", "The largest resident set size (RSS) of the process, planned before it "
                        "starts." },
    { "proven fastest", "No strategy that fits is faster, by predicted step time; the search is "
                        "exact." },
    { "recipe", "The YAML file with the keys of a run. headroom keys lists them." },
    { "recompute", "Computing an activation again during backward instead of saving it. Results "
                   "are bit-identical." },
    { "reorder", "The last resort of the planner: moving operations to lower the floor." },
    { "seal", "The point after which the process allocates no more memory." },
    { "shard", "A file of token ids, written once per text and tokenizer; or one file of a set of "
               "weights." },
    { "smallest plan", "The least process memory of any strategy of this recipe." },
    { "stacks", "Stacks of all threads." },
    { "step", "One optimizer step over a batch." },
    { "storage", "Bytes of the arena. In-place outputs share the storage of their input." },
    { "strategy", "Everything that trades memory for time without changing results: micro-batch, "
                  "chunks, tiles, recompute, gradient release, order." },
    { "tables", "In the process memory: the plan, the vocabulary and I/O buffers." },
    { "temporaries", "Values at the peak that backward does not need." },
    { "tokens/s", "Training tokens per second of wall time." },
    { "transfers",
      "Copies between memory and the file of moments, and reads of weights that stay in "
      "their files. They run while operations compute." },
    { "window", "train.seq_len tokens of a text, with their next tokens as targets." },
    { "workspace", "Scratch memory of the running kernel." },
};
enum { TERM_COUNT = sizeof terms / sizeof *terms };

const hr_cli_term *hr_cli_term_at(int32_t index)
{
    return index >= 0 && index < TERM_COUNT ? &terms[index] : NULL;
}

/* Returns whether a name is that of a term with this ending. */
static bool is_named(const char *name, const char *term, const char *ending)
{
    const size_t bytes = strlen(term);
    return !strncasecmp(name, term, bytes) && !strcasecmp(name + bytes, ending);
}

/* The term itself precedes a plural: kernel and kernels are two terms. */
const hr_cli_term *hr_cli_term_find(const char *name)
{
    static const char *const endings[] = { "", "s" };
    for (int32_t k = 0; k < 2; k++)
        for (int32_t i = 0; i < TERM_COUNT; i++)
            if (is_named(name, terms[i].name, endings[k])) return &terms[i];
    return NULL;
}

void hr_cli_print_terms(void)
{
    for (int32_t i = 0; i < TERM_COUNT; i++) printf("%s: %s\n", terms[i].name, terms[i].text);
}
