/* SPDX-License-Identifier: Apache-2.0 */
/* data/corpora.c - replaces the names of corpora in a recipe by their files. */
#include <string.h>

#include "config/config.h"
#include "corpus/named.h"
#include "headroom/data.h"

void hr_data_find_corpora(hr_config *config, const char *const *folders, int32_t count)
{
    char path[HR_PATH_BYTES];
    if (hr_named_find(config->data.train, false, folders, count, path, sizeof path))
        memcpy(config->data.train, path, strlen(path) + 1);
    if (hr_named_find(config->data.valid, true, folders, count, path, sizeof path))
        memcpy(config->data.valid, path, strlen(path) + 1);
}
