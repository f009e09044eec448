/* SPDX-License-Identifier: Apache-2.0 */
/* devices_test.c - the table of devices, names and lists of them, formats, and files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "headroom/devices.h"
#include "support/folder.h"

static hr_folder folder;
static char path[512];
static hr_device_list list;

static int make_folder(void **state)
{
    (void)state;
    folder = hr_folder_open();
    strcpy(path, hr_folder_path(&folder, "devices.yaml"));
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    hr_folder_close(&folder);
    return 0;
}

static const hr_device_facts *found(const char *name, const hr_device_list *own)
{
    const hr_device_facts *device = NULL;
    hr_error err;
    if (hr_device_find(name, own, &device, &err) != HR_OK) fail_msg("%s", err.message);
    return device;
}

/* ---- the table */

static void every_row_is_complete(void **state)
{
    (void)state;
    int32_t count = 0;
    for (const hr_device_facts *d; (d = hr_device_at(count)); count++) {
        assert_true(d->usable_bytes > d->reserve_bytes && d->reserve_bytes > 0);
        assert_true(d->bandwidth >= 10e9 && d->bandwidth <= 10e12);
        assert_true(d->peak[HR_DEVICE_FP32] > 0);
        assert_true(*d->title && *d->usable_source && *d->reserve_source && *d->figures_source &&
                    *d->link_source);
        /* No source was cut at the size of its field. */
        assert_true(strlen(d->usable_source) < HR_DEVICE_SOURCE_BYTES - 1 &&
                    strlen(d->figures_source) < HR_DEVICE_SOURCE_BYTES - 1);
        assert_int_equal(d->kind == HR_DEVICE_CPU, d->threads > 0);
        assert_int_equal(d->kind == HR_DEVICE_CPU, d->link == 0);
        /* Peaks grow as formats narrow. */
        assert_true(d->peak[HR_DEVICE_BF16] == 0 ||
                    d->peak[HR_DEVICE_BF16] >= 1.95 * d->peak[HR_DEVICE_TF32]);
        assert_true(d->peak[HR_DEVICE_FP8] == 0 ||
                    d->peak[HR_DEVICE_FP8] >= 1.99 * d->peak[HR_DEVICE_BF16]);
        assert_ptr_equal(found(d->name, NULL), d);
        assert_false(d->own);
        assert_int_equal(d->kind == HR_DEVICE_CPU, d->group == HR_DEVICE_LAPTOP);
        assert_int_equal(d->group == HR_DEVICE_HOSTED, d->host_bytes > 0);
        /* A bus is much slower than a card's memory; a board has one memory. */
        if (d->kind == HR_DEVICE_GPU)
            assert_int_equal(d->group == HR_DEVICE_BOARD || d->group == HR_DEVICE_MAC,
                             2 * d->link > d->bandwidth);
    }
    assert_true(count >= 40);
}

/* The figures of the drivers that people compare with, in hundredths of a GiB. */
static void usable_bytes_are_those_of_drivers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t least, most;
    } rows[] = { { "gtx-1650", 363, 381 },
                 { "rtx-4090", 2364, 2364 },
                 { "rtx-pro-6000", 9497, 9497 },
                 { "rtx-5090", 3136, 3137 },
                 { "rtx-3060", 1173, 1176 },
                 { "rtx-3090", 2368, 2369 },
                 { "t4", 1474, 1476 },
                 { "colab-t4", 1474, 1476 },
                 { "rtx-4060", 763, 763 },
                 { "rtx-4070", 1170, 1170 },
                 { "rtx-6000-ada", 4443, 4754 },
                 { "l4", 2203, 2217 },
                 { "a10", 2203, 2220 },
                 { "a100-40gb", 3939, 3956 },
                 { "a100-80gb", 7914, 7925 },
                 { "h100", 7910, 7933 },
                 { "h200", 13972, 13981 },
                 { "rtx-2080-ti", 1076, 1076 },
                 { "rtx-3070", 778, 778 },
                 { "rtx-3080", 978, 978 },
                 { "rtx-5080", 1548, 1548 },
                 { "p100", 1590, 1590 },
                 { "kaggle-p100", 1590, 1590 },
                 { "kaggle-t4", 1474, 1476 },
                 { "v100-16gb", 1578, 1578 },
                 { "v100-32gb", 3174, 3174 },
                 { "a10g", 2220, 2249 },
                 { "h100-nvl", 9300, 9300 },
                 { "mi300x", 19198, 19199 },
                 { "m1-16gb", 1067, 1067 },
                 { "m1-max-32gb", 2133, 2133 },
                 { "m1-max-64gb", 4800, 4800 },
                 { "m2-16gb", 1067, 1067 },
                 { "m2-max-32gb", 2133, 2133 },
                 { "m2-max-64gb", 4800, 4800 },
                 { "m2-max-96gb", 7200, 7200 },
                 { "m4-16gb", 1067, 1067 },
                 { "b200", 17835, 17836 },
                 { "jetson-agx-orin-64gb", 6137, 6137 },
                 { "laptop-8gb", 700, 800 },
                 { "laptop-16gb", 1500, 1600 },
                 { "laptop-32gb", 3100, 3200 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double hundredths = 100 * (double)found(rows[i].name, NULL)->usable_bytes /
                                  (1024.0 * 1024 * 1024);
        if (hundredths < rows[i].least - 0.5 || hundredths > rows[i].most + 0.5)
            fail_msg("%s: %.1f hundredths of a GiB", rows[i].name, hundredths);
    }
}

