// The operation graph and its builder.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/dtype.hpp>
#include <ashlar/error.hpp>
#include <ashlar/ops.hpp>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ashlar {

using TensorId = std::int32_t;  // position in Graph::tensors()
using NodeId = std::int32_t;    // position in Graph::nodes()
inline constexpr TensorId kNoTensor = -1;

// Of the library: not exported.
struct GraphData;
struct GraphAccess;
class BorrowedGraph;

#pragma GCC visibility push(default)

enum class TensorKind : std::uint8_t {
  input,         // read from memory bound at run()
  output,        // written to memory bound at run()
  intermediate,  // an edge inside the graph ("virtual"): the caller binds no memory
  scalar,        // one value, read from a host pointer by each run()
  constant,      // one value, stored in the graph
};

struct Tensor {
  std::string name;
  std::int64_t uid = 0;
  TensorKind kind = TensorKind::intermediate;
  DType dtype = f32;
  bool infer_dtype = false;  // true until the producing node has inferred the dtype
  Dims dims = {};            // empty until inferred
  Dims strides = {};         // in elements; empty until inferred
  double value = 0.0;        // constants only
  // Ragged tensors: batch b starts at element ragged_offset[b] instead of b * strides[0]. The
  // offsets are an i32 or i64 tensor [B + 1, 1, 1, ...].
  TensorId ragged_offset = kNoTensor;
};

// Size in bytes of the memory to bind: up to and including the last element, gaps of strides
// included. A ragged tensor counts as padded to its longest sequence. Throws Error(size_overflow).
std::int64_t byte_size(const Tensor& tensor);

struct Node {
  std::string name;
  Op op;
  std::vector<TensorId> inputs;   // indexed by the op's In; kNoTensor: optional input absent
  std::vector<TensorId> outputs;  // indexed by the op's Out
  DType compute = f32;            // type of arithmetic and accumulation
};

// Properties of an operation's first output; everything unset is inferred.
struct OutputSpec {
  std::string name = {};              // of the node and of its output
  std::optional<DType> dtype = {};    // default: dtype of the first non-scalar operand
  Dims dims = {};                     // required only where they cannot be inferred
  std::optional<Layout> layout = {};  // default: the axis order of the first operand of that rank
  std::optional<DType> compute = {};  // default: f32; f64, i32 or i64 for operands of that type
};

class Graph;

// A handle to a tensor of a graph under construction. Cheap to copy. Valid while the graph exists;
// moving the Graph object does not invalidate it.
class Value {
 public:
  Value() = default;
  explicit operator bool() const { return graph_ != nullptr; }
  TensorId id() const { return id_; }
  const Tensor& tensor() const;
  const Dims& dims() const { return tensor().dims; }
  DType dtype() const { return tensor().dtype; }

 private:
  friend class Graph;
  friend class BorrowedGraph;
  Value(GraphData* graph, TensorId id) : graph_(graph), id_(id) {}
  GraphData* graph_ = nullptr;
  TensorId id_ = kNoTensor;
};

// An operand of Graph::apply. Slots are typed: a number or the slot of another operation does not
// compile. The operands of Concat all have its one slot, in order.
template <Operation O>
struct Operand {
  typename O::In slot;
  Value value;  // empty: the optional operand is absent
};
// An output requested from Graph::apply.
template <Operation O>
struct Wanted {
  Wanted(typename O::Out out, std::optional<DType> type = {}, Dims extents = {})
      : slot(out), dtype(type), dims(extents) {}
  typename O::Out slot;
  std::optional<DType> dtype;
  Dims dims;
};
// What Graph::apply returns: the outputs of one node, empty where not requested. Converts to the
// first one, which is always computed.
template <Operation O>
class Outputs {
 public:
  explicit Outputs(std::vector<Value> values) : values_(std::move(values)) {}
  Value operator[](typename O::Out slot) const { return values_[static_cast<std::size_t>(slot)]; }
  operator Value() const { return values_.front(); }
  const std::vector<Value>& all() const& { return values_; }  // by slot
  std::vector<Value> all() && { return std::move(values_); }

 private:
  std::vector<Value> values_;
};

// The same with slots as numbers, for Graph::apply_any.
struct AnyOperand {
  int slot;
  Value value;
};
struct AnyWanted {
  int slot;
  std::optional<DType> dtype = {};
  Dims dims = {};
};

