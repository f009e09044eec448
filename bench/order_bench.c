/* SPDX-License-Identifier: Apache-2.0 */
/* order_bench SEED EPOCH WINDOWS: prints the order in which an epoch of training sees its windows,
 * one index a line. bench/learning --compare gives it to PyTorch. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/batch.h"

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s SEED EPOCH WINDOWS\n", argv[0]);
        return 2;
    }
    const uint64_t seed = strtoull(argv[1], NULL, 10);
    const int64_t epoch = strtoll(argv[2], NULL, 10), windows = strtoll(argv[3], NULL, 10);
    for (int64_t i = 0; i < windows; i++)
        printf("%" PRId64 "\n", hr_batch_order(seed, epoch, i, windows));
    return 0;
}
