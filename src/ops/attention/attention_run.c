/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_run.c - splits the queries of heads over threads, forward.
 *
 * The unit of short sequences is a head; consecutive heads of one thread share packed keys. That of
 * long ones is a chunk of queries of a head; with selected blocks it is a tile of those of a
 * group. With separate documents, each document is a sequence
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

/* Threads take turns, in reverse order every other round: later chunks have more keys, so the last
 * thread of a round would always have the most. */
static bool has_turn(const hr_call *call, int64_t unit)
{
    const int64_t turn = unit % call->threads, round = unit / call->threads;
    return (round % 2 == 0 ? turn : call->threads - 1 - turn) == call->thread;
}

static void run_chunks(const attention_share *s)
{
    const hr_call *call = s->call;
    const hr_attention_attr *attr = s->attr;
    int64_t unit = 0;
    for (int64_t u = 0; u < s->sequences * attr->H; u++) {
        const int64_t sequence = u / attr->H, end = attention_end(s, sequence);
        for (int64_t at = s->position, next; at < end; at = next) {
            next = hr_min(end, (at / ATTENTION_LONG_TILE + 1) * ATTENTION_LONG_TILE);
            if (!has_turn(call, unit++)) continue;
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

/* Tiles of queries of the groups, in turns. */
static void run_selected(const attention_share *s)
{
    const hr_call *call = s->call;
    const hr_attention_attr *attr = s->attr;
    const int64_t heads = attr->H / attr->G, count = attr->mask.window;
    const int64_t tile = attention_selected_tile(attr);
    int64_t unit = 0;
    for (int64_t u = 0; u < s->sequences * attr->G; u++) {
        const int64_t sequence = u / attr->G, group = u % attr->G;
        const int64_t end = attention_end(s, sequence);
        for (int64_t at = s->position; at < end; at += tile) {
            if (unit++ % call->threads != call->thread) continue;
            const attention_piece piece = { sequence, 0, at, hr_min(end, at + tile) };
            const int64_t row = attention_row(s, sequence, at);
            hr_attention_selected_task task = {
                .head = attention_task_of(s, &piece, group * heads, call->out[0], call->out[1]),
                .heads = heads,
                .q_head_stride = attr->q_head_stride,
                .o_head_stride = attr->head_width,
                .block = attr->mask.block,
                .blocks = (const uint16_t *)call->in[4] + (row * attr->G + group) * count,
                .blocks_stride = attr->G * count,
                .count = count
            };
            task.head.mask.kind = HR_PATTERN_DENSE;
            call->kernels->attention.selected[call->dtype](&task);
        }
    }
}

void hr_attention_run(const hr_call *call)
{
    attention_share s = attention_share_of(call, call->in[3], call->in[5]);
    if (s.attr->mask.kind == HR_PATTERN_SELECTED) {
        s.scratch = (uint8_t *)call->scratch +
                    call->thread * attention_selected_thread_bytes(s.attr);
        run_selected(&s);
        return;
    }
    s.scratch = (uint8_t *)call->scratch +
                call->thread * attention_thread_bytes(s.attr, call->rows);
    if (attention_is_whole(s.attr)) run_heads(&s);
    else run_chunks(&s);
}

const hr_op_run hr_attention_cpu_run = { hr_attention_run, 1, NULL };
