/* SPDX-License-Identifier: Apache-2.0 */
/* oracles/formats.h - hashes of all numbers, by make_formats.py with PyTorch. */
#define ORACLE_F16_HASH UINT64_C(0x1f87f165810ea7c5)
#define ORACLE_E4M3_HASH UINT64_C(0xdad1d9c50f749ca5)
