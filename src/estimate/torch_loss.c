/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/torch_loss.c - the cross entropy of logits, all at once or in chunks. */
#include "base/checked.h"
#include "estimate/torch.h"

enum { FP32 = 4 };

static const char logits_label[] = "logits [B T, V]";
static const char softmax_label[] = "log-softmax [B T, V]";
static const char gradient_label[] = "loss [B T, V]";

/* log_softmax saves its output, and nll_loss the same; each makes a gradient of that size. */
hr_value hr_torch_loss(hr_torch *torch, hr_value logits)
{
    hr_tape *tape = torch->tape;
    const int32_t mark = hr_tape_enter(tape);
    const hr_estimate_settings *settings = torch->settings;
    hr_value x = logits;
    const bool wide = x.width < FP32 && (settings->loss_upcast || torch->autocast);
    if (wide) x = hr_torch_cast(torch, "logits in fp32 [B T, V]", HR_ESTIMATE_LOGITS, x, FP32);
    const int64_t width = settings->loss_fp32 ? FP32 : x.width;
    const int32_t node = hr_tape_node_new(tape, softmax_label, x.grad);
    hr_tape_edge(tape, node, x, x.count * x.width, HR_ESTIMATE_LOSS_GRADIENTS);
    const hr_value y = hr_torch_output(torch, softmax_label, HR_ESTIMATE_LOG_SOFTMAX, x.count,
                                       width, node);
    hr_tape_save(tape, node, y);
    const int32_t last = hr_tape_node_new(tape, gradient_label, y.grad);
    hr_tape_edge(tape, last, y, y.count * y.width, HR_ESTIMATE_LOSS_GRADIENTS);
    hr_tape_save(tape, last, y);
    return hr_tape_leave(tape, mark,
                         hr_torch_output(torch, "loss", HR_ESTIMATE_TEMPORARIES, 1, FP32, last));
}

hr_value hr_torch_chunked_loss(hr_torch *torch, hr_value hidden, hr_torch_parameter *head,
                               int64_t vocabulary)
{
    hr_tape *tape = torch->tape;
    const hr_estimate_settings *settings = torch->settings;
    const int32_t mark = hr_tape_enter(tape);
    const int64_t rows = hidden.count / head->inputs;
    const int64_t chunk = hr_min(settings->loss_chunk > 0 ? settings->loss_chunk : rows, rows);
    const int64_t width = torch->autocast ? torch->autocast : hidden.width;
    const int64_t soft = settings->loss_fp32 ? FP32 : width;
    const int64_t copy = settings->loss_upcast && width < FP32 ? FP32 : 0;
    const int64_t logits = chunk * vocabulary * width, softmax = chunk * vocabulary * soft;
    const bool keeps = settings->loss == HR_ESTIMATE_LOSS_LOOP;
    const bool early = settings->loss == HR_ESTIMATE_LOSS_FUSED;
    const int64_t weight = head->value.count * head->value.width;
    const int32_t node = hr_tape_node_new(tape, gradient_label, hidden.grad || head->value.grad);
    hr_tape_edge(tape, node, hidden, hidden.count * hidden.width, HR_ESTIMATE_OTHER_GRADIENTS);
    hr_tape_edge(tape, node, head->value, weight, HR_ESTIMATE_GRADIENTS);
    /* Backward: the chunk's log-softmax, its gradient, and that of the logits. */
    if (!early)
        hr_tape_extra(tape, node,
                      (keeps ? 0 : logits + softmax) + 2 * softmax + (copy ? logits : 0));
    hr_tape_save(tape, node, hidden);
    if (keeps)
        hr_tape_save(tape, node,
                     hr_torch_output(torch, softmax_label, HR_ESTIMATE_LOG_SOFTMAX,
                                     rows * vocabulary, soft, HR_TAPE_NONE));
    if (early && node != HR_TAPE_NONE) {
        tape->nodes[node].early = true;
        hr_tape_save(tape, node,
                     hr_torch_output(torch, "gradient of the head", HR_ESTIMATE_GRADIENTS,
                                     head->value.count, head->value.width, HR_TAPE_NONE));
        hr_tape_save(tape, node, hr_torch_copy(torch, "gradient of the hidden rows", hidden));
    }
    hr_tape_burst(tape, logits_label, HR_ESTIMATE_LOGITS,
                  logits + chunk * vocabulary * copy + (keeps ? 0 : softmax));
    return hr_tape_leave(tape, mark,
                         hr_torch_output(torch, "loss", HR_ESTIMATE_TEMPORARIES, 1, FP32, node));
}
