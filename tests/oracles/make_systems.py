# SPDX-License-Identifier: Apache-2.0
"""Writes systems/<name>/: golden values of the model families that transformers does not have.

    python make_systems.py [needle] [yxanul] [wide] [lif]        # default: all of them

Each family is written in plain PyTorch from the equations that its config.json states. Weights are
[in, out], y = x W + b. Gradients are compared with central differences in float64. Needs torch,
numpy and safetensors; README.md describes the files.
"""
import math
import sys

import torch

from common import (TRAINING, cross_entropy, deterministic, difference, empty_folder, make_batch,
                    save_json, save_tensors, three_digits, versions)


# ---------------------------------------------------------------- random weights

class Random:
    """A stream of fp32 tensors from one seed."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape, std=0.12, mean=0.0):
        return mean + std * torch.randn(shape, generator=self.generator)

    def norm_weight(self, width):
        return self.normal(width, std=0.2, mean=1.0)

    def bias(self, width):
        return self.normal(width, std=0.1)

    def integer(self, end):
        return int(torch.randint(0, end, (1,), generator=self.generator))


# ---------------------------------------------------------------- gradients and training

def cast(tensors, dtype):
    return {name: tensor.to(dtype) if tensor.is_floating_point() else tensor
            for name, tensor in tensors.items()}


def gradients(forward, params, inputs, dtype):
    """The outputs of forward(params, inputs), and d loss / d params."""
    leaves = {name: p.detach().to(dtype).requires_grad_() for name, p in params.items()}
    outputs = forward(leaves, cast(inputs, dtype))
    found = torch.autograd.grad(outputs["loss"], list(leaves.values()), allow_unused=True)
    grads = {name: torch.zeros_like(leaf) if grad is None else grad
             for (name, leaf), grad in zip(leaves.items(), found)}
    return {name: tensor.detach() for name, tensor in outputs.items()}, grads


def finite_difference_error(forward, params, inputs, seed, smooth=None, count=16, step=1e-5):
    """The largest |central difference - gradient| over random elements, relative to the largest
    gradient, in float64. smooth: the parameters in which the loss is smooth; None: all."""
    random = Random(seed)
    leaves, fixed = cast(params, torch.float64), cast(inputs, torch.float64)
    _, grads = gradients(forward, leaves, fixed, torch.float64)
    largest = max(grad.abs().max().item() for grad in grads.values())
    names, worst = list(smooth or leaves), 0.0
    for k in range(count):
        name = names[random.integer(len(names))] if k >= len(names) else names[k]
        index = random.integer(leaves[name].numel())
        losses = []
        for sign in (1, -1):
            moved = {n: tensor.clone() for n, tensor in leaves.items()}
            moved[name].view(-1)[index] += sign * step
            losses.append(forward(moved, fixed)["loss"].item())
        slope = (losses[0] - losses[1]) / (2 * step)
        worst = max(worst, abs(slope - grads[name].reshape(-1)[index].item()) / largest)
    assert worst < 1e-6, f"finite differences: {worst}"
    return worst


def train(forward, params, inputs, dtype):
    """Ten steps of the AdamW in TRAINING, written out."""
    p = {name: value.clone().to(dtype) for name, value in params.items()}
    m = {name: torch.zeros_like(value) for name, value in p.items()}
    v = {name: torch.zeros_like(value) for name, value in p.items()}
    losses, norms = [], []
    for t in range(1, TRAINING["steps"] + 1):
        outputs, grads = gradients(forward, p, inputs, dtype)
        norm = torch.stack([g.pow(2).sum() for g in grads.values()]).sum().sqrt()
        scale = torch.clamp(1.0 / (norm + 1e-6), max=1.0)
        losses.append(outputs["loss"].item())
        norms.append(norm.item())
        for name in p:
            g = grads[name] * scale
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.95 * v[name] + 0.05 * g * g
            decay = 0.1 if p[name].ndim >= 2 else 0.0
            corrected = (v[name] / (1 - 0.95 ** t)).sqrt() + 1e-8
            update = (m[name] / (1 - 0.9 ** t)) / corrected
            p[name] = p[name] * (1 - 1e-3 * decay) - 1e-3 * update
    with torch.no_grad():
        after = forward(p, cast(inputs, dtype))["loss"].item()
    return losses, norms, after, p


def checksum(tensor):
    """[sum, 2-norm, dot product with r, largest absolute value]; README.md defines r."""
    flat = tensor.double().flatten()
    index = torch.arange(flat.numel(), dtype=torch.int64)
    r = (index * 2654435761 % 2**32).double() / 2**31 - 1
    return [float(f"{value.item():.9e}")
            for value in (flat.sum(), flat.norm(), (flat * r).sum(), flat.abs().max())]


def evaluate(forward, params, inputs, seed, smooth=None):
    """fp32 outputs, gradients, trained parameters; and the record of their distance from float64."""
    narrow, grads = gradients(forward, params, inputs, torch.float32)
    wide, wide_grads = gradients(forward, params, inputs, torch.float64)
    losses, norms, after, final = train(forward, params, inputs, torch.float32)
    wide_losses, wide_norms, wide_after, wide_final = train(forward, params, inputs, torch.float64)
    grad_apart = {name: difference(grads[name], wide_grads[name]) for name in grads}
    final_apart = {name: difference(final[name], wide_final[name]) for name in final}
    record = {
        "loss": narrow["loss"].item(), "loss_float64": wide["loss"].item(),
        "finite_difference_worst_relative":
            three_digits(finite_difference_error(forward, params, inputs, seed, smooth)),
        "max_abs": {"grad": max(grad.abs().max().item() for grad in grads.values())},
        "max_abs_difference_fp32_float64": three_digits({
            **{name: difference(narrow[name], wide[name]) for name in narrow},
            "grad_worst": max(grad_apart.values()), "grad": grad_apart,
            "training_losses": max(abs(a - b) for a, b in zip(losses, wide_losses)),
            "final_worst": max(final_apart.values()), "final": final_apart}),
        "training": {
            "optimizer": TRAINING, "losses": losses, "gradient_norms_before_clip": norms,
            "loss_after": after, "losses_float64": wide_losses,
            "gradient_norms_before_clip_float64": wide_norms, "loss_after_float64": wide_after}}
    return narrow, grads, final, record


def assert_causal(forward, params, inputs, logits, positions):
    """Other tokens from position t on leave every earlier row of the logits bit-equal."""
    vocabulary = logits.shape[-1]
    for t in positions:
        ids = inputs["input_ids"].clone()
        ids[:, t:] = (ids[:, t:] + 1) % vocabulary
        moved = forward(params, inputs | {"input_ids": ids})["logits"]
        assert torch.equal(moved[:, :t], logits[:, :t]) and not torch.equal(moved, logits)


def parameter_count(params):
    return sum(p.numel() for p in params.values())


# ---------------------------------------------------------------- layers

def layer_norm(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).pow(2).mean(-1, keepdim=True)
    return (x - mean) / (variance + eps).sqrt() * weight + bias


def rms_norm(x, weight, eps):
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight


def silu(x):
    return x * torch.sigmoid(x)


def rotary_frequencies(width, theta):
    """Angle per position of each pair, [width / 2], in float64."""
    return torch.tensor([theta ** (-2 * i / width) for i in range(width // 2)],
                        dtype=torch.float64)


def rotate(x, frequencies):
    """x [B, T, H, K]: turns the pair (i, i + K/2) at position t by t * frequency[i]."""
    angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * frequencies
    cos, sin = angle.cos().to(x.dtype)[:, None], angle.sin().to(x.dtype)[:, None]
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def attention(q, k, v, mask):
    """q [B, T, H, K]; k, v [B, T, G, K]; mask [T, T], true where a query reads a key. Query head h
    reads key-value head h // (H/G). Returns [B, T, H * K]."""
    B, T, H, K = q.shape
    k, v = (x.repeat_interleave(H // x.shape[2], dim=2) for x in (k, v))
    scores = torch.einsum("bthk,bshk->bhts", q, k) / math.sqrt(K)
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
    return torch.einsum("bhts,bshk->bthk", weights, v).reshape(B, T, H * K)


def causal(T):
    return torch.ones(T, T, dtype=torch.bool).tril()


# ---------------------------------------------------------------- needle

NEEDLE = {"d": 64, "L": 2, "H": 4, "F": 128, "V": 97, "B": 2, "T": 40, "block": 8,
          "layer_norm_eps": 1e-5}
NEEDLE_PATTERNS = ("dense", "local", "global", "mixed")
NEEDLE_TEXT = {
    "weights": "[in, out], y = x W + b; tok_emb [V,d], pos_emb [T,d], head [d,V]",
    "equations": [
        "h = tok_emb[id] + pos_emb[t]",
        "q = LN_q(h) wq, k = LN_k(h) wk, v = LN_v(h) wv, no bias; heads are consecutive runs of "
        "d/H columns",
        "h = h + (softmax(q k^T / sqrt(d/H), masked) v) wo",
        "h = h + relu(LN_mlp(h) w1 + b1) w2 + b2",
        "logits = LN_f(h) head; LN divides by sqrt(variance + eps), variance with 1/d; no dropout",
        "loss = mean over labels >= 0 of -log softmax(logits)[label]"],
    "masks": {
        "block": "I = i div 8 for the query, J = j div 8 for the key; and always j <= i",
        "dense": "every j <= i", "local": "|I - J| <= 1", "global": "J mod 2 = 0 or I = J",
        "mixed": "|I - J| <= 1 or J mod 4 = 0 or I = J"},
    "files": "golden.dense.safetensors has every gradient and the hidden states; the other "
             "patterns have the gradients of pos_emb and of layer 0's wq wk wv wo. checksum_grad "
             "and checksum_final in golden.json cover every tensor of every pattern: [sum, "
             "2-norm, dot product with r, largest absolute value]",
    "ragged": "the first n rows of logits are those of the first n tokens alone, for any n"}


def needle_mask(pattern, T, block):
    i = torch.arange(T)[:, None] // block
    j = torch.arange(T)[None, :] // block
    local = (i - j).abs() <= 1
    kept = {"dense": torch.ones(T, T, dtype=torch.bool), "local": local,
            "global": (j % 2 == 0) | (i == j), "mixed": local | (j % 4 == 0) | (i == j)}[pattern]
    return kept & causal(T)


def needle_forward(p, x, pattern):
    c = NEEDLE
    B, T = x["input_ids"].shape
    h = p["tok_emb"][x["input_ids"]] + p["pos_emb"][:T]
    mask, outputs = needle_mask(pattern, T, c["block"]), {"hidden.0": h}
    for i in range(c["L"]):
        def part(name):
            return p[f"layers.{i}.{name}"]

        def norm(name):
            return layer_norm(h, part(f"ln_{name}.weight"), part(f"ln_{name}.bias"),
                              c["layer_norm_eps"])
        q, k, v = ((norm(n) @ part(f"w{n}")).view(B, T, c["H"], -1) for n in "qkv")
        h = h + attention(q, k, v, mask) @ part("wo")
        h = h + torch.relu(norm("mlp") @ part("w1") + part("b1")) @ part("w2") + part("b2")
        outputs[f"hidden.{i + 1}"] = h
    final = layer_norm(h, p["ln_f.weight"], p["ln_f.bias"], c["layer_norm_eps"])
    outputs["logits"] = final @ p["head"]
    outputs["loss"] = cross_entropy(outputs["logits"], x["labels"])
    return outputs


def needle_params():
    c, random, d = NEEDLE, Random(10), NEEDLE["d"]
    params = {"tok_emb": random.normal(c["V"], d, std=0.4),
              "pos_emb": random.normal(c["T"], d, std=0.3)}
    for i in range(c["L"]):
        for n in ("q", "k", "v", "mlp"):
            params[f"layers.{i}.ln_{n}.weight"] = random.norm_weight(d)
            params[f"layers.{i}.ln_{n}.bias"] = random.bias(d)
        for n in "qkvo":
            params[f"layers.{i}.w{n}"] = random.normal(d, d)
        params[f"layers.{i}.w1"] = random.normal(d, c["F"])
        params[f"layers.{i}.b1"] = random.bias(c["F"])
        params[f"layers.{i}.w2"] = random.normal(c["F"], d)
        params[f"layers.{i}.b2"] = random.bias(d)
    params["ln_f.weight"], params["ln_f.bias"] = random.norm_weight(d), random.bias(d)
    params["head"] = random.normal(d, c["V"])
    return params


def make_needle():
    c, folder, params = NEEDLE, empty_folder("systems", "needle"), needle_params()
    ids, labels = make_batch(11, c["B"], c["T"], c["V"])
    inputs = {"input_ids": ids, "labels": labels}
    kept = {"pos_emb"} | {f"layers.0.w{n}" for n in "qkvo"}
    record = {"parameters": parameter_count(params), "versions": versions(), "patterns": {}}
    for pattern in NEEDLE_PATTERNS:
        def forward(p, x, pattern=pattern):
            return needle_forward(p, x, pattern)
        outputs, grads, final, entry = evaluate(forward, params, inputs, 12)
        assert_causal(forward, params, inputs, outputs["logits"], (1, 8, 17, 39))
        mask, blocks = needle_mask(pattern, c["T"], c["block"]), c["T"] // c["block"]
        tiles = mask.view(blocks, c["block"], blocks, c["block"]).any(3).any(1)
        entry["kept_token_pairs"] = int(mask.sum())
        entry["kept_blocks"] = [row.nonzero().flatten().tolist() for row in tiles]
        entry["checksum_grad"] = {name: checksum(grad) for name, grad in grads.items()}
        entry["checksum_final"] = {name: checksum(p) for name, p in final.items()}
        record["patterns"][pattern] = entry
        whole = pattern == "dense"
        golden = inputs | {"logits": outputs["logits"]}
        golden |= {name: t for name, t in outputs.items() if whole and name.startswith("hidden")}
        golden |= {f"grad.{name}": g for name, g in grads.items() if whole or name in kept}
        save_tensors(folder / f"golden.{pattern}.safetensors", golden)
    assert len({entry["loss"] for entry in record["patterns"].values()}) == len(NEEDLE_PATTERNS)
    save_tensors(folder / "weights.safetensors", params)
    save_json(folder / "golden.json", record)
    save_json(folder / "config.json", c | NEEDLE_TEXT)


# ---------------------------------------------------------------- families with one pattern

def write_family(name, sizes, params, forward, seed, text, smooth=None):
    folder = empty_folder("systems", name)
    ids, labels = make_batch(seed, sizes["B"], sizes["T"], sizes["V"])
    inputs = {"input_ids": ids, "labels": labels}
    outputs, grads, final, record = evaluate(forward, params, inputs, seed + 1, smooth)
    assert outputs["logits"].std() > 0.2
    assert_causal(forward, params, inputs, outputs["logits"], (1, 9, sizes["T"] - 1))
    golden = inputs | {key: tensor for key, tensor in outputs.items() if key != "loss"}
    golden |= {f"grad.{key}": grad for key, grad in grads.items()}
    golden |= {f"final.{key}": p for key, p in final.items()}
    save_tensors(folder / "weights.safetensors", params)
    save_tensors(folder / "golden.safetensors", golden)
    save_json(folder / "golden.json", {"parameters": parameter_count(params)} | record
              | {"versions": versions()})
    save_json(folder / "config.json", sizes | text)


# ---------------------------------------------------------------- yxanul

YXANUL = {"d": 64, "L": 2, "H": 8, "G": 2, "F": 45, "V": 131, "r": 16, "B": 3, "T": 23,
          "rms_norm_eps": 1e-5, "rope_theta": 10000.0}
YXANUL_TEXT = {
    "weights": "[in, out], y = x W; E [V,r], P [d,r]",
    "equations": [
        "h = E[id] P^T",
        "n = RMSNorm(h) norm_attn; q = n wq, k = n wk, v = n wv; q and k rotated, heads are "
        "consecutive columns",
        "rotation: in each head of width K the pair (i, i + K/2) turns by t * theta^(-2i/K)",
        "query head h reads key-value head h div (H/G); h = h + (softmax(q k^T / sqrt(K), causal) "
        "v) wo",
        "n = RMSNorm(h) norm_mlp; h = h + (silu(n gate) * (n up)) down",
        "logits = ((RMSNorm(h) norm_f) P) E^T: E and P are used twice, their gradients add"]}


def yxanul_forward(p, x):
    c = YXANUL
    B, T = x["input_ids"].shape
    K = c["d"] // c["H"]
    frequencies = rotary_frequencies(K, c["rope_theta"])
    h = p["E"][x["input_ids"]] @ p["P"].T
    outputs = {"hidden.0": h}
    for i in range(c["L"]):
        def part(name):
            return p[f"layers.{i}.{name}"]
        n = rms_norm(h, part("norm_attn"), c["rms_norm_eps"])
        q, k, v = ((n @ part(f"w{s}")).view(B, T, heads, K)
                   for s, heads in (("q", c["H"]), ("k", c["G"]), ("v", c["G"])))
        q, k = rotate(q, frequencies), rotate(k, frequencies)
        h = h + attention(q, k, v, causal(T)) @ part("wo")
        n = rms_norm(h, part("norm_mlp"), c["rms_norm_eps"])
        h = h + (silu(n @ part("gate")) * (n @ part("up"))) @ part("down")
        outputs[f"hidden.{i + 1}"] = h
    final = rms_norm(h, p["norm_f"], c["rms_norm_eps"])
    outputs["logits"] = (final @ p["P"]) @ p["E"].T
    outputs["loss"] = cross_entropy(outputs["logits"], x["labels"])
    return outputs


def make_yxanul():
    c, random, d = YXANUL, Random(33), YXANUL["d"]
    groups = d // c["H"] * c["G"]
    shapes = {"wq": (d, d), "wk": (d, groups), "wv": (d, groups), "wo": (d, d),
              "gate": (d, c["F"]), "up": (d, c["F"]), "down": (c["F"], d)}
    params = {"E": random.normal(c["V"], c["r"], std=0.2), "P": random.normal(d, c["r"], std=0.2)}
    for i in range(c["L"]):
        params[f"layers.{i}.norm_attn"] = random.norm_weight(d)
        params[f"layers.{i}.norm_mlp"] = random.norm_weight(d)
        for name, shape in shapes.items():
            params[f"layers.{i}.{name}"] = random.normal(*shape)
    params["norm_f"] = random.norm_weight(d)
    write_family("yxanul", c, params, yxanul_forward, 31, YXANUL_TEXT)


# ---------------------------------------------------------------- wide

WIDE = {"E": 36, "L": 2, "D_out": 97, "V": 131, "B": 3, "T": 23}
WIDE_TEXT = {
    "weights": "[in, out], y = x W + b; tok_emb [V,E], decoder [D_out,V] without bias",
    "equations": [
        "x = tok_emb[id]",
        "for each layer: u_t = x_t w_in; a = sigmoid(alpha) per channel; s_0 = 0 before the first "
        "token",
        "s_t = a * s_(t-1) + (1 - a) * u_t; x_t = x_t + relu(s_t)",
        "z = relu(x w_expand + b_expand); logits = z decoder"]}


def wide_forward(p, x):
    h = p["tok_emb"][x["input_ids"]]
    outputs = {"hidden.0": h}
    for i in range(WIDE["L"]):
        a, u = torch.sigmoid(p[f"layers.{i}.alpha"]), h @ p[f"layers.{i}.w_in"]
        state, states = torch.zeros_like(u[:, 0]), []
        for t in range(u.shape[1]):
            state = a * state + (1 - a) * u[:, t]
            states.append(state)
        h = h + torch.relu(torch.stack(states, dim=1))
        outputs[f"hidden.{i + 1}"] = h
    outputs["expanded"] = torch.relu(h @ p["w_expand"] + p["b_expand"])
    outputs["logits"] = outputs["expanded"] @ p["decoder"]
    outputs["loss"] = cross_entropy(outputs["logits"], x["labels"])
    return outputs


def make_wide():
    c, random = WIDE, Random(40)
    params = {"tok_emb": random.normal(c["V"], c["E"], std=0.5)}
    for i in range(c["L"]):
        params[f"layers.{i}.w_in"] = random.normal(c["E"], c["E"], std=0.2)
        params[f"layers.{i}.alpha"] = random.normal(c["E"], std=1.0)
    params["w_expand"] = random.normal(c["E"], c["D_out"])
    params["b_expand"] = random.bias(c["D_out"])
    params["decoder"] = random.normal(c["D_out"], c["V"])
    write_family("wide", c, params, wide_forward, 41, WIDE_TEXT)


# ---------------------------------------------------------------- wide with spiking neurons

LIF = {"E": 48, "L": 2, "D_out": 97, "V": 131, "B": 3, "T": 23, "block": 16, "winners": 5,
       "synapses": 7}
LIF_TEXT = {
    "weights": "as of wide; w_rec [synapses E]: element j E + c is of neuron c and its j-th source",
    "equations": [
        "x = tok_emb[id]",
        "for each layer: u_t = x_t w_in; I_t = u_t + sum over j of w_rec[j] s_(t-1) of the neuron "
        "1 + 101 j further, modulo its block; states are 0 before the first token",
        "V_t = 0.95 R_(t-1) + I_t - A_(t-1); s_t = 1 if V_t >= 1 and V_t is one of the `winners` "
        "largest of its block, else 0",
        "R_t = V_t (1 - s_t), where s_t has no gradient; A_t = 0.90 A_(t-1) + s_t; x_t = x_t + s_t",
        "gradient of s_t in V_t: 1 / (1 + 5 |V_t - 1|)^2 for winners, else 0",
        "z = relu(x w_expand + b_expand); logits = z decoder"]}
LIF_MARGIN = [1.0]  # the least distance of any potential from another decision so far


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, potential, wins):
        ctx.save_for_backward(potential, wins)
        return ((potential >= 1) & wins).to(potential.dtype)

    @staticmethod
    def backward(ctx, gradient):
        potential, wins = ctx.saved_tensors
        return gradient * wins / (1 + 5 * (potential - 1).abs()) ** 2, None


def winners_of(potential):
    """Which neurons are among the largest of their block; notes how clear the decisions are."""
    c = LIF
    blocks = potential.detach().reshape(potential.shape[0], -1, c["block"])
    ordered = blocks.sort(dim=-1, descending=True).values
    last, next_one = ordered[..., c["winners"] - 1], ordered[..., c["winners"]]
    # Which of two neurons below the threshold wins changes gradients.
    LIF_MARGIN[0] = min(LIF_MARGIN[0], (last - next_one).min().item(),
                        (potential.detach() - 1).abs().min().item())
    return (blocks >= last[..., None]).reshape(potential.shape)


def lif_forward(p, x):
    c = LIF
    neurons = torch.arange(c["E"])
    first = neurons // c["block"] * c["block"]
    h = p["tok_emb"][x["input_ids"]]
    outputs = {"hidden.0": h}
    for i in range(c["L"]):
        u, w = h @ p[f"layers.{i}.w_in"], p[f"layers.{i}.w_rec"].view(c["synapses"], c["E"])
        rest = fatigue = spikes = torch.zeros_like(u[:, 0])
        all_spikes = []
        for t in range(u.shape[1]):
            heard = u[:, t]
            for j in range(c["synapses"]):
                source = first + (neurons - first + 1 + 101 * j) % c["block"]
                heard = heard + w[j] * spikes[:, source]
            potential = 0.95 * rest + heard - fatigue
            spikes = Spike.apply(potential, winners_of(potential))
            rest = potential * (1 - spikes.detach())
            fatigue = 0.90 * fatigue + spikes
            all_spikes.append(spikes)
        h = h + torch.stack(all_spikes, dim=1)
        outputs[f"hidden.{i + 1}"] = h
    outputs["expanded"] = torch.relu(h @ p["w_expand"] + p["b_expand"])
    outputs["logits"] = outputs["expanded"] @ p["decoder"]
    outputs["loss"] = cross_entropy(outputs["logits"], x["labels"])
    return outputs


def lif_params(seed):
    c, random = LIF, Random(seed)
    params = {"tok_emb": random.normal(c["V"], c["E"], std=1.0)}
    for i in range(c["L"]):
        params[f"layers.{i}.w_in"] = random.normal(c["E"], c["E"], std=0.2)
        params[f"layers.{i}.w_rec"] = random.normal(c["synapses"] * c["E"], std=0.4)
    params["w_expand"] = random.normal(c["E"], c["D_out"])
    params["b_expand"] = random.bias(c["D_out"])
    params["decoder"] = random.normal(c["D_out"], c["V"])
    return params


def make_lif():
    """Weights for which no decision of the ten training steps depends on rounding."""
    for seed in range(50, 1000):
        LIF_MARGIN[0] = 1.0
        params = lif_params(seed)
        ids, labels = make_batch(51, LIF["B"], LIF["T"], LIF["V"])
        train(lif_forward, params, {"input_ids": ids, "labels": labels}, torch.float64)
        if LIF_MARGIN[0] > 2e-5:
            break
    print(f"seed {seed}, every decision is clear by {LIF_MARGIN[0]:.1e}")
    write_family("lif", LIF, params, lif_forward, 51, LIF_TEXT,
                 smooth=("w_expand", "b_expand", "decoder"))


def main():
    deterministic()
    makers = {"needle": make_needle, "yxanul": make_yxanul, "wide": make_wide, "lif": make_lif}
    for name in sys.argv[1:] or makers:
        makers[name]()
        print(name)


if __name__ == "__main__":
    main()
