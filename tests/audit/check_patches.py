#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_patches.py PROGRAM [SEED [FILES]] - audits training files that it makes up, on devices of
all sizes, applies every patch and audits again: the file then fits, with the bytes that the patch
promised. No change of a list saves nothing, and no key stands in a patch twice.
"""
import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_configs import audit, keys_of, write_patched  # noqa: E402

MODELS = ["Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-7B", "Qwen/Qwen3-4B", "meta-llama/Llama-3.2-1B",
          "meta-llama/Llama-3.1-8B", "mistralai/Mistral-7B-v0.1", "openai-community/gpt2-xl",
          "TinyLlama/TinyLlama_v1.1"]
DEVICES = ["gtx-1650", "rtx-3060", "t4", "rtx-4060", "rtx-4090", "v100-32gb", "l40s", "a100-80gb"]
KINDS = ["hf", "trl", "axolotl", "llama-factory", "torchtune", "deepspeed", "mlx-lm"]
TUNED = {"Qwen/Qwen2.5-0.5B": "qwen2_5.qwen2_5_0_5b", "Qwen/Qwen2.5-7B": "qwen2_5.qwen2_5_7b_base",
         "Qwen/Qwen3-4B": "qwen3.qwen3_4b_base", "meta-llama/Llama-3.2-1B": "llama3_2.llama3_2_1b",
         "meta-llama/Llama-3.1-8B": "llama3_1.llama3_1_8b",
         "mistralai/Mistral-7B-v0.1": "mistral.mistral_7b"}
ZERO = {"zero_optimization": {"overlap_comm": True, "offload_optimizer": {"device": "none"}},
        "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto", "loss_scale": 0},
        "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}


def maybe(rng, share, **keys):
    return keys if rng.random() < share else {}


def of_trainer(rng, keys):
    """Keys that transformers, TRL and LLaMA-Factory share."""
    keys |= {"per_device_train_batch_size": rng.choice([1, 2, 8]),
             "gradient_accumulation_steps": rng.choice([1, 4]),
             **maybe(rng, 0.7, bf16=True), **maybe(rng, 0.4, gradient_checkpointing=True),
             **maybe(rng, 0.6, optim=rng.choice(["adamw_torch", "adamw_8bit", "lion_32bit"]))}
    if "bf16" not in keys:
        keys |= maybe(rng, 0.5, fp16=True)
    return keys


def make(rng, kind, model):
    length = 512 if "gpt2" in model else rng.choice([512, 2048, 6000])
    if kind == "hf":
        keys = of_trainer(rng, {"model_name_or_path": model, "block_size": length})
        return keys | maybe(rng, 0.5, torch_dtype=rng.choice(["bfloat16", "float32"]))
    if kind == "trl":
        keys = of_trainer(rng, {"model_name_or_path": model, "max_length": length})
        keys |= maybe(rng, 0.5, dtype=rng.choice(["bfloat16", "float32"]))
        keys |= maybe(rng, 0.4, beta=0.1)
        if rng.random() < 0.4:
            keys |= {"use_peft": True, "lora_r": 8, **maybe(rng, 0.5, load_in_4bit=True)}
        return keys | maybe(rng, 0.3, use_liger_kernel=True)
    if kind == "axolotl":
        keys = {"base_model": model, "sequence_len": length, "micro_batch_size": 4,
                "gradient_accumulation_steps": 2, "optimizer": "adamw_torch",
                **maybe(rng, 0.4, adapter="lora", lora_r=16, lora_target_modules=["all-linear"]),
                **maybe(rng, 0.3, rl=rng.choice(["dpo", "orpo"])), **maybe(rng, 0.2, fp16=True)}
        return keys | maybe(rng, 0.7, bf16=rng.choice(["auto", True, "full"]))
    if kind == "llama-factory":
        keys = of_trainer(rng, {"model_name_or_path": model, "stage": rng.choice(["sft", "dpo"]),
                                "finetuning_type": rng.choice(["full", "lora"]),
                                "cutoff_len": length, "template": "default"})
        keys |= maybe(rng, 0.4, enable_liger_kernel=True)
        if keys["finetuning_type"] == "lora":
            return keys | maybe(rng, 0.3, quantization_bit=8)
        return keys | (maybe(rng, 0.3, pure_bf16=True) if "fp16" not in keys else {})
    if kind == "torchtune":
        name = TUNED.get(model, TUNED["Qwen/Qwen2.5-0.5B"])
        return {"model": {"_component_": "torchtune.models." + name},
                "tokenizer": {"max_seq_len": length}, "batch_size": 4, "dtype": "bf16",
                "optimizer": {"_component_": "torch.optim.AdamW", "lr": 2e-5},
                **maybe(rng, 0.5, enable_activation_checkpointing=True)}
    if kind == "mlx-lm":
        return {"model": model, "fine_tune_type": rng.choice(["full", "lora"]),
                "max_seq_length": length, "batch_size": 4,
                **maybe(rng, 0.5, lora_parameters={"rank": 4, "scale": 10.0, "dropout": 0.1})}
    return dict(ZERO, bf16={"enabled": True}, train_micro_batch_size_per_gpu=8,
                zero_optimization=dict(ZERO["zero_optimization"], stage=rng.choice([1, 2, 3])))


def lines_of(keys, level=""):
    out = []
    for key, value in keys.items():
        if isinstance(value, dict):
            out += [f"{level}{key}:", *lines_of(value, level + "  ")]
        else:
            out.append(f"{level}{key}: {json.dumps(value) if value != 'full' else value}")
    return out


def write(rng, kind, folder):
    """A file of a kind, now and then without a final line end; returns its path and arguments."""
    model = rng.choice(MODELS)
    keys = make(rng, kind, model)
    arguments = ["--kind", kind, "--processes", "4" if rng.random() < 0.3 else "1"]
    arguments += ["--length", "1024"] if kind in ("hf", "deepspeed") else []
    arguments += ["--checkpointing", "on"] if kind == "deepspeed" else []
    sharded = kind in ("hf", "trl", "axolotl", "llama-factory") and rng.random() < 0.4
    if sharded:
        stage = rng.choice([2, 3])
        if rng.random() < 0.3:
            keys["deepspeed"] = f"shipped/ds_z{stage}_config.json"
        else:
            keys["deepspeed"] = "zero.json"
            with open(os.path.join(folder, "zero.json"), "w", encoding="utf-8") as file:
                json.dump(dict(ZERO, zero_optimization=dict(ZERO["zero_optimization"],
                                                            stage=stage)), file)
    if kind == "deepspeed":
        arguments += ["--model", model]
    is_json = kind in ("hf", "deepspeed")
    path = os.path.join(folder, "file.json" if is_json else "file.yaml")
    text = json.dumps(keys, indent=1) if is_json else "\n".join(lines_of(keys))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + rng.choice(["", "\n"]))
    return path, arguments


def check(program, path, arguments, device):
    """What is wrong with a patch, or with the verdict; none: nothing."""
    code, answer, error = audit(program, path, [*arguments, "--device", device])
    if not answer:
        return f"exit code {code}: {error}"
    estimate = answer["estimate"]
    fits = estimate["fits"] == "yes"
    if (code == 0) != fits or (fits and estimate["high_bytes"] > estimate["budget_bytes"]):
        return f"exit code {code}, fits {estimate['fits']}"
    patch = estimate["patch"]
    if not patch:
        return None
    useless = [c["lines"] for c in patch["changes"]
               if not c["needed"] and c["high_bytes"] >= estimate["high_bytes"]]
    if useless:
        return f"changes that save nothing: {useless}"
    needed = [change for change in patch["changes"] if change["needed"]]
    keys = [(change["file"], key) for change in needed for key in keys_of(change["lines"])]
    if len(keys) > len(set(keys)):
        return f"the patch sets a key twice: {keys}"
    with tempfile.TemporaryDirectory() as folder:
        copy = write_patched(path, needed, folder)
        code, after, error = audit(program, copy, [*arguments, "--device", device])
        if not after:
            return f"with its patch: exit code {code}: {error}"
        found = after["estimate"]
        if found["high_bytes"] != patch["high_bytes"] or (code == 0) != patch["fits"]:
            with open(copy, encoding="utf-8") as file:
                return (f"with its patch {found['high_bytes']} bytes and exit code {code}, not "
                        f"{patch['high_bytes']} and fits {patch['fits']}: {keys}\n{file.read()}")
    return None


def main():
    program, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    files = int(sys.argv[3]) if len(sys.argv) > 3 else 35
    failures = 0
    for i in range(files):
        rng = random.Random(seed * 1000003 + i)
        kind = KINDS[i % len(KINDS)]
        with tempfile.TemporaryDirectory() as folder:
            path, arguments = write(rng, kind, folder)
            for device in rng.sample(DEVICES, 2):
                wrong = check(program, path, arguments, device)
                if wrong:
                    failures += 1
                    with open(path, encoding="utf-8") as file:
                        print(f"file {i} of seed {seed} ({kind}, {device}, {arguments}): {wrong}\n"
                              f"{file.read()}\n")
    print(f"{files} files, {failures} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
