# SPDX-License-Identifier: Apache-2.0
"""Writes hf/<name>/adapter/: low-rank adapters of the models in hf/, and ten training steps of them.

    python make_adapters.py [name ...]        # default: all

Each folder is one of PEFT (adapter_config.json, adapter_model.safetensors) with batch.safetensors, and
golden.safetensors: final.<tensor> after ten steps of AdamW, and `losses` before each step. The adapters are
y = W x + b + s B A x, in modules that torch differentiates; B is not zero. Needs torch, transformers.
"""
import json
import sys

import safetensors.torch
import torch
from transformers import AutoModelForCausalLM

from common import ROOT, TRAINING, cross_entropy, deterministic, make_batch

PREFIX = "base_model.model."
# rank, alpha, rslora, the last parts of the names of adapted modules
SETTINGS = {
    "llama_gqa": (4, 6.0, False, "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj lm_head"),
    "qwen3_tied": (5, 8.0, True, "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj"),
    "qwen2_mixed": (3, 4.0, False, "q_proj v_proj down_proj"),
    "gpt2": (4, 6.0, False, "c_attn c_proj c_fc"),
    "gpt_neox": (4, 6.0, False, "query_key_value dense dense_h_to_4h dense_4h_to_h"),
    "gpt_neo": (3, 5.0, True, "k_proj v_proj q_proj out_proj c_fc c_proj"),
}


class Adapted(torch.nn.Module):
    def __init__(self, base, rank, scale, generator):
        super().__init__()
        rows, columns = base.weight.shape
        # Conv1D of GPT-2 stores [inputs, outputs]
        inputs, outputs = (columns, rows) if isinstance(base, torch.nn.Linear) else (rows, columns)
        self.base, self.scale = base, scale
        self.a = torch.nn.Parameter(0.2 * torch.randn(rank, inputs, generator=generator))
        self.b = torch.nn.Parameter(0.2 * torch.randn(outputs, rank, generator=generator))

    def forward(self, x):
        return self.base(x) + self.scale * ((x @ self.a.T) @ self.b.T)


def adapt(model, targets, rank, scale):
    generator = torch.Generator().manual_seed(7)
    tensors = {}
    for name, module in list(model.named_modules()):
        if name.split(".")[-1] not in targets or not hasattr(module, "weight"):
            continue
        parent, _, leaf = name.rpartition(".")
        adapted = Adapted(module, rank, scale, generator)
        setattr(model.get_submodule(parent) if parent else model, leaf, adapted)
        tensors[f"{PREFIX}{name}.lora_A.weight"] = adapted.a
        tensors[f"{PREFIX}{name}.lora_B.weight"] = adapted.b
    return tensors


def make(name):
    rank, alpha, rslora, targets = SETTINGS[name]
    folder = ROOT / "hf" / name / "adapter"
    folder.mkdir(exist_ok=True)
    model = AutoModelForCausalLM.from_pretrained(ROOT / "hf" / name, attn_implementation="eager").float().eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    tensors = adapt(model, targets.split(), rank, alpha / (rank ** 0.5 if rslora else rank))
    ids, labels = make_batch(11, 2, 23, model.config.vocab_size)
    safetensors.torch.save_file({key: value.detach().clone() for key, value in tensors.items()},
                                folder / "adapter_model.safetensors", metadata={"format": "pt"})
    safetensors.torch.save_file({"input_ids": ids.int(), "labels": labels.int()}, folder / "batch.safetensors")
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": name, "r": rank,
              "lora_alpha": alpha, "lora_dropout": 0.0, "bias": "none", "use_rslora": rslora, "use_dora": False,
              "fan_in_fan_out": name == "gpt2", "target_modules": targets.split(), "modules_to_save": None,
              "rank_pattern": {}, "alpha_pattern": {}, "inference_mode": True, "init_lora_weights": True}
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")

    optimizer = torch.optim.AdamW(tensors.values(), lr=TRAINING["learning_rate"],
                                  betas=(TRAINING["beta1"], TRAINING["beta2"]), eps=TRAINING["epsilon"],
                                  weight_decay=TRAINING["weight_decay_2d_and_up"])
    losses = []
    for _ in range(TRAINING["steps"]):
        optimizer.zero_grad()
        loss = cross_entropy(model(ids).logits, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tensors.values(), TRAINING["clip_global_norm"])
        optimizer.step()
        losses.append(loss.detach())
    golden = {f"final.{key}": value.detach() for key, value in tensors.items()}
    safetensors.torch.save_file({**golden, "losses": torch.stack(losses)}, folder / "golden.safetensors")
    print(name, len(tensors), losses[0].item(), losses[-1].item())


deterministic()
for model_name in sys.argv[1:] or SETTINGS:
    make(model_name)
