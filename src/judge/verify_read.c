/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_read.c - reads a plan file into the verifier's tables. Every number has a range,
 * every list a limit, and every error names the record. */
#include "judge/judged.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    VERSION_FIRST = 1, /* of the file format: without memory spaces */
    VERSION = 2,
    STEP_ACCESSES_MAX = 64,
    LOOP_DEPTH_MAX = 32,
    SHAPE_MAX = 8
};

/* Bounds all tables: a record takes at least three bytes of the file, a read or write two. */
#define FILE_BYTES_MAX (INT64_C(1) << 30)

/* 128 PiB for one size. The sizes of a list add up to at most SUM_MAX, so that no sum overflows. */
#define BYTES_MAX (INT64_C(1) << 57)
#define SUM_MAX (INT64_C(1) << 62)

/* One record of a list, for error messages. */
typedef struct {
    const hr_judged_plan *plan;
    const hr_judged_value *object;
    const char *what;
    int32_t index;
    const hr_judged_value *hint; /* the member that is probably requested next */
} record;

static const hr_judged_value *member(record *r, const char *key)
{
    return r->object ? hr_judged_member(&r->plan->json, r->object, key, &r->hint) : NULL;
}

static bool is(const hr_judged_value *value, hr_judged_type type)
{
    return value && value->type == type;
}

/* The first value of a list; the successor of a value. */
static const hr_judged_value *first_of(const hr_judged_value *list)
{
    return list + 1;
}

static const hr_judged_value *after(const hr_judged_plan *plan, const hr_judged_value *value)
{
    return hr_judged_after(&plan->json, value);
}

static hr_status wrong(const record *r, const char *key, const char *need)
{
    hr_error *err = r->plan->err;
    return r->index < 0
               ? hr_fail(err, HR_CORRUPT, "%s: %s must be %s", r->what, key, need)
               : hr_fail(err, HR_CORRUPT, "%s %d: %s must be %s", r->what, r->index, key, need);
}

static hr_status integer(record *r, const char *key, int64_t low, int64_t high, int64_t *out)
{
    const hr_judged_value *value = member(r, key);
    if (is(value, HR_JUDGED_INTEGER) && value->integer >= low && value->integer <= high) {
        *out = value->integer;
        return HR_OK;
    }
    char need[96];
    snprintf(need, sizeof need, "an integer from %lld to %lld", (long long)low, (long long)high);
    return wrong(r, key, need);
}

static hr_status index_of(record *r, const char *key, int64_t low, int64_t high, int32_t *out)
{
    int64_t number = 0;
    const hr_status status = integer(r, key, low, high, &number);
    if (!status) *out = (int32_t)number;
    return status;
}

/* Reads text without control characters, since errors print it. */
static hr_status text(record *r, const char *key, const char **out)
{
    const hr_judged_value *value = member(r, key);
    bool plain = is(value, HR_JUDGED_TEXT) && value->count < 128;
    for (int32_t i = 0; plain && i < value->count; i++)
        plain = (unsigned char)value->text[i] >= 0x20;
    if (!plain) return wrong(r, key, "a string of fewer than 128 bytes without control characters");
    *out = value->text;
    return HR_OK;
}

static record whole(const hr_judged_plan *plan)
{
    return (record){ plan, plan->json.values, "plan file", -1, NULL };
}

/* Opens a list. `first` is its first record, or its end if it is empty. */
static hr_status list(hr_judged_plan *plan, const char *key, int32_t low, int32_t *count,
                      const hr_judged_value **first)
{
    record r = whole(plan);
    const hr_judged_value *array = member(&r, key);
    if (is(array, HR_JUDGED_LIST) && array->count >= low) {
        *count = array->count;
        *first = first_of(array);
        return HR_OK;
    }
    return wrong(&r, key, low ? "a list of at least one record" : "a list");
}