struct NormResults {
  Value y, mean, inv_variance, next_running_mean, next_running_var;
};
struct NormOperands {
  Value scale = {}, bias = {}, mean = {}, inv_variance = {}, running_mean = {}, running_var = {};
  Value epsilon = {}, momentum = {};  // one element each; override the attributes
};
struct NormGradients {
  Value dx, dscale, dbias;
};
struct NormGradientOperands {
  Value scale = {}, mean = {}, inv_variance = {};
  Value epsilon = {};
};
struct AttentionOperands {
  Value bias = {}, seq_len_q = {}, seq_len_kv = {}, dropout_seed = {}, dropout_offset = {},
        dropout_mask = {};
  Value scale = {};
};
struct AttentionGradients {
  Value dq, dk, dv, dbias;
};

// A directed acyclic graph of operations. Shape inference and validation happen as operations are
// added: an invalid operation throws Error(invalid_graph) and leaves the graph unchanged. Not
// thread-safe while under construction.
class Graph {
 public:
  explicit Graph(std::string name = "graph");
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();
  Graph clone() const;

  // --- tensors
  Value input(std::string name, Dims dims, DType dtype, const Layout& layout = row_major);
  Value ragged_input(std::string name, Dims dims, DType dtype, const Layout& layout, Value offsets);
  Value scalar(std::string name, DType dtype = f32, int rank = 4);
  Value constant(double value, DType dtype = f32, int rank = 4);
  // Marks a computed tensor as an output and names it. `spec` may change its dtype and layout.
  Value output(std::string name, Value value, const OutputSpec& spec = {});
  // Makes an output ragged: batch b starts at element offsets[b].
  void set_ragged(Value tensor, Value offsets);
  // Uids of inputs, scalars and outputs must be distinct. The default is the tensor's id plus one.
  void set_uid(Value tensor, std::int64_t uid);

  // --- operations
  // Adds any operation, with operands by slot:
  //   auto out = graph.apply(GenStats{}, {{GenStats::x, x}}, {GenStats::sum, GenStats::sq_sum});
  //   out[GenStats::sum]
  // `spec` describes slot 0, which is always computed. The methods below are shorthands for the
  // common operations.
  template <Operation O>
  [[gnu::visibility("hidden")]] Outputs<O> apply(
      O op, const std::type_identity_t<std::vector<Operand<O>>>& inputs,
      const std::type_identity_t<std::vector<Wanted<O>>>& outputs = {},
      const OutputSpec& spec = {});
  Value conv(Value x, Value w, const ConvAttributes& = {}, const OutputSpec& = {}, Value z = {});
  Value conv_backward_data(Value dy, Value w, const ConvAttributes&, const OutputSpec&,
                           Value z = {});
  Value conv_backward_filter(Value x, Value dy, const ConvAttributes&, const OutputSpec&,
                             Value z = {});
  Value matmul(Value a, Value b, const OutputSpec& = {});
  Value pointwise(PointwiseMode mode, std::span<const Value> operands, Pointwise attributes = {},
                  const OutputSpec& = {});
  Value reduce(Value x, ReductionMode mode, Dims axes = {}, const OutputSpec& = {});
  Value resample(Value x, const ResampleAttributes&, const OutputSpec& = {});
  std::pair<Value, Value> resample_with_index(Value x, const ResampleAttributes&,
                                              DType index = i32);
  Value resample_backward(Value dy, const ResampleAttributes&, const OutputSpec&, Value x = {},
                          Value index = {});
  // The statistics are outputs in the training phase only; batch norm updates running statistics if
  // they are given.
  NormResults norm(Value x, const NormForward& = {}, const NormOperands& = {},
                   const OutputSpec& = {});
  NormGradients norm_backward(Value x, Value dy, const NormBackward& = {},
                              const NormGradientOperands& = {}, const OutputSpec& = {});
  Value softmax(Value x, const SoftmaxAttributes& = {}, const OutputSpec& = {});
  Value softmax_backward(Value y, Value dy, const SoftmaxAttributes& = {}, const OutputSpec& = {});
  // Returns {o, stats}; stats is empty unless with_stats.
  std::pair<Value, Value> attention(Value q, Value k, Value v, const AttentionAttributes& = {},
                                    const AttentionOperands& = {}, bool with_stats = false,
                                    const OutputSpec& = {});
  AttentionGradients attention_backward(Value q, Value k, Value v, Value o, Value d_o, Value stats,
                                        const AttentionAttributes& = {},
                                        const AttentionOperands& = {}, bool with_dbias = false);
  Value rng(Dims dims, const Rng&, const OutputSpec& = {}, Value seed = {}, Value offset = {});
  Value reshape(Value x, Dims dims, const OutputSpec& = {});
  Value transpose(Value x, Dims permutation, const OutputSpec& = {});
  Value slice(Value x, Dims start, Dims limit, Dims step = {}, const OutputSpec& = {});
  Value concat(std::span<const Value> inputs, std::int64_t axis, const OutputSpec& = {});

