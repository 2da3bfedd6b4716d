#include "inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/check.hpp>
#include <cmath>
#include <optional>

#include "roles.hpp"

namespace ashlar::cli {

namespace {

constexpr unsigned char kPoison = 0xFF;  // NaN in every floating format, -1 or 255 in integers

// SplitMix64: a well mixed 64-bit number per step.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double whole(double low, double high) { return low + std::floor(unit() * (high - low + 1)); }

 private:
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

// Equal for tensors of one name in any graph, so that two forms of a graph get the same inputs.
std::uint64_t seed_for(std::uint64_t seed, const std::string& name) {
  std::uint64_t hash = 0xCBF29CE484222325u ^ seed;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

// The lengths that say how much of each row a ragged tensor uses, when an attention node has them.
std::optional<TensorId> lengths_of(const Graph& graph, TensorId ragged) {
  const auto at = [](const std::vector<TensorId>& ids, int slot) {
    return std::cmp_less(slot, ids.size()) ? ids[static_cast<std::size_t>(slot)] : kNoTensor;
  };
  const auto choose = [&](const Node& node, std::initializer_list<int> kv, int q_length,
                          int kv_length,
                          std::initializer_list<int> out_kv) -> std::optional<TensorId> {
    bool used = false;
    bool is_kv = false;
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
      if (node.inputs[slot] != ragged) continue;
      used = true;
      is_kv |= std::find(kv.begin(), kv.end(), static_cast<int>(slot)) != kv.end();
    }
    for (std::size_t slot = 0; slot < node.outputs.size(); ++slot) {
      if (node.outputs[slot] != ragged) continue;
      used = true;
      is_kv |= std::find(out_kv.begin(), out_kv.end(), static_cast<int>(slot)) != out_kv.end();
    }
    const TensorId lengths = at(node.inputs, is_kv ? kv_length : q_length);
    const bool known =
        used && lengths != kNoTensor && graph.tensor(lengths).kind == TensorKind::input;
    return known ? std::optional(lengths) : std::nullopt;
  };
  for (const Node& node : graph.nodes()) {
    std::optional<TensorId> found;
    if (std::holds_alternative<AttentionForward>(node.op)) {
      using Op = AttentionForward;
      found = choose(node, {Op::k, Op::v}, Op::seq_len_q, Op::seq_len_kv, {});
    } else if (std::holds_alternative<AttentionBackward>(node.op)) {
      using Op = AttentionBackward;
      found = choose(node, {Op::k, Op::v}, Op::seq_len_q, Op::seq_len_kv, {Op::dk, Op::dv});
    }
    if (found) return found;
  }
  return std::nullopt;
}

// Rows packed behind one another: each takes its length times the elements of one position (axis
// 2), or its whole extent when no lengths are known.
void fill_row_offsets(const TensorMemory& memory, std::size_t position) {
  const Graph& graph = memory.graph();
  const TensorId offsets = memory.tensors()[position];
  const std::int64_t count = element_count(graph.tensor(offsets).dims);
  std::vector<double> row_sizes(static_cast<std::size_t>(std::max<std::int64_t>(count - 1, 0)),
                                0.0);
  for (std::size_t id = 0; id < graph.tensors().size(); ++id) {
    const Tensor& user = graph.tensors()[id];
    if (user.ragged_offset != offsets) continue;
    const std::optional<TensorId> lengths = lengths_of(graph, static_cast<TensorId>(id));
    for (std::size_t row = 0; row < row_sizes.size(); ++row) {
      double size = static_cast<double>(row_span(user));
      if (lengths && user.dims.rank() > 2) {
        const void* data = memory.at(memory.position_of(*lengths));
        const double length =
            read_element(graph.tensor(*lengths), data, static_cast<std::int64_t>(row));
        size = length * static_cast<double>(user.strides[2]);
      }
      row_sizes[row] = std::max(row_sizes[row], size);
    }
  }
  double start = 0;
  for (std::int64_t row = 0; row < count; ++row) {
    write_element(graph.tensor(offsets), memory.at(position), row, start);
    if (std::cmp_less(row, row_sizes.size())) start += row_sizes[static_cast<std::size_t>(row)];
  }
}

// Row-major positions inside each pooling window that lie inside x, which has the extents of dx.
void fill_window_index(const TensorMemory& memory, std::size_t position, const Node& node,
                       Random random) {
  const auto& op = std::get<ResampleBackward>(node.op);
  const Graph& graph = memory.graph();
  const Tensor& index = graph.tensor(memory.tensors()[position]);
  const Dims& x = graph.tensor(node.outputs[ResampleBackward::dx]).dims;
  const int spatial = op.window.rank();
  for (std::int64_t i = 0, count = element_count(index.dims); i < count; ++i) {
    std::int64_t rest = i;
    std::int64_t result = 0;
    std::int64_t window_size = 1;
    for (int axis = spatial; axis-- > 0;) {
      const std::int64_t extent = index.dims[axis + 2];
      const std::int64_t stride = op.stride.empty() ? op.window[axis] : op.stride[axis];
      const std::int64_t first =
          rest % extent * stride - (op.padding.empty() ? 0 : op.padding[axis]);
      rest /= extent;
      const std::int64_t low = std::max<std::int64_t>(0, -first);
      const std::int64_t high = std::max(low, std::min(op.window[axis], x[axis + 2] - first) - 1);
      result += window_size * static_cast<std::int64_t>(random.whole(static_cast<double>(low),
                                                                     static_cast<double>(high)));
      window_size *= op.window[axis];
    }
    write_element(index, memory.at(position), i, static_cast<double>(result));
  }
}

void fill_random_role(const TensorMemory& memory, std::size_t position, const Role& role,
                      std::uint64_t seed) {
  const Tensor& tensor = memory.graph().tensor(memory.tensors()[position]);
  void* data = memory.at(position);
  Random random(seed);
  if (role.kind == Role::Kind::row_offsets) return fill_row_offsets(memory, position);
  if (role.kind == Role::Kind::window_index)
    return fill_window_index(memory, position, *role.node, random);
  if (role.kind == Role::Kind::values) return fill_random(tensor, data, seed, role.low, role.high);
  for (std::int64_t i = 0, count = element_count(tensor.dims); i < count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count);
    const double value = role.kind == Role::Kind::fixed   ? role.low
                         : role.kind == Role::Kind::whole ? random.whole(role.low, role.high)
                         : role.kind == Role::Kind::rising
                             ? std::floor(role.high * share)
                             : (random.unit() < role.high ? 1.0 : 0.0);
    write_element(tensor, data, i, value);
  }
}

}  // namespace

