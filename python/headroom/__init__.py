# SPDX-License-Identifier: Apache-2.0
"""Plans and trains language models within a memory budget.

    import headroom
    print(headroom.plan("quickstart", budget="64MiB")["process_bytes"])
    headroom.train("quickstart", "data.train=text.txt", out="run", callback=lambda step: print(step["loss"]))

Both run the program of this package in a process of its own: what it plans is what that process takes, without the
memory of Python. A recipe is a preset, a YAML file, or a dictionary such as {"model": {"d_model": 64}}; words after
it are key=value."""
import json
import os
import signal
import subprocess
import sys
import tempfile

__version__ = "0.1.0"
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "headroom")
NO_FIT, SAVED = 3, 75  # exit codes: docs/exit-codes.md


class Error(Exception):
    """What the program says, and its exit code."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


def _words(recipe, words, folder):
    if isinstance(recipe, dict):
        path = os.path.join(folder, "recipe.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(recipe, file)  # JSON is YAML
        recipe = path
    return [os.fspath(recipe), *map(str, words)]


def _fail(code, told):
    lines = told.strip().splitlines() or [f"the program ended with code {code}"]
    raise Error(code, lines[-1].removeprefix("headroom: "))


def plan(recipe, *words, budget=None, device=None):
    """The plan of a recipe as a dictionary, the members of `headroom plan --json`. A recipe that does not fit has
    fits: False, and the changes that would help. Raises Error for what is no recipe."""
    with tempfile.TemporaryDirectory() as folder:
        command = [PROGRAM, "plan", *_words(recipe, words, folder), "--json"]
        for name, value in (("--budget", budget), ("--device", device)):
            command += [name, str(value)] if value is not None else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, NO_FIT) or not done.stdout:
        _fail(done.returncode, done.stderr)
    return json.loads(done.stdout)


def train(recipe, *words, out=None, budget=None, callback=None, fresh=False):
    """Trains a recipe, or resumes the run in `out`. Calls callback(step) with each line of docs/log.md, and returns
    the last one: bytes planned and measured, and the validation loss. KeyboardInterrupt, and an exception of the
    callback, save first. Raises Error for a refusal."""
    with tempfile.TemporaryDirectory() as folder:
        read, write = os.pipe()
        command = [PROGRAM, "train", *_words(recipe, words, folder), "--metrics", f"/dev/fd/{write}"]
        for name, value in (("--out", out), ("--budget", budget)):
            command += [name, os.fspath(value) if name == "--out" else str(value)] if value is not None else []
        command += ["--fresh"] if fresh else []
        told = tempfile.TemporaryFile(mode="w+", encoding="utf-8", dir=folder)
        # Of its own session: a Ctrl-C at the terminal is passed on once, from here.
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=told, pass_fds=[write],
                                   start_new_session=True)
        os.close(write)
        last, ended = {}, None
        with os.fdopen(read, encoding="utf-8") as lines:
            while True:
                try:
                    for line in lines:
                        last = json.loads(line)
                        if callback and "step" in last and not ended:
                            callback(last)
                    process.wait()
                    break
                except BaseException as error:  # pylint: disable=broad-except
                    if not ended:
                        process.send_signal(signal.SIGINT)
                    ended = ended or error
        told.seek(0)
        text = told.read()
    if ended:
        raise ended
    if process.returncode:
        _fail(process.returncode, text)
    return last


def main():
    """The command `headroom` of an environment."""
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
