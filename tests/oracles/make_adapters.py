# SPDX-License-Identifier: Apache-2.0
"""Writes hf/<model>/<adapter>/: adapters of the models in hf/, made and trained by PEFT.

    python make_adapters.py [adapter ...]        # default: all

Each folder is one that PEFT saved (adapter_config.json, adapter_model.safetensors) with batch.safetensors, and
golden.safetensors: logits, final.<tensor> after ten steps of AdamW, and `losses` before each step. B is not
zero. Where dropout is not 0, its masks are those of src/base/random.h, computed here. Needs numpy, torch,
transformers, peft.
"""
import sys

import numpy
import peft
import safetensors.torch
import torch
from transformers import AutoModelForCausalLM, MistralConfig, OPTConfig

from common import ROOT, TRAINING, cross_entropy, deterministic, make_batch

ALL = "all-linear"
# models of families that make_hf.py has none of
MODELS = {
    "mistral": MistralConfig(vocab_size=96, hidden_size=32, intermediate_size=56, num_hidden_layers=2,
                             num_attention_heads=4, num_key_value_heads=2, head_dim=8, sliding_window=8,
                             max_position_embeddings=64, initializer_range=0.3),
    "opt": OPTConfig(vocab_size=96, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4,
                     word_embed_proj_dim=32, max_position_embeddings=64, dropout=0.0, init_std=0.3),
}
# model, rank, alpha, targets, other settings
SETTINGS = {
    "lora_llama": ("llama_gqa", 4, 6.0, ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                                         "down_proj", "lm_head"], {}),
    "lora_qwen3": ("qwen3_tied", 5, 8.0, ALL, {"use_rslora": True}),
    "lora_qwen2": ("qwen2_mixed", 3, 4.0, ["q_proj", "v_proj", "down_proj"], {}),
    "lora_gpt2": ("gpt2", 4, 6.0, ["c_attn", "c_proj", "c_fc"], {}),
    "lora_gpt_neox": ("gpt_neox", 4, 6.0, ALL, {}),
    "lora_gpt_neo": ("gpt_neo", 3, 5.0, ALL, {"use_rslora": True}),
    "lora_mistral": ("mistral", 4, 6.0, ALL, {}),
    "lora_opt": ("opt", 4, 6.0, ALL, {}),
    "patterns": ("qwen3_tied", 4, 6.0, r".*\.(q_proj|v_proj|down_proj|up_proj)",
                 {"rank_pattern": {"down_proj": 2, r"layers\.1\..*\.v_proj": 6},
                  "alpha_pattern": {"down_proj": 12.0, "up_proj": 3.0}}),
    "dora_llama": ("llama_gqa", 4, 6.0, ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj", "lm_head"],
                   {"use_dora": True}),
    "dora_gpt2": ("gpt2", 4, 6.0, ["c_attn", "c_proj", "c_fc"], {"use_dora": True, "use_rslora": True}),
    "saved": ("llama_gqa", 4, 6.0, ["q_proj", "down_proj", "embed_tokens"],
              {"modules_to_save": ["lm_head", "input_layernorm"]}),
    "lookup": ("qwen3_tied", 3, 6.0, ["v_proj", "embed_tokens"], {}),
    "lookup_gpt2": ("gpt2", 4, 6.0, ["wte", "c_fc"], {"use_rslora": True}),
    "dropped": ("llama_gqa", 4, 6.0, ["q_proj", "o_proj", "up_proj", "down_proj"], {"lora_dropout": 0.25}),
    "dora_dropped": ("llama_gqa", 4, 6.0, ["q_proj", "o_proj", "up_proj", "down_proj"],
                     {"lora_dropout": 0.25, "use_dora": True}),
    "layers": ("gpt_neox", 4, 6.0, ["query_key_value", "dense"], {"layers_to_transform": [1]}),
}


