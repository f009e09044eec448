/* SPDX-License-Identifier: Apache-2.0 */
/* nsa_bench.c - native sparse attention against dense attention of the same queries: one sequence,
 * 8 heads of 64 on 2 of keys, forward and backward, operation by operation, with the sizes of the
 * paper. Counted work: the products of the operations, as plans count them. Random operands: no two
 * queries need agree on their blocks. Usage: [threads] [rung] [longest T] [bf16|f32]. */
#include <stdio.h>
#include <string.h>

#include "base/bf16.h"
#include "base/cpu.h"
#include "base/random.h"
#include "ceiling.h"
#include "ops/attention/attention.h"
#include "ops/choose/choose.h"
#include "ops/compress/compress.h"
#include "ops/cpu.h"
#include "ops/cpu_run.h"
#include "ops/gates/gates.h"
#include "ops/kernels.h"
#include "ops/list.h"

enum { H = 8, G = 2, K = 64, LENGTH = 32, STRIDE = 16, HIDDEN = 64, BLOCK = 64, COUNT = 16 };
enum { WINDOW = 512, OPS_MOST = 24 };

typedef struct {
    hr_call call;
    hr_run_fn *run;
} job;

typedef struct {
    int32_t threads;
    hr_dtype dtype;
    hr_kernels kernels;
    int64_t T;
    double seconds, flops; /* of the operations since they were cleared */
} bench;

static void work(void *argument, int32_t thread, int32_t threads)
{
    hr_call call = ((const job *)argument)->call;
    call.thread = thread;
    call.threads = threads;
    ((const job *)argument)->run(&call);
}

static void *room(int64_t bytes)
{
    void *memory = aligned_alloc(4096, (size_t)((bytes + 4095) / 4096 * 4096));
    if (!memory) abort();
    memset(memory, 0, (size_t)bytes);
    return memory;
}

static void *values(const bench *b, int64_t count, float scale, bool fp32)
{
    void *made = room(count * (fp32 ? 4 : hr_dtype_bytes(b->dtype)));
    static uint64_t seed;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t drawn = hr_random_mix(++seed);
        const float value = scale * ((float)(drawn >> 40) / (float)(1 << 23) - 1);
        if (fp32 || b->dtype == HR_F32) ((float *)made)[i] = value;
        else ((hr_bf16 *)made)[i] = hr_bf16_from_f32(value);
    }
    return made;
}

static void run(bench *b, const char *name, int32_t op, const void *attr, void *const *in,
                int32_t inputs, void *const *out, int32_t outputs)
{
    const hr_op_facts *facts = hr_cpu_backend.facts[op];
    const int64_t bytes = facts->scratch_bytes ? facts->scratch_bytes(attr, b->T, b->threads) : 0;
    job j = { .call = { .attr = attr,
                        .kernels = &b->kernels,
                        .rows = b->T,
                        .clear = 255,
                        .dtype = b->dtype,
                        .threads = b->threads,
                        .scratch = room(bytes + 64) },
              .run = hr_cpu_runs[op]->run };
    for (int32_t i = 0; i < inputs; i++) j.call.in[i] = in[i];
    for (int32_t i = 0; i < outputs; i++) j.call.out[i] = out[i];
    const hr_op_run *how = hr_cpu_runs[op];
    const int32_t phases = how->phases_of ? how->phases_of(&j.call) : how->phases;
    double seconds = 0;
    for (; j.call.phase < phases; j.call.phase++) seconds += hr_bench_seconds(b->threads, work, &j);
    const double flops = hr_op_table[op]->flops ? (double)hr_op_table[op]->flops(attr, b->T) : 0;
    printf("  %-22s %8.3f s", name, seconds);
    if (flops > 0) printf(" %5.0f GFLOP/s", 1e-9 * flops / seconds);
    printf("\n");
    b->seconds += seconds;
    b->flops += flops;
    free(j.call.scratch);
}

