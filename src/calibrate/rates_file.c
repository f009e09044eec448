/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/rates_file.c - rates as JSON: an object for each operation and dtype, with a member for
 * each term. Terms with rate 0 are omitted. All numbers are integers, so reading returns exactly
 * what was written. */
#include "calibrate/rates_file.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"
#include "headroom/doctor.h"
#include "headroom/version.h"

enum {
    FILE_VERSION = 4,
    FILE_BYTES_MOST = 1 << 16,
    PATH_BYTES = 4096,
    DATE_BYTES = 10,
    TERM_NAME_BYTES = 16
};

static const char disk_key[] = "disk_bytes_per_second",
                  file_read_key[] = "file_read_bytes_per_second",
                  file_write_key[] = "file_write_bytes_per_second";

/* ---- the machine */

/* FNV-1a, 64 bits: for a file name, not for security. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
    return (hash ^ 0xff) * UINT64_C(1099511628211);
}

static uint64_t hash_integer(uint64_t hash, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return hash_text(hash, text);
}

static const uint64_t hash_begin = UINT64_C(14695981039346656037);

void hr_rates_machine_of(const hr_backend *backend, uint32_t cpu_mask, int32_t threads,
                         hr_rates_machine *machine)
{
    hr_machine here;
    hr_machine_read(&here);
    *machine = (hr_rates_machine){ .threads = threads, .page_bytes = here.page_bytes };
    snprintf(machine->backend, sizeof machine->backend, "%s", backend->name);
    snprintf(machine->processor, sizeof machine->processor, "%s", here.processor);
    snprintf(machine->rung, sizeof machine->rung, "%s", hr_cpu_rung_name(cpu_mask));
    snprintf(machine->huge_pages, sizeof machine->huge_pages, "%s", here.huge_pages);
    uint64_t build = hash_text(hash_begin, HR_VERSION);
    build = hash_integer(build, HR_COST_MODEL);
    build = hash_integer(build, HR_TERM_COUNT);
    for (int32_t i = 0; i < backend->op_count; i++) {
        build = hash_text(build, backend->ops[i]->name);
        build = hash_text(build, backend->ops[i]->in);
        build = hash_text(build, backend->ops[i]->out);
    }
    machine->build = build;
}

void hr_rates_name(const hr_rates_machine *machine, char name[HR_RATES_NAME_BYTES])
{
    uint64_t hash = hash_text(hash_begin, machine->backend);
    hash = hash_text(hash, machine->processor);
    hash = hash_text(hash, machine->rung);
    hash = hash_text(hash, machine->huge_pages);
    hash = hash_integer(hash, machine->threads);
    hash = hash_integer(hash, machine->page_bytes);
    snprintf(name, HR_RATES_NAME_BYTES, "calibration-%016llx.json", (unsigned long long)hash);
}

static json_t *json_of_machine(const hr_rates_machine *machine)
{
    char build[24];
    snprintf(build, sizeof build, "%016llx", (unsigned long long)machine->build);
    return json_pack("{ss ss ss ss si sI ss}", "backend", machine->backend, "processor",
                     machine->processor, "kernels", machine->rung, "huge_pages",
                     machine->huge_pages, "threads", machine->threads, "page_bytes",
                     (json_int_t)machine->page_bytes, "build", build);
}

/* ---- terms */

static const char *term_name(int32_t term, char name[TERM_NAME_BYTES])
{
    if (term == HR_TERM_FLOPS) return "flop_as";
    if (term == HR_TERM_START) return "start_as";
    const int32_t first = term < HR_TERM_IN    ? HR_TERM_ITEMS
                          : term < HR_TERM_OUT ? HR_TERM_IN
                                               : HR_TERM_OUT;
    snprintf(name, TERM_NAME_BYTES, "%s%d_as",
             first == HR_TERM_ITEMS ? "item"
             : first == HR_TERM_IN  ? "in"
                                    : "out",
             term - first);
    return name;
}

static int32_t term_of(const char *wanted)
{
    char name[TERM_NAME_BYTES];
    for (int32_t t = 0; t < HR_TERM_COUNT; t++)
        if (!strcmp(term_name(t, name), wanted)) return t;
    return HR_NONE;
}

/* ---- writing */

static json_t *json_of_rate(const hr_rate *rate)
{
    char name[TERM_NAME_BYTES];
    json_t *object = json_pack("{sI}", "call_ps", (json_int_t)rate->call_ps);
    for (int32_t t = 0; t < HR_TERM_COUNT; t++)
        if (rate->unit_as[t])
            json_object_set_new(object, term_name(t, name), json_integer(rate->unit_as[t]));
    return object;
}

static json_t *json_of_rates(const hr_backend *backend, const hr_rates *rates)
{
    json_t *all = json_object();
    for (int32_t i = 0; i < backend->op_count; i++) {
        if (backend->ops[i]->host) continue;
        json_t *both = json_object();
        for (int32_t dtype = 0; dtype < HR_COMPUTES; dtype++)
            json_object_set_new(both, hr_dtype_name((hr_dtype)dtype),
                                json_of_rate(&rates->op[i][dtype]));
        json_object_set_new(all, backend->ops[i]->name, both);
    }
    return all;
}

