/* SPDX-License-Identifier: Apache-2.0 */
/* bench/kernels_bench.c - compares every kernel variant with the next lower instruction set: the
 * calls of tests/kernels/table.h, checked against the reference first and then timed on one thread.
 *
 *     kernels_bench [PART-OF-A-NAME [ROUNDS]]
 *
 * A variant that is wrong, or slower than the next lower one, is named and sets the exit status to
 * 1.
 *
 * Variants alternate in every round, on the same arrays. Times are CPU times of the thread, so
 * other processes have little influence. A variant is slower if its shortest time is more than 1.05
 * times that of the lower one, and if it was also slower by this factor in most rounds: on a busy
 * machine the shortest times of two copies of one function differed by up to 9 %. A variant that
 * looks slower is measured again with twice as many rounds, up to three times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/table.h"

enum { SEED = 20261125, ROUNDS = 7, ROUNDS_MOST = 1000, ATTEMPTS = 4, RUNGS = 5 };

static const char *const rungs[RUNGS] = { "ref", "avx2", "avx512", "avx512bf16", "amx" };
static const double call_seconds = 5e-4; /* target duration of a sample of repeated calls */
static const double allowed = 1.05, reference_bar = 4;

typedef struct {
    const char *name; /* of its instruction set */
    uint32_t mask;
    hr_kernels kernels;
    double seconds; /* shortest time of a call; 0: not measured */
    double last;    /* time of a call in the last round */
    int64_t calls;
    /* comparisons with the lower variant, and those in which this one was slower */
    int32_t rounds, lost;
} variant;

typedef struct {
    int32_t rounds;
    uint32_t here;
    int32_t compared, wrong, slower;
} tally;

static double thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double sample(kernel_case *c, const variant *v, int64_t calls)
{
    const double start = thread_seconds();
    for (int64_t call = 0; call < calls; call++) kernel_call(c, &v->kernels, v->mask, 1);
    return (thread_seconds() - start) / (double)calls;
}

/* The instruction sets with their own code for this case, from the reference up. fp32 ends at
 * AVX-512, because higher ones only add bf16 instructions. */
static int32_t find_variants(const kernel_case *c, uint32_t here, variant found[RUNGS])
{
    const int32_t last = c->call.dtype == HR_F32 ? RUNGS - 2 : RUNGS;
    int32_t count = 0;
    for (int32_t i = 0; i < last; i++) {
        variant *v = &found[count];
        *v = (variant){ .name = rungs[i], .mask = (uint32_t)hr_cpu_mask_of(rungs[i]) };
        if ((here & v->mask) != v->mask) break;
        hr_kernels_fill(&v->kernels, v->mask);
        if (count > 0 && kernel_is_same(c, &v->kernels, v->mask, &v[-1].kernels, v[-1].mask))
            continue;
        count++;
    }
    return count;
}

static void measure_one(kernel_case *c, variant *v)
{
    if (v->calls == 0) v->calls = 1 + (int64_t)(call_seconds / (sample(c, v, 1) + 1e-9));
    v->last = sample(c, v, v->calls);
    if (v->seconds == 0 || v->last < v->seconds) v->seconds = v->last;
}

/* Alternates all variants, in ascending and then descending order. Skips the reference once it is
 * much slower. */
static void measure(kernel_case *c, variant *variants, int32_t count, int32_t rounds)
{
    for (int32_t round = 0; round < rounds; round++) {
        for (int32_t i = 0; i < count; i++) {
            const int32_t k = round % 2 ? count - 1 - i : i;
            const double next = k + 1 < count ? variants[k + 1].seconds : 0;
            const bool far = k == 0 && next > 0 && variants[0].seconds > reference_bar * next;
            if (!far) measure_one(c, &variants[k]);
        }
        for (int32_t i = 1; i < count; i++) {
            variants[i].rounds++;
            variants[i].lost += variants[i].last > allowed * variants[i - 1].last;
        }
    }
}

static bool is_slower(const variant *v, const variant *below)
{
    return v->seconds > allowed * below->seconds && 2 * v->lost > v->rounds;
}

