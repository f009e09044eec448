/* SPDX-License-Identifier: Apache-2.0 */
/* bench/space_file_bench.c - the rates of the file space by number of threads, beside io_uring by
 * number of calls in flight, which does the same: pieces of 4 MiB, direct, with checksums. The
 * median of a few rounds, in which all take turns.
 *
 *     space_file_bench [folder [MiB [rounds]]]
 *
 * With 768 MiB and 9 rounds, on the virtual disk (ext4) of a machine with two cores of an AMD EPYC
 * that other processes kept busy, November 2026:
 *
 *     GB/s          write   read
 *     1 threads      1.24   0.63
 *     1 in a ring    1.48   0.66
 *     2 threads      1.88   0.89
 *     2 in a ring    1.89   0.92
 *     4 threads      1.78   0.91
 *     4 in a ring    2.15   0.93
 *     8 threads      2.05   0.90
 *     8 in a ring    2.08   0.93
 *
 * What counts is the number of calls in flight, and two are enough (HR_SPACE_THREADS). At two,
 * io_uring is 1 % faster in writing and 3 % in reading: not worth a library.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "dev/space_file.h"
#include "plain.h"

enum { PIECE_BYTES = HR_SPACE_PIECE_BYTES, BUFFERS = 8, ROUNDS_MOST = 15, WAYS = 8 };

static const int32_t counts[WAYS / 2] = { 1, 2, 4, 8 }; /* threads, and calls in flight */

typedef struct {
    const char *folder;
    int64_t bytes;
    uint8_t *buffers; /* [BUFFERS * PIECE_BYTES] */
    uint32_t *checksums;
    void *stacks, *tables;
} bench;

static void *map(int64_t bytes)
{
    void *memory = mmap(0, (size_t)bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
}

/* ---- the file space */

static double move_all(hr_space_file *file, const bench *b, hr_space_direction direction)
{
    hr_error err;
    int64_t tickets[BUFFERS];
    const int64_t pieces = b->bytes / PIECE_BYTES, begin_ns = hr_clock_ns();
    for (int64_t i = 0; i < pieces + BUFFERS; i++) {
        if (i >= BUFFERS) must(hr_space_file_wait(file, tickets[i % BUFFERS], &err), &err);
        if (i >= pieces) continue;
        const hr_space_transfer transfer = { direction, b->buffers + i % BUFFERS * PIECE_BYTES,
                                             i * PIECE_BYTES, PIECE_BYTES };
        tickets[i % BUFFERS] = hr_space_file_begin(file, transfer);
    }
    return (double)b->bytes / (double)(hr_clock_ns() - begin_ns);
}

static void by_threads(const bench *b, int32_t threads, double gbps[2])
{
    static hr_space_file file;
    hr_error err;
    const hr_space_file_options options = {
        { .directory = b->folder, .name = "bench.scratch", .run = "bench", .bytes = b->bytes },
        threads
    };
    hr_region region = hr_region_over(b->tables, hr_space_file_bytes(&options));
    must(hr_space_file_open(&file, &options, &region, b->stacks, &err), &err);
    (void)move_all(&file, b, HR_SPACE_SPILL); /* the first one also initializes the space */
    gbps[0] = move_all(&file, b, HR_SPACE_SPILL);
    gbps[1] = move_all(&file, b, HR_SPACE_FETCH);
    hr_space_file_close(&file);
}

/* ---- io_uring */

typedef struct {
    int file;
    char *entries, *completions; /* the two rings */
    struct io_uring_params p;
    struct io_uring_sqe *calls;
} ring;

static atomic_uint *field(char *base, uint32_t offset)
{
    return (atomic_uint *)(base + offset);
}

static void *map_ring(int file, size_t bytes, off_t which)
{
    void *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, which);
    if (memory == MAP_FAILED) abort();
    return memory;
}

static ring ring_open(int32_t depth)
{
    ring r = { .file = -1 };
    r.file = (int)syscall(SYS_io_uring_setup, depth, &r.p);
    if (r.file < 0) {
        perror("io_uring_setup");
        exit(1);
    }
    r.entries = map_ring(r.file, r.p.sq_off.array + r.p.sq_entries * sizeof(uint32_t),
                         IORING_OFF_SQ_RING);
    r.completions = map_ring(r.file, r.p.cq_off.cqes + r.p.cq_entries * sizeof(struct io_uring_cqe),
                             IORING_OFF_CQ_RING);
    r.calls = map_ring(r.file, r.p.sq_entries * sizeof *r.calls, IORING_OFF_SQES);
    return r;
}