/* ---- names */

static void names_may_be_written_as_drivers_do(void **state)
{
    (void)state;
    assert_string_equal(found("NVIDIA GeForce RTX 4090", NULL)->name, "rtx-4090");
    assert_string_equal(found("Tesla T4", NULL)->name, "t4");
    assert_string_equal(found("A100_80GB", NULL)->name, "a100-80gb");
    static const char *const printed[][2] = {
        { "NVIDIA A100-SXM4-80GB", "a100-80gb" },
        { "NVIDIA A100-SXM4-40GB", "a100-40gb" },
        { "NVIDIA A100 80GB PCIe", "a100-80gb" },
        { "A100-PCIE-40GB", "a100-40gb" },
        { "NVIDIA H100 80GB HBM3", "h100" },
        { "NVIDIA H100 PCIe", "h100-pcie" },
        { "NVIDIA H100 NVL", "h100-nvl" },
        { "NVIDIA L4", "l4" },
        { "NVIDIA A10G", "a10g" },
        { "NVIDIA RTX A6000", "rtx-a6000" },
        { "NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada" },
        { "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000" },
        { "NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti" },
        { "Tesla V100-SXM2-16GB", "v100-16gb" },
        { "Tesla V100-PCIE-32GB", "v100-32gb" },
        { "Tesla P100-PCIE-16GB", "p100" },
        { "AMD Instinct MI300X", "mi300x" },
        { "rtx4090", "rtx-4090" },
        { "4090", "rtx-4090" },
        { "a6000", "rtx-a6000" },
        { "NVIDIA T4 16 GB", "t4" },
    };
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++)
        assert_string_equal(found(printed[i][0], NULL)->name, printed[i][1]);
}

static void not_found(const char *name, const char *sentence)
{
    const hr_device_facts *device = NULL;
    hr_error err;
    assert_int_equal(hr_device_find(name, NULL, &device, &err), HR_USAGE);
    assert_null(device);
    assert_string_equal(err.message, sentence);
}

#define UNKNOWN(name, nearest) \
    not_found(name, "\"" name "\" is not a known device; the nearest is " nearest \
                    " (headroom devices lists all)")

/* A card of a laptop, with less memory, is not the card with the same number. */
static void an_unknown_name_says_the_nearest_or_all_that_begin_with_it(void **state)
{
    (void)state;
    UNKNOWN("NVIDIA GeForce RTX 3060 Laptop GPU", "rtx-3060");
    UNKNOWN("GeForce RTX 4060 Ti", "rtx-4060");
    UNKNOWN("3090ti", "rtx-3090");
    UNKNOWN("A100-SXM4-40GB MIG 1g.5gb", "a100-40gb");
    UNKNOWN("jetson-agx-orin", "jetson-agx-orin-64gb");
    UNKNOWN("Apple M3", "m3-16gb");
    not_found("a100", "\"a100\" fits several devices; name one of a100-40gb, a100-80gb");
    not_found("Apple M1 Max",
              "\"Apple M1 Max\" fits several devices; name one of m1-max-32gb, m1-max-64gb");
    not_found("laptop",
              "\"laptop\" fits several devices; name one of laptop-8gb, laptop-16gb, laptop-32gb");
    not_found("", "\"\" is not a known device (headroom devices lists all)");
    not_found("z", "\"z\" is not a known device (headroom devices lists all)");
    /* Many names are counted. */
    const hr_device_facts *device = NULL;
    hr_error err;
    assert_int_equal(hr_device_find("rtx", NULL, &device, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "rtx-3090, rtx-4060, rtx-4070, rtx-4080 and 6 more"));
}

