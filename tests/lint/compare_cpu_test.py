#!/usr/bin/env python3
"""tools/compare_cpu.py on two stand-ins for the ashlar command that report given times."""

import json
import pathlib
import subprocess
import sys
import tempfile

TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "compare_cpu.py"

# Answers `bench --list`, and `bench SUITE ... --json FILE` with its table of times; a list of times is used run by run.
COMMAND = """#!{python}
import json, pathlib, sys
times = {times!r}
if sys.argv[1:] == ["bench", "--list"]:
    for suite, cases in times.items():
        print(suite + ": a suite")
        for name in cases:
            print("  " + name)
    sys.exit(0)
suite, runs = sys.argv[2], pathlib.Path(__file__ + "." + sys.argv[2])
number = int(runs.read_text()) if runs.exists() else 0
runs.write_text(str(number + 1))
at = lambda value: value[number % len(value)] if isinstance(value, list) else value
cases = [dict(name=name, ours_ms=at(value)) for name, value in times[suite].items()]
pathlib.Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps(dict(suites=[dict(suite=suite, cases=cases)])))
sys.exit({code})
"""


def command(folder, name, times, code=0):
    path = folder / name
    path.write_text(COMMAND.format(python=sys.executable, times=times, code=code))
    path.chmod(0o755)
    return path


def run(*arguments):
    return subprocess.run([sys.executable, TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)


def check(condition, what, done):
    if not condition:
        sys.exit(f"FAILED: {what}\n{done.stdout}{done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        old = command(folder, "old", {"norms": {"a": 2.0, "b": 4.0}, "gpt": {"c": 1.0}, "left": {"d": 1.0}})
        # The best of the rounds counts: a disturbed run does not.
        same = command(folder, "same", {"norms": {"a": [9.0, 2.0, 9.0], "b": 4.0, "added": 1.0}, "gpt": {"c": 1.0}})
        done = run(old, same, "--json", folder / "speeds.json")
        check(done.returncode == 0 and "3 cases of 2 suites: geometric mean 1.000" in done.stdout, "equal builds", done)
        check(json.loads((folder / "speeds.json").read_text()) == {"norms": {"a": 1.0, "b": 1.0}, "gpt": {"c": 1.0}},
              "speeds of the common cases", done)

        slower = command(folder, "slower", {"norms": {"a": 2.0, "b": 4.0}, "gpt": {"c": 1.06}})
        done = run(old, slower)
        check(done.returncode == 1 and "gpt: 0.943 is below 0.95" in done.stdout, "a slower suite", done)
        done = run(old, slower, "norms")
        check(done.returncode == 0 and "gpt" not in done.stdout, "chosen suites", done)
        mean = command(folder, "mean", {"norms": {"a": 2.08, "b": 4.16}, "gpt": {"c": 1.04}})
        done = run(old, mean)
        check(done.returncode == 1 and "the geometric mean is below 0.98" in done.stdout, "a slower mean", done)

        wrong = command(folder, "wrong", {"norms": {"a": 2.0}}, code=1)
        done = run(old, wrong)
        check(done.returncode == 2 and "exit code 1" in done.stderr, "a wrong result", done)
        done = run(old, folder / "absent")
        check(done.returncode == 2 and done.stderr.startswith("compare_cpu: "), "an absent command", done)
        done = run(old, same, "--rounds", 0)
        check(done.returncode == 2 and "--rounds: got 0" in done.stderr, "no rounds", done)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
