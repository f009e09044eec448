#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a model on words in PyTorch, and evaluates it. Prints one JSON object for each step, and a
last one with the validation loss.

The reference that bench/learning compares headroom with. It shares no code with headroom: the same
architecture, distribution of initial weights, schedule, decay groups and clipping, written as one
would write them in PyTorch, with PyTorch's generator for the weights and for the order of windows.
bf16 is autocast over fp32 weights. --weights and --order take headroom's initial weights and its
order in place of PyTorch's: then both should give the same losses, up to rounding.
"""
import argparse
import json
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import needle_torch
import word_ids

EPS = 1e-5
THETA = 10000.0


def rotated(x, share):
    """Rotary embedding of the first `share` of each head; x [B, heads, T, head width]."""
    width = int(x.shape[-1] * share) // 2 * 2
    frequency = THETA ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * frequency
    cos, sin = angle.cos().float(), angle.sin().float()
    a, b, rest = x[..., :width // 2].float(), x[..., width // 2:width].float(), x[..., width:]
    turned = torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    return torch.cat((turned.to(x.dtype), rest), -1)


def attend(q, k, v):
    """Causal attention; [B, heads, T, head width] in, [B, T, D] out. Written out: a step of the
    small models takes a quarter more CPU seconds with F.scaled_dot_product_attention."""
    scores = (q @ k.transpose(-2, -1)).float() / math.sqrt(q.shape[-1])
    later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
    weights = scores.masked_fill(later, -math.inf).softmax(-1).to(v.dtype)
    return (weights @ v).transpose(1, 2).flatten(2)


class NeoxLayer(nn.Module):
    """h + attention(LN_1 h) + mlp(LN_2 h), rotary on a quarter of each head."""

    def __init__(self, given):
        super().__init__()
        width = given.width
        self.heads = given.heads
        self.input_layernorm = nn.LayerNorm(width, EPS)
        self.post_attention_layernorm = nn.LayerNorm(width, EPS)
        self.attention = nn.ModuleDict({"query_key_value": nn.Linear(width, 3 * width),
                                        "dense": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"dense_h_to_4h": nn.Linear(width, given.feed_forward),
                                  "dense_4h_to_h": nn.Linear(given.feed_forward, width)})

    def forward(self, h):
        qkv = self.attention["query_key_value"](self.input_layernorm(h))
        q, k, v = qkv.unflatten(-1, (self.heads, -1)).transpose(1, 2).chunk(3, -1)
        mixed = attend(rotated(q, 0.25), rotated(k, 0.25), v)
        up = F.gelu(self.mlp["dense_h_to_4h"](self.post_attention_layernorm(h)))
        return h + self.attention["dense"](mixed) + self.mlp["dense_4h_to_h"](up)


class Neox(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.gpt_neox = nn.Module()
        self.gpt_neox.embed_in = nn.Embedding(given.vocab, given.width)
        self.gpt_neox.layers = nn.ModuleList(NeoxLayer(given) for _ in range(given.layers))
        self.gpt_neox.final_layer_norm = nn.LayerNorm(given.width, EPS)
        self.embed_out = nn.Linear(given.width, given.vocab, bias=False)

    def forward(self, ids):
        h = self.gpt_neox.embed_in(ids)
        for layer in self.gpt_neox.layers:
            h = layer(h)
        return self.embed_out(self.gpt_neox.final_layer_norm(h))

    @staticmethod
    def deviation(name, given):
        """Of the initial weights: small_init, and wang_init where a branch ends."""
        if "attention.dense" in name or "dense_4h_to_h" in name:
            return 2 / (given.layers * math.sqrt(given.width))
        return math.sqrt(2 / (5 * given.width))


class LlamaLayer(nn.Module):
    """RMSNorm, rotary on whole heads, several heads of queries to one of keys, SwiGLU; no bias."""

    def __init__(self, given):
        super().__init__()
        width, head = given.width, given.width // given.heads
        self.head = head
        self.groups = given.heads // given.kv_heads
        self.input_layernorm = nn.RMSNorm(width, EPS)
        self.post_attention_layernorm = nn.RMSNorm(width, EPS)
        outputs = {"q_proj": width, "k_proj": given.kv_heads * head,
                   "v_proj": given.kv_heads * head, "o_proj": width}
        self.self_attn = nn.ModuleDict({name: nn.Linear(width, rows, bias=False)
                                        for name, rows in outputs.items()})
        self.mlp = nn.ModuleDict({
            "gate_proj": nn.Linear(width, given.feed_forward, bias=False),
            "up_proj": nn.Linear(width, given.feed_forward, bias=False),
            "down_proj": nn.Linear(given.feed_forward, width, bias=False)})

    def forward(self, h):
        norm = self.input_layernorm(h)
        q, k, v = (self.self_attn[name](norm).unflatten(-1, (-1, self.head)).transpose(1, 2)
                   for name in ("q_proj", "k_proj", "v_proj"))
        k, v = (x.repeat_interleave(self.groups, 1) for x in (rotated(k, 1), v))
        h = h + self.self_attn["o_proj"](attend(rotated(q, 1), k, v))
        norm = self.post_attention_layernorm(h)
        gated = F.silu(self.mlp["gate_proj"](norm)) * self.mlp["up_proj"](norm)
        return h + self.mlp["down_proj"](gated)


class Llama(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(given.vocab, given.width)
        self.model.layers = nn.ModuleList(LlamaLayer(given) for _ in range(given.layers))
        self.model.norm = nn.RMSNorm(given.width, EPS)
        self.lm_head = nn.Linear(given.width, given.vocab, bias=False)

    def forward(self, ids):
        h = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            h = layer(h)
        return self.lm_head(self.model.norm(h))

    @staticmethod
    def deviation(_name, _given):
        return 0.02


class Needle(needle_torch.Needle):
    NAMES = {"tokens.weight": "tok_emb", "positions": "pos_emb", "head.weight": "head",
             "norm": "ln_f", "attention.norm_q": "ln_q", "attention.norm_k": "ln_k",
             "attention.norm_v": "ln_v", "attention.q.weight": "wq", "attention.k.weight": "wk",
             "attention.v.weight": "wv", "attention.o.weight": "wo", "up.weight": "w1",
             "up.bias": "b1", "down.weight": "w2", "down.bias": "b2"}

    def __init__(self, given):
        shape = (given.width, given.layers, given.heads, given.feed_forward)
        if shape != (needle_torch.WIDTH, needle_torch.LAYERS, needle_torch.HEADS,
                     needle_torch.FEED_FORWARD):
            sys.exit("needle has one size here: that of presets/needle-70m.yaml")
        super().__init__(given.vocab, given.length, dropout=0)

    @staticmethod
    def deviation(name, given):
        ends_branch = name.endswith(("attention.o.weight", "down.weight"))
        return 0.02 / math.sqrt(2 * given.layers) if ends_branch else 0.02

    @classmethod
    def saved_name(cls, name):
        """headroom's name of a parameter."""
        layer, rest = "", name
        if name.startswith("layers."):
            number, rest = name.split(".", 2)[1:]
            layer = f"layers.{number}."
        if rest in cls.NAMES:
            return layer + cls.NAMES[rest]
        owner, _, kind = rest.rpartition(".")
        if layer and owner == "norm":
            return f"{layer}ln_mlp.{kind}"
        return f"{layer}{cls.NAMES[owner]}.{kind}"


