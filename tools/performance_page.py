#!/usr/bin/env python3
"""Makes docs/performance.md from the recorded results, so that no figure in it is typed by hand.

    tools/performance_page.py           checks that the page is what the results give (exit 1 if not)
    tools/performance_page.py --write   writes the page
"""

import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "bench" / "results"
SHAPES = ROOT / "shapes"
GPUS = {"h200": "H200"}  # folders of results, and what the page calls them


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
        ("share", "at least {:.0%} of the limit", result.get("share_of_roofline"), "{:.0%}", True),
        ("least_share", "no case below {:.0%} of the limit",
         result.get("farthest", {}).get("share_of_roofline"), "{:.0%}", True),
        ("row_share", "at least {:.0%} of it in a row", result.get("share_back_to_back"), "{:.0%}", True),
        ("row_copy_share", "at least {:.0%} of copies in a row", result.get("share_of_copy_back_to_back"), "{:.1%}", True),
        ("naive", "at least {:.1f} times the naive engine", result.get("least_over_naive"),
         "{:.0f}", True),
        ("overhead", "fusing costs at most {:.0%}", result.get("max_overhead"), "{:.1%}", False),
        ("apart", "at least {:.1f} times as fast as apart", result.get("least_over_apart"),
         "{:.2f}", True),
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
               number(case.get("speed_best_layout")), f"{case['share_of_roofline']:.0%}", rate(case)]
        if fused:
            row += [number(case.get("overhead"), "{:+.1%}"),
                    number(case.get("onednn_overhead"), "{:+.1%}")]
        if naive:
            row += [number(case.get("naive_ms"), "{:.0f}")]
        yield "| " + " | ".join(row + [f"`{case['engine']}`"]) + " |"


PEERS = {"cudnn": "cuDNN", "cublaslt": "cuBLASLt"}


def peer_of(case, member=""):
    """What a case says of its peer, whichever that is."""
    return next((case[peer + member] for peer in PEERS if peer + member in case), None)


def gpu_rate(case):
    """Of what limits it."""
    arithmetic = case.get("gflops", 0) / case.get("peak_gflops", 1)
    if arithmetic > case["share_of_copy"]:
        return f"{case['gflops'] / 1000:.0f} TFLOP/s"
    return f"{case['gb_per_s'] / 1000:.2f} TB/s"


def gpu_rows(cases):
    apart = any("apart_ms" in case for case in cases)
    alone = any("alone_ms" in case for case in cases)
    same = any("same_copy_ms" in case for case in cases)
    back_to_back = any("back_to_back_ms" in case for case in cases)
    copies = any("share_of_copy_back_to_back" in case for case in cases)
    names = [name for peer, name in PEERS.items() if any(f"{peer}_ms" in case for case in cases)] or ["cuDNN"]
    peer = " / ".join(names)
    head = ["Case", "ours, ms", f"{peer}, ms", "speed", "limit, ms", "of limit", "our rate", "of copy", "naive, ms"]
    head += ["of a copy as large"] if same else []
    head += ["in a row, ms", "of limit"] if back_to_back else []
    head += ["of copies in a row"] if copies else []
    head += ["alone, ms", "fusing costs", "peer's"] if alone else []
    head += ["apart, ms", "over apart", "of its bytes"] if apart else []
    head += ["engine", peer]
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 3) + "---|---|"
    for case in cases:
        if "ours_ms" not in case:
            yield "| " + " | ".join([case["name"], case["check"]] + [""] * (len(head) - 2)) + " |"
            continue
        row = [case["name"], number(case["ours_ms"], "{:.4f}"),
               number(peer_of(case, "_ms"), "{:.4f}"), number(case.get("speed")),
               number(case["roofline_ms"], "{:.4f}"), f"{case['share_of_roofline']:.0%}", gpu_rate(case),
               f"{case['share_of_copy']:.0%}", number(case.get("naive_ms"), "{:.3f}")]
        if same:
            row += [number(case.get("share_of_same_copy"), "{:.0%}")]
        if back_to_back:
            row += [number(case.get("back_to_back_ms"), "{:.4f}"), number(case.get("share_back_to_back"), "{:.0%}")]
        if copies:
            row += [number(case.get("share_of_copy_back_to_back"), "{:.0%}")]
        if alone:
            row += [number(case.get("alone_ms"), "{:.4f}"), number(case.get("overhead"), "{:+.1%}"),
                    number(peer_of(case, "_overhead"), "{:+.1%}")]
        if apart:
            row += [number(case.get("apart_ms"), "{:.4f}"), number(case.get("speed_over_apart")),
                    number(case.get("share_of_apart_bytes"), "{:.0%}")]
        yield "| " + " | ".join(row + [f"`{case['engine']}`", peer_note(case)]) + " |"


