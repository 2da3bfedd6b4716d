#!/usr/bin/env python3
"""tools/merge_configs.py and tools/read_counters.py on small files made here."""

import json
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(__file__).resolve().parent.parent.parent / "tools"


def trial(engine, measured, **knobs):
    return {"engine": engine, "knobs": knobs, "estimated_us": 1.0, "measured_us": measured}


def record(commit, **cases):
    configs = [{"name": name, "region": region, "trials": trials} for name, (region, trials) in cases.items()]
    return {"device": "a GPU", "driver": "1", "date": "today", "commit": commit, "suite": "s", "configs": configs}


def run(*arguments):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def merges(folder):
    old, new = folder / "old", folder / "new"
    for place in (old, new):
        place.mkdir()
    (old / "configs_s.json").write_text(json.dumps(record(
        "before", a=("conv", [trial("e", 5, tile=1, lines=0), trial("e", 6, tile=2)]), b=("conv", [trial("e", 7)]),
        c=("conv", [trial("e", 8)]))))
    (new / "configs_s.json").write_text(json.dumps(record(
        "after", a=("conv", [trial("e", 4, tile=1), trial("f", 3, tile=1)]), c=("other", [trial("e", 9)]),
        d=("conv", [trial("e", 1)]))))
    check(run(TOOLS / "merge_configs.py", new, old).returncode == 0, "merging")
    merged = json.loads((old / "configs_s.json").read_text())
    times = {case["name"]: sorted(one["measured_us"] for one in case["trials"]) for case in merged["configs"]}
    check(merged["commit"] == "after", "the newer head")
    check(times["a"] == [3, 4, 6], f"new times in place of old ones, knobs of 0 as if not there: {times['a']}")
    check(times["b"] == [7] and times["d"] == [1], "cases of one side only are kept")
    check(times["c"] == [9], "trials of another region are gone")
    check(run(TOOLS / "merge_configs.py", folder, old).returncode == 2, "a folder without records is refused")
    refused = run(TOOLS / "merge_configs.py", new, folder / "none")
    check(refused.returncode == 2 and "not a folder" in refused.stderr, "a target that is not there is refused")
    (old / "configs_s.json").write_text("{")
    refused = run(TOOLS / "merge_configs.py", new, old)
    check(refused.returncode == 2 and "not JSON" in refused.stderr, "a damaged record is refused")
    check((old / "configs_s.json").read_text() == "{", "and stays as it is")


def reads(folder):
    log = folder / "ncu.log"
    names = ["SM Frequency", "Compute (SM) Throughput", "Issue Slots Busy", "L1/TEX Cache Throughput",
             "L2 Cache Throughput", "L2 Hit Rate", "DRAM Throughput", "Registers Per Thread",
             "Dynamic Shared Memory Per Block"]
    lines = [f"    {name:<40} unit        {i + 1}.5" for i, name in enumerate(names)]
    log.write_text("\n".join(["  product (132, 1, 1)", "    Duration      ms      1,001.58"] + lines) + "\n")
    arguments = ["--device", "a GPU", "--date", "today", "--commit", "x", f"s/case={log}"]
    result = run(TOOLS / "read_counters.py", *arguments)
    check(result.returncode == 0, result.stderr)
    kernel = json.loads(result.stdout)["kernels"][0]
    check(kernel["case"] == "case" and abs(kernel["duration_us"] - 1001580) < 1, f"milliseconds: {kernel}")
    check(kernel["sm_ghz"] == 1.5 and kernel["shared_kb"] == 9.5, f"values by name: {kernel}")
    for wrong, words in (("case", "not SUITE/CASE=LOG"), (f"s/c={folder}/none", "No such file")):
        refused = run(TOOLS / "read_counters.py", *arguments[:-1], wrong)
        check(refused.returncode == 2 and words in refused.stderr, f"{wrong} is refused: {refused.stderr}")
    log.write_text("nothing\n")
    check(run(TOOLS / "read_counters.py", *arguments).returncode != 0, "a log without counters is refused")


def main():
    with tempfile.TemporaryDirectory() as folder:
        merges(pathlib.Path(folder))
        reads(pathlib.Path(folder))
    print("passed")


if __name__ == "__main__":
    main()
