#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_moments.py HEADROOM - tools/read-moments decodes the int8 moments of checkpoints: after one step they
are those of a run with fp32 moments, up to half a step of the codes. A run that goes on in another format has
begun its second step with the moments that its checkpoint had."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = [("llama", "fp32", []), ("llama", "bf16", ["model.d_ff=201"]), ("gpt2", "fp32", ["model.d_ff=200"]),
         ("gpt2", "bf16", []), ("yxanul", "bf16", []), ("needle", "fp32", ["model.d_ff=301"])]


BETAS = {"moment_1": 0.9, "moment_2": 0.999}


def train(program, folder, run, keys):
    subprocess.run([program, "train", *keys, "train.sample_tokens=0", "train.schedule.kind=constant",
                    "train.schedule.warmup_steps=0", "train.optimizer.beta1=0.9", "train.optimizer.beta2=0.999",
                    f"data.train={folder}/text.txt", "--out", f"{folder}/{run}"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def read(folder, run, step, name):
    """The moments of a step as numbers, whatever their format."""
    told = subprocess.run([ROOT / "tools" / "read-moments", f"{folder}/{run}/checkpoints/step-{step:012}", name],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    return {line["name"]: line["values"] for line in map(json.loads, told.splitlines())}


def compare(what, got, exact, far):
    """Whether all values are near; far says of a value, what it should be, and the largest one."""
    assert got.keys() == exact.keys(), f"{what}: other tensors"
    for tensor, values in exact.items():
        assert len(got[tensor]) == len(values), f"{what} {tensor}: {len(got[tensor])} values, not {len(values)}"
        most = max(map(abs, values))
        count = sum(far(a, b, most) for a, b in zip(got[tensor], values))
        assert count == 0, f"{what} {tensor}: {count} differ"


def is_far_code(value, exact, most):
    # A code is within 7.1 % of what is above a tenth of its block; with a wrong scale few are.
    return abs(exact) > most / 10 and abs(value - exact) > 0.075 * abs(exact)


def is_far_twice(value, exact, most):
    # Rounded to a code before the step and after it.
    return abs(exact) > most / 10 and abs(value - exact) > 0.15 * abs(exact)


def is_far_bf16(value, exact, most):
    return abs(value - exact) > 2**-6 * abs(exact) + 2**-7 * most


def is_far(value, exact, most):
    return abs(value - exact) > 2e-6 * most


def check(program, folder, family, dtype, keys):
    shutil.rmtree(folder)
    pathlib.Path(folder).mkdir()
    pathlib.Path(folder, "text.txt").write_text("the quick brown fox jumps over it again\n" * 400, encoding="ascii")
    recipe = [f"small/{family}", f"train.dtype={dtype}", "model.n_layers=1", *keys]
    formats = ("fp32", "bf16", "int8")
    for moments in formats:
        train(program, folder, moments, [*recipe, f"train.state.moments={moments}", "train.steps=1"])
    for was in formats:
        for now in formats:
            if was == "fp32" or now != was:
                shutil.copytree(f"{folder}/{was}", f"{folder}/{was}-{now}")
                train(program, folder, f"{was}-{now}", [*recipe, f"train.state.moments={now}", "train.steps=2",
                                                        "--allow-change", "train.state.moments"])
    for name in ("moment_1", "moment_2"):
        case = f"{family} {dtype} {name}"
        first = {moments: read(folder, moments, 1, name) for moments in formats}
        compare(f"{case} int8", first["int8"], first["fp32"], is_far_code)
        # The second step has the same gradient in every run: first moments are rounded after the first update.
        second = read(folder, "fp32-fp32", 2, name)
        for was in formats[1:]:
            exact = {tensor: [value + BETAS[name] * (rounded - before) for value, rounded, before in
                              zip(values, first[was][tensor], first["fp32"][tensor])]
                     for tensor, values in second.items()}
            compare(f"{case} {was} to fp32", read(folder, f"{was}-fp32", 2, name), exact, is_far)
            other = "int8" if was == "bf16" else "bf16"
            compare(f"{case} {was} to {other}", read(folder, f"{was}-{other}", 2, name), exact,
                    is_far_twice if other == "int8" else is_far_bf16)
        compare(f"{case} fp32 to int8", read(folder, "fp32-int8", 2, name), second, is_far_twice)
        compare(f"{case} fp32 to bf16", read(folder, "fp32-bf16", 2, name), second, is_far_bf16)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            check(sys.argv[1], folder, *case)
    print(f"moments: {len(CASES)} checkpoints decoded, and gone on with in other formats")


if __name__ == "__main__":
    main()