/* Index of a word, or of the null at the end. */
static int32_t word_of(const char *word, const char *const *words)
{
    int32_t i = 0;
    while (words[i] && (*word != *words[i] || strcmp(word, words[i]))) i++;
    return i;
}

/* ---- head */

static const char *const space_names[HR_JUDGED_SPACES + 1] = { "host", "device", "pinned",
                                                               "file", "base",   NULL };

static hr_status add_size(const record *r, int64_t bytes, int64_t *sum)
{
    if (bytes > SUM_MAX - *sum)
        return hr_fail(r->plan->err, HR_CORRUPT,
                       "plan file: the sizes up to %s %d add up to more than %lld bytes", r->what,
                       r->index, (long long)SUM_MAX);
    *sum += bytes;
    return HR_OK;
}

static hr_status read_process(hr_judged_plan *plan)
{
    const hr_judged_value *line = NULL;
    int32_t count = 0;
    hr_status status = list(plan, "process", 0, &count, &line);
    for (int32_t i = 0; i < count && !status; i++, line = after(plan, line)) {
        record r = { plan, line, "process line", i, NULL };
        const char *name = "";
        int64_t bytes = 0;
        status = text(&r, "name", &name);
        if (!status) status = integer(&r, "bytes", 0, BYTES_MAX, &bytes);
        if (status) break;
        if (!strcmp(name, "arena")) {
            plan->arena_line_bytes = bytes;
            plan->arena_lines++;
        }
        status = add_size(&r, bytes, &plan->process_sum);
    }
    return status;
}

static hr_status read_head(hr_judged_plan *plan)
{
    record r = whole(plan), machine = { plan, NULL, "machine", -1, NULL };
    const char *kernels;
    hr_judged_space_size *host = &plan->spaces[HR_JUDGED_HOST];
    int64_t version, unused;
    if (!is(r.object, HR_JUDGED_OBJECT)) return wrong(&r, "its content", "an object");
    hr_status status = integer(&r, "version", 1, INT32_MAX, &version);
    if (!status && version > VERSION)
        return hr_fail(plan->err, HR_CORRUPT,
                       "plan file: version %lld, only versions %d and %d are supported; write it "
                       "again with headroom plan --out",
                       (long long)version, VERSION_FIRST, VERSION);
    if (!status) plan->version = (int32_t)version;
    machine.object = member(&r, "machine");
    if (!status && !is(machine.object, HR_JUDGED_OBJECT)) return wrong(&r, "machine", "an object");
    if (!status) status = text(&machine, "kernels", &kernels);
    if (!status) status = integer(&machine, "threads", 1, 1 << 20, &unused);
    if (!status) status = integer(&machine, "page_bytes", 1, 1 << 30, &plan->page_bytes);
    if (!status) status = integer(&r, "arena_bytes", 0, BYTES_MAX, &host->bytes);
    if (!status) status = integer(&r, "floor_bytes", 0, BYTES_MAX, &host->floor_bytes);
    if (!status) status = integer(&r, "process_bytes", 0, BYTES_MAX, &plan->process_bytes);
    return status;
}

/* Reads the sizes of the spaces beside the host, each at most once. */
static hr_status read_spaces(hr_judged_plan *plan)
{
    const hr_judged_value *at = NULL;
    int32_t count = 0;
    for (int32_t i = 0; i < HR_JUDGED_SPACES; i++) plan->spaces[i].name = space_names[i];
    plan->spaces[HR_JUDGED_HOST].listed = true;
    if (plan->version == VERSION_FIRST) return HR_OK;
    hr_status status = list(plan, "spaces", 0, &count, &at);
    for (int32_t i = 0; i < count && !status; i++, at = after(plan, at)) {
        record r = { plan, at, "space", i, NULL };
        const char *name = "";
        status = text(&r, "name", &name);
        if (status) return status;
        hr_judged_space_size *space = &plan->spaces[word_of(name, space_names)];
        if (space == &plan->spaces[HR_JUDGED_HOST] || space == &plan->spaces[HR_JUDGED_SPACES])
            return wrong(&r, "name", "device, pinned, file or base");
        if (space->listed)
            return hr_fail(plan->err, HR_CORRUPT, "space %d: %s is listed twice", i, name);
        space->listed = true;
        status = integer(&r, "bytes", 1, BYTES_MAX, &space->bytes);
        if (!status) status = integer(&r, "floor_bytes", 1, BYTES_MAX, &space->floor_bytes);
    }
    return status;
}

