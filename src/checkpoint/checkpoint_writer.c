/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/checkpoint_writer.c - writes a checkpoint to a temporary directory and renames it when
 * it is complete. */
#define _GNU_SOURCE
#include "checkpoint/checkpoint_writer.h"

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
#include "base/path.h"
#include "checkpoint/recipe.h"
#include "mem/process.h"
#include "model/optimizer.h"

/* Bytes that a slow, shared disk flushes and reads back in linger_ns. A signal does not interrupt
 * the wait: a run that stops waits for the same checkpoint anyway. */
enum { LINGER_BYTES = 32 << 20 };
static const int64_t linger_ns = 2000000000;

static const char strategy_name[] = "strategy.yaml";

/* ---- memory */

enum { SHARED_BYTES = HR_CHECKPOINT_WRITER_BUFFER + HR_STACK_BYTES };

int64_t hr_checkpoint_writer_bytes(void)
{
    return hr_page_bytes() + SHARED_BYTES + HR_RECIPE_BYTES +
           (int64_t)sizeof(hr_checkpoint_writer) + 3 * 64;
}

hr_status hr_checkpoint_writer_open(hr_checkpoint_writer **opened, hr_checkpoint_flush_fn *flush,
                                    const void *context, const hr_config *config,
                                    const hr_program *program, const char *strategy,
                                    const hr_base_files *base, int64_t checkpoint_bytes,
                                    hr_region *region, hr_error *err)
{
    const int64_t page = hr_page_bytes();
    uint8_t *memory = hr_region_take(region, page + SHARED_BYTES, 1);
    char *text = hr_region_take(region, HR_RECIPE_BYTES, 1);
    hr_checkpoint_writer *checkpoint_writer = *opened = hr_region_take(region, 1,
                                                                       sizeof *checkpoint_writer);
    if (!memory || !text || !checkpoint_writer)
        return hr_fail(err, HR_FAILURE, "out of memory for checkpoints");
    checkpoint_writer->text = text;
    checkpoint_writer->flush = flush;
    checkpoint_writer->flush_context = context;
    checkpoint_writer->buffer = (uint8_t *)(uintptr_t)hr_round_up((int64_t)(uintptr_t)memory, page);
    checkpoint_writer->config = config;
    checkpoint_writer->program = program;
    checkpoint_writer->strategy = strategy;
    checkpoint_writer->base = base;
    checkpoint_writer->checkpoint_bytes = checkpoint_bytes;
    if (!config->train.out[0]) return HR_OK;
    const hr_status status = hr_checkpoint_store_path(config->train.out, checkpoint_writer->store,
                                                      err);
    return status == HR_OK
               ? hr_io_thread_open(&checkpoint_writer->io_thread,
                                   checkpoint_writer->buffer + HR_CHECKPOINT_WRITER_BUFFER, err)
               : status;
}

void hr_checkpoint_writer_close(hr_checkpoint_writer *checkpoint_writer)
{
    if (checkpoint_writer) hr_io_thread_close(&checkpoint_writer->io_thread);
}

/* ---- on the training thread */

hr_weights_out *hr_checkpoint_writer_file(hr_checkpoint_writer *checkpoint_writer, hr_kept kept)
{
    return checkpoint_writer->begun[kept] ? &checkpoint_writer->files[kept] : NULL;
}

void hr_checkpoint_writer_abort(hr_checkpoint_writer *checkpoint_writer)
{
    hr_error ignored;
    for (hr_kept kept = 0; kept < hr_kept_count(checkpoint_writer->program); kept++) {
        if (checkpoint_writer->begun[kept]) hr_weights_abort(&checkpoint_writer->files[kept]);
        checkpoint_writer->begun[kept] = false;
    }
    (void)!hr_directory_remove(checkpoint_writer->partial, hr_manifest_name, &ignored);
}

/* Removes what a killed run left under this name, and creates the directory. The new name is not
 * flushed: losing it loses nothing. */
