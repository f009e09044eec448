/* SPDX-License-Identifier: Apache-2.0 */
/* planning/larger.c - compares the smallest plan with the devices of the table. It has the same
 * bytes on every card; on another laptop it is planned for its threads. */
#include "planning/larger.h"

#include <string.h>

#include "planning/target.h"

typedef struct {
    const hr_config *config;
    hr_memory *memory;
    hr_admission *admission;
    int64_t bytes; /* of the smallest plan where it is refused: those of the arena on a card */
    bool on_card;
} looking;

static bool is_slot_card(const hr_device_facts *device)
{
    return device->group == HR_DEVICE_DISPLAY || device->group == HR_DEVICE_WORKSTATION ||
           device->group == HR_DEVICE_DATA_CENTER;
}

/* Bytes of the smallest plan there. */
static int64_t bytes_on(const looking *l, const hr_device_facts *device)
{
    hr_measured measured;
    if (device->kind == HR_DEVICE_GPU && l->on_card) return l->bytes;
    const hr_device_choice choice = { .device = device, .reserve_bytes = device->reserve_bytes };
    const hr_admission_machine machine = hr_target(&choice, l->memory, NULL, &measured);
    return hr_admit_minimum(&machine, l->config, true, NULL, l->admission);
}

static bool has_format(const looking *l, const hr_device_facts *device)
{
    const bool bf16 = l->config->train.dtype == HR_FORMAT_BF16;
    return hr_device_has(device, bf16 ? HR_DEVICE_BF16 : HR_DEVICE_FP32);
}

/* The device with the least memory of a group, or without one of all cards for a slot. Devices that
 * are too small for the bytes are not planned for. */
static const hr_device_facts *smallest(const looking *l, const hr_device_facts *refused,
                                       bool same_group, int64_t *bytes)
{
    const hr_device_facts *best = NULL;
    for (int32_t i = 0; hr_device_at(i); i++) {
        const hr_device_facts *device = hr_device_at(i);
        const int64_t room = device->usable_bytes - device->reserve_bytes;
        if (same_group ? device->group != refused->group : !is_slot_card(device)) continue;
        if (room < l->bytes || !has_format(l, device)) continue;
        if (best && device->usable_bytes >= best->usable_bytes) continue;
        const int64_t needed = bytes_on(l, device);
        if (needed > room) continue;
        best = device;
        *bytes = needed;
    }
    return best;
}

void hr_larger_find(const hr_device_choice *device, const hr_config *config, hr_memory *memory,
                    hr_admission *admission)
{
    /* With a smaller budget no other device helps. */
    if (!device || config->memory.budget != hr_device_budget(device)) return;
    hr_plan_device *there = &admission->answer.device;
    const looking l = { .config = config,
                        .memory = memory,
                        .admission = admission,
                        .bytes = admission->answer.minimum_bytes,
                        .on_card = there->is_card };
    int64_t bytes = 0;
    const hr_device_facts *larger = smallest(&l, device->device, true, &bytes);
    if (!larger) larger = smallest(&l, device->device, false, &bytes);
    if (!larger) return;
    memcpy(there->larger, larger->name, sizeof there->larger);
    there->larger_bytes = bytes;
    there->larger_group = larger->group;
}