/* ---- loops */

/* Computes the depth of every loop. A loop whose parents never reach loop 0 is part of a cycle. */
static hr_status find_depths(hr_judged_plan *plan)
{
    for (int32_t l = 0; l < plan->loop_count; l++) {
        hr_judged_loop *loop = &plan->loops[l];
        for (int32_t up = l; up != 0 && loop->depth <= LOOP_DEPTH_MAX; up = plan->loops[up].parent)
            loop->depth++;
        if (loop->depth > LOOP_DEPTH_MAX)
            return hr_fail(plan->err, HR_CORRUPT,
                           "loop %d (%s) is not inside the run, or more than %d loops deep", l,
                           loop->name, LOOP_DEPTH_MAX);
    }
    return HR_OK;
}

/* Assigns steps to their innermost loop, outer loops first. Two overlapping loops, or a child
 * outside of its parent, then find a wrong loop at their steps. */
static hr_status nest_loops(hr_judged_plan *plan)
{
    int32_t *colour = plan->by_step;
    for (int32_t s = 0; s < plan->step_count; s++) colour[s] = 0;
    for (int32_t depth = 1; depth <= LOOP_DEPTH_MAX; depth++)
        for (int32_t l = 1; l < plan->loop_count; l++) {
            const hr_judged_loop *loop = &plan->loops[l];
            for (int32_t s = loop->first; s <= loop->last && loop->depth == depth; s++) {
                if (colour[s] != loop->parent)
                    return hr_fail(plan->err, HR_CORRUPT,
                                   "loop %d (%s) covers step %d, which lies in loop %d (%s) and "
                                   "not in its parent",
                                   l, loop->name, s, colour[s], plan->loops[colour[s]].name);
                colour[s] = l;
            }
        }
    for (int32_t s = 0; s < plan->step_count; s++)
        if (plan->steps[s].loop != colour[s])
            return hr_fail(plan->err, HR_CORRUPT,
                           "step %d: loop is %d (%s), the innermost loop around it is %d (%s)", s,
                           plan->steps[s].loop, plan->loops[plan->steps[s].loop].name, colour[s],
                           plan->loops[colour[s]].name);
    return HR_OK;
}

static hr_status read_loops(hr_judged_plan *plan, const hr_judged_value *at)
{
    for (int32_t l = 0; l < plan->loop_count; l++, at = after(plan, at)) {
        record r = { plan, at, "loop", l, NULL };
        hr_judged_loop *loop = &plan->loops[l];
        const int32_t low = l ? 0 : -1, high = l ? plan->loop_count - 1 : -1;
        hr_status status = text(&r, "name", &loop->name);
        if (!status) status = index_of(&r, "parent", low, high, &loop->parent);
        if (!status) status = index_of(&r, "step_first", 0, plan->step_count - 1, &loop->first);
        if (!status)
            status = index_of(&r, "step_last", loop->first, plan->step_count - 1, &loop->last);
        if (!status) status = integer(&r, "repeats", 1, INT64_MAX, &loop->repeats);
        if (status) return status;
    }
    if (plan->loops[0].first != 0 || plan->loops[0].last != plan->step_count - 1)
        return hr_fail(plan->err, HR_CORRUPT, "loop 0 is the run and must cover steps 0 to %d",
                       plan->step_count - 1);
    return find_depths(plan);
}

/* ---- buffers */

