#!/usr/bin/env python3
"""Times patched variants of the kernel text against the unpatched text, with one binary (bench/variants/README.md).

  kernel_variants.py make FOLDER [--patches FOLDER]
  kernel_variants.py time FOLDER --suite NAME [--filter TEXT] [--binary PATH] [--device NAME] [--rounds N]

`make` needs the `patch` program. `time` interleaves all variants in alternating order and prints the
medians of our time and, for fusion suites, of the overhead over the unfused operation.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / "src/cuda/kernels"
PATCHES = ROOT / "bench/variants"
AS_IT_IS = "unpatched"


def make(folder, patches):
    for file in sorted(patches.glob("*.patch")):
        to = folder / file.stem
        if to.exists():
            shutil.rmtree(to)
        shutil.copytree(KERNELS, to)
        with open(file, encoding="utf-8") as text:
            done = subprocess.run(["patch", "-p1", "-s", "-d", str(to)], stdin=text)
        if done.returncode != 0:
            sys.exit(f"kernel_variants: {file} does not apply to {KERNELS}")
        print(to)


def measure(args, variant):
    """One run of the suite: {case: (our milliseconds, overhead or None)}."""
    environment = dict(os.environ)
    environment.pop("ASHLAR_KERNELS", None)
    if variant != AS_IT_IS:
        environment["ASHLAR_KERNELS"] = str(pathlib.Path(args.folder) / variant)
    with tempfile.TemporaryDirectory() as scratch:
        result = pathlib.Path(scratch) / "result.json"
        command = [args.binary, "bench", args.suite, "--device", args.device, "--peer", "none",
                   "--json", str(result), "--seconds", str(args.seconds)]
        if args.filter:
            command += ["--filter", args.filter]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"kernel_variants: '{variant}' failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        cases = [case for suite in json.loads(result.read_text())["suites"] for case in suite["cases"]]
    return {case["name"]: (case["ours_ms"], case.get("overhead")) for case in cases}


def time(args):
    variants = [AS_IT_IS] + sorted(p.name for p in pathlib.Path(args.folder).iterdir() if p.is_dir())
    samples = {}  # (case, variant): list of (milliseconds, overhead)
    for number in range(args.rounds):
        for variant in variants if number % 2 == 0 else reversed(variants):
            print(f"round {number + 1} of {args.rounds}: {variant}", file=sys.stderr)
            for case, figures in measure(args, variant).items():
                samples.setdefault((case, variant), []).append(figures)
    width = max(len(v) for v in variants)
    for case in sorted({case for case, _ in samples}):
        print(case)
        base = statistics.median(ms for ms, _ in samples[case, AS_IT_IS])
        for variant in variants:
            ours = statistics.median(ms for ms, _ in samples[case, variant])
            overheads = [o for _, o in samples[case, variant] if o is not None]
            text = f"  {variant:{width}}  {ours * 1000:9.2f} us  {100 * (ours / base - 1):+6.2f} %"
            if overheads:
                text += f"  overhead {100 * statistics.median(overheads):5.2f} %"
            print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="one patched copy of the kernel text per patch")
    making.add_argument("folder", type=pathlib.Path)
    making.add_argument("--patches", type=pathlib.Path, default=PATCHES)
    timing = commands.add_parser("time", help="times them interleaved; needs a GPU")
    timing.add_argument("folder")
    timing.add_argument("--suite", required=True)
    timing.add_argument("--filter", default="")
    timing.add_argument("--binary", default=str(ROOT / "build/ashlar"))
    timing.add_argument("--device", default="cuda:0")
    timing.add_argument("--rounds", type=int, default=6)
    timing.add_argument("--seconds", type=float, default=0.1)
    args = parser.parse_args()
    if args.command == "make":
        make(args.folder, args.patches)
    else:
        time(args)


if __name__ == "__main__":
    main()
