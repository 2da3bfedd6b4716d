// One-operation graphs of every family, in every dtype and layout, plain and with a fused prologue
// and epilogue.
#pragma once

#include <ashlar/graph.hpp>
#include <functional>
#include <string>
#include <vector>

namespace ashlar::ops {

enum class Shape : std::uint8_t { row_major, channels_last, padded, strided, transposed };
inline constexpr std::array kShapes = {Shape::row_major, Shape::channels_last, Shape::padded,
                                       Shape::strided, Shape::transposed};
std::string_view to_string(Shape shape);
// Strides for a tensor of these extents. `padded` leaves gaps after rows, `strided` between
// elements.
Dims strides_for(Shape shape, const Dims& dims);

struct Variant {
  DType dtype = f32;
  Shape shape = Shape::row_major;
  bool fused = false;  // with a pointwise prologue and epilogue
};

// Builds the tensors of a one-operation graph for a variant.
class CaseBuilder {
 public:
  explicit CaseBuilder(const Variant& variant) : variant_(variant) {}

  Graph& graph() { return graph_; }
  DType dtype() const { return variant_.dtype; }
  // The dtype of parameters and statistics: f64 for f64, else f32.
  DType wide() const { return variant_.dtype == f64 ? f64 : f32; }

  // An operand in the variant's dtype and layout, with a pointwise prologue if fused.
  Value operand(const std::string& name, const Dims& dims);
  // The same in a given dtype, never fused.
  Value input(const std::string& name, const Dims& dims, DType dtype);
  // The main result, with a pointwise epilogue if fused.
  void result(Value value);
  void result(const std::string& name, Value value) { graph_.output(name, value); }

 private:
  Variant variant_;
  Graph graph_{"case"};
};

struct OpCase {
  std::string op;     // as in the table of operations
  std::string label;  // what is special about it
  std::vector<DType> dtypes;
  std::function<void(CaseBuilder&)> build;
  bool exact = false;      // integers yield exactly equal results
  bool one_shape = false;  // layouts are covered by other cases of the operation
};

inline const std::vector<DType> kFloating = {f64, f32, f16, bf16, e4m3, e5m2};
inline const std::vector<DType> kArithmetic = {f64, f32, f16, bf16, e4m3, e5m2, i64, i32, i8, u8};
// Dtypes with fewer cases: what they have in common with other dtypes is tested there.
inline const std::vector<DType> kRareArithmetic = {e2m1, u32, i4, u4};
// Dtypes of pointwise operations; dtypes of data movement.
inline const std::vector<DType> kPointwise = {f64, f32, f16, bf16, e4m3, e5m2, e2m1,   i64,
                                              i32, i8,  u8,  u32,  i4,   u4,   boolean};
inline const std::vector<DType> kMovable = {f64, f32, f16, bf16, e4m3, e5m2, e8m0, e2m1,
                                            i64, i32, i8,  u8,   u32,  i4,   u4,   boolean};

std::vector<OpCase> convolution_cases();
std::vector<OpCase> dense_cases();  // matmul, reduction
std::vector<OpCase> pointwise_cases();
std::vector<OpCase> resample_cases();
std::vector<OpCase> norm_cases();  // norm, softmax
std::vector<OpCase> attention_cases();
std::vector<OpCase> attention_option_cases();
std::vector<OpCase> movement_cases();       // rng, reshape, transpose, slice, concat
std::vector<OpCase> recurrent_cases();      // rnn
std::vector<OpCase> low_precision_cases();  // block scales, sub-byte and complex types
std::vector<OpCase> statistics_cases();  // gen_stats, bn_finalize, bn_backward_weights, local norms
std::vector<OpCase> spatial_cases();     // ctc, spatial transformer, im2col, tensor_transform
std::vector<OpCase>
sequence_cases();  // mixture of experts, caches, bands, causal convolution, dropout
std::vector<OpCase> indexing_cases();        // gather, scatter
std::vector<OpCase> multi_head_cases();      // multi-head attention
std::vector<OpCase> language_model_cases();  // cross-entropy, rope
std::vector<OpCase> lines_cases();           // scan, top_k, pad
std::vector<OpCase> all_cases();

}  // namespace ashlar::ops
