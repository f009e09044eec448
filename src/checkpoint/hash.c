/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/hash.c - the streaming XXH3 of xxHash, printed in its canonical form. */
#include "checkpoint/hash.h"

#include <stdio.h>

void hr_hash_begin(hr_hash *hash)
{
    XXH3_INITSTATE(&hash->state);
    XXH3_128bits_reset(&hash->state);
}

void hr_hash_add(hr_hash *hash, const void *memory, int64_t bytes)
{
    XXH3_128bits_update(&hash->state, memory, (size_t)bytes);
}

const char *hr_hash_print(const hr_hash *hash, char text[HR_HASH_BYTES])
{
    const XXH128_hash_t digest = XXH3_128bits_digest(&hash->state);
    snprintf(text, HR_HASH_BYTES, "%016llx%016llx", (unsigned long long)digest.high64,
             (unsigned long long)digest.low64);
    return text;
}
