#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_configs.py PROGRAM FOLDER EXPECTED.json - audits the training files of a folder.

Compares the settings that the program read with expected ones, numbers of parameters and of adapter
parameters with formulas of this script, and the keys that were not read with a list. On a device
that is too small it applies the patch to the file, audits it again, and expects it to fit with the
bytes that the patch promised. Of a file whose memory its authors have published, in GiB, the answer is
unknown or a range that has it.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

failures = []


def fail(name, text):
    failures.append(f"{name}: {text}")


def parameters(s):
    d, layers, vocabulary = s["d"], s["L"], s["V"]
    if s["family"] == "gpt2":
        head = vocabulary * d if s.get("untied") else 0
        positions = s.get("positions", 1024) * d
        return vocabulary * d + head + positions + layers * (12 * d * d + 13 * d) + 2 * d
    q, kv = s["H"] * s["K"], s["G"] * s["K"]
    layer = 2 * d * q + 2 * d * kv + 3 * d * s["F"] + 2 * d
    if s["family"] == "qwen2":
        layer += q + 2 * kv
    if s["family"] == "qwen3":
        layer += 2 * s["K"]
    return vocabulary * d * (1 if s.get("tied") else 2) + d + layers * layer


def adapters(s, rank, targets, layers):
    d, q, kv, f = s["d"], s["H"] * s["K"], s["G"] * s["K"], s["F"]
    sides = {"q_proj": d + q, "k_proj": d + kv, "v_proj": d + kv, "o_proj": q + d,
             "gate_proj": d + f, "up_proj": d + f, "down_proj": f + d}
    names = list(sides) if targets == "all-linear" else targets.split(",")
    head = rank * (d + s["V"]) if "lm_head" in names else 0
    return rank * layers * sum(sides[name] for name in names if name != "lm_head") + head


def audit(program, path, arguments):
    run = subprocess.run([program, "audit", path, "--json", *arguments], capture_output=True,
                         text=True)
    return run.returncode, json.loads(run.stdout) if run.stdout else None, run.stderr


def keys_of(lines):
    """The keys that lines set, with their section in front."""
    keys, section = [], ""
    for line in lines.split("\n"):
        key, _, value = line.strip().strip('"').partition(":")
        if line.startswith("  "):
            keys += [] if key.startswith("#") else [f"{section}.{key}"]
        elif value.strip():
            keys.append(key.strip('"'))
        else:
            section = key
    return keys


def top_level(text):
    """The blocks of a file: a top-level line with the indented lines and lists below it."""
    return re.findall(r"^(?:[^\s-].*|\s*)(?:\n(?:[ ]+.*|-.*|#.*))*", text, re.M)


def key_of(block):
    return block.partition(":")[0].strip().strip('"')


def merged(old, new):
    """A section of the file with the entries of `new`, and without those that "# remove" names."""
    entries = new.split("\n")[1:]
    gone = {line.split()[-1] for line in entries if line.strip().startswith("# remove ")}
    entries = [line for line in entries if not line.strip().startswith("#")]
    gone |= {key_of(line) for line in entries}
    kept = [line for line in old.split("\n")[1:] if key_of(line) not in gone]
    return "\n".join([old.split("\n")[0], *entries, *kept])


def apply_to_yaml(text, lines):
    """Sets "key: value", or entries of a section, which keeps its other ones."""
    blocks = [block for block in top_level(text) if block.strip()]
    for new in top_level(lines):
        section = not new.split("\n")[0].partition(":")[2].strip()
        at = next((i for i, old in enumerate(blocks) if key_of(old) == key_of(new)), None)
        if at is None:
            blocks.append("\n".join(line for line in new.split("\n") if "# remove" not in line))
        else:
            blocks[at] = merged(blocks[at], new) if section else new
    return "\n".join(blocks) + "\n"


def patched(path, changes):
    """The content of a file after changes of it."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for change in changes:
        if path.endswith(".json"):
            content = json.loads(text)
            content.update(json.loads("{" + change["lines"].rstrip().rstrip(",") + "}"))
            text = json.dumps(content)
        else:
            text = apply_to_yaml(text, change["lines"])
    return text


def write_patched(path, changes, folder):
    """Copies a file with its folder's others, and changes it and the DeepSpeed file beside it."""
    source = os.path.dirname(path)
    for other in os.listdir(source):
        names = [os.path.basename(path), *(change["file"] for change in changes)]
        if other not in names:
            os.symlink(os.path.abspath(os.path.join(source, other)), os.path.join(folder, other))
    for name in {os.path.basename(path), *(c["file"] for c in changes if c["file"])}:
        own = [c for c in changes if (c["file"] or os.path.basename(path)) == name]
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(patched(os.path.join(source, name), own))
    return os.path.join(folder, os.path.basename(path))


