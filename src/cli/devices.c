/* SPDX-License-Identifier: Apache-2.0 */
/* cli/devices.c - headroom devices: lists the machines that can be planned for, or prints one with
 * its sources. */
#include "headroom/devices.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

static const char *kind_name(const hr_device_facts *device)
{
    return device->kind == HR_DEVICE_CPU ? "cpu" : "gpu";
}

/* ---- text */

static void print_peak(double peak)
{
    if (peak <= 0) printf(" %7s", "-");
    else printf(" %7.*f", peak < 10 ? 2 : peak < 1000 ? 1 : 0, peak);
}

static void print_heading(void)
{
    printf("%-21s %11s %10s %7s", "device", "usable", "reserve", "GB/s");
    for (int32_t f = 0; f < HR_DEVICE_FORMATS; f++) printf(" %7s", hr_device_format_name(f));
    printf("\n");
}

static void print_row(const hr_device_facts *device)
{
    const double GiB = 1024.0 * 1024 * 1024;
    printf("%-21s %7.2f GiB %6.2f GiB %7.0f", device->name, (double)device->usable_bytes / GiB,
           (double)device->reserve_bytes / GiB, 1e-9 * (double)device->bandwidth);
    for (int32_t f = 0; f < HR_DEVICE_FORMATS; f++) print_peak(device->peak[f]);
    printf("\n");
}

static void print_table(const hr_device_list *own)
{
    print_heading();
    for (int32_t i = 0; hr_device_row(own, i); i++)
        if (!hr_device_is_hidden(own, i)) print_row(hr_device_row(own, i));
    if (own) printf("\nthe first %d: of the device file", own->count);
    for (int32_t i = 0; hr_device_row(own, i); i++)
        if (hr_device_is_hidden(own, i))
            printf("; its %s replaces that of the table", hr_device_row(own, i)->name);
    printf(
        "\nusable: as the driver reports, below the marketed size; reserve: for context, display "
        "and system\nformats: dense peak in TFLOPS (int8: TOPS), sums in fp32; -: not available "
        "or not published\nheadroom devices NAME prints the sources; headroom plan RECIPE "
        "--device NAME plans for one\n");
}

static void print_value(const char *name, const char *value)
{
    printf("  %-18s %s\n", name, value);
}

static void print_size(const char *name, int64_t bytes)
{
    char text[64];
    print_value(name, hr_bytes_print(bytes, text));
}

static void print_rate(const char *name, int64_t rate)
{
    char text[64];
    snprintf(text, sizeof text, "%.4g GB/s", 1e-9 * (double)rate);
    print_value(name, text);
}

static void print_device(const hr_device_facts *device)
{
    const hr_device_choice choice = { .device = device, .reserve_bytes = device->reserve_bytes };
    printf("%s: %s\n", device->name, device->title);
    print_value("group", device->own ? "of the device file" : hr_device_group_words(device->group));
    print_size("usable", device->usable_bytes);
    print_size("reserve", device->reserve_bytes);
    print_size("for a run", hr_device_budget(&choice));
    print_rate("memory bandwidth", device->bandwidth);
    for (int32_t f = 0; f < HR_DEVICE_FORMATS; f++) {
        char text[64] = "not available, or not published", name[32];
        const char *unit = f == HR_DEVICE_INT8 ? "TOPS" : "TFLOPS";
        if (device->peak[f] > 0) snprintf(text, sizeof text, "%.5g %s", device->peak[f], unit);
        snprintf(name, sizeof name, "peak %s", hr_device_format_name(f));
        print_value(name, text);
    }
    if (device->link) print_rate("host link", device->link);
    if (device->host_bytes) print_size("host memory", device->host_bytes);
    if (device->threads) printf("  %-18s %d, %s\n", "threads", device->threads, device->kernels);
    printf("sources\n");
    print_value("usable", device->usable_source);
    print_value("reserve", device->reserve_source);
    print_value("bandwidth, peaks", device->figures_source);
    print_value("host", device->link_source);
}

/* ---- JSON */

