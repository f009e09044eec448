# SPDX-License-Identifier: Apache-2.0
"""tools/runs.py - starts and stops runs of headroom train and reads what they leave. Shared by
tools/trust and tools/rehearse."""
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
DIVERGED, SAVED, KILLED = 6, 75, -signal.SIGKILL
UNSAVED = (128 + signal.SIGTERM, 128 + signal.SIGINT)
# A signal that arrives before the program handles signals ends it in the default way.
DEFAULT = (-signal.SIGTERM, -signal.SIGINT)


class Broken(Exception):
    pass


def demand(true, sentence):
    if not true:
        raise Broken(sentence)


def load_soak():
    """The recipes and texts of tools/soak."""
    loader = importlib.machinery.SourceFileLoader("soak", str(HERE / "soak"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("soak", loader))
    loader.exec_module(module)
    return module


# ---- a run, its folder, its files


class Run:
    """One command with one --out, which may be started several times."""

    def __init__(self, program, words, out):
        self.program, self.words, self.out = str(program), [str(word) for word in words], out
        self.shelf, self.log = out / "checkpoints", out / "metrics.jsonl"
        self.process, self.code, self.said = None, None, ""

    def start(self, *more):
        self.began = time.monotonic()
        self.said_file = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [self.program, "train", *self.words, "--out", str(self.out), *more],
            stdout=self.said_file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def end(self):
        """Waits for the end and returns the exit code. The output is complete then."""
        code = self.code = self.process.wait(timeout=3600)
        self.said = self.saying()
        self.said_file.close()
        self.process = None
        return code

    def is_there(self):
        return self.process.poll() is None

    def saying(self):
        return os.pread(self.said_file.fileno(), 1 << 24, 0).decode("utf-8", "replace")

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def whole(self, *more):
        self.start(*more)
        code = self.end()
        demand(code == 0, f"ended with {code}: {self.said[-600:]}")

    def wait_for(self, is_so, seconds):
        """Waits until the condition holds, the run ends, or the time is over."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.is_there():
            if is_so():
                return True
            time.sleep(0.0005)
        return False

    def last_step(self):
        """The last step in the log on disk; 0: none."""
        try:
            with open(self.log, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 65536))
                lines = file.read().split(b"\n")[1 if file.tell() > 65536 else 0:-1]
        except FileNotFoundError:
            return 0
        steps = [re.match(rb'{"step":(\d+),', line) for line in lines]
        return max((int(step[1]) for step in steps if step), default=0)

    def steps(self):
        """Steps of the published checkpoints, the newest first."""
        names = os.listdir(self.shelf) if self.shelf.exists() else []
        return sorted((int(name[5:]) for name in names if name.startswith("step-")), reverse=True)

    def place(self, step):
        return self.shelf / f"step-{step:012}"

    def verify(self):
        """{step: problem or None} according to `headroom checkpoint verify`; {} without checkpoints."""
        done = subprocess.run([self.program, "checkpoint", "verify", str(self.out), "--json"],
                              capture_output=True, text=True, check=False)
        if not self.steps():
            demand(done.returncode == 2, f"verify without checkpoints ended with {done.returncode}")
            return {}
        found = {one["step"]: one.get("problem") for one in json.loads(done.stdout)}
        damaged = any(found.values())
        demand(done.returncode == (5 if damaged else 0), f"verify ended with {done.returncode}")
        return found

    def check_age(self, newest, every):
        """A kill costs at most one interval: a small checkpoint, as here, is published before the
        step after it is reported."""
        step = self.last_step()
        demand(step - newest <= every, f"stopped after step {step}, a checkpoint every {every}, and "
               f"the newest is of {newest}")
        return step - newest

    def resumed_from(self):
        """The step from which the last start resumed; 0: it started fresh."""
        found = re.findall(r"^resume .*/step-(\d+)$", self.said, re.M)
        return int(found[-1]) if found else 0

    def lines(self):
        lines = []
        for text in self.log.read_text(encoding="utf-8").split("\n")[:-1]:  # samples have U+0085
            line = json.loads(text)
            line.pop("clock", None)
            if "arena_bytes_planned" in line:
                line = {"valid_loss": line["valid_loss"]}
            lines.append(line)
        return lines

    def files(self):
        """Hashes of every tensor of the newest checkpoint and of the weights."""
        newest = self.place(self.steps()[0])
        paths = sorted(newest.glob("*.safetensors")) + [self.out / "model.safetensors"]
        paths += sorted((self.out / "average").glob("*.safetensors"))
        return {str(path.relative_to(self.out)): hashlib.md5(path.read_bytes()).hexdigest()
                for path in paths}

    def forget(self):
        shutil.rmtree(self.out, ignore_errors=True)


def compare(undisturbed, run, log=True):
    """Whether files and log lines are equal; log=False: lines may be missing, but none may differ."""
    files, same = undisturbed.files(), run.files()
    demand(files == same, f"files differ: {sorted(n for n in files if files[n] != same.get(n))}")
    lines, others = undisturbed.lines(), run.lines()
    if not log:
        known = {json.dumps(line, sort_keys=True) for line in lines}
        others = [line for line in others if line.get("event") not in ("trouble", "signal", "save")
                  and json.dumps(line, sort_keys=True) not in known]
        demand(not others, f"a line of the log that the other has not: {others[:1]}")
        return
    for line, other in zip(lines, others):
        demand(line == other, f"the log has {other}, and the other {line}")
    demand(len(lines) == len(others), f"the log has {len(others)} lines, the other {len(lines)}")


def flip(path, rng):
    """Flips one bit in place, so that hard links of the file see it too."""
    with open(path, "r+b") as file:
        at = rng.randrange(file.seek(0, os.SEEK_END))
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << rng.randrange(8)]))
    return at


# ---- a small model

SMALL = ["model.family=needle", "model.d_model=32", "model.n_layers=2", "model.n_heads=4",
         "model.d_ff=64", "model.vocab_size=256", "model.dropout=0.1", "train.batch=4",
         "train.seq_len=32", "train.sample_tokens=8", "train.sample_every=20",
         "train.eval_every=20", "train.eval_batches=4", "train.threads=1", "memory.micro_batch=2"]


def small_words(soak, folder, seed, *more):
    soak.write_texts(folder, random.Random(seed))
    recipe = folder / "small.yaml"
    recipe.write_text("", encoding="ascii")
    return [recipe, *SMALL, f"data.train={folder}/train.txt", f"data.valid={folder}/valid.txt",
            f"data.cache={folder}/cache", *more]
