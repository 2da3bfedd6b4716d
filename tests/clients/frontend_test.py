#!/usr/bin/env python3
"""NVIDIA's Python package for cuDNN (nvidia-cudnn-frontend) as a client of our libcudnn.so.9, on a
machine without a GPU: the package builds the graphs, our library runs them on the CPU, and numpy
checks the results.

    LD_LIBRARY_PATH=build/cudnn/host tests/clients/frontend_test.py [NAME...]

`./dev test --clients` installs the package and starts this. With names, only cases that contain one
of them run.
"""

import os
import re
import sys
import traceback

import cudnn

# Each module registers its cases.
import frontend_attention  # noqa: F401
import frontend_attention_masks  # noqa: F401
import frontend_norms  # noqa: F401
import frontend_package  # noqa: F401
import frontend_pointwise  # noqa: F401
import frontend_matmul  # noqa: F401
import frontend_structure  # noqa: F401
from frontend_graph import CASES

# The package's own error, before it calls the library, for features that need a cuDNN later than 9.19.
NEWER = re.compile(r"requires.* v?9\.2\d\.\d+")


def main():
    chosen = [(n, f) for n, f in CASES if not sys.argv[1:] or any(w in n for w in sys.argv[1:])]
    failed, skipped = [], []
    print(f"nvidia-cudnn-frontend {cudnn.__version__}, cuDNN {cudnn.backend_version()}")
    for name, function in chosen:
        try:
            function()
        except Exception as error:
            if NEWER.search(str(error)):
                skipped.append(name)
                print(f"skipped {name}: {error}")
                continue
            failed.append(name)
            print(f"FAILED {name}\n{traceback.format_exc()}")
    for name in failed:
        print(f"FAILED {name}")
    passed = len(chosen) - len(failed) - len(skipped)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    status = main()
    if hasattr(cudnn, "NodeType"):
        # Releases with graphs in Python never release a caller's function, and print a long leak report.
        sys.stdout.flush()
        os._exit(status)
    sys.exit(status)
