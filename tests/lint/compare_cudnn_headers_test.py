#!/usr/bin/env python3
"""tools/compare_cudnn_headers.py finds differences: compares our own headers with planted faults."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADERS = ROOT / "cudnn" / "include"

# file, our text, the text of the other side, the expected line of output
FAULTS = [
    ("cudnn_attributes.h", "CUDNN_ATTR_POINTWISE_AXIS = 9,", "CUDNN_ATTR_POINTWISE_AXIS = 19,",
     "enumerator CUDNN_ATTR_POINTWISE_AXIS: 9 "),
    ("cudnn_adv.h", "CUDNN_GRU = 3,", "CUDNN_GRU = 3, CUDNN_ANOTHER = 4,",
     "enumerator CUDNN_ANOTHER: missing"),
    ("cudnn_ops.h", "cudnnStatus_t cudnnOpsVersionCheck(void);",
     "cudnnStatus_t cudnnOpsVersionCheck(int); void cudnnMore(void);",
     "function cudnnOpsVersionCheck: "),
    ("cudnn_ops_types.h", "#define CUDNN_LRN_MAX_N 16", "#define CUDNN_LRN_MAX_N 17",
     "macro CUDNN_LRN_MAX_N: 16"),
    ("cudnn_backend_types.h", "int64_t denominator;", "int64_t more; int64_t denominator;",
     "field cudnnFraction_t.denominator: at 8 of 16"),
    ("cudnn_graph.h", "typedef void* cudnnBackendDescriptor_t;",
     "typedef const void* cudnnBackendDescriptor_t;", "type cudnnBackendDescriptor_t: "),
    ("cudnn_cnn.h", "cudnnStatus_t cudnnCnnVersionCheck(void);", "",
     "function cudnnCnnVersionCheck is not in NVIDIA's headers"),
]
ALSO = ["function cudnnMore: missing", "field cudnnFraction_t.more: missing"]


def compare(folder):
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "compare_cudnn_headers.py"), "match", "--nvidia",
         str(folder)], capture_output=True, text=True)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "include"
        shutil.copytree(HEADERS, folder)
        for name, ours, theirs, _ in FAULTS:
            text = (folder / name).read_text(encoding="utf-8")
            assert text.count(ours) == 1, f"{name}: {ours}"
            (folder / name).write_text(text.replace(ours, theirs), encoding="utf-8")
        done = compare(folder)
        if done.stdout.startswith("skipped: "):
            print(done.stdout, end="")
            return 0
        missed = [line for line in [fault[3] for fault in FAULTS] + ALSO if line not in done.stderr]
        if missed or done.returncode == 0:
            print("not found:", *missed, "in", done.stderr, sep="\n")
            return 1
    same = compare(HEADERS)
    if same.returncode != 0 or not same.stdout.startswith("equal"):
        print("headers differ from themselves:", same.stdout, same.stderr, sep="\n")
        return 1
    print(f"{len(FAULTS)} planted faults found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
