/* SPDX-License-Identifier: Apache-2.0 */
/* tools/random-streams.c - the random numbers of a run in the form that TestU01 needs: a function
 * that returns the next 32 bits. Each stream iterates over its coordinates in another order. */
#include <bbattery.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <swrite.h>
#include <unif01.h>
#include <unistd.h>

#include "base/random.h"
#include "text/batch.h"

enum { ELEMENTS = 512, POSITIONS = 128, SITE = 5 };

static uint64_t at; /* numbers drawn from the stream so far */

static uint32_t draw(uint64_t seed, uint64_t step, uint32_t site, uint32_t lane, uint32_t sequence,
                     uint32_t position, uint64_t element)
{
    const hr_random_row row = hr_random_row_of(hr_random_stream_of(seed, step, site, lane),
                                               sequence, position);
    return hr_random_element(&row, element);
}

/* ---- dropout: all elements of a step in order, and each coordinate alone */

static uint32_t elements(void)
{
    static hr_random_block block;
    const uint64_t i = at++, row_index = i / ELEMENTS;
    if (i % 4 == 0) {
        const hr_random_row row = hr_random_row_of(hr_random_stream_of(0, 1, SITE, 0),
                                                   (uint32_t)(row_index / POSITIONS),
                                                   (uint32_t)(row_index % POSITIONS));
        block = hr_random_block_of(&row, (uint32_t)(i % ELEMENTS / 4));
    }
    return block.word[i % 4];
}

/* Whether 32 elements are dropped, with p = 0.5. */
static uint32_t mask(void)
{
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++) bits = bits << 1 | (elements() < hr_random_threshold(0.5));
    return bits;
}

static uint32_t positions(void)
{
    return draw(0, 1, SITE, 0, 0, (uint32_t)at++, 7);
}

static uint32_t sequences(void)
{
    return draw(0, 1, SITE, 0, (uint32_t)at++, 0, 0);
}

static uint32_t steps(void)
{
    return draw(0, at++, SITE, 0, 3, 17, 0);
}

static uint32_t seeds(void)
{
    return draw(at++, 1, SITE, 0, 0, 0, 0);
}

static uint32_t sites(void)
{
    return draw(0, 1, (uint32_t)at++, 0, 0, 0, 0);
}

static uint32_t heads(void)
{
    return draw(0, 1, SITE, (uint32_t)at++, 0, 0, 0);
}

/* ---- the other uses */

static uint32_t weights(void)
{
    const uint64_t i = at++;
    return draw(0, 0, HR_SITE_WEIGHTS, 3, 0, (uint32_t)(i / ELEMENTS), i % ELEMENTS);
}

static uint32_t weight_columns(void)
{
    return draw(0, 0, HR_SITE_WEIGHTS, 3, 0, (uint32_t)at++, 1);
}

static uint32_t parameters(void)
{
    return draw(0, 0, HR_SITE_WEIGHTS, (uint32_t)at++, 0, 0, 0);
}

/* Positions in an order of 2^62 windows, so that the upper 32 bits of two draws repeat only by
 * chance. */
static uint32_t order(void)
{
    return (uint32_t)(hr_batch_order(0, 0, (int64_t)at++, INT64_C(1) << 62) >> 30);
}

static uint32_t order_of_epochs(void)
{
    return (uint32_t)(hr_batch_order(0, (int64_t)at++, 5, INT64_C(1) << 62) >> 30);
}

static uint32_t sampling(uint64_t seed, uint32_t count)
{
    const hr_random_row row = hr_random_row_of(hr_random_stream_of(seed, 0, HR_SITE_GENERATE, 0), 0,
                                               count);
    return (uint32_t)(hr_random_unit(hr_random_wide(&row, 0)) * 4294967296.0);
}

static uint32_t samples(void)
{
    return sampling(0, (uint32_t)at++);
}

static uint32_t samples_of_seeds(void)
{
    return sampling(at++, 0);
}

/* Generators that are broken on purpose: the tests must detect them. */
static uint32_t counter(void)
{
    return (uint32_t)at++ * 0x9e3779b9u;
}

