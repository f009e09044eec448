/* SPDX-License-Identifier: Apache-2.0 */
/* report/doctor.c - queries the machine at run time, independent of build settings. */
#include "headroom/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/cpu.h"
#include "base/small_file.h"
#include "base/threads.h"

enum { TEXT_BYTES = 16384 };

static void copy_word(char *target, size_t bytes, const char *from, size_t length)
{
    snprintf(target, bytes, "%.*s", (int)length, from);
}

/* Bytes of a line "<name>:   123 kB" of /proc/meminfo; -1: missing. */
static int64_t meminfo_bytes(const char *text, const char *name)
{
    const int64_t kilobytes = hr_small_file_number(text, name);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

static void read_memory(hr_machine *machine)
{
    char text[TEXT_BYTES];
    hr_small_file_read("/proc/meminfo", text, sizeof text);
    machine->memory_bytes = meminfo_bytes(text, "MemTotal:");
    machine->memory_available_bytes = meminfo_bytes(text, "MemAvailable:");
    machine->swap_bytes = meminfo_bytes(text, "SwapTotal:");
}

static void read_processor(hr_machine *machine)
{
    char text[TEXT_BYTES];
    copy_word(machine->processor, sizeof machine->processor, "unknown", 7);
    if (hr_small_file_read("/proc/cpuinfo", text, sizeof text) < 0) return;
    const char *name = strstr(text, "model name");
    name = name ? strchr(name, ':') : NULL;
    if (!name) return;
    name += 1 + strspn(name + 1, " ");
    copy_word(machine->processor, sizeof machine->processor, name, strcspn(name, "\n"));
}

/* Reads the word in brackets of "always [madvise] never". */
static void read_huge_pages(hr_machine *machine)
{
    char text[128];
    copy_word(machine->huge_pages, sizeof machine->huge_pages, "unknown", 7);
    hr_small_file_read("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text);
    const char *open = strchr(text, '[');
    if (!open) return;
    copy_word(machine->huge_pages, sizeof machine->huge_pages, open + 1, strcspn(open + 1, "]"));
}

static int64_t limit_bytes(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0) return -1;
    return limit.rlim_cur > INT64_MAX ? -1 : (int64_t)limit.rlim_cur;
}

static void read_instructions(hr_machine *machine)
{
    const uint32_t mask = hr_cpu_detect();
    const char *rung = hr_cpu_rung_name(mask);
    machine->avx2 = mask & HR_CPU_AVX2;
    machine->avx512 = mask & HR_CPU_AVX512;
    machine->avx512bf16 = mask & HR_CPU_AVX512BF16;
    machine->amx = mask & HR_CPU_AMX;
    copy_word(machine->rung, sizeof machine->rung, rung, strlen(rung));
}

const char *hr_machine_lacks(void)
{
    return hr_cpu_lacks();
}

void hr_machine_read(hr_machine *machine)
{
    const hr_cgroup group = hr_cgroup_read("");
    struct utsname name;
    memset(machine, 0, sizeof *machine);
    const char *release = uname(&name) == 0 ? name.release : "unknown";
    copy_word(machine->kernel, sizeof machine->kernel, release, strlen(release));
    machine->cores_online = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    machine->cores_allowed = hr_threads_affinity();
    machine->cpu_thousandths = group.cpu_thousandths;
    machine->threads_default = hr_threads_within(machine->cores_allowed, group.cpu_thousandths);
    machine->cgroup_memory_bytes = group.memory_max;
    machine->limit_address_bytes = limit_bytes(RLIMIT_AS);
    machine->limit_locked_bytes = limit_bytes(RLIMIT_MEMLOCK);
    machine->limit_stack_bytes = limit_bytes(RLIMIT_STACK);
    machine->page_bytes = sysconf(_SC_PAGESIZE);
    read_processor(machine);
    read_instructions(machine);
    read_memory(machine);
    read_huge_pages(machine);
}
