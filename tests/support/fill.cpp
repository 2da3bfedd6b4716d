// Seeded input values.
#include "support/fill.hpp"

#include <ashlar/check.hpp>
#include <cmath>
#include <limits>

#include "base/element.hpp"
#include "graph/schema.hpp"
#include "support/fill_use.hpp"

namespace ashlar::support {

namespace {

double special(Random& random) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kValues[] = {kNaN, kInf, -kInf, 0.0, -0.0, 1e30, -1e4, 1e-30, 6e-8, 300.0};
  return kValues[random() % std::size(kValues)];
}

double plain_value(DType dtype, Random& random, Fill fill) {
  if (dtype == boolean) return whole(random, 0, 1);
  if (dtype == e8m0) return std::ldexp(1.0, static_cast<int>(whole(random, -3, 3)));
  const bool unsigned_type = is_integer(dtype) && lowest_value(dtype) == 0.0;
  if (fill == Fill::whole_numbers) return whole(random, unsigned_type ? 0 : -3, 3);
  if (is_integer(dtype)) {
    const std::int64_t reach = fill == Fill::special && random() % 8 == 0 ? 100 : 4;
    return whole(random, unsigned_type ? 0 : -reach, reach);
  }
  if (fill == Fill::special && random() % 16 == 0) return special(random);
  return uniform(random, -1.0, 1.0);
}

// The first use of a tensor by an operation.
Use first_use(const Graph& graph, TensorId id) {
  for (const Node& node : graph.nodes()) {
    const OpSchema& schema = schema_of(node.op);
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot)
      if (node.inputs[slot] == id)
        return {&graph, &graph.tensor(id), &node,
                schema.inputs[std::min(slot, schema.inputs.size() - 1)].name};
  }
  return {};
}

// A position inside each pooling window that is not in the padding.
double window_position(const Use& use, Random& random) {
  const auto& op = std::get<ResampleBackward>(use.node->op);
  const Dims& dy = use.dims(ResampleBackward::dy);
  const Dims& dx = use.graph->tensor(use.node->outputs[ResampleBackward::dx]).dims;
  std::int64_t position = 0, place = 1, rest = use.element;
  for (int axis = op.window.rank() - 1; axis >= 0; --axis) {
    const std::int64_t first = rest % dy[axis + 2] * op.stride[axis] - op.padding[axis];
    rest /= dy[axis + 2];
    const std::int64_t low = std::max<std::int64_t>(0, -first);
    const std::int64_t high = std::min(op.window[axis], dx[axis + 2] - first) - 1;
    position += place * static_cast<std::int64_t>(whole(random, low, std::max(low, high)));
    place *= op.window[axis];
  }
  return static_cast<double>(position);
}

double value_for(const Tensor& tensor, const Use& use, Random& random, Fill fill) {
  if (!use.node) return plain_value(tensor.dtype, random, fill);
  for (const auto& family : {fill_attention, fill_recurrent, fill_low_precision, fill_statistics,
                             fill_spatial, fill_sequence, fill_multi_head})
    if (const std::optional<double> value = family(use, random)) return *value;
  const std::string_view slot = use.slot;
  const auto extent = [&](int input, int from_end) {
    const Dims& dims = use.dims(input);
    return dims[dims.rank() - from_end];
  };
  if (slot == "seq_len_q") return whole(random, 0, extent(AttentionForward::q, 2));
  if (slot == "seq_len_kv") return whole(random, 0, extent(AttentionForward::k, 2));
  if (slot == "m_override") return whole(random, 0, extent(Matmul::a, 2));
  if (slot == "k_override") return whole(random, 0, extent(Matmul::a, 1));
  if (slot == "n_override") return whole(random, 0, extent(Matmul::b, 1));
  if (slot == "dropout_seed" || slot == "dropout_offset") return whole(random, 0, 100);
  if (slot == "seed_tensor" || slot == "offset_tensor") return whole(random, 0, 100);
  if (slot == "dropout_mask") return whole(random, 0, 1);
  if (slot == "scale_tensor") return 0.375;
  if (slot == "epsilon_tensor") return 0x1p-10;
  if (slot == "inv_variance" || slot == "running_var") return uniform(random, 0.25, 2.0);
  if (slot == "index") return window_position(use, random);
  if (std::holds_alternative<SoftmaxBackward>(use.node->op) && slot == "y")
    return std::get<SoftmaxBackward>(use.node->op).log ? uniform(random, -4.0, 0.0)
                                                       : uniform(random, 0.0, 1.0);
  return plain_value(tensor.dtype, random, fill);
}