static hr_status make_partial(hr_checkpoint_writer *checkpoint_writer, int64_t step, hr_error *err)
{
    char name[HR_STEP_NAME_BYTES];
    hr_status status = hr_directory_make(checkpoint_writer->store, err);
    if (status == HR_OK)
        status = hr_path_join(checkpoint_writer->store, hr_step_partial(step, name),
                              checkpoint_writer->partial, sizeof checkpoint_writer->partial, err);
    if (status == HR_OK)
        status = hr_path_join(checkpoint_writer->store, hr_step_name(step, name),
                              checkpoint_writer->place, sizeof checkpoint_writer->place, err);
    if (status == HR_OK)
        status = hr_directory_remove(checkpoint_writer->partial, hr_manifest_name, err);
    if (status != HR_OK || mkdir(checkpoint_writer->partial, 0777) == 0) return status;
    return hr_fail(err, HR_FAILURE, "%s: the directory cannot be created: %s",
                   checkpoint_writer->partial, hr_reason(errno));
}

/* Checks that there is room for one more checkpoint. */
static hr_status check_disk(const char *path, int64_t bytes, hr_error *err)
{
    char count[3][HR_COUNT_BYTES];
    const int64_t available = hr_file_free_bytes(path);
    if (available < 0 || bytes <= available) return HR_OK;
    return hr_fail(err, HR_FAILURE,
                   "%.300s: a checkpoint needs %s bytes of disk, and %s are free; free %s bytes",
                   path, hr_count_print(bytes, count[0]), hr_count_print(available, count[1]),
                   hr_count_print(bytes - available, count[2]));
}

hr_status hr_checkpoint_writer_begin(hr_checkpoint_writer *checkpoint_writer, int64_t step,
                                     char *text, int64_t text_bytes, hr_error *err)
{
    hr_io_thread_wait(&checkpoint_writer->io_thread);
    checkpoint_writer->made = false;
    hr_status status = make_partial(checkpoint_writer, step, err);
    if (status == HR_OK)
        status = check_disk(checkpoint_writer->store, checkpoint_writer->checkpoint_bytes, err);
    for (hr_kept kept = 0; kept < hr_kept_count(checkpoint_writer->program) && status == HR_OK;
         kept++) {
        if (!hr_kept_any(checkpoint_writer->program, kept)) continue;
        status = hr_weights_begin(&checkpoint_writer->files[kept], checkpoint_writer->program, kept,
                                  checkpoint_writer->partial, text, text_bytes, err);
        checkpoint_writer->begun[kept] = status == HR_OK;
    }
    if (status != HR_OK) hr_checkpoint_writer_abort(checkpoint_writer);
    return status;
}

static void write_checkpoint(void *context);

void hr_checkpoint_writer_finish(hr_checkpoint_writer *checkpoint_writer)
{
    checkpoint_writer->manifest.file_count = 0;
    checkpoint_writer->bytes = 0;
    for (hr_kept kept = 0; kept < hr_kept_count(checkpoint_writer->program); kept++)
        if (checkpoint_writer->begun[kept])
            checkpoint_writer->bytes += checkpoint_writer->files[kept].file.bytes;
    checkpoint_writer->pending = true;
    hr_io_thread_run(&checkpoint_writer->io_thread, write_checkpoint, checkpoint_writer);
}

bool hr_checkpoint_writer_collect(hr_checkpoint_writer *checkpoint_writer, bool wait,
                                  hr_status *status, hr_error *err)
{
    if (!checkpoint_writer->pending) return false;
    if (wait) hr_io_thread_wait(&checkpoint_writer->io_thread);
    else if (hr_io_thread_is_busy(&checkpoint_writer->io_thread)) return false;
    checkpoint_writer->pending = false;
    *status = checkpoint_writer->status;
    if (*status != HR_OK && err) *err = checkpoint_writer->err;
    return true;
}

void hr_checkpoint_writer_linger(hr_checkpoint_writer *checkpoint_writer)
{
    if (checkpoint_writer->pending && checkpoint_writer->bytes <= LINGER_BYTES)
        hr_io_thread_wait_until(&checkpoint_writer->io_thread, hr_clock_ns() + linger_ns);
}

/* ---- on the background thread */

/* The files of put_texts, the weights and the states. */
_Static_assert(HR_MANIFEST_FILES_MAX >= 4 + 1 + HR_STATES_MAX, "a checkpoint lists all its files");

