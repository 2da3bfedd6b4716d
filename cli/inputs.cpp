#include "inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/check.hpp>
#include <ashlar/operations.hpp>
#include <cmath>

namespace ashlar::cli {

namespace {

constexpr unsigned char kPoison = 0xFF;  // NaN in every floating format, -1 or 255 in integers

// SplitMix64: a well mixed 64-bit number per step.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

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

void fill_row_offsets(const TensorMemory& memory, std::size_t position) {
  const Graph& graph = memory.graph();
  const TensorId offsets = memory.tensors()[position];
  const auto length = [&](TensorId lengths, std::int64_t row) {
    return read_element(graph.tensor(lengths), memory.at(memory.position_of(lengths)), row);
  };
  std::int64_t row = 0;
  for (const std::int64_t start : packed_row_offsets(graph, offsets, length))
    write_element(graph.tensor(offsets), memory.at(position), row++, static_cast<double>(start));
}

void fill_random_contents(const TensorMemory& memory, std::size_t position,
                          const Contents& contents, std::uint64_t seed) {
  using Kind = Contents::Kind;
  const Tensor& tensor = memory.graph().tensor(memory.tensors()[position]);
  void* data = memory.at(position);
  if (contents.kind == Kind::row_offsets) return fill_row_offsets(memory, position);
  if (contents.kind == Kind::values)
    return fill_random(tensor, data, seed, contents.low, contents.high);
  Random random(seed);
  const double wholes = std::max(contents.high - contents.low + 1, 1.0);
  for (std::int64_t i = 0, count = element_count(tensor.dims); i < count; ++i) {
    const double unit = random.unit();
    const double value = contents.kind == Kind::by_element ? contents.element(i, unit)
                         : contents.kind == Kind::keep_mask
                             ? (unit < contents.high ? 1.0 : 0.0)
                             : contents.low + std::floor(unit * wholes);
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
  const auto fill = [&](std::size_t position, const Contents& contents) {
    const Tensor& tensor = graph.tensor(memory.tensors()[position]);
    memory.allocate(position);
    if (tensor.kind == TensorKind::output) return;
    if (const auto file = files.find(tensor.name); file != files.end())
      from_npy(read_npy(file->second), memory, position);
    else
      fill_random_contents(memory, position, contents, seed_for(seed, tensor.name));
  };
  // Offsets follow from lengths, and the size of a ragged tensor from its offsets.
  const auto pass_of = [&](std::size_t position, const Contents& contents) {
    if (graph.tensor(memory.tensors()[position]).ragged_offset != kNoTensor) return 2;
    return contents.kind == Contents::Kind::row_offsets ? 1 : 0;
  };
  for (int pass = 0; pass < 3; ++pass) {
    for (std::size_t position = 0; position < memory.tensors().size(); ++position) {
      const Contents contents = contents_of(graph, memory.tensors()[position]);
      if (pass_of(position, contents) == pass) fill(position, contents);
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
