# SPDX-License-Identifier: Apache-2.0
"""What make_hf.py and make_systems.py share: the batch, the loss, the training recipe, and files.

Every script computes each value twice, in fp32 and in float64. golden.json records the largest
difference between the two, and the tests set their tolerances from it.
"""
import json
import re
import shutil
import sys
from pathlib import Path

import numpy
import safetensors
import safetensors.torch
import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parent

# Ten steps of AdamW on the same batch, as golden.json describes them.
TRAINING = {
    "learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8,
    "weight_decay_2d_and_up": 0.1, "weight_decay_1d": 0.0, "clip_global_norm": 1.0,
    "clip_rule": "scale = min(1, 1.0 / (norm + 1e-6)), applied to every gradient",
    "bias_correction": True, "steps": 10, "batch": "the same batch at every step"}


def deterministic():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def make_batch(seed, batch, length, vocabulary):
    """input_ids and labels [batch, length]. labels[b, t] is the token after input_ids[b, t].

    About 12 % of the labels, and the last three of the last row, are -100: the loss ignores them.
    """
    generator = torch.Generator().manual_seed(seed)
    stream = torch.randint(0, vocabulary, (batch, length + 1), generator=generator)
    ids, labels = stream[:, :-1].contiguous(), stream[:, 1:].clone()
    labels[torch.rand(batch, length, generator=generator) < 0.12] = -100
    labels[-1, -3:] = -100
    return ids, labels


def cross_entropy(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


def difference(a, b):
    """The largest absolute difference of two tensors."""
    return (a.double() - b.double()).abs().max().item()


def three_digits(value):
    """Rounds every number of a nested value: a difference needs no more digits."""
    if isinstance(value, dict):
        return {key: three_digits(item) for key, item in value.items()}
    if isinstance(value, list):
        return [three_digits(item) for item in value]
    return float(f"{value:.2e}")


def versions(**more):
    return {"python": sys.version.split()[0], "torch": torch.__version__,
            "numpy": numpy.__version__, **more, "safetensors": safetensors.__version__}


def empty_folder(*parts):
    folder = ROOT.joinpath(*parts)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def save_tensors(path, tensors):
    copies = {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
    safetensors.torch.save_file(copies, path)
    path.chmod(0o644)


def save_json(path, value):
    """One key per line; a list of numbers stays on one line."""
    def joined(match):
        return "[" + re.sub(r"\s*\n\s*", " ", match[1]) + "]"
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", joined, json.dumps(value, indent=1))
    path.write_text(text + "\n")