/* Writes a small file and adds it to the manifest. */
static hr_status put_text(hr_checkpoint_writer *checkpoint_writer, const char *name,
                          const char *text, int64_t bytes, hr_error *err)
{
    hr_file_out file;
    hr_hash hash;
    hr_status status = hr_file_begin(&file, checkpoint_writer->partial, name, err);
    if (status == HR_OK) status = hr_file_append(&file, text, bytes, err);
    if (status == HR_OK) status = hr_file_commit(&file, err);
    if (status != HR_OK) return status;
    hr_hash_begin(&hash);
    hr_hash_add(&hash, text, bytes);
    hr_manifest_add(&checkpoint_writer->manifest, name, bytes, &hash);
    return HR_OK;
}

static hr_status put_base(hr_checkpoint_writer *checkpoint_writer, hr_error *err)
{
    hr_writer list = { checkpoint_writer->text, HR_RECIPE_BYTES };
    hr_base_files_print(checkpoint_writer->base, &list);
    HR_ASSERT(!list.cut);
    return put_text(checkpoint_writer, hr_base_name, list.text, list.used, err);
}

static hr_status put_texts(hr_checkpoint_writer *checkpoint_writer, hr_error *err)
{
    hr_writer recipe = { checkpoint_writer->text, HR_RECIPE_BYTES };
    const int64_t bytes = hr_weights_config(checkpoint_writer->config, checkpoint_writer->program,
                                            checkpoint_writer->text, HR_RECIPE_BYTES);
    hr_status status = put_text(checkpoint_writer,
                                hr_weights_config_name(checkpoint_writer->config),
                                checkpoint_writer->text, bytes, err);
    if (status == HR_OK && checkpoint_writer->base) status = put_base(checkpoint_writer, err);
    if (status != HR_OK) return status;
    hr_recipe_print(checkpoint_writer->config, &recipe);
    HR_ASSERT(!recipe.cut);
    status = put_text(checkpoint_writer, hr_recipe_name, recipe.text, recipe.used, err);
    if (status != HR_OK) return status;
    return put_text(checkpoint_writer, strategy_name, checkpoint_writer->strategy,
                    (int64_t)strlen(checkpoint_writer->strategy), err);
}

static hr_status commit_files(hr_checkpoint_writer *checkpoint_writer, hr_error *err)
{
    hr_status status = HR_OK;
    for (hr_kept kept = 0; kept < hr_kept_count(checkpoint_writer->program) && status == HR_OK;
         kept++) {
        if (!checkpoint_writer->begun[kept]) continue;
        hr_weights_out *out = &checkpoint_writer->files[kept];
        const int64_t bytes = out->file.bytes;
        status = hr_file_commit(&out->file, err);
        if (status != HR_OK) return status;
        checkpoint_writer->begun[kept] = false;
        hr_manifest_add(&checkpoint_writer->manifest, hr_kept_name(out->program, kept), bytes,
                        &out->hash);
    }
    return status;
}

static hr_status verify(hr_checkpoint_writer *checkpoint_writer, hr_error *err)
{
    const hr_checkpoint_store_reader reader = { .memory = checkpoint_writer->buffer,
                                                .bytes = HR_CHECKPOINT_WRITER_BUFFER,
                                                .direct = true };
    return hr_checkpoint_store_verify(checkpoint_writer->partial, &checkpoint_writer->manifest,
                                      &reader, err);
}

static hr_status put_manifest(hr_checkpoint_writer *checkpoint_writer, hr_error *err)
{
    hr_file_out file;
    const int64_t bytes = hr_manifest_print(&checkpoint_writer->manifest, checkpoint_writer->text);
    hr_status status = hr_file_begin(&file, checkpoint_writer->partial, hr_manifest_name, err);
    if (status == HR_OK) status = hr_file_append(&file, checkpoint_writer->text, bytes, err);
    return status == HR_OK ? hr_file_commit(&file, err) : status;
}

/* Replaces an existing checkpoint of the same step: a damaged one, or one from before an
 * evaluation. The two directories are exchanged, so one checkpoint exists at any time. A file
 * system without exchange removes the old one first. */
