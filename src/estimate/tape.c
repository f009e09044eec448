/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/tape.c - records operations and walks back through them. */
#include "estimate/tape.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"

/* A layer with adapters on every product has at most 119 nodes and 72 storages (qwen3 with separate
 * operations of attention), and with magnitudes nine nodes more for each; a run has a few more. */
enum { NODES_PER_LAYER = 240, NODES_FIXED = 1024, HELD_MOST = 4096, NAMES_MOST = 256 };

#define SUM_MOST (INT64_C(1) << 62)

static int64_t nodes_of(int64_t layers)
{
    return layers * NODES_PER_LAYER + NODES_FIXED;
}

int64_t hr_tape_bytes(int64_t layers)
{
    const int64_t nodes = nodes_of(layers);
    const int64_t node = sizeof(hr_tape_node) + sizeof(hr_tape_storage) + sizeof(int32_t);
    const int64_t region = sizeof(hr_tape_region);
    return nodes * node + layers * region + HELD_MOST * (int64_t)sizeof(int32_t) + 8 * 64;
}

bool hr_tape_open(hr_tape *tape, hr_region *region, int64_t layers)
{
    const int64_t nodes = nodes_of(layers);
    *tape = (hr_tape){ .rounding = 1,
                       .shares = 1,
                       .region = HR_TAPE_NONE,
                       .cursor = HR_TAPE_NONE,
                       .replayed = HR_TAPE_NONE,
                       .free_storage = HR_TAPE_NONE,
                       .snapshot = -1,
                       .peak_label = "" };
    tape->node_most = (int32_t)nodes;
    tape->storage_most = (int32_t)nodes;
    tape->region_most = (int32_t)layers;
    tape->held_most = HELD_MOST;
    tape->cache_most = (int32_t)nodes;
    tape->nodes = hr_region_take(region, nodes, sizeof *tape->nodes);
    tape->storages = hr_region_take(region, nodes, sizeof *tape->storages);
    tape->regions = hr_region_take(region, layers, sizeof *tape->regions);
    tape->held = hr_region_take(region, HELD_MOST, sizeof *tape->held);
    tape->caches = hr_region_take(region, nodes, sizeof *tape->caches);
    return tape->caches != NULL;
}

/* ---- live bytes */

/* Adds a storage to the tensors of its name. Gradients have the name of the operation whose
 * backward makes them. */
static void count_tensors(hr_estimate_tensors *list, int32_t *count, const hr_tape_storage *storage)
{
    char name[HR_ESTIMATE_NAME_BYTES];
    const bool gradient = storage->component == HR_ESTIMATE_GRADIENTS ||
                          storage->component == HR_ESTIMATE_LOSS_GRADIENTS ||
                          storage->component == HR_ESTIMATE_OTHER_GRADIENTS;
    snprintf(name, sizeof name, "%s%.80s", gradient ? "gradient in: " : "", storage->label);
    for (int32_t i = 0; i < *count; i++) {
        if (list[i].component != storage->component || strcmp(list[i].name, name)) continue;
        list[i].count++;
        if (list[i].each != storage->bytes) list[i].each = 0;
        list[i].bytes += storage->bytes;
        return;
    }
    if (*count == NAMES_MOST) return;
    hr_estimate_tensors *one = &list[(*count)++];
    *one = (hr_estimate_tensors){
        .component = storage->component, .count = 1, .bytes = storage->bytes, .each = storage->bytes
    };
    snprintf(one->name, sizeof one->name, "%s", name);
}

static void take_snapshot(hr_tape *tape)
{
    hr_estimate_tensors list[NAMES_MOST];
    hr_estimate_answer *answer = tape->answer;
    int32_t count = 0;
    for (int32_t i = 0; i < tape->storage_count; i++)
        if (tape->storages[i].label) count_tensors(list, &count, &tape->storages[i]);
    memcpy(answer->components, tape->components, sizeof answer->components);
    answer->tensor_count = 0;
    for (int32_t n = 0; n < HR_ESTIMATE_TENSORS_MOST && n < count; n++) {
        int32_t best = 0;
        for (int32_t i = 1; i < count; i++)
            if (list[i].bytes > list[best].bytes) best = i;
        if (list[best].bytes <= 0) break;
        answer->tensors[answer->tensor_count++] = list[best];
        list[best].bytes = 0;
    }
}

