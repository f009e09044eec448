/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a tokenizer.model. The target of tokenizer.json distinguishes the two formats
 * by their first bytes; this one adds the first bytes of a model if they are missing. */
#define _GNU_SOURCE /* memfd_create */
#include <string.h>

#define LLVMFuzzerTestOneInput hr_fuzz_tokenizer
#include "tokenizer_fuzz.c"
#undef LLVMFuzzerTestOneInput

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const uint8_t unknown[] = { 0x0a, 9, 0x0a, 5, '<', 'u', 'n', 'k', '>', 0x18, 2 };
    static uint8_t model[1 << 16];
    if (count > sizeof model - sizeof unknown) return -1;
    if (count >= 3 && bytes[0] == unknown[0] && bytes[2] == unknown[2])
        return hr_fuzz_tokenizer(bytes, count);
    memcpy(model, unknown, sizeof unknown);
    memcpy(model + sizeof unknown, bytes, count);
    return hr_fuzz_tokenizer(model, count + sizeof unknown);
}
