#!/usr/bin/env python3
"""The patches of bench/variants apply to the kernel text as it is, without conflict markers."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MARKERS = ("+<<<<<<<", "+=======", "+>>>>>>>")


def main():
    patches = sorted((ROOT / "bench/variants").glob("*.patch"))
    for patch in patches:
        for number, line in enumerate(patch.read_text().splitlines(), 1):
            if line.startswith(MARKERS):
                sys.exit(f"FAILED: {patch.name}:{number}: a conflict marker: {line}")
    if shutil.which("patch") is None:
        print("not applied: no patch program")
        return
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([sys.executable, ROOT / "tools/kernel_variants.py", "make", folder], check=False,
                              capture_output=True, text=True)
        if made.returncode != 0:
            sys.exit(f"FAILED: {made.stdout}{made.stderr}")
        left = [path for path in pathlib.Path(folder).rglob("*.rej")]
        if left or len(made.stdout.splitlines()) != len(patches):
            sys.exit(f"FAILED: {left or made.stdout}")


if __name__ == "__main__":
    main()