static hr_status read_shape(record *r, int64_t element_bytes, int64_t bytes, int64_t *out)
{
    const hr_judged_value *shape = member(r, "shape");
    int64_t needed = element_bytes;
    if (!is(shape, HR_JUDGED_LIST) || shape->count > SHAPE_MAX)
        return wrong(r, "shape", "a list of at most 8 sizes");
    const hr_judged_value *size = first_of(shape);
    for (int32_t i = 0; i < shape->count; i++, size = after(r->plan, size)) {
        if (size->type != HR_JUDGED_INTEGER || size->integer < 1 || size->integer > bytes / needed)
            return wrong(r, "shape", "sizes of at least 1 that fit in its bytes");
        needed *= size->integer;
    }
    if (needed > bytes) return wrong(r, "shape", "sizes of at least 1 that fit in its bytes");
    *out = needed;
    return HR_OK;
}

static hr_status read_space(record *r, hr_judged_buffer *buffer)
{
    const char *name = "";
    if (r->plan->version == VERSION_FIRST) return HR_OK;
    const hr_status status = text(r, "space", &name);
    if (status) return status;
    buffer->space = (hr_judged_space)word_of(name, space_names);
    return space_names[buffer->space] ? HR_OK
                                      : wrong(r, "space", "host, device, pinned, file or base");
}

static hr_status read_buffer(const hr_judged_plan *plan, record *r, hr_judged_buffer *buffer)
{
    static const char *const roles[] = { "weight", "master", "moment", "gradient", "activation",
                                         "input",  "sum",    "table",  "scratch",  0 };
    static const char *const dtypes[] = { "f32",     "bf16", "f64", "i32", "f16",
                                          "f8_e4m3", "u8",   "u16", 0 };
    static const int8_t sizes[] = { 4, 2, 8, 4, 2, 1, 1, 2 };
    const char *dtype = "";
    int32_t type = 0;
    const int32_t steps = plan->step_count;
    hr_status status = text(r, "name", &buffer->name);
    if (!status) status = text(r, "dtype", &dtype);
    if (!status) type = word_of(dtype, dtypes);
    if (!status && !dtypes[type])
        return wrong(r, "dtype", "f32, bf16, f64, i32, f16, f8_e4m3, u8 or u16");
    if (!status) status = text(r, "role", &buffer->role_name);
    if (!status) buffer->role = (hr_judged_role)word_of(buffer->role_name, roles);
    if (!status && !roles[buffer->role]) return wrong(r, "role", "one of the nine roles");
    if (!status) status = read_space(r, buffer);
    if (!status) status = integer(r, "bytes", 1, BYTES_MAX, &buffer->bytes);
    if (!status) status = integer(r, "offset", 0, BYTES_MAX, &buffer->offset);
    if (!status) status = index_of(r, "step_first", 0, steps - 1, &buffer->declared_first);
    if (!status)
        status = index_of(r, "step_last", buffer->declared_first, steps - 1,
                          &buffer->declared_last);
    if (!status) status = index_of(r, "home", -1, plan->loop_count - 1, &buffer->home);
    if (!status) status = index_of(r, "storage", 0, plan->buffer_count - 1, &buffer->storage);
    buffer->view_of = -1;
    if (!status && !is(member(r, "view_of"), HR_JUDGED_NULL))
        status = index_of(r, "view_of", 0, plan->buffer_count - 1, &buffer->view_of);
    if (status) return status;
    buffer->element_bytes = sizes[type];
    return read_shape(r, sizes[type], buffer->bytes, &buffer->shape_bytes);
}

/* Finds the root of each view, the buffer that owns the bytes. */
static hr_status find_roots(hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        hr_judged_buffer *buffer = &plan->buffers[b];
        int32_t root = b, hops = 0;
        while (plan->buffers[root].view_of >= 0 && hops++ < LOOP_DEPTH_MAX)
            root = plan->buffers[root].view_of;
        const hr_judged_buffer *owner = &plan->buffers[root];
        if (owner->view_of >= 0)
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): its chain of views reaches no buffer of its own", b,
                           buffer->name);
        buffer->root = root;
    }
    return HR_OK;
}

