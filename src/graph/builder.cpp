// The builder methods of Graph: each adds one node and its output tensors.
#include <array>

#include "base/checked.hpp"
#include "graph/graph_data.hpp"
#include "graph/node_context.hpp"
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

std::vector<Value> Graph::apply_any(Op op, std::span<const AnyOperand> inputs,
                                    std::span<const AnyWanted> outputs, const OutputSpec& spec) {
  const OpTraits& traits = traits_of(op);
  std::vector<Value> operands;
  for (const AnyOperand& operand : inputs) {
    if (operand.slot < 0 || std::cmp_greater_equal(operand.slot, traits.inputs.size()))
      fail(ErrorCode::invalid_argument, "{}: input slot: got {}, expected 0 to {}", traits.name,
           operand.slot, traits.inputs.size() - 1);
    const std::size_t slot =
        traits.is_variadic() ? operands.size() : static_cast<std::size_t>(operand.slot);
    if (operands.size() <= slot) operands.resize(slot + 1);
    operands[slot] = operand.value;
  }
  std::vector<std::optional<AnyWanted>> wanted(traits.outputs.size());
  wanted[0] = AnyWanted{0};
  for (const AnyWanted& output : outputs) {
    if (output.slot < 0 || std::cmp_greater_equal(output.slot, wanted.size()))
      fail(ErrorCode::invalid_argument, "{}: output slot: got {}, expected 0 to {}", traits.name,
           output.slot, wanted.size() - 1);
    wanted[static_cast<std::size_t>(output.slot)] = output;
  }
  return add(std::move(op), operands, spec, wanted);
}

std::vector<Value> Graph::add(Op op, std::span<const Value> inputs, const OutputSpec& spec,
                              std::initializer_list<bool> wanted, std::optional<DType> second) {
  std::vector<std::optional<AnyWanted>> outputs;
  for (const bool want : wanted) {
    const int slot = static_cast<int>(outputs.size());
    outputs.push_back(want ? std::optional(AnyWanted{slot, slot == 1 ? second : std::nullopt})
                           : std::nullopt);
  }
  return add(std::move(op), inputs, spec, outputs);
}

// Adds a node with the requested outputs (slot 0 always). The result is indexed by output slot and
// empty for outputs not requested.
std::vector<Value> Graph::add(Op op, std::span<const Value> inputs, const OutputSpec& spec,
                              std::span<const std::optional<AnyWanted>> wanted) {
  GraphData& graph = *data_;
  Rollback rollback(graph);
  Node node{.name = spec.name, .op = std::move(op), .inputs = {}, .outputs = {}};
  const OpTraits& traits = traits_of(node.op);
  if (node.name.empty()) node.name = fmt::format("{}_{}", traits.name, graph.nodes.size());
  for (const Value& input : inputs) {
    if (input) require_own(input, fmt::format("{} '{}': input", traits.name, node.name));
    node.inputs.push_back(input ? input.id_ : kNoTensor);
  }
  std::vector<Value> values;
  std::size_t slot = 0;
  for (const std::optional<AnyWanted>& want : wanted) {
    Tensor tensor;
    tensor.name = slot == 0 && !spec.name.empty()
                      ? spec.name
                      : fmt::format("{}.{}", node.name, traits.outputs[slot].name);
    std::optional<DType> dtype = want ? want->dtype : std::nullopt;
    if (slot == 0 && !dtype) dtype = spec.dtype;
    tensor.infer_dtype = !dtype;
    tensor.dtype = dtype.value_or(f32);
    if (want) tensor.dims = want->dims;
    if (slot == 0 && tensor.dims.empty()) {
      tensor.dims = spec.dims;
      if (spec.layout && !spec.dims.empty())
        tensor.strides = strides_of(tensor.name, *spec.layout, spec.dims);
    }
    values.push_back(want ? Value(data_.get(), add_tensor(std::move(tensor))) : Value());
    node.outputs.push_back(values.back().id_);
    ++slot;
  }
  node.compute = spec.compute.value_or(default_compute(graph, node));
  const TensorId main_output = node.outputs[0];
  if (spec.layout && spec.dims.empty()) {
    // The layout can be applied only once the extents are known: infer on a scratch copy of the
    // node first.
    Node trial = node;
    NodeContext context(graph, trial);
    const auto whose = [&] { return fmt::format("{} '{}'", traits.name, trial.name); };
    naming_overflow(whose, [&] { traits.infer(context); });
    Tensor& tensor = graph.tensors[static_cast<std::size_t>(main_output)];
    tensor.dims = context.outputs()[0].dims;
    tensor.strides = strides_of(tensor.name, *spec.layout, tensor.dims);
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
  context.traits().infer(context);
  context.require_usable(fmt::format("dtype of output '{}'", changed.name), changed.dtype);
}

}  // namespace

Value Graph::output(std::string name, Value value, const OutputSpec& spec) {
  require_own(value, fmt::format("output '{}'", name));
  if (name.empty())
    fail(ErrorCode::invalid_argument, "output: name: got an empty one, expected a name");
  // Only output 0 of a node, and only while it has no reader, may change; anything else is copied.
  bool changeable = false;
  for (const Node& node : data_->nodes) {
    changeable = changeable || node.outputs[0] == value.id_;
    for (TensorId id : node.inputs) changeable = changeable && id != value.id_;
  }
  const bool changes = spec.dtype.has_value() || spec.layout.has_value();
  Rollback rollback(*data_);
  if (value.tensor().kind != TensorKind::intermediate || (changes && !changeable)) {
    OutputSpec copy = spec;
    copy.name = name;
    value = pointwise(PointwiseMode::identity, std::array{value}, {}, copy);
  }
  Tensor tensor = value.tensor();
  tensor.name = std::move(name);
  tensor.kind = TensorKind::output;
  if (!spec.dims.empty() && spec.dims != tensor.dims)
    fail(ErrorCode::invalid_graph, "output '{}': dims: got {}, expected {}", tensor.name,
         to_string(spec.dims), to_string(tensor.dims));
  const bool retyped = spec.dtype && *spec.dtype != tensor.dtype;
  if (spec.dtype) tensor.dtype = *spec.dtype;
  if (spec.layout) tensor.strides = strides_of(tensor.name, *spec.layout, tensor.dims);
  check_tensor(*data_, tensor);
  check_no_overlap(tensor);
  if (retyped) check_producer(*data_, value.id_, tensor);
  data_->tensors[static_cast<std::size_t>(value.id_)] = std::move(tensor);
  rollback.commit();
  return value;
}

