# SPDX-License-Identifier: Apache-2.0
"""Plans and trains language models within a memory budget.

    import headroom
    print(headroom.plan("quickstart", budget="64MiB")["process_bytes"])
    headroom.train("quickstart", "data.train=text.txt", out="run", callback=lambda step: print(step["loss"]))

Both run the program of this package in a process of its own: what it plans is what that process takes, without the
memory of Python. A recipe is a preset, a YAML file, or a dictionary such as {"model": {"d_model": 64}}; words after
it are key=value."""
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile

__version__ = "0.1.0"
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "headroom")
NO_FIT, SAVED = 3, 75  # exit codes: docs/exit-codes.md
_LIBC, _PR_SET_PDEATHSIG = ctypes.CDLL(None), 1
_SENTENCES = 8  # of an error: keys that changed, and what that means


class Error(Exception):
    """What the program says, and its exit code."""

    def __init__(self, code, sentence):
        super().__init__(code, sentence)
        self.code = code

    def __str__(self):
        return self.args[1]


def _plain(value):
    """A path, or a number of numpy, in a dictionary."""
    return value.item() if hasattr(value, "item") else os.fspath(value)


def _words(recipe, words, folder):
    if isinstance(recipe, dict):
        path = os.path.join(folder, "recipe.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(recipe, file, ensure_ascii=False, default=_plain)  # JSON is YAML
        recipe = path
    return [os.fspath(recipe), *(os.fsdecode(word) if isinstance(word, bytes) else str(word) for word in words)]


def _fail(code, told):
    """With the last sentences; the command that --allow-change would need is of a recipe that is gone."""
    lines = [line for line in told.splitlines() if line.startswith("headroom: ")]
    lines = [line.removeprefix("headroom: ") for line in lines if not line.startswith("headroom: to go on with")]
    raise Error(code, "\n".join(lines[-_SENTENCES:]) or told.strip() or f"the program ended with code {code}")


def _text(value):
    """A word of the command: 64e6 is a number of bytes."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _end_with_python():
    """In the new process: SIGTERM, which saves, when the thread that trains ends with Python."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _last_line(out):
    """Of the log of a run that was complete before; nothing if it is gone."""
    try:
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as lines:
            return json.loads((list(lines) or ["{}"])[-1])
    except FileNotFoundError:
        return {}


def plan(recipe, *words, budget=None, device=None):
    """The plan of a recipe as a dictionary, the members of `headroom plan --json`. A recipe that does not fit has
    fits: False, and the changes that would help. Raises Error for what is no recipe."""
    with tempfile.TemporaryDirectory() as folder:
        command = [PROGRAM, "plan", *_words(recipe, words, folder), "--json"]
        for name, value in (("--budget", budget), ("--device", device)):
            command += [name, _text(value)] if value is not None else []
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode not in (0, NO_FIT) or not done.stdout:
        _fail(done.returncode, done.stderr)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise Error(2, "the words make no plan: " + " ".join(map(str, words))) from None


def train(recipe, *words, out=None, budget=None, callback=None, fresh=False):
    """Trains a recipe, or resumes the run in `out`. Calls callback(step) with each step of docs/log.md, and returns
    the last line: bytes planned and measured, and the validation loss. KeyboardInterrupt, and an exception of the
    callback, save first; a second KeyboardInterrupt ends at once. Raises Error for a refusal."""
    with tempfile.TemporaryDirectory() as folder:
        command = [PROGRAM, "train", *_words(recipe, words, folder)]
        for name, value in (("--out", out), ("--budget", budget)):
            command += [name, os.fspath(value) if name == "--out" else _text(value)] if value is not None else []
        command += ["--fresh"] if fresh else []
        read, write = os.pipe()
        command += ["--metrics", f"/dev/fd/{write}"]
        told = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace", dir=folder)
        last, ended = {}, None
        with os.fdopen(read, encoding="utf-8", errors="replace") as lines:
            # Of its own session: a Ctrl-C at the terminal is passed on from here.
            try:
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=told, pass_fds=[write],
                                           start_new_session=True, preexec_fn=_end_with_python)
            finally:
                os.close(write)
            while True:
                try:
                    for line in lines:
                        last = json.loads(line)
                        if callback and "step" in last and not ended:
                            callback(last)
                    process.wait()
                    break
                except BaseException as error:  # pylint: disable=broad-except
                    if not ended or isinstance(error, KeyboardInterrupt):
                        process.send_signal(signal.SIGINT)
                    ended = ended or error
        told.seek(0)
        text = told.read()
    if ended:
        raise ended
    if process.returncode:
        _fail(process.returncode, text)
    return last or (_last_line(out) if out is not None else {})


def main():
    """The command `headroom` of an environment."""
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