static void a_device_of_a_file_may_begin_with_the_name_of_a_maker(void **state)
{
    (void)state;
    static hr_device_list own = { .count = 2 };
    own.rows[0] = *hr_device_at(0);
    own.rows[1] = *hr_device_at(1);
    strcpy(own.rows[0].name, "tesla-lab");
    strcpy(own.rows[1].name, "nvidia-t4");
    assert_ptr_equal(found("Tesla Lab", &own), &own.rows[0]);
    assert_ptr_equal(found("nvidia-t4", &own), &own.rows[1]);
    assert_string_equal(found("Tesla T4", &own)->name, "t4");
}

static void refused(const char *text, int32_t most, const char *sentence)
{
    hr_device_choice choices[HR_DEVICES_MOST];
    hr_error err;
    int32_t count = -7;
    assert_int_equal(hr_devices_choose(text, NULL, most, choices, &count, &err), HR_USAGE);
    assert_string_equal(err.message, sentence);
    assert_int_equal(count, -7);
}

static void a_bad_list_is_refused_in_one_sentence(void **state)
{
    (void)state;
    refused("rtx-4900", 1,
            "\"rtx-4900\" is not a known device; the nearest is rtx-4090 (headroom devices lists "
            "all)");
    refused("", 8, "a device has no name; headroom devices lists all");
    refused("h100,,h200", 8, "a device has no name; headroom devices lists all");
    refused("h100,h100", 8, "the device h100 is given twice");
    refused("all,h100", 128, "the device h100 is given twice");
    refused("h100,h200", 1, "h200 is one device too many; 1 can be given");
    refused("host=64GiB", 1, "no device is named; headroom devices lists all");
    refused("h100,host=64GiB,host=1GiB", 1, "host= is given twice for one device");
    refused("h100,disk=0", 1, "disk= takes 1 byte or more; got \"0\"");
    refused("h100,host=0MiB", 1, "host= takes 1 byte or more; got \"0MiB\"");
    refused("h100,ram=64GiB", 1,
            "\"ram=\" is no setting of a device; those are host=, disk= and reserve=");
    refused("h100,host=64 parsec", 1,
            "\"64 parsec\" is not a size: write 700MiB, 733MB, 1.5GiB or plain bytes");
    refused("laptop-8gb,host=64GiB", 1,
            "host= is the memory around a card; laptop-8gb runs in its own memory, which reserve= "
            "and --budget lower");
    refused("rtx-4060,reserve=8GiB", 1,
            "a reserve of 8,589,934,592 bytes (8,192.0 MiB) leaves nothing of the 8,192,524,288 "
            "bytes (7,813.0 MiB) of rtx-4060");
    refused("all", 1, "\"all\" is several devices; use --devices all");
}

static void settings_hold_for_all_devices_of_a_list(void **state)
{
    (void)state;
    hr_device_choice choices[HR_DEVICES_MOST];
    hr_error err;
    int32_t count;
    assert_int_equal(hr_devices_choose("l4,host=64GiB,colab-t4,disk=500GiB,reserve=0", NULL,
                                       HR_DEVICES_MOST, choices, &count, &err),
                     HR_OK);
    assert_int_equal(count, 2);
    for (int32_t i = 0; i < 2; i++) {
        assert_int_equal(choices[i].host_bytes, INT64_C(64) << 30);
        assert_int_equal(choices[i].disk_bytes, INT64_C(500) << 30);
        assert_int_equal(hr_device_budget(&choices[i]), choices[i].device->usable_bytes);
    }
    assert_int_equal(hr_devices_choose("l4,colab-t4", NULL, 2, choices, &count, &err), HR_OK);
    assert_int_equal(choices[0].host_bytes, 0);
    assert_int_equal(choices[1].host_bytes, choices[1].device->host_bytes);
    assert_int_equal(hr_device_budget(&choices[0]), (int64_t)(22558 - 512) << 20);
    assert_int_equal(hr_devices_choose("all", NULL, HR_DEVICES_MOST, choices, &count, &err), HR_OK);
    assert_null(hr_device_at(count));
    assert_non_null(hr_device_at(count - 1));
}

/* ---- formats */