def peer_note(case):
    """How the peer did it: refusals, calls, of how many plans it is the best."""
    calls = peer_of(case, "_calls") or 1
    tried = re.search(r"best of (\d+)", peer_of(case) or "")
    if "cudnn_wrong" in case:
        return "wrong"
    if peer_of(case, "_refusal") is not None:
        return "refuses"
    notes = [f"{calls} calls"] if calls > 1 else []
    notes += [f"best of {tried.group(1)}"] if tried else []
    return ", ".join(notes)


def gpu_section(folder, suite, form, record, result):
    yield f"### {folder}: {suite}"
    yield ""
    yield f"{form['title']}. Target: {verdict(form.get('target', {}), result)}."
    if "speed" in result:
        yield (f"Geometric mean of the speed {result['speed']:.2f}, worst "
               f"{result['worst']['speed']:.2f} ({result['worst']['name']}).")
    yield f"What limits it: {form['limit']}"
    if "share_of_copy_back_to_back" in result:
        yield (f"In a row {result['share_of_copy_back_to_back']:.0%} of as many copies in a row, each of which moves as many "
               "bytes on memory of its own, geometric mean.")
    yield ""
    yield from gpu_rows(result["cases"])
    yield ""
    yield (f"{record['device']}; {record['driver']}; peer {record['peer'] or 'none'}; a copy moves "
           f"{record['copy_gb_per_s'] / 1000:.2f} TB/s; {record['date']}, commit {record['commit']}.")
    yield ""


def host_lines(path):
    record = json.loads(path.read_text())
    yield (f"What plans cost the host: {record['run_us']:.2f} µs for a run of a plan of one kernel, "
           f"{record['compile_ms']:.0f} ms to compile a new kernel ({record['first_compile_ms']:.0f} ms "
           "the first of a process, with device and compiler), "
           f"{record['compile_from_cache_ms']:.2f} ms when it is in the cache of files "
           f"({record['device']}; {record['host']}; {record['date']}, commit {record['commit']}).")
    yield ""


def pytorch_family(name):
    """The kind of operation of a case of tests/clients/pytorch_cudnn.py."""
    words = ("conv_transpose", "conv", "batch_norm", "lstm", "gru", "rnn", "ctc_loss", "grid_sample", "affine_grid",
             "attention", "resnet50_training_step", "gpt_training_step")
    return next((word for word in words if name.startswith(word)), name)


def pytorch_lines(folder, path):
    record = json.loads(path.read_text())
    families = {}
    for case in record["cases"]:
        families.setdefault(pytorch_family(case["name"]), []).append(case)
    passed = sum(case["ok"] for case in record["cases"])
    yield f"### {folder}: PyTorch on our libcudnn"
    yield ""
    yield (f"PyTorch {record['pytorch']} with our libcudnn.so.9 in place of {record['peer']}, the same steps with both "
           f"(tests/clients/pytorch_cudnn.py): {passed} of {len(record['cases'])} cases pass, "
           f"{record['calls_answered']:,} calls answered by ours.")
    yield ("Errors are against PyTorch without cuDNN in 64 bits, over the bound of the case; the largest of each kind. "
           "Time is ours over NVIDIA's, geometric mean.")
    yield ""
    yield "| Kind | cases | error / bound | NVIDIA's | time | slowest |"
    yield "|---|---:|---:|---:|---:|---:|"
    for family, cases in families.items():
        times = [case["time_over_nvidia"] for case in cases if case.get("time_over_nvidia")]
        mean = math.exp(sum(map(math.log, times)) / len(times)) if times else None
        yield (f"| {family} | {len(cases)} | {max(case['error_over_bound'] for case in cases):.2f} | "
               f"{max(case['nvidia_error_over_bound'] for case in cases):.2f} | {number(mean)} | "
               f"{number(max(times, default=None))} |")
    yield ""
    yield f"{record['device']}; {record['date']}, commit {record['commit']}."
    yield ""