static json_t *json_of_speed(const hr_rates *rates)
{
    json_t *parts = json_array();
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++)
        json_array_append_new(parts, json_integer(rates->pace_us[i]));
    return parts;
}

typedef struct {
    hr_file_out *out;
    hr_error *err;
} sink;

static int append(const char *text, size_t bytes, void *context)
{
    const sink *to = context;
    return hr_file_append(to->out, text, (int64_t)bytes, to->err) == HR_OK ? 0 : -1;
}

hr_status hr_rates_save(const char *directory, const hr_backend *backend,
                        const hr_rates_machine *machine, const char *date, const hr_rates *rates,
                        hr_error *err)
{
    char name[HR_RATES_NAME_BYTES];
    hr_file_out out;
    hr_error own;
    if (!err) err = &own;
    hr_rates_name(machine, name);
    hr_status status = hr_directory_make(directory, err);
    if (status == HR_OK) status = hr_file_begin(&out, directory, name, err);
    if (status != HR_OK) return status;
    json_t *root = json_pack(
        "{si ss so so sI sI sI so}", "version", FILE_VERSION, "date", date, "machine",
        json_of_machine(machine), "pace_us", json_of_speed(rates), disk_key,
        (json_int_t)rates->disk_rate, file_read_key, (json_int_t)rates->file_read_rate,
        file_write_key, (json_int_t)rates->file_write_rate, "rates", json_of_rates(backend, rates));
    sink to = { &out, err };
    err->status = HR_OK;
    const int failed = root ? json_dump_callback(root, append, &to, JSON_INDENT(1)) : -1;
    json_decref(root);
    if (failed) {
        hr_file_abort(&out);
        if (err->status != HR_OK) return err->status;
        return hr_fail(err, HR_FAILURE, "%s/%s: out of memory", directory, name);
    }
    return hr_file_commit(&out, err);
}

/* ---- reading */

typedef struct {
    const char *path;
    const hr_backend *backend;
    hr_rates *rates;
    hr_error *err;
} reader;

static hr_status refuse(const reader *r, const char *what, const char *name)
{
    return hr_fail(r->err, HR_CORRUPT,
                   "%s: invalid calibration: %s%s%s; headroom calibrate writes a new one", r->path,
                   what, *name ? " " : "", name);
}

static hr_status read_rate(const reader *r, const char *op, json_t *object, hr_rate *rate)
{
    const char *key;
    json_t *value;
    bool prices = false;
    if (!json_is_object(object)) return refuse(r, "no rates for", op);
    *rate = (hr_rate){ .call_ps = 0 };
    json_object_foreach(object, key, value)
    {
        const bool call = !strcmp(key, "call_ps");
        const int32_t term = call ? HR_NONE : term_of(key);
        if (!call && term == HR_NONE) return refuse(r, "an unknown term of", op);
        const int64_t most = call ? HR_RATE_CALL_PS_MOST : HR_RATE_UNIT_AS_MOST;
        if (!json_is_integer(value)) return refuse(r, "a rate that is not an integer, of", op);
        const int64_t number = json_integer_value(value);
        if (number < 0) return refuse(r, "a negative rate of", op);
        if (number > most) return refuse(r, "a rate that is too large, of", op);
        if (call) rate->call_ps = number;
        else rate->unit_as[term] = number;
        prices = prices || number > 0;
    }
    return prices ? HR_OK : refuse(r, "all rates are zero in", op);
}

static hr_status read_rates(const reader *r, json_t *all)
{
    if (!json_is_object(all)) return refuse(r, "it has no rates", "");
    for (int32_t i = 0; i < r->backend->op_count; i++) {
        if (r->backend->ops[i]->host) continue;
        json_t *both = json_object_get(all, r->backend->ops[i]->name);
        for (int32_t dtype = 0; dtype < HR_COMPUTES; dtype++) {
            const hr_status status = read_rate(
                r, r->backend->ops[i]->name, json_object_get(both, hr_dtype_name((hr_dtype)dtype)),
                &r->rates->op[i][dtype]);
            if (status != HR_OK) return status;
        }
    }
    return HR_OK;
}

static hr_status read_speed(const reader *r, json_t *parts)
{
    if (json_array_size(parts) != HR_SPEED_PARTS) return refuse(r, "invalid pace_us", "");
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) {
        json_t *part = json_array_get(parts, (size_t)i);
        if (!json_is_integer(part) || json_integer_value(part) < 0 ||
            json_integer_value(part) > INT32_MAX)
            return refuse(r, "invalid pace_us", "");
        r->rates->pace_us[i] = (int32_t)json_integer_value(part);
    }
    return HR_OK;
}

static hr_status read_disk_rate(const reader *r, json_t *root, const char *key, int64_t *rate)
{
    json_t *value = json_object_get(root, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) return refuse(r, "invalid", key);
    *rate = json_integer_value(value);
    return HR_OK;
}

