/* SPDX-License-Identifier: Apache-2.0 */
/* run/memory_report.c - reports the memory of a running process, compared with its plan. */
#include "base/file.h"
#include "base/writer.h"
#include "run/reporting.h"
#include "run/trainer.h"

enum { REPORT_BYTES = 2 << 10 };

static const char report_name[] = "memory.txt";

static void put(const hr_trainer *trainer, hr_writer *w)
{
    const hr_plan *plan = trainer->executor.plan;
    const hr_memory *memory = trainer->executor.memory;
    hr_put(w, "memory after step %lld\n", (long long)trainer->state.step);
    for (int32_t i = 0; i < plan->process.line_count; i++)
        hr_put(w, "  %-10s %15lld  planned\n", plan->process.lines[i].name,
               (long long)plan->process.lines[i].bytes);
    hr_put(w, "  %-10s %15lld  planned\n", "process", (long long)plan->process.bytes);
    hr_put(w, "  %-10s %15lld  the most so far\n", "measured",
           (long long)hr_memory_peak_bytes(memory));
    hr_put(w, "  %-10s %15lld  now\n", "", (long long)hr_process_now_bytes());
    hr_put(w, "  %-10s %15lld  used so far, of %lld\n", "arena",
           (long long)memory->arena_bytes_used, (long long)memory->arena_bytes);
}

static hr_status write_file(const hr_trainer *trainer, const hr_writer *w, hr_error *err)
{
    hr_file_out file;
    hr_status status = hr_file_begin(&file, trainer->config->train.out, report_name, err);
    if (status == HR_OK) status = hr_file_append(&file, w->text, w->used, err);
    return status == HR_OK ? hr_file_commit(&file, err) : status;
}

void hr_trainer_report_memory(hr_trainer *trainer)
{
    const hr_train_events *events = &trainer->options->events;
    char text[REPORT_BYTES]; /* on the stack: while texts are prepared the run has no buffers */
    hr_writer w = { text, sizeof text };
    hr_error err;
    put(trainer, &w);
    if (events->text) events->text(events->context, w.text);
    if (trainer->config->train.out[0] && write_file(trainer, &w, &err) != HR_OK)
        hr_trainer_trouble(trainer, err.message);
}
