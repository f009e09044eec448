/* SPDX-License-Identifier: Apache-2.0 */
/* Peak throughput of this machine's cores, by kind of instruction, as one line of JSON:
 *
 *     ceiling_bench [SECONDS [THREADS]]
 *
 * Prints the best of all probes in the given time, because other processes only reduce a probe. */
#include <stdio.h>

#include "ceiling.h"

int main(int argc, char **argv)
{
    static const char *const names[] = { "fma_256", "fma_512", "vdpbf16ps", "amx" };
    static const uint32_t needed[] = { HR_CPU_AVX2, HR_CPU_AVX512, HR_CPU_AVX512BF16, HR_CPU_AMX };
    const double seconds = argc > 1 ? atof(argv[1]) : 20;
    const int32_t threads = argc > 2 ? atoi(argv[2]) : 2;
    const uint32_t mask = hr_cpu_detect();
    double best[HR_CEILING_KINDS] = { 0 };
    struct timespec start, now;
    if (argc > 3 || seconds < 0 || threads < 1 || threads > HR_BENCH_THREADS_MOST) {
        fprintf(stderr, "usage: ceiling_bench [SECONDS [THREADS]]\n");
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int kind = 0; kind < HR_CEILING_KINDS; kind++) {
            if (!(mask & needed[kind])) continue;
            const double reached = hr_ceiling_gflops((hr_ceiling)kind, threads);
            if (reached > best[kind]) best[kind] = reached;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) < seconds);
    printf("{\"threads\": %d", threads);
    for (int kind = 0; kind < HR_CEILING_KINDS; kind++)
        printf(", \"%s\": %.1f", names[kind], best[kind]);
    printf("}\n");
    return 0;
}
