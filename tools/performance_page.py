#!/usr/bin/env python3
"""Writes docs/performance.md and docs/performance/ from the records in bench/results: no figure is typed.

    tools/performance_page.py [--check]   exit code 1 when a page is not what the records give
    tools/performance_page.py --write     writes the pages and removes pages that have no record

docs/performance.md has one table and one chart per device; docs/performance/DEVICE/SUITE.md has every case of a suite.
"""

import json
import math
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import performance_chart  # noqa: E402: next to this file
import performance_readme  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = pathlib.Path("docs/performance.md")
README = pathlib.Path("README.md")
FOLDER = pathlib.Path("docs/performance")
MAX_LINES = 200  # of docs/performance.md


class Key:
    """Members of the records in bench/results. No other place in this file spells them."""

    # Of a record.
    SUITES, TUNED, COPY = "suites", "tuned", "copy_gb_per_s"
    # Of a suite in a record.
    SUITE, CASES, WORST, FARTHEST = "suite", "cases", "worst", "farthest"
    LEAST_OVER_NAIVE, MOST_OVERHEAD, LEAST_OVER_APART = "least_over_naive", "max_overhead", "least_over_apart"
    # Of a suite or a case.
    SPEED, SHARE = "speed", "share_of_roofline"
    SHARE_ROW, SHARE_COPY_ROW = "share_back_to_back", "share_of_copy_back_to_back"
    # Of a case.
    NAME, CHECK, ENGINE, OURS, ROOFLINE = "name", "check", "engine", "ours_ms", "roofline_ms"
    ROW, NAIVE, ALONE, APART = "back_to_back_ms", "naive_ms", "alone_ms", "apart_ms"
    OVERHEAD, OVER_APART, APART_BYTES = "overhead", "speed_over_apart", "share_of_apart_bytes"
    GFLOPS, PEAK, GB_PER_S = "gflops", "peak_gflops", "gb_per_s"
    SHARE_COPY, SHARE_SAME_COPY = "share_of_copy", "share_of_same_copy"
    # Of a peer, behind its name: cudnn_ms.
    PEER_MS, PEER_CALLS, PEER_REFUSAL, PEER_OVERHEAD = "_ms", "_calls", "_refusal", "_overhead"
    # Of an ablation.
    PARTS, US, ROW_US, ROOFLINE_US = "parts", "us", "row_us", "roofline_us"


class Form:
    """Members of the suites in shapes/ that the pages print, and of their targets."""

    TITLE, LIMITER, TARGET, EACH, CASES = "title", "limit", "target", "each", "cases"
    SPEED, WORST, SHARE, LEAST_SHARE = "speed", "worst", "share", "least_share"
    ROW_SHARE, ROW_COPY_SHARE = "row_share", "row_copy_share"
    NAIVE, OVERHEAD, APART = "naive", "overhead", "apart"


PEERS = {"onednn": "oneDNN", "cudnn": "cuDNN", "cublaslt": "cuBLASLt"}


class Device:
    """A folder of bench/results."""

    def __init__(self, name, title, shapes, peer, repeat):
        self.name, self.title, self.shapes, self.peer, self.repeat = name, title, shapes, peer, repeat

    @property
    def is_gpu(self):
        return self.name != "cpu"


DEVICES = (
    Device("cpu", "CPU", "shapes", "oneDNN", "./dev bench -- {suite} --record bench/results/cpu"),
    Device("h200", "H200", "shapes/cuda", "cuDNN or cuBLASLt",
           "ashlar bench {suite} --device cuda:0 --peer cudnn:/path/to/libcudnn.so.9 "
           "--peer cublaslt:/path/to/libcublasLt.so.13 --peer naive --record bench/results/h200"),
)


def number(value, form="{:.2f}"):
    return "" if value is None else form.format(value)


def measured(value, form="{:.2f}"):
    return "not measured" if value is None else form.format(value)


