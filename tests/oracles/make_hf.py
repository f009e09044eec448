# SPDX-License-Identifier: Apache-2.0
"""Writes hf/<name>/: tiny Hugging Face models with their logits, gradients and ten training steps.

    python make_hf.py [name ...]        # default: all of them

Needs torch, transformers and safetensors; README.md has the versions and describes the files.
"""
import json
import sys

import safetensors.torch
import torch
import transformers
from torch.overrides import TorchFunctionMode
from transformers import (GPT2Config, GPT2LMHeadModel, GPTNeoConfig, GPTNeoForCausalLM,
                          GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM,
                          Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

from common import (TRAINING, cross_entropy, deterministic, difference, empty_folder, make_batch,
                    save_json, save_tensors, three_digits, versions)

PROMPT_TOKENS, ANSWER_TOKENS = 8, 16  # of the greedy continuation


class Float64(TorchFunctionMode):
    """Runs a model in float64, also where its code asks for fp32: softmax, norms, rotary tables."""

    def __enter__(self):
        torch.set_default_dtype(torch.float64)
        return super().__enter__()

    def __exit__(self, *error):
        torch.set_default_dtype(torch.float32)
        return super().__exit__(*error)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def widen(value):
            return torch.float64 if value is torch.float32 else value
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        kwargs = {key: widen(value) for key, value in (kwargs or {}).items()}
        result = func(*[widen(value) for value in args], **kwargs)
        if isinstance(result, torch.Tensor) and result.dtype == torch.float32:
            raise TypeError(f"{func} returned fp32 in the float64 run")
        return result


def randomise(model, seed):
    """Matrices N(0, 0.12²), norm weights 1 + 0.2 N, biases 0.1 N.

    No parameter is 0 or 1, so the logits change when an implementation omits one.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim >= 2:
                parameter.copy_(0.12 * values)
            elif name.endswith("weight"):
                parameter.copy_(1 + 0.2 * values)
            else:
                parameter.copy_(0.1 * values)


def model_in(spec, state, dtype):
    """The model with these weights, computing in fp32 or float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    model = spec["model"](spec["config"])
    torch.set_default_dtype(before)
    model.load_state_dict({name: tensor.to(dtype) for name, tensor in state.items()})
    model.tie_weights()
    return model.eval()


def logits_and_hidden(model, ids):
    """The logits; and the input of the first block followed by the output of every block, all
    before the final norm."""
    hidden, hooks = [], []

    def keep_input(_, args, kwargs):
        hidden.append((args[0] if args else kwargs["hidden_states"]).detach().clone())

    def keep_output(_, __, result):
        hidden.append((result[0] if isinstance(result, tuple) else result).detach().clone())

    blocks = next(module for module in model.modules() if isinstance(module, torch.nn.ModuleList)
                  and len(module) == model.config.num_hidden_layers)
    hooks.append(blocks[0].register_forward_pre_hook(keep_input, with_kwargs=True))
    hooks += [block.register_forward_hook(keep_output) for block in blocks]
    logits = model(input_ids=ids, use_cache=False).logits
    for hook in hooks:
        hook.remove()
    return logits, hidden


def train(model, ids, labels):
    """Ten steps: the losses before each update, the gradient norms before clipping, the loss after
    the last update, and the final parameters."""
    named = list(model.named_parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for _, p in named if p.ndim >= 2], "weight_decay": 0.1},
         {"params": [p for _, p in named if p.ndim < 2], "weight_decay": 0.0}],
        lr=1e-3, betas=(0.9, 0.95), eps=1e-8, foreach=False)
    losses, norms = [], []
    for _ in range(TRAINING["steps"]):
        optimizer.zero_grad(set_to_none=True)
        loss = cross_entropy(model(input_ids=ids, use_cache=False).logits, labels)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_([p for _, p in named], 1.0).item())
        losses.append(loss.item())
        optimizer.step()
    with torch.no_grad():
        after = cross_entropy(model(input_ids=ids, use_cache=False).logits, labels).item()
    return losses, norms, after, {name: p.detach().clone() for name, p in named}


