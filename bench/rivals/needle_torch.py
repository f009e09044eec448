#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of the model of presets/needle-70m.yaml in idiomatic PyTorch: fused attention, fused
AdamW, gradient clipping, bf16 by autocast. Prints one JSON object per step.

bench/run drives it with --paced, so that its steps alternate with headroom's. requirements.txt in this
folder says how to install the dependencies.
"""
import argparse
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LAYERS, HEADS, FEED_FORWARD = 512, 6, 8, 2048


class Attention(nn.Module):
    """Causal, with separate norms before q, k and v; no bias."""

    def __init__(self):
        super().__init__()
        self.norm_q, self.norm_k, self.norm_v = (nn.LayerNorm(WIDTH) for _ in range(3))
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (
            product(norm(x)).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for norm, product in ((self.norm_q, self.q), (self.norm_k, self.k), (self.norm_v, self.v))
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Layer(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.attention = Attention()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, FEED_FORWARD), nn.Linear(FEED_FORWARD, WIDTH)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(x))
        return x + self.dropout(self.down(F.relu(self.up(self.norm(x)))))


class Needle(nn.Module):
    def __init__(self, vocabulary, length, dropout):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(length, WIDTH))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)

    def forward(self, ids):
        x = self.dropout(self.tokens(ids) + self.positions)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def peak_bytes():
    """Peak resident memory of this process according to Linux."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--vocab", type=int, default=10000)
    parser.add_argument("--length", type=int, default=128, help="tokens in a sequence")
    parser.add_argument("--batch", type=int, default=0, help="sequences; 0: 4096 tokens of them")
    parser.add_argument("--format", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--steps", type=int, default=5, help="after one that warms up")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--optimizer", choices=("fused", "foreach"), default="fused")
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    parser.add_argument("--paced", action="store_true", help="a step for each line of standard input")
    return parser.parse_args()


def main():
    given = arguments()
    batch = given.batch or 4096 // given.length
    torch.manual_seed(0)
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)
    model = Needle(given.vocab, given.length, given.dropout)
    run = torch.compile(model) if given.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1,
                                  **{given.optimizer: True})
    ids = torch.randint(given.vocab, (batch, given.length + 1))
    inputs, targets = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=given.format == "bf16"):
            loss = F.cross_entropy(run(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def line(**values):
        print(json.dumps(values), flush=True)

    step()
    line(program="PyTorch " + torch.__version__, parameters=sum(p.numel() for p in model.parameters()))
    for _ in sys.stdin if given.paced else range(given.steps):
        wall, cpu = time.monotonic(), time.thread_time()
        loss = step()
        wall, cpu = time.monotonic() - wall, time.thread_time() - cpu
        line(tokens_per_second=batch * given.length / wall,
             tokens_per_cpu_second=batch * given.length / cpu, loss=loss, peak_bytes=peak_bytes())


if __name__ == "__main__":
    main()