def table(head, rows, left=()):
    """Lines of a table; the first column and those named in `left` are text."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join("---" if i == 0 or name in left else "---:" for i, name in enumerate(head)) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


# ---------------------------------------------------------------------------------------------------------------------
# Targets.


def targets(target, result, is_gpu=True):
    """(target, value, "reached", "not reached" or "not measured") for every target of a suite.

    The reference engine of the CPU is an oracle, not a baseline: targets against it are not printed. On GPUs the naive
    kernel is cuda.generic, one thread per output.
    """
    def of(member, key):
        return result.get(member, {}).get(key)
    wanted = [
        (Form.SPEED, "geometric mean >= {:.2f}x", result.get(Key.SPEED), "{:.2f}x", True),
        (Form.WORST, "every case >= {:.2f}x", of(Key.WORST, Key.SPEED), "{:.2f}x", True),
        (Form.SHARE, ">= {:.0%} of the roofline", result.get(Key.SHARE), "{:.1%}", True),
        (Form.LEAST_SHARE, "every case >= {:.0%} of the roofline", of(Key.FARTHEST, Key.SHARE), "{:.1%}", True),
        (Form.ROW_SHARE, ">= {:.0%} of the roofline back to back", result.get(Key.SHARE_ROW), "{:.1%}", True),
        (Form.ROW_COPY_SHARE, ">= {:.0%} of copies back to back", result.get(Key.SHARE_COPY_ROW), "{:.1%}", True),
        (Form.NAIVE, "every case >= {:g}x the naive kernel", result.get(Key.LEAST_OVER_NAIVE), "{:.0f}x", True),
        (Form.OVERHEAD, "fused epilogue costs <= {:.0%}", result.get(Key.MOST_OVERHEAD), "{:.1%}", False),
        (Form.APART, "every case >= {:.1f}x separate plans", result.get(Key.LEAST_OVER_APART), "{:.2f}x", True),
    ]
    for key, text, got, form, more_is_better in wanted:
        if key not in target or (key == Form.NAIVE and not is_gpu):
            continue
        if got is None:
            outcome = "not measured"
        else:
            reached = got >= target[key] if more_is_better else got <= target[key]
            outcome = "reached" if reached else "**not reached**"
        yield text.format(target[key]), measured(got, form), outcome


def verdict(target, result, is_gpu=True):
    """"geometric mean >= 1.30x: 1.41x, reached"; targets are separated by semicolons."""
    rows = [f"{wanted}: {outcome if got == outcome else f'{got}, {outcome}'}"
            for wanted, got, outcome in targets(target, result, is_gpu)]
    return "; ".join(rows) or "none"


# ---------------------------------------------------------------------------------------------------------------------
# The cases of a suite.


def peer_of(case, member=""):
    """A member of whichever peer the case was timed with."""
    return next((case[peer + member] for peer in PEERS if peer + member in case), None)


def peer_names(cases):
    return " / ".join(name for peer, name in PEERS.items() if any(peer + Key.PEER_MS in case for case in cases))


def rate(case, is_gpu):
    """The achieved rate of the resource that bounds the case."""
    if not is_gpu:
        return f"{case[Key.GFLOPS]:.0f} GFLOP/s" if Key.GFLOPS in case else f"{case[Key.GB_PER_S]:.1f} GB/s"
    if case.get(Key.GFLOPS, 0) / case.get(Key.PEAK, 1) > case[Key.SHARE_COPY]:
        return f"{case[Key.GFLOPS] / 1000:.0f} TFLOP/s"
    return f"{case[Key.GB_PER_S] / 1000:.2f} TB/s"


def peer_note(case):
    """How the peer computes the case: refusals, calls, of how many plans it is the best."""
    if case.get("peer_is_wrong"):
        return "wrong result"
    if peer_of(case, Key.PEER_REFUSAL) is not None:
        return "unsupported"
    calls = peer_of(case, Key.PEER_CALLS) or 1
    tried = re.search(r"best of (\d+)", peer_of(case) or "")
    return ", ".join([f"{calls} calls"] * (calls > 1) + ([f"best of {tried.group(1)}"] if tried else []))


def case_rows(cases, is_gpu):
    """The table of all cases: a column is there where a case of the suite has it."""
    milliseconds = "{:.4f}" if is_gpu else "{:.3f}"
    peer = peer_names(cases)

    def plain(key, form):
        return lambda case: number(case.get(key), form)
    # heading, value of a case, the key whose presence in any case makes the column appear (None: always)
    columns = [
        ("Ashlar, ms", plain(Key.OURS, milliseconds), None),
        (f"{peer}, ms", lambda case: number(peer_of(case, Key.PEER_MS), milliseconds), Key.SPEED),
        ("speedup", plain(Key.SPEED, "{:.2f}"), Key.SPEED),
        ("roofline, ms", plain(Key.ROOFLINE, milliseconds), None),
        ("of roofline", plain(Key.SHARE, "{:.0%}"), None),
        ("rate", lambda case: rate(case, is_gpu), None),
        ("of copy bandwidth", plain(Key.SHARE_COPY, "{:.0%}"), Key.SHARE_COPY),
        ("of a same-size copy", plain(Key.SHARE_SAME_COPY, "{:.0%}"), Key.SHARE_SAME_COPY),
        ("back to back, ms", plain(Key.ROW, milliseconds), Key.ROW),
        ("back to back of roofline", plain(Key.SHARE_ROW, "{:.0%}"), Key.ROW),
        ("of copies back to back", plain(Key.SHARE_COPY_ROW, "{:.0%}"), Key.SHARE_COPY_ROW),
        ("without epilogue, ms", plain(Key.ALONE, milliseconds), Key.ALONE),
        ("epilogue costs", plain(Key.OVERHEAD, "{:+.1%}"), Key.ALONE),
        (f"{peer}'s epilogue costs", lambda case: number(peer_of(case, Key.PEER_OVERHEAD), "{:+.1%}"), Key.ALONE),
        ("separate plans, ms", plain(Key.APART, milliseconds), Key.APART),
        ("speedup over separate plans", plain(Key.OVER_APART, "{:.2f}"), Key.APART),
        ("of their bytes", plain(Key.APART_BYTES, "{:.0%}"), Key.APART),
    ]
    if is_gpu:
        columns.append(("naive kernel, ms", plain(Key.NAIVE, "{:.3f}"), Key.NAIVE))
    columns.append(("engine", lambda case: f"`{case[Key.ENGINE]}`", None))
    if is_gpu:
        columns.append((f"{peer or 'peer'}", peer_note, None))
    columns = [(name, value) for name, value, key in columns
               if key is None or any(key in case for case in cases)]

    def row(case):
        if Key.OURS not in case:
            return [case[Key.NAME], case[Key.CHECK]] + [""] * (len(columns) - 1)
        return [case[Key.NAME]] + [value(case) for _, value in columns]
    return table(["Case"] + [name for name, _ in columns], map(row, cases), ("engine", peer or "peer"))


# ---------------------------------------------------------------------------------------------------------------------
# Records.


class Entry:
    """One suite of one device: its form, and its record and result where it was measured."""

    def __init__(self, suite, form, record=None, result=None):
        self.suite, self.form, self.record, self.result = suite, form, record or {}, result or {}
        self.target = form.get(Form.TARGET, {})

    def page(self):
        return self.suite + ("_tuned" if self.record.get(Key.TUNED) else "")

    def title(self):
        if not self.record.get(Key.TUNED):
            return self.form[Form.TITLE]
        return self.form[Form.TITLE] + ", plans tuned" + (" back to back" if Key.SHARE_ROW in self.result else "")

    def cases_in_form(self):
        """Cases of a suite, counting the values of "each" (shapes/README.md)."""
        return sum(math.prod(len(values) for name, values in self.form.get(Form.EACH, {}).items() if name not in case)
                   for case in self.form[Form.CASES])


def drop_wrong_peers(result):
    """Removes the times of a peer whose full-size results are far from those of Ashlar and of the naive kernel."""
    far = re.compile(r"at full size (\S+) tolerances from the peer \(")
    for case in result[Key.CASES]:
        if far.search(case.get(Key.CHECK, "")) and peer_of(case, Key.PEER_MS) is not None:
            for key in [Key.SPEED] + [peer + member for peer in PEERS for member in (Key.PEER_MS, Key.PEER_CALLS)]:
                case.pop(key, None)
            case["peer_is_wrong"] = True
    speeds = [(case[Key.SPEED], case[Key.NAME]) for case in result[Key.CASES] if Key.SPEED in case]
    if speeds and any("peer_is_wrong" in case for case in result[Key.CASES]):
        result[Key.SPEED] = math.exp(sum(math.log(speed) for speed, _ in speeds) / len(speeds))
        worst = min(speeds)
        result[Key.WORST] = {Key.NAME: worst[1], Key.SPEED: worst[0]}


def read_results(results, shapes):
    """Entries of all suites, measured or not, by name."""
    forms = {path.stem: json.loads(path.read_text()) for path in sorted(shapes.glob("*.json"))}
    entries = []
    for path in sorted(results.glob("*.json")):
        record = json.loads(path.read_text())
        for result in record.get(Key.SUITES, []):
            drop_wrong_peers(result)
            entries.append(Entry(result[Key.SUITE], forms[result[Key.SUITE]], record, result))
    known = {entry.suite for entry in entries}
    entries += [Entry(suite, form) for suite, form in forms.items() if suite not in known]
    return sorted(entries, key=Entry.page)


def machine(record):
    """Machine, versions and date of a record in one sentence."""
    parts = [record.get("device"), record.get("driver"), f"peer {record['peer']}" if record.get("peer") else None]
    if Key.COPY in record:
        parts.append(f"copy bandwidth {record[Key.COPY] / 1000:.2f} TB/s")
    parts.append(", ".join(part for part in (record.get("date"), f"commit {record['commit']}" if "commit" in record
                                             else None) if part))
    if "threads" in record:
        parts.append(f"load at start {record['load_at_start']}")
    return "; ".join(part for part in parts if part) + "."


def suite_page(device, entry):
    """One suite, every case."""
    result = entry.result
    yield f"# {device.title}: {entry.page()}"
    yield ""
    yield f"[All suites on this device](../../performance.md#{device.name})"
    yield ""
    yield f"{entry.title()}."
    yield ""
    yield f"- Target: {verdict(entry.target, result, device.is_gpu)}."
    if Key.SPEED in result:
        yield (f"- Speedup: geometric mean {result[Key.SPEED]:.2f}x, worst case {result[Key.WORST][Key.SPEED]:.2f}x "
               f"({result[Key.WORST][Key.NAME]}).")
    yield f"- Share of the roofline: geometric mean {result[Key.SHARE]:.0%}."
    if Key.SHARE_COPY_ROW in result:
        yield f"- Back to back: {result[Key.SHARE_COPY_ROW]:.0%} of the speed of copies of as many bytes, geometric mean."
    yield f"- Bound by: {entry.form[Form.LIMITER]}"
    yield (f"- Problems: [{entry.suite}.json](../../../{device.shapes}/{entry.suite}.json). Record: "
           f"[{entry.page()}.json](../../../bench/results/{device.name}/{entry.page()}.json).")
    yield f"- Machine: {machine(entry.record)}"
    tune = " --tune" if entry.record.get(Key.TUNED) else ""
    yield f"- Repeat: `{device.repeat.format(suite=entry.suite + tune)}`"
    yield ""
    yield from case_rows(result[Key.CASES], device.is_gpu)


# ---------------------------------------------------------------------------------------------------------------------
# Other pages of a GPU.


def heading(device, title):
    return [f"# {device.title}: {title}", "", f"[All suites on this device](../../performance.md#{device.name})", ""]


def pytorch_family(name):
    """The kind of operation of a case of tests/clients/pytorch_cudnn.py."""
    words = ("conv_transpose", "conv", "batch_norm", "lstm", "gru", "rnn", "ctc_loss", "grid_sample", "affine_grid",
             "attention", "resnet50_training_step", "gpt_training_step")
    return next((word for word in words if name.startswith(word)), name)


def pytorch_page(device, path):
    record = json.loads(path.read_text())
    families = {}
    for case in record["cases"]:
        families.setdefault(pytorch_family(case["name"]), []).append(case)
    passed = sum(case["ok"] for case in record["cases"])
    yield from heading(device, "PyTorch on our libcudnn")
    yield (f"PyTorch {record['pytorch']} with our libcudnn.so.9 in place of {record['peer']}, the same steps with both "
           f"(tests/clients/pytorch_cudnn.py): {passed} of {len(record['cases'])} cases pass, "
           f"{record['calls_answered']:,} calls answered by ours.")
    yield ("Errors are against PyTorch without cuDNN in 64 bits, divided by the bound of the case; the largest of each "
           "kind. Time is ours divided by NVIDIA's: geometric mean and slowest case.")
    yield ""

    def row(family, cases):
        times = [case["time_over_nvidia"] for case in cases if case.get("time_over_nvidia")]
        mean = math.exp(sum(map(math.log, times)) / len(times)) if times else None
        return [family, str(len(cases)), f"{max(case['error_over_bound'] for case in cases):.2f}",
                f"{max(case['nvidia_error_over_bound'] for case in cases):.2f}", number(mean),
                number(max(times, default=None))]
    yield from table(["Kind", "cases", "error / bound", "NVIDIA's", "time", "slowest"],
                     (row(*item) for item in families.items()))
    yield machine({key: record[key] for key in ("device", "date", "commit")})


def ranking_page(device, path):
    record = json.loads(path.read_text())
    yield from heading(device, "first choices of the cost model")
    yield ("`ashlar bench --configs` times the configurations that our engines offer for a case, all of them or the most "
           "promising ones (configs_*.json). The configuration that the cost model ranks first takes")
    yield (f"{record['first_over_fastest']:.3f} times as long as the fastest, geometric mean of all cases; "
           "tests/bench/ranking_test.cpp keeps it below 1.08.")
    yield ""

    def row(suite):
        timed = json.loads((path.parent / f"configs_{suite['suite']}.json").read_text())
        count = sum("measured_us" in trial for case in timed["configs"] for trial in case["trials"])
        return [suite["suite"], str(suite["cases"]), str(count), f"{suite['first_over_fastest']:.3f}",
                f"{suite['worst']:.2f}", suite["case"]]
    yield from table(["Suite", "cases", "configurations", "first / fastest", "worst", "case"],
                     map(row, record["ranking"]), ("case",))


def counters_page(device, path):
    record = json.loads(path.read_text())
    yield from heading(device, "counters")
    yield ("Nsight Compute on the main kernel of some cases, at base clocks (tools/read_counters.py). The busiest pipe is "
           "the tensor core pipe where arithmetic is the bound; shared memory counts with the L1 cache.")
    yield ""
    shares = ("busiest_pipe", "issue_slots", "shared_memory", "l2", "l2_hits", "dram")
    rows = ([f"{kernel['suite']} {kernel['case']}", f"{kernel['duration_us']:.0f}", f"{kernel['sm_ghz']:.2f}",
             *(f"{kernel[f'{name}_percent']:.0f} %" for name in shares), f"{kernel['registers']:.0f}",
             f"{kernel['shared_kb']:.0f}"] for kernel in record["kernels"])
    yield from table(["Case", "µs", "GHz", "busiest pipe", "issue slots", "shared memory", "L2 cache", "L2 hits", "DRAM",
                      "registers", "shared memory, KB"], rows)
    yield machine(record)


def ablation_page(device, path):
    """Times of kernels from which parts were removed."""
    record = json.loads(path.read_text())
    parts = list(dict.fromkeys(part for case in record[Key.CASES] for part in case[Key.PARTS]))
    yield from heading(device, f"{record[Key.SUITE]}, ablation")
    yield f"µs of one launch / back to back: {record['about']}."
    yield ""

    def cell(time):
        return f"{time[Key.US]:.1f} / {time[Key.ROW_US]:.1f}" if time else ""
    yield from table(["Case", *parts, "roofline"],
                     ([case[Key.NAME], *(cell(case[Key.PARTS].get(part)) for part in parts),
                       f"{case[Key.ROOFLINE_US]:.1f}"] for case in record[Key.CASES]))
    yield machine(record)


def rates_page(device, path):
    """Throughput of single instructions and copies."""
    record = json.loads(path.read_text())
    yield from heading(device, "rates")
    yield f"{record['title']}: {record['about']}."
    yield ""
    for one in record["tables"]:
        yield f"{one['title']}:"
        yield ""
        yield from table(one["columns"], (["" if value is None else str(value) for value in row] for row in one["rows"]))
    yield machine(record)


# Glob in the folder of results -> its page and the line of docs/performance.md about it.
EXTRA = (
    ("counters.json", counters_page, lambda stem: ("counters", "counters of Nsight Compute")),
    ("rates.json", rates_page, lambda stem: ("rates", "rates of instructions and copies")),
    ("parts_*.json", ablation_page,
     lambda stem: (stem.removeprefix("parts_") + "_ablation", f"ablation of {stem.removeprefix('parts_')}")),
    ("ranking.json", ranking_page, lambda stem: ("ranking", "first choices of the cost model")),
    ("pytorch.json", pytorch_page, lambda stem: ("pytorch", "PyTorch on our libcudnn")),
)


# ---------------------------------------------------------------------------------------------------------------------
# docs/performance.md.


def host_line(path):
    record = json.loads(path.read_text())
    return (f"Host time: {record['run_us']:.2f} µs to run a plan of one kernel, {record['compile_ms']:.0f} ms to compile a "
            f"new kernel ({record['first_compile_ms']:.0f} ms the first of a process), "
            f"{record['compile_from_cache_ms']:.2f} ms to find it in the cache ({record['host']}; {record['date']}, "
            f"commit {record['commit']}).")


def machines_of(entries):
    """Machine, driver, peers and dates of all records of a device."""
    records = [entry.record for entry in entries if entry.record]

    def all_of(key):
        return list(dict.fromkeys(part for record in records for part in (record.get(key) or "").split(", ") if part))
    names = list(dict.fromkeys(record["device"] for record in records))
    drivers = list(dict.fromkeys(record["driver"] for record in records if "driver" in record))
    dates = sorted(record["date"][:10] for record in records)
    span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    peers = sorted(all_of("peer"))
    return "; ".join([*names, *drivers, ("peers " if len(peers) > 1 else "peer ") + ", ".join(peers),
                      f"measured {span}"]) + "."


def summary_row(device, entry):
    result = entry.result
    name, total = entry.page(), entry.cases_in_form()
    if not result:
        return [name, f"0 of {total}"] + ["not measured"] * 3 + [verdict(entry.target, {}, device.is_gpu)]
    worst = result.get(Key.WORST)
    return [f"[{name}](performance/{device.name}/{name}.md)",
            f"{len(result[Key.CASES])}" if len(result[Key.CASES]) == total else f"{len(result[Key.CASES])} of {total}",
            measured(result.get(Key.SPEED), "{:.2f}x"),
            f"{worst[Key.SPEED]:.2f}x ({worst[Key.NAME]})" if worst else "not measured",
            measured(result.get(Key.SHARE), "{:.0%}"), verdict(entry.target, result, device.is_gpu)]


def device_part(device, entries, results):
    yield f"## {device.title}"
    yield ""
    yield f"Machine: {machines_of(entries)}"
    if (results / "host.json").exists():
        yield host_line(results / "host.json")
    yield ""
    yield f"![Speedup over {device.peer} and share of the roofline per suite](performance/{device.name}.svg)"
    yield ""
    yield from table(["Suite", "cases", f"vs {device.peer}", "worst case", "of roofline", "target"],
                     (summary_row(device, entry) for entry in entries), ("worst case", "target"))
    links = [f"[{text}](performance/{device.name}/{page}.md)" for page, text, _ in extra_pages(device, results)]
    if links:
        yield "Also measured: " + ", ".join(links) + "."
        yield ""


def extra_pages(device, results):
    for pattern, make, naming in EXTRA:
        for path in sorted(results.glob(pattern)):
            page, text = naming(path.stem)
            yield page, text, make(device, path)


INTRODUCTION = """# Performance

