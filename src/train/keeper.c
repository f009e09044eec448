/* SPDX-License-Identifier: Apache-2.0 */
/* train/keeper.c - a checkpoint from its first file to its name. */
#define _GNU_SOURCE
#include "train/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/directory.h"
#include "ckpt/recipe.h"
#include "train/disk.h"

/* What a slow disk that others write to has flushed and read back in that time. A signal does not
 * end the wait: the run that ends then waits for the same. */
enum { LINGER_BYTES = 32 << 20 };
static const int64_t linger_ns = 2000000000;

static const char strategy_name[] = "strategy.yaml";

/* ---- memory */

enum { SHARED_BYTES = HR_KEEPER_BUFFER + HR_STACK_BYTES };

int64_t hr_keeper_bytes(void)
{
    return hr_page_bytes() + SHARED_BYTES + HR_RECIPE_BYTES + (int64_t)sizeof(hr_keeper) + 3 * 64;
}

hr_status hr_keeper_open(hr_keeper **opened, const hr_log *log, const hr_config *config,
                         const hr_program *program, const char *strategy, int64_t checkpoint_bytes,
                         hr_region *region, hr_error *err)
{
    const int64_t page = hr_page_bytes();
    uint8_t *memory = hr_region_take(region, page + SHARED_BYTES, 1);
    char *text = hr_region_take(region, HR_RECIPE_BYTES, 1);
    hr_keeper *keeper = *opened = hr_region_take(region, 1, sizeof *keeper);
    if (!memory || !text || !keeper)
        return hr_fail(err, HR_FAILURE, "out of memory for checkpoints");
    keeper->text = text;
    keeper->log = log;
    keeper->buffer = (uint8_t *)(uintptr_t)hr_round_up((int64_t)(uintptr_t)memory, page);
    keeper->config = config;
    keeper->program = program;
    keeper->strategy = strategy;
    keeper->checkpoint_bytes = checkpoint_bytes;
    if (!config->train.out[0]) return HR_OK;
    const hr_status status = hr_shelf_path(config->train.out, keeper->shelf, err);
    return status == HR_OK ? hr_aside_open(&keeper->aside, keeper->buffer + HR_KEEPER_BUFFER, err)
                           : status;
}

void hr_keeper_close(hr_keeper *keeper)
{
    if (keeper) hr_aside_close(&keeper->aside);
}

/* ---- in front */

hr_weights_out *hr_keeper_file(hr_keeper *keeper, hr_kept kept)
{
    return keeper->begun[kept] ? &keeper->files[kept] : NULL;
}

void hr_keeper_abort(hr_keeper *keeper)
{
    hr_error ignored;
    for (int32_t kept = 0; kept < HR_KEPT_KINDS; kept++) {
        if (keeper->begun[kept]) hr_weights_abort(&keeper->files[kept]);
        keeper->begun[kept] = false;
    }
    (void)!hr_directory_remove(keeper->partial, hr_manifest_name, &ignored);
}

/* What a run that was killed left under this name goes first. Nobody waits here for a flush of the
 * new one's name: nothing is lost with it. */
static hr_status make_partial(hr_keeper *keeper, int64_t step, hr_error *err)
{
    char name[HR_STEP_NAME_BYTES];
    hr_status status = hr_directory_make(keeper->shelf, err);
    if (status == HR_OK)
        status = hr_path_join(keeper->shelf, hr_step_partial(step, name), keeper->partial,
                              sizeof keeper->partial, err);
    if (status == HR_OK)
        status = hr_path_join(keeper->shelf, hr_step_name(step, name), keeper->place,
                              sizeof keeper->place, err);
    if (status == HR_OK) status = hr_directory_remove(keeper->partial, hr_manifest_name, err);
    if (status != HR_OK || mkdir(keeper->partial, 0777) == 0) return status;
    return hr_fail(err, HR_FAILURE, "%s: the directory cannot be created: %s", keeper->partial,
                   hr_reason(errno));
}

hr_status hr_keeper_begin(hr_keeper *keeper, int64_t step, char *text, int64_t text_bytes,
                          hr_error *err)
{
    hr_aside_wait(&keeper->aside);
    keeper->made = false;
    hr_status status = make_partial(keeper, step, err);
    if (status == HR_OK)
        status = hr_disk_check_checkpoint(keeper->shelf, keeper->checkpoint_bytes, err);
    for (int32_t kept = 0; kept < HR_KEPT_KINDS && status == HR_OK; kept++) {
        if (!hr_kept_any(keeper->program, (hr_kept)kept)) continue;
        status = hr_weights_begin(&keeper->files[kept], keeper->program, (hr_kept)kept,
                                  keeper->partial, text, text_bytes, err);
        keeper->begun[kept] = status == HR_OK;
    }
    if (status != HR_OK) hr_keeper_abort(keeper);
    return status;
}

