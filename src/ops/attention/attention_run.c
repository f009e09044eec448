/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_run.c - splits the queries of heads over threads, forward.
 *
 * The unit of short sequences is a head; consecutive heads of one thread share packed keys. That of
 * long ones is a chunk of queries of a head. With separate documents, each document is a sequence
 * for the kernels. */
#include "ops/attention/attention_heads.h"
#include "ops/cpu_run.h"

static void run_heads(const attention_share *s)
{
    const hr_call *call = s->call;
    const hr_attention_attr *attr = s->attr;
    const int64_t group_heads = attr->H / attr->G;
    int64_t first, last;
    hr_share(s->sequences * attr->H, call->thread, call->threads, &first, &last);
    for (int64_t unit = first, next; unit < last; unit = next) {
        const int64_t sequence = unit / attr->H, end = attention_end(s, sequence);
        next = hr_min((unit / group_heads + 1) * group_heads, last);
        for (int64_t at = 0; at < end;) {
            const attention_piece piece = attention_piece_at(s, sequence, at, end);
            for (int64_t u = unit; u < next; u++) {
                hr_attention_task task = attention_task_of(s, &piece, u % attr->H, call->out[0],
                                                           call->out[1]);
                task.whole = true;
                task.first = u == unit;
                call->kernels->attention.fwd[call->dtype](&task);
            }
            at = piece.last;
        }
    }
}

/* Threads take turns: later chunks have more keys. */
static void run_chunks(const attention_share *s)
{
    const hr_call *call = s->call;
    const hr_attention_attr *attr = s->attr;
    int64_t unit = 0;
    for (int64_t u = 0; u < s->sequences * attr->H; u++) {
        const int64_t sequence = u / attr->H, end = attention_end(s, sequence);
        for (int64_t at = s->position, next; at < end; at = next) {
            next = hr_min(end, (at / ATTENTION_LONG_TILE + 1) * ATTENTION_LONG_TILE);
            if (unit++ % call->threads != call->thread) continue;
            for (int64_t first = at; first < next;) {
                const attention_piece piece = attention_piece_at(s, sequence, first, next);
                const hr_attention_task task = attention_task_of(s, &piece, u % attr->H,
                                                                 call->out[0], call->out[1]);
                call->kernels->attention.fwd[call->dtype](&task);
                first = piece.last;
            }
        }
    }
}

void hr_attention_run(const hr_call *call)
{
    attention_share s = attention_share_of(call, call->in[3]);
    s.scratch = (uint8_t *)call->scratch +
                call->thread * attention_thread_bytes(s.attr, call->rows);
    if (attention_is_whole(s.attr)) run_heads(&s);
    else run_chunks(&s);
}

const hr_op_run hr_attention_cpu_run = { hr_attention_run, 1, NULL };
