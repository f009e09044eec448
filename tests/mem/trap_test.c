/* SPDX-License-Identifier: Apache-2.0 */
/* trap_test.c - the trap catches allocations and lets other runs pass. The scenes run in this
 * program, restarted with the trap. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/memory.h"
#include "require.h"

#ifdef HR_TRAP

static void *volatile block;

static void be_quiet(void)
{
}

static void ask_malloc(void)
{
    block = malloc(100);
}

static void ask_calloc(void)
{
    block = calloc(3, 100);
}

static void ask_realloc(void)
{
    block = realloc(block, 1000);
}

static void ask_aligned(void)
{
    block = aligned_alloc(64, 640);
}

static void ask_stdio(void)
{
    block = fopen("/proc/self/status", "r");
}

static void ask_mmap(void)
{
    block = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void ask_sbrk(void)
{
    block = sbrk(4096);
}

static void ask_the_kernel(void)
{
    syscall(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static const struct {
    const char *name;
    void (*play)(void);
    int signal; /* that ends it; 0: it exits normally */
} scenes[] = { { "quiet", be_quiet, 0 },
               { "malloc", ask_malloc, SIGABRT },
               { "calloc", ask_calloc, SIGABRT },
               { "realloc", ask_realloc, SIGABRT },
               { "aligned", ask_aligned, SIGABRT },
               { "stdio", ask_stdio, SIGABRT },
               { "mmap", ask_mmap, SIGABRT },
               { "sbrk", ask_sbrk, SIGABRT },
               { "kernel", ask_the_kernel, SIGSYS } };

enum { SCENES = sizeof scenes / sizeof *scenes, ARENA = 1 << 20 };

static int play(const char *name)
{
    hr_memory memory;
    hr_account account = { .threads = 1 };
    char byte;
    const int file = open("/proc/self/exe", O_RDONLY);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    block = malloc(10);
    if (hr_memory_open(&memory, 0)) return 1;
    hr_memory_account(&memory, 0, 0, ARENA, &account);
    if (hr_memory_arena_open(&memory, &account, ARENA, 0, 0) ||
        hr_memory_seal(&memory, &account, 0))
        return 2;
    if (pread(file, &byte, 1, 0) != 1) return 3;
    for (int i = 0; i < SCENES; i++)
        if (!strcmp(scenes[i].name, name)) scenes[i].play();
    hr_memory_close(&memory);
    return 0;
}

/* The wait status of a scene under the trap, and its output. */
static int run_trapped(const char *name, char said[256])
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        execle("/proc/self/exe", "trap_test", name, (char *)0,
               (char *[]){ "LD_PRELOAD=" HR_TRAP, 0 });
        _exit(127);
    }
    close(ends[1]);
    ssize_t got = 0, length = 0;
    do {
        length += got;
        got = read(ends[0], said + length, (size_t)(255 - length));
    } while (got > 0);
    said[length] = 0;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

static void allocation_after_the_seal_is_trapped(void **state)
{
    (void)state;
    for (int i = 0; i < SCENES; i++) {
        char said[256];
        const int status = run_trapped(scenes[i].name, said);
        print_message("%s: %s\n", scenes[i].name, said);
        if (scenes[i].signal) {
            assert_true(WIFSIGNALED(status));
            assert_int_equal(WTERMSIG(status), scenes[i].signal);
        } else {
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            assert_string_equal(said, "trap: no allocation after the seal\n");
        }
        if (scenes[i].signal == SIGABRT) assert_non_null(strstr(said, " after the seal, from "));
    }
}

int main(int argc, char **argv)
{
    if (argc == 2) return play(argv[1]);
    const struct CMUnitTest tests[] = { cmocka_unit_test(allocation_after_the_seal_is_trapped) };
    return cmocka_run_group_tests(tests, 0, 0);
}

#else

int main(void)
{
    const bool required = hr_test_required("trap");
    printf("skip trap: a build with a sanitizer has no trap\n");
    return required;
}

#endif
