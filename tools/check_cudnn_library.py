#!/usr/bin/env python3
"""Checks the file libcudnn.so.9: its exports, its dependencies and its size.

    check_cudnn_library.py LIBRARY [--no-size]

- SONAME libcudnn.so.9; every name of cudnn/exports.map is defined, with its version, and nothing else is;
- the only libraries it needs are the C and C++ runtimes and OpenMP's;
- stripped it is under 20 MB (--no-size: neither size nor dependencies are checked, for sanitizer builds).
Exits with 1 and prints one line per violation.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = {"libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libgomp.so.1",
           "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
LARGEST = 20_000_000


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def listed_exports():
    """The names of exports.map with their version: {"cudnnCreate": "libcudnn.so.9", ...}."""
    exports, version = {}, None
    for line in (ROOT / "cudnn" / "exports.map").read_text().splitlines():
        if node := re.match(r"\s*([\w.]+)\s*\{", line):
            version = node.group(1)
        elif name := re.match(r"\s*(\w+);", line):
            exports[name.group(1)] = version
    return exports


def defined_exports(library):
    """The symbols that the library defines: {name: version}."""
    exports = {}
    for line in output_of("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines():
        name, _, version = line.split()[-1].partition("@@")
        if line.split()[-2] != "A":  # the version nodes themselves
            exports[name] = version or None
    return exports


def dynamic_problems(library, soname, with_needed):
    """The name that programs record, and the libraries needed."""
    dynamic = output_of("readelf", "-d", library)
    found = re.search(r"\(SONAME\).*\[(.*)\]", dynamic)
    if not found or found.group(1) != soname:
        yield f"SONAME: got {found.group(1) if found else 'none'}, expected {soname}"
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) if with_needed else ():
        if needed not in ALLOWED:
            yield f"needs {needed}, expected only {', '.join(sorted(ALLOWED))}"


def size_problems(library, largest):
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder) / "stripped.so"
        output_of("strip", "-o", str(stripped), library)
        size = stripped.stat().st_size
    if size >= largest:
        yield f"{size} bytes stripped, expected less than {largest}"
    print(f"{size / 1e6:.1f} MB stripped")


def problems(library, with_size):
    expected, defined = listed_exports(), defined_exports(library)
    for name in sorted(expected.keys() - defined.keys()):
        yield f"{name}: listed in exports.map, not defined"
    for name in sorted(defined.keys() - expected.keys()):
        yield f"{name}: defined, not listed in exports.map"
    for name in sorted(expected.keys() & defined.keys()):
        if expected[name] != defined[name]:
            yield f"{name}: has version {defined[name]}, expected {expected[name]}"
    print(f"{len(defined)} names exported")
    yield from dynamic_problems(library, "libcudnn.so.9", with_size)
    if with_size:
        yield from size_problems(library, LARGEST)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--no-size", action="store_true", help="sanitizer build: check neither size nor dependencies")
    arguments = parser.parse_args()
    found = list(problems(arguments.library, not arguments.no_size))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
