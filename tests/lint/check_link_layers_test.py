#!/usr/bin/env python3
"""tools/check_link_layers.py on planted symbols and on object names."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import check_link_layers as checker  # noqa: E402


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def main():
    check(checker.layer_of("CMakeFiles/ashlar.dir/Unity/unity_src_plan_3_cxx.cxx.o") == "plan", "a unity build")
    check(checker.layer_of("CMakeFiles/ashlar.dir/Unity/unity_src_cuda_engines_sm90_0_cxx.cxx.o") == "cuda", "a subfolder")
    check(checker.layer_of("CMakeFiles/ashlar.dir/src/cpu/kernels/gemm.cpp.o") == "cpu", "a file of its own")
    check(checker.layer_of("CMakeFiles/cli_tests.dir/tests/cli/run_test.cpp.o") is None, "no layer")

    layers = {
        "base": ({"fail"}, {"malloc"}),
        "plan": ({"lower", "twice"}, {"fail", "compile", "lower"}),
        "cpu": ({"gemm"}, {"lower", "nvrtc"}),
        "cuda": ({"nvrtc"}, {"fail"}),
        "api": ({"compile", "twice"}, {"gemm", "nvrtc", "lower", "fail"}),
    }
    check(list(checker.violations(layers)) == [("cpu", "nvrtc", "cuda"), ("plan", "compile", "api")],
          "a later layer and a sibling are violations, earlier layers are not")
    check(checker.main(["no/such/folder"]) == 2, "a folder without objects is bad input")


if __name__ == "__main__":
    main()