@torch.no_grad()
def greedy(model, prompt, cached):
    """The greedy continuation, and the smallest gap between the two largest logits on the way."""
    ids, past, tokens, gap = prompt[None], None, [], float("inf")
    for _ in range(ANSWER_TOKENS):
        if cached:
            given = ids if past is None else ids[:, -1:]
            result = model(input_ids=given, past_key_values=past, use_cache=True)
            past = result.past_key_values
        else:
            result = model(input_ids=ids, use_cache=False)
        best = result.logits[0, -1].topk(2)
        gap = min(gap, (best.values[0] - best.values[1]).item())
        tokens.append(best.indices[0].item())
        ids = torch.cat([ids, best.indices[:1][None]], dim=1)
    return tokens, gap


def config_of_version_4(folder):
    """The same configuration with the keys of transformers 4; None where they are the same."""
    config = json.loads((folder / "config.json").read_text())
    rope = config.pop("rope_parameters", None)
    if rope is None:
        return None
    if "dtype" in config:
        config["torch_dtype"] = config.pop("dtype")
    theta, kind = rope.pop("rope_theta"), rope.pop("rope_type", "default")
    fraction = rope.pop("partial_rotary_factor", None)
    if config["model_type"] == "gpt_neox":
        config["rotary_emb_base"], config["rotary_pct"] = theta, fraction
    else:
        config["rope_theta"] = theta
        config["rope_scaling"] = None if kind == "default" else {"rope_type": kind, **rope}
    config["transformers_version"] = "4.46.0"
    return config


def save_model(model, folder):
    model.save_pretrained(folder)
    older = config_of_version_4(folder)
    if older:
        (folder / "config.v4.json").write_text(json.dumps(older, indent=2) + "\n")


def computed(spec, state, dtype, ids, labels):
    """One run of everything in one precision."""
    model = model_in(spec, state, dtype)
    logits, hidden = logits_and_hidden(model, ids)
    loss = cross_entropy(logits, labels)
    loss.backward()
    gradients = {name: p.grad.detach().clone() for name, p in model.named_parameters()}
    losses, norms, after, final = train(model_in(spec, state, dtype), ids, labels)
    return {"model": model, "logits": logits.detach(), "hidden": hidden, "loss": loss.item(),
            "gradients": gradients, "losses": losses, "norms": norms, "after": after,
            "final": final}


def rounded_to_bf16(spec, state, ids, labels):
    """Logits and loss in float64 of the weights rounded to bf16."""
    model = model_in(spec, {name: t.bfloat16() for name, t in state.items()}, torch.float64)
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits
        return logits, cross_entropy(logits, labels).item()


def differences(narrow, wide, stored_name):
    """How far the fp32 run is from the float64 run."""
    names = list(narrow["gradients"])

    def by_name(kind, of):
        return {stored_name(n): of(narrow[kind][n], wide[kind][n]) for n in names}

    def root_mean_square(a, b):
        return (a.double() - b).pow(2).mean().sqrt().item()

    gradients, final = by_name("gradients", difference), by_name("final", difference)
    return three_digits({
        "logits": difference(narrow["logits"], wide["logits"]),
        "loss": abs(narrow["loss"] - wide["loss"]),
        "hidden": [difference(a, b) for a, b in zip(narrow["hidden"], wide["hidden"])],
        "grad_worst": max(gradients.values()), "grad": gradients,
        "training_losses": max(abs(a - b) for a, b in zip(narrow["losses"], wide["losses"])),
        "training_norms_relative": max(abs(a - b) / b
                                       for a, b in zip(narrow["norms"], wide["norms"])),
        "final_worst": max(final.values()), "final": final,
        "final_root_mean_square": by_name("final", root_mean_square)})


