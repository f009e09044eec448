/* SPDX-License-Identifier: Apache-2.0 */
/* Whole training steps: tokens per second, and the fraction of a ceiling measured in between.
 *
 *     step_bench [--ops] [--paced] [--rounds N] [--rung NAME] [RECIPE] [key=value ...]
 *
 * Without a recipe: the shapes of docs/speed.md, which also explains what is counted. Two threads,
 * unless train.threads says otherwise. --paced runs one round per line of standard input and prints
 * it as JSON, so that a script can alternate it with another program. */
#include "ceiling.h"
#include "support/rig.h"

enum { SHAPES_MOST = 12, ROUNDS_MOST = 101, LINE_BYTES = 64 };

typedef struct {
    const char *name;
    hr_config config;
} shape;

/* One step, and the ceiling before and after it. */
typedef struct {
    double cpu_seconds, wall_seconds, ceiling;
} sample;

typedef struct {
    int32_t rounds, threads;
    bool ops, paced;
    uint32_t mask;
    shape shapes[SHAPES_MOST];
    int32_t count;
    rig rig;      /* of the current shape */
    double gflop; /* of a step */
    double op_seconds[HR_OP_COUNT], op_gflop[HR_OP_COUNT], last_seconds;
} bench;

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int32_t count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[count / 2];
}

static double wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void add_needle(bench *b, const char *name, int64_t V, int64_t T, hr_format format)
{
    shape *s = &b->shapes[b->count++];
    hr_config *config = &s->config;
    s->name = name;
    hr_config_default(config);
    config->model.family = HR_FAMILY_NEEDLE;
    config->model.d_model = 512;
    config->model.n_layers = 6;
    config->model.n_heads = 8;
    config->model.d_ff = 2048;
    config->model.vocab_size = V;
    config->model.dropout = 0;
    snprintf(config->data.tokenizer, sizeof config->data.tokenizer, "words");
    config->train.dtype = format;
    config->train.seq_len = T;
    config->train.batch = 4096 / T;
    config->train.steps = 1000;
    config->train.sample_tokens = 0;
}

static void usual_shapes(bench *b)
{
    add_needle(b, "V=10,000 T=128 bf16", 10000, 128, HR_FORMAT_BF16);
    add_needle(b, "V=10,000 T=512 bf16", 10000, 512, HR_FORMAT_BF16);
    add_needle(b, "V=50,304 T=128 bf16", 50304, 128, HR_FORMAT_BF16);
    add_needle(b, "V=50,304 T=512 bf16", 50304, 512, HR_FORMAT_BF16);
    add_needle(b, "V=10,000 T=128 fp32", 10000, 128, HR_FORMAT_FP32);
    add_needle(b, "V=10,000 T=512 fp32", 10000, 512, HR_FORMAT_FP32);
}

/* As a plan counts it, per token: 6 x weights in products + attention of unmasked blocks. */
static double step_gflop(const rig *r)
{
    const hr_program *program = &r->compiled.program;
    const hr_loop *section = &program->loops[hr_program_loop(program, HR_LOOP_STEP)];
    double flops = 0;
    for (int32_t s = section->step_first; s <= section->step_last; s++) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = hr_step_op(program, step);
        if (op->flops && step->direction == HR_DIR_FORWARD)
            flops += 3.0 * (double)op->flops(step->attr, r->rows);
    }
    return 1e-9 * flops;
}

static bench *watched;

/* CPU seconds of each operation, on the leading thread. */
static void watch(void *context, const hr_executor *executor, int32_t s)
{
    const hr_step *step = &executor->program->steps[s];
    const hr_op *op = hr_step_op(executor->program, step);
    (void)context;
    watched->op_seconds[step->op] += hr_bench_cpu_seconds() - watched->last_seconds;
    if (op->flops) {
        const int64_t rows = executor->program->tensors[step->in[0]].rows;
        watched->op_gflop[step->op] += 1e-9 * (double)op->flops(step->attr, rows);
    }
    watched->last_seconds = hr_bench_cpu_seconds();
}

static sample take_round(bench *b)
{
    const hr_ceiling kind = hr_ceiling_of(b->mask, b->rig.config.train.dtype == HR_FORMAT_BF16);
    const double before = hr_ceiling_gflops(kind, b->threads);
    const double wall = wall_seconds(), cpu = hr_bench_cpu_seconds();
    b->last_seconds = cpu;
    rig_section(&b->rig, HR_LOOP_FETCH);
    rig_section(&b->rig, HR_LOOP_STEP);
    rig_section(&b->rig, HR_LOOP_UPDATE);
    sample s = { hr_bench_cpu_seconds() - cpu, wall_seconds() - wall, 0 };
    s.ceiling = 0.5 * (before + hr_ceiling_gflops(kind, b->threads));
    b->rig.executor.clock++;
    return s;
}

