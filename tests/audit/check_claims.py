#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_claims.py PROGRAM CLAIMS.yaml EXPECTED.json - compares `audit --json` with expected values.

Each row of EXPECTED.json has the right value as a number, and as an expression that Python computes
again here with its own integers, so that neither depends on the program.
"""
import json
import subprocess
import sys


def main():
    program, claims, expected_path = sys.argv[1:4]
    with open(expected_path, encoding="utf-8") as file:
        expected = json.load(file)
    run = subprocess.run([program, "audit", claims, "--json"], capture_output=True, text=True)
    answer = json.loads(run.stdout)
    failures = []
    wrong = any(row["verdict"] != "true" for row in expected)
    if run.returncode != (4 if wrong else 0):
        failures.append(f"exit code {run.returncode}: {run.stderr}")
    if len(answer["claims"]) != len(expected):
        failures.append(f"{len(answer['claims'])} claims instead of {len(expected)}")
    for row, claim in zip(expected, answer["claims"]):
        value = eval(row["how"], {"__builtins__": {}})  # data of this repository
        name = f"{row['where']} {row['claim']}"
        if abs(value - row["right"]) > 1e-9 * abs(value):
            failures.append(f"{name}: {row['how']} is {value}, not {row['right']}")
        if claim["claim"] != row["claim"] or claim["where"] != row["where"]:
            failures.append(f"{name}: the program read {claim['where']} {claim['claim']}")
        if claim["verdict"] != row["verdict"]:
            failures.append(f"{name}: verdict {claim['verdict']} instead of {row['verdict']}")
        if abs(claim["right"] - value) > 1e-9 * abs(value):
            failures.append(f"{name}: right value {claim['right']} instead of {value}")
        if isinstance(value, int) and claim["right"] != value:
            failures.append(f"{name}: {claim['right']} is not exactly {value}")
    print("\n".join(failures) or f"{len(expected)} claims agree")
    return bool(failures)


sys.exit(main())
