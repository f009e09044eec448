/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/devices.h - machines to plan for that are not here: graphics cards, boards and laptops,
 * with what their drivers and data sheets say.
 *
 * The table is compiled in; a file adds to it. Every figure has its source. Nothing is measured. */
#ifndef HEADROOM_DEVICES_H
#define HEADROOM_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HR_DEVICE_NAME_BYTES = 32,
    HR_DEVICE_TITLE_BYTES = 64,
    HR_DEVICE_SOURCE_BYTES = 256,
    HR_DEVICES_OWN_MOST = 64, /* of a file */
    HR_DEVICES_MOST = 128     /* that one question can name */
};

/* gpu: the arena is in the memory of the card, everything else of the process in host memory.
 * cpu: the whole process is in the memory of the machine. */
typedef enum { HR_DEVICE_GPU, HR_DEVICE_CPU } hr_device_kind;

/* What people can replace by each other: enumerator, words. The GPU of a board and of a Mac
 * shares the memory of the CPU. */
#define HR_DEVICE_GROUP_LIST(X) \
    X(DISPLAY, "graphics card") \
    X(WORKSTATION, "workstation card") \
    X(DATA_CENTER, "data center card") \
    X(HOSTED, "hosted notebook") \
    X(BOARD, "board") \
    X(MAC, "Mac") \
    X(LAPTOP, "laptop")

#define HR_DEVICE_GROUP_ID(id, words) HR_DEVICE_##id,
typedef enum { HR_DEVICE_GROUP_LIST(HR_DEVICE_GROUP_ID) HR_DEVICE_GROUPS } hr_device_group;
#undef HR_DEVICE_GROUP_ID

/* Formats of matrix products: enumerator, name. */
#define HR_DEVICE_FORMAT_LIST(X) \
    X(FP32, fp32) \
    X(TF32, tf32) \
    X(BF16, bf16) \
    X(FP16, fp16) \
    X(FP8, fp8) \
    X(INT8, int8)

#define HR_DEVICE_FORMAT_ID(id, name) HR_DEVICE_##id,
typedef enum { HR_DEVICE_FORMAT_LIST(HR_DEVICE_FORMAT_ID) HR_DEVICE_FORMATS } hr_device_format;
#undef HR_DEVICE_FORMAT_ID

/* One row of the table. Texts are never empty. */
typedef struct {
    char name[HR_DEVICE_NAME_BYTES];   /* "rtx-4090" */
    char title[HR_DEVICE_TITLE_BYTES]; /* "NVIDIA GeForce RTX 4090" */
    hr_device_kind kind;
    hr_device_group group;
    bool own;              /* of a file of the user */
    int64_t usable_bytes;  /* that the driver or the kernel reports, less than the marketed size */
    int64_t reserve_bytes; /* default reserve for context, display, system */
    int64_t host_bytes;    /* memory of the machine around the card, if it is always the same; 0 */
    int64_t bandwidth;     /* of the memory, bytes per second */
    int64_t link;          /* host to device, bytes per second in one direction; 0: none */
    /* Dense peak in 10^12 operations per second, sums in fp32 (int8: in int32). 0: the device lacks
     * the format, or its data sheet gives no figure. */
    double peak[HR_DEVICE_FORMATS];
    int32_t threads;  /* of a cpu; 0 for cards */
    char kernels[16]; /* instruction set of a cpu, as train.kernels; empty for cards */
    char usable_source[HR_DEVICE_SOURCE_BYTES];
    char reserve_source[HR_DEVICE_SOURCE_BYTES];
    char figures_source[HR_DEVICE_SOURCE_BYTES]; /* of bandwidth and peaks */
    char link_source[HR_DEVICE_SOURCE_BYTES];    /* of `link` and `host_bytes` */
} hr_device_facts;

/* Devices of a file; they are found before those of the table. */
typedef struct {
    int32_t count;
    hr_device_facts rows[HR_DEVICES_OWN_MOST];
} hr_device_list;

/* Row `index` of the compiled-in table, null past its end. Pure. */
const hr_device_facts *hr_device_at(int32_t index);

/* Row `index` of the devices of a file, which may be null, and then of the table; null past their
 * end. Pure. */
const hr_device_facts *hr_device_row(const hr_device_list *own, int32_t index);

/* Whether row `index` of hr_device_row is a row of the table that a device of the file has the name
 * of: that name then means the device of the file. Pure. */
bool hr_device_is_hidden(const hr_device_list *own, int32_t index);

/* "fp8"; null past the last format. Pure. */
const char *hr_device_format_name(int32_t format);

/* "laptop"; null past the last group. Pure. */
const char *hr_device_group_words(int32_t group);

/* Finds a device by name, or by the name that its driver prints: "NVIDIA A100-SXM4-80GB" is
 * a100-80gb. Case does not matter, nor do dashes, blanks and underscores, nor words of the maker in
 * front: "NVIDIA GeForce RTX 4090", "rtx4090" and "4090" are rtx-4090.
 *
 *   own  devices of a file, which are found first; or null
 *
 * Errors   USAGE  unknown, with the nearest name; or the beginning of several names, which are
 *                 listed. */
HR_MUST_CHECK hr_status hr_device_find(const char *name, const hr_device_list *own,
                                       const hr_device_facts **device, hr_error *err);

/* Reads devices from a YAML file (docs/devices.md). After an error, `list` is empty.
 * Errors   USAGE  with file and line. */
HR_MUST_CHECK hr_status hr_devices_read(const char *path, hr_device_list *list, hr_error *err);

/* A device as a question names it. */
typedef struct {
    const hr_device_facts *device;
    int64_t reserve_bytes; /* of the device, or as given */
    int64_t host_bytes;    /* as given, or of the device; 0: unknown */
    int64_t disk_bytes;    /* as given; 0: unlimited */
} hr_device_choice;

/* Parses "rtx-4090,h100,host=64GiB,disk=500GiB,reserve=1GiB": names, or `all`, and settings that
 * hold for all of them.
 *
 *   most     of names; choices [most] out, count out
 *
 * Errors   USAGE  unknown name or setting, no name, a name or a setting twice, host= or disk= of 0
 *                 bytes, more than `most`; a
 *                 reserve that is not below the usable bytes. */
HR_MUST_CHECK hr_status hr_devices_choose(const char *text, const hr_device_list *own, int32_t most,
                                          hr_device_choice *choices, int32_t *count, hr_error *err);

/* Bytes for a run: usable bytes less the reserve. Pure. */
static inline int64_t hr_device_budget(const hr_device_choice *choice)
{
    return choice->device->usable_bytes - choice->reserve_bytes;
}

/* Whether the device computes in a format. A cpu computes every format, in fp32 if need be. Pure.*/
bool hr_device_has(const hr_device_facts *device, hr_device_format format);

/* Refuses a format that the device lacks: names those that it has, devices that have it, and
 * train.dtype=fp32 if that works. `key` is what asked for it, "train.dtype=bf16". Errors USAGE. */
HR_MUST_CHECK hr_status hr_device_check_format(const hr_device_facts *device,
                                               hr_device_format format, const char *key,
                                               hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