static void submit(ring *r, const bench *b, bool writes, int file, int64_t piece, int32_t buffer)
{
    atomic_uint *tail = field(r->entries, r->p.sq_off.tail);
    const unsigned place = *tail & *field(r->entries, r->p.sq_off.ring_mask);
    uint8_t *memory = b->buffers + (int64_t)buffer * PIECE_BYTES;
    if (writes)
        hr_crc32c_blocks(memory, HR_BLOCK_BYTES, PIECE_BYTES / HR_BLOCK_BYTES, true, b->checksums);
    r->calls[place] = (struct io_uring_sqe){ .opcode = writes ? IORING_OP_WRITE : IORING_OP_READ,
                                             .fd = file,
                                             .addr = (uint64_t)memory,
                                             .len = PIECE_BYTES,
                                             .off = (uint64_t)(piece * PIECE_BYTES),
                                             .user_data = (uint64_t)buffer };
    *field(r->entries, r->p.sq_off.array + place * (uint32_t)sizeof(uint32_t)) = place;
    atomic_fetch_add(tail, 1);
    if (syscall(SYS_io_uring_enter, r->file, 1, 0, 0, 0, 0) != 1) abort();
}

/* Returns the buffer of the next call that ends. */
static int32_t complete(ring *r, const bench *b, bool writes)
{
    atomic_uint *head = field(r->completions, r->p.cq_off.head);
    while (*head == *field(r->completions, r->p.cq_off.tail))
        if (syscall(SYS_io_uring_enter, r->file, 0, 1, IORING_ENTER_GETEVENTS, 0, 0) < 0) abort();
    const unsigned place = *head & *field(r->completions, r->p.cq_off.ring_mask);
    const struct io_uring_cqe *end = (struct io_uring_cqe *)(r->completions + r->p.cq_off.cqes) +
                                     place;
    const int32_t buffer = (int32_t)end->user_data;
    if (end->res != PIECE_BYTES) {
        fprintf(stderr, "io_uring: a call moved %d bytes\n", end->res);
        exit(1);
    }
    atomic_fetch_add(head, 1);
    if (!writes)
        hr_crc32c_blocks(b->buffers + (int64_t)buffer * PIECE_BYTES, HR_BLOCK_BYTES,
                         PIECE_BYTES / HR_BLOCK_BYTES, true, b->checksums);
    return buffer;
}

static double ring_move_all(ring *r, const bench *b, int file, int32_t depth, bool writes)
{
    const int64_t pieces = b->bytes / PIECE_BYTES, begin_ns = hr_clock_ns();
    int32_t idle[BUFFERS]; /* a queue: all buffers take turns, as they do above */
    for (int32_t i = 0; i < BUFFERS; i++) idle[i] = i;
    for (int64_t i = 0; i < pieces + depth; i++) {
        if (i >= depth) idle[(i - depth) % BUFFERS] = complete(r, b, writes);
        if (i < pieces) submit(r, b, writes, file, i, idle[i % BUFFERS]);
    }
    return (double)b->bytes / (double)(hr_clock_ns() - begin_ns);
}

static void by_ring(const bench *b, int32_t depth, double gbps[2])
{
    char path[512];
    snprintf(path, sizeof path, "%.400s/bench.ring", b->folder);
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (file < 0 || posix_fallocate(file, 0, b->bytes)) {
        perror(path);
        exit(1);
    }
    ring r = ring_open(depth);
    (void)ring_move_all(&r, b, file, depth, true);
    gbps[0] = ring_move_all(&r, b, file, depth, true);
    gbps[1] = ring_move_all(&r, b, file, depth, false);
    close(r.file);
    close(file);
    unlink(path);
}

/* ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static double gbps[WAYS][2][ROUNDS_MOST];
    bench b = { .folder = argc > 1 ? argv[1] : "/tmp",
                .bytes = (argc > 2 ? atoll(argv[2]) << 20 : (int64_t)1 << 30) / PIECE_BYTES *
                         PIECE_BYTES };
    const int32_t rounds = argc > 3 ? atoi(argv[3]) : 5;
    if (b.bytes < PIECE_BYTES || rounds < 1 || rounds > ROUNDS_MOST) return 2;
    b.buffers = map(BUFFERS * (int64_t)PIECE_BYTES);
    b.stacks = map(HR_SPACE_THREADS_MOST * (int64_t)HR_STACK_BYTES);
    b.tables = map(b.bytes / HR_BLOCK_BYTES * 4 + 64);
    b.checksums = map(PIECE_BYTES / HR_BLOCK_BYTES * 4);
    for (int64_t i = 0; i < BUFFERS * (int64_t)PIECE_BYTES / 8; i++)
        ((uint64_t *)b.buffers)[i] = hr_random_mix((uint64_t)i);
    for (int32_t round = 0; round < rounds; round++)
        for (int32_t way = 0; way < WAYS; way++) {
            double both[2];
            if (way % 2) by_ring(&b, counts[way / 2], both);
            else by_threads(&b, counts[way / 2], both);
            for (int32_t k = 0; k < 2; k++) gbps[way][k][round] = both[k];
        }
    printf("GB/s          write   read\n");
    for (int32_t way = 0; way < WAYS; way++) {
        for (int32_t k = 0; k < 2; k++)
            qsort(gbps[way][k], (size_t)rounds, sizeof(double), compare);
        printf("%d %-10s  %5.2f  %5.2f\n", counts[way / 2], way % 2 ? "in a ring" : "threads",
               gbps[way][0][rounds / 2], gbps[way][1][rounds / 2]);
    }
    return 0;
}