def check_patch(program, path, row, arguments):
    name = row["file"]
    code, answer, _ = audit(program, path, [*arguments, "--device", row["device"]])
    estimate = answer["estimate"]
    if row.get("unknown"):
        if code != 7 or estimate["fits"] != "unknown":
            fail(name, f"exit code {code} on {row['device']}, expected 7")
        return
    if code != 3 or estimate["fits"] not in ("may", "no"):
        fail(name, f"exit code {code} on {row['device']}, expected 3")
        return
    patch = estimate["patch"]
    if row["patch"] is None:
        if patch["fits"]:
            fail(name, f"a patch fits {row['device']}, expected none")
        return
    if not patch["fits"]:
        fail(name, f"no patch fits {row['device']}")
        return
    needed = [change for change in patch["changes"] if change["needed"]]
    keys = [key for change in needed for key in keys_of(change["lines"])]
    if len(keys) > len(set(keys)):
        fail(name, f"the patch sets a key twice: {keys}")
    for change in needed:
        for line in row.get("patch_without", []):
            if line in change["lines"]:
                fail(name, f"the patch has {line}")
    if not all(any(word in change["lines"] for change in needed) for word in row["patch"]):
        fail(name, f"the patch is {[change['lines'] for change in needed]}")
    with tempfile.TemporaryDirectory() as folder:
        copy = write_patched(path, needed, folder)
        code, answer, error = audit(program, copy, [*arguments, "--device", row["device"]])
        if code != 0:
            fail(name, f"with its patch: exit code {code}: {error}")
        elif answer["estimate"]["high_bytes"] != patch["high_bytes"]:
            fail(name, f"with its patch {answer['estimate']['high_bytes']} bytes, not "
                       f"{patch['high_bytes']}")


def check_open(program, path, option):
    """A file that does not say its length, or its number of processes, has no verdict."""
    code, answer, _ = audit(program, path, ["--device", "h100"])
    said = any(f["decides"] and option in f["text"] for f in answer["findings"])
    if code != 7 or answer["estimate"]["fits"] != "unknown" or not said:
        fail(os.path.basename(path), f"exit code {code} without {option}")


def check(program, folder, row):
    name = row["file"]
    path = os.path.join(folder, name)
    arguments = [word.replace("{folder}", folder) for word in row.get("arguments", [])]
    code, answer, error = audit(program, path, arguments)
    if code != (7 if row.get("unknown") else 0):
        fail(name, f"exit code {code}: {error}")
        return
    low, high = (answer["estimate"][end] / 2**30 for end in ("low_bytes", "high_bytes"))
    if "published" in row and code != 7 and not low <= row["published"] <= high:
        fail(name, f"{low:.1f} to {high:.1f} GiB, and {row['published']} are published")
    for option in ("--length", "--processes"):
        if option in arguments and "--model" not in arguments and not row.get("unknown"):
            check_open(program, path, option)
    if answer["estimate"]["fits"] is not None:
        fail(name, f"fits is {answer['estimate']['fits']} without a device")
    if answer["kind"] != row["kind"]:
        fail(name, f"kind {answer['kind']}")
    settings = answer["settings"]
    for key, value in row["settings"].items():
        if settings[key] != value:
            fail(name, f"{key} is {settings[key]}, expected {value}")
    shape = row["shape"]
    if settings["parameters"] != parameters(shape):
        fail(name, f"{settings['parameters']} parameters, expected {parameters(shape)}")
    rank = row["settings"].get("lora_rank", 0)
    count = adapters(shape, rank, row["settings"]["lora_targets"],
                     row.get("layers", shape["L"])) if rank else 0
    if settings["adapter_parameters"] != count:
        fail(name, f"{settings['adapter_parameters']} adapter parameters, expected {count}")
    for component, factor in row.get("bytes_per_parameter", {}).items():
        found = answer["estimate"]["components"][component]
        if abs(found - factor * parameters(shape)) > 1e-3 * found:
            fail(name, f"{component}: {found} bytes, expected {factor} a parameter")
    if "trained" in row:
        if answer["estimate"]["trained_parameters"] != row["trained"]:
            fail(name, f"{answer['estimate']['trained_parameters']} trained, expected "
                       f"{row['trained']}")
        states = answer["estimate"]["components"]["optimizer states"]
        if abs(states - row["state_bytes"] * row["trained"]) > 1e-3 * states:
            fail(name, f"states of {states} bytes, expected {row['state_bytes']} a parameter")
    unread = sorted(k["key"] for k in answer["keys"] if k["state"] == "not read")
    if unread != sorted(row["unread"]):
        fail(name, f"not read: {unread}")
    said = "\n".join(finding["text"] for finding in answer["findings"])
    for text in row["says"]:
        if text not in said:
            fail(name, f"no finding says \"{text}\":\n{said}")
    for text in row.get("does_not_say", []):
        if text in said:
            fail(name, f"a finding says \"{text}\"")
    if "device" in row:
        check_patch(program, path, row, arguments)


def check_refused(program):
    """Numbers whose products no program counts, and shares outside of 0 to 1."""
    base = "model_name_or_path: Qwen/Qwen2.5-0.5B\nmax_length: 1024\n"
    batch = "per_device_train_batch_size: 1000000000\n"
    bad = {"too many": batch + "gradient_accumulation_steps: 1000000000\n",
           "from 0 to 1,": "warmup_ratio: -3\n", "from 0 to 1e9": "warmup_steps: 1e300\n"}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bad.yaml")
        for text, lines in bad.items():
            with open(path, "w", encoding="utf-8") as file:
                file.write(base + lines)
            code, _, error = audit(program, path, [])
            if code != 2 or text not in error:
                fail("refused", f"{lines.strip()}: exit code {code}: {error}")


def main():
    program, folder, expected = sys.argv[1:4]
    with open(expected, encoding="utf-8") as file:
        rows = json.load(file)
    missing = set(os.listdir(folder)) - {row["file"] for row in rows}
    if missing:
        fail("expected", f"no row for {missing}")
    for row in rows:
        check(program, folder, row)
    check_refused(program)
    print("\n".join(failures) or f"{len(rows)} training files agree")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
