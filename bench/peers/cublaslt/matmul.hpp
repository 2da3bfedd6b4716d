// A graph as one call of cuBLASLt: d = activation(scale_a * scale_b * a * b + c + bias).
#pragma once

#include <ashlar/graph.hpp>

#include "library.hpp"

namespace ashlar::bench::cublaslt {

// A column-major matrix, as cuBLASLt describes it.
struct Matrix {
  TensorId tensor = kNoTensor;
  bool transposed = false;                                    // memory holds the transpose
  std::int64_t rows = 1, columns = 1, leading_dimension = 1;  // of what memory holds
  std::int64_t batch_stride = 0;
};

struct Problem {
  Matrix a, b, d;  // column-major: d^T = b^T a^T, so the library's a is the graph's b
  Type a_type = Type::bf16, b_type = Type::bf16, d_type = Type::bf16;
  Compute compute = Compute::f32;
  std::int64_t batches = 1;
  TensorId scale_a = kNoTensor, scale_b = kNoTensor;  // one f32 each, for fp8
  TensorId bias = kNoTensor;      // one element per column of the graph's result
  TensorId residual = kNoTensor;  // dims, strides and dtype of the result
  Type bias_type = Type::bf16;
  Epilogue epilogue = Epilogue::none;
};

// Throws Refused for a graph that is not one such call.
Problem describe(const Graph& graph, bool tf32);

}  // namespace ashlar::bench::cublaslt