#define RUN(b, name, op, attr, in, out) \
    run(b, name, HR_OP_##op, attr, in, sizeof(in) / sizeof *(in), out, sizeof(out) / sizeof *(out))

typedef struct {
    hr_attention_attr attr;
    void *k, *v, *o, *d_o, *dq, *dk, *dv, *blocks;
    float *lse, *dots; /* dots: of the branches that have gates */
} branch;

static branch branch_of(const bench *b, hr_attention_mask mask, void *k, void *v, int64_t width)
{
    const int64_t bytes = hr_dtype_bytes(b->dtype), rows = b->T;
    return (branch){ .attr = { .H = H,
                               .G = G,
                               .head_width = K,
                               .T = b->T,
                               .q_width = H * K,
                               .k_width = width,
                               .v_width = width,
                               .q_head_stride = K,
                               .k_head_stride = K,
                               .v_head_stride = K,
                               .mask = mask,
                               .scale = 0.125f },
                     .k = k,
                     .v = v,
                     .o = room(rows * H * K * bytes),
                     .d_o = values(b, rows * H * K, 1, false),
                     .dq = room(rows * H * K * bytes),
                     .dk = room(rows * width * bytes),
                     .dv = room(rows * width * bytes),
                     .lse = room(rows * H * 4),
                     .dots = room(rows * H * 4) };
}

static void free_branch(branch *r)
{
    free(r->o);
    free(r->d_o);
    free(r->dq);
    free(r->dk);
    free(r->dv);
    free(r->lse);
    free(r->dots);
}

static void forward(bench *b, const char *name, branch *r, void *q)
{
    void *const in[] = { q, r->k, r->v, NULL, r->blocks }, *const out[] = { r->o, r->lse };
    RUN(b, name, attention, &r->attr, in, out);
}

static void backward(bench *b, const char *name, branch *r, void *q)
{
    void *const in[] = { q,      r->k,   r->v,      r->attr.has_dots ? (void *)r->dots : r->o,
                         r->d_o, r->lse, r->blocks, NULL };
    void *const out[] = { r->dq, r->dk, r->dv };
    RUN(b, name, attention_bwd, &r->attr, in, out);
}

/* Weights of the MLP, and the gradients of it. */
typedef struct {
    void *w1, *w2, *y;
    float *position, *b1, *b2, *sums;
} mlp;

static void compress(bench *b, const hr_compress_attr *attr, void *x, mlp *m)
{
    void *const in[] = { x, m->position, m->w1, m->b1, m->w2, m->b2 }, *const out[] = { m->y };
    RUN(b, "compress", compress, attr, in, out);
}

static void compress_back(bench *b, const hr_compress_attr *attr, void *x, mlp *m, void *dy,
                          void *dx)
{
    float *at = m->sums;
    void *const in[] = { x, m->position, m->w1, m->b1, m->w2, dy, NULL };
    void *const out[] = { dx,
                          at,
                          at + LENGTH * K,
                          at + LENGTH * K * (HIDDEN + 1),
                          at + LENGTH * K * (HIDDEN + 2),
                          at + LENGTH * K * (HIDDEN + 4) };
    RUN(b, "compress, backward", compress_bwd, attr, in, out);
}

static void measure(bench *b, const char *rung, uint32_t mask)
{
    const int64_t T = b->T;
    void *q = values(b, T * H * K, 1, false), *k = values(b, T * G * K, 1, false);
    void *v = values(b, T * G * K, 1, false), *z = values(b, T * 3 * H, 1, false);
    void *o = values(b, T * H * K, 1, false), *dz = values(b, T * 3 * H, 1, false);
    printf("%s %s, %d threads, T %lld\n", rung, hr_dtype_name(b->dtype), b->threads, (long long)T);
    b->seconds = b->flops = 0;
    branch dense = branch_of(b, (hr_attention_mask){ HR_PATTERN_DENSE, 64, 1, 1 }, k, v, G * K);
    forward(b, "dense", &dense, q);
    backward(b, "dense, backward", &dense, q);
    free_branch(&dense);
    const double alone = b->seconds;
    const double ceiling = hr_ceiling_gflops(hr_ceiling_of(mask, b->dtype == HR_BF16), b->threads);
    b->seconds = b->flops = 0;
    hr_compress_attr shape = { G, K, LENGTH, STRIDE, HIDDEN, T, 0 };
    shape.y_width = hr_compress_width(&shape);
    mlp m[2];
    void *const x[2] = { k, v };
    for (int i = 0; i < 2; i++) {
        m[i] = (mlp){ .w1 = values(b, LENGTH * K * HIDDEN, 0.02f, false),
                      .w2 = values(b, HIDDEN * K, 0.2f, false),
                      .y = room(T * shape.y_width * 4),
                      .position = values(b, LENGTH * K, 0.02f, true),
                      .b1 = values(b, HIDDEN, 0.02f, true),
                      .b2 = values(b, K, 0.02f, true),
                      .sums = room((int64_t)LENGTH * K * (HIDDEN + 8) * 4) };
        compress(b, &shape, x[i], &m[i]);
    }
    const hr_choose_attr choice = { .H = H,
                                    .G = G,
                                    .head_width = K,
                                    .T = T,
                                    .q_width = H * K,
                                    .q_head_stride = K,
                                    .k_width = shape.y_width,
                                    .length = LENGTH,
                                    .stride = STRIDE,
                                    .block = BLOCK,
                                    .count = COUNT,
                                    .first = 1,
                                    .local = 2,
                                    .scale = 0.125f };
    branch of[3] = {
        branch_of(b, hr_choose_mask(&choice), m[0].y, m[1].y, shape.y_width),
        branch_of(b, (hr_attention_mask){ HR_PATTERN_SELECTED, BLOCK, COUNT, 1 }, k, v, G * K),
        branch_of(b, (hr_attention_mask){ HR_PATTERN_SLIDING, 64, WINDOW, 1 }, k, v, G * K)
    };
    of[1].blocks = room(T * G * COUNT * 2);
    forward(b, "compressed", &of[0], q);
    void *const asked[] = { q, m[0].y, of[0].lse }, *const chosen[] = { of[1].blocks };
    RUN(b, "choose", choose, &choice, asked, chosen);
    forward(b, "selected", &of[1], q);
    forward(b, "window", &of[2], q);
    const hr_gates_attr gates = { H, K, 3 };
    void *const sum_in[] = { z, of[0].o, of[1].o, of[2].o }, *const sum_out[] = { o };
    RUN(b, "gates", gates, &gates, sum_in, sum_out);
    void *const in[] = { o, z, of[0].o, of[1].o, of[2].o, of[0].lse, of[1].lse, of[2].lse };
    void *const out[] = { dz, of[0].lse, of[1].lse, of[2].lse, of[0].dots, of[1].dots, of[2].dots };
    RUN(b, "gates, backward", gates_bwd, &gates, in, out);
    for (int i = 0; i < 3; i++) of[i].attr.has_dots = true;
    backward(b, "compressed, backward", &of[0], q);
    backward(b, "selected, backward", &of[1], q);
    backward(b, "window, backward", &of[2], q);
    for (int i = 0; i < 2; i++)
        compress_back(b, &shape, x[i], &m[i], i ? of[0].dv : of[0].dk, i ? of[1].dv : of[1].dk);
    printf("  all %.3f s, dense %.3f s: %.2f times as fast; %.0f GFLOP/s, %.0f %% of %.0f\n",
           b->seconds, alone, alone / b->seconds, 1e-9 * b->flops / b->seconds,
           100e-9 * b->flops / b->seconds / ceiling, ceiling);
    for (int i = 0; i < 3; i++) free_branch(&of[i]);
    free(of[1].blocks);
    for (int i = 0; i < 2; i++) {
        free(m[i].w1);
        free(m[i].w2);
        free(m[i].y);
        free(m[i].position);
        free(m[i].b1);
        free(m[i].b2);
        free(m[i].sums);
    }
    free(q);
    free(k);
    free(v);
    free(z);
    free(o);
    free(dz);
}

int main(int argc, char **argv)
{
    static bench b = { .threads = 2 };
    const uint32_t here = hr_cpu_detect();
    const int64_t wanted = argc > 2 ? hr_cpu_mask_of(argv[2]) : here;
    const int64_t longest = argc > 3 ? atoll(argv[3]) : 32768;
    if (argc > 1) b.threads = (int32_t)atoi(argv[1]);
    if (wanted < 0 || b.threads < 1 || b.threads > HR_BENCH_THREADS_MOST) {
        fprintf(stderr, "usage: %s [threads] [rung] [longest T] [bf16|f32]\n", argv[0]);
        return 2;
    }
    const uint32_t mask = here & (uint32_t)wanted;
    b.dtype = argc > 4 && !strcmp(argv[4], "f32") ? HR_F32 : HR_BF16;
    hr_kernels_fill(&b.kernels, mask);
    for (b.T = 2048; b.T <= longest; b.T *= 4) measure(&b, hr_cpu_rung_name(mask), mask);
    return 0;
}
