/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/file_rate.c - keeps several transfers of one piece each in motion and reads the
 * clock. */
#include "calibrate/file_rate.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/random.h"
#include "dev/space_file.h"

enum {
    PIECES = HR_FILE_RATE_BYTES / HR_SPACE_PIECE_BYTES,
    BUFFERS = 2 * HR_SPACE_THREADS, /* the next transfers wait while the threads move some */
    BUFFER_WORDS = HR_SPACE_PIECE_BYTES / 8
};
#define ENOUGH_NS INT64_C(1000000000)

static hr_space_file_options options_in(const char *directory)
{
    return (hr_space_file_options){ .file = { .directory = directory,
                                              .name = "calibration.scratch",
                                              .run = "headroom calibrate",
                                              .bytes = HR_FILE_RATE_BYTES },
                                    .threads = HR_SPACE_THREADS };
}

/* Moves the first `pieces` pieces of the file, then them again until a second has passed.
 *
 *   moved  out; how many different pieces */
static hr_status move(hr_space_file *file, hr_space_direction direction, uint64_t *buffers,
                      int64_t pieces, int64_t *moved, double *rate, hr_error *err)
{
    int64_t tickets[BUFFERS], count = 0;
    hr_status status = HR_OK;
    const int64_t begin_ns = hr_clock_ns();
    for (; status == HR_OK && hr_clock_ns() - begin_ns < ENOUGH_NS; count++) {
        const hr_space_transfer transfer = { direction,
                                             (uint8_t *)(buffers + count % BUFFERS * BUFFER_WORDS),
                                             count % pieces * HR_SPACE_PIECE_BYTES,
                                             HR_SPACE_PIECE_BYTES };
        if (count >= BUFFERS) status = hr_space_file_wait(file, tickets[count % BUFFERS], err);
        tickets[count % BUFFERS] = hr_space_file_begin(file, transfer);
    }
    for (int64_t i = hr_max(0, count - BUFFERS); status == HR_OK && i < count; i++)
        status = hr_space_file_wait(file, tickets[i % BUFFERS], err);
    const int64_t spent_ns = hr_max(hr_clock_ns() - begin_ns, 1);
    *moved = hr_min(count, pieces);
    *rate = 1e9 * (double)(count * HR_SPACE_PIECE_BYTES) / (double)spent_ns;
    return status;
}

static hr_status measure(const char *directory, hr_region *region, double *write_rate,
                         double *read_rate, hr_error *err)
{
    int64_t written = 0, read = 0;
    const hr_space_file_options options = options_in(directory);
    /* The first two are aligned to pages, as the region is. */
    void *stacks = hr_region_take(region, hr_space_file_stack_bytes(&options), 1);
    uint64_t *buffers = hr_region_take(region, BUFFERS, HR_SPACE_PIECE_BYTES);
    hr_space_file *file = hr_region_take(region, 1, sizeof *file);
    hr_status status = hr_space_file_open(file, &options, region, stacks, err);
    if (status == HR_NO_FIT) return HR_OK;
    if (status != HR_OK) return status;
    /* Random words: a disk that compresses cannot make them smaller. */
    for (int64_t i = 0; i < BUFFERS * BUFFER_WORDS; i++) buffers[i] = hr_random_mix((uint64_t)i);
    status = move(file, HR_SPACE_SPILL, buffers, PIECES, &written, write_rate, err);
    if (status == HR_OK)
        status = move(file, HR_SPACE_FETCH, buffers, written, &read, read_rate, err);
    hr_space_file_close(file);
    return status;
}

hr_status hr_file_rate_measure(const char *directory, hr_memory *memory, double *write_rate,
                               double *read_rate, hr_error *err)
{
    const hr_space_file_options options = options_in(directory);
    const int64_t bytes = hr_space_file_stack_bytes(&options) + (int64_t)sizeof(hr_space_file) +
                          (int64_t)BUFFERS * HR_SPACE_PIECE_BYTES + hr_space_file_bytes(&options) +
                          256;
    hr_region region;
    double written_rate = 0, returned_rate = 0;
    hr_status status = hr_memory_region_open(memory, "file rates", bytes, &region, err);
    if (status != HR_OK) return status;
    status = measure(directory, &region, &written_rate, &returned_rate, err);
    hr_memory_region_close(memory, &region);
    if (status != HR_OK) return status;
    *write_rate = written_rate;
    *read_rate = returned_rate;
    return HR_OK;
}
