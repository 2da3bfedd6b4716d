// The builder methods of Graph: each adds one node and its output tensors.
#include <array>

#include "base/checked.hpp"
#include "graph/graph_data.hpp"
#include "graph/schema.hpp"
#include "graph/tensor_rules.hpp"

namespace ashlar {

namespace {

// Removes the tensors added to a graph if a later step throws.
class Rollback {
 public:
  explicit Rollback(GraphData& graph)
      : graph_(graph), tensors_(graph.tensors.size()), nodes_(graph.nodes.size()) {}
  ~Rollback() {
    if (done_) return;
    graph_.tensors.resize(tensors_);
    graph_.producers.resize(tensors_);
    graph_.nodes.resize(nodes_);
  }
  void commit() { done_ = true; }

 private:
  GraphData& graph_;
  std::size_t tensors_, nodes_;
  bool done_ = false;
};

Dims strides_of(const std::string& tensor, const Layout& layout, const Dims& dims) {
  return naming_overflow([&] { return fmt::format("tensor '{}'", tensor); },
                         [&] { return layout.strides_for(dims); });
}

Dims single_element(const std::string& tensor, int rank) {
  if (rank < 1 || rank > kMaxRank)
    fail(ErrorCode::invalid_argument, "tensor '{}': rank: got {}, expected 1 to {}", tensor, rank,
         kMaxRank);
  return Dims::filled(rank, 1);
}

}  // namespace

std::vector<Value> Graph::apply(Op op, const std::vector<Operand>& inputs,
                                const std::vector<Wanted>& outputs, const Result& result) {
  const OpSchema& schema = schema_of(op);
  std::vector<Value> operands;
  for (const Operand& operand : inputs) {
    const auto slot = static_cast<std::size_t>(operand.slot);
    if (operand.slot < 0 || (slot >= schema.inputs.size() && !schema.is_variadic()))
      fail(ErrorCode::invalid_argument, "{}: input slot: got {}, expected 0 to {}", schema.name,
           operand.slot, schema.inputs.size() - 1);
    if (operands.size() <= slot) operands.resize(slot + 1);
    operands[slot] = operand.value;
  }
  std::vector<std::optional<Wanted>> wanted(schema.outputs.size());
  wanted[0] = Wanted(0);
  for (const Wanted& output : outputs) {
    if (output.slot < 0 || std::cmp_greater_equal(output.slot, wanted.size()))
      fail(ErrorCode::invalid_argument, "{}: output slot: got {}, expected 0 to {}", schema.name,
           output.slot, wanted.size() - 1);
    wanted[static_cast<std::size_t>(output.slot)] = output;
  }
  return add(std::move(op), operands, result, wanted);
}

std::vector<Value> Graph::add(Op op, std::span<const Value> inputs, const Result& result,
                              std::initializer_list<bool> wanted, std::optional<DType> second) {
  std::vector<std::optional<Wanted>> outputs;
  for (const bool want : wanted) {
    const int slot = static_cast<int>(outputs.size());
    outputs.push_back(want ? std::optional(Wanted(slot, slot == 1 ? second : std::nullopt))
                           : std::nullopt);
  }
  return add(std::move(op), inputs, result, outputs);
}

// Adds a node with the requested outputs (slot 0 always). The result is indexed by output slot and
// empty for outputs not requested.
std::vector<Value> Graph::add(Op op, std::span<const Value> inputs, const Result& result,
                              std::span<const std::optional<Wanted>> wanted) {
  GraphData& graph = *data_;
  Rollback rollback(graph);
  Node node{.name = result.name, .op = std::move(op), .inputs = {}, .outputs = {}};
  const OpSchema& schema = schema_of(node.op);
  if (node.name.empty()) node.name = fmt::format("{}_{}", schema.name, graph.nodes.size());
  for (const Value& input : inputs) {
    if (input) require_own(input, fmt::format("{} '{}': input", schema.name, node.name));
    node.inputs.push_back(input ? input.id_ : kNoTensor);
  }
  std::vector<Value> values;
  std::size_t slot = 0;
  for (const std::optional<Wanted>& want : wanted) {
    Tensor tensor;
    tensor.name = slot == 0 && !result.name.empty()
                      ? result.name
                      : fmt::format("{}.{}", node.name, schema.outputs[slot].name);
    std::optional<DType> dtype = want ? want->dtype : std::nullopt;
    if (slot == 0 && !dtype) dtype = result.dtype;
    tensor.infer_dtype = !dtype;
    tensor.dtype = dtype.value_or(f32);
    if (want) tensor.dims = want->dims;
    if (slot == 0 && tensor.dims.empty()) {
      tensor.dims = result.dims;
      if (result.layout && !result.dims.empty())
        tensor.strides = strides_of(tensor.name, *result.layout, result.dims);
    }
    values.push_back(want ? Value(data_.get(), add_tensor(std::move(tensor))) : Value());
    node.outputs.push_back(values.back().id_);
    ++slot;
  }
  node.compute = result.compute.value_or(default_compute(graph, node));
  const TensorId main_output = node.outputs[0];
  if (result.layout && result.dims.empty()) {
    // The layout can be applied only once the extents are known: infer on a scratch copy of the
    // node first.
    Node trial = node;
    NodeContext context(graph, trial);
    const auto whose = [&] { return fmt::format("{} '{}'", schema.name, trial.name); };
    naming_overflow(whose, [&] { schema.infer(context); });
    Tensor& tensor = graph.tensors[static_cast<std::size_t>(main_output)];
    tensor.dims = context.outputs()[0].dims;
    tensor.strides = strides_of(tensor.name, *result.layout, tensor.dims);
  }
  add_node(std::move(node));
  rollback.commit();
  return values;
}

Value Graph::input(std::string name, Dims dims, DType dtype, const Layout& layout) {
  return ragged_input(std::move(name), dims, dtype, layout, {});
}

Value Graph::ragged_input(std::string name, Dims dims, DType dtype, const Layout& layout,
                          Value offsets) {
  Tensor tensor{.name = std::move(name), .kind = TensorKind::input, .dtype = dtype, .dims = dims};
  for (std::int64_t extent : dims)
    if (extent < 0)
      fail(ErrorCode::invalid_graph, "tensor '{}': dims: got {}, expected extents of at least 0",
           tensor.name, to_string(dims));
  tensor.strides = strides_of(tensor.name, layout, dims);
  if (offsets) require_own(offsets, fmt::format("tensor '{}': ragged_offset", tensor.name));
  tensor.ragged_offset = offsets.id_;
  return {data_.get(), add_tensor(std::move(tensor))};
}

Value Graph::scalar(std::string name, DType dtype, int rank) {
  const Dims dims = single_element(name, rank);
  Tensor tensor{.name = std::move(name), .kind = TensorKind::scalar, .dtype = dtype, .dims = dims};
  return {data_.get(), add_tensor(std::move(tensor))};
}

Value Graph::constant(double value, DType dtype, int rank) {
  std::string name = fmt::format("constant_{}", data_->tensors.size());
  const Dims dims = single_element(name, rank);
  Tensor tensor{.name = std::move(name),
                .kind = TensorKind::constant,
                .dtype = dtype,
                .dims = dims,
                .value = value};
  return {data_.get(), add_tensor(std::move(tensor))};
}

namespace {

// Throws unless the producer of a tensor accepts it with the description `changed`.
void check_producer(GraphData& graph, TensorId id, const Tensor& changed) {
  Node node = graph.nodes[static_cast<std::size_t>(graph.producers[static_cast<std::size_t>(id)])];
  // Inference requires a node that is not in the graph yet: its outputs have no producer.
  struct Apart {
    GraphData& graph;
    std::vector<TensorId> results;
    NodeId producer;
    TensorId id;
    Tensor kept;
    void set(NodeId to) const {
      for (TensorId result : results)
        if (result != kNoTensor) graph.producers[static_cast<std::size_t>(result)] = to;
    }
    ~Apart() {
      set(producer);
      graph.tensors[static_cast<std::size_t>(id)] = std::move(kept);
    }
  };
  Tensor tensor = changed;
  const Apart apart{graph, node.outputs, graph.producers[static_cast<std::size_t>(id)], id,
                    graph.tensors[static_cast<std::size_t>(id)]};
  apart.set(kNoNode);
  graph.tensors[static_cast<std::size_t>(id)] = std::move(tensor);
  NodeContext context(graph, node);
  context.schema().infer(context);
  context.require_usable(fmt::format("dtype of output '{}'", changed.name), changed.dtype);
}

}  // namespace

Value Graph::output(std::string name, Value value, const Result& result) {
  require_own(value, fmt::format("output '{}'", name));
  if (name.empty())
    fail(ErrorCode::invalid_argument, "output: name: got an empty one, expected a name");
  // Only output 0 of a node, and only while it has no reader, may change; anything else is copied.
  bool changeable = false;
  for (const Node& node : data_->nodes) {
    changeable = changeable || node.outputs[0] == value.id_;
    for (TensorId id : node.inputs) changeable = changeable && id != value.id_;
  }
  const bool changes = result.dtype.has_value() || result.layout.has_value();
  Rollback rollback(*data_);
  if (value.tensor().kind != TensorKind::intermediate || (changes && !changeable)) {
    Result copy = result;
    copy.name = name;
    value = pointwise(PointwiseMode::identity, std::array{value}, {}, copy);
  }
  Tensor tensor = value.tensor();
  tensor.name = std::move(name);
  tensor.kind = TensorKind::output;
  if (!result.dims.empty() && result.dims != tensor.dims)
    fail(ErrorCode::invalid_graph, "output '{}': dims: got {}, expected {}", tensor.name,
         to_string(result.dims), to_string(tensor.dims));
  const bool retyped = result.dtype && *result.dtype != tensor.dtype;
  if (result.dtype) tensor.dtype = *result.dtype;
  if (result.layout) tensor.strides = strides_of(tensor.name, *result.layout, tensor.dims);
  check_tensor(*data_, tensor);
  check_no_overlap(tensor);
  if (retyped) check_producer(*data_, value.id_, tensor);
  data_->tensors[static_cast<std::size_t>(value.id_)] = std::move(tensor);
  rollback.commit();
  return value;
}

Value Graph::conv(Value x, Value w, const ConvAttributes& attributes, const Result& result,
                  Value z) {
  return add(ConvForward{attributes}, std::array{x, w, z}, result, {true})[0];
}

Value Graph::conv_backward_data(Value dy, Value w, const ConvAttributes& attributes,
                                const Result& result, Value z) {
  return add(ConvBackwardData{attributes}, std::array{dy, w, z}, result, {true})[0];
}

Value Graph::conv_backward_filter(Value x, Value dy, const ConvAttributes& attributes,
                                  const Result& result, Value z) {
  return add(ConvBackwardFilter{attributes}, std::array{x, dy, z}, result, {true})[0];
}

Value Graph::matmul(Value a, Value b, const Result& result) {
  return add(Matmul{}, std::array{a, b}, result, {true})[0];
}

Value Graph::pointwise(PointwiseMode mode, std::span<const Value> operands, Pointwise attributes,
                       const Result& result) {
  attributes.mode = mode;
  return add(attributes, operands, result, {true})[0];
}

Value Graph::reduce(Value x, ReductionMode mode, Dims axes, const Result& result) {
  return add(Reduction{mode, axes}, std::array{x}, result, {true})[0];
}

Value Graph::resample(Value x, const ResampleAttributes& attributes, const Result& result) {
  return add(ResampleForward{attributes}, std::array{x}, result, {true, false})[0];
}

std::pair<Value, Value> Graph::resample_with_index(Value x, const ResampleAttributes& attributes,
                                                   DType index) {
  const auto values = add(ResampleForward{attributes}, std::array{x}, {}, {true, true}, index);
  return {values[0], values[1]};
}

Value Graph::resample_backward(Value dy, const ResampleAttributes& attributes, const Result& result,
                               Value x, Value index) {
  return add(ResampleBackward{attributes}, std::array{dy, x, index}, result, {true})[0];
}

NormResults Graph::norm(Value x, Value scale, Value bias, const NormForward& attributes,
                        const Result& result, Value running_mean, Value running_var, Value mean,
                        Value inv_variance) {
  const bool training = attributes.phase == NormPhase::training;
  const bool running = training && static_cast<bool>(running_mean);
  const auto values =
      add(attributes,
          std::array{x, scale, bias, Value(), mean, inv_variance, running_mean, running_var},
          result, {true, training && attributes.mode != NormMode::rms, training, running, running});
  return {values[0], values[1], values[2], values[3], values[4]};
}

NormGradients Graph::norm_backward(Value x, Value dy, Value scale, const NormBackward& attributes,
                                   Value mean, Value inv_variance, const Result& result) {
  const bool with_scale = static_cast<bool>(scale);
  const auto values = add(attributes, std::array{x, dy, scale, mean, inv_variance}, result,
                          {true, with_scale, with_scale});
  return {values[0], values[1], values[2]};
}

Value Graph::softmax(Value x, const SoftmaxAttributes& attributes, const Result& result) {
  return add(SoftmaxForward{attributes}, std::array{x}, result, {true, false})[0];
}

Value Graph::softmax_backward(Value y, Value dy, const SoftmaxAttributes& attributes,
                              const Result& result) {
  return add(SoftmaxBackward{attributes}, std::array{y, dy}, result, {true})[0];
}

std::pair<Value, Value> Graph::attention(Value q, Value k, Value v,
                                         const AttentionAttributes& attributes,
                                         const AttentionOperands& with, bool with_stats,
                                         const Result& result) {
  const auto values =
      add(AttentionForward{attributes},
          std::array{q, k, v, with.bias, with.seq_len_q, with.seq_len_kv, with.dropout_seed,
                     with.dropout_offset, with.dropout_mask, with.scale},
          result, {true, with_stats});
  return {values[0], values[1]};
}

AttentionGradients Graph::attention_backward(Value q, Value k, Value v, Value o, Value d_o,
                                             Value stats, const AttentionAttributes& attributes,
                                             const AttentionOperands& with, bool with_dbias) {
  const auto values =
      add(AttentionBackward{attributes},
          std::array{q, k, v, o, d_o, stats, with.bias, with.seq_len_q, with.seq_len_kv,
                     with.dropout_seed, with.dropout_offset, with.dropout_mask, with.scale},
          {}, {true, true, true, with_dbias});
  return {values[0], values[1], values[2], values[3]};
}

Value Graph::rng(Dims dims, const Rng& attributes, const Result& result, Value seed, Value offset) {
  Result with_dims = result;
  with_dims.dims = dims;
  return add(attributes, std::array{seed, offset}, with_dims, {true})[0];
}

Value Graph::reshape(Value x, Dims dims, const Result& result) {
  return add(Reshape{dims}, std::array{x}, result, {true})[0];
}

Value Graph::transpose(Value x, Dims permutation, const Result& result) {
  return add(Transpose{permutation}, std::array{x}, result, {true})[0];
}

Value Graph::slice(Value x, Dims start, Dims limit, Dims step, const Result& result) {
  return add(Slice{start, limit, step}, std::array{x}, result, {true})[0];
}

Value Graph::concat(std::span<const Value> inputs, std::int64_t axis, const Result& result) {
  return add(Concat{axis}, inputs, result, {true})[0];
}

}  // namespace ashlar
