#!/usr/bin/env python3
"""Converts Nsight Compute output into a record of GPU counters.

tools/read_counters.py --device NAME --date DATE --commit COMMIT SUITE/CASE=LOG... writes JSON for
bench/results/GPU/counters.json. Each LOG is the output of

    ncu -k product -s 2 -c 1 --section SpeedOfLight --section SchedulerStats --section LaunchStats \\
        --section MemoryWorkloadAnalysis --section ComputeWorkloadAnalysis \\
        ashlar bench SUITE --filter CASE --device cuda:0 --peer none

which locks the clocks to base frequency: times are longer than those of the benchmark.
"""

import argparse
import json
import re

METRICS = {
    "Duration": "duration_us",
    "SM Frequency": "sm_ghz",
    "Compute (SM) Throughput": "busiest_pipe_percent",
    "Issue Slots Busy": "issue_slots_percent",
    "L1/TEX Cache Throughput": "shared_memory_percent",
    "L2 Cache Throughput": "l2_percent",
    "L2 Hit Rate": "l2_hits_percent",
    "DRAM Throughput": "dram_percent",
    "Registers Per Thread": "registers",
    "Dynamic Shared Memory Per Block": "shared_kb",
}
UNITS = {"ms": 1000.0, "us": 1.0, "ns": 0.001}


def read(path):
    """The metrics of the one kernel in a log."""
    found = {}
    with open(path, encoding="utf-8") as log:
        for line in log:
            match = re.match(r"^\s{4}(\S.*?)\s{2,}(\S+)\s+([\d.,]+)\s*$", line)
            if match and match.group(1) in METRICS:
                value = float(match.group(3).replace(",", ""))
                found[METRICS[match.group(1)]] = value * UNITS.get(match.group(2), 1.0)
    missing = set(METRICS.values()) - set(found)
    if missing:
        raise SystemExit(f"{path} lacks {', '.join(sorted(missing))}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("device", "date", "commit"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("logs", nargs="+", metavar="SUITE/CASE=LOG")
    given = parser.parse_args()
    record = {"device": given.device, "date": given.date, "commit": given.commit, "kernels": []}
    for entry in given.logs:
        match = re.fullmatch(r"([^/=]+)/([^=]+)=(.+)", entry)
        if not match:
            parser.error(f"'{entry}' is not SUITE/CASE=LOG")
        suite, case, path = match.groups()
        try:
            record["kernels"].append({"suite": suite, "case": case, **read(path)})
        except OSError as error:
            parser.error(f"{path}: {error.strerror}")
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
