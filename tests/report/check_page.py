#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_page.py HEADROOM - pages of plan and runs --html are well formed, ask for nothing from elsewhere, escape
names, and have the numbers that the commands print: components up to the planned bytes, losses of logs."""
import csv
import html.parser
import io
import pathlib
import re
import subprocess
import sys
import tempfile

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


def check_losses(chart, text, column, runs):
    """Every line of a chart beside the CSV, by the labels of its axes."""
    loss = scale([(float(y) - 4, float(v)) for y, v in
                  re.findall(r"<text x='70' y='([0-9.]+)' text-anchor=end>([0-9.e-]+)<", text)])
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
    assert max(y for _, y in page.charts[0]["lines"][0]) - min(y for _, y in page.charts[0]["lines"][0]) > 90


def check_refusals(program, folder):
    """What cannot be written is refused before any work, and a file that is no page stays."""
    pathlib.Path(folder, "notes.txt").write_text("notes\n", encoding="utf-8")
    for path, says in (("none/p.html", "none"), ("notes.txt", "exists and is not a page"), (".", "directory")):
        done = run(program, "runs", "one", "--html", path, code=2, folder=folder)
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
        check_refusals(program, folder)
    print("pages: 8 read")


if __name__ == "__main__":
    main()
