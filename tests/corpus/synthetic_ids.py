#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/corpus/synthetic_ids.py V SEED LANE COUNT [AT] - prints ids of data.train=synthetic from position AT on, from the
description in docs/corpora.md alone, and the loss of the best possible model and of one that knows the
frequencies only. tests/corpus/synthetic_test.c has some of these numbers.

The random numbers are Philox4x32-10 (Salmon et al. 2011, random123), with the counters of base/random.h."""
import math
import sys

SITE = (1 << 30) + 5
MASK = 0xffffffff


def philox(key, counter):
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def words(seed, lane, index):
    """The four random words of a position."""
    first = philox((seed & MASK, seed >> 32), (0, 0, SITE, lane))
    return philox(first[:2], (index & MASK, 0, index >> 32, first[2]))


def successor(V, seed):
    w = words(seed, MASK, 0)
    a = 1
    for i in range(4096):
        tried = (w[0] % V + i) % V
        if tried >= 2 and math.gcd(tried, V) == 1:
            a = tried
            break
    return a, w[1] % V


def ids(V, seed, lane, count):
    a, c = successor(V, seed)
    octaves, last = V.bit_length(), 0
    for i in range(count):
        w = words(seed, lane, i)
        if i and w[0] < 3 << 30:
            last = (a * last + c) % V
        else:
            e = w[1] * octaves >> 32
            last = ((1 << e) - 1 + (w[2] & ((1 << e) - 1))) % V
        yield last


def losses(V, seed):
    """Nats per token: given the id before, and of the stationary frequencies."""
    a, c = successor(V, seed)
    octaves = V.bit_length()
    z = [0.0] * V
    for e in range(octaves):
        for k in range((1 << e) - 1, (2 << e) - 1):
            z[k % V] += 1 / octaves / (1 << e)
    pi = z[:]
    for _ in range(200):
        new = [p / 4 for p in z]
        for x in range(V):
            new[(a * x + c) % V] += 0.75 * pi[x]
        pi = new
    drawn = -sum(p / 4 * math.log(p / 4) for p in z)
    best = 0.0
    for x in range(V):
        y = z[(a * x + c) % V] / 4
        best += pi[x] * (drawn + y * math.log(y) - (y + 0.75) * math.log(y + 0.75))
    return best, -sum(p * math.log(p) for p in pi if p > 0)


if __name__ == "__main__":
    V, seed, lane, count = (int(word) for word in sys.argv[1:5])
    at = int(sys.argv[5]) if len(sys.argv) > 5 else 0
    print(*list(ids(V, seed, lane, at + count))[at:])
    print("a and c %d %d, loss %.4f, of frequencies alone %.4f" % (*successor(V, seed), *losses(V, seed)))
