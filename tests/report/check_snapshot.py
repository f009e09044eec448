#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_snapshot.py HEADROOM - snapshots of plan --snapshot are pickles of plain values; the trace never has two
ranges at one address and comes to the planned bytes, and the blocks tile the arena. Where PyTorch is, its own
reader opens them."""
import bisect
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(f"the pickle asks for {module}.{name}")


def check(program, folder, words):
    path = pathlib.Path(folder, "plan.pickle")
    told = subprocess.run([program, "plan", *words, "--json", "--snapshot", path], check=True, capture_output=True)
    plan = json.loads(told.stdout)
    with path.open("rb") as file:
        snapshot = Plain(file).load()
    live, starts, now, most, events = {}, [], 0, 0, snapshot["device_traces"][0]
    for event in events:
        addr, size = event["addr"], event["size"]
        assert len(event["frames"]) == 2 and all(frame["name"] for frame in event["frames"])
        if event["action"] == "alloc":
            at = bisect.bisect(starts, addr)
            assert at == 0 or starts[at - 1] + live[starts[at - 1]] <= addr, "two ranges at one address"
            assert at == len(starts) or addr + size <= starts[at], "two ranges at one address"
            starts.insert(at, addr)
            live[addr] = size
            now += size
        elif event["action"] == "free_completed":
            assert live.pop(addr) == size, "what is released was not allocated"
            starts.remove(addr)
            now -= size
        most = max(most, now)
    assert most == plan["floor_bytes"], f"{words}: {most} bytes at most, {plan['floor_bytes']} planned"
    assert now == 0, f"{words}: {now} bytes are never released"
    segment = snapshot["segments"][0]
    at = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == at, "the blocks leave a gap"
        at += block["size"]
    assert at - segment["address"] == segment["total_size"] == plan["arena_bytes"]
    active = sum(block["size"] for block in segment["blocks"] if block["state"] == "active_allocated")
    assert active == plan["floor_bytes"]
    return snapshot, len(events)


def main():
    program, events, read = sys.argv[1], 0, "not here"
    with tempfile.TemporaryDirectory() as folder:
        for words in (["small/llama"], ["pythia-70m", "--budget", "2GiB"], ["small/wide", "train.threads=1"],
                      ["small/gpt2", "train.optimizer.clip=0"], ["quickstart", "memory.micro_batch=1"]):
            snapshot, count = check(program, folder, words)
            events += count
            try:
                import torch.cuda._memory_viz as reader
            except ImportError:
                continue
            assert "total_reserved" in reader.segsum(snapshot)
            assert "entries" in reader.trace(snapshot) and "html" in reader.trace_plot(snapshot)
            read = "reads them"
        path = pathlib.Path(folder, "other")
        path.write_text("of somebody", encoding="ascii")
        done = subprocess.run([program, "plan", "small/llama", "--snapshot", path], capture_output=True, check=False)
        assert done.returncode == 2 and path.read_text(encoding="ascii") == "of somebody"
    print(f"snapshots: {events} events replayed; PyTorch {read}")


if __name__ == "__main__":
    main()