void fill_inputs(TensorMemory& memory, const InputFiles& files, std::uint64_t seed) {
  const Graph& graph = memory.graph();
  for (const auto& [name, path] : files) {
    const TensorId id = graph.find_tensor(name);
    const bool readable = id != kNoTensor && (graph.tensor(id).kind == TensorKind::input ||
                                              graph.tensor(id).kind == TensorKind::scalar);
    if (!readable)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--input {}: the graph has no input of that name", name));
  }
  const auto fill = [&](std::size_t position, const Role& role) {
    const Tensor& tensor = graph.tensor(memory.tensors()[position]);
    memory.allocate(position);
    if (tensor.kind == TensorKind::output) return;
    if (const auto file = files.find(tensor.name); file != files.end())
      from_npy(read_npy(file->second), memory, position);
    else
      fill_random_role(memory, position, role, seed_for(seed, tensor.name));
  };
  // Offsets follow from lengths, and the size of a ragged tensor from its offsets.
  const auto pass_of = [&](std::size_t position, const Role& role) {
    if (graph.tensor(memory.tensors()[position]).ragged_offset != kNoTensor) return 2;
    return role.kind == Role::Kind::row_offsets ? 1 : 0;
  };
  for (int pass = 0; pass < 3; ++pass) {
    for (std::size_t position = 0; position < memory.tensors().size(); ++position) {
      const Role role = role_of(graph, memory.tensors()[position]);
      if (pass_of(position, role) == pass) fill(position, role);
    }
  }
  poison_outputs(memory);
}

void poison_outputs(const TensorMemory& memory) {
  for (std::size_t position = 0; position < memory.tensors().size(); ++position)
    if (memory.graph().tensor(memory.tensors()[position]).kind == TensorKind::output)
      memory.buffer(position).fill(kPoison);
}

}  // namespace ashlar::cli