// Batch b has as many tokens as its length (all without lengths), contiguous.
void fill_row_offsets(BoundMemory& memory, TensorId offsets) {
  const Graph& graph = memory.graph();
  const Tensor& tensor = graph.tensor(offsets);
  const auto tokens_of = [&](const Tensor& user, TensorId id, std::int64_t row) {
    for (const Node& node : graph.nodes()) {
      const OpSchema& schema = schema_of(node.op);
      TensorId lengths = kNoTensor;
      bool touches = false, is_query = true;
      const auto look = [&](const std::vector<TensorId>& ids, std::span<const Slot> slots) {
        for (std::size_t i = 0; i < ids.size() && i < slots.size(); ++i) {
          if (ids[i] != id) continue;
          touches = true;
          const std::string_view name = slots[i].name;
          is_query = name != "k" && name != "v" && name != "dk" && name != "dv";
        }
      };
      look(node.inputs, schema.inputs);
      look(node.outputs, schema.outputs);
      if (!touches) continue;
      for (std::size_t i = 0; i < schema.inputs.size() && i < node.inputs.size(); ++i)
        if (schema.inputs[i].name == (is_query ? "seq_len_q" : "seq_len_kv"))
          lengths = node.inputs[i];
      if (lengths != kNoTensor)
        return static_cast<std::int64_t>(
            read_element(graph.tensor(lengths), memory.data(lengths), row));
    }
    return user.dims[2];
  };
  std::int64_t start = 0;
  for (std::int64_t row = 0, rows = element_count(tensor.dims); row < rows; ++row) {
    write_element(tensor, memory.data(offsets), row, static_cast<double>(start));
    std::int64_t longest = 0;
    for (std::size_t id = 0; id < graph.tensors().size() && row + 1 < rows; ++id) {
      const Tensor& user = graph.tensors()[id];
      if (user.ragged_offset == offsets)
        longest =
            std::max(longest, tokens_of(user, static_cast<TensorId>(id), row) * user.strides[2]);
    }
    start += longest;
  }
}

bool holds_offsets(const Graph& graph, TensorId id) {
  for (const Tensor& tensor : graph.tensors())
    if (tensor.ragged_offset == id) return true;
  return false;
}

std::uint64_t mixed(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = seed * 0x9E3779B97F4A7C15u + 0x51ED27u;
  for (char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;
  return hash;
}

// Nothing reads a ragged tensor outside its sequences, so all of its memory is filled at once.
void fill_all_memory(const Tensor& tensor, std::byte* data, Random& random, Fill fill) {
  Tensor flat = tensor;
  flat.dims = {byte_size(tensor) * 8 / bit_width(tensor.dtype)};
  flat.strides = {1};
  for (std::int64_t i = 0; i < flat.dims[0]; ++i)
    write_element(flat, data, i, plain_value(tensor.dtype, random, fill));
}

}  // namespace

void fill_inputs(BoundMemory& memory, std::uint64_t seed, Fill fill) {
  const Graph& graph = memory.graph();
  for (TensorId id : memory.bound()) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.kind == TensorKind::output || holds_offsets(graph, id)) continue;
    Random random(mixed(seed, tensor.name));
    if (tensor.ragged_offset != kNoTensor) {
      fill_all_memory(tensor, memory.data(id), random, fill);
      continue;
    }
    Use use = first_use(graph, id);
    for (const std::int64_t count = number_count(tensor); use.element < count; ++use.element)
      write_element(tensor, memory.data(id), use.element, value_for(tensor, use, random, fill));
  }
  // Offsets follow from lengths.
  for (TensorId id : memory.bound())
    if (holds_offsets(graph, id)) fill_row_offsets(memory, id);
  memory.seal();
}

}  // namespace ashlar::support
