/* SPDX-License-Identifier: Apache-2.0 */
/* plan/plan_file.c - writes the plan's tables as JSON, one record per line.
 *
 * Each record is built, printed and released before the next. Only the names used so far are kept,
 * to make them unique. */
#include "plan/plan_file.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "graph/backend.h"

static const char *const role_names[] = { "weight",     "master", "moment", "gradient",
                                          "activation", "input",  "sum",    "table" };

typedef struct {
    hr_file_out out;
    hr_error *err;
    bool failed; /* with the reason in `err`, if that has a status */
    bool first;  /* no record of the current list is written yet */
    int64_t held_bytes;
    char held[16384];
} writer;

static void flush_held(writer *w)
{
    if (!w->failed && hr_file_append(&w->out, w->held, w->held_bytes, w->err) != HR_OK)
        w->failed = true;
    w->held_bytes = 0;
}

/* Callback of jansson for each piece of text. */
static int take(const char *text, size_t bytes, void *context)
{
    writer *w = context;
    for (size_t done = 0; done < bytes && !w->failed;) {
        const size_t room = sizeof w->held - (size_t)w->held_bytes;
        const size_t part = bytes - done < room ? bytes - done : room;
        memcpy(w->held + w->held_bytes, text + done, part);
        w->held_bytes += (int64_t)part;
        done += part;
        if (part == room) flush_held(w);
    }
    return w->failed ? -1 : 0;
}

static void put_text(writer *w, const char *text)
{
    (void)take(text, strlen(text), w);
}

/* Prints a record and releases it. */
static void put_record(writer *w, json_t *record)
{
    if (!record || json_dump_callback(record, take, w, JSON_COMPACT)) w->failed = true;
    json_decref(record);
}

static void put(writer *w, json_t *record)
{
    put_text(w, w->first ? "\n" : ",\n");
    put_record(w, record);
    w->first = false;
}

static void open_list(writer *w, const char *name)
{
    put_text(w, ",\n\"");
    put_text(w, name);
    put_text(w, "\":[");
    w->first = true;
}

static void close_list(writer *w)
{
    put_text(w, "\n]");
}

static void put_loops(writer *w, const hr_program *program)
{
    open_list(w, "loops");
    for (int32_t l = 0; l < program->loop_count; l++) {
        const hr_loop *loop = &program->loops[l];
        put(w, json_pack("{ss si si si sI}", "name", loop->name, "parent", loop->parent,
                         "step_first", loop->step_first, "step_last", loop->step_last, "repeats",
                         (json_int_t)loop->count));
    }
    close_list(w);
}

/* The spaces beside the host's, whose bytes are those of the arena. */
static void put_spaces(writer *w, const hr_plan *plan)
{
    open_list(w, "spaces");
    for (hr_space k = HR_SPACE_HOST + 1; k < HR_SPACES; k++) {
        const hr_plan_space *space = &plan->spaces[k];
        if (space->storage_count == 0) continue;
        put(w, json_pack("{ss sI sI}", "name", hr_space_name(k), "bytes", (json_int_t)space->bytes,
                         "floor_bytes", (json_int_t)space->floor_bytes));
    }
    close_list(w);
}

static json_t *shape_of(const hr_tensor *tensor)
{
    const int64_t rows = tensor->rows ? tensor->rows : tensor->dims[0];
    return tensor->dims[1] ? json_pack("[II]", (json_int_t)rows, (json_int_t)tensor->dims[1])
                           : json_pack("[I]", (json_int_t)rows);
}

/* ---- names */

enum { NAME_BYTES = 128 }; /* limit of the verifier */

/* Which tensor of a parameter this is, as the first word of its name; null: none. */
static const char *part_of(const hr_program *program, const hr_param *param, int32_t tensor)
{
    const char *part = param->weight == tensor           ? ""
                       : param->master == tensor         ? "master"
                       : param->scales == tensor         ? "scales"
                       : param->gradient == tensor       ? "grad"
                       : param->gradient_again == tensor ? "grad 2"
                                                         : NULL;
    for (int32_t i = 0; i < program->state_count && !part; i++)
        if (param->states[i] == tensor) part = program->states[i].name;
    return part;
}

/* The parameter that a tensor of one of four roles belongs to; HR_NONE: none. Searches outward from
 * `near`, the parameter of the tensor before: buffers are in the order of their first use, in which
 * parameters rise or fall by one. */
