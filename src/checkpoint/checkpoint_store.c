/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/checkpoint_store.c - names, verification, removal and locking of checkpoint
 * directories, in memory of the caller. */
#define _GNU_SOURCE
#include "checkpoint/checkpoint_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/directory.h"
#include "base/path.h"
#include "config/config.h"

static const char step_prefix[] = "step-", partial_suffix[] = ".partial";

hr_status hr_checkpoint_store_path(const char *out, char path[HR_CHECKPOINT_STORE_PATH_BYTES],
                                   hr_error *err)
{
    return hr_path_join(out, "checkpoints", path, HR_CHECKPOINT_STORE_PATH_BYTES, err);
}

const char *hr_step_name(int64_t step, char name[HR_STEP_NAME_BYTES])
{
    snprintf(name, HR_STEP_NAME_BYTES, "%s%012lld", step_prefix, (long long)step);
    return name;
}

const char *hr_step_partial(int64_t step, char name[HR_STEP_NAME_BYTES])
{
    snprintf(name, HR_STEP_NAME_BYTES, ".%s%012lld%s", step_prefix, (long long)step,
             partial_suffix);
    return name;
}

/* Parses the step out of a directory name; -1 if it is not a checkpoint's name. */
static int64_t step_of(const char *name)
{
    char again[HR_STEP_NAME_BYTES], *end;
    if (strncmp(name, step_prefix, sizeof step_prefix - 1)) return -1;
    errno = 0;
    const long long step = strtoll(name + sizeof step_prefix - 1, &end, 10);
    if (errno || *end || step < 0) return -1;
    return strcmp(hr_step_name(step, again), name) ? -1 : step;
}

typedef struct {
    int64_t below, newest;
} newest_step;

static bool note_newest(void *context, const char *name)
{
    newest_step *newest = context;
    const int64_t step = step_of(name);
    if (step < newest->below && step > newest->newest) newest->newest = step;
    return true;
}

hr_status hr_checkpoint_store_newest(const char *store, int64_t below, int64_t *step, hr_error *err)
{
    newest_step newest = { below, -1 };
    const hr_status status = hr_directory_list(store, note_newest, &newest, err);
    *step = newest.newest;
    return status;
}

/* ---- reading */

/* Distinguishes damage from errors of permission, and from those that may pass, such as of a disk
 * on a network. Only a damaged checkpoint may be skipped or removed. */
static hr_status status_of_errno(int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENXIO:
    case EIO:
    case EBADMSG:
    case EUCLEAN: return HR_CORRUPT;
    default: return HR_FAILURE;
    }
}

/* Opens a file of a checkpoint. It must be a regular file, not a link. */
static hr_status open_file(const char *place, const char *name, int more, int *file, int64_t *bytes,
                           hr_error *err)
{
    struct stat what;
    int directory = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (directory < 0)
        return hr_fail(err, status_of_errno(errno), "%s: cannot be opened as a directory: %s",
                       place, hr_reason(errno));
    *file = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | more);
    const int code = errno;
    hr_file_close(&directory);
    if (*file < 0 && code == ELOOP)
        return hr_fail(err, HR_CORRUPT, "%s/%s: is a symbolic link; checkpoints have regular files",
                       place, name);
    if (*file < 0)
        return hr_fail(err, code == EINVAL && more ? HR_UNDECIDED : status_of_errno(code),
                       "%s/%s: cannot be read: %s", place, name, hr_reason(code));
    if (fstat(*file, &what) == 0 && S_ISREG(what.st_mode)) {
        *bytes = what.st_size;
        return HR_OK;
    }
    hr_file_close(file);
    return hr_fail(err, HR_CORRUPT, "%s/%s: is not a regular file", place, name);
}

hr_status hr_checkpoint_store_read(const char *store, int64_t step, char *text,
                                   hr_manifest *manifest, hr_error *err)
{
    char name[HR_STEP_NAME_BYTES], place[PATH_MAX], path[PATH_MAX];
    int file;
    int64_t bytes;
    hr_status status = hr_path_join(store, hr_step_name(step, name), place, sizeof place, err);
    if (status == HR_OK) status = hr_path_join(place, hr_manifest_name, path, sizeof path, err);
    if (status == HR_OK) status = open_file(place, hr_manifest_name, 0, &file, &bytes, err);
    if (status != HR_OK) return status;
    if (bytes > HR_MANIFEST_BYTES)
        status = hr_fail(err, HR_CORRUPT, "%s: has %lld bytes, a manifest has at most %d", path,
                         (long long)bytes, HR_MANIFEST_BYTES);
    if (status == HR_OK) status = hr_file_read(file, path, 0, text, bytes, err);
    hr_file_close(&file);
    if (status == HR_OK) status = hr_manifest_read(manifest, path, text, bytes, err);
    if (status == HR_OK && manifest->state.step != step)
        status = hr_fail(err, HR_CORRUPT, "%s: is the manifest of step %lld", path,
                         (long long)manifest->state.step);
    return status;
}