static void take_rounds(bench *b, const char *name)
{
    double cpu[ROUNDS_MOST], wall[ROUNDS_MOST], fraction[ROUNDS_MOST];
    for (int32_t i = 0; i < b->rounds; i++) {
        const sample s = take_round(b);
        cpu[i] = s.cpu_seconds;
        wall[i] = s.wall_seconds;
        fraction[i] = b->gflop / s.cpu_seconds / s.ceiling;
    }
    const double seconds = median(cpu, b->rounds), tokens = (double)b->rig.rows;
    printf("%-20s %9.0f %14.0f %9.0f %10.1f %%\n", name, tokens / median(wall, b->rounds),
           tokens / seconds, b->gflop / seconds, 100 * median(fraction, b->rounds));
    fflush(stdout);
}

static void take_paced_rounds(bench *b)
{
    char line[LINE_BYTES];
    printf("{\"rung\": \"%s\", \"parameters\": %lld}\n", hr_cpu_rung_name(b->mask),
           (long long)b->rig.gradient_count);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        const sample s = take_round(b);
        printf("{\"tokens_per_second\": %.2f, \"tokens_per_cpu_second\": %.2f, "
               "\"gflop\": %.4f, \"tokens\": %lld, \"ceiling\": %.2f}\n",
               (double)b->rig.rows / s.wall_seconds, (double)b->rig.rows / s.cpu_seconds, b->gflop,
               (long long)b->rig.rows, s.ceiling);
        fflush(stdout);
    }
}

/* Replaces the report of the rig, which copies gradients. */
static hr_status ignore(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                        hr_error *err)
{
    (void)context, (void)executor, (void)step, (void)call, (void)err;
    return HR_OK;
}

static const hr_service services[] = { { HR_OP_report, HR_LOOP_OTHER, ignore, NULL } };

static void print_ops(const bench *b)
{
    double all = 0;
    for (int32_t op = 0; op < HR_OP_COUNT; op++) all += b->op_seconds[op];
    for (int32_t op = 0; op < HR_OP_COUNT; op++) {
        if (b->op_seconds[op] == 0) continue;
        printf("    %-14s %8.1f ms %5.1f %%", hr_op_table[op]->name,
               1e3 * b->op_seconds[op] / b->rounds, 100 * b->op_seconds[op] / all);
        if (b->op_gflop[op] > 0) printf(" %7.1f GFLOP/s", b->op_gflop[op] / b->op_seconds[op]);
        printf("\n");
    }
}

static void measure(bench *b, const shape *s)
{
    rig_open(&b->rig, &s->config, b->threads, b->mask, 0, 0);
    hr_executor_serve(&b->rig.executor, (hr_services){ services, 1, &b->rig });
    b->rig.executor.watch = 0;
    b->gflop = step_gflop(&b->rig);
    take_round(b); /* warms up */
    memset(b->op_seconds, 0, sizeof b->op_seconds);
    memset(b->op_gflop, 0, sizeof b->op_gflop);
    if (b->ops) b->rig.executor.watch = watch;
    if (b->paced) take_paced_rounds(b);
    else take_rounds(b, s->name);
    if (b->ops) print_ops(b);
    rig_close(&b->rig);
}

/* Sets an option with an argument. False: unknown option. */
static bool option(bench *b, const char *name, const char *word)
{
    if (!strcmp(name, "--rounds")) b->rounds = atoi(word);
    else if (!strcmp(name, "--rung")) b->mask &= (uint32_t)hr_cpu_mask_of(word);
    else return false;
    return true;
}

static void arguments(bench *b, int argc, char **argv)
{
    hr_error err;
    shape *own = &b->shapes[0];
    hr_config_default(&own->config);
    own->config.train.steps = 1000;
    for (int i = 1; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!strcmp(argv[i], "--ops")) b->ops = true;
        else if (!strcmp(argv[i], "--paced")) b->paced = true;
        else if (i + 1 < argc && option(b, argv[i], argv[i + 1])) i++;
        else if (equals) {
            *equals = 0;
            rig_must(hr_config_set(&own->config, argv[i], equals + 1, &err), &err);
            own->name = "recipe";
        } else {
            rig_must(hr_config_read(&own->config, argv[i], &err), &err);
            own->name = "recipe";
        }
    }
    if (b->rounds < 1 || b->rounds > ROUNDS_MOST) b->rounds = 5;
    if (own->config.train.threads > 0)
        b->threads = (int32_t)hr_min(own->config.train.threads, HR_BENCH_THREADS_MOST);
    if (own->name) b->count = 1;
    else usual_shapes(b);
}

int main(int argc, char **argv)
{
    static bench b = { .rounds = 5, .threads = 2 };
    b.mask = hr_cpu_detect();
    arguments(&b, argc, argv);
    watched = &b;
    if (!b.paced) {
        printf("%s, %d threads, medians of %d\n", hr_cpu_rung_name(b.mask), b.threads, b.rounds);
        printf("%-20s %9s %14s %9s %12s\n", "shape", "tokens/s", "a CPU second", "GFLOP/s",
               "of ceiling");
    }
    for (int32_t i = 0; i < b.count; i++) measure(&b, &b.shapes[i]);
    return 0;
}
