/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as config.json: the result is a set of recipe keys that survives writing and
 * reading, or an error message of one line. The same bytes as generation_config.json: end tokens,
 * or such a message. And as adapter_config.json or npt_config.json: keys of adapters, or such a
 * message. */
#define _GNU_SOURCE /* mkdtemp */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/hf_adapter.h"
#include "hf/hf_config.h"
#include "hf/hf_ends.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static char folder[] = P_tmpdir "/headroom-fuzz-XXXXXX", path[64], generation[64], adapter[64],
            npt[64];

static void remove_folder(void)
{
    remove(path);
    remove(generation);
    remove(adapter);
    rmdir(folder);
}

static void put(const char *name, const void *bytes, size_t count)
{
    remove(name); /* truncating the file would wait for the disk */
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file)) abort();
}

static void read_ends(const void *bytes, size_t count)
{
    hr_config config;
    hr_end_ids ends;
    hr_error err = { HR_OK, "" };
    hr_config_default(&config);
    put(generation, bytes, count);
    const hr_status status = hr_hf_read_ends(folder, &config, &ends, &err);
    if ((status != HR_OK && status != HR_CORRUPT) || strchr(err.message, '\n')) __builtin_trap();
    for (int32_t i = 0; status == HR_OK && i < ends.count; i++)
        if (ends.ids[i] < 0) __builtin_trap();
}

static void read_adapter(const void *bytes, size_t count)
{
    hr_config config;
    hr_error err = { HR_OK, "" };
    hr_config_default(&config);
    put(adapter, bytes, count);
    const hr_status status = hr_hf_adapter_read(folder, &config, NULL, &err);
    if ((status != HR_OK && status != HR_CORRUPT) || strchr(err.message, '\n')) __builtin_trap();
    if (status == HR_OK && (config.train.adapter.rank < 1 || !config.train.adapter.targets[0] ||
                            config.train.adapter.kind != HR_ADAPTER_LORA))
        __builtin_trap();
}

/* The file of NPT comes first where a folder has both. */
static void read_npt(const void *bytes, size_t count)
{
    hr_config config;
    hr_error err = { HR_OK, "" };
    hr_config_default(&config);
    put(npt, bytes, count);
    const hr_status status = hr_hf_adapter_read(folder, &config, NULL, &err);
    remove(npt);
    const hr_config_adapter *a = &config.train.adapter;
    if ((status != HR_OK && status != HR_CORRUPT) || strchr(err.message, '\n')) __builtin_trap();
    if (status == HR_OK &&
        (a->rank < 1 || a->triples < 1 || !a->layers[0] || a->kind != HR_ADAPTER_NPT))
        __builtin_trap();
}

static hr_status read_back(const void *bytes, size_t count, hr_config *config, hr_error *err)
{
    put(path, bytes, count);
    hr_config_default(config);
    return hr_hf_config_read(folder, config, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    hr_config config, again;
    hr_error err = { HR_OK, "" };
    static char text[16384], twice[16384];
    if (!*path) {
        if (!mkdtemp(folder) || atexit(remove_folder)) abort();
        snprintf(path, sizeof path, "%s/config.json", folder);
        snprintf(generation, sizeof generation, "%s/generation_config.json", folder);
        snprintf(adapter, sizeof adapter, "%s/adapter_config.json", folder);
        snprintf(npt, sizeof npt, "%s/npt_config.json", folder);
    }
    read_ends(bytes, count);
    read_adapter(bytes, count);
    read_npt(bytes, count);
    const hr_status status = read_back(bytes, count, &config, &err);
    if ((status != HR_OK && status != HR_CORRUPT) || err.status != status ||
        strchr(err.message, '\n'))
        __builtin_trap();
    if (status != HR_OK) return 0;
    /* the head width would not be an integer */
    if (config.model.d_model % config.model.n_heads) return 0;
    hr_writer writer = { text, sizeof text }, second = { twice, sizeof twice };
    hr_hf_config_write(&config, HR_WEIGHTS_COMPUTE, &writer);
    if (writer.cut || read_back(text, (size_t)writer.used, &again, &err) != HR_OK) __builtin_trap();
    hr_hf_config_write(&again, HR_WEIGHTS_COMPUTE, &second);
    if (strcmp(text, twice)) __builtin_trap();
    return 0;
}
