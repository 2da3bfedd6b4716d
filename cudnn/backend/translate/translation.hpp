// Translation of the operations of an OPERATIONGRAPH descriptor to an ashlar::Graph.
#pragma once

#include <ashlar/graph.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/operations.hpp"
#include "backend/translate/tensor_facts.hpp"
#include "core/failure.hpp"

namespace ashlar::cudnn {

// The variant-pack uid of a bound tensor of the graph. Several bound tensors may share a uid (a
// tensor read in two shapes, the old contents of an output).
struct BoundUid {
  TensorId tensor;
  std::int64_t uid;
};

// A pass-by-value tensor that the graph assumes to be constant, so that attention masks are
// recognised (clients fill masked scores with -inf). An execution with another value runs a plan
// without assumptions.
struct Assumption {
  std::int64_t uid;
  DType dtype;
  double value;
};

// The builder. Operations arrive in topological order; each translate_* function reads operands,
// names results and adds nodes.
class Translation {
 public:
  Translation(std::vector<const Record*> operations, const ShapeOverrides& overrides,
              bool may_assume);

  // Translates all operations.
  void run();
  Graph take_graph() { return std::move(graph_); }
  const std::vector<BoundUid>& bound() const { return bound_; }
  const std::vector<Assumption>& assumptions() const { return assumptions_; }

  // --- for the translate_ functions
  TensorFacts facts(const Record& operation, cudnnBackendAttributeName_t attribute) const;
  TensorFacts facts(const Record& tensor) const { return facts_of(tensor, overrides_); }
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  const Dims& dims(TensorId id) const { return graph_.tensor(id).dims; }

  // The tensor that an attribute names, as an input with the dims of its descriptor.
  TensorId operand(const Record& operation, cudnnBackendAttributeName_t attribute);
  TensorId operand_or_none(const Record& operation, cudnnBackendAttributeName_t attribute);
  TensorId operand(const Record& tensor);
  // The same for an operation that supports ragged tensors.
  TensorId ragged_operand(const Record& operation, cudnnBackendAttributeName_t attribute);
  // A constant in place of a pass-by-value operand if assumptions are allowed, else the operand.
  TensorId assumed(const Record& operation, cudnnBackendAttributeName_t attribute, double number);
  // The old contents of a result.
  TensorId previous(const Record& operation, cudnnBackendAttributeName_t attribute);
  // The memory of an operand reinterpreted with another type and shape.
  TensorId reinterpreted_operand(const Record& operation, cudnnBackendAttributeName_t attribute,
                                 DType dtype, const Dims& dims, const Dims& strides);

  // The tensor that an attribute names, as an output of the next node. `dims` replaces the extents
  // of the descriptor.
  TensorId result(const Record& operation, cudnnBackendAttributeName_t attribute,
                  std::optional<Dims> dims = {});
  TensorId result_or_none(const Record& operation, cudnnBackendAttributeName_t attribute);
  TensorId ragged_result(const Record& operation, cudnnBackendAttributeName_t attribute);
  // Writes an existing tensor to the result that an attribute names.
  void store(const Record& operation, cudnnBackendAttributeName_t attribute, TensorId value);

  // Adds a node and returns its first output. Empty slots are kNoTensor.
  TensorId add(Op op, std::vector<TensorId> inputs, std::vector<TensorId> outputs,
               DType compute = f32);
  // Adds a node with one new intermediate as output, with `dims` or inferred extents.
  TensorId value(Op op, std::vector<TensorId> inputs, DType dtype, DType compute = f32,
                 const Dims& dims = {});
  // A new intermediate with inferred extents, for an output of the next node.
  TensorId open_value(DType dtype);
  TensorId constant(double number, DType dtype, int rank);
  TensorId pointwise(PointwiseMode mode, std::vector<TensorId> inputs, DType dtype,
                     DType compute = f32);

