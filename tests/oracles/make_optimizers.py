# SPDX-License-Identifier: Apache-2.0
"""Writes optimizers/<name>/: golden weights of optimizers that torch.optim does not have as such.

    python make_optimizers.py

Each optimizer gets the same given gradients, so no rounding of a model is in the way. The update of
Lion is written in plain PyTorch from the paper that golden.json names; that of Adafactor is the one of
transformers. Needs torch, transformers, numpy and safetensors; README.md describes the files.
"""
import torch
import transformers
from transformers.optimization import Adafactor

from common import (deterministic, difference, empty_folder, save_json, save_tensors, three_digits,
                    versions)

STEPS = 12
TENSORS = {"w": (12, 25), "v": (37,)}
LION = {"beta1": 0.9, "beta2": 0.99, "weight_decay": {"w": 0.1, "v": 0.0}, "clip_global_norm": 0.5,
        "lr": [0.01 * (1 - i / 24) for i in range(STEPS)],
        "equations": ["c = beta1 m + (1 - beta1) g, with m = 0 before the first step",
                      "w = w (1 - lr decay); w = w - lr sign(c); m = beta2 m + (1 - beta2) g"],
        "source": "Chen et al. 2023, arXiv:2302.06675, algorithm 2"}

FALLING = [0.05 * (1 - i / 24) for i in range(STEPS)]
ADAFACTOR = {"eps1": 1e-30, "eps2": 1e-3, "clip_threshold": 1.0, "decay_rate": -0.8,
             "clip_global_norm": 0.5,
             # relative_step of transformers has no rate of its own: it is min(1e-2, 1 / sqrt(t)).
             "sets": {"fixed": {"lr": FALLING, "beta1": 0.0, "scale_parameter": False,
                                "relative_step": False, "weight_decay": {"w": 0.0, "v": 0.0}},
                      "relative": {"lr": [0.01] * STEPS, "beta1": 0.0, "scale_parameter": True,
                                   "relative_step": True, "weight_decay": {"w": 0.1, "v": 0.0}},
                      "moment": {"lr": FALLING, "beta1": 0.9, "scale_parameter": True,
                                 "relative_step": False, "weight_decay": {"w": 0.1, "v": 0.0}}},
             "source": "transformers.optimization.Adafactor; Shazeer and Stern 2018, arXiv:1804.04235"}

# Shapes are [outputs, inputs], as torch has them.
MUON_TENSORS = {"wide": (12, 25), "tall": (25, 12)}
MUON = {"momentum": 0.95, "weight_decay": 0.1, "steps": 5, "lr": FALLING,
        "sets": {"original": {"adjust_lr_fn": "original", "nesterov": True},
                 "match_rms": {"adjust_lr_fn": "match_rms_adamw", "nesterov": True},
                 "plain": {"adjust_lr_fn": "original", "nesterov": False}},
        "source": "torch.optim.Muon; Jordan et al. 2024, kellerjordan.github.io/posts/muon"}


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


def adafactor(start, gradients, scales, of, dtype):
    """Weights after every step of one set, and the states after the last."""
    weights = {name: torch.nn.Parameter(value.to(dtype).clone()) for name, value in start.items()}
    optimizer = Adafactor(
        [{"params": [weights[name]], "weight_decay": of["weight_decay"][name]} for name in start],
        lr=None if of["relative_step"] else 1.0, eps=(ADAFACTOR["eps1"], ADAFACTOR["eps2"]),
        clip_threshold=ADAFACTOR["clip_threshold"], decay_rate=ADAFACTOR["decay_rate"],
        beta1=of["beta1"] or None, scale_parameter=of["scale_parameter"],
        relative_step=of["relative_step"], warmup_init=False)
    after = {name: [] for name in start}
    for step in range(STEPS):
        for group, name in zip(optimizer.param_groups, start):
            weights[name].grad = gradients[name][step].to(dtype) * scales[step].item()
            if not of["relative_step"]:
                group["lr"] = of["lr"][step]
        optimizer.step()
        for name in start:
            after[name].append(weights[name].detach().clone())
    states = {}
    for name in start:
        state = optimizer.state[weights[name]]
        named = {"rows": "exp_avg_sq_row", "columns": "exp_avg_sq_col", "second": "exp_avg_sq",
                 "moment": "exp_avg"}
        states |= {f"{ours}.{name}": state[theirs] for ours, theirs in named.items()
                   if theirs in state}
    return {f"after.{name}": torch.stack(after[name]) for name in start} | states