static int32_t param_of(const hr_program *program, int32_t tensor, int32_t near)
{
    const int32_t count = program->param_count;
    for (int32_t far = 0; far < count; far++) {
        const int32_t above = near + far, below = near - far;
        if (above < count && part_of(program, &program->params[above], tensor)) return above;
        if (below >= 0 && part_of(program, &program->params[below], tensor)) return below;
    }
    return HR_NONE;
}

/* A tensor's name: "layers.3.up", "evaluation.layers.3.up", "targets.slice". A tensor of a
 * parameter has the parameter's external name, without a section.
 *
 *   param  in and out: the last parameter that had a tensor named */
static void name_tensor(const hr_program *program, int32_t index, int32_t *param, char *name)
{
    const hr_tensor *tensor = &program->tensors[index];
    const int32_t home = program->tensors[hr_tensor_root(program, index)].home;
    const int32_t section = hr_loop_section(program, home);
    const char *own = tensor->name, *prefix = "";
    const int32_t p = tensor->role <= HR_ROLE_GRADIENT ? param_of(program, index, *param) : HR_NONE;
    if (p != HR_NONE) {
        const hr_param *of = &program->params[p];
        const char *part = part_of(program, of, index);
        snprintf(name, NAME_BYTES, "%s%s%s", part, *part ? " " : "", of->external_name);
        *param = p;
        return;
    }
    /* Tensors of the training step have no prefix; those of other sections have the section's
     * name. */
    if (section > 0 && program->loops[section].id != HR_LOOP_STEP)
        prefix = program->loops[section].name;
    const size_t length = strlen(prefix);
    if (length && !strncmp(own, prefix, length) && own[length] == ' ') own += length + 1;
    char layer[24] = "";
    if (tensor->layer != HR_NONE) snprintf(layer, sizeof layer, "layers.%d.", tensor->layer);
    snprintf(name, NAME_BYTES, "%s%s%s%s%s", prefix, length ? "." : "", layer, own,
             tensor->view_loop != HR_NONE ? ".slice" : "");
}

/* Makes a name unique: the second "stat" of a layer becomes "layers.0.stat.2". `names` maps each
 * used name to the number for its next duplicate. */
static bool make_unique(json_t *names, char *name)
{
    char base[NAME_BYTES];
    strcpy(base, name);
    json_int_t number = json_integer_value(json_object_get(names, base));
    for (; number && json_object_get(names, name); number++)
        snprintf(name, NAME_BYTES, "%.*s.%lld", NAME_BYTES - 16, base, (long long)number);
    return !json_object_set_new(names, base, json_integer(number ? number : 2)) &&
           (!strcmp(base, name) || !json_object_set_new(names, name, json_integer(2)));
}

/* First half of a buffer's record: its content. */
static json_t *describe(const hr_program *program, const hr_buffer *buffer, json_t *names,
                        int32_t *param, int32_t *home)
{
    char name[NAME_BYTES];
    if (buffer->tensor == HR_NONE) {
        *home = program->steps[buffer->step_first].loop;
        snprintf(name, sizeof name, "scratch of step %d", buffer->step_first);
        if (!make_unique(names, name)) return 0;
        return json_pack("{ss ss s[I] ss}", "name", name, "dtype", "u8", "shape",
                         (json_int_t)buffer->bytes, "role", "scratch");
    }
    const hr_tensor *tensor = &program->tensors[buffer->tensor];
    *home = program->tensors[hr_tensor_root(program, buffer->tensor)].home;
    name_tensor(program, buffer->tensor, param, name);
    if (!make_unique(names, name)) return 0;
    return json_pack("{ss ss so ss}", "name", name, "dtype", hr_dtype_name((hr_dtype)tensor->dtype),
                     "shape", shape_of(tensor), "role", role_names[tensor->role]);
}

static void put_buffers(writer *w, const hr_program *program, const hr_plan *plan)
{
    json_t *names = json_object();
    int32_t param = 0;
    open_list(w, "buffers");
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_buffer *buffer = &plan->buffers[b];
        int32_t home = HR_NONE;
        json_t *record = describe(program, buffer, names, &param, &home);
        json_t *view_of = buffer->view_of == HR_NONE ? json_null() : json_integer(buffer->view_of);
        const hr_space space = buffer->tensor == HR_NONE
                                   ? HR_SPACE_HOST
                                   : (hr_space)program->tensors[buffer->tensor].space;
        json_t *place = json_pack("{ss sI sI si si si si so}", "space", hr_space_name(space),
                                  "bytes", (json_int_t)buffer->bytes, "offset",
                                  (json_int_t)buffer->offset, "step_first", buffer->step_first,
                                  "step_last", buffer->step_last, "home", home, "storage",
                                  buffer->storage, "view_of", view_of);
        if (!record || !place || json_object_update(record, place)) w->failed = true;
        json_decref(place);
        put(w, record);
    }
    close_list(w);
    json_decref(names);
}

