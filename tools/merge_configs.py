#!/usr/bin/env python3
"""Merges new timings of configurations into the recorded ones.

tools/merge_configs.py FROM INTO: for every configs_SUITE.json in FROM, which `ashlar bench --configs --record FROM`
wrote, the trials of INTO's file that were timed again are replaced, the others kept; new ones are added.
Device, driver, date and commit become those of FROM: a merged file holds the newest time of each configuration.
"""

import argparse
import json
import pathlib


def key(trial):
    """Engine and knobs; a knob of 0 counts as absent."""
    return trial["engine"], tuple((name, value) for name, value in sorted(trial["knobs"].items()) if value)


def merged_trials(old, new):
    timed = {key(trial) for trial in new}
    return new + [trial for trial in old if key(trial) not in timed]


def merged(old, new):
    known = {case["name"]: case for case in old["configs"]}
    cases = []
    for case in new["configs"]:
        before = known.pop(case["name"], None)
        # Trials of a different region do not compare.
        if before and before["region"] == case["region"]:
            case = {**case, "trials": merged_trials(before["trials"], case["trials"])}
        cases.append(case)
    return {**new, "configs": cases + list(known.values())}


def to_text(record):
    """As `ashlar bench` writes it: one line per trial."""
    head = json.dumps({name: value for name, value in record.items() if name != "configs"}, indent=2)[:-2]
    cases = []
    for case in record["configs"]:
        rest = json.dumps({name: value for name, value in case.items() if name != "trials"})[:-1]
        trials = ",\n      ".join(json.dumps(trial, separators=(",", ":")) for trial in case["trials"])
        cases.append(f'{rest}, "trials": [\n      {trials}]}}')
    return head + ',\n  "configs": [\n    ' + ",\n    ".join(cases) + "]\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, metavar="FROM")
    parser.add_argument("target", type=pathlib.Path, metavar="INTO")
    folders = parser.parse_args()
    files = sorted(folders.source.glob("configs_*.json"))
    if not files:
        parser.error(f"{folders.source} has no configs_*.json")
    if not folders.target.is_dir():
        parser.error(f"{folders.target} is not a folder")

    def read(path):
        try:
            return json.loads(path.read_text())
        except ValueError as error:
            return parser.error(f"{path}: not JSON ({error})")

    for file in files:
        record = read(file)
        target = folders.target / file.name
        if target.exists():
            record = merged(read(target), record)
        target.write_text(to_text(record))
        trials = sum(len(case["trials"]) for case in record["configs"])
        print(f"{target}: {len(record['configs'])} cases, {trials} trials")


if __name__ == "__main__":
    main()