/* Looks at the live bytes after something was added. */
static void look(hr_tape *tape, const char *label)
{
    if (tape->live > SUM_MOST) tape->full = true;
    tape->events++;
    if (tape->live > tape->phase_peaks[tape->phase]) tape->phase_peaks[tape->phase] = tape->live;
    if (tape->live > tape->peak) {
        tape->peak = tape->live;
        tape->peak_event = tape->events;
        tape->peak_label = label;
        tape->peak_phase = tape->phase;
    }
    if (tape->events == tape->snapshot) take_snapshot(tape);
}

static void count_bytes(hr_tape *tape, int32_t component, int64_t bytes)
{
    tape->live += bytes;
    tape->components[component] += bytes;
    if (tape->components[component] > tape->most[component])
        tape->most[component] = tape->components[component];
}

static int32_t storage_new(hr_tape *tape, const char *label, int32_t component, int64_t bytes)
{
    if (tape->full || bytes < 0 || bytes > SUM_MOST - tape->rounding) {
        tape->full = true;
        return HR_TAPE_NONE;
    }
    int32_t index = tape->free_storage;
    if (index != HR_TAPE_NONE) tape->free_storage = tape->storages[index].references;
    else if (tape->storage_count < tape->storage_most) index = tape->storage_count++;
    else {
        tape->full = true;
        return HR_TAPE_NONE;
    }
    const int64_t rounded = hr_round_up(bytes, tape->rounding);
    tape->storages[index] = (hr_tape_storage){ label, rounded, 1, component };
    count_bytes(tape, component, rounded);
    look(tape, label);
    return index;
}

void hr_tape_refer(hr_tape *tape, int32_t storage)
{
    if (storage != HR_TAPE_NONE) tape->storages[storage].references++;
}

void hr_tape_release(hr_tape *tape, int32_t storage)
{
    if (storage == HR_TAPE_NONE) return;
    hr_tape_storage *one = &tape->storages[storage];
    HR_ASSERT(one->label && one->references > 0);
    if (--one->references) return;
    count_bytes(tape, one->component, -one->bytes);
    *one = (hr_tape_storage){ .references = tape->free_storage };
    tape->free_storage = storage;
}

static void hold(hr_tape *tape, int32_t storage)
{
    if (storage == HR_TAPE_NONE) return;
    if (tape->held_count == tape->held_most) tape->full = true;
    else tape->held[tape->held_count++] = storage;
}

int32_t hr_tape_storage_new(hr_tape *tape, const char *label, int32_t component, int64_t bytes)
{
    if (tape->stopped) return HR_TAPE_NONE;
    const int32_t storage = storage_new(tape, label, component, bytes);
    hold(tape, storage);
    return storage;
}

hr_value hr_tape_value(hr_tape *tape, const char *label, int32_t component, int64_t count,
                       int64_t width)
{
    int64_t bytes = 0;
    if (!hr_checked_mul(count, width, &bytes)) tape->full = true;
    return (hr_value){ hr_tape_storage_new(tape, label, component, bytes), HR_TAPE_NONE, count,
                       width, false };
}

int32_t hr_tape_keep(hr_tape *tape, const char *label, int32_t component, int64_t bytes)
{
    return storage_new(tape, label, component, bytes);
}

void hr_tape_burst(hr_tape *tape, const char *label, int32_t component, int64_t bytes)
{
    if (tape->stopped || bytes < 0) return;
    if (bytes) hr_tape_release(tape, storage_new(tape, label, component, bytes));
    else look(tape, label);
}

/* ---- functions */

int32_t hr_tape_enter(const hr_tape *tape)
{
    return tape->held_count;
}

hr_value hr_tape_leave(hr_tape *tape, int32_t mark, hr_value result)
{
    bool kept = false;
    for (int32_t i = mark; i < tape->held_count; i++) {
        if (tape->held[i] == result.storage && !kept && result.storage != HR_TAPE_NONE) kept = true;
        else hr_tape_release(tape, tape->held[i]);
    }
    tape->held_count = mark;
    if (kept) hold(tape, result.storage);
    return result;
}

void hr_tape_drop(hr_tape *tape, hr_value value)
{
    if (value.storage == HR_TAPE_NONE) return;
    for (int32_t i = tape->held_count - 1; i >= 0; i--) {
        if (tape->held[i] != value.storage) continue;
        hr_tape_release(tape, value.storage);
        tape->held[i] = HR_TAPE_NONE;
        return;
    }
}

/* ---- nodes */

static int32_t node_take(hr_tape *tape)
{
    if (tape->node_count == tape->node_most) {
        tape->full = true;
        return HR_TAPE_NONE;
    }
    tape->nodes[tape->node_count] = (hr_tape_node){ .region = tape->region,
                                                    .buffer = HR_TAPE_NONE,
                                                    .gradient = HR_TAPE_NONE };
    return tape->node_count++;
}