Value Graph::conv(Value x, Value w, const ConvAttributes& attributes, const OutputSpec& spec,
                  Value z) {
  return add(ConvForward{attributes}, std::array{x, w, z}, spec, {true})[0];
}

Value Graph::conv_backward_data(Value dy, Value w, const ConvAttributes& attributes,
                                const OutputSpec& spec, Value z) {
  return add(ConvBackwardData{attributes}, std::array{dy, w, z}, spec, {true})[0];
}

Value Graph::conv_backward_filter(Value x, Value dy, const ConvAttributes& attributes,
                                  const OutputSpec& spec, Value z) {
  return add(ConvBackwardFilter{attributes}, std::array{x, dy, z}, spec, {true})[0];
}

Value Graph::matmul(Value a, Value b, const OutputSpec& spec) {
  return add(Matmul{}, std::array{a, b}, spec, {true})[0];
}

Value Graph::pointwise(PointwiseMode mode, std::span<const Value> operands, Pointwise attributes,
                       const OutputSpec& spec) {
  attributes.mode = mode;
  return add(attributes, operands, spec, {true})[0];
}

Value Graph::reduce(Value x, ReductionMode mode, Dims axes, const OutputSpec& spec) {
  return add(Reduction{mode, axes}, std::array{x}, spec, {true})[0];
}

Value Graph::resample(Value x, const ResampleAttributes& attributes, const OutputSpec& spec) {
  return add(ResampleForward{attributes}, std::array{x}, spec, {true, false})[0];
}

std::pair<Value, Value> Graph::resample_with_index(Value x, const ResampleAttributes& attributes,
                                                   DType index) {
  const auto values = add(ResampleForward{attributes}, std::array{x}, {}, {true, true}, index);
  return {values[0], values[1]};
}

Value Graph::resample_backward(Value dy, const ResampleAttributes& attributes,
                               const OutputSpec& spec, Value x, Value index) {
  return add(ResampleBackward{attributes}, std::array{dy, x, index}, spec, {true})[0];
}

NormResults Graph::norm(Value x, const NormForward& attributes, const NormOperands& with,
                        const OutputSpec& spec) {
  const bool training = attributes.phase == NormPhase::training;
  const bool running = training && static_cast<bool>(with.running_mean);
  const auto values =
      add(attributes,
          std::array{x, with.scale, with.bias, with.epsilon, with.mean, with.inv_variance,
                     with.running_mean, with.running_var, with.momentum},
          spec, {true, training && attributes.mode != NormMode::rms, training, running, running});
  return {values[0], values[1], values[2], values[3], values[4]};
}

NormGradients Graph::norm_backward(Value x, Value dy, const NormBackward& attributes,
                                   const NormGradientOperands& with, const OutputSpec& spec) {
  const bool with_scale = static_cast<bool>(with.scale);
  const auto values =
      add(attributes, std::array{x, dy, with.scale, with.mean, with.inv_variance, with.epsilon},
          spec, {true, with_scale, with_scale});
  return {values[0], values[1], values[2]};
}

Value Graph::softmax(Value x, const SoftmaxAttributes& attributes, const OutputSpec& spec) {
  return add(SoftmaxForward{attributes}, std::array{x}, spec, {true, false})[0];
}

Value Graph::softmax_backward(Value y, Value dy, const SoftmaxAttributes& attributes,
                              const OutputSpec& spec) {
  return add(SoftmaxBackward{attributes}, std::array{y, dy}, spec, {true})[0];
}

std::pair<Value, Value> Graph::attention(Value q, Value k, Value v,
                                         const AttentionAttributes& attributes,
                                         const AttentionOperands& with, bool with_stats,
                                         const OutputSpec& spec) {
  const auto values =
      add(AttentionForward{attributes},
          std::array{q, k, v, with.bias, with.seq_len_q, with.seq_len_kv, with.dropout_seed,
                     with.dropout_offset, with.dropout_mask, with.scale},
          spec, {true, with_stats});
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

Value Graph::rng(Dims dims, const Rng& attributes, const OutputSpec& spec, Value seed,
                 Value offset) {
  OutputSpec with_dims = spec;
  with_dims.dims = dims;
  return add(attributes, std::array{seed, offset}, with_dims, {true})[0];
}

Value Graph::reshape(Value x, Dims dims, const OutputSpec& spec) {
  return add(Reshape{dims}, std::array{x}, spec, {true})[0];
}

Value Graph::transpose(Value x, Dims permutation, const OutputSpec& spec) {
  return add(Transpose{permutation}, std::array{x}, spec, {true})[0];
}

Value Graph::slice(Value x, Dims start, Dims limit, Dims step, const OutputSpec& spec) {
  return add(Slice{start, limit, step}, std::array{x}, spec, {true})[0];
}

Value Graph::concat(std::span<const Value> inputs, std::int64_t axis, const OutputSpec& spec) {
  return add(Concat{axis}, inputs, spec, {true})[0];
}

}  // namespace ashlar
