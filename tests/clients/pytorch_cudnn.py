#!/usr/bin/env python3
"""PyTorch on a GPU with our libcudnn.so.9 in place of NVIDIA's: the same steps with both, checked
against float64 arithmetic without cuDNN.

    tests/clients/pytorch_cudnn.py --library build/cudnn/libcudnn.so.9 [--json FILE] [--only WORD...]

Four processes go through the cases of pytorch_cases.py: the reference; unmodified PyTorch; ours with
the call log on (values, and the call count that proves our library ran); ours without a log (times). A
process that dies or hangs in a case is started again at the next one. A result is good when its error
is within the bound that follows from the type and the accumulation length, or at most twice the error
of NVIDIA's library. A case that PyTorch rejects with NVIDIA's library too is skipped. `--device cpu`
runs everything without cuDNN, to test the cases themselves.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import select
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
ROUNDING = {"f16": 2**-10, "bf16": 2**-7, "tf32": 2**-10, "f32": 2**-23, "f64": 2**-52}


# ------------------------------------------------------------------- in a worker

def loaded_libraries():
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return sorted({line.split()[-1] for line in lines if "/libcudnn" in line})


def median_ms(step, device, seconds):
    """The median time of single steps within the time limit, after some warm-up steps."""
    import torch

    times = []
    begin = time.perf_counter()
    for number in range(200):
        if device == "cpu":
            start = time.perf_counter()
            step()
            elapsed = 1e3 * (time.perf_counter() - start)
        else:
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            marks[0].record()
            step()
            marks[1].record()
            marks[1].synchronize()
            elapsed = marks[0].elapsed_time(marks[1])
        if number >= 3 or elapsed > 1e3 * seconds / 4:
            times.append(elapsed)
        if times and time.perf_counter() - begin > seconds:
            break
    return sorted(times)[len(times) // 2]


def run_case(name, options, log):
    import torch

    import pytorch_cases

    setting = pytorch_cases.Setting.of(name, options.device, options.role == "reference")
    setting.global_modes()
    answer = {}
    before = log.stat().st_size if log else 0
    step = setting.case.make(setting)
    results = step()
    if options.device != "cpu":
        torch.cuda.synchronize()
    if log:
        with log.open("rb") as lines:
            lines.seek(before)
            answer["calls"] = lines.read().count(b"()\n")
    torch.save({k: v.cpu() for k, v in results.items()},
               pathlib.Path(options.folder) / f"{options.role}-{name}.pt")
    if options.times:
        answer["ms"] = median_ms(step, options.device, options.seconds)
    return answer


def worker(options):
    import torch

    if options.device != "cpu":
        torch.cuda.init()
    log = os.environ.get("CUDNN_LOGDEST_DBG")
    def say_facts():
        facts = dict(pytorch=torch.__version__, cudnn=torch.backends.cudnn.version(),
                     libraries=loaded_libraries(),
                     device=torch.cuda.get_device_name() if options.device != "cpu" else "cpu")
        print("FACTS", json.dumps(facts), flush=True)

    say_facts()
    for name in options.names:
        print("BEGIN", name, flush=True)
        try:
            answer = run_case(name, options, pathlib.Path(log) if log else None)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".strip()[:600]}
            traceback.print_exc()
        print("END", json.dumps(answer), flush=True)
    say_facts()
    return 0


# ------------------------------------------------------------------- the processes

class Role:
    """One configuration (library and environment) that runs all cases."""

    def __init__(self, name, options, folder, environment, times):
        self.name, self.options, self.folder = name, options, folder
        self.environment = {**os.environ, **environment}
        self.times = times
        self.facts = {}
        self.answers = {}

    def run(self, names, deadline):
        remaining = list(names)
        while remaining and time.monotonic() < deadline:
            done = self.run_worker(remaining, deadline)
            remaining = remaining[done:]
        for name in remaining:
            self.answers[name] = {"error": "not run: the time was up"}

    def run_worker(self, names, deadline):
        """Starts a process; returns the number of cases it finished or died in."""
        command = [sys.executable, str(HERE / "pytorch_cudnn.py"), "--worker", "--role", self.name,
                   "--device", self.options.device, "--folder", str(self.folder),
                   "--seconds", str(self.options.seconds), *(["--times"] if self.times else []),
                   "--names", *names]
        errors = open(self.folder / f"{self.name}.err", "ab")
        process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE,
                                   stderr=errors)
        current, done = None, 0
        try:
            for kind, text in self.lines(process, deadline):
                if kind == "FACTS":
                    self.facts = json.loads(text)
                elif kind == "BEGIN":
                    current = text
                elif kind == "END":
                    self.answers[current] = json.loads(text)
                    current, done = None, done + 1
            reason = f"the process ended with status {process.wait()}"
        except TimeoutError as late:
            process.kill()
            process.wait()
            reason = str(late)
        finally:
            errors.close()
        if current is not None:
            self.answers[current] = {"error": reason}
            return done + 1
        if done < len(names) and done == 0:
            self.answers[names[0]] = {"error": f"before the first case: {reason}"}
            return 1
        return done

    def lines(self, process, deadline):
        """The next message of the worker, (kind, text); TimeoutError when none comes in time."""
        buffer = b""
        while True:
            patience = min(self.options.case_limit, deadline - time.monotonic())
            ready, _, _ = select.select([process.stdout], [], [], max(0, patience))
            if not ready:
                raise TimeoutError(f"no answer within {max(0, patience):.0f} s")
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                return
            buffer += chunk
            *whole, buffer = buffer.split(b"\n")
            for line in whole:
                kind, _, text = line.decode(errors="replace").partition(" ")
                if kind in ("FACTS", "BEGIN", "END"):
                    yield kind, text


# ------------------------------------------------------------------- the comparison

def bound(case, result, reference):
    """The error bound of a result: its own rounding, the float32 (or float64) accumulation and the
    intermediate roundings, at the magnitude of the largest element."""
    kinds = {"torch.float16": "f16", "torch.bfloat16": "bf16", "torch.float32": "f32",
             "torch.float64": "f64"}
    own = ROUNDING[kinds[str(result.dtype)]]
    sums = ROUNDING["f64" if case.dtype == "f64" else "f32"]
    intermediate = ROUNDING[case.rounded or ("tf32" if case.tf32 else case.dtype)]
    relative = 2 * own + 4 * sums * math.sqrt(case.length) + 2 * intermediate * math.sqrt(case.stages)
    return case.gain * relative * max(reference.abs().max().item(), 1e-30)


def errors(case, results, references):
    """By output: the worst error and the bound. A missing, extra or non-finite output is infinite."""
    import torch

    found = {}
    for name, reference in references.items():
        reference = reference.double()
        if name not in results or results[name].shape != reference.shape:
            found[name] = (math.inf, 1.0)
            continue
        result = results[name]
        off = (result.double() - reference).abs().max().item()
        found[name] = (off if torch.isfinite(result).all() else math.inf,
                       bound(case, result, reference))
    return found


def judge(name, folder, ours, timed, nvidia, reference):
    import torch

    import pytorch_cases

    row = {"name": name}
    for role in (reference, nvidia, ours, timed):
        error = role.answers.get(name, {}).get("error")
        if error:
            row[f"{role.name}_error"] = error
    load = lambda role: torch.load(folder / f"{role.name}-{name}.pt")
    case = pytorch_cases.CASES[name]
    saved = lambda role: (folder / f"{role.name}-{name}.pt").exists()
    if saved(reference) and saved(ours):
        references = load(reference)
        mine = errors(case, load(ours), references)
        theirs = errors(case, load(nvidia), references) if saved(nvidia) else {}
        row["error_over_bound"] = max(off / limit for off, limit in mine.values())
        row["worst_output"] = max(mine, key=lambda n: mine[n][0] / mine[n][1])
        if theirs:
            row["nvidia_error_over_bound"] = max(off / limit for off, limit in theirs.values())
        row["ok"] = all(off <= limit or off <= 2 * theirs.get(output, (0, 0))[0] < math.inf
                        for output, (off, limit) in mine.items())
    else:
        row["ok"] = False
        row["skipped"] = row.get("nvidia_error") is not None and not saved(nvidia)
    row["calls"] = ours.answers.get(name, {}).get("calls")
    for key, role in (("ours_ms", timed), ("nvidia_ms", nvidia)):
        if "ms" in role.answers.get(name, {}):
            row[key] = round(role.answers[name]["ms"], 4)
    if "ours_ms" in row and "nvidia_ms" in row:
        row["time_over_nvidia"] = round(row["ours_ms"] / row["nvidia_ms"], 3)
    return row


def figure(value, form="{:.3g}"):
    return "-" if value is None else form.format(value)


def verdict(row):
    return "yes" if row["ok"] else "-" if row.get("skipped") else "NO"


def print_table(rows):
    width = max(len(row["name"]) for row in rows)
    print(f"{'case':{width}}  ok   error/bound  NVIDIA's  ours ms  NVIDIA ms  ours/NVIDIA  calls")
    for row in rows:
        print(f"{row['name']:{width}}  {verdict(row):3}  "
              f"{figure(row.get('error_over_bound')):>11}  "
              f"{figure(row.get('nvidia_error_over_bound')):>8}  {figure(row.get('ours_ms')):>7}  "
              f"{figure(row.get('nvidia_ms')):>9}  {figure(row.get('time_over_nvidia')):>11}  "
              f"{figure(row['calls'], '{}'):>5}")
    for row in rows:
        for key, value in row.items():
            if key.endswith("_error"):
                print(f"{row['name']}: {key.removesuffix('_error')}: {value}")


def calls_answered(log):
    """The total of the log's last lines, one for each process that wrote to it and ended well."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return sum(int(line.split()[2]) for line in lines
               if line.startswith("ashlar libcudnn: ") and line.endswith(" calls answered"))