int32_t hr_tape_leaf(hr_tape *tape, const char *label)
{
    const int32_t node = node_take(tape);
    if (node == HR_TAPE_NONE) return node;
    tape->nodes[node].leaf = true;
    tape->nodes[node].label = label;
    return node;
}

int32_t hr_tape_node_new(hr_tape *tape, const char *label, bool any)
{
    if (!any || tape->stopped) return HR_TAPE_NONE;
    if (tape->cursor != HR_TAPE_NONE) return tape->cursor++;
    const int32_t node = node_take(tape);
    if (node != HR_TAPE_NONE) tape->nodes[node].label = label;
    return node;
}

static bool is_replaying(const hr_tape *tape)
{
    return tape->cursor != HR_TAPE_NONE;
}

void hr_tape_edge(hr_tape *tape, int32_t node, hr_value input, int64_t bytes, int32_t component)
{
    if (node == HR_TAPE_NONE || !input.grad || input.node == HR_TAPE_NONE || is_replaying(tape))
        return;
    hr_tape_node *one = &tape->nodes[node];
    HR_ASSERT(one->edges < HR_TAPE_EDGES);
    one->input[one->edges] = input.node;
    one->bytes[one->edges] = bytes;
    one->component[one->edges] = component;
    one->edges++;
    if (tape->nodes[input.node].leaf) tape->nodes[input.node].pending++;
}

void hr_tape_save(hr_tape *tape, int32_t node, hr_value value)
{
    if (node == HR_TAPE_NONE || value.storage == HR_TAPE_NONE) return;
    hr_tape_node *one = &tape->nodes[node];
    if (!is_replaying(tape)) one->saves_first++;
    if (one->region != HR_TAPE_NONE && !is_replaying(tape)) {
        tape->regions[one->region].saving = node;
        return;
    }
    HR_ASSERT(one->saves < HR_TAPE_SAVES);
    one->saved[one->saves++] = value.storage;
    hr_tape_refer(tape, value.storage);
    if (is_replaying(tape) && node == tape->regions[tape->replayed].saving &&
        one->saves == one->saves_first && !tape->reentrant)
        tape->stopped = true;
}

void hr_tape_extra(hr_tape *tape, int32_t node, int64_t bytes)
{
    if (node != HR_TAPE_NONE) tape->nodes[node].extra = bytes;
}

/* ---- recomputation */

hr_value hr_tape_checkpoint(hr_tape *tape, hr_tape_layer run, const void *model, int64_t layer,
                            hr_value x)
{
    if (tape->region_count == tape->region_most) {
        tape->full = true;
        return x;
    }
    const int32_t index = tape->region_count++;
    tape->regions[index] = (hr_tape_region){ .run = run,
                                             .model = model,
                                             .layer = layer,
                                             .input = x,
                                             .first = tape->node_count,
                                             .saving = HR_TAPE_NONE,
                                             .output = HR_TAPE_NONE,
                                             .arrived = HR_TAPE_NONE };
    hr_tape_refer(tape, x.storage);
    tape->region = index;
    const hr_value out = run(tape, model, layer, x);
    tape->region = HR_TAPE_NONE;
    tape->regions[index].last = tape->node_count - 1;
    return out;
}

static void replay(hr_tape *tape, int32_t index, int32_t arrived)
{
    hr_tape_region *region = &tape->regions[index];
    const int32_t mark = hr_tape_enter(tape), caches = tape->cache_count;
    region->ready = true;
    tape->replayed = index;
    tape->cursor = region->first;
    const hr_value out = region->run(tape, region->model, region->layer, region->input);
    tape->cursor = HR_TAPE_NONE;
    tape->stopped = false;
    if (tape->reentrant) {
        region->output = out.storage;
        region->arrived = arrived;
        hr_tape_refer(tape, out.storage);
        hr_tape_refer(tape, arrived);
    }
    hr_tape_leave(tape, mark, (hr_value){ HR_TAPE_NONE, HR_TAPE_NONE, 0, 0, false });
    hr_tape_cache_end(tape, caches);
}

void hr_tape_cache(hr_tape *tape, int32_t storage)
{
    if (storage == HR_TAPE_NONE) return;
    if (tape->cache_count == tape->cache_most) {
        tape->full = true;
        return;
    }
    hr_tape_refer(tape, storage);
    tape->caches[tape->cache_count++] = storage;
}

void hr_tape_cache_end(hr_tape *tape, int32_t count)
{
    while (tape->cache_count > count) hr_tape_release(tape, tape->caches[--tape->cache_count]);
}