static void keep(void *context);

void hr_keeper_finish(hr_keeper *keeper)
{
    keeper->manifest.file_count = 0;
    keeper->bytes = 0;
    for (int32_t kept = 0; kept < HR_KEPT_KINDS; kept++)
        if (keeper->begun[kept]) keeper->bytes += keeper->files[kept].file.bytes;
    keeper->pending = true;
    hr_aside_run(&keeper->aside, keep, keeper);
}

bool hr_keeper_told(hr_keeper *keeper, bool wait, hr_status *status, hr_error *err)
{
    if (!keeper->pending) return false;
    if (wait) hr_aside_wait(&keeper->aside);
    else if (hr_aside_is_busy(&keeper->aside)) return false;
    keeper->pending = false;
    *status = keeper->status;
    if (*status != HR_OK && err) *err = keeper->err;
    return true;
}

void hr_keeper_linger(hr_keeper *keeper)
{
    if (keeper->pending && keeper->bytes <= LINGER_BYTES)
        hr_aside_wait_until(&keeper->aside, hr_clock_ns() + linger_ns);
}

/* ---- behind */

/* A small file, whole; the manifest has it then. */
static hr_status put_text(hr_keeper *keeper, const char *name, const char *text, int64_t bytes,
                          hr_error *err)
{
    hr_file_out file;
    hr_hash hash;
    hr_status status = hr_file_begin(&file, keeper->partial, name, err);
    if (status == HR_OK) status = hr_file_append(&file, text, bytes, err);
    if (status == HR_OK) status = hr_file_commit(&file, err);
    if (status != HR_OK) return status;
    hr_hash_begin(&hash);
    hr_hash_add(&hash, text, bytes);
    hr_manifest_add(&keeper->manifest, name, bytes, &hash);
    return HR_OK;
}

static hr_status put_texts(hr_keeper *keeper, hr_error *err)
{
    hr_writer recipe = { keeper->text, HR_RECIPE_BYTES };
    const int64_t bytes = hr_weights_config(keeper->config, keeper->text, HR_RECIPE_BYTES);
    hr_status status = put_text(keeper, hr_weights_config_name, keeper->text, bytes, err);
    if (status != HR_OK) return status;
    hr_recipe_print(keeper->config, &recipe);
    HR_ASSERT(!recipe.cut);
    status = put_text(keeper, hr_recipe_name, recipe.text, recipe.used, err);
    if (status != HR_OK) return status;
    return put_text(keeper, strategy_name, keeper->strategy, (int64_t)strlen(keeper->strategy),
                    err);
}

static hr_status commit_files(hr_keeper *keeper, hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t kept = 0; kept < HR_KEPT_KINDS && status == HR_OK; kept++) {
        if (!keeper->begun[kept]) continue;
        hr_weights_out *out = &keeper->files[kept];
        const int64_t bytes = out->file.bytes;
        status = hr_file_commit(&out->file, err);
        if (status != HR_OK) return status;
        keeper->begun[kept] = false;
        hr_manifest_add(&keeper->manifest, hr_kept_name((hr_kept)kept), bytes, &out->hash);
    }
    return status;
}

static hr_status verify(hr_keeper *keeper, hr_error *err)
{
    const hr_shelf_reader reader = { .memory = keeper->buffer,
                                     .bytes = HR_KEEPER_BUFFER,
                                     .direct = true };
    return hr_shelf_verify(keeper->partial, &keeper->manifest, &reader, err);
}

static hr_status put_manifest(hr_keeper *keeper, hr_error *err)
{
    hr_file_out file;
    const int64_t bytes = hr_manifest_print(&keeper->manifest, keeper->text);
    hr_status status = hr_file_begin(&file, keeper->partial, hr_manifest_name, err);
    if (status == HR_OK) status = hr_file_append(&file, keeper->text, bytes, err);
    return status == HR_OK ? hr_file_commit(&file, err) : status;
}

/* A checkpoint of the same step may have the name: a damaged one, or one from before an evaluation.
 * The two change places, so that there is one at any time; where a file system cannot do that, what
 * was there goes first. */
static hr_status take_place(hr_keeper *keeper, hr_error *err)
{
    if (renameat2(AT_FDCWD, keeper->partial, AT_FDCWD, keeper->place, RENAME_EXCHANGE) == 0)
        return HR_OK;
    const hr_status status = hr_directory_remove(keeper->place, hr_manifest_name, err);
    if (status != HR_OK || rename(keeper->partial, keeper->place) == 0) return status;
    return hr_fail(err, HR_FAILURE, "%s: cannot be renamed: %s", keeper->partial, hr_reason(errno));
}