static hr_status read_buffers(hr_judged_plan *plan, const hr_judged_value *at)
{
    int64_t sum = 0;
    for (int32_t b = 0; b < plan->buffer_count; b++, at = after(plan, at)) {
        record r = { plan, at, "buffer", b, NULL };
        hr_status status = read_buffer(plan, &r, &plan->buffers[b]);
        if (!status) status = add_size(&r, plan->buffers[b].bytes, &sum);
        if (status) return status;
        plan->spaces[plan->buffers[b].space].buffer_count++;
    }
    return find_roots(plan);
}

/* ---- steps */

static hr_status read_access(const record *r, const char *key, const hr_judged_value *value,
                             hr_judged_kind kind, hr_judged_access *access)
{
    if (value->type != HR_JUDGED_INTEGER || value->integer < 0 ||
        value->integer >= r->plan->buffer_count)
        return wrong(r, key, "buffers by their index");
    const int32_t buffer = (int32_t)value->integer;
    *access = (hr_judged_access){ buffer, buffer, kind };
    return HR_OK;
}

static hr_status read_write(const record *r, const hr_judged_value *pair, hr_judged_access *access)
{
    static const char *const words[] = { "write", "accumulate", "update", 0 };
    static const hr_judged_kind kinds[] = { HR_JUDGED_WRITE, HR_JUDGED_ACCUMULATE,
                                            HR_JUDGED_UPDATE };
    const bool two = pair->type == HR_JUDGED_LIST && pair->count == 2;
    const hr_judged_value *buffer = two ? first_of(pair) : NULL;
    const hr_judged_value *word = two ? after(r->plan, buffer) : NULL;
    if (!is(word, HR_JUDGED_TEXT)) return wrong(r, "writes", "pairs [buffer, access]");
    const int32_t kind = word_of(word->text, words);
    if (!words[kind]) return wrong(r, "access", "write, accumulate or update");
    return read_access(r, "writes", buffer, kinds[kind], access);
}

/* Lists the reads and writes of a step. False: one is not a list. */
static bool accesses_of(record *r, const hr_judged_value **reads, const hr_judged_value **writes)
{
    *reads = member(r, "reads");
    *writes = member(r, "writes");
    return is(*reads, HR_JUDGED_LIST) && is(*writes, HR_JUDGED_LIST);
}

static hr_judged_transfer transfer_of(const hr_judged_plan *plan, const char *op)
{
    static const char *const ops[] = { "fetch_begin", "fetch_wait", "spill_begin", "spill_wait",
                                       NULL };
    const int32_t which = plan->version == VERSION_FIRST ? 4 : word_of(op, ops);
    return ops[which] ? (hr_judged_transfer)(HR_JUDGED_FETCH_BEGIN + which) : HR_JUDGED_NO_TRANSFER;
}

static hr_status read_step(hr_judged_plan *plan, record *r, int32_t *used)
{
    hr_judged_step *step = &plan->steps[r->index];
    const hr_judged_value *reads, *writes;
    int64_t unused;
    hr_status status = integer(r, "index", r->index, r->index, &unused);
    if (!status) status = index_of(r, "loop", 0, plan->loop_count - 1, &step->loop);
    if (!status) status = integer(r, "layer", -1, INT32_MAX, &unused);
    if (!status) status = text(r, "op", &step->op);
    if (!status) status = integer(r, "flops", 0, INT64_MAX, &unused);
    if (status) return status;
    step->transfer = transfer_of(plan, step->op);
    if (!accesses_of(r, &reads, &writes)) return wrong(r, "reads and writes", "lists");
    if (reads->count > STEP_ACCESSES_MAX || writes->count > STEP_ACCESSES_MAX)
        return wrong(r, "reads and writes", "lists of at most 64");
    step->access_first = *used;
    const hr_judged_value *at = first_of(reads);
    for (int32_t i = 0; i < reads->count && !status; i++, at = after(plan, at))
        status = read_access(r, "reads", at, HR_JUDGED_READ, &plan->accesses[(*used)++]);
    at = first_of(writes);
    for (int32_t i = 0; i < writes->count && !status; i++, at = after(plan, at))
        status = read_write(r, at, &plan->accesses[(*used)++]);
    step->access_end = *used;
    return status;
}

