/* SPDX-License-Identifier: Apache-2.0 */
/* planning/measure.c - regions of hr_memory, rates of a calibration file, and what the objects of a
 * run need. */
#include "planning/measure.h"

#include <string.h>

#include "base/cpu.h"
#include "base/threads.h"
#include "calibrate/rates_file.h"
#include "checkpoint/weights_in.h"
#include "data/texts.h"
#include "mem/limits.h"
#include "planning/run_bytes.h"

hr_admission_needs hr_measure_needs(const hr_config *config)
{
    const char *from = config->model.from;
    return (hr_admission_needs){ .prepare_bytes = hr_texts_bytes(config),
                                 .reading_bytes = *from ? hr_weights_in_scratch_bytes(from) : 0,
                                 .run_bytes = hr_run_bytes(config) };
}

static hr_admission_needs needs_of(void *context, const hr_config *config)
{
    (void)context;
    return hr_measure_needs(config);
}

/* A calibration that cannot be opened counts as none and gives estimates; one that can be read but
 * is invalid is an error. */
static hr_status load_rates(void *context, const hr_backend *backend, uint32_t cpu_mask,
                            int32_t threads, hr_rates *rates, char source[HR_TIMES_TEXT_BYTES],
                            hr_error *err)
{
    const hr_measured *measured = context;
    hr_status status = HR_USAGE;
    for (int32_t tries = 0; tries < 2 && status == HR_USAGE; tries++)
        status = hr_rates_load(tries ? NULL : measured->calibrations, backend, cpu_mask, threads,
                               rates, source, err);
    return status;
}

static hr_status open_region(void *context, const char *name, int64_t bytes, bool touched,
                             hr_region *region, hr_error *err)
{
    const hr_measured *measured = context;
    hr_memory_region_close(measured->memory, region);
    const hr_status status = hr_memory_region_open(measured->memory, name, bytes, region, err);
    if (status != HR_OK) return status;
    if (touched) memset(region->base, 0, (size_t)region->bytes);
    else hr_memory_region_enlarge_pages(region);
    return HR_OK;
}

hr_admission_machine hr_measure(hr_memory *memory, const char *calibrations, hr_measured *measured)
{
    *measured = (hr_measured){ .memory = memory, .calibrations = calibrations };
    return (hr_admission_machine){ .cpu_mask = hr_cpu_detect(),
                                   .threads = hr_threads_default(),
                                   .process = hr_memory_process(memory),
                                   .available_bytes = hr_room_available(0),
                                   .memory_bytes = hr_room_memory().whole_bytes,
                                   .context = measured,
                                   .needs = needs_of,
                                   .rates = load_rates,
                                   .open = open_region };
}
