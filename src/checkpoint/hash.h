/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/hash.h - the hash that identifies a file's content: 128-bit XXH3, as `xxhsum -H2`
 * prints it. / */
#ifndef HR_CHECKPOINT_HASH_H
#define HR_CHECKPOINT_HASH_H

#define XXH_STATIC_LINKING_ONLY /* for a state struct without allocation */
#include <stdint.h>
#include <xxhash.h>

enum { HR_HASH_BYTES = 33 }; /* 32 digits and a null */

typedef struct {
    XXH3_state_t state;
} hr_hash;

void hr_hash_begin(hr_hash *hash);
void hr_hash_add(hr_hash *hash, const void *memory, int64_t bytes);

/* Prints the hash of all bytes added so far. Returns text. */
const char *hr_hash_print(const hr_hash *hash, char text[HR_HASH_BYTES]);

#endif