static const char *access_name(char letter)
{
    switch (letter) {
    case 'a':
    case 'A': return "accumulate";
    case 'u':
    case 'U': return "update";
    default: return "write";
    }
}

/* The maximum of token rows that a step processes in one iteration. */
static int64_t rows_of(const hr_program *program, const hr_step *step)
{
    int64_t rows = 0;
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE) rows = hr_max(rows, program->tensors[step->in[i]].rows);
    for (int32_t i = 0; i < HR_OUT_MAX; i++)
        if (step->out[i] != HR_NONE) rows = hr_max(rows, program->tensors[step->out[i]].rows);
    return rows;
}

static json_t *step_record(const hr_program *program, const hr_plan *plan, int32_t s)
{
    const hr_step *step = &program->steps[s];
    const hr_op *op = hr_step_op(program, step);
    json_t *reads = json_array(), *writes = json_array();
    bool failed = !reads || !writes;
    for (int32_t i = 0; op->in[i]; i++)
        if (step->in[i] != HR_NONE)
            failed |= json_array_append_new(reads,
                                            json_integer(plan->buffer_of_tensor[step->in[i]])) != 0;
    for (int32_t i = 0; op->out[i]; i++)
        if (step->out[i] != HR_NONE)
            failed |= json_array_append_new(writes,
                                            json_pack("[is]", plan->buffer_of_tensor[step->out[i]],
                                                      access_name(op->out[i]))) != 0;
    if (plan->scratch_of_step[s] != HR_NONE)
        failed |= json_array_append_new(writes,
                                        json_pack("[is]", plan->scratch_of_step[s], "write")) != 0;
    const int64_t flops = op->flops ? op->flops(step->attr, rows_of(program, step)) : 0;
    json_t *record = json_pack("{si si si ss so so sI}", "index", s, "loop", step->loop, "layer",
                               step->layer, "op", op->name, "reads", reads, "writes", writes,
                               "flops", (json_int_t)flops);
    if (!failed) return record;
    json_decref(record);
    return 0;
}

static const char beginning[] = "{\n\"version\":"; /* of plans of every version */

static void put_all(writer *w, const hr_program *program, const hr_plan *plan)
{
    char text[200];
    snprintf(text, sizeof text, "%s%d,\n\"machine\":", beginning, HR_PLAN_FILE_VERSION);
    put_text(w, text);
    put_record(w, json_pack("{ss si sI}", "kernels", plan->process.rung, "threads",
                            plan->process.threads, "page_bytes",
                            (json_int_t)plan->process.page_bytes));
    snprintf(text, sizeof text,
             ",\n\"arena_bytes\":%lld,\n\"floor_bytes\":%lld,\n\"process_bytes\":%lld",
             (long long)plan->arena_bytes, (long long)plan->floor_bytes,
             (long long)plan->process.bytes);
    put_text(w, text);
    open_list(w, "process");
    for (int32_t i = 0; i < plan->process.line_count; i++)
        put(w, json_pack("{ss sI}", "name", plan->process.lines[i].name, "bytes",
                         (json_int_t)plan->process.lines[i].bytes));
    close_list(w);
    put_spaces(w, plan);
    put_loops(w, program);
    put_buffers(w, program, plan);
    open_list(w, "steps");
    for (int32_t s = 0; s < program->step_count; s++) put(w, step_record(program, plan, s));
    close_list(w);
    put_text(w, "\n}\n");
}

hr_status hr_plan_file_check(const char *path, hr_error *err)
{
    return hr_file_check_kind(path, beginning, "plan", err);
}

hr_status hr_plan_file_write(const char *path, const hr_program *program, const hr_plan *plan,
                             hr_error *err)
{
    hr_error own;
    if (!err) err = &own;
    writer w = { .err = err };
    hr_status status = hr_file_begin_path(&w.out, path, err);
    if (status != HR_OK) return status;
    err->status = HR_OK;
    put_all(&w, program, plan);
    flush_held(&w);
    if (!w.failed) return hr_file_commit(&w.out, err);
    hr_file_abort(&w.out);
    if (err->status != HR_OK) return err->status;
    return hr_fail(err, HR_FAILURE, "%s: out of memory", path);
}
