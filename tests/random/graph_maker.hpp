// Seeded random valid graphs: chains of operations of all kinds, with shared subexpressions, views,
// broadcasts, scalars, unusual strides and several outputs.
#pragma once

#include <ashlar/graph.hpp>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace ashlar::random_graphs {

class GraphMaker {
 public:
  explicit GraphMaker(std::uint64_t seed) : random_(seed) {}

  Graph make();

 private:
  // --- random choices
  std::int64_t below(std::int64_t limit);
  bool chance(double probability) {
    return static_cast<double>(below(1 << 20)) < probability * (1 << 20);
  }
  template <class Container>
  const auto& one_of(const Container& values) {
    return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(std::size(values))))];
  }

  // --- tensors
  std::string name(const char* stem) { return stem + std::to_string(names_++); }
  std::int64_t extent();
  Dims dims(int rank);
  DType floating();
  DType arithmetic();
  Value input(const Dims& dims, DType dtype);
  // A value of exactly these extents: an existing one if possible, else a new input.
  Value like(const Dims& dims, DType dtype);
  // A value that broadcasts to these extents; may be a scalar or a constant. With `lower_ranks`,
  // leading axes of extent 1 may be missing.
  Value broadcastable(const Dims& dims, DType dtype, bool lower_ranks = false);
  using Test = std::function<bool(const Tensor&)>;
  Value old(const Test& test);  // an empty value if none qualifies
  Value floating_value(int min_rank, int max_rank);
  Value arithmetic_value(int min_rank, int max_rank);
  OutputSpec spec();  // mostly default
  void keep(Value value);

  // --- each adds one operation
  void add_something();
  void add_pointwise();
  void add_bitwise(PointwiseMode mode);
  void add_matmul();
  void add_convolution();
  void add_convolution_gradient();
  void add_reduction();
  void add_pooling();
  void add_interpolation();
  void add_resample_gradient();
  void add_norm();
  void add_norm_gradient();
  void add_softmax();
  void add_attention();
  void add_rng();
  void add_view();
  void add_concat();
  void add_indexing();        // gather, scatter
  void add_recurrent();       // rnn
  void add_low_precision();   // block scales, sub-byte and complex types
  void add_statistics();      // gen_stats, bn_finalize, bn_backward_weights, local norms
  void add_spatial();         // ctc, spatial transformer, im2col, tensor_transform
  void add_sequence();        // mixture of experts, caches, bands, causal convolution, dropout
  void add_multi_head();      // multi-head attention
  void add_language_model();  // cross-entropy, rope
  void add_lines();           // scan, top_k, pad
  // Composites written as sequences of primitive operations, as frameworks do.
  void add_composite_softmax();
  void add_composite_norm();
  void add_composite_attention();
  void add_composite_linear();

  ConvAttributes convolution_attributes(const Dims& x, const Dims& filter);
  ResampleAttributes pooling_attributes(const Dims& x);

  std::mt19937_64 random_;
  Graph graph_{"random"};
  std::vector<Value> pool_;
  int names_ = 0;
};

}  // namespace ashlar::random_graphs