def write(spec):
    folder = empty_folder("hf", spec["name"])
    config, ids_seed = spec["config"], spec["seed"] + 1
    config._attn_implementation = "eager"
    torch.manual_seed(spec["seed"])
    model = spec["model"](config).eval()
    randomise(model, spec["seed"])
    state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    save_model(model, folder)
    stored = safetensors.torch.load_file(folder / "model.safetensors")

    def stored_name(name):
        return name.replace("lm_head", "embed_out") if config.model_type == "gpt_neox" else name

    names = {stored_name(name) for name, _ in model.named_parameters()}
    assert names <= set(stored), names - set(stored)

    ids, labels = make_batch(ids_seed, spec["batch"], spec["length"], config.vocab_size)
    narrow = computed(spec, state, torch.float32, ids, labels)
    tokens, gap = greedy(narrow["model"], ids[0, :PROMPT_TOKENS], False)
    assert tokens == greedy(narrow["model"], ids[0, :PROMPT_TOKENS], True)[0], "the cache differs"
    with Float64():
        wide = computed(spec, state, torch.float64, ids, labels)
        logits_bf16, loss_bf16 = rounded_to_bf16(spec, state, ids, labels)

    golden = {"input_ids": ids, "labels": labels, "logits": narrow["logits"]}
    golden |= {f"hidden.{i}": tensor for i, tensor in enumerate(narrow["hidden"])}
    golden |= {f"grad.{stored_name(n)}": g for n, g in narrow["gradients"].items()}
    golden |= {f"final.{stored_name(n)}": p for n, p in narrow["final"].items()}
    save_tensors(folder / "golden.safetensors", golden)
    save_tensors(folder / "golden_bf16.safetensors", {"logits": logits_bf16.float()})

    top = narrow["logits"][:, -1].topk(5)
    apart = differences(narrow, wide, stored_name)
    save_json(folder / "golden.json", {
        "name": spec["name"], "model_class": type(model).__name__, "B": spec["batch"],
        "T": spec["length"], "V": config.vocab_size, "note": spec["note"],
        "parameters": sum(p.numel() for p in model.parameters()),
        "tensors_in_file_that_are_not_parameters": sorted(set(stored) - names),
        "labels_counted": int((labels != -100).sum()),
        "loss": narrow["loss"], "loss_float64": wide["loss"],
        "loss_float64_of_bf16_weights": loss_bf16,
        "greedy": {"prompt": ids[0, :PROMPT_TOKENS].tolist(), "tokens": tokens,
                   "smallest_gap_of_top_two": gap},
        "top5_at_last_position": [
            {"row": b, "ids": top.indices[b].tolist(), "logits": top.values[b].tolist()}
            for b in range(spec["batch"])],
        "training": {"optimizer": TRAINING, "losses": narrow["losses"],
                     "gradient_norms_before_clip": narrow["norms"], "loss_after": narrow["after"],
                     "losses_float64": wide["losses"],
                     "gradient_norms_before_clip_float64": wide["norms"],
                     "loss_after_float64": wide["after"]},
        "max_abs": {"logits": narrow["logits"].abs().max().item(),
                    "grad": max(g.abs().max().item() for g in narrow["gradients"].values())},
        "max_abs_difference_fp32_float64": apart,
        "final_holds_rounding_noise": [name for name, worst in apart["final"].items()
                                       if worst > 2e-6],
        "max_abs_difference_bf16_weights_float64":
            three_digits(difference(logits_bf16, wide["logits"])),
        "versions": versions(transformers=transformers.__version__)})
    for file in folder.iterdir():
        file.chmod(0o644)
    check(spec, folder)


