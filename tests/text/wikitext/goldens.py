#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the golden values of text_test.c for the two files beside this script, computed with
Python's own split and Counter. Needs the command `zstd`."""
import collections
import pathlib
import subprocess

VOCABULARY = 10000
SPECIAL = ["<pad>", "<unk>", "<sos>", "<eos>"]
FOLDER = pathlib.Path(__file__).resolve().parent


def words(name):
    text = subprocess.run(["zstd", "-dc", FOLDER / name], check=True, capture_output=True).stdout
    return text.decode().lower().split()


def digest(ids):
    value = 0
    for number in ids:
        value = (value * 1000003 + number) % 2**64
    return value


def main():
    train, valid = words("test.txt.zst"), words("valid.txt.zst")
    counter = collections.Counter(train)
    kept = [word for word, _ in counter.most_common(VOCABULARY - len(SPECIAL))]
    ids = {word: number for number, word in enumerate(kept, len(SPECIAL))}
    print("distinct words", len(counter), "of", sum(len(word.encode()) for word in counter), "bytes")
    print("words", (SPECIAL + kept)[:14], (SPECIAL + kept)[-1], len(SPECIAL + kept))
    for name, part in (("train", train), ("valid", valid)):
        numbers = [ids.get(word, 1) for word in part]
        covered = sum(word in ids for word in part)
        print(name, len(part), "covered", covered, hex(digest(numbers)))


if __name__ == "__main__":
    main()
