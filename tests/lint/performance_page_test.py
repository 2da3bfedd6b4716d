#!/usr/bin/env python3
"""Tables of tools/performance_page.py, of cases made here: a column is there where a case of the suite has it."""

import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
sys.dont_write_bytecode = True
import performance_page  # noqa: E402: it lies in another folder


def case(name, **members):
    return {"name": name, "ours_ms": 0.02, "roofline_ms": 0.015, "share_of_roofline": 0.75, "gb_per_s": 3000.0,
            "share_of_copy": 0.75, "engine": "cuda.gemm_skinny", **members}


def table(*cases):
    """Rows of cells, the line under the head left out."""
    lines = list(performance_page.gpu_rows(cases))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    check(all(len(row) == len(rows[0]) for row in rows), f"rows as long as the head: {lines}")
    return rows[:1] + rows[2:]


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def main():
    plain = case("plain")
    back_to_back = case("back_to_back", back_to_back_ms=0.018, share_back_to_back=0.8)
    beside = case("beside", back_to_back_ms=0.018, share_back_to_back=0.8, copy_back_to_back_ms=0.0162,
                  share_of_copy_back_to_back=0.9)
    wrong = {"name": "wrong", "check": "WRONG: y"}

    head, _ = table(plain)
    check("in a row, ms" not in head and "of copies in a row" not in head, f"no column in a row: {head}")
    head, _, _ = table(plain, back_to_back)
    check("in a row, ms" in head and "of copies in a row" not in head, f"a record without copies in a row: {head}")
    head, *rows = table(plain, back_to_back, beside, wrong)
    at = head.index("of copies in a row")
    check(head[at - 2:at] == ["in a row, ms", "of limit"], f"copies beside what they are compared with: {head}")
    check([row[at] for row in rows] == ["", "", "90%", ""], f"the share where it was measured: {rows}")

    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder)
        form = {"title": "Few rows", "limit": "bytes", "target": {"row_copy_share": 0.88}, "cases": [beside]}
        (results / "shapes").mkdir()
        (results / "shapes" / "few.json").write_text(json.dumps(form))
        record = {"suites": [{"suite": "few", "share_back_to_back": 0.8, "share_of_copy_back_to_back": 0.9, "cases": [beside]}]}
        (results / "few.json").write_text(json.dumps(record))
        (results / "few_tuned.json").write_text(json.dumps({"tuned": True, **record}))
        suites = performance_page.read_results(results, results / "shapes")
    check([suite for suite, *_ in suites] == ["few", "few-tuned"], f"tuned plans are told apart: {suites}")
    check([form["title"] for _, form, _, _ in suites] == ["Few rows", "Few rows, plans tuned in a row"],
          f"and say how: {suites}")
    for share, outcome in (0.9, "reached"), (0.87, "**not reached**"):
        text = performance_page.verdict(form["target"], {"share_of_copy_back_to_back": share})
        check(text.endswith(": " + outcome), f"copies in a row decide: {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
