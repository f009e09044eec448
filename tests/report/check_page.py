#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_page.py HEADROOM - pages of plan --html are well formed, ask for nothing from elsewhere, escape names,
and draw components up to the planned bytes."""
import html.parser
import pathlib
import re
import subprocess
import sys
import tempfile

VOID = {"meta", "rect", "path", "br"}
OPTIONAL = {"th", "td", "tr", "li"}


class Page(html.parser.HTMLParser):
    """Collects text, titles and paths; fails for elements that do not close and for what loads something."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.paths, self.lines = [], [], [], {}

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "img", "link", "iframe", "object"), f"<{tag}>"
        for name, value in attrs:
            assert name not in ("src", "href", "xlink:href") and not name.startswith("on"), f"{name}={value}"
        if tag == "path" and dict(attrs).get("fill"):
            self.paths.append(dict(attrs)["d"])
        if tag not in VOID or (tag == "path" and dict(attrs).get("fill")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag):
        while self.open and self.open[-1] != tag and self.open[-1] in OPTIONAL:
            self.open.pop()
        if tag == "rect":
            return
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


def page_of(program, folder, words, code=0):
    path = pathlib.Path(folder, "a page.html")
    done = subprocess.run([program, "plan", *words, "--html", path], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|url\(|@import", text), "asks for something from elsewhere"
    page = Page()
    page.feed(text)
    page.close()
    return page, text


def top_of(page):
    """The least y of all components, in the coordinates of the drawing."""
    return min(float(y) for path in page.paths for y in re.findall(r"V([0-9.]+)|M[0-9.]+ ([0-9.]+)", path)
               for y in y if y)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        for preset, most in (("pythia-70m", 400e3), ("small/llama", 400e3), ("llama-3.1-8b", 3e6)):
            page, text = page_of(program, folder, [preset, "--device", "b200"] if preset == "llama-3.1-8b"
                                 else [preset])
            assert len(text) <= most, f"{preset}: {len(text)} bytes"
            planned = float(re.search(r"class='?\"?limit'?\"? d='M\d+ ([0-9.]+)H", text)[1])
            assert abs(top_of(page) - planned) < 1.5, f"{preset}: components end at {top_of(page)}, not at {planned}"
        page, text = page_of(program, folder, ["small/llama", "--budget", "26MiB"], 3)
        assert "Does not fit: needs at least" in "".join(page.text) and "Changes that make it fit" in text
        devices = pathlib.Path(folder, "devices.yaml")
        devices.write_text("evil: {title: \"<script>alert('&')</script>\", usable: 64GiB, bandwidth: 864GB/s, "
                           "peak_tflops: {fp32: 91.6, bf16: 362}}\n", encoding="utf-8")
        page, text = page_of(program, folder, ["small/llama", "--device-file", devices, "--device", "evil"])
        assert "<script>" not in text and "alert('&')" in "".join(page.text)
        done = subprocess.run([program, "plan", "small/llama", "--html", program], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 2, "another file was replaced"
    print("pages: 6 read")


if __name__ == "__main__":
    main()
