/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/small_tokenizer.h - a small tokenizer.json with 260 ids. */
#ifndef HR_TESTS_SUPPORT_SMALL_TOKENIZER_H
#define HR_TESTS_SUPPORT_SMALL_TOKENIZER_H

#include <stdbool.h>
#include <stdio.h>

enum { SMALL_TH = 256, SMALL_THE, SMALL_SPACE_THE, SMALL_ADDED, SMALL_IDS };

/* The text of the file. The ids of bytes equal the bytes; then "th", "the", " the" by three merges,
 * and an added special token. Valid until the next call. */
static inline const char *small_tokenizer(const char *added)
{
    static char text[16384];
    int used = sprintf(
        text,
        "{\"added_tokens\":[{\"id\":259,\"content\":\"%s\",\"single_word\":false,\"lstrip\":false,"
        "\"rstrip\":false,\"normalized\":false,\"special\":true}],\"normalizer\":null,"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
        "\"trim_offsets\":true,\"use_regex\":true},\"post_processor\":null,\"decoder\":{\"type\":"
        "\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{",
        added);
    for (int byte = 0, others = 0; byte < 256; byte++) {
        const bool own = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
        used += sprintf(text + used, "\"\\u%04x\":%d,", own ? byte : 256 + others++, byte);
    }
    sprintf(text + used, "\"th\":256,\"the\":257,\"\\u0120the\":258},"
                         "\"merges\":[\"t h\",\"th e\",\"\\u0120 the\"]}}");
    return text;
}

#endif
