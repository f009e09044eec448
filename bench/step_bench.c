/* SPDX-License-Identifier: Apache-2.0 */
/* Whole steps of training: tokens a second, and the fraction of a ceiling measured in between.
 *
 *     step_bench [--ops] [--rounds N] [--threads N] [--rung NAME] [RECIPE] [key=value ...]
 *
 * Without a recipe: the shapes of docs/speed.md. A round probes the ceiling, then runs one step of every
 * shape, so that all of them see the same minutes; medians are printed. FLOP count as a plan counts
 * them: 6 x weights in products + attention of kept blocks, a token. Time is CPU time of the thread
 * that leads (it spins while it waits), so that what else the machine does counts little. */
#include "ceiling.h"
#include "support/rig.h"

enum { SHAPES_MOST = 12, ROUNDS_MOST = 101, BUSY_PERCENT = 90 };

typedef struct {
    const char *name;
    hr_config config;
    rig rig;
    double flops; /* of a step */
    double gflops[ROUNDS_MOST], fraction[ROUNDS_MOST], tokens[ROUNDS_MOST];
} shape;

typedef struct {
    int32_t rounds, threads;
    bool ops;
    uint32_t mask;
    shape shapes[SHAPES_MOST];
    int32_t count;
    double op_seconds[HR_OP_COUNT], op_flops[HR_OP_COUNT], last_seconds;
} bench;

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int32_t count)
{
    double sorted[ROUNDS_MOST];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    return sorted[count / 2];
}

static void needle(hr_config *config, int64_t V, int64_t T, hr_format format)
{
    hr_config_default(config);
    config->model.family = HR_FAMILY_NEEDLE;
    config->model.d_model = 512;
    config->model.n_layers = 6;
    config->model.n_heads = 8;
    config->model.d_ff = 2048;
    config->model.vocab_size = V;
    config->model.dropout = 0;
    config->data.tokenizer = HR_TOKENIZER_WORDS;
    config->train.format = format;
    config->train.seq_len = T;
    config->train.batch = 4096 / T;
    config->train.steps = 1000;
    config->train.sample_tokens = 0;
}

static void usual_shapes(bench *b)
{
    static const struct {
        const char *name;
        int64_t V, T;
        hr_format format;
    } usual[] = { { "V=10,000 T=128 bf16", 10000, 128, HR_FORMAT_BF16 },
                  { "V=10,000 T=512 bf16", 10000, 512, HR_FORMAT_BF16 },
                  { "V=50,304 T=128 bf16", 50304, 128, HR_FORMAT_BF16 },
                  { "V=10,000 T=128 fp32", 10000, 128, HR_FORMAT_FP32 },
                  { "V=10,000 T=512 fp32", 10000, 512, HR_FORMAT_FP32 } };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        shape *s = &b->shapes[b->count++];
        s->name = usual[i].name;
        needle(&s->config, usual[i].V, usual[i].T, usual[i].format);
    }
}

static double step_flops(const rig *r)
{
    const hr_program *program = &r->compiled.program;
    const hr_loop *section = &program->loops[hr_program_loop(program, "step")];
    double flops = 0;
    for (int32_t s = section->step_first; s <= section->step_last; s++) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = program->ops[step->op];
        if (op->flops && step->direction == HR_DIR_FORWARD)
            flops += 3.0 * (double)op->flops(step->attr, r->rows);
    }
    return flops;
}

static bench *watched;

/* CPU seconds of each operation, by the thread that leads. */
static void watch(void *context, const hr_executor *executor, int32_t s)
{
    const hr_step *step = &executor->program->steps[s];
    const double now = hr_bench_cpu_seconds();
    (void)context;
    watched->op_seconds[step->op] += now - watched->last_seconds;
    if (executor->program->ops[step->op]->flops) {
        int64_t rows = executor->program->tensors[step->in[0]].rows;
        watched->op_flops[step->op] +=
            (double)executor->program->ops[step->op]->flops(step->attr, rows);
    }
    watched->last_seconds = hr_bench_cpu_seconds();
}

