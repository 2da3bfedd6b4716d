#!/usr/bin/env python3
"""Compares the speed of two builds of Ashlar on this CPU, suite by suite, old and new alternately.

    tools/compare_cpu.py old/build/ashlar build/ashlar                 all suites
    tools/compare_cpu.py old/build/ashlar build/ashlar norms gpt --rounds 5

Both commands time the same cases with the same seeds; every round runs a suite once per build, and the build that runs
first changes from round to round. The time of a case is its best median over the rounds, so that a disturbance must
hit every round to count. Speed is old time / new time: above 1 the new build is faster. With oneDNN built in (`./dev
bench`) results are checked against it quickly; without it every case waits for the double-precision oracle.

Exit codes: 0 the geometric mean of all cases is at least --mean and that of every suite at least --suite; 1 one is not;
2 bad input, a command that fails (a wrong result), or bad usage.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time


class BadInput(Exception):
    """A command that does not do what is asked of it; the text is for the user."""


def suites_of(command):
    """Names of the CPU suites that the command knows."""
    listed = subprocess.run([command, "bench", "--list"], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        raise BadInput(f"{command} bench --list: exit code {listed.returncode}: {listed.stderr.strip()}")
    return [line.split()[0].rstrip(":") for line in listed.stdout.splitlines() if line and not line[0].isspace()]


def times_of(command, suite, seed, options):
    """Median milliseconds of every case of one run of a suite."""
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record.json"
        call = [command, "bench", suite, "--seed", str(seed), "--seconds", str(options.seconds), "--json", str(record)]
        call += ["--quick"] if options.quick else []
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BadInput(f"{' '.join(call)}: exit code {done.returncode}: {(done.stdout + done.stderr)[-400:]}")
        suites = json.loads(record.read_text())["suites"]
    return {case["name"]: case["ours_ms"] for one in suites for case in one["cases"]}


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def speeds_of(old, new):
    """Old time / new time of the cases that both builds have; {} if they have none in common."""
    return {name: old[name] / new[name] for name in old if name in new}


def compare_suite(suite, options):
    best = {}
    for number in range(options.rounds):
        order = [options.old, options.new]
        for command in order if number % 2 == 0 else reversed(order):
            for name, milliseconds in times_of(command, suite, 1 + number, options).items():
                known = best.setdefault(command, {})
                known[name] = min(known.get(name, milliseconds), milliseconds)
    return speeds_of(best[options.old], best[options.new])


def summary(speeds, options):
    """The closing lines for {suite: {case: speed}}, and whether both bounds hold."""
    every = [speed for cases in speeds.values() for speed in cases.values()]
    means = {suite: geometric_mean(cases.values()) for suite, cases in speeds.items() if cases}
    mean, (worst, least) = geometric_mean(every), min(means.items(), key=lambda item: item[1])
    lines = [f"{len(every)} cases of {len(means)} suites: geometric mean {mean:.3f}, worst suite {worst} {least:.3f}"]
    if mean < options.mean:
        lines.append(f"the geometric mean is below {options.mean}")
    lines += [f"{suite}: {speed:.3f} is below {options.suite}"
              for suite, speed in means.items() if speed < options.suite]
    return lines, len(lines) == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="the ashlar command of the old build")
    parser.add_argument("new", help="the ashlar command of the new build")
    parser.add_argument("suites", nargs="*", help="default: all that both commands know")
    parser.add_argument("--rounds", type=int, default=3, help="runs per suite and build (default 3)")
    parser.add_argument("--seconds", type=float, default=0.3, help="time per case and run (default 0.3)")
    parser.add_argument("--quick", action="store_true", help="only the quick cases of the large suites, few samples")
    parser.add_argument("--mean", type=float, default=0.98, help="least geometric mean of all cases (default 0.98)")
    parser.add_argument("--suite", type=float, default=0.95, help="least geometric mean of a suite (default 0.95)")
    parser.add_argument("--json", metavar="FILE", help="also write the speed of every case")
    options = parser.parse_args()
    try:
        if options.rounds < 1:
            raise BadInput(f"--rounds: got {options.rounds}, expected at least 1")
        known = suites_of(options.old)
        suites = options.suites or [suite for suite in suites_of(options.new) if suite in known]
        speeds, start = {}, time.monotonic()
        for number, suite in enumerate(suites):
            cases = speeds[suite] = compare_suite(suite, options)
            if not cases:
                raise BadInput(f"{suite}: the two builds have no case in common")
            worst = min(cases, key=cases.get)
            print(f"[{number + 1}/{len(suites)}] {suite}: {geometric_mean(cases.values()):.3f} over {len(cases)} cases, "
                  f"worst {worst} {cases[worst]:.3f} ({time.monotonic() - start:.0f} s)", flush=True)
    except (BadInput, OSError) as error:
        print(f"compare_cpu: {error}", file=sys.stderr)
        return 2
    lines, holds = summary(speeds, options)
    print("\n".join(lines))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(speeds, indent=1) + "\n")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