typedef struct {
    const hr_checkpoint_store_reader *reader;
    int64_t done, total;
} verifying;

/* Requests whole buffers beyond the end of the file, because O_DIRECT needs whole blocks. */
static hr_status hash_file(verifying *v, int file, const char *path, int64_t bytes, hr_hash *hash,
                           hr_error *err)
{
    const hr_checkpoint_store_reader *reader = v->reader;
    hr_hash_begin(hash);
    for (int64_t at = 0; at < bytes;) {
        const ssize_t got = pread(file, reader->memory, (size_t)reader->bytes, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return hr_fail(err, status_of_errno(errno), "%s: cannot be read: %s", path,
                           hr_reason(errno));
        if (got == 0) return hr_fail(err, HR_CORRUPT, "%s: was truncated while it was read", path);
        hr_hash_add(hash, reader->memory, hr_min(got, bytes - at));
        at += got;
        v->done += got;
        if (reader->progress &&
            reader->progress(reader->context, hr_min(v->done, v->total), v->total))
            return hr_fail(err, HR_INTERRUPTED, "interrupted");
    }
    return HR_OK;
}

static hr_status verify_file(verifying *v, const char *place, const hr_manifest_file *named,
                             hr_error *err)
{
    char path[PATH_MAX], digits[HR_HASH_BYTES];
    int file = -1;
    int64_t bytes = 0;
    hr_hash hash;
    const int direct = v->reader->direct ? O_DIRECT : 0;
    hr_status status = hr_path_join(place, named->name, path, sizeof path, err);
    if (status == HR_OK) status = open_file(place, named->name, direct, &file, &bytes, err);
    /* O_DIRECT is not supported: drop clean pages from the page cache instead */
    if (status == HR_UNDECIDED) {
        status = open_file(place, named->name, 0, &file, &bytes, err);
        if (status == HR_OK) posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    }
    if (status != HR_OK) return status;
    if (bytes != named->bytes)
        status = hr_fail(err, HR_CORRUPT, "%s: has %lld bytes, its manifest says %lld", path,
                         (long long)bytes, (long long)named->bytes);
    if (status == HR_OK) status = hash_file(v, file, path, bytes, &hash, err);
    hr_file_close(&file);
    if (status != HR_OK || !strcmp(hr_hash_print(&hash, digits), named->hash)) return status;
    return hr_fail(err, HR_CORRUPT, "%s: damaged: its hash is %s, its manifest says %s", path,
                   digits, named->hash);
}

hr_status hr_checkpoint_store_verify(const char *place, const hr_manifest *manifest,
                                     const hr_checkpoint_store_reader *reader, hr_error *err)
{
    verifying v = { .reader = reader };
    for (int32_t i = 0; i < manifest->file_count; i++) v.total += manifest->files[i].bytes;
    hr_status status = HR_OK;
    for (int32_t i = 0; i < manifest->file_count && status == HR_OK; i++)
        status = verify_file(&v, place, &manifest->files[i], err);
    return status;
}

/* ---- removing */

typedef struct {
    char name[HR_STEP_NAME_BYTES];
} partial_name;

static bool find_partial(void *context, const char *name)
{
    partial_name *found = context;
    const size_t length = strlen(name), behind = sizeof partial_suffix - 1;
    if (*name != '.' || length <= behind || length >= sizeof found->name) return true;
    if (strncmp(name + 1, step_prefix, sizeof step_prefix - 1) ||
        strcmp(name + length - behind, partial_suffix))
        return true;
    strcpy(found->name, name);
    return false;
}

static hr_status remove_named(const char *store, const char *name, hr_error *err)
{
    char path[PATH_MAX];
    const hr_status status = hr_path_join(store, name, path, sizeof path, err);
    return status == HR_OK ? hr_directory_remove(path, hr_manifest_name, err) : status;
}

hr_status hr_checkpoint_store_remove_partial(const char *store, hr_error *err)
{
    for (;;) {
        partial_name found = { "" };
        hr_status status = hr_directory_list(store, find_partial, &found, err);
        if (status != HR_OK || !found.name[0]) return status;
        status = remove_named(store, found.name, err);
        if (status != HR_OK) return status;
    }
}

/* Renames the directory before the first file is removed. If the process is killed, the result is
 * either a complete checkpoint or a partial one, never one that looks damaged. Leaves
 * non-directories to remove_named. */
hr_status hr_checkpoint_store_remove(const char *store, int64_t step, hr_error *err)
{
    char name[HR_STEP_NAME_BYTES], hidden[HR_STEP_NAME_BYTES], from[PATH_MAX], to[PATH_MAX];
    struct stat what;
    hr_status status = hr_path_join(store, hr_step_name(step, name), from, sizeof from, err);
    if (status == HR_OK)
        status = hr_path_join(store, hr_step_partial(step, hidden), to, sizeof to, err);
    if (status != HR_OK) return status;
    if (lstat(from, &what) != 0 || !S_ISDIR(what.st_mode)) return remove_named(store, name, err);
    status = remove_named(store, hidden, err);
    if (status != HR_OK) return status;
    if (rename(from, to) != 0)
        return hr_fail(err, HR_FAILURE, "%s: cannot be removed: %s", from, hr_reason(errno));
    return remove_named(store, hidden, err);
}

bool hr_checkpoint_store_keeps(const hr_config *config, int64_t best_step, int64_t step,
                               int64_t newer)
{
    const int64_t every = config->train.keep_every;
    return newer < config->train.keep_last || (every > 0 && step % every == 0) ||
           (config->train.keep_best && step == best_step);
}

hr_status hr_checkpoint_store_remove_newer(const char *store, int64_t step, hr_error *err)
{
    for (;;) {
        int64_t newest;
        hr_status status = hr_checkpoint_store_newest(store, INT64_MAX, &newest, err);
        if (status != HR_OK || newest <= step) return status;
        status = hr_checkpoint_store_remove(store, newest, err);
        if (status != HR_OK) return status;
    }
}

hr_status hr_checkpoint_store_prune(const char *store, const hr_config *config,
                                    const hr_run_state *state, hr_error *err)
{
    const int64_t back = config->train.bad_steps == HR_BAD_STEPS_REWIND ? state->kept : -1;
    int64_t step = INT64_MAX;
    hr_status worst = HR_OK;
    for (int64_t newer = 0;;) {
        hr_status status = hr_checkpoint_store_newest(store, step, &step, err);
        if (status != HR_OK) return status;
        if (step < 0) return worst;
        if (step > state->step ||
            (!hr_checkpoint_store_keeps(config, state->best_step, step, newer++) && step != back))
            status = hr_checkpoint_store_remove(store, step, err);
        if (status != HR_OK) worst = status;
    }
}

/* ---- lock */

static const char lock_name[] = "lock";

static hr_status refuse_lock(const char *out, int lock, hr_error *err)
{
    char holder[32] = "";
    const ssize_t got = pread(lock, holder, sizeof holder - 1, 0);
    holder[hr_max(got, 0)] = 0;
    holder[strcspn(holder, "\n")] = 0;
    return hr_fail(err, HR_USAGE,
                   "%s: another run (process %s) writes to it; wait until it ends, or give "
                   "another --out",
                   out, *holder ? holder : "unknown");
}

/* The kernel releases the lock when the process ends, so a dead process leaves no lock. */
hr_status hr_checkpoint_store_lock_again(const char *out, int *lock, bool *moved, hr_error *err)
{
    int another = -1;
    char path[PATH_MAX];
    struct stat own, there;
    hr_status status = hr_path_join(out, lock_name, path, sizeof path, err);
    if (status != HR_OK) return status;
    *moved = fstat(*lock, &own) != 0 || lstat(path, &there) != 0 || own.st_ino != there.st_ino ||
             own.st_dev != there.st_dev;
    if (!*moved) return HR_OK;
    status = hr_directory_make(out, err);
    if (status == HR_OK) status = hr_checkpoint_store_lock(out, &another, err);
    if (status != HR_OK) return status;
    hr_file_close(lock);
    *lock = another;
    return HR_OK;
}

hr_status hr_checkpoint_store_lock(const char *out, int *lock, hr_error *err)
{
    char path[PATH_MAX], holder[32];
    const hr_status status = hr_path_join(out, lock_name, path, sizeof path, err);
    if (status != HR_OK) return status;
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (*lock < 0)
        return hr_fail(err, HR_FAILURE, "%s: the lock file cannot be created: %s", path,
                       hr_reason(errno));
    if (flock(*lock, LOCK_EX | LOCK_NB) != 0) {
        const int code = errno;
        const hr_status refused = code == EWOULDBLOCK
                                      ? refuse_lock(out, *lock, err)
                                      : hr_fail(err, HR_FAILURE, "%s: cannot be locked: %s", path,
                                                hr_reason(code));
        hr_file_close(lock);
        return refused;
    }
    const int length = snprintf(holder, sizeof holder, "%lld\n", (long long)getpid());
    /* for users who inspect the file */
    if (ftruncate(*lock, 0) == 0) (void)!pwrite(*lock, holder, (size_t)length, 0);
    return HR_OK;
}
