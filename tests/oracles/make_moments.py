#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_moments.py - writes tests/oracles/moments.h: the dynamic maps of bitsandbytes, and the codes and
scales that it gives to some moments in blocks of 256 elements. Needs torch and bitsandbytes 0.50.2.

The tensors are passed in fp64, which bitsandbytes takes through its code in PyTorch (convert to fp32,
multiply by 1 / the largest magnitude, nearest value of the map). Its fp32 kernel for the CPU does not
always choose the nearest value."""
import pathlib

import bitsandbytes.functional as functional
import numpy
import torch

BLOCK = 256
COUNT = 2 * BLOCK + 44


def put(lines, name, numbers, digits, kind):
    lines.append(f"static const {kind} {name}[{len(numbers)}] = {{")
    each = 88 // (digits + 4)
    for i in range(0, len(numbers), each):
        lines.append("    " + ", ".join(f"0x{n:0{digits}x}" for n in numbers[i : i + each]) + ",")
    lines.append("};")


def main():
    random = numpy.random.default_rng(8)
    lines = ["/* SPDX-License-Identifier: Apache-2.0 */",
             "/* tests/oracles/moments.h - written by make_moments.py: bits of fp32 numbers, and codes. */",
             "/* clang-format off */", "#include <stdint.h>", "", f"enum {{ ORACLE_MOMENTS = {COUNT} }};"]
    for name, signed in (("signed", True), ("unsigned", False)):
        code = functional.create_dynamic_map(signed)
        sizes = 10.0 ** random.uniform(-9, 0, COUNT)
        values = (random.standard_normal(COUNT) * sizes).astype(numpy.float32)
        if not signed:
            values = values * values
        values[::37] = 0
        codes, scales = torch.ops.bitsandbytes.quantize_blockwise(
            torch.from_numpy(values.astype(numpy.float64)), code, BLOCK)
        bits = lambda array: array.astype(numpy.float32).view(numpy.uint32).tolist()
        put(lines, f"oracle_map_{name}", bits(code.numpy()), 8, "uint32_t")
        put(lines, f"oracle_moments_{name}", bits(values), 8, "uint32_t")
        put(lines, f"oracle_scales_{name}", bits(scales.numpy()), 8, "uint32_t")
        put(lines, f"oracle_codes_{name}", codes.numpy().tolist(), 2, "uint8_t")
    lines.append("/* clang-format on */")
    (pathlib.Path(__file__).parent / "moments.h").write_text("\n".join(lines) + "\n")


main()
