#!/usr/bin/env python3
"""Writes tests/golden/data/*.json: what PyTorch computes, for the oracle to agree with.

    /usr/bin/python3 tests/golden/make_goldens.py          (Debian: apt-get install python3-torch)

Everything is computed in double precision on the CPU from seeded inputs. A case is one graph; the
files are committed, so that the tests need no PyTorch.
"""

import pathlib
import sys

import cases_activation
import cases_attention
import cases_convolution
import cases_dense
import cases_multi_head
import cases_norm
import cases_resample

FAMILIES = (cases_convolution, cases_dense, cases_activation, cases_norm, cases_resample,
            cases_attention, cases_multi_head)


def main():
    folder = pathlib.Path(__file__).resolve().parent / "data"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    sizes = {}
    for family in FAMILIES:
        for case in family.cases():
            if case.name in sizes:
                sys.exit(f"two cases are called {case.name}")
            sizes[case.name] = case.write(folder)
    print(f"{len(sizes)} cases, {sum(sizes.values())} bytes, "
          f"largest {max(sizes, key=sizes.get)} with {max(sizes.values())}")


if __name__ == "__main__":
    main()
