// The table of operations as public data.
#include <ashlar/operations.hpp>

#include "base/fail.hpp"
#include "graph/node_shapes.hpp"
#include "graph/op_traits.hpp"

namespace ashlar {

namespace {

std::vector<OperandInfo> operands_of(std::span<const Slot> slots) {
  std::vector<OperandInfo> operands;
  for (const Slot& slot : slots)
    operands.push_back({std::string(slot.name), slot.need == Slot::Need::optional,
                        slot.need == Slot::Need::variadic});
  return operands;
}

bool is_ordinary(const Contents& contents) {
  const Contents ordinary;
  return contents.kind == ordinary.kind && contents.low == ordinary.low &&
         contents.high == ordinary.high && contents.may_be_anything();
}

// Any values of the dtype: small integers, so that sums of products stay exact.
Contents ordinary_contents(DType dtype) {
  constexpr double kLargest = 4;
  if (dtype == boolean) return {.kind = Contents::Kind::keep_mask, .high = 0.5};
  if (dtype == e8m0) return {.low = 0.25, .high = 2.0};
  if (!is_integer(dtype)) return {};
  const bool is_unsigned = dtype == u8 || dtype == u32 || dtype == u4;
  return {.kind = Contents::Kind::whole,
          .low = is_unsigned ? 0 : -kLargest,
          .high = is_unsigned ? 2 * kLargest : kLargest};
}

// Elements from the first to past the last that one row of axis 0 touches.
std::int64_t row_span(const Tensor& tensor) {
  std::int64_t span = 1;
  for (int axis = 1; axis < tensor.dims.rank(); ++axis)
    span += (tensor.dims[axis] - 1) * tensor.strides[axis];
  return element_count(tensor.dims) == 0 ? 0 : span;
}

// The input with the lengths of a ragged tensor's rows, by the first operation that has one.
TensorId lengths_of(const Graph& graph, TensorId ragged) {
  for (const Node& node : graph.nodes()) {
    const std::optional<RaggedLengths>& rules = traits_of(node.op).ragged;
    if (!rules) continue;
    bool is_used = false, is_key = false;
    const auto look = [&](const std::vector<TensorId>& ids, const SlotSet& keys) {
      int slot = -1;
      for (const TensorId id : ids) {
        ++slot;
        is_used = is_used || id == ragged;
        is_key = is_key || (id == ragged && keys.contains(slot));
      }
    };
    look(node.inputs, rules->key_inputs);
    look(node.outputs, rules->key_outputs);
    if (!is_used) continue;
    const TensorId lengths =
        node.inputs[static_cast<std::size_t>(is_key ? rules->of_keys : rules->of_others)];
    if (lengths != kNoTensor && graph.tensor(lengths).kind == TensorKind::input) return lengths;
  }
  return kNoTensor;
}

}  // namespace

const std::vector<OperationInfo>& operations() {
  static const std::vector<OperationInfo> all = [] {
    std::vector<OperationInfo> rows;
    for (const OpTraits& traits : op_table())
      rows.push_back({std::string(traits.name), std::string(traits.doc_page),
                      operands_of(traits.inputs), operands_of(traits.outputs)});
    return rows;
  }();
  return all;
}

Graph sample_graph(std::string_view operation, DType dtype) {
  const OpTraits* traits = find_traits(operation);
  if (traits == nullptr)
    fail(ErrorCode::invalid_argument, "operation: got '{}', expected one of: {}", operation,
         known_operations());
  Graph graph{std::string(operation)};
  int count = 0;
  for (const Value& result : traits->sample(graph, dtype))
    if (result) graph.output(fmt::format("result{}", count++), result);
  return graph;
}

Contents contents_of(const Graph& graph, TensorId input) {
  for (const Tensor& tensor : graph.tensors())
    if (tensor.ragged_offset == input)
      return {.kind = Contents::Kind::row_offsets, .below = 0, .above = 0};
  for (const Node& node : graph.nodes()) {
    const OpTraits& traits = traits_of(node.op);
    if (traits.contents == nullptr) continue;
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
      if (node.inputs[slot] != input) continue;
      Contents contents = traits.contents(GraphNodeShapes(graph, node), static_cast<int>(slot));
      if (!is_ordinary(contents)) return contents;
    }
  }
  return ordinary_contents(graph.tensor(input).dtype);
}

std::vector<std::int64_t> packed_row_offsets(
    const Graph& graph, TensorId offsets,
    const std::function<double(TensorId lengths, std::int64_t row)>& length) {
  const std::int64_t rows = element_count(graph.tensor(offsets).dims) - 1;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(std::max<std::int64_t>(rows, 0)), 0);
  for (std::size_t id = 0; id < graph.tensors().size(); ++id) {
    const Tensor& user = graph.tensors()[id];
    if (user.ragged_offset != offsets) continue;
    const TensorId lengths =
        user.dims.rank() > 2 ? lengths_of(graph, static_cast<TensorId>(id)) : kNoTensor;
    std::int64_t row = 0;
    for (std::int64_t& size : sizes) {
      const std::int64_t own =
          lengths == kNoTensor ? row_span(user)
                               : static_cast<std::int64_t>(length(lengths, row)) * user.strides[2];
      size = std::max(size, own);
      ++row;
    }
  }
  std::vector<std::int64_t> starts = {0};
  for (const std::int64_t size : sizes) starts.push_back(starts.back() + size);
  if (rows < 0) starts.clear();
  return starts;
}

}  // namespace ashlar