static const struct {
    const char *name;
    uint32_t (*next)(void);
    const char *of;
} streams[] = {
    { "elements", elements, "dropout: elements, positions, sequences in their order" },
    { "positions", positions, "dropout: one element at successive positions" },
    { "sequences", sequences, "dropout: one element of successive sequences" },
    { "steps", steps, "dropout: one element at successive steps" },
    { "seeds", seeds, "dropout: one element of successive seeds" },
    { "sites", sites, "dropout: one element of successive sites" },
    { "heads", heads, "attention dropout: one element of successive heads" },
    { "weights", weights, "initial weights: rows of a matrix of 512 columns" },
    { "weight-columns", weight_columns, "initial weights: one column" },
    { "parameters", parameters, "initial weights: the first number of successive parameters" },
    { "order", order, "order of windows within an epoch" },
    { "order-of-epochs", order_of_epochs, "place of one window in successive epochs" },
    { "samples", samples, "generate: successive tokens" },
    { "samples-of-seeds", samples_of_seeds, "generate: first token of successive seeds" },
    { "mask", mask, "dropout: one bit an element, p = 0.5" },
    { "counter", counter, "no random numbers: has to fail" },
};

enum { STREAMS = sizeof streams / sizeof *streams };

/* All orders of a few windows, over successive epochs: chi-squared with n! - 1 degrees of freedom,
 * as deviations from its mean (Wilson and Hilferty 1931). */
static void small_orders(int n)
{
    enum { PLACES = 5040 };
    static int64_t counts[PLACES];
    int64_t orders = 1;
    for (int i = 2; i <= n; i++) orders *= i;
    const int64_t epochs = 200 * orders;
    memset(counts, 0, sizeof counts);
    for (int64_t epoch = 0; epoch < epochs; epoch++) {
        int place[8];
        int64_t code = 0;
        for (int i = 0; i < n; i++) place[i] = (int)hr_batch_order(0, epoch, i, n);
        for (int i = 0; i < n; i++) {
            int smaller = 0;
            for (int j = i + 1; j < n; j++) smaller += place[j] < place[i];
            code = code * (n - i) + smaller;
        }
        counts[code]++;
    }
    double sum = 0;
    for (int64_t i = 0; i < orders; i++) sum += pow((double)counts[i] - 200, 2) / 200;
    const double freedom = (double)orders - 1, part = 2 / (9 * freedom);
    const double away = (cbrt(sum / freedom) - (1 - part)) / sqrt(part);
    printf("orders of %d windows: %lld epochs, chi-squared %.1f of %.0f, %+.2f deviations\n", n,
           (long long)epochs, sum, freedom, away);
}

static void test(int stream, const char *battery)
{
    char name[64];
    snprintf(name, sizeof name, "%s", streams[stream].name);
    unif01_Gen *gen = unif01_CreateExternGenBits(name, streams[stream].next);
    at = 0;
    swrite_Basic = FALSE;
    fflush(stdout);
    const int told = dup(STDOUT_FILENO);
    if (!freopen("/dev/null", "w", stdout)) exit(1); /* the batteries print their own summary */
    if (!strcmp(battery, "rabbit")) bbattery_Rabbit(gen, 1 << 28);
    else if (!strcmp(battery, "crush")) bbattery_Crush(gen);
    else bbattery_SmallCrush(gen);
    fflush(stdout);
    dup2(told, STDOUT_FILENO);
    close(told);
    int far = 0;
    for (int i = 0; i < bbattery_NTests; i++)
        far += !(bbattery_pVal[i] >= 0.001 && bbattery_pVal[i] <= 0.999);
    printf("%s, %s: %llu calls, %d p-values, %d far\n", battery, name, (unsigned long long)at,
           bbattery_NTests, far);
    for (int i = 0; i < bbattery_NTests; i++)
        if (!(bbattery_pVal[i] >= 0.001 && bbattery_pVal[i] <= 0.999))
            printf("    %s: p = %.3g\n", bbattery_TestNames[i], bbattery_pVal[i]);
    fflush(stdout);
    unif01_DeleteExternGenBits(gen);
}

int main(int argc, char **argv)
{
    const char *battery = argc > 1 ? argv[1] : "smallcrush";
    if (strcmp(battery, "smallcrush") && strcmp(battery, "rabbit") && strcmp(battery, "crush")) {
        fprintf(stderr, "usage: tools/random-streams [smallcrush|rabbit|crush] [STREAM ...]\n");
        for (int i = 0; i < STREAMS; i++)
            fprintf(stderr, "  %-17s %s\n", streams[i].name, streams[i].of);
        return 2;
    }
    for (int n = 2; argc < 3 && n <= 7; n++) small_orders(n);
    for (int i = 0; i < STREAMS; i++) {
        bool wanted = argc < 3;
        for (int k = 2; k < argc; k++) wanted |= !strcmp(argv[k], streams[i].name);
        if (wanted) test(i, battery);
    }
    return 0;
}
