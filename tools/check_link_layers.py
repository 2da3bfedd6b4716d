#!/usr/bin/env python3
"""Checks the order of the layers of src/ by what the linker resolves, not by what files include.

    tools/check_link_layers.py BUILD

A function declared in one layer and defined in a later one passes the check of includes (tools/check_style.py), yet the
earlier layer cannot be linked without the later one. BUILD is a build folder; its object files are read with nm. Exit
codes: 0 every undefined symbol of a layer is defined in the same layer or an earlier one; 1 some are not; 2 bad input.
"""

import collections
import pathlib
import re
import subprocess
import sys

# In the order of docs/architecture.md; src/cpu runs the reference, and src/cpu and src/cuda do not see each other.
RANKS = {"base": 0, "graph": 1, "plan": 2, "reference": 3, "cpu": 4, "cuda": 4, "api": 5}
OBJECT = re.compile(r"(?:unity_src_|/src/)(" + "|".join(RANKS) + r")(?:[_/])")


def layer_of(path):
    """The layer of an object file, by the folder of its source or the name of its unity build."""
    found = OBJECT.search(str(path))
    return found.group(1) if found else None


def symbols_of(objects):
    """Mangled names of strong definitions and of undefined references of some object files."""
    defined, undefined = set(), set()
    listing = subprocess.run(["nm", "--no-demangle", *map(str, objects)], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) >= 2 and fields[-2] in "TDBRuV":
            defined.add(fields[-1])
        elif len(fields) == 2 and fields[0] == "U":
            undefined.add(fields[1])
    return defined, undefined


def violations(layers):
    """`layers`: (defined, undefined) by layer. Yields (layer, symbol, layer of its definition)."""
    home = {}
    for layer, (defined, _) in layers.items():
        for symbol in defined:
            home.setdefault(symbol, layer)
    for layer, (defined, undefined) in sorted(layers.items()):
        for symbol in sorted(undefined - defined):
            other = home.get(symbol)
            if other is not None and other != layer and RANKS[other] >= RANKS[layer]:
                yield layer, symbol, other


def demangled(symbols):
    text = "\n".join(symbols)
    return subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True).stdout.splitlines()


def main(arguments):
    if len(arguments) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    objects = collections.defaultdict(list)
    for path in pathlib.Path(arguments[0]).glob("CMakeFiles/*.dir/**/*.o"):
        if layer := layer_of(path):
            objects[layer].append(path)
    missing = sorted(set(RANKS) - set(objects))
    if missing:
        print(f"check_link_layers: {arguments[0]} has no objects of {', '.join(missing)}", file=sys.stderr)
        return 2
    found = list(violations({layer: symbols_of(paths) for layer, paths in objects.items()}))
    for (layer, _, other), name in zip(found, demangled([symbol for _, symbol, _ in found])):
        print(f"src/{layer} needs {name}, which src/{other} defines")
    print(f"check_link_layers: {sum(map(len, objects.values()))} objects, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
