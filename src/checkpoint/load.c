/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/load.c - chunks in file order, each taken by the next free thread. */
#include "checkpoint/load.h"

#include <stdatomic.h>

#include "base/checked.h"
#include "base/residual.h"

typedef struct {
    const hr_weights_in *in;
    int32_t param, readers;
    hr_weights_place place;
    uint8_t *staging;
    int64_t slice_bytes, pieces;
    const volatile sig_atomic_t *interrupts;
    atomic_llong next;   /* next chunk to read */
    atomic_llong failed; /* lowest chunk with an error so far */
} loading;

static bool is_interrupted(const loading *l)
{
    return l->interrupts && *l->interrupts > 0;
}

/* Chunks before a failed one are still read, so that the reported error is deterministic. */
static void read_pieces(void *context, int32_t thread, int32_t threads)
{
    loading *l = context;
    (void)threads;
    if (thread >= l->readers) return;
    for (;;) {
        const int64_t piece = atomic_fetch_add(&l->next, 1);
        if (piece >= l->pieces || piece > atomic_load(&l->failed) || is_interrupted(l)) return;
        const hr_status status = hr_weights_in_take(l->in, l->param, piece, l->place,
                                                    l->staging + thread * l->slice_bytes,
                                                    l->slice_bytes, NULL);
        if (status == HR_OK) continue;
        long long least = atomic_load(&l->failed);
        while (piece < least && !atomic_compare_exchange_weak(&l->failed, &least, piece)) continue;
        return;
    }
}

static int64_t elements_of(const hr_program *program, int32_t param)
{
    const hr_tensor *weight = &program->tensors[program->params[param].weight];
    return hr_tensor_bytes(weight) / hr_dtype_bytes((hr_dtype)weight->dtype);
}

hr_status hr_load(const hr_weights_in *in, int32_t param, hr_pool *pool, hr_weights_place place,
                  void *staging, int64_t staging_bytes, const volatile sig_atomic_t *interrupts,
                  hr_error *err)
{
    enum { ALIGN = 64 };
    const int64_t width = hr_weights_width(hr_kept_shape_of(in->program, param, in->kept));
    const int64_t panel_bytes = hr_min(staging_bytes, HR_PANEL_WIDTH * width * 4 + ALIGN);
    loading l = { .in = in,
                  .param = param,
                  .readers = (int32_t)hr_min(pool->threads, staging_bytes / panel_bytes),
                  .place = place,
                  .staging = staging,
                  .interrupts = interrupts };
    l.slice_bytes = l.readers > 1 ? staging_bytes / l.readers / ALIGN * ALIGN : staging_bytes;
    l.pieces = hr_weights_in_pieces(in, param, place, l.slice_bytes);
    atomic_init(&l.next, 0);
    atomic_init(&l.failed, INT64_MAX);
    if (l.pieces == 1) read_pieces(&l, 0, 1);
    else hr_pool_run(pool, read_pieces, &l);
    const int64_t failed = atomic_load(&l.failed);
    if (failed == INT64_MAX) {
        if (place.residual.codes)
            hr_residual_finish(place.weight, place.residual, elements_of(in->program, param));
        return is_interrupted(&l) ? HR_INTERRUPTED : HR_OK;
    }
    /* Reads the chunk again for its error message: messages of all threads would need memory. */
    const hr_status status = hr_weights_in_take(in, param, failed, place, staging, l.slice_bytes,
                                                err);
    if (status != HR_OK) return status;
    return hr_fail(err, HR_FAILURE, "%s: %s was read twice with different results", in->path,
                   in->program->params[param].external_name);
}
