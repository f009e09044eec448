/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/hash_cache.h - hashes of large files, remembered in the user's cache by path, size,
 * times and inode: a base of 16 GB takes half a minute to read. */
#ifndef HR_CHECKPOINT_HASH_CACHE_H
#define HR_CHECKPOINT_HASH_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/hash.h"

/* Smaller files are hashed each time. */
enum { HR_HASH_CACHE_LEAST = 64 << 20 };

/* Returns whether the hash of an open file is known, and writes it.
 *   cache  directory; null: nothing is remembered */
bool hr_hash_cache_find(const char *cache, int file, const char *path, char hash[HR_HASH_BYTES]);

/* Remembers the hash of an open file, unless it is small, or was changed since shortly before it
 * was hashed: a change within the same tick of the clock would not show. A cache that cannot be
 * written is not an error.
 *   begun  when hashing began, in seconds since 1970 */
void hr_hash_cache_keep(const char *cache, int file, const char *path, int64_t begun,
                        const char hash[HR_HASH_BYTES]);

#endif
