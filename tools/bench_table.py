#!/usr/bin/env python3
"""Makes docs/bench.md from the recorded results, so that no figure in it is typed by hand.

    tools/bench_table.py           checks that the page is what the results give (exit 1 if not)
    tools/bench_table.py --write   writes the page
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "bench.md"


def rate(case):
    if case.get("gflops", 0) >= case.get("gb_per_s", 0):
        return f"{case['gflops']:.1f} GFLOP/s"
    return f"{case['gb_per_s']:.1f} GB/s"


def section(path):
    result = json.loads(path.read_text())
    slowest = result["slowest"]
    lines = [
        f"## {path.stem}",
        "",
        f"{result['device']}; {result['threads']} threads on both sides; peer {result['peer']};",
        f"{result['date']}, commit {result['commit']}. Medians; ratio = ours / peer, below 1 is faster.",
        f"Slowest ratio: {slowest['ratio']:.1f}x ({slowest['name']}).",
        "",
        "| Case | ours, ms | peer, ms | ratio | our rate | engine |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for case in result["cases"]:
        lines.append(f"| {case['name']} | {case['ours_ms']:.3f} | {case['onednn_ms']:.3f} | "
                     f"{case['ratio']:.2f} | {rate(case)} | `{case['engine']}` |")
    return lines


def page():
    lines = ["# Benchmarks", "",
             "Made by `tools/bench_table.py` from the files in [bench/results](../bench/results); the method is",
             "in [bench/README.md](../bench/README.md).", ""]
    for path in sorted((ROOT / "bench" / "results").glob("*.json")):
        lines += section(path) + [""]
    return "\n".join(lines).rstrip() + "\n"


def main():
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page())
        return 0
    if not PAGE.exists() or PAGE.read_text() != page():
        print("docs/bench.md is not what bench/results gives: run tools/bench_table.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
