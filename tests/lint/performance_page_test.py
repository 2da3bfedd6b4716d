#!/usr/bin/env python3
"""Pages of tools/performance_page.py from records written here: columns, targets, links, and pages that are out of date."""

import contextlib
import io
import json
import pathlib
import re
import sys
import tempfile
import xml.dom.minidom

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import performance_page  # noqa: E402: another folder
from performance_page import Form, Key  # noqa: E402


def case(name, **members):
    return {Key.NAME: name, Key.OURS: 0.02, Key.ROOFLINE: 0.015, Key.SHARE: 0.75, Key.GB_PER_S: 3000.0,
            Key.SHARE_COPY: 0.75, Key.ENGINE: "cuda.gemm_skinny", **members}


def cells(lines):
    """Rows of cells, without the line under the head."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line]
    check(all(len(row) == len(rows[0]) for row in rows), f"rows as long as the head: {rows}")
    return rows[:1] + rows[2:]


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


PLAIN = case("plain")
ROW = case("row", **{Key.ROW: 0.018, Key.SHARE_ROW: 0.8})
COPIES = case("copies", **{Key.ROW: 0.018, Key.SHARE_ROW: 0.8, Key.SHARE_COPY_ROW: 0.9})
WRONG = {Key.NAME: "wrong", Key.CHECK: "WRONG: y"}
NAIVE = case("naive", **{Key.NAIVE: 5.0, "cudnn_ms": 0.03, Key.SPEED: 1.5})


def columns():
    def of(*cases, is_gpu=True):
        return cells(performance_page.case_rows(cases, is_gpu))
    head, _ = of(PLAIN)
    check("back to back, ms" not in head and "speedup" not in head, f"only what was measured: {head}")
    head, _, _ = of(PLAIN, ROW)
    check("back to back, ms" in head and "of copies back to back" not in head, f"no copies back to back: {head}")
    head, *rows = of(PLAIN, ROW, COPIES, WRONG)
    at = head.index("of copies back to back")
    check(head[at - 2:at] == ["back to back, ms", "back to back of roofline"], f"copies next to the runs: {head}")
    check([row[at] for row in rows] == ["", "", "90%", ""], f"the share where it was measured: {rows}")
    head, row = of(NAIVE)
    check("naive kernel, ms" in head and "cuDNN, ms" in head and "1.50" in row, f"the naive kernel of a GPU: {head}")
    head, _ = of(NAIVE, is_gpu=False)
    check("naive" not in " ".join(head), f"the reference engine is no baseline: {head}")


def verdicts():
    target = {Form.ROW_COPY_SHARE: 0.88, Form.NAIVE: 5.6}
    for share, outcome in (0.9, "90.0%, reached"), (0.87, "87.0%, **not reached**"), (None, "not measured"):
        result = {} if share is None else {Key.SHARE_COPY_ROW: share}
        text = performance_page.verdict(target, result)
        check(text == f">= 88% of copies back to back: {outcome}; every case >= 5.6x the naive kernel: not measured", text)
        check("naive" not in performance_page.verdict(target, result, is_gpu=False), "no target against the reference")
    check(performance_page.verdict({Form.OVERHEAD: 0.04}, {Key.MOST_OVERHEAD: 0.05}).endswith("**not reached**"), "most")
    check(performance_page.verdict({}, {}) == "none", "no target")


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def tree(root):
    """A suite with a record, the same tuned, and a suite without."""
    form = {Form.TITLE: "Few rows", Form.LIMITER: "bytes", Form.TARGET: {Form.SPEED: 1.2}, Form.CASES: [{}]}
    write(root / "shapes/cuda/few.json", form)
    write(root / "shapes/cuda/none.json", form)
    record = {"device": "a GPU", "driver": "driver 1", "peer": "cuDNN 9", "date": "2026-01-02T03:04:05Z", "commit": "abc",
              Key.SUITES: [{Key.SUITE: "few", Key.SPEED: 1.5, Key.SHARE: 0.75, Key.SHARE_ROW: 0.8,
                            Key.WORST: {Key.NAME: "naive", Key.SPEED: 1.5}, Key.CASES: [NAIVE]}]}
    write(root / "bench/results/h200/few.json", record)
    write(root / "bench/results/h200/few_tuned.json", {Key.TUNED: True, **record})


def run(root, *arguments):
    before, sys.argv = sys.argv, ["performance_page.py", *arguments]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return performance_page.main(root)
    finally:
        sys.argv = before


def whole_tree(root):
    tree(root)
    check(run(root, "--check") == 1, "pages that are missing")
    check(run(root, "--write") == 0 and run(root, "--check") == 0, "written pages are what the records give")
    page = (root / "docs/performance.md").read_text()
    check("| [few](performance/h200/few.md) | 1 | 1.50x | 1.50x (naive) | 75% | "
          "geometric mean >= 1.20x: 1.50x, reached |" in page, page)
    check("| none | 0 of 1 | not measured | not measured | not measured | geometric mean >= 1.20x: not measured |" in page,
          page)
    check("Few rows, plans tuned back to back." in (root / "docs/performance/h200/few_tuned.md").read_text(), "tuned")
    chart = (root / "docs/performance/h200.svg").read_text()
    check("1.50x" in chart and "not measured" in chart, chart)
    for change in (root / "docs/performance.md", root / "docs/performance/h200/few.md", root / "docs/performance/h200.svg"):
        text = change.read_text()
        change.write_text(text.replace("75%", "76%"))
        check(run(root, "--check") == 1, f"a figure typed into {change.name}")
        change.write_text(text)
    stale = root / "docs/performance/h200/gone.md"
    stale.write_text("")
    check(run(root, "--check") == 1, "a page without a record")
    check(run(root, "--write") == 0 and not stale.exists(), "is removed")


def own_tree():
    """Links of our own pages lead to files and headings; charts are XML."""
    pages = [ROOT / path for path in performance_page.pages(ROOT)]
    for path in pages:
        text = path.read_text()
        if path.suffix == ".svg":
            xml.dom.minidom.parseString(text)
            continue
        for link in re.findall(r"\]\(([^)]*)\)", text):
            name, _, anchor = link.partition("#")
            target = path.parent / name
            check(target.exists(), f"{path}: {link}")
            check(not anchor or f"\n## {anchor}\n" in target.read_text().lower(), f"{path}: no heading {link}")


def main():
    columns()
    verdicts()
    with tempfile.TemporaryDirectory() as folder:
        whole_tree(pathlib.Path(folder))
    own_tree()
    return 0


if __name__ == "__main__":
    sys.exit(main())