static void a_format_that_a_card_lacks_is_refused_by_name(void **state)
{
    (void)state;
    hr_error err;
    const hr_device_facts *a100 = found("a100-80gb", NULL), *t4 = found("t4", NULL);
    assert_int_equal(hr_device_check_format(a100, HR_DEVICE_FP8, "fp8 products", &err), HR_USAGE);
    assert_string_equal(err.message,
                        "fp8 products: a100-80gb (NVIDIA A100 SXM 80 GB) has no fp8; it has fp32, "
                        "tf32, bf16, fp16, int8, and devices with fp8 are rtx-4060, rtx-4070, "
                        "rtx-4080, rtx-4090 and others");
    assert_int_equal(hr_device_check_format(t4, HR_DEVICE_BF16, "train.dtype=bf16", &err),
                     HR_USAGE);
    assert_non_null(
        strstr(err.message, "t4 (NVIDIA T4 16 GB) has no bf16; it has fp32, fp16, int8"));
    assert_int_equal(hr_device_check_format(t4, HR_DEVICE_FP32, "", &err), HR_OK);
    assert_int_equal(hr_device_check_format(found("h100", NULL), HR_DEVICE_FP8, "", &err), HR_OK);
    assert_int_equal(hr_device_check_format(found("laptop-8gb", NULL), HR_DEVICE_BF16, "", &err),
                     HR_OK);
}

/* ---- files */

static hr_status read_text(const char *text, hr_error *err)
{
    hr_folder_write(path, text, (int64_t)strlen(text));
    return hr_devices_read(path, &list, err);
}