def check(spec, folder):
    """Loads the model from the folder, by both configurations, and expects the same logits."""
    golden = safetensors.torch.load_file(folder / "golden.safetensors")
    record = json.loads((folder / "golden.json").read_text())
    model = spec["model"].from_pretrained(folder, dtype=torch.float32,
                                          attn_implementation="eager").eval()
    with torch.no_grad():
        logits = model(input_ids=golden["input_ids"], use_cache=False).logits
    assert torch.equal(logits, golden["logits"]), f"{spec['name']}: the reloaded logits differ"
    assert torch.isfinite(logits).all() and logits.std() > 0.2, logits.std()
    assert abs(cross_entropy(logits, golden["labels"]).item() - record["loss"]) < 1e-6
    older = folder / "config.v4.json"
    if older.exists():
        config = type(spec["config"]).from_dict(json.loads(older.read_text()))
        config._attn_implementation = "eager"
        other = spec["model"](config).eval()
        other.load_state_dict(model.state_dict())
        with torch.no_grad():
            again = other(input_ids=golden["input_ids"], use_cache=False).logits
        assert torch.equal(again, logits), f"{spec['name']}: config.v4.json is another model"
    print(f"{spec['name']}: {record['parameters']} parameters, loss {record['loss']:.4f} to "
          f"{record['training']['loss_after']:.4f} in ten steps")


def specs():
    shared = {"vocab_size": 101, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    return [
        {"name": "gpt_neox", "seed": 102, "batch": 2, "length": 23, "model": GPTNeoXForCausalLM,
         "note": "parallel residual, rotary on 4 of 16 dimensions of each head, exact GELU, "
                 "untied; query_key_value is laid out head by head (q|k|v each)",
         "config": GPTNeoXConfig(
             hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=61,
             hidden_act="gelu", max_position_embeddings=48, use_parallel_residual=True,
             rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                              "partial_rotary_factor": 0.25},
             tie_word_embeddings=False, attention_bias=True, **shared)},
        {"name": "gpt2", "seed": 233, "batch": 2, "length": 23, "model": GPT2LMHeadModel,
         "note": "tied head, gelu_new (tanh form), learned positions, Conv1D weights [in, out]",
         "config": GPT2Config(
             n_positions=32, n_embd=36, n_layer=2, n_head=3, n_inner=77,
             activation_function="gelu_new", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
             tie_word_embeddings=True, **shared)},
        {"name": "llama_gqa", "seed": 343, "batch": 3, "length": 23, "model": LlamaForCausalLM,
         "note": "4 query heads on 2 key-value heads; the llama3 rope scaling has one frequency "
                 "or more in each of its three bands; untied",
         "config": LlamaConfig(
             hidden_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=61, max_position_embeddings=512, rms_norm_eps=1e-5,
             rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
                              "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                              "original_max_position_embeddings": 256},
             tie_word_embeddings=False, **shared)},
        {"name": "qwen3_tied", "seed": 465, "batch": 2, "length": 23, "model": Qwen3ForCausalLM,
         "note": "RMSNorm of each head of q and k before the rotation, head_dim 12 where d/H is "
                 "9, tied head",
         "config": Qwen3Config(
             hidden_size=36, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             head_dim=12, intermediate_size=61, max_position_embeddings=512, rms_norm_eps=1e-6,
             rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
             tie_word_embeddings=True, **shared)},
        {"name": "gpt_neo", "seed": 511, "batch": 2, "length": 23, "model": GPTNeoForCausalLM,
         "note": "global and local attention in turn, a window of 5 tokens; scores are not divided "
                 "by the square root of the head width; tied head",
         "config": GPTNeoConfig(
             hidden_size=24, num_layers=4, num_heads=2, intermediate_size=45, window_size=5,
             attention_types=[[["global", "local"], 2]], max_position_embeddings=32,
             activation_function="gelu_new", tie_word_embeddings=True, **shared)},
        {"name": "qwen2_mixed", "seed": 620, "batch": 2, "length": 23, "model": Qwen2ForCausalLM,
         "note": "one layer with full attention, then two with a sliding window of 6 tokens; "
                 "biases of q, k and v; untied",
         "config": Qwen2Config(
             hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=45, max_position_embeddings=512, rms_norm_eps=1e-6,
             use_sliding_window=True, sliding_window=6, max_window_layers=1,
             rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
             tie_word_embeddings=False, **shared)},
    ]


def main():
    deterministic()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for spec in specs():
        if len(sys.argv) == 1 or spec["name"] in sys.argv[1:]:
            write(spec)


if __name__ == "__main__":
    main()
