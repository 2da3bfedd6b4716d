// A GEMM as cuBLASLt accepts it: d = a * b (+ bias), column-major, uniform batch strides.
#pragma once

#include "cuda/cublaslt/cublaslt_api.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

struct LtMatrix {
  View view;
  bool transposed = false;  // memory holds the transpose, column-major
  std::int64_t rows = 1, columns = 1, column_distance = 1;  // of the matrix in memory
  std::int64_t batch_distance = 0;
};

struct LtProblem {
  LtMatrix a, b, d;
  View bias;  // one element per row of d; absent: none
  std::int64_t batches = 1;
  LtType inputs = LtType::f32, output = LtType::f32;
  LtCompute compute = LtCompute::f32;
};

// Fills `problem`, or returns the reason of a refusal.
Support describe(const Region& region, LtProblem& problem);

}  // namespace ashlar::cuda
