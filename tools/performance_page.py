#!/usr/bin/env python3
"""Makes docs/performance.md from the recorded results, so that no figure in it is typed by hand.

    tools/performance_page.py           checks that the page is what the results give (exit 1 if not)
    tools/performance_page.py --write   writes the page
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "bench" / "results" / "cpu"
SHAPES = ROOT / "shapes"


def number(value, form="{:.2f}"):
    return "" if value is None else form.format(value)


def rate(case):
    if "gflops" in case:
        return f"{case['gflops']:.0f} GFLOP/s"
    return f"{case['gb_per_s']:.1f} GB/s"


def targets(target, result):
    """What was wanted, what came out, and whether that is enough."""
    worst = result.get("worst", {}).get("speed")
    wanted = [
        ("speed", "geometric mean at least {:.2f}", result.get("speed"), "{:.2f}", True),
        ("worst", "no case below {:.2f}", worst, "{:.2f}", True),
        ("share", "at least {:.0%} of the limit", result.get("share_of_limit"), "{:.0%}", True),
        ("naive", "at least {:.1f} times the naive engine", result.get("least_over_naive"),
         "{:.0f}", True),
        ("overhead", "fusing costs at most {:.0%}", result.get("most_overhead"), "{:.1%}", False),
    ]
    for key, text, got, form, more_is_better in wanted:
        if key not in target:
            continue
        reached = got is not None and (got >= target[key] if more_is_better else got <= target[key])
        yield (text.format(target[key]), "not measured" if got is None else form.format(got), reached)


def verdict(target, result):
    rows = list(targets(target, result))
    if not rows:
        return "none"
    text = "; ".join(f"{wanted} (measured: {got})" for wanted, got, _ in rows)
    return text + (": reached" if all(reached for _, _, reached in rows) else ": **not reached**")


def case_rows(cases):
    fused = any("overhead" in case for case in cases)
    naive = any("naive_ms" in case for case in cases)
    head = ["Case", "ours, ms", "oneDNN, ms", "speed", "its layout, ms", "speed", "of limit", "our rate"]
    head += ["fusing costs", "oneDNN's"] if fused else []
    head += ["naive, ms"] if naive else []
    head += ["engine"]
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 2) + "---|"
    for case in cases:
        if "ours_ms" not in case:
            yield "| " + " | ".join([case["name"], case["check"]] + [""] * (len(head) - 2)) + " |"
            continue
        row = [case["name"], number(case["ours_ms"], "{:.3f}"),
               number(case.get("onednn_ms"), "{:.3f}"), number(case.get("speed")),
               number(case.get("onednn_best_layout_ms"), "{:.3f}"),
               number(case.get("speed_best_layout")), f"{case['share_of_limit']:.0%}", rate(case)]
        if fused:
            row += [number(case.get("overhead"), "{:+.1%}"),
                    number(case.get("onednn_overhead"), "{:+.1%}")]
        if naive:
            row += [number(case.get("naive_ms"), "{:.0f}")]
        yield "| " + " | ".join(row + [f"`{case['engine']}`"]) + " |"


def section(suite, form, record, result):
    yield f"## {suite}"
    yield ""
    yield f"{form['title']}. Target: {verdict(form.get('target', {}), result)}."
    if "speed" in result:
        line = f"Geometric mean of the speed {result['speed']:.2f}"
        if "speed_best_layout" in result:
            line += f" ({result['speed_best_layout']:.2f} over oneDNN on its own layouts)"
        yield line + f", worst {result['worst']['speed']:.2f} ({result['worst']['name']})."
    yield f"What limits it: {form['limit']}"
    yield ""
    yield from case_rows(result["cases"])
    yield ""
    yield (f"{record['device']}; {record['threads']} threads; peer {record['peer'] or 'none'}; "
           f"{record['date']}, commit {record['commit']}, load at start {record['load_at_start']}.")
    yield ""


def summary(suites):
    yield "| Suite | speed | over oneDNN's own layouts | of limit | target |"
    yield "|---|---:|---:|---:|---|"
    for suite, form, _, result in suites:
        yield (f"| [{suite}](#{suite}) | {number(result.get('speed'))} | "
               f"{number(result.get('speed_best_layout'))} | "
               f"{number(result.get('share_of_limit'), '{:.0%}')} | "
               f"{verdict(form.get('target', {}), result)} |")
    yield ""


def page():
    suites = []
    for path in sorted(RESULTS.glob("*.json")):
        record = json.loads(path.read_text())
        for result in record["suites"]:
            suite = result["suite"]
            form = json.loads((SHAPES / f"{suite}.json").read_text())
            suites.append((suite, form, record, result))
    folder = "[bench/results/cpu](../bench/results/cpu)" if suites else "`bench/results/cpu`"
    lines = [
        "# Performance on the CPU", "",
        f"Made by `tools/performance_page.py` from the files in {folder}; the",
        "method is in [bench/README.md](../bench/README.md), the problems are in [shapes](../shapes).",
        "Speed is the time of oneDNN over ours, medians of one process: above 1 we are faster. The limit is",
        "arithmetic at the rate of multiply-adds on registers or bytes at the speed of a copy, whichever takes",
        "longer, both measured between the samples.", ""]
    lines += summary(suites)
    missing = sorted({p.stem for p in SHAPES.glob("*.json")} - {suite for suite, _, _, _ in suites})
    if missing:
        lines += ["Not recorded yet: " + ", ".join(missing) + ".", ""]
    for entry in suites:
        lines += section(*entry)
    return "\n".join(lines).rstrip() + "\n"


def main():
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page())
        return 0
    if not PAGE.exists() or PAGE.read_text() != page():
        print("docs/performance.md is not what bench/results/cpu gives: "
              "run tools/performance_page.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
