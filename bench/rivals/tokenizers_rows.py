#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokenizers_rows.py [--program P] [--rounds N] TEXT TOKENIZER... - megabytes of text per second, of the
program with one and with two threads and of the Python package tokenizers with one. The rounds alternate;
prints the best of each. The reference runs its fastest case, a batch of lines without offsets, and the
whole text at once, as the program does."""
import argparse
import json
import os
import pathlib
import subprocess
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

from tokenizers import Tokenizer  # noqa: E402  the environment must be set first


def program(path, words):
    done = subprocess.run([path, "tokenize", "count", "--json", *words], capture_output=True, check=True)
    return json.loads(done.stdout)


def timed(function):
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def main():
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("text")
    parse.add_argument("tokenizers", nargs="+")
    parse.add_argument("--program", default="build/headroom")
    parse.add_argument("--rounds", type=int, default=3)
    asked = parse.parse_args()
    whole = pathlib.Path(asked.text).read_text(encoding="utf-8")
    lines, size = whole.splitlines(keepends=True), len(whole.encode())
    print("| tokenizer | reference, lines | reference, whole | one thread | two threads | ratio, lines "
          "| ratio, whole | two to one |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for path in asked.tokenizers:
        reference = Tokenizer.from_file(str(pathlib.Path(path) / "tokenizer.json"))
        best = [float("inf")] * 4
        for _ in range(asked.rounds):
            for threads in (1, 2):
                row = program(asked.program, ["--tokenizer", path, "--threads", str(threads), asked.text])
                best[1 + threads] = min(best[1 + threads], row["seconds"])
            seconds, batch = timed(lambda: reference.encode_batch_fast(lines))
            best[0] = min(best[0], seconds)
            del batch
            seconds, one = timed(lambda: reference.encode(whole))
            best[1] = min(best[1], seconds)
            assert len(one.ids) == row["ids"]
            del one
        by_lines, at_once, single, double = (size / seconds / 1e6 for seconds in best)
        print(f"| {pathlib.Path(path).name} | {by_lines:.2f} | {at_once:.2f} | {single:.1f} | {double:.1f} | "
              f"{single / by_lines:.1f} | {single / at_once:.1f} | {double / single:.2f} |", flush=True)


main()
