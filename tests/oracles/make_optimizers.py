# SPDX-License-Identifier: Apache-2.0
"""Writes optimizers/<name>/: golden weights of optimizers that torch.optim does not have.

    python make_optimizers.py

Each optimizer gets the same given gradients, so no rounding of a model is in the way. The update is
written in plain PyTorch from the paper that golden.json names. Needs torch, numpy and safetensors;
README.md describes the files.
"""
import torch

from common import (deterministic, difference, empty_folder, save_json, save_tensors, three_digits,
                    versions)

STEPS = 12
TENSORS = {"w": (12, 25), "v": (37,)}
LION = {"beta1": 0.9, "beta2": 0.99, "weight_decay": {"w": 0.1, "v": 0.0}, "clip_global_norm": 0.5,
        "lr": [0.01 * (1 - i / 24) for i in range(STEPS)],
        "equations": ["c = beta1 m + (1 - beta1) g, with m = 0 before the first step",
                      "w = w (1 - lr decay); w = w - lr sign(c); m = beta2 m + (1 - beta2) g"],
        "source": "Chen et al. 2023, arXiv:2302.06675, algorithm 2"}


def given():
    """Initial weights and the gradients of each step; a tenth of the elements has none."""
    generator = torch.Generator().manual_seed(77)
    start = {name: torch.randn(shape, generator=generator) for name, shape in TENSORS.items()}
    gradients = {}
    for name, shape in TENSORS.items():
        some = torch.randn(STEPS, *shape, generator=generator) * 0.05
        kept = torch.rand(shape, generator=generator) >= 0.1
        gradients[name] = some * kept
    return start, gradients


def clip_scales(gradients, limit, dtype):
    """The factor of torch.nn.utils.clip_grad_norm_ for each step."""
    scales = []
    for step in range(STEPS):
        holders = [torch.zeros(shape, dtype=dtype, requires_grad=True)
                   for shape in TENSORS.values()]
        for holder, name in zip(holders, TENSORS):
            holder.grad = gradients[name][step].to(dtype).clone()
        before = holders[0].grad.flatten().clone()
        torch.nn.utils.clip_grad_norm_(holders, limit)
        at = before.abs().argmax()
        scales.append((holders[0].grad.flatten()[at] / before[at]).item())
    return torch.tensor(scales, dtype=torch.float64)


def lion(start, gradients, scales, dtype):
    """Weights and momenta after every step, and the smallest size of a nonzero c."""
    after, momenta, least = {}, {}, float("inf")
    for name, value in start.items():
        w, m = value.to(dtype), torch.zeros_like(value, dtype=dtype)
        ws, ms = [], []
        for step in range(STEPS):
            lr, g = LION["lr"][step], gradients[name][step].to(dtype) * scales[step].item()
            c = LION["beta1"] * m + (1 - LION["beta1"]) * g
            if (c != 0).any():
                least = min(least, c[c != 0].abs().min().item())
            w = w * (1 - lr * LION["weight_decay"][name])
            w = w - lr * torch.sign(c)
            m = LION["beta2"] * m + (1 - LION["beta2"]) * g
            ws.append(w)
            ms.append(m)
        after[name], momenta[name] = torch.stack(ws), torch.stack(ms)
    return after, momenta, least


def make_lion():
    start, gradients = given()
    scales = clip_scales(gradients, LION["clip_global_norm"], torch.float64)
    after, momenta, least = lion(start, gradients, scales, torch.float64)
    single = lion(start, gradients, scales, torch.float32)
    worst = {name: {"after": difference(after[name], single[0][name]),
                    "momentum": difference(momenta[name], single[1][name])} for name in start}
    # A turned sign would move a weight by twice the rate.
    if max(item["after"] for item in worst.values()) > 1e-5 or scales.max() == scales.min():
        raise SystemExit("the golden values depend on rounding, or no gradient is clipped")
    folder = empty_folder("optimizers", "lion")
    golden = {"scales": scales}
    for name in start:
        golden |= {f"start.{name}": start[name], f"gradients.{name}": gradients[name],
                   f"after.{name}": after[name].float(), f"momentum.{name}": momenta[name].float()}
    save_tensors(folder / "golden.safetensors", golden)
    save_json(folder / "golden.json", LION | {
        "smallest_nonzero_c": three_digits(least),
        "max_abs_difference_fp32_float64": three_digits(worst), "versions": versions()})


if __name__ == "__main__":
    deterministic()
    make_lion()
    print("lion")
