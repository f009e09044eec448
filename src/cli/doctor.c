/* SPDX-License-Identifier: Apache-2.0 */
/* cli/doctor.c - headroom doctor: describes this machine and the limits of a process. */
#include "headroom/doctor.h"

#include <jansson.h>
#include <stdio.h>

#include "cli.h"

static void print_bytes(const char *name, int64_t bytes, const char *none)
{
    char text[64];
    printf("%-22s %s\n", name, bytes < 0 ? none : hr_bytes_print(bytes, text));
}

static void print_text(const hr_machine *machine)
{
    printf("%-22s %s\n", "processor", machine->processor);
    printf("%-22s %d online, %d allowed by affinity\n", "cores", machine->cores_online,
           machine->cores_allowed);
    if (machine->cpu_thousandths < 0) printf("%-22s none\n", "cgroup CPU quota");
    else printf("%-22s %.3f cores\n", "cgroup CPU quota", (double)machine->cpu_thousandths / 1000);
    printf("%-22s %d\n", "default threads", machine->threads_default);
    printf("%-22s AVX2 %s, AVX-512 %s, AVX512-BF16 %s, AMX %s\n", "instruction sets",
           machine->avx2 ? "yes" : "no", machine->avx512 ? "yes" : "no",
           machine->avx512bf16 ? "yes" : "no", machine->amx ? "yes" : "no");
    printf("%-22s %s\n", "kernels", machine->rung);
    print_bytes("memory", machine->memory_bytes, "unknown");
    print_bytes("available memory", machine->memory_available_bytes, "unknown");
    print_bytes("swap", machine->swap_bytes, "unknown");
    print_bytes("cgroup memory limit", machine->cgroup_memory_bytes, "none");
    printf("%-22s %s\n", "transparent huge pages", machine->huge_pages);
    print_bytes("ulimit address space", machine->limit_address_bytes, "none");
    print_bytes("ulimit locked memory", machine->limit_locked_bytes, "none");
    print_bytes("ulimit stack", machine->limit_stack_bytes, "none");
    printf("%-22s %s bytes\n", "page size", hr_cli_count(machine->page_bytes));
    printf("%-22s %s\n", "Linux kernel", machine->kernel);
}

static int print_json(const hr_machine *machine)
{
    json_t *object = json_pack(
        "{s:s, s:s, s:i, s:i, s:I, s:i, s:b, s:b, s:b, s:b, s:s, s:I, s:I, s:I, s:s, s:I, s:I, s:I,"
        " s:I, s:I}",
        "processor", machine->processor, "kernel", machine->kernel, "cores_online",
        machine->cores_online, "cores_allowed", machine->cores_allowed, "cpu_thousandths",
        (json_int_t)machine->cpu_thousandths, "threads_default", machine->threads_default, "avx2",
        machine->avx2, "avx512", machine->avx512, "avx512bf16", machine->avx512bf16, "amx",
        machine->amx, "rung", machine->rung, "memory_bytes", (json_int_t)machine->memory_bytes,
        "memory_available_bytes", (json_int_t)machine->memory_available_bytes, "swap_bytes",
        (json_int_t)machine->swap_bytes, "huge_pages", machine->huge_pages, "cgroup_memory_bytes",
        (json_int_t)machine->cgroup_memory_bytes, "limit_address_bytes",
        (json_int_t)machine->limit_address_bytes, "limit_locked_bytes",
        (json_int_t)machine->limit_locked_bytes, "limit_stack_bytes",
        (json_int_t)machine->limit_stack_bytes, "page_bytes", (json_int_t)machine->page_bytes);
    return hr_cli_print_json(object, 0);
}

int hr_cli_doctor(const hr_cli_arguments *arguments)
{
    hr_machine machine;
    hr_machine_read(&machine);
    if (arguments->values[HR_OPTION_JSON]) return print_json(&machine);
    print_text(&machine);
    return HR_OK;
}