def commit():
    said = subprocess.run(["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"],
                          capture_output=True, text=True)
    return said.stdout.strip() or None


def compare(options):
    sys.path.insert(0, str(HERE))
    import pytorch_cases

    names = [n for n in pytorch_cases.CASES
             if not options.only or any(word in n for word in options.only)]
    folder = pathlib.Path(options.folder or tempfile.mkdtemp(prefix="pytorch_cudnn_"))
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "calls.log"
    log.unlink(missing_ok=True)
    preload = {}
    if options.device != "cpu":
        library = str(pathlib.Path(options.library).resolve(strict=True))
        preload = {"LD_PRELOAD": " ".join(filter(None, [library, os.environ.get("LD_PRELOAD")]))}
    logged = {**preload, "CUDNN_LOGLEVEL_DBG": "3", "CUDNN_LOGDEST_DBG": str(log)}
    if options.device == "cpu":
        log.touch()
    roles = {
        "reference": Role("reference", options, folder, {}, False),
        "nvidia": Role("nvidia", options, folder, {}, True),
        "ours": Role("ours", options, folder, logged, False),
        "timed": Role("timed", options, folder, preload, True),
    }
    deadline = time.monotonic() + options.limit
    for role in roles.values():
        start = time.monotonic()
        role.run(names, deadline)
        print(f"{role.name}: {time.monotonic() - start:.0f} s, "
              f"{', '.join(role.facts.get('libraries', [])) or 'no libcudnn loaded'}")
    rows = [judge(name, folder, roles["ours"], roles["timed"], roles["nvidia"], roles["reference"])
            for name in names]
    print_table(rows)
    answered = calls_answered(log)
    facts = roles["nvidia"].facts
    problems = []
    if options.device != "cpu":
        # PyTorch's wheel maps NVIDIA's libcudnn.so.9 in any case; only when it is used does it load its sub-libraries.
        for role in (roles["ours"], roles["timed"]):
            loaded = role.facts.get("libraries", [])
            if library not in loaded or any("/libcudnn_" in path for path in loaded):
                problems.append(f"{role.name} used {', '.join(loaded) or 'nothing'}, not {library}")
        if answered == 0:
            problems.append("the log counts no call answered by ours")
    if options.json:
        record = dict(
            device=facts.get("device"), pytorch=facts.get("pytorch"), peer=f"cuDNN {facts.get('cudnn')}",
            date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            commit=options.commit or commit(), host=platform.machine(), calls_answered=answered, cases=rows)
        text = json.dumps(record, indent=2).replace("Infinity", '"infinite"')
        pathlib.Path(options.json).write_text(text + "\n")
    for problem in problems:
        print(problem)
    bad = [row["name"] for row in rows if verdict(row) == "NO"]
    skipped = sum(verdict(row) == "-" for row in rows)
    print(f"{answered} calls answered by ours; details in {folder}")
    print(f"{len(rows) - len(bad) - skipped} passed, {len(bad)} failed, {skipped} skipped")
    return 1 if bad or problems or not rows else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/cudnn/libcudnn.so.9")
    parser.add_argument("--json", help="where the table goes as JSON")
    parser.add_argument("--only", nargs="*", help="cases whose name contains one of these")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--folder", help="for results and logs; a new one if not given")
    parser.add_argument("--commit", help="of the library, where the tree around this script is another")
    parser.add_argument("--limit", type=float, default=290, help="seconds for everything")
    parser.add_argument("--case-limit", type=float, default=45, help="seconds for one case")
    parser.add_argument("--seconds", type=float, default=0.15, help="of timing for one case")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--times", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--names", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    return worker(options) if options.worker else compare(options)


if __name__ == "__main__":
    sys.exit(main())
