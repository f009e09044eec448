#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_page.py HEADROOM - pages of plan, runs and profile --html are well formed, ask for nothing from elsewhere, escape
names, and have the numbers that the commands print: components up to the planned bytes, losses of logs, times."""
import csv
import html.parser
import io
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

VOID = {"meta", "br"}
OPTIONAL = {"th", "td", "tr", "li"}
MOST = 400e3


class Page(html.parser.HTMLParser):
    """Collects text, tables and drawings; fails for elements that do not close and for what loads something."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.areas, self.rows, self.charts = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.see(tag, dict(attrs))
        if tag in OPTIONAL and self.open[-1] == tag:
            self.open.pop()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.see(tag, dict(attrs))

    def see(self, tag, attrs):
        assert tag not in ("script", "img", "link", "iframe", "object"), f"<{tag}>"
        for name, value in attrs.items():
            assert name not in ("src", "href", "xlink:href") and not name.startswith("on"), f"{name}={value}"
        if tag == "svg" and attrs.get("class") != "key":
            self.charts.append({"grid": [], "lines": [], "points": []})
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "i" and self.open[-1:] == ["td"]:
            self.rows[-1].append(float(re.fullmatch(r"width:([0-9.]+)%", attrs["style"])[1]))
        if tag == "path" and attrs.get("fill"):
            self.areas.append(attrs["d"])
        if tag == "path" and attrs.get("class") == "line" and "key" not in self.open and "li" not in self.open:
            self.charts[-1]["lines"].append([tuple(map(float, p.split())) for p in re.split("[ML]", attrs["d"])[1:]])
        if tag == "g":
            self.charts[-1]["points"].append([])
        if tag == "circle":
            self.charts[-1]["points"][-1].append((float(attrs["cx"]), float(attrs["cy"])))

    def handle_endtag(self, tag):
        while self.open and self.open[-1] != tag and self.open[-1] in OPTIONAL:
            self.open.pop()
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)
        if self.open[-1:] in (["td"], ["th"]):
            self.rows[-1][-1] += data