static hr_status read_steps(hr_judged_plan *plan, const hr_judged_value *at)
{
    int32_t used = 0;
    for (int32_t s = 0; s < plan->step_count; s++, at = after(plan, at)) {
        record r = { plan, at, "step", s, NULL };
        const hr_status status = read_step(plan, &r, &used);
        if (status) return status;
    }
    return nest_loops(plan);
}

/* ---- file */

static hr_status take_tables(hr_judged_plan *plan, const hr_judged_value *at)
{
    size_t accesses = 0;
    for (int32_t s = 0; s < plan->step_count; s++, at = after(plan, at)) {
        record r = { plan, at, "step", s, NULL };
        const hr_judged_value *reads, *writes;
        if (accesses_of(&r, &reads, &writes))
            accesses += (size_t)reads->count + (size_t)writes->count;
    }
    const size_t loops = (size_t)plan->loop_count, steps_count = (size_t)plan->step_count;
    const size_t buffers = (size_t)plan->buffer_count;
    plan->loops = calloc(loops, sizeof *plan->loops);
    plan->buffers = calloc(buffers + 1, sizeof *plan->buffers);
    plan->steps = calloc(steps_count, sizeof *plan->steps);
    plan->accesses = calloc(accesses + 1, sizeof *plan->accesses);
    plan->storages = calloc(buffers + 1, sizeof *plan->storages);
    plan->by_step = calloc(steps_count + 1, sizeof *plan->by_step);
    plan->by_buffer = calloc(buffers + 1, sizeof *plan->by_buffer);
    plan->averages = calloc(buffers + 1, sizeof *plan->averages);
    plan->reached = calloc(buffers + 1, sizeof *plan->reached);
    plan->holds = calloc(buffers + 1, sizeof *plan->holds);
    plan->change = calloc(steps_count + 1, sizeof *plan->change);
    plan->by_name = calloc(buffers + 1, sizeof *plan->by_name);
    if (!plan->loops || !plan->buffers || !plan->steps || !plan->accesses || !plan->storages ||
        !plan->by_step || !plan->by_buffer || !plan->averages || !plan->reached || !plan->holds ||
        !plan->change || !plan->by_name)
        return hr_fail(plan->err, HR_FAILURE,
                       "plan file: out of memory for %zu buffers and %zu operations", buffers,
                       steps_count);
    return HR_OK;
}

/* Allocates the events of all accesses: one each, and for writes through a view one more per
 * enclosing loop. Their number is limited to half the bytes of the file, so that memory is
 * proportional to it; a plan has one for about forty bytes. */
static hr_status take_events(hr_judged_plan *plan)
{
    size_t count = 1;
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const bool view = plan->buffers[plan->accesses[k].buffer].view_of >= 0;
            count += view ? 1 + (size_t)plan->loops[plan->steps[s].loop].depth : 1;
        }
    if (count > (size_t)plan->file_bytes / 2)
        return hr_fail(plan->err, HR_CORRUPT,
                       "plan file: %zu reads and writes of views in loops, the limit is half its "
                       "%lld bytes",
                       count, (long long)plan->file_bytes);
    plan->events = calloc(count, sizeof *plan->events);
    plan->cuts = calloc(2 * count, sizeof *plan->cuts);
    plan->next = calloc(2 * count, sizeof *plan->next);
    if (!plan->events || !plan->cuts || !plan->next)
        return hr_fail(plan->err, HR_FAILURE, "plan file: out of memory for %zu reads and writes",
                       count);
    return HR_OK;
}

