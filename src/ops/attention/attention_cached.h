/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_cached.h - forward attention over a KV cache, for the vector kernels.
 *
 * One pass over the keys and values of a group. Each chunk of keys is packed into the CPU cache and
 * used by the strips of all heads. Strips and chunk boundaries equal those of the forward pass, so
 * rows have the same bits. Include it after attention_fwd.h. */
#ifndef HR_OPS_ATTENTION_CACHED_H
#define HR_OPS_ATTENTION_CACHED_H

/* Copies rows [first, first + count) of Q: the heads of a position are adjacent. */
static void copy_heads(const hr_attention_cached_task *task, int64_t first, int64_t count,
                       uint32_t *out)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (first + i) / task->heads, h = (first + i) % task->heads;
        hr_attention_rows q = task->head.q;
        q.first = hr_element_at(q.first, h * task->q_head_stride, dtype_of(&task->head));
        copy_rows(&task->head, q, row, 1, row + 1, out + i * STRIP_ROW);
    }
}

/* Products cover whole strips, so missing rows of a tile must be zero. */
static void clear_rows(const forward *f, int64_t rows)
{
    for (int64_t i = rows; i < ROWS; i++) {
        for (int64_t at = 0; at < STRIP_ROW; at++) f->room.strip[i * STRIP_ROW + at] = 0;
        for (int64_t at = 0; at < P_ROW; at++) f->room.p[i * P_ROW + at] = 0;
    }
}

static void cached_heads(const hr_attention_cached_task *task)
{
    const hr_attention_task *head = &task->head;
    const int64_t heads = task->heads, rows = heads * head->length;
    forward f = { .task = head,
                  .width = packed_width(head),
                  .words = packed_width(head) / PAIR,
                  .panel = ATTENTION_KEY_CHUNK / PAIR * VEC_LANES,
                  .tile = ATTENTION_QUERY_TILE,
                  .reach = attention_reach(&head->mask),
                  .factor = head->scale * LOG2_E };
    const int64_t position = task->position;
    attention_key_iterator iterator = attention_iterate_keys(&head->mask, position,
                                                             position + head->length);
    attention_keys chunk[ATTENTION_KEYS_MAX];
    bool begun[ATTENTION_QUERY_TILE / ROWS] = { false };
    attention_scratch_place(head->scratch, ATTENTION_KEY_CHUNK, ATTENTION_QUERY_TILE,
                            head->head_width, &f.room);
    clear_rows(&f, hr_min(rows, ROWS));
    open_tile(&f);
    for (int64_t ranges; (ranges = next_packed(&f, position, position + head->length,
                                               task->capacity, &iterator, chunk)) > 0;)
        for (int64_t row = 0, at = 0; row < rows; row += ROWS, at++) {
            const int64_t end = hr_min(row + ROWS, rows);
            strip s = strip_of(&f, at, chunk, ranges, position + row / heads,
                               position + (end - 1) / heads + 1);
            if (s.key_ranges == 0) continue;
            s.rows = end - row;
            for (int64_t i = 0; i < s.rows; i++) s.position[i] = position + (row + i) / heads;
            s.again = begun[at];
            begun[at] = true;
            copy_heads(task, row, s.rows, f.room.strip);
            forward_strip(&f, &s);
        }
    close_tile(&f);
    for (int64_t i = 0; i < rows; i++) {
        hr_attention_rows o = head->o;
        o.first = hr_element_at(o.first, i % heads * task->o_head_stride, dtype_of(head));
        store_row(head, o, i / heads, f.room.sums + i * f.width, f.room.total[place_of(i)]);
    }
}

#endif