def choice_lines(folder, path):
    """How near the first choices of the cost model are to the fastest configurations."""
    record = json.loads(path.read_text())
    yield f"### {folder}: first choices"
    yield ""
    yield ("Configurations that our engines offer for a case, all or the most promising, timed (`ashlar bench --configs`, "
           "configs_*.json), and how long the first choice of")
    yield (f"the cost model takes beside the fastest: {record['first_over_fastest']:.3f} times as long, geometric mean of all; "
           "tests/bench/ranking_test.cpp holds it below 1.08.")
    yield ""
    yield "| Suite | cases | configurations | first / fastest | worst | case |"
    yield "|---|---:|---:|---:|---:|---|"
    for suite in record["ranking"]:
        timed = json.loads((path.parent / f"configs_{suite['suite']}.json").read_text())
        count = sum("measured_us" in trial for case in timed["configs"] for trial in case["trials"])
        yield (f"| {suite['suite']} | {suite['cases']} | {count} | {suite['first_over_fastest']:.3f} | "
               f"{suite['worst']:.2f} | {suite['case']} |")
    yield ""


def counter_lines(folder, path):
    """What the GPU's counters say of some kernels."""
    record = json.loads(path.read_text())
    yield f"### {folder}: counters"
    yield ""
    yield ("Nsight Compute on the main kernel of some cases, at base clocks (tools/read_counters.py). The busiest pipe is the "
           "matrix unit where arithmetic limits; shared memory counts with the L1 cache.")
    yield ""
    yield ("| Case | µs | GHz | busiest pipe | issue slots | shared memory | L2 cache | its hits | memory | registers | "
           "shared memory, KB |")
    yield "|---|" + "---:|" * 10
    for kernel in record["kernels"]:
        shares = [kernel[f"{name}_percent"] for name in
                  ("busiest_pipe", "issue_slots", "shared_memory", "l2", "l2_hits", "dram")]
        yield (f"| {kernel['suite']} {kernel['case']} | {kernel['duration_us']:.0f} | {kernel['sm_ghz']:.2f} | " +
               " | ".join(f"{share:.0f} %" for share in shares) +
               f" | {kernel['registers']:.0f} | {kernel['shared_kb']:.0f} |")
    yield ""
    yield f"{record['device']}; {record['date']}, commit {record['commit']}."
    yield ""


def part_lines(folder, path):
    """What kernels take with parts of them left out."""
    record = json.loads(path.read_text())
    parts = list(dict.fromkeys(part for case in record["cases"] for part in case["parts"]))
    yield f"### {folder}: {record['suite']} with parts left out"
    yield ""
    yield f"µs of one launch / in a row: {record['about']}."
    yield ""
    yield "| Case | " + " | ".join(parts) + " | limit |"
    yield "|---|" + "---:|" * (len(parts) + 1)
    for case in record["cases"]:
        times = [case["parts"].get(part) for part in parts]
        yield (f"| {case['name']} | " +
               " | ".join(f"{time['us']:.1f} / {time['row_us']:.1f}" if time else "" for time in times) +
               f" | {case['roofline_us']:.1f} |")
    yield ""
    yield f"{record['device']}; {record['date']}, commit {record['commit']}."
    yield ""


def rate_lines(folder, path):
    """What single instructions and copies take."""
    record = json.loads(path.read_text())
    yield f"### {folder}: rates"
    yield ""
    yield f"{record['title']}: {record['about']}."
    yield ""
    for table in record["tables"]:
        yield f"{table['title']}:"
        yield ""
        yield "| " + " | ".join(table["columns"]) + " |"
        yield "|---|" + "---:|" * (len(table["columns"]) - 1)
        for row in table["rows"]:
            yield "| " + " | ".join("" if value is None else str(value) for value in row) + " |"
        yield ""
    yield f"{record['device']}; {record['date']}."
    yield ""


def count_cases(form):
    """Cases of a suite, its variants counted (shapes/README.md)."""
    return sum(math.prod(len(values) for name, values in form.get("each", {}).items() if name not in case)
               for case in form["cases"])