FAMILIES = {"needle": Needle, "gpt_neox": Neox, "llama": Llama}


def initialize(model, given):
    """Matrices and tables normal, gains 1, biases 0."""
    for name, parameter in model.named_parameters():
        if parameter.ndim >= 2:
            nn.init.normal_(parameter, std=model.deviation(name, given))
        else:
            nn.init.constant_(parameter, 0.0 if name.endswith("bias") else 1.0)


def load_weights(model, path):
    """Takes the weights that headroom wrote, fp32 in one safetensors file."""
    with open(path, "rb") as file:
        data = file.read()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    saved_name = getattr(model, "saved_name", lambda name: name)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            entry = header[saved_name(name)]
            first, last = entry["data_offsets"]
            value = torch.frombuffer(bytearray(data[end + first:end + last]), dtype=torch.float32)
            value = value.view(entry["shape"])
            # needle's matrices are stored [in, out], PyTorch's nn.Linear has [out, in].
            transposed = saved_name(name) != name and name.endswith(".weight") and \
                parameter.ndim == 2 and "tokens" not in name
            parameter.copy_(value.T if transposed else value)


def learning_rate(given, step, steps):
    """Linear warm-up times a cosine to a tenth over all steps, `step` from 0."""
    warmup = min((step + 1) / given.warmup, 1) if given.warmup else 1
    return given.lr * warmup * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * step / steps)))


def loss_of(model, windows, given):
    with torch.autocast("cpu", torch.bfloat16, enabled=given.dtype == "bf16"):
        logits = model(windows[:, :-1])
    return F.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())


def windows_of(ids, length):
    """[windows, length + 1], a window every `length` tokens."""
    return torch.tensor(ids).unfold(0, length + 1, length)


def evaluate(model, windows, given):
    """The mean loss of every target."""
    model.eval()
    total = 0.0
    with torch.inference_mode():
        for batch in windows.split(given.batch):
            total += loss_of(model, batch, given).item() * len(batch)
    return total / len(windows)


def optimizer_of(model, given):
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=given.lr, betas=(0.9, 0.95), eps=1e-8, fused=True)


def order_of(given, windows):
    """The windows in the order of training."""
    if not given.order:
        return torch.randperm(windows)
    with open(given.order, encoding="ascii") as lines:
        return torch.tensor([int(line) for line in lines])


def train(model, windows, given):
    optimizer = optimizer_of(model, given)
    order = order_of(given, len(windows))
    steps = len(order) // given.batch
    for step in range(min(steps, given.stop or steps)):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(given, step, given.steps or steps)
        batch = windows[order[step * given.batch:(step + 1) * given.batch]]
        loss = loss_of(model, batch, given)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(json.dumps({"step": step + 1, "loss": loss.item(), "grad_norm": norm.item()}),
              flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("train")
    parser.add_argument("valid")
    for name in ("width", "layers", "heads", "kv-heads", "feed-forward", "vocab", "length", "batch",
                 "warmup"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0,
                        help="steps of the schedule; 0: those of the order")
    parser.add_argument("--stop", type=int, default=0, help="stop after this step")
    parser.add_argument("--weights", help="start from this model.safetensors of headroom's")
    parser.add_argument("--order", help="indices of windows, one a line, in place of a shuffle")
    return parser.parse_args()


def main():
    given = arguments()
    torch.manual_seed(given.seed)
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)
    model = FAMILIES[given.family](given)
    initialize(model, given)
    if given.weights:
        load_weights(model, given.weights)
    train_ids, valid_ids = word_ids.read(given.train, given.valid, given.vocab)
    began, began_cpu = time.monotonic(), time.process_time()
    train(model, windows_of(train_ids, given.length), given)
    seconds, cpu = time.monotonic() - began, time.process_time() - began_cpu
    valid = windows_of(valid_ids, given.length)
    print(json.dumps({"valid_loss": evaluate(model, valid, given),
                      "valid_tokens": len(valid) * given.length, "seconds": round(seconds, 1),
                      "cpu_seconds": round(cpu, 1),
                      "parameters": sum(p.numel() for p in model.parameters()),
                      "version": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
