// NodeContext: operand checks and helpers shared by the inference functions of src/graph/ops.
#include "graph/node_context.hpp"
#include "base/fail.hpp"

namespace ashlar {

NodeContext::NodeContext(const GraphData& graph, Node& node)
    : graph_(graph), node_(node), traits_(traits_of(node.op)) {
  const auto check_operands = [&](std::vector<TensorId>& ids, std::span<const Slot> slots,
                                  const char* role) {
    const bool variadic = !slots.empty() && slots[0].need == Slot::Need::variadic;
    if (!variadic && ids.size() > slots.size())
      reject(fmt::format("number of {}s", role), ids.size(), "at most {}", slots.size());
    if (variadic && ids.empty())
      reject(fmt::format("{} {}", role, slots[0].name), "no tensor", "at least one");
    if (!variadic) ids.resize(slots.size(), kNoTensor);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Slot& slot = slots[variadic ? 0 : i];
      const std::string what = fmt::format("{} {}", role, slot.name);
      if (ids[i] == kNoTensor && slot.need != Slot::Need::optional)
        reject(what, "nothing", "a tensor");
      if (ids[i] < kNoTensor || ids[i] >= static_cast<TensorId>(graph.tensors.size()))
        reject(what, ids[i], "the id of a tensor of this graph (0 to {})",
               static_cast<int>(graph.tensors.size()) - 1);
    }
  };
  check_operands(node.inputs, traits_.inputs, "input");
  check_operands(node.outputs, traits_.outputs, "output");
  for (int slot = 0; slot < input_count(); ++slot) {
    const TensorId id = node.inputs[static_cast<std::size_t>(slot)];
    if (id == kNoTensor) continue;
    const Tensor& tensor = graph.tensors[static_cast<std::size_t>(id)];
    const bool computed =
        tensor.kind == TensorKind::intermediate || tensor.kind == TensorKind::output;
    if (computed && graph.producers[static_cast<std::size_t>(id)] == kNoNode)
      reject(fmt::format("input '{}'", tensor.name), "a tensor that no earlier node computes",
             "an input, scalar, constant or the result of an earlier node");
    if (tensor.ragged_offset != kNoTensor && !traits_.ragged)
      reject(fmt::format("input '{}'", tensor.name), "a ragged tensor",
             "a plain one: only attention reads ragged tensors");
    require_usable(fmt::format("dtype of {}", input_name(slot)), tensor.dtype);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const TensorId id = node.outputs[i];
    outputs_.push_back(id == kNoTensor ? Tensor{} : graph.tensors[static_cast<std::size_t>(id)]);
    if (id == kNoTensor) continue;
    const Tensor& tensor = outputs_.back();
    const std::string what = fmt::format("output {}", traits_.outputs[i].name);
    if (tensor.kind != TensorKind::intermediate && tensor.kind != TensorKind::output)
      reject(what, fmt::format("'{}', which is not computed", tensor.name),
             "an output or intermediate tensor");
    if (graph.producers[static_cast<std::size_t>(id)] != kNoNode)
      reject(what, fmt::format("'{}', already the result of another node", tensor.name),
             "one producer per tensor");
    for (std::size_t other = 0; other < i; ++other)
      if (node.outputs[other] == id)
        reject(what, fmt::format("'{}' twice", tensor.name), "a tensor per output");
    for (TensorId operand : node.inputs)
      if (operand == id)
        reject(what, fmt::format("'{}', an input of the same node", tensor.name), "another tensor");
  }
}

bool NodeContext::has_input(int slot) const {
  return slot < input_count() && node_.inputs[static_cast<std::size_t>(slot)] != kNoTensor;
}

const Tensor& NodeContext::input(int slot) const {
  return graph_.tensors[static_cast<std::size_t>(node_.inputs[static_cast<std::size_t>(slot)])];
}

std::string NodeContext::input_name(int slot) const {
  const std::size_t last =
      traits_.inputs.size() - 1;  // the operands of a variadic slot share its name
  const Slot& row = traits_.inputs[std::min(static_cast<std::size_t>(slot), last)];
  return fmt::format("{} '{}'", row.name, input(slot).name);
}

bool NodeContext::has_output(int slot) const {
  return node_.outputs[static_cast<std::size_t>(slot)] != kNoTensor;
}

Tensor& NodeContext::output(int slot) { return outputs_[static_cast<std::size_t>(slot)]; }