static bool any_slower(const variant *variants, int32_t count)
{
    for (int32_t i = 1; i < count; i++)
        if (is_slower(&variants[i], &variants[i - 1])) return true;
    return false;
}

static void print_line(const kernel_entry *entry, hr_dtype dtype, const variant *variants,
                       int32_t count)
{
    int32_t at = 0;
    printf("%-26s %-4s", entry->name, hr_dtype_name(dtype));
    for (int32_t i = 0; i < RUNGS - 1; i++) {
        if (at >= count || strcmp(variants[at].name, rungs[i])) {
            printf(" %18s", "-");
            continue;
        }
        printf(" %10.2f", 1e6 * variants[at].seconds);
        if (at > 0) printf(" %6.2fx", variants[at - 1].seconds / variants[at].seconds);
        else printf(" %7s", "");
        at++;
    }
    if (at < count)
        printf(" amx %.2f %.2fx", 1e6 * variants[at].seconds,
               variants[at - 1].seconds / variants[at].seconds);
    printf("\n");
    fflush(stdout);
}

static void compare_all(kernel_case *c, const kernel_entry *entry, const variant *variants,
                        int32_t count, tally *totals)
{
    char why[KERNEL_TEXT_BYTES];
    for (int32_t i = 1; i < count; i++, totals->compared++) {
        if (kernel_agrees(c, &variants[i].kernels, variants[i].mask, 1, why)) continue;
        printf("WRONG %s, %s, %s: %s\n", entry->name, hr_dtype_name(c->call.dtype),
               variants[i].name, why);
        totals->wrong++;
    }
}

static void check_case(const kernel_entry *entry, hr_dtype dtype, tally *totals)
{
    kernel_case c;
    variant variants[RUNGS];
    kernel_open(&c, entry, entry->timed, dtype, true, SEED);
    const int32_t count = find_variants(&c, totals->here, variants);
    compare_all(&c, entry, variants, count, totals);
    kernel_reset(&c, 1);
    bool slower = true;
    for (int32_t attempt = 0; attempt < ATTEMPTS && slower; attempt++) {
        measure(&c, variants, count, totals->rounds << attempt);
        slower = any_slower(variants, count);
    }
    print_line(entry, dtype, variants, count);
    for (int32_t i = 1; i < count; i++) {
        if (!is_slower(&variants[i], &variants[i - 1])) continue;
        printf("SLOWER %s, %s: %s takes %.2f us, %s below it %.2f us; slower in %d of %d rounds\n",
               entry->name, hr_dtype_name(dtype), variants[i].name, 1e6 * variants[i].seconds,
               variants[i - 1].name, 1e6 * variants[i - 1].seconds, variants[i].lost,
               variants[i].rounds);
        totals->slower++;
    }
    kernel_close(&c);
}

int main(int argc, char **argv)
{
    tally totals = { .rounds = argc > 2 ? atoi(argv[2]) : ROUNDS, .here = hr_cpu_detect() };
    if (argc > 3 || totals.rounds < 1 || totals.rounds > ROUNDS_MOST) {
        fprintf(stderr, "usage: kernels_bench [PART-OF-A-NAME [ROUNDS]]\n");
        return 2;
    }
    hr_cpu_flush_denormals();
    printf("%-31s", "us a call, and times the rung below");
    for (int32_t i = 0; i < RUNGS - 1; i++) printf(" %18s", rungs[i]);
    printf("\n");
    for (int32_t e = 0; e < KERNEL_ENTRIES; e++)
        for (int32_t dtype = HR_F32; dtype <= (kernel_table[e].fp32_only ? HR_F32 : HR_BF16);
             dtype++)
            if (argc < 2 || strstr(kernel_table[e].name, argv[1]))
                check_case(&kernel_table[e], (hr_dtype)dtype, &totals);
    printf("%d variants: %d wrong, %d slower than the rung below\n", totals.compared, totals.wrong,
           totals.slower);
    return totals.wrong || totals.slower;
}