def philox(key, counter):
    """Philox4x32-10 (Salmon et al. 2011) of arrays: two words of key, four of counter."""
    key, counter = [numpy.uint64(k) for k in key], [numpy.asarray(c, numpy.uint64) for c in counter]
    low = numpy.uint64(0xffffffff)
    for _ in range(10):
        first, second = numpy.uint64(0xd2511f53) * counter[0], numpy.uint64(0xcd9e8d57) * counter[2]
        counter = [second >> numpy.uint64(32) ^ counter[1] ^ key[0], second & low,
                   first >> numpy.uint64(32) ^ counter[3] ^ key[1], first & low]
        key = [key[0] + numpy.uint64(0x9e3779b9) & low, key[1] + numpy.uint64(0xbb67ae85) & low]
    return counter


class Dropout(torch.nn.Module):
    """Dropout with the masks of headroom: random numbers of (seed, step, site), where sites count the
    dropouts of a forward pass."""
    seed, step, next_site = 0, 0, 0

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        site, Dropout.next_site = Dropout.next_site, Dropout.next_site + 1
        stream = philox((Dropout.seed, 0), (Dropout.step, 0, site, 0))
        rows, length, width = x.shape
        row, position, block = numpy.meshgrid(range(rows), range(length), range(-(-width // 4)), indexing="ij")
        words = numpy.stack(philox(stream[:2], (block, position, row, stream[2])), -1).reshape(rows, length, -1)
        keep = torch.from_numpy(words[..., :width] >= int(self.p * 2**32))
        return x * keep / (1 - self.p)


def make_model(name):
    torch.manual_seed(5)
    model = AutoModelForCausalLM.from_config(MODELS[name])
    for key, value in model.named_parameters():
        if key.endswith("bias"):
            value.data.normal_(0, 0.1)
    model.save_pretrained(ROOT / "hf" / name)


def make(name):
    model_name, rank, alpha, targets, extra = SETTINGS[name]
    base, folder = ROOT / "hf" / model_name, ROOT / "hf" / model_name / name
    if model_name in MODELS and not base.exists():
        make_model(model_name)
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager").float().eval()
    config = peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, task_type="CAUSAL_LM",
                             fan_in_fan_out=model_name == "gpt2", **extra)
    model = peft.get_peft_model(model, config)
    trained = {key: value for key, value in model.named_parameters() if value.requires_grad}
    for key, value in trained.items():
        if "lora_" in key and "magnitude" not in key:
            value.data.normal_(0, 0.2)
    if extra.get("use_dora"):  # the magnitudes of the first step are not those of the base
        for key, value in trained.items():
            if "magnitude" in key:
                value.data.mul_(1 + 0.2 * torch.rand_like(value))
    model.peft_config["default"].base_model_name_or_path = model_name
    model.save_pretrained(folder)
    (folder / "README.md").unlink()
    ids, labels = make_batch(11, 2, 23, model.config.vocab_size)
    safetensors.torch.save_file({"input_ids": ids.int(), "labels": labels.int()}, folder / "batch.safetensors")

    # As headroom: a vector has no weight decay.
    groups = [{"params": [value for value in trained.values() if value.dim() > 1],
               "weight_decay": TRAINING["weight_decay_2d_and_up"]},
              {"params": [value for value in trained.values() if value.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=TRAINING["learning_rate"],
                                  betas=(TRAINING["beta1"], TRAINING["beta2"]), eps=TRAINING["epsilon"])
    logits = model.eval()(ids).logits.detach()
    losses = []
    for module in model.modules():
        if hasattr(module, "lora_dropout") and "lora_dropout" in extra:
            module.lora_dropout["default"] = Dropout(extra["lora_dropout"])
            module.train()
    for step in range(TRAINING["steps"]):
        Dropout.step, Dropout.next_site = step, 0
        optimizer.zero_grad()
        loss = cross_entropy(model(ids).logits, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.values(), TRAINING["clip_global_norm"])
        optimizer.step()
        losses.append(loss.detach())
    state = peft.get_peft_model_state_dict(model)
    golden = {f"final.{key}": value.detach().contiguous() for key, value in state.items()}
    safetensors.torch.save_file({**golden, "losses": torch.stack(losses), "logits": logits.contiguous()},
                                folder / "golden.safetensors")
    print(name, len(state), losses[0].item(), losses[-1].item())


deterministic()
for model_name in sys.argv[1:] or SETTINGS:
    make(model_name)