`tools/performance_page.py` writes this page, the charts and the page of every suite from the records in
[bench/results](../bench/results); no figure is typed. [bench/README.md](../bench/README.md) describes the method,
[shapes](../shapes/README.md) the problems.

- **Speedup** ("vs"): median time of the peer / median time of Ashlar in the same process. Above 1x Ashlar is faster. A suite's
  figure is the geometric mean over its cases; the worst case is named.
- **Roofline**: the longer of arithmetic / peak rate and bytes / copy bandwidth. On the CPU both rates are measured between the
  samples; on a GPU the copy bandwidth is measured in the same run and the peak is the data sheet's. The share is roofline time /
  our time. Winograd convolutions multiply less than the roofline counts and may exceed 100 %.
- **Peers**: oneDNN on the user's layouts; the fastest plan of cuDNN or cuBLASLt, of all that it has where a suite's page says
  "best of N", else of the first five that it proposes. On a GPU the L2 cache is flushed before every run.
- **Target**: what the suite's file asks for, the measured value, and whether it is reached. "Not measured" means that no record
  has the value.
"""

REPEAT = """## How to repeat it

On an otherwise idle machine:

```
{commands}
tools/performance_page.py --write
```

The first commands measure all suites of a device and write one record per suite; a suite's own page has the command of that
suite. The last one writes these pages; `tools/performance_page.py --check`, which is part of `./dev test`, fails when a page is
not what the records give.
"""


def main_page(parts):
    yield from INTRODUCTION.splitlines()
    yield ""
    for device, entries, results in parts:
        yield from device_part(device, entries, results)
    commands = "\n".join(device.repeat.format(suite="").replace("  ", " ") for device, _, _ in parts)
    yield from REPEAT.format(commands=commands).splitlines()


def chart_of(device, entries):
    rows = [(entry.page(), entry.result.get(Key.SPEED), entry.result.get(Key.WORST, {}).get(Key.SPEED),
             entry.result.get(Key.SHARE)) for entry in entries]
    return performance_chart.chart(f"Ashlar on {device.title}", device.peer, rows)


def pages(root):
    """Path -> contents of everything that the records give."""
    made, parts = {}, []

    def add(path, lines):
        made[path] = "\n".join(lines).rstrip() + "\n"
    for device in DEVICES:
        results = root / "bench" / "results" / device.name
        entries = read_results(results, root / device.shapes)
        if not any(entry.record for entry in entries):
            continue
        parts.append((device, entries, results))
        add(FOLDER / f"{device.name}.svg", chart_of(device, entries))
        for entry in entries:
            if entry.record:
                add(FOLDER / device.name / f"{entry.page()}.md", suite_page(device, entry))
        for page, _, lines in extra_pages(device, results):
            add(FOLDER / device.name / f"{page}.md", lines)
    add(PAGE, main_page(parts))
    if (root / README).exists():
        made[README] = performance_readme.replaced((root / README).read_text(), parts, Key)
    return made


def main(root=ROOT):
    made = pages(root)
    present = {path.relative_to(root) for path in (root / FOLDER).glob("**/*") if path.is_file()}
    stale = sorted(present - set(made))
    if "--write" in sys.argv[1:]:
        for path, text in made.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        for path in stale:
            (root / path).unlink()
        return 0
    wrong = [path for path, text in made.items() if not (root / path).exists() or (root / path).read_text() != text]
    for path in sorted(wrong) + stale:
        print(f"{path} is not what bench/results gives: run tools/performance_page.py --write")
    lines = made[PAGE].count("\n")
    if lines > MAX_LINES:
        print(f"{PAGE} has {lines} lines, the limit is {MAX_LINES}")
    return 1 if wrong or stale or lines > MAX_LINES else 0


if __name__ == "__main__":
    sys.exit(main())