static void run_round(bench *b, shape *s, int32_t round)
{
    const hr_ceiling kind = hr_ceiling_of(b->mask, s->config.train.format == HR_FORMAT_BF16);
    const double before = hr_ceiling_gflops(kind, b->threads);
    const double start = hr_bench_cpu_seconds();
    b->last_seconds = start;
    rig_section(&s->rig, "fetch");
    rig_section(&s->rig, "step");
    rig_section(&s->rig, "update");
    const double seconds = hr_bench_cpu_seconds() - start;
    const double after = hr_ceiling_gflops(kind, b->threads);
    s->rig.executor.clock++;
    s->gflops[round] = 1e-9 * s->flops / seconds;
    s->fraction[round] = s->gflops[round] / (0.5 * (before + after));
    s->tokens[round] = (double)s->rig.rows / seconds;
}

/* The rig copies gradients when it reports; a bench of steps does without. */
static hr_status host(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                      hr_error *err)
{
    if (executor->program->steps[step].op == HR_OP_report) return HR_OK;
    return rig_host(context, executor, step, call, err);
}

static void print_ops(const bench *b, const shape *s)
{
    double all = 0;
    for (int32_t op = 0; op < HR_OP_COUNT; op++) all += b->op_seconds[op];
    printf("\n%s\n", s->name);
    for (int32_t op = 0; op < HR_OP_COUNT; op++) {
        if (b->op_seconds[op] == 0) continue;
        printf("  %-14s %7.1f ms  %5.1f %%", hr_op_table[op]->name,
               1e3 * b->op_seconds[op] / b->rounds, 100 * b->op_seconds[op] / all);
        if (b->op_flops[op] > 0)
            printf("  %7.1f GFLOP/s", 1e-9 * b->op_flops[op] / b->op_seconds[op]);
        printf("\n");
    }
}

static void arguments(bench *b, int argc, char **argv)
{
    hr_error err;
    hr_config config;
    bool own = false;
    hr_config_default(&config);
    for (int i = 1; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!strcmp(argv[i], "--ops")) b->ops = true;
        else if (!strcmp(argv[i], "--rounds") && i + 1 < argc) b->rounds = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc) b->threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--rung") && i + 1 < argc)
            b->mask &= (uint32_t)hr_cpu_mask_of(argv[++i]);
        else if (equals) {
            *equals = 0;
            rig_must(hr_config_set(&config, argv[i], equals + 1, &err), &err);
            own = true;
        } else {
            rig_must(hr_config_read(&config, argv[i], &err), &err);
            own = true;
        }
    }
    if (b->rounds < 1 || b->rounds > ROUNDS_MOST) b->rounds = 5;
    if (!own) {
        usual_shapes(b);
        return;
    }
    if (!config.train.steps) config.train.steps = 1000;
    b->shapes[b->count].name = "recipe";
    b->shapes[b->count++].config = config;
}

int main(int argc, char **argv)
{
    static bench b = { .rounds = 5, .threads = 2 };
    b.mask = hr_cpu_detect();
    arguments(&b, argc, argv);
    watched = &b;
    printf("%s, %d threads, %d rounds\n", hr_cpu_rung_name(b.mask), b.threads, b.rounds);
    printf("%-22s %10s %10s %12s\n", "shape", "tokens/s", "GFLOP/s", "of ceiling");
    for (int32_t i = 0; i < b.count; i++) { /* one at a time: they do not all fit beside each other */
        shape *s = &b.shapes[i];
        memset(b.op_seconds, 0, sizeof b.op_seconds);
        memset(b.op_flops, 0, sizeof b.op_flops);
        rig_open(&s->rig, &s->config, b.threads, b.mask, 0, 0);
        s->rig.executor.host = host;
        s->rig.executor.watch = 0;
        s->flops = step_flops(&s->rig);
        run_round(&b, s, 0); /* warm */
        s->rig.executor.watch = b.ops ? watch : 0;
        for (int32_t round = 0; round < b.rounds; round++) run_round(&b, s, round);
        printf("%-22s %10.0f %10.1f %11.1f %%\n", s->name, median(s->tokens, b.rounds),
               median(s->gflops, b.rounds), 100 * median(s->fraction, b.rounds));
        fflush(stdout);
        if (b.ops) print_ops(&b, s);
        rig_close(&s->rig);
    }
    return 0;
}
