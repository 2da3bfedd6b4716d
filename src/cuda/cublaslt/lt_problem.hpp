// A matrix product as cuBLASLt takes it: d = a * b (+ bias), columns contiguous, batches at one
// distance.
#pragma once

#include "cuda/cublaslt/cublaslt_api.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

struct LtMatrix {
  View view;
  bool transposed = false;  // memory holds the transpose, column by column
  std::int64_t rows = 1, columns = 1, column_distance = 1;  // of what memory holds
  std::int64_t batch_distance = 0;
};

struct LtProblem {
  LtMatrix a, b, d;
  View bias;  // one number per row of d; absent: none
  std::int64_t batches = 1;
  LtType inputs = LtType::f32, output = LtType::f32;
  LtCompute compute = LtCompute::f32;
};

// Fills `problem`, or says why the region is none.
Support describe(const Region& region, LtProblem& problem);

}  // namespace ashlar::cuda
