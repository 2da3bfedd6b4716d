// From the operations of a graph descriptor to an ashlar::Graph.
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

// Where the memory of a bound tensor of the graph comes from: the uid of the variant pack. Several
// bound tensors may share one (a tensor read in two shapes, the old contents of an output).
struct BoundUid {
  TensorId tensor;
  std::int64_t uid;
};

// A number that comes with every run (a tensor by value) and that the graph takes for known, so
// that masks are recognised: clients fill what they hide with -inf. A run with another number needs
// a graph without assumptions.
struct Assumption {
  std::int64_t uid;
  DType dtype;
  double value;
};

// A graph under construction. Operations arrive in order; each translate_ function reads operands,
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

  // The tensor an attribute names, to be read: with the extents of its descriptor.
  TensorId operand(const Record& operation, cudnnBackendAttributeName_t attribute);
  TensorId operand_or_none(const Record& operation, cudnnBackendAttributeName_t attribute);
  TensorId operand(const Record& tensor);
  // The same for an operation that reads ragged tensors as they are.
  TensorId ragged_operand(const Record& operation, cudnnBackendAttributeName_t attribute);
  // A constant in place of an operand by value, when there may be assumptions; else the operand.
  TensorId assumed(const Record& operation, cudnnBackendAttributeName_t attribute, double number);
  // What the memory of a result held before.
  TensorId previous(const Record& operation, cudnnBackendAttributeName_t attribute);
  // The memory of an operand read as another type and shape.
  TensorId reread(const Record& operation, cudnnBackendAttributeName_t attribute, DType dtype,
                  const Dims& dims, const Dims& strides);

  // The tensor an attribute names, to be the output of the next node that is added.
  // `dims`: other extents than the descriptor says.
  TensorId result(const Record& operation, cudnnBackendAttributeName_t attribute,
                  std::optional<Dims> dims = {});
  TensorId result_or_none(const Record& operation, cudnnBackendAttributeName_t attribute);
  TensorId ragged_result(const Record& operation, cudnnBackendAttributeName_t attribute);
  // Makes an existing tensor what an attribute names.
  void store(const Record& operation, cudnnBackendAttributeName_t attribute, TensorId value);

  // Adds a node and returns its first output. Empty slots are kNoTensor.
  TensorId add(Op op, std::vector<TensorId> inputs, std::vector<TensorId> outputs,
               DType compute = f32);
  // The same with one new intermediate as output, of inferred extents unless they are given.
  TensorId value(Op op, std::vector<TensorId> inputs, DType dtype, DType compute = f32,
                 const Dims& dims = {});
  // A new intermediate of inferred extents, for an output of the next node.
  TensorId open_value(DType dtype);
  TensorId constant(double number, DType dtype, int rank);
  TensorId pointwise(PointwiseMode mode, std::vector<TensorId> inputs, DType dtype,
                     DType compute = f32);

  // --- views (views.cpp)
  // The elements of `id`, laid out as `from` says, read as `to` says.
  TensorId reinterpreted(TensorId id, const TensorFacts& from, const TensorFacts& to);
  // With leading axes of extent 1, for operations that want equal ranks.
  TensorId with_rank(TensorId id, int rank);
  // Repeated along axes of extent 1 until it has `dims`.
  TensorId expanded(TensorId id, const Dims& dims);
  // Every slice along `axis` `times` times, one behind the other: the heads of grouped queries.
  TensorId repeated(TensorId id, int axis, std::int64_t times);

  // The operation that writes a tensor; null for one of the variant pack.
  const Record* producer_of(std::int64_t uid) const;
  // The extents a result was given, where it has been translated.
  std::optional<Dims> known_dims(std::int64_t uid) const;
  // Consumers of the result with this uid.
  std::vector<const Record*> readers_of(std::int64_t uid) const;

 private:
  struct Produced {
    TensorId id;
    TensorFacts facts;
  };
  struct Pending {  // a result that is written in another form than the operation gives it
    TensorId value;
    TensorFacts facts;
  };
  TensorId input_of(const TensorFacts& facts, const std::string& suffix);
  TensorId memory_of(const TensorFacts& facts, TensorKind kind, const std::string& suffix);
  TensorId read(const TensorFacts& facts, const std::string& suffix = "");
  void write(const Pending& pending);
  TensorId padded(const TensorFacts& facts);
  void write_ragged(TensorId value, const TensorFacts& facts);
  TensorId row_lengths(const TensorFacts& facts);
  TensorId row_starts(const TensorFacts& facts, std::int64_t first);
  std::string unique_name(std::string name);

  Graph graph_{"cudnn"};
  std::vector<const Record*> operations_;
  const ShapeOverrides& overrides_;
  std::map<std::int64_t, Produced> produced_;
  std::vector<std::pair<TensorFacts, TensorId>> inputs_;  // ragged ones as they are stored
  std::vector<std::pair<TensorFacts, TensorId>> read_;    // as operations read them
  std::vector<BoundUid> bound_;
  bool may_assume_;
  std::vector<Assumption> assumptions_;
  std::vector<Pending> pending_;
  std::map<std::string, int> names_;
  std::size_t position_ = 0;  // of the operation that is being translated
};

// A type to compute in: narrow types are computed in f32 or i32, BOOLEAN (masks) in what the
// operands need.
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