/* ---- the backward pass */

/* Adds a gradient to what has arrived. A sum is a new tensor, as autograd makes it. */
static void deliver(hr_tape *tape, int32_t to, int32_t gradient)
{
    hr_tape_node *node = &tape->nodes[to];
    if (gradient == HR_TAPE_NONE) return;
    if (node->buffer == HR_TAPE_NONE) node->buffer = gradient;
    else if (node->collects) {
        hr_tape_storage *all = &tape->storages[node->buffer];
        const int64_t bytes = tape->storages[gradient].bytes;
        hr_tape_release(tape, gradient);
        all->bytes += bytes;
        count_bytes(tape, all->component, bytes);
    } else {
        const hr_tape_storage *old = &tape->storages[node->buffer];
        const int32_t sum = storage_new(tape, old->label, old->component, old->bytes);
        hr_tape_release(tape, node->buffer);
        hr_tape_release(tape, gradient);
        node->buffer = sum;
    }
    if (!node->leaf || --node->pending > 0) return;
    if (tape->to_host) {
        hr_tape_release(tape, node->buffer);
        node->buffer = HR_TAPE_NONE;
        return;
    }
    if (tape->shares > 1) {
        hr_tape_storage *whole = &tape->storages[node->buffer];
        const int64_t kept = whole->bytes / tape->shares;
        count_bytes(tape, whole->component, kept - whole->bytes);
        whole->bytes = kept;
    }
    if (node->gradient == HR_TAPE_NONE) node->gradient = node->buffer;
    else hr_tape_release(tape, node->buffer); /* added in place to the gradient of before */
    node->buffer = HR_TAPE_NONE;
}

static void release_saved(hr_tape *tape, hr_tape_node *node)
{
    for (int32_t i = 0; i < node->saves; i++) hr_tape_release(tape, node->saved[i]);
    node->saves = 0;
}

static void release_input(hr_tape *tape, int32_t region)
{
    hr_tape_region *one = &tape->regions[region];
    hr_tape_release(tape, one->input.storage);
    hr_tape_release(tape, one->output);
    hr_tape_release(tape, one->arrived);
    one->input.storage = one->output = one->arrived = HR_TAPE_NONE;
}

static void run_node(hr_tape *tape, int32_t index)
{
    hr_tape_node *node = &tape->nodes[index];
    int32_t gradients[HR_TAPE_EDGES];
    if (node->region != HR_TAPE_NONE && (node->saves_first || tape->reentrant) &&
        !tape->regions[node->region].ready)
        replay(tape, node->region, node->buffer);
    if (node->early) release_saved(tape, node);
    for (int32_t i = 0; i < node->edges; i++) {
        gradients[i] = node->bytes[i]
                           ? storage_new(tape, node->label, node->component[i], node->bytes[i])
                           : node->buffer;
        if (!node->bytes[i]) hr_tape_refer(tape, node->buffer);
    }
    hr_tape_burst(tape, node->label, HR_ESTIMATE_TEMPORARIES, node->extra);
    release_saved(tape, node);
    hr_tape_release(tape, node->buffer);
    node->buffer = HR_TAPE_NONE;
    for (int32_t i = 0; i < node->edges; i++) deliver(tape, node->input[i], gradients[i]);
    if (node->region != HR_TAPE_NONE && index == tape->regions[node->region].first)
        release_input(tape, node->region);
}

/* Frees what nodes hold that no gradient has reached. */
static void forget_nodes(hr_tape *tape, int32_t leaves)
{
    for (int32_t i = leaves; i < tape->node_count; i++) {
        hr_tape_node *node = &tape->nodes[i];
        release_saved(tape, node);
        hr_tape_release(tape, node->buffer);
    }
    for (int32_t i = 0; i < tape->region_count; i++) release_input(tape, i);
    tape->node_count = leaves;
    tape->region_count = 0;
}

void hr_tape_backward(hr_tape *tape, int32_t node, int64_t bytes)
{
    int32_t leaves = 0;
    while (leaves < tape->node_count && tape->nodes[leaves].leaf) leaves++;
    if (node != HR_TAPE_NONE)
        tape->nodes[node].buffer = storage_new(tape, "loss", HR_ESTIMATE_TEMPORARIES, bytes);
    for (int32_t i = tape->node_count - 1; i >= leaves && !tape->full; i--)
        if (!tape->nodes[i].leaf && tape->nodes[i].buffer != HR_TAPE_NONE) run_node(tape, i);
    if (!tape->full) forget_nodes(tape, leaves);
}