void NodeContext::reject_text(std::string_view what, const std::string& got,
                              const std::string& expected) const {
  fail(ErrorCode::invalid_graph, "{} '{}': {}: got {}, expected {}", traits_.name, node_.name, what,
       got, expected);
}

void NodeContext::infer_dims(int slot, const Dims& dims) {
  if (!has_output(slot)) return;
  Tensor& tensor = output(slot);
  if (tensor.dims.empty()) tensor.dims = dims;
  if (tensor.dims != dims)
    reject(fmt::format("dims of {} '{}'", traits_.outputs[static_cast<std::size_t>(slot)].name,
                       tensor.name),
           tensor.dims, "{}", to_string(dims));
}

void NodeContext::infer_dtype(int slot, DType dtype) {
  if (!has_output(slot) || !output(slot).infer_dtype) return;
  output(slot).dtype = dtype;
  output(slot).infer_dtype = false;
}

void NodeContext::infer_strides_like(int slot, const Tensor& like) {
  if (!has_output(slot)) return;
  Tensor& tensor = output(slot);
  if (!tensor.strides.empty()) return;
  tensor.strides = like.dims.rank() == tensor.dims.rank()
                       ? packed_strides_like(tensor.dims, like.strides)
                       : row_major.strides_for(tensor.dims);
}

namespace {

bool is_broadcastable(const Dims& from, const Dims& to) {
  if (from.rank() != to.rank()) return false;
  for (int axis = 0; axis < to.rank(); ++axis)
    if (from[axis] != to[axis] && from[axis] != 1) return false;
  return true;
}

}  // namespace

void NodeContext::require_rank(int slot, int least, int most) const {
  const int rank = input(slot).dims.rank();
  if (rank < least || rank > most)
    reject(fmt::format("rank of {}", input_name(slot)), rank, "{} to {}", least, most);
}

void NodeContext::require_dims(int slot, const Dims& dims) const {
  if (has_input(slot) && input(slot).dims != dims)
    reject(fmt::format("dims of {}", input_name(slot)), input(slot).dims, "{}", to_string(dims));
}

void NodeContext::require_broadcastable(int slot, const Dims& dims) const {
  if (has_input(slot) && !is_broadcastable(input(slot).dims, dims))
    reject(fmt::format("dims of {}", input_name(slot)), input(slot).dims,
           "extents equal to {} or 1, and the same number of axes", to_string(dims));
}

void NodeContext::require_floating(int slot) const {
  if (has_input(slot) && !is_floating(input(slot).dtype))
    reject(fmt::format("dtype of {}", input_name(slot)), input(slot).dtype,
           "a floating-point type");
}

void NodeContext::require_arithmetic(int slot) const {
  if (has_input(slot) && input(slot).dtype == DType::boolean)
    reject(fmt::format("dtype of {}", input_name(slot)), input(slot).dtype, "a numeric type");
}

void NodeContext::require_integer(int slot) const {
  if (has_input(slot) && !is_integer(input(slot).dtype))
    reject(fmt::format("dtype of {}", input_name(slot)), input(slot).dtype, "an integer type");
}

void NodeContext::require_usable(const std::string& what, DType dtype) const {
  if (is_complex(dtype) && !traits_.supports_complex)
    reject(what, dtype, "a real type: only matmul supports complex types");
  if (dtype == DType::e8m0 && !(traits_.supports_e8m0 && traits_.supports_e8m0(node_.op)))
    reject(what, dtype,
           "another type: e8m0 (block scales) is supported only by block_scale_quantize, "
           "block_scale_dequantize, conversions (identity) and data movement");
}

void NodeContext::require_one_element(int slot) const {
  if (has_input(slot) && element_count(input(slot).dims) != 1)
    reject(fmt::format("dims of {}", input_name(slot)), input(slot).dims, "a single element");
}

void NodeContext::normalise_per_axis(std::string_view name, Dims& values, int count,
                                     std::int64_t filler, std::int64_t least) const {
  if (values.empty()) values = Dims::filled(count, filler);
  if (values.rank() != count) reject(name, values, "{} values, one per spatial axis", count);
  for (std::int64_t value : values)
    if (value < least) reject(name, values, "values of at least {}", least);
}

void NodeContext::normalise_axis(std::string_view name, std::int64_t& axis, int rank) const {
  if (axis < -rank || axis >= rank) reject(name, axis, "{} to {}", -rank, rank - 1);
  if (axis < 0) axis += rank;
}

}  // namespace ashlar