static bool is_link(const char *path)
{
    struct stat there;
    return lstat(path, &there) == 0 && S_ISLNK(there.st_mode);
}

static hr_status give_name(hr_keeper *keeper, hr_error *err)
{
    hr_status status = HR_OK;
    if (is_link(keeper->place)) unlink(keeper->place); /* what it leads to is another's */
    if (rename(keeper->partial, keeper->place) != 0)
        status = errno == ENOTEMPTY || errno == EEXIST
                     ? take_place(keeper, err)
                     : hr_fail(err, HR_FAILURE, "%s: cannot be renamed: %s", keeper->partial,
                               hr_reason(errno));
    if (status == HR_OK) status = hr_directory_flush(keeper->shelf, err);
    return status == HR_OK ? hr_directory_remove(keeper->partial, hr_manifest_name, err) : status;
}

/* Under a temporary name first: link(2) replaces nothing. Renaming one name of a file over another
 * of the same file does nothing, and leaves both. */
static hr_status link_or_copy(const char *place, const char *name, const char *out,
                              const char *out_name, void *buffer, int64_t bytes, hr_error *err)
{
    char from[PATH_MAX], to[PATH_MAX], temporary[PATH_MAX], hidden[HR_NAME_BYTES];
    snprintf(hidden, sizeof hidden, ".%s.partial", out_name);
    hr_status status = hr_path_join(place, name, from, sizeof from, err);
    if (status == HR_OK) status = hr_path_join(out, out_name, to, sizeof to, err);
    if (status == HR_OK) status = hr_path_join(out, hidden, temporary, sizeof temporary, err);
    if (status != HR_OK) return status;
    unlink(temporary);
    if (link(from, temporary) != 0) return hr_file_copy(from, out, out_name, buffer, bytes, err);
    if (rename(temporary, to) != 0) {
        const int code = errno;
        unlink(temporary);
        return hr_fail(err, HR_FAILURE, "%s: cannot be moved to its place: %s", to,
                       hr_reason(code));
    }
    unlink(temporary);
    return hr_directory_flush(out, err);
}

/* The config goes first: weights never stand beside another model's. */
static hr_status publish_folder(const char *place, hr_kept kept, const char *out, void *buffer,
                                int64_t bytes, hr_error *err)
{
    hr_status status = link_or_copy(place, hr_weights_config_name, out, hr_weights_config_name,
                                    buffer, bytes, err);
    if (status == HR_OK)
        status = link_or_copy(place, hr_kept_name(kept), out, hr_kept_name(HR_KEPT_WEIGHTS), buffer,
                              bytes, err);
    return status;
}

hr_status hr_keeper_publish(const char *place, const char *out, void *buffer, int64_t bytes,
                            hr_error *err)
{
    char average[PATH_MAX], file[PATH_MAX];
    hr_status status = publish_folder(place, HR_KEPT_WEIGHTS, out, buffer, bytes, err);
    if (status == HR_OK)
        status = hr_path_join(place, hr_kept_name(HR_KEPT_AVERAGE), file, sizeof file, err);
    if (status != HR_OK || !hr_file_exists(file)) return status;
    status = hr_path_join(out, "average", average, sizeof average, err);
    if (status == HR_OK) status = hr_directory_make(average, err);
    if (status == HR_OK)
        status = publish_folder(place, HR_KEPT_AVERAGE, average, buffer, bytes, err);
    return status;
}

static void keep(void *context)
{
    hr_keeper *keeper = context;
    hr_error *err = &keeper->err;
    hr_status status = put_texts(keeper, err);
    if (status == HR_OK) status = commit_files(keeper, err);
    if (status == HR_OK) status = verify(keeper, err);
    if (status == HR_OK) status = hr_log_flush(keeper->log, err);
    if (status == HR_OK) status = put_manifest(keeper, err);
    if (status == HR_OK) status = give_name(keeper, err);
    keeper->made = status == HR_OK;
    if (!keeper->made) hr_keeper_abort(keeper);
    if (status == HR_OK)
        status = hr_keeper_publish(keeper->place, keeper->config->train.out, keeper->buffer,
                                   HR_KEEPER_BUFFER, err);
    keeper->status = status;
    keeper->tidied = HR_OK;
    /* Only after the new one is there and was read back. */
    if (status == HR_OK)
        keeper->tidied = hr_shelf_prune(keeper->shelf, keeper->config, &keeper->manifest.state,
                                        &keeper->tidied_err);
}
