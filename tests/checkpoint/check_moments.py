#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_moments.py HEADROOM - tools/read-moments decodes the int8 moments of checkpoints: after one step they
are those of a run with fp32 moments, up to half a step of the codes."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = [("llama", "fp32", []), ("llama", "bf16", ["model.d_ff=201"]), ("gpt2", "fp32", ["model.d_ff=200"]),
         ("gpt2", "bf16", []), ("yxanul", "bf16", []), ("needle", "fp32", ["model.d_ff=301"])]


def plain(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    for name, entry in header.items():
        if name != "__metadata__":
            first, last = (8 + size + offset for offset in entry["data_offsets"])
            yield name, struct.unpack(f"<{(last - first) // 4}f", data[first:last])


def check(program, folder, family, dtype, keys):
    for moments in ("fp32", "int8"):
        subprocess.run([program, "train", f"small/{family}", f"train.dtype={dtype}", "train.steps=1",
                        f"train.state.moments={moments}", f"data.train={folder}/text.txt", *keys,
                        "train.sample_tokens=0", "--out", f"{folder}/{moments}", "--fresh"],
                       check=True, stdout=subprocess.DEVNULL)
    step = "checkpoints/step-000000000001"
    for name in ("moment_1", "moment_2"):
        told = subprocess.run([ROOT / "tools" / "read-moments", f"{folder}/int8/{step}", name],
                              check=True, stdout=subprocess.PIPE, text=True).stdout
        decoded = {line["name"]: line["values"] for line in map(json.loads, told.splitlines())}
        exact = dict(plain(pathlib.Path(folder, "fp32", step, f"{name}.safetensors")))
        assert decoded.keys() == exact.keys(), f"{family} {dtype}: other tensors"
        for tensor, values in exact.items():
            got = decoded[tensor]
            assert len(got) == len(values), f"{tensor}: {len(got)} values, not {len(values)}"
            # A code is within 7.1 % of what is above a tenth of its block; with a wrong scale few are.
            large = max(map(abs, values)) / 10
            far = sum(abs(a - b) > 0.075 * abs(b) for a, b in zip(got, values) if abs(b) > large)
            assert far == 0, f"{family} {dtype} {name} {tensor}: {far} differ"


def main():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "text.txt").write_text("the quick brown fox jumps over it again\n" * 400, encoding="ascii")
        for case in CASES:
            check(sys.argv[1], folder, *case)
    print(f"moments: {len(CASES)} checkpoints decoded")


if __name__ == "__main__":
    main()