/* The rates of the file space are missing in files of earlier builds: not measured. */
static hr_status read_disk(const reader *r, json_t *root)
{
    hr_rates *rates = r->rates;
    hr_status status = read_disk_rate(r, root, disk_key, &rates->disk_rate);
    if (status == HR_OK && json_object_get(root, file_read_key))
        status = read_disk_rate(r, root, file_read_key, &rates->file_read_rate);
    if (status == HR_OK && json_object_get(root, file_write_key))
        status = read_disk_rate(r, root, file_write_key, &rates->file_write_rate);
    return status;
}

typedef struct {
    const reader *reader;
    int file;
    int64_t at, bytes; /* of the file */
    hr_status status;
} text_source;

/* For json_load_callback, which has a buffer of 1 KiB: the text is never whole in memory. */
static size_t read_text(void *buffer, size_t bytes, void *context)
{
    text_source *text = context;
    const int64_t count = hr_min((int64_t)bytes, text->bytes - text->at);
    text->status = hr_file_read(text->file, text->reader->path, text->at, buffer, count,
                                text->reader->err);
    text->at += count;
    return text->status == HR_OK ? (size_t)count : (size_t)-1;
}

/* Reads the rates. stale  out: null, or the reason why the file does not apply: another machine or
 * another build. The file name is a hash of the machine, so a mismatch means that the file was
 * moved. */
static hr_status read_root(const reader *r, json_t *root, const hr_rates_machine *machine,
                           const char **stale, char *source)
{
    int version = 0;
    const char *date = NULL;
    json_t *of = NULL, *all = NULL;
    if (json_unpack(root, "{si ss so so}", "version", &version, "date", &date, "machine", &of,
                    "rates", &all))
        return refuse(r, "version, date, machine or rates are missing", "");
    if (strlen(date) > DATE_BYTES || date[strspn(date, "0123456789-")])
        return refuse(r, "its date is not one such as 2026-11-30", "");
    json_t *here = json_of_machine(machine);
    const char *build = json_string_value(json_object_get(of, "build"));
    *stale = NULL;
    if (!json_equal(of, here)) *stale = "another machine or number of threads";
    if (version != FILE_VERSION || !build ||
        strcmp(build, json_string_value(json_object_get(here, "build"))))
        *stale = "another build";
    json_decref(here);
    if (*stale) return HR_OK;
    hr_status status = read_speed(r, json_object_get(root, "pace_us"));
    if (status == HR_OK) status = read_disk(r, root);
    if (status != HR_OK) return status;
    snprintf(source, HR_RATES_SOURCE_BYTES, "calibrated on this machine %s", date);
    return read_rates(r, all);
}

static hr_status read_file(const reader *r, const hr_rates_machine *machine, const char **stale,
                           char *source)
{
    text_source text = { .reader = r, .file = -1 };
    json_error_t why;
    json_t *root = NULL;
    hr_status status = hr_file_open(r->path, &text.file, &text.bytes, r->err);
    if (status != HR_OK) return status;
    if (text.bytes > FILE_BYTES_MOST)
        status = hr_fail(r->err, HR_CORRUPT,
                         "%s: invalid calibration: %lld bytes, at most %d are read", r->path,
                         (long long)text.bytes, FILE_BYTES_MOST);
    else root = json_load_callback(read_text, &text, JSON_REJECT_DUPLICATES, &why);
    hr_file_close(&text.file);
    if (status == HR_OK) status = text.status;
    if (status == HR_OK)
        status = root ? read_root(r, root, machine, stale, source)
                      : refuse(r, "not JSON:", why.text);
    json_decref(root);
    return status;
}

hr_status hr_rates_load(const char *directory, const hr_backend *backend, uint32_t cpu_mask,
                        int32_t threads, hr_rates *rates, char source[HR_RATES_SOURCE_BYTES],
                        hr_error *err)
{
    char path[PATH_BYTES], name[HR_RATES_NAME_BYTES], found[HR_RATES_SOURCE_BYTES];
    hr_rates_machine machine;
    hr_rates read = { .backend = backend, .threads = threads };
    bool there = directory && *directory;
    const char *stale = NULL;
    hr_rates_machine_of(backend, cpu_mask, threads, &machine);
    hr_rates_name(&machine, name);
    if (there) {
        const hr_status status = hr_path_join(directory, name, path, sizeof path, err);
        if (status != HR_OK) return status;
        there = hr_file_exists(path);
    }
    if (there) {
        const reader r = { path, backend, &read, err };
        const hr_status status = read_file(&r, &machine, &stale, found);
        if (status != HR_OK) return status;
    }
    if (there && !stale) {
        *rates = read;
        memcpy(source, found, sizeof found);
        return HR_OK;
    }
    hr_rates_guess(backend, cpu_mask, threads, rates);
    const int written = snprintf(source, HR_RATES_SOURCE_BYTES,
                                 "estimated from the instruction set (%s)", machine.rung);
    if (stale)
        snprintf(source + written, (size_t)(HR_RATES_SOURCE_BYTES - written),
                 "; the calibration file is from %s and is ignored", stale);
    return HR_OK;
}