/* Reads an open file and appends one byte; null: err has the reason. */
static char *content(int descriptor, const char *path, int64_t bytes, int64_t *got, hr_error *err)
{
    char *text = malloc((size_t)bytes + 1);
    ssize_t more = 1;
    for (*got = 0; text && more > 0 && *got < bytes;) {
        more = read(descriptor, text + *got, (size_t)(bytes - *got));
        if (more < 0 && errno == EINTR) more = 1;
        else if (more > 0) *got += more;
    }
    if (text && more >= 0) return text;
    if (!text) (void)hr_fail(err, HR_FAILURE, "plan file %s: out of memory", path);
    else (void)hr_fail(err, HR_USAGE, "plan file %s: %s", path, strerror(errno));
    free(text);
    return NULL;
}

static hr_status parse(const char *path, char *text, int64_t bytes, hr_judged_plan *plan)
{
    int32_t line = 1;
    const hr_status status = hr_judged_parse(text, bytes, &plan->json, &line);
    if (status == HR_CORRUPT)
        return hr_fail(plan->err, status,
                       "plan file %s, line %d: not JSON; verify takes a file written by headroom "
                       "plan --out",
                       path, line);
    return status ? hr_fail(plan->err, status, "plan file %s: out of memory", path) : HR_OK;
}

static hr_status load(const char *path, hr_judged_plan *plan)
{
    struct stat about;
    /* Without O_NONBLOCK, opening a named pipe would wait for a writer. */
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int64_t bytes = 0;
    char *text = NULL;
    if (descriptor < 0)
        return hr_fail(plan->err, HR_USAGE, "plan file %s: %s", path, strerror(errno));
    hr_status status = HR_OK;
    if (fstat(descriptor, &about) || !S_ISREG(about.st_mode))
        status = hr_fail(plan->err, HR_USAGE, "plan file %s is not a file", path);
    else if (about.st_size > FILE_BYTES_MAX)
        status = hr_fail(plan->err, HR_CORRUPT, "plan file %s: %lld bytes, the limit is %lld", path,
                         (long long)about.st_size, (long long)FILE_BYTES_MAX);
    else if (!(text = content(descriptor, path, about.st_size, &bytes, plan->err)))
        status = plan->err->status;
    close(descriptor);
    plan->file_bytes = bytes;
    return status ? status : parse(path, text, bytes, plan);
}

hr_status hr_verify_open(const char *path, hr_judged_plan *plan, hr_error *err)
{
    const hr_judged_value *loops = NULL, *buffers = NULL, *steps = NULL;
    *plan = (hr_judged_plan){ .err = err };
    hr_status status = load(path, plan);
    if (!status) status = read_head(plan);
    if (!status) status = read_spaces(plan);
    if (!status) status = list(plan, "loops", 1, &plan->loop_count, &loops);
    if (!status) status = list(plan, "buffers", 0, &plan->buffer_count, &buffers);
    if (!status) status = list(plan, "steps", 1, &plan->step_count, &steps);
    if (!status) status = take_tables(plan, steps);
    if (!status) status = read_loops(plan, loops);
    if (!status) status = read_buffers(plan, buffers);
    if (!status) status = read_steps(plan, steps);
    if (!status) status = read_process(plan);
    if (!status) status = take_events(plan);
    return status;
}

void hr_verify_close(hr_judged_plan *plan)
{
    hr_judged_json_close(&plan->json);
    free(plan->loops);
    free(plan->buffers);
    free(plan->steps);
    free(plan->accesses);
    free(plan->storages);
    free(plan->by_step);
    free(plan->by_buffer);
    free(plan->averages);
    free(plan->reached);
    free(plan->holds);
    free(plan->change);
    free(plan->events);
    free(plan->cuts);
    free(plan->next);
    free(plan->by_name);
    *plan = (hr_judged_plan){ 0 };
}
