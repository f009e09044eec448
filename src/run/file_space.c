/* SPDX-License-Identifier: Apache-2.0 */
/* run/file_space.c - the name of the file, and the free space of its directory. */
#include "run/file_space.h"

#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/crc32c.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"
#include "config/config.h"
#include "dev/block_file.h"

const char *hr_file_space_directory(const hr_config *config)
{
    return *config->memory.file_dir ? config->memory.file_dir : config->train.out;
}

/* Not inlined: paths are long, and the stack size is planned. */
__attribute__((noinline)) void hr_file_space_name(const hr_config *config,
                                                  char name[HR_FILE_SPACE_NAME_BYTES])
{
    char whole[PATH_MAX];
    const char *out = config->train.out;
    if (!*config->memory.file_dir) snprintf(name, HR_FILE_SPACE_NAME_BYTES, "scratch.tmp");
    else if (*out && realpath(out, whole))
        snprintf(name, HR_FILE_SPACE_NAME_BYTES, "scratch-%08x.tmp",
                 hr_crc32c(whole, (int64_t)strlen(whole), false));
    else snprintf(name, HR_FILE_SPACE_NAME_BYTES, "scratch-%lld.tmp", (long long)getpid());
}

/* Bytes on the disk of the file that a killed run left, which is removed on demand; 0: none. Not
 * inlined, as above. */
static __attribute__((noinline)) int64_t leftover_bytes(const hr_config *config, bool removes)
{
    struct stat there;
    char path[PATH_MAX], name[HR_FILE_SPACE_NAME_BYTES];
    hr_file_space_name(config, name);
    if (hr_path_join(hr_file_space_directory(config), name, path, sizeof path, NULL) != HR_OK ||
        lstat(path, &there) != 0 || !S_ISREG(there.st_mode) || !hr_block_file_is(path))
        return 0;
    if (removes) unlink(path);
    return 512 * (int64_t)there.st_blocks;
}

void hr_file_space_clear(const hr_config *config)
{
    (void)leftover_bytes(config, true);
}

/* Additional bytes for the file. */
static int64_t needed_bytes(const hr_config *config, int64_t bytes)
{
    return hr_max(0, bytes - leftover_bytes(config, false));
}

hr_status hr_file_space_find(const hr_config *config, hr_error *err)
{
    const bool has_file = config->memory.moments == HR_PLACE_FILE ||
                          config->memory.spill == HR_SPILL_AUTO;
    return has_file && *config->memory.file_dir ? hr_directory_find(config->memory.file_dir, err)
                                                : HR_OK;
}

hr_status hr_file_space_check(const hr_config *config, const hr_train_events *events, int64_t bytes,
                              hr_error *err)
{
    const char *directory = config->memory.file_dir;
    char needed_text[HR_COUNT_BYTES], free_text[HR_COUNT_BYTES];
    const bool moments = config->memory.moments == HR_PLACE_FILE;
    if (!bytes) {
        if (moments && events->text)
            events->text(events->context, "plan   memory.moments=file has no effect: no optimizer "
                                          "state has 64 KiB or more, all stay in memory");
        return HR_OK;
    }
    if (!*directory && *config->train.out) return HR_OK;
    if (!*directory)
        return hr_fail(err, HR_USAGE,
                       "%s needs a directory for the file: give --out DIR or memory.file_dir=DIR",
                       moments ? "memory.moments=file" : "memory.spill=auto");
    const int64_t available = hr_file_free_bytes(directory), needed = needed_bytes(config, bytes);
    if (available < 0 || needed <= available) return HR_OK;
    return hr_fail(err, HR_NO_FIT,
                   "%.1000s: the file of %s needs %s bytes, %s are free there: free some "
                   "space, or give another memory.file_dir",
                   directory, hr_config_file_holds(config), hr_count_print(needed, needed_text),
                   hr_count_print(available, free_text));
}

int64_t hr_file_space_out_bytes(const hr_config *config, int64_t bytes)
{
    struct stat out, there;
    const char *directory = hr_file_space_directory(config);
    if (!bytes || !*config->train.out) return 0;
    if (directory != config->train.out && stat(config->train.out, &out) == 0 &&
        stat(directory, &there) == 0 && out.st_dev != there.st_dev)
        return 0;
    return needed_bytes(config, bytes);
}

void hr_file_space_warn(const hr_config *config, const hr_train_events *events)
{
    struct statfs system;
    char line[HR_PATH_BYTES + 128];
    const char *directory = hr_file_space_directory(config);
    if (!events->trouble || statfs(directory, &system) != 0) return;
    if (system.f_type != TMPFS_MAGIC && system.f_type != RAMFS_MAGIC) return;
    snprintf(line, sizeof line, "%.1000s: is in memory (%s): %s in it save no memory", directory,
             system.f_type == TMPFS_MAGIC ? "tmpfs" : "ramfs", hr_config_file_holds(config));
    events->trouble(events->context, line);
}