static void a_file_adds_devices_that_hide_those_of_the_table(void **state)
{
    (void)state;
    hr_error err;
    const char *text = "lab-card:\n"
                       "  title: A card of the lab\n"
                       "  usable: 40GiB\n"
                       "  reserve: 1GiB\n"
                       "  bandwidth: 1.5TB/s\n"
                       "  link: 32GB/s\n"
                       "  peak_tflops: {fp32: 20, bf16: 200.5}\n"
                       "  source: measured here\n"
                       "t4:\n"
                       "  kind: cpu\n"
                       "  usable: 1000MB\n"
                       "  reserve: 0\n"
                       "  bandwidth: 20GB/s\n"
                       "  peak_tflops: {fp32: 0.5}\n"
                       "  threads: 12\n"
                       "  kernels: avx512\n";
    if (read_text(text, &err) != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(list.count, 2);
    const hr_device_facts *card = found("Lab Card", &list), *own = found("t4", &list);
    assert_string_equal(card->title, "A card of the lab");
    assert_int_equal(card->usable_bytes, INT64_C(40) << 30);
    assert_int_equal(card->bandwidth, 1500000000000);
    assert_int_equal(card->link, 32000000000);
    assert_true(card->peak[HR_DEVICE_BF16] == 200.5 && card->peak[HR_DEVICE_FP8] == 0);
    assert_string_equal(card->figures_source, "measured here");
    assert_ptr_equal(own, &list.rows[1]);
    assert_int_equal(own->kind, HR_DEVICE_CPU);
    assert_int_equal(own->usable_bytes, 1000000000);
    assert_int_equal(own->threads, 12);
    assert_string_equal(found("l4", &list)->name, "l4");
    assert_true(card->own && own->own);
    /* All devices have the own one in place of the row of the table. */
    hr_device_choice choices[HR_DEVICES_MOST];
    int32_t count, table = 0, named = 0;
    while (hr_device_at(table)) table++;
    assert_int_equal(hr_devices_choose("all", &list, HR_DEVICES_MOST, choices, &count, &err),
                     HR_OK);
    assert_int_equal(count, table + 1);
    for (int32_t i = 0; i < count; i++) named += !strcmp(choices[i].device->name, "t4");
    assert_int_equal(named, 1);
    assert_ptr_equal(choices[1].device, own);
}

static void bad_file(const char *text, int32_t line, const char *sentence)
{
    hr_error err;
    char expected[HR_ERROR_BYTES + 600];
    assert_int_equal(read_text(text, &err), HR_USAGE);
    snprintf(expected, sizeof expected, "%s:%d: %s", path, line, sentence);
    assert_string_equal(err.message, expected);
    assert_int_equal(list.count, 0);
}

#define CARD "card:\n  usable: 4GiB\n  bandwidth: 100GB/s\n"

static void a_bad_file_is_refused_with_its_line(void **state)
{
    (void)state;
    hr_error err;
    bad_file(CARD, 1, "the device card has no fp32 in peak_tflops");
    bad_file("card:\n  bandwidth: 100GB/s\n", 1, "the device card has no usable");
    bad_file(CARD "  peak_tflops: {fp32: 1, fp9: 2}\n", 4,
             "fp9: is no format; those are fp32, tf32, bf16, fp16, fp8 and int8");
    bad_file(CARD "  peak_tflops: {fp32: -1}\n", 4,
             "fp32: a peak from 0.0001 to 1,000,000 TFLOPS is expected");
    bad_file(CARD "  peak_tflops: 5\n", 4,
             "peak_tflops: a mapping of formats is expected, such as {fp32: 82.6, bf16: 165.2}");
    bad_file(CARD "  usable: 5GiB\n", 4, "usable: is given twice");
    bad_file("card:\n  title: a\n  kind: cpu\n  usable: 4GiB\n  reserve: 0\n  host: 0\n"
             "  bandwidth: 9GB/s\n  link: 9GB/s\n  threads: 1\n  kernels: ref\n  source: b\n"
             "  peak_tflops: {fp32: 1, tf32: 1, bf16: 1, fp16: 1, fp8: 1, int8: 1, int8: 2}\n",
             12, "int8: is given twice");
    bad_file("card: {usable: 9000TiB}\n", 1,
             "usable: a size from 1MiB to 8192TiB is expected (reserve and host: from 0)");
    bad_file(CARD "  peak_tflops: {fp32: 1}\n  reserve: 4GiB\n", 1,
             "the reserve leaves nothing of the usable bytes");
    bad_file("card:\n  usable: much\n", 2,
             "usable: \"much\" is not a size: write 700MiB, 733MB, 1.5GiB or plain bytes");
    bad_file("card:\n  usable: 4GiB\n  bandwidth: 100\n", 3,
             "bandwidth: a rate is expected, such as 1008GB/s");
    bad_file("card:\n  vram: 4GiB\n", 2,
             "vram: is no figure of a device; those are title, kind, usable, reserve, host, "
             "bandwidth, link, peak_tflops, threads, kernels and source");
    bad_file("card: {\"vr\\nam\": 4GiB}\n", 1,
             "vr?am: is no figure of a device; those are title, kind, usable, reserve, host, "
             "bandwidth, link, peak_tflops, threads, kernels and source");
    bad_file("card: 7\n", 1, "a device is a mapping of figures, such as usable: 23.64GiB");
    bad_file("- card\n", 1, "a list is not expected here");
    bad_file("card: &a {usable: 4GiB}\n", 1, "anchors and tags are not read");
    bad_file("card: {usable: *a}\n", 1, "aliases are not read");
    bad_file("all: {usable: 4GiB}\n", 1,
             "a name of a device has 1 to 31 lower-case letters, digits, dashes and dots, and is "
             "not \"all\"");
    bad_file(CARD "  peak_tflops: {fp32: 1}\n" CARD, 5, "this device is given twice");
    bad_file(CARD "  kind: cpu\n  peak_tflops: {fp32: 1}\n", 1, "the device card has no threads");
    bad_file(CARD "  threads: 3\n  peak_tflops: {fp32: 1}\n", 1,
             "threads and kernels are for devices of kind cpu");
    static char large[(1 << 20) + 2];
    memset(large, '#', sizeof large - 1);
    assert_int_equal(read_text(large, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "the limit of a device file"));
    assert_int_equal(read_text("# nothing\n", &err), HR_USAGE);
    assert_non_null(strstr(err.message, "has no devices"));
    assert_int_equal(hr_devices_read("/nowhere/devices.yaml", &list, &err), HR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(usable_bytes_are_those_of_drivers),
        cmocka_unit_test(names_may_be_written_as_drivers_do),
        cmocka_unit_test(a_device_of_a_file_may_begin_with_the_name_of_a_maker),
        cmocka_unit_test(an_unknown_name_says_the_nearest_or_all_that_begin_with_it),
        cmocka_unit_test(a_bad_list_is_refused_in_one_sentence),
        cmocka_unit_test(settings_hold_for_all_devices_of_a_list),
        cmocka_unit_test(a_format_that_a_card_lacks_is_refused_by_name),
        cmocka_unit_test(a_file_adds_devices_that_hide_those_of_the_table),
        cmocka_unit_test(a_bad_file_is_refused_with_its_line),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
