#!/usr/bin/env python3
"""A user program: compiled in C99 against the headers of cuDNN and of the CUDA runtime, linked
by name, and started with one LD_LIBRARY_PATH.

    tests/cudnn/one_folder_test.py --cc CC --folder FOLDER_WITH_BOTH_LIBRARIES
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROGRAM = r"""
#include <cuda_runtime.h>
#include <cudnn.h>
#include <stdio.h>

int main(void) {
  float numbers[4] = {1, 2, 3, 4};
  float back[4] = {0, 0, 0, 0};
  void* memory = NULL;
  cudnnHandle_t handle = NULL;
  cudaStream_t stream = NULL;
  if (cudaMalloc(&memory, sizeof numbers) != cudaSuccess) return 1;
  if (cudaMemcpy(memory, numbers, sizeof numbers, cudaMemcpyHostToDevice) != cudaSuccess) return 2;
  if (cudaStreamCreate(&stream) != cudaSuccess) return 3;
  if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) return 4;
  if (cudnnSetStream(handle, stream) != CUDNN_STATUS_SUCCESS) return 5;
  if (cudaMemcpy(back, memory, sizeof back, cudaMemcpyDeviceToHost) != cudaSuccess) return 6;
  if (cudnnDestroy(handle) != CUDNN_STATUS_SUCCESS) return 7;
  if (cudaFree(memory) != cudaSuccess || cudaStreamDestroy(stream) != cudaSuccess) return 8;
  printf("cudnn %d, %g\n", (int)cudnnGetVersion(), back[3]);
  return 0;
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--folder", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "program.c"
        source.write_text(PROGRAM)
        program = source.with_suffix("")
        subprocess.run(
            [options.cc, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror",
             f"-I{ROOT}/cudnn/include", f"-I{ROOT}/tools/hostrt/include", str(source),
             "-o", str(program), f"-L{options.folder}", "-lcudnn", "-lcudart"], check=True)
        environment = {**os.environ, "LD_LIBRARY_PATH": options.folder}
        said = subprocess.run([str(program)], env=environment, check=True, capture_output=True,
                              text=True).stdout
    expected = "cudnn 91900, 4\n"
    if said != expected:
        sys.exit(f"the program said {said!r}, expected {expected!r}")
    print("the program ran")


if __name__ == "__main__":
    main()