def make_adafactor():
    start, gradients = given()
    scales = clip_scales(gradients, ADAFACTOR["clip_global_norm"], torch.float64)
    golden, worst = {"scales": scales}, {}
    for name in start:
        golden |= {f"start.{name}": start[name], f"gradients.{name}": gradients[name]}
    for kind, of in ADAFACTOR["sets"].items():
        values = adafactor(start, gradients, scales, of, torch.float64)
        single = adafactor(start, gradients, scales, of, torch.float32)
        worst[kind] = {name: difference(value, single[name]) for name, value in values.items()}
        golden |= {f"{kind}.{name}": value.float() for name, value in values.items()}
    if max(max(item.values()) for item in worst.values()) > 1e-5:
        raise SystemExit("the golden values depend on rounding")
    folder = empty_folder("optimizers", "adafactor")
    save_tensors(folder / "golden.safetensors", golden)
    save_json(folder / "golden.json", ADAFACTOR | {
        "max_abs_difference_fp32_float64": three_digits(worst),
        "versions": versions() | {"transformers": transformers.__version__}})


def muon(start, gradients, of, dtype):
    """Weights after every step of one set, and the momentum after the last."""
    values = {}
    for name, value in start.items():
        weight = torch.nn.Parameter(value.to(dtype).clone())
        optimizer = torch.optim.Muon([weight], lr=1.0, weight_decay=MUON["weight_decay"],
                                     momentum=MUON["momentum"], ns_steps=MUON["steps"], **of)
        after = []
        for step in range(STEPS):
            weight.grad = gradients[name][step].to(dtype)
            optimizer.param_groups[0]["lr"] = MUON["lr"][step]
            optimizer.step()
            after.append(weight.detach().clone())
        values |= {f"after.{name}": torch.stack(after),
                   f"momentum.{name}": optimizer.state[weight]["momentum_buffer"].clone()}
    return values


def make_muon():
    """torch computes the iteration in bf16. The golden values are of its code in float64."""
    generator = torch.Generator().manual_seed(78)
    start = {name: torch.randn(shape, generator=generator) for name, shape in MUON_TENSORS.items()}
    gradients = {name: torch.randn(STEPS, *shape, generator=generator) * 0.05
                 for name, shape in MUON_TENSORS.items()}
    golden = {f"start.{name}": value for name, value in start.items()}
    golden |= {f"gradients.{name}": value for name, value in gradients.items()}
    worst = {}
    to_bf16 = torch.Tensor.bfloat16
    for kind, of in MUON["sets"].items():
        rounded = muon(start, gradients, of, torch.float32)
        torch.Tensor.bfloat16 = lambda tensor: tensor.clone()
        values = muon(start, gradients, of, torch.float64)
        single = muon(start, gradients, of, torch.float32)
        torch.Tensor.bfloat16 = to_bf16
        worst[kind] = {name: {"fp32": difference(value, single[name]),
                              "bf16": difference(value, rounded[name])}
                       for name, value in values.items()}
        golden |= {f"{kind}.{name}": value.float() for name, value in values.items()}
    folder = empty_folder("optimizers", "muon")
    save_tensors(folder / "golden.safetensors", golden)
    save_json(folder / "golden.json", MUON | {
        "max_abs_difference_from_float64": three_digits(worst), "versions": versions()})


if __name__ == "__main__":
    deterministic()
    make_lion()
    make_adafactor()
    make_muon()
    print("lion, adafactor, muon")