  // --- views (views.cpp) The elements of `id`, whose layout is `from`, reinterpreted with the
  // layout `to`.
  TensorId reinterpreted(TensorId id, const TensorFacts& from, const TensorFacts& to);
  // Prepends axes of extent 1 up to `rank`.
  TensorId with_rank(TensorId id, int rank);
  // Broadcasts axes of extent 1 to `dims`.
  TensorId expanded(TensorId id, const Dims& dims);
  // Repeats every slice along `axis` `times` times, as repeat_interleave does (grouped-query
  // heads).
  TensorId repeated(TensorId id, int axis, std::int64_t times);

  // The operation that writes a tensor; null for a tensor of the variant pack.
  const Record* producer_of(std::int64_t uid) const;
  // The dims of a result that is already translated.
  std::optional<Dims> known_dims(std::int64_t uid) const;
  // The operations that read the tensor with this uid.
  std::vector<const Record*> readers_of(std::int64_t uid) const;

 private:
  struct Produced {
    TensorId id;
    TensorFacts facts;
  };
  struct Pending {  // a result whose layout differs from the operation's output
    TensorId value;
    TensorFacts facts;
  };
  TensorId input_of(const TensorFacts& facts, const std::string& suffix);
  TensorId memory_of(const TensorFacts& facts, TensorKind kind, const std::string& suffix);
  TensorId read(const TensorFacts& facts, const std::string& suffix = "");
  void write(const Pending& pending);
  TensorId padded(const TensorFacts& facts);
  void write_ragged(TensorId value, const TensorFacts& facts);
  TensorId sequence_lengths(const TensorFacts& facts);
  TensorId sequence_starts(const TensorFacts& facts, std::int64_t first);
  std::string unique_name(std::string name);

  Graph graph_{"cudnn"};
  std::vector<const Record*> operations_;
  const ShapeOverrides& overrides_;
  std::map<std::int64_t, Produced> produced_;
  std::vector<std::pair<TensorFacts, TensorId>> inputs_;  // ragged ones in their stored layout
  std::vector<std::pair<TensorFacts, TensorId>> read_;    // in the layout that operations read
  std::vector<BoundUid> bound_;
  bool may_assume_;
  std::vector<Assumption> assumptions_;
  std::vector<Pending> pending_;
  std::map<std::string, int> names_;
  std::size_t position_ = 0;  // of the operation that is being translated
};

// The compute type of an operation: f32 or i32 for narrow types, the operands' type for BOOLEAN
// (masks).
DType compute_of(const Translation& translation, cudnnDataType_t type,
                 std::span<const TensorId> operands);

void translate_pointwise(Translation& translation, const Record& operation);
void translate_convolution_forward(Translation& translation, const Record& operation);
void translate_convolution_backward_data(Translation& translation, const Record& operation);
void translate_convolution_backward_filter(Translation& translation, const Record& operation);
void translate_matmul(Translation& translation, const Record& operation);
void translate_reduction(Translation& translation, const Record& operation);
void translate_resample_forward(Translation& translation, const Record& operation);
void translate_resample_backward(Translation& translation, const Record& operation);
void translate_gen_stats(Translation& translation, const Record& operation);
void translate_bn_finalize(Translation& translation, const Record& operation);
void translate_bn_backward_weights(Translation& translation, const Record& operation);
void translate_norm_forward(Translation& translation, const Record& operation);
void translate_norm_backward(Translation& translation, const Record& operation);
void translate_reshape(Translation& translation, const Record& operation);
void translate_concat(Translation& translation, const Record& operation);
void translate_signal(Translation& translation, const Record& operation);
void translate_rng(Translation& translation, const Record& operation);
void translate_paged_cache_load(Translation& translation, const Record& operation);
void translate_expand_band(Translation& translation, const Record& operation);
void translate_contract_band(Translation& translation, const Record& operation);
void translate_block_scale_quantize(Translation& translation, const Record& operation);
void translate_block_scale_dequantize(Translation& translation, const Record& operation);
void translate_sdpa_forward(Translation& translation, const Record& operation);
void translate_sdpa_backward(Translation& translation, const Record& operation);
void translate_moe(Translation& translation, const Record& operation);

}  // namespace ashlar::cudnn