static json_t *json_of(const hr_device_facts *device)
{
    json_t *peaks = json_object();
    for (int32_t f = 0; f < HR_DEVICE_FORMATS; f++)
        json_object_set_new(peaks, hr_device_format_name(f),
                            device->peak[f] > 0 ? json_real(device->peak[f]) : json_null());
    json_t *sources = json_pack("{s:s, s:s, s:s, s:s}", "usable_bytes", device->usable_source,
                                "reserve_bytes", device->reserve_source, "bandwidth, peak_tflops",
                                device->figures_source, "link, host_bytes", device->link_source);
    json_t *object = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "name",
                               device->name, "title", device->title, "kind", kind_name(device),
                               "usable_bytes", (json_int_t)device->usable_bytes, "reserve_bytes",
                               (json_int_t)device->reserve_bytes, "bandwidth_bytes_per_second",
                               (json_int_t)device->bandwidth, "link_bytes_per_second",
                               (json_int_t)device->link, "peak_tflops", peaks, "sources", sources);
    json_object_set_new(object, "host_bytes",
                        device->host_bytes ? json_integer(device->host_bytes) : json_null());
    json_object_set_new(object, "budget_bytes",
                        json_integer(device->usable_bytes - device->reserve_bytes));
    json_object_set_new(object, "group", json_string(hr_device_group_words(device->group)));
    json_object_set_new(object, "own", json_boolean(device->own));
    json_object_set_new(object, "kernels",
                        *device->kernels ? json_string(device->kernels) : json_null());
    json_object_set_new(object, "threads",
                        device->threads ? json_integer(device->threads) : json_null());
    return object;
}

static int print_json(json_t *value)
{
    return hr_cli_print_json(value, JSON_REAL_PRECISION(12));
}

static json_t *json_of_all(const hr_device_list *own)
{
    json_t *list = json_array();
    for (int32_t i = 0; hr_device_row(own, i); i++)
        if (!hr_device_is_hidden(own, i))
            json_array_append_new(list, json_of(hr_device_row(own, i)));
    return list;
}

/* ---- all */

hr_status hr_cli_own_devices(const char *path, hr_device_list **own, hr_error *err)
{
    *own = NULL;
    if (!path) return HR_OK;
    hr_device_list *list = calloc(1, sizeof *list);
    if (!list) return hr_fail(err, HR_FAILURE, "out of memory for a list of devices");
    const hr_status status = hr_devices_read(path, list, err);
    if (status == HR_OK) *own = list;
    else free(list);
    return status;
}

hr_status hr_cli_device(const hr_cli_arguments *arguments, hr_device_list **own,
                        hr_device_choice *choice, hr_error *err)
{
    const char *const *values = arguments->values;
    int32_t count;
    *own = NULL;
    if (values[HR_OPTION_DEVICE_FILE] && !values[HR_OPTION_DEVICE] && !values[HR_OPTION_DEVICES])
        return hr_fail(err, HR_USAGE, "--device-file needs --device or --devices");
    const hr_status status = hr_cli_own_devices(values[HR_OPTION_DEVICE_FILE], own, err);
    if (status != HR_OK || !values[HR_OPTION_DEVICE]) return status;
    return hr_devices_choose(values[HR_OPTION_DEVICE], *own, 1, choice, &count, err);
}

int hr_cli_devices(const hr_cli_arguments *arguments)
{
    hr_error err;
    hr_device_list *own;
    const hr_device_facts *device = NULL;
    const bool json = arguments->values[HR_OPTION_JSON];
    hr_status status = hr_cli_own_devices(arguments->values[HR_OPTION_DEVICES_FILE], &own, &err);
    if (status == HR_OK && arguments->operand_count)
        status = hr_device_find(arguments->operands[0], own, &device, &err);
    int code = HR_OK;
    if (status != HR_OK) code = hr_cli_fail(&err);
    else if (json) code = print_json(device ? json_of(device) : json_of_all(own));
    else if (device) print_device(device);
    else print_table(own);
    free(own);
    return code;
}
