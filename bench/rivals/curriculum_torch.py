#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same curriculum in PyTorch: weights and batches of headroom, an optimizer and a model of its own.

    curriculum_torch.py WEIGHTS BATCHES STEPS HEADS KV_HEADS LR WARMUP SCALES

Prints the loss of each step. BATCHES is the output of bench/stage_batches_bench; SCALES has the
factor of the learning rate of each step, separated by commas."""
import sys

import numpy
import torch
from safetensors.torch import load_file
from torch.nn import functional

EPSILON, THETA = 1e-5, 10000.0


def norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * weight


def rotate(x):
    length, width = x.shape[-2], x.shape[-1]
    angles = torch.arange(length)[:, None] / THETA ** (torch.arange(0, width, 2) / width)
    cosine, sine = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat((-second, first), -1) * sine


def forward(p, ids, heads, kv_heads):
    batch, length = ids.shape
    h = p["E"][ids] @ p["P"].T
    layer = 0
    while f"layers.{layer}.wq" in p:
        q = {name.split(".")[2]: value for name, value in p.items() if name.startswith(f"layers.{layer}.")}
        n = norm(h, q["norm_attn"])
        parts = [(n @ q[w]).view(batch, length, count, -1).transpose(1, 2)
                 for w, count in (("wq", heads), ("wk", kv_heads), ("wv", kv_heads))]
        grouped = [part.repeat_interleave(heads // kv_heads, 1) for part in (rotate(parts[1]), parts[2])]
        a = functional.scaled_dot_product_attention(rotate(parts[0]), *grouped, is_causal=True)
        h = h + a.transpose(1, 2).reshape(batch, length, -1) @ q["wo"]
        n = norm(h, q["norm_mlp"])
        h = h + (functional.silu(n @ q["gate"]) * (n @ q["up"])) @ q["down"]
        layer += 1
    return (norm(h, p["norm_f"]) @ p["P"]) @ p["E"].T


def main():
    weights, batches, steps, heads, kv_heads, rate, warmup, scales = sys.argv[1:]
    p = {name: value.float().requires_grad_() for name, value in load_file(weights).items()}
    data = numpy.fromfile(batches, dtype=numpy.int32)
    scales = [float(scale) for scale in scales.split(",")]
    optimizer = torch.optim.AdamW(
        [{"params": [v for v in p.values() if v.ndim > 1], "weight_decay": 0.1},
         {"params": [v for v in p.values() if v.ndim == 1], "weight_decay": 0}],
        betas=(0.9, 0.95), eps=1e-8)
    at = 0
    for step in range(int(steps)):
        batch, length = int(data[at]), int(data[at + 1])
        count = batch * length
        ids = torch.from_numpy(data[at + 2:at + 2 + count].astype(numpy.int64)).view(batch, length)
        targets = torch.from_numpy(data[at + 2 + count:at + 2 + 2 * count].astype(numpy.int64))
        at += 2 + 2 * count
        for group in optimizer.param_groups:
            group["lr"] = float(rate) * min(1, (step + 1) / int(warmup)) * scales[step]
        logits = forward(p, ids, int(heads), int(kv_heads)).view(count, -1)
        loss = functional.cross_entropy(logits, targets, ignore_index=-1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(p.values()), 1.0)
        optimizer.step()
        print(loss.item(), flush=True)


if __name__ == "__main__":
    main()