static hr_status replace_existing(hr_checkpoint_writer *checkpoint_writer, hr_error *err)
{
    if (renameat2(AT_FDCWD, checkpoint_writer->partial, AT_FDCWD, checkpoint_writer->place,
                  RENAME_EXCHANGE) == 0)
        return HR_OK;
    const hr_status status = hr_directory_remove(checkpoint_writer->place, hr_manifest_name, err);
    if (status != HR_OK || rename(checkpoint_writer->partial, checkpoint_writer->place) == 0)
        return status;
    return hr_fail(err, HR_FAILURE, "%s: cannot be renamed: %s", checkpoint_writer->partial,
                   hr_reason(errno));
}

static bool is_link(const char *path)
{
    struct stat there;
    return lstat(path, &there) == 0 && S_ISLNK(there.st_mode);
}

static hr_status rename_into_place(hr_checkpoint_writer *checkpoint_writer, hr_error *err)
{
    hr_status status = HR_OK;
    if (is_link(checkpoint_writer->place))
        unlink(checkpoint_writer->place); /* the target of the link is not removed */
    if (rename(checkpoint_writer->partial, checkpoint_writer->place) != 0)
        status = errno == ENOTEMPTY || errno == EEXIST
                     ? replace_existing(checkpoint_writer, err)
                     : hr_fail(err, HR_FAILURE, "%s: cannot be renamed: %s",
                               checkpoint_writer->partial, hr_reason(errno));
    if (status == HR_OK) status = hr_directory_flush(checkpoint_writer->store, err);
    return status == HR_OK ? hr_directory_remove(checkpoint_writer->partial, hr_manifest_name, err)
                           : status;
}

/* Creates the link under a temporary name and renames it, because link(2) does not replace a file.
 * If both names are links to the same file, rename(2) does nothing, and unlink removes the
 * temporary name. */
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

/* Publishes the description first, so that new weights are never beside that of another model. */
static hr_status publish_folder(const char *place, const char *weights, const hr_config *config,
                                const char *out, void *buffer, int64_t bytes, hr_error *err)
{
    const char *description = hr_weights_config_name(config);
    hr_status status = link_or_copy(place, description, out, description, buffer, bytes, err);
    if (status == HR_OK)
        status = link_or_copy(place, weights, out, hr_weights_name(config), buffer, bytes, err);
    return status;
}

hr_status hr_checkpoint_writer_publish(const char *place, const hr_config *config, void *buffer,
                                       int64_t bytes, hr_error *err)
{
    char average[PATH_MAX], file[PATH_MAX];
    const char *out = config->train.out;
    hr_status status = publish_folder(place, hr_weights_name(config), config, out, buffer, bytes,
                                      err);
    if (status == HR_OK)
        status = hr_path_join(place, hr_average_state.file, file, sizeof file, err);
    if (status != HR_OK || !hr_file_exists(file)) return status;
    status = hr_path_join(out, "average", average, sizeof average, err);
    if (status == HR_OK) status = hr_directory_make(average, err);
    if (status == HR_OK)
        status = publish_folder(place, hr_average_state.file, config, average, buffer, bytes, err);
    return status;
}

static void write_checkpoint(void *context)
{
    hr_checkpoint_writer *checkpoint_writer = context;
    hr_error *err = &checkpoint_writer->err;
    hr_status status = put_texts(checkpoint_writer, err);
    if (status == HR_OK) status = commit_files(checkpoint_writer, err);
    if (status == HR_OK) status = verify(checkpoint_writer, err);
    if (status == HR_OK) status = checkpoint_writer->flush(checkpoint_writer->flush_context, err);
    if (status == HR_OK) status = put_manifest(checkpoint_writer, err);
    if (status == HR_OK) status = rename_into_place(checkpoint_writer, err);
    checkpoint_writer->made = status == HR_OK;
    if (!checkpoint_writer->made) hr_checkpoint_writer_abort(checkpoint_writer);
    if (status == HR_OK)
        status = hr_checkpoint_writer_publish(checkpoint_writer->place, checkpoint_writer->config,
                                              checkpoint_writer->buffer,
                                              HR_CHECKPOINT_WRITER_BUFFER, err);
    checkpoint_writer->status = status;
    checkpoint_writer->pruned = HR_OK;
    /* Older checkpoints are removed only after the new one was renamed and read back. */
    if (status == HR_OK)
        checkpoint_writer->pruned = hr_checkpoint_store_prune(
            checkpoint_writer->store, checkpoint_writer->config, &checkpoint_writer->manifest.state,
            &checkpoint_writer->prune_err);
}