  // --- low-level forms, for callers that learn the operation at run time: the JSON reader, the C
  // API. apply_any is apply() with slots as numbers; it returns the outputs by slot. The outputs of
  // add_node may leave dims and strides empty and set infer_dtype; add_node infers them. Returns
  // the new id; on error throws and leaves the graph unchanged.
  std::vector<Value> apply_any(Op op, std::span<const AnyOperand> inputs,
                               std::span<const AnyWanted> outputs, const OutputSpec& spec = {});
  TensorId add_tensor(Tensor tensor);
  NodeId add_node(Node node);

  // Validates the graph as a whole: unique names and uids, one producer per tensor, at least one
  // output. compile() calls it.
  void validate() const;

  const std::string& name() const;
  const std::vector<Tensor>& tensors() const;
  const std::vector<Node>& nodes() const;  // in topological order
  const Tensor& tensor(TensorId id) const;
  Value value(TensorId id);
  // The tensors bound at run(), in order of creation: inputs, scalars and outputs.
  std::vector<TensorId> bound_tensors() const;
  TensorId find_tensor(std::string_view name) const;  // kNoTensor if there is none

  // Hash of operations, attributes, dims, strides, dtypes and topology; independent of names, uids
  // and insertion order.
  std::uint64_t structural_hash() const;
  std::string to_text() const;
  std::string to_json(int indent = 2) const;
  static Graph from_json(std::string_view text);  // throws Error(parse) or Error(invalid_graph)

 private:
  friend class Value;
  friend class BorrowedGraph;
  friend struct GraphAccess;
  // Throws Error(invalid_argument), naming `call`, for an empty value or one of another graph.
  void require_own(Value value, std::string_view call) const;
  std::vector<Value> add(Op op, std::span<const Value> inputs, const OutputSpec& spec,
                         std::initializer_list<bool> wanted, std::optional<DType> second = {});
  std::vector<Value> add(Op op, std::span<const Value> inputs, const OutputSpec& spec,
                         std::span<const std::optional<AnyWanted>> wanted);
  std::unique_ptr<GraphData> data_;
};

template <Operation O>
Outputs<O> Graph::apply(O op, const std::type_identity_t<std::vector<Operand<O>>>& inputs,
                        const std::type_identity_t<std::vector<Wanted<O>>>& outputs,
                        const OutputSpec& spec) {
  std::vector<AnyOperand> operands;
  for (const Operand<O>& operand : inputs) operands.push_back({operand.slot, operand.value});
  std::vector<AnyWanted> wanted;
  for (const Wanted<O>& output : outputs)
    wanted.push_back({output.slot, output.dtype, output.dims});
  return Outputs<O>(apply_any(std::move(op), operands, wanted, spec));
}

// --- pointwise operations as free functions
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator-(Value a);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value pointwise(PointwiseMode mode, Value x);
Value pointwise(PointwiseMode mode, Value x, Value b);
Value relu(Value x);
Value gelu(Value x);
Value gelu_tanh(Value x);
Value sigmoid(Value x);
Value tanh(Value x);
Value swish(Value x);
Value exp(Value x);
Value log(Value x);
Value sqrt(Value x);
Value rsqrt(Value x);
Value erf(Value x);
Value maximum(Value a, Value b);
Value minimum(Value a, Value b);
Value select(Value predicate, Value if_true, Value if_false);
Value cast(Value x, DType dtype);

#pragma GCC visibility pop

}  // namespace ashlar