def gpu_part(folder, title):
    """The tables of one kind of GPU; nothing where nothing was recorded."""
    suites = read_results(RESULTS / folder, SHAPES / "cuda")
    if not suites:
        return
    yield f"## {title}"
    yield ""
    yield (f"From the files in [bench/results/{folder}](../bench/results/{folder}), problems in "
           "[shapes/cuda](../shapes/cuda). Speed is the time of NVIDIA's cuDNN or cuBLASLt over ours: the fastest of")
    yield ("all plans it has where a note says of how many, else of the first five it proposes; in one process, the L2 cache flushed before every run. The limit is bytes at the speed of a "
           "copy measured in")
    yield ("the same run, or arithmetic at its peak; apart: the same as several graphs, one plan each. A copy as large: "
           "one that moves as many bytes, timed as the case is, launch and cold caches included.")
    yield ""
    yield "| Suite | recorded | speed | worst | of limit | farthest | target |"
    yield "|---|---:|---:|---:|---:|---:|---|"
    for suite, form, _, result in suites:
        yield (f"| [{suite}](#{folder}-{suite}) | {len(result['cases'])} of {count_cases(form)} | "
               f"{number(result.get('speed'))} | "
               f"{number(result.get('worst', {}).get('speed'))} | "
               f"{number(result.get('share_of_roofline'), '{:.0%}')} | "
               f"{number(result.get('farthest', {}).get('share_of_roofline'), '{:.0%}')} | "
               f"{verdict(form.get('target', {}), result)} |")
    yield ""
    if (RESULTS / folder / "host.json").exists():
        yield from host_lines(RESULTS / folder / "host.json")
    for entry in suites:
        yield from gpu_section(folder, *entry)
    if (RESULTS / folder / "ranking.json").exists():
        yield from choice_lines(folder, RESULTS / folder / "ranking.json")
    if (RESULTS / folder / "counters.json").exists():
        yield from counter_lines(folder, RESULTS / folder / "counters.json")
    for path in sorted((RESULTS / folder).glob("parts_*.json")):
        yield from part_lines(folder, path)
    if (RESULTS / folder / "rates.json").exists():
        yield from rate_lines(folder, RESULTS / folder / "rates.json")
    if (RESULTS / folder / "pytorch.json").exists():
        yield from pytorch_lines(folder, RESULTS / folder / "pytorch.json")


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
               f"{number(result.get('share_of_roofline'), '{:.0%}')} | "
               f"{verdict(form.get('target', {}), result)} |")
    yield ""


def leave_out_wrong_peers(result):
    """A peer whose values at full size are far from ours and from the generic engine's timed something else."""
    far = re.compile(r"at full size (\S+) tolerances from the peer \(")
    for case in result["cases"]:
        if far.search(case.get("check", "")) and peer_of(case, "_ms") is not None:
            for key in ["speed"] + [peer + member for peer in PEERS for member in ("_ms", "_calls")]:
                case.pop(key, None)
            case["cudnn_wrong"] = True
    speeds = [(case["speed"], case["name"]) for case in result["cases"] if "speed" in case]
    if speeds and any("cudnn_wrong" in case for case in result["cases"]):
        result["speed"] = math.exp(sum(math.log(speed) for speed, _ in speeds) / len(speeds))
        worst = min(speeds)
        result["worst"] = {"name": worst[1], "speed": worst[0]}


def read_results(results, shapes):
    suites = []
    for path in sorted(results.glob("*.json")):
        record = json.loads(path.read_text())
        for result in record.get("suites", []):
            suite = result["suite"]
            leave_out_wrong_peers(result)
            form = json.loads((shapes / f"{suite}.json").read_text())
            if record.get("tuned"):
                suite += "-tuned"
                form["title"] += ", plans tuned" + (" in a row" if "share_back_to_back" in result else "")
            suites.append((suite, form, record, result))
    return suites


def page():
    suites = read_results(RESULTS / "cpu", SHAPES)
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
    for gpu, title in GPUS.items():
        lines += gpu_part(gpu, f"Performance on an {title}")
    return "\n".join(lines).rstrip() + "\n"


def main():
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page())
        return 0
    if not PAGE.exists() or PAGE.read_text() != page():
        print("docs/performance.md is not what bench/results gives: "
              "run tools/performance_page.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
