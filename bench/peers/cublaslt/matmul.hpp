// A graph as one call of cuBLASLt: d = activation(scale_a * scale_b * a * b + c + bias).
#pragma once

#include <ashlar/graph.hpp>

#include "library.hpp"

namespace ashlar::bench::cublaslt {

// As the library sees it: columns one after the other.
struct Matrix {
  TensorId tensor = kNoTensor;
  bool transposed = false;                                  // memory holds the transpose
  std::int64_t rows = 1, columns = 1, column_distance = 1;  // of what memory holds
  std::int64_t batch_distance = 0;
};

struct Problem {
  Matrix a, b, d;  // d' = b' * a' of the graph: its rows are the library's columns
  Type a_type = Type::bf16, b_type = Type::bf16, d_type = Type::bf16;
  Compute compute = Compute::f32;
  std::int64_t batches = 1;
  TensorId scale_a = kNoTensor, scale_b = kNoTensor;  // one f32 each, for fp8
  TensorId bias = kNoTensor;                          // one number per column of the graph's result
  TensorId residual = kNoTensor;                      // as the result
  Type bias_type = Type::bf16;
  Epilogue epilogue = Epilogue::none;
};

// Throws Refused for a graph that is none.
Problem describe(const Graph& graph, bool tf32);

}  // namespace ashlar::bench::cublaslt
