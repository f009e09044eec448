#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/oracles/make_formats.py > tests/oracles/formats.h - the numbers of F16 and F8_E4M3 by PyTorch.

The FNV-1a hashes of the fp32 bits, little-endian, of all codes in order; each NaN counts as 0x7fc00000.
The tests hash their own plain arithmetic in the same way."""
import torch


def fnv(values):
    bits = values.to(torch.float32).view(torch.int32)
    bits = torch.where(torch.isnan(values), torch.tensor(0x7FC00000, dtype=torch.int32), bits)
    hashed = 0xCBF29CE484222325
    for byte in bits.numpy().tobytes():
        hashed = (hashed ^ byte) * 0x100000001B3 % (1 << 64)
    return hashed


def main():
    halves = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int16).roll(1 << 15).view(torch.float16)
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* oracles/formats.h - hashes of all numbers, by make_formats.py with PyTorch. */")
    print("#define ORACLE_F16_HASH UINT64_C(0x%016x)" % fnv(halves.to(torch.float32)))
    print("#define ORACLE_E4M3_HASH UINT64_C(0x%016x)" % fnv(codes.to(torch.float32)))


main()