def read(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|url\(|@import", text), "asks for something from elsewhere"
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == [], f"{page.open} are open at the end"
    return page, text


def run(program, *words, code=0, folder=None):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == code, f"{words}: {done.returncode}: {done.stderr}"
    return done


def page_of(program, folder, words, code=0):
    path = pathlib.Path(folder, "a page.html")
    run(program, "plan", *words, "--html", path, code=code)
    return read(path)


def top_of(page):
    """The least y of all components, in the coordinates of the drawing."""
    return min(float(y) for path in page.areas for y in re.findall(r"V([0-9.]+)|M[0-9.]+ ([0-9.]+)", path)
               for y in y if y)


def check_plans(program, folder):
    for preset, most in (("pythia-70m", MOST), ("small/llama", MOST), ("llama-3.1-8b", 3e6)):
        page, text = page_of(program, folder, [preset, "--device", "b200"] if preset == "llama-3.1-8b"
                             else [preset])
        assert len(text) <= most, f"{preset}: {len(text)} bytes"
        planned = float(re.search(r"class='?\"?limit'?\"? d='M\d+ ([0-9.]+)H", text)[1])
        assert abs(top_of(page) - planned) < 1.5, f"{preset}: components end at {top_of(page)}, not at {planned}"
        assert "backward" in page.text and "update" in page.text
    page, text = page_of(program, folder, ["small/llama", "--budget", "26MiB"], 3)
    assert "Does not fit: needs at least" in "".join(page.text) and "Changes that make it fit" in text
    devices = pathlib.Path(folder, "devices.yaml")
    devices.write_text("evil: {title: \"<script>alert('&')</script>\", usable: 64GiB, bandwidth: 864GB/s, "
                       "peak_tflops: {fp32: 91.6, bf16: 362}}\n", encoding="utf-8")
    page, text = page_of(program, folder, ["small/llama", "--device-file", devices, "--device", "evil"])
    assert "<script>" not in text and "alert('&')" in "".join(page.text)
    run(program, "plan", "small/llama", "--html", program, code=2)  # another file is not replaced


RECIPE = """model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, vocab_size: 300}
data: {train: text.txt, valid: text.txt, tokenizer: bytes}
train: {batch: 4, seq_len: 16, threads: 1, eval_every: 10}
"""


def scale(marks):
    """A linear function through the first and the last of pairs of a place and a value."""
    (x, a), (y, b) = marks[0], marks[-1]
    return lambda place: a + (place - x) * (b - a) / (y - x)


def losses_of(figure):
    """From y of a chart to a loss, by the labels of its axis."""
    return scale([(float(y) - 4, float(v)) for y, v in
                  re.findall(r"<text x='70' y='([0-9.]+)' text-anchor=end>([0-9.e-]+)<", figure)])


def check_losses(chart, text, column, runs):
    """Every line of a chart beside the CSV, by the labels of its axes."""
    loss = losses_of(text)
    place = scale([(float(x), float(v.replace(",", ""))) for x, v in
                   re.findall(r"<text x='([0-9.]+)' y='320'(?: text-anchor=middle)?>([0-9.,e-]+)<", text)])
    assert len(chart["lines"]) == len(runs)
    for line, points, rows in zip(chart["lines"], chart["points"], runs):
        steps = [r for r in rows if r["loss"]]
        assert len(line) == len(steps)
        for (x, y), row in zip(line, steps):
            assert abs(loss(y) - float(row["loss"])) < 0.01, (loss(y), row)
            assert abs(place(x) / float(row[column]) - 1) < 0.02 or abs(place(x) - float(row[column])) < 0.1
        valid = [r for r in rows if r["valid_loss"]]
        assert len(points) == len(valid)
        for (_, y), row in zip(points, valid):
            assert abs(loss(y) - float(row["valid_loss"])) < 0.01


def check_runs(program, folder):
    names = ["one", "<script>alert('&\"')<", "<b>\u00e9"]
    pathlib.Path(folder, "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 200,
                                                encoding="utf-8")
    pathlib.Path(folder, "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    for i, name in enumerate(names):
        run(program, "train", "recipe.yaml", "--quiet", "--out", name, f"train.steps={30 + 10 * i}",
            f"train.seed={i}", folder=folder)
    run(program, "runs", *names, "--html", "runs.html", folder=folder)
    page, text = read(pathlib.Path(folder, "runs.html"))
    assert "<script>" not in text and "<b>" not in text and len(text) <= MOST
    rows = list(csv.DictReader(io.StringIO(run(program, "runs", *names, "--csv", folder=folder).stdout)))
    runs = [[row for row in rows if row["run"] == name] for name in names]
    assert len(page.charts) == 3
    figures = re.findall(r"<figure>.*?</figure>", text, re.S)
    for chart, figure, column in zip(page.charts, figures, ("step", "tokens", "seconds")):
        check_losses(chart, figure, column, runs)
    table = {row[0]: row for row in reversed(page.rows)}
    for name, lines in zip(names, runs):
        last = [r for r in lines if r["loss"]][-1]
        row = [row for row in page.rows if row[0] == name][0]
        assert row[1:3] == [last["step"], f"{int(last['tokens']):,}"], row
        assert row[5] == f"{float(last['loss']):.4f}", row
    assert table["train.seed"] == ["train.seed", "0", "1", "2"] and table["train.steps"][1:] == ["30", "40", "50"]
    assert "model.d_model" not in table and "train.out" not in table
    check_bytes(page, folder, names)
    check_many(program, folder)


def check_bytes(page, folder, names):
    """Planned and measured bytes beside the last line of each log, and their bars."""
    most = 0
    for name in names:
        log = pathlib.Path(folder, name, "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        at = [i for i, row in enumerate(page.rows) if row[0] == name and "planned" in row][0]
        for row, key in ((page.rows[at][1:], "planned"), (page.rows[at + 1], "measured")):
            value = int(re.search(rf'"process_bytes_{key}":(\d+)', log[-1])[1])
            assert row[0] == key and row[1] == f"{value:,}", row
            most = max(most, value)
    bars = [(int(row[-4].replace(",", "")), row[-1]) for row in page.rows if isinstance(row[-1], float)]
    assert len(bars) == 2 * len(names)
    for value, width in bars:
        assert abs(width - 100 * value / most) < 0.06


def check_many(program, folder):
    """Thirty-two long runs are a page of the same limit, and a run that diverges leaves the others readable."""
    names = [f"long{i}" for i in range(32)]
    for i, name in enumerate(names):
        pathlib.Path(folder, name).mkdir()
        with open(pathlib.Path(folder, name, "metrics.jsonl"), "w", encoding="utf-8") as log:
            for step in range(1, 2000 + 100 * i):
                loss = 1e9 if i == 3 and step > 1000 else 2 + 8 / step
                log.write(f'{{"step":{step},"loss":{loss},"tokens":{64 * step},"clock":{{"seconds":{step / 7}}}}}\n')
    run(program, "runs", *names, "--html", "runs.html", folder=folder)
    page, text = read(pathlib.Path(folder, "runs.html"))
    assert len(text) <= MOST, f"32 runs: {len(text)} bytes"
    assert "is the mean of up to" in text and "has no checkpoint" in text
    assert all(100 < len(line) <= 256 for line in page.charts[0]["lines"])
    loss = losses_of(re.search(r"<figure>.*?</figure>", text, re.S)[0])
    line = page.charts[0]["lines"][0]
    assert len(line) == 250  # of 1,999 losses, by eight
    for i, (_, y) in enumerate(line):
        steps = range(8 * i + 1, min(8 * i + 8, 1999) + 1)
        assert abs(loss(y) - sum(2 + 8 / step for step in steps) / len(steps)) < 0.02, (i, loss(y))


def number(text):
    return 0 if text == "-" else float(text.replace(",", "").replace(" %", ""))


def check_rows(rows, expected, whole):
    """Rows of a page beside (name, calls, seconds, planned, flops), with bars as shares of the longest time."""
    most = max(max(e[2], e[3]) for e in expected)
    for row, (name, calls, seconds, planned, flops) in zip(rows, expected):
        assert row[0] == name and abs(number(row[1]) - calls) < 0.06, (row, name, calls)
        assert abs(number(row[2]) - seconds) < 1e-6 and abs(number(row[4]) - planned) < 1e-6, (row, seconds, planned)
        assert abs(number(row[3]) - 100 * seconds / whole) < 0.06, row
        assert abs(number(row[5]) - 1e-9 * flops / seconds) < 0.06 if flops else row[5] == "-", (row, flops)
        assert abs(row[7] - 100 * seconds / most) < 0.06 and abs(row[8] - 100 * planned / most) < 0.06, row


def name_of(row):
    return ", ".join(word for word in (row.get("operation"), row["part"], row["direction"]) if word)


def check_profile(program, folder):
    done = run(program, "profile", "recipe.yaml", "train.steps=5", "--json", "--html", "profile.html", folder=folder)
    report = json.loads(done.stdout)
    page, text = read(pathlib.Path(folder, "profile.html"))
    assert len(text) <= MOST and len(page.charts) == 1 and "backward" in page.text and "update" in page.text
    keys = ("calls", "seconds", "planned_seconds", "flops")
    rows = [(name_of(row), *(row[k] for k in keys)) for row in report["operations"]]
    heads = [i for i, row in enumerate(page.rows) if row[:2] in (["part", "calls"], ["operation", "calls"])]
    check_rows(page.rows[heads[1] + 1:], rows, report["step_seconds"])
    parts = {}
    for row in report["operations"]:
        sums = parts.setdefault(name_of({"part": row["part"], "direction": row["direction"]}), [0, 0, 0, 0])
        for i, k in enumerate(keys):
            sums[i] += row[k]
    rows = sorted(((name, *sums) for name, sums in parts.items()), key=lambda part: -part[2])
    check_rows(page.rows[heads[0] + 1:], rows, report["step_seconds"])
    for at in (heads[1] - 1, len(page.rows) - 1):  # the last row of both tables
        assert page.rows[at][0] == "step" and page.rows[at - 1][0] == "between operations"
        assert abs(number(page.rows[at][2]) - report["step_seconds"]) < 1e-6
        assert abs(number(page.rows[at - 1][2]) - report["between_seconds"]) < 1e-6
    said = "".join(page.text)
    for key in ("process_bytes_planned", "process_bytes_measured", "arena_bytes_planned", "arena_bytes_used"):
        assert f"{report[key]:,} bytes" in said, key
    planned = [float(y) for y in re.findall(r"path class=limit d='M\d+ ([0-9.]+)H", text)]
    assert len(planned) == 2 and planned[0] <= planned[1] and top_of(page) >= planned[0] - 0.1


def check_interrupted(program, folder):
    """An interrupted profile leaves nothing, whatever it was doing."""
    before = sorted(pathlib.Path(folder).rglob("*"))
    with subprocess.Popen([program, "profile", "recipe.yaml", "train.steps=1000000", "--steps", "1000000", "--html",
                           "late.html"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert child.wait() in (128 + signal.SIGINT, -signal.SIGINT), child.returncode
    assert sorted(pathlib.Path(folder).rglob("*")) == before


def check_refusals(program, folder):
    """What cannot be written is refused before any work, and a file that is no page stays."""
    pathlib.Path(folder, "notes.txt").write_text("notes\n", encoding="utf-8")
    for path, says in (("none/p.html", "none"), ("notes.txt", "exists and is not a page"), (".", "directory")):
        for words in (("runs", "one"), ("profile", "recipe.yaml", "data.train=missing.txt")):
            done = run(program, *words, "--html", path, code=2, folder=folder)
            assert says in done.stderr and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert pathlib.Path(folder, "notes.txt").read_text(encoding="utf-8") == "notes\n"
    done = run(program, "runs", "one", "--html", "p.html", "--csv", code=2, folder=folder)
    assert "--csv and --html exclude each other" in done.stderr
    run(program, "runs", "one", "missing", "--html", "p.html", code=2, folder=folder)
    assert not pathlib.Path(folder, "p.html").exists(), "a page of runs that cannot be read"


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        check_plans(program, folder)
        check_runs(program, folder)
        check_profile(program, folder)
        check_interrupted(program, folder)
        check_refusals(program, folder)
    print("pages: 9 read")


if __name__ == "__main__":
    main()
