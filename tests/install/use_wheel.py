# SPDX-License-Identifier: Apache-2.0
"""use_wheel.py - plans and trains with the installed package; packaging/check-wheel runs it."""
import os
import signal
import threading

import headroom

# Ten lines that plan and train.
recipe = {"model": {"d_model": 64, "n_layers": 2, "n_heads": 2}, "data": {"tokenizer": "bytes", "train": "text.txt"},
          "train": {"batch": 4, "seq_len": 64, "steps": 5}}
planned = headroom.plan(recipe, budget="1GiB")
losses = []
last = headroom.train(recipe, "train.sample_tokens=none", out="run", budget="1GiB",
                      callback=lambda step: losses.append(step["loss"]))
print(f"planned {planned['process_bytes']}, measured {last['process_bytes_measured']}, losses {losses}")

assert planned["fits"] and planned["process_bytes"] == last["process_bytes_planned"]
assert last["process_bytes_measured"] <= last["process_bytes_planned"]
assert len(losses) == 5 and losses[-1] < losses[0]
refused = headroom.plan(recipe, budget="1MiB")
assert not refused["fits"] and refused["minimum_bytes"] > 2**20
for words in (["model.d_modle=3"], ["model.n_heads=3"]):
    try:
        headroom.plan(recipe, *words)
        raise SystemExit(f"{words} was accepted")
    except headroom.Error as error:
        assert error.code == 2 and "model." in str(error), error

try:
    headroom.train(recipe, "train.sample_tokens=none", "train.batch=8", out="run", budget=1e9)
    raise SystemExit("a changed recipe went on with the run")
except headroom.Error as error:
    assert error.code == 2 and "train.batch was" in str(error) and "--allow-change" in str(error), error
os.remove("run/metrics.jsonl")
assert headroom.train(recipe, "train.sample_tokens=none", out="run", budget=1e9) == {}

# A shell starts what runs in its background with SIGINT ignored, and Python then leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupt(step):
    if step["step"] == 20:
        threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()


try:
    headroom.train(recipe, "train.steps=1000000", "train.sample_tokens=none", out="long", callback=interrupt)
    raise SystemExit("the interrupt was lost")
except KeyboardInterrupt:
    saved = os.listdir("long/checkpoints")
    assert len(saved) == 1 and int(saved[0].removeprefix("step-")) >= 20, saved


def fail(step):
    raise ValueError(step["step"])


try:
    headroom.train(recipe, "train.sample_tokens=none", "train.steps=1000000", out="failed", callback=fail)
    raise SystemExit("an exception of the callback was lost")
except ValueError:
    assert os.listdir("failed/checkpoints")
print(f"saved {saved[0]} at an interrupt")
