// Seeded input values.
#include "support/fill.hpp"

#include <ashlar/check.hpp>
#include <ashlar/operations.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "base/element.hpp"

namespace ashlar::support {

namespace {

using Random = std::mt19937_64;

// One value in this many lies outside of the typical range where the operation defines the result.
constexpr int kBeyondEvery = 12;

double unit(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }
double uniform(Random& random, double low, double high) {
  return low + (high - low) * unit(random);
}
double whole(Random& random, double low, double high) {
  return low + static_cast<double>(random() % static_cast<std::uint64_t>(high - low + 1));
}

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
    const double reach = fill == Fill::special && random() % 8 == 0 ? 100 : 4;
    return whole(random, unsigned_type ? 0 : -reach, reach);
  }
  if (fill == Fill::special && random() % 16 == 0) return special(random);
  return uniform(random, -1.0, 1.0);
}

// A value outside of the typical range for which the operation defines its result.
double value_beyond(const Contents& contents, Random& random) {
  const bool is_below = contents.below > 0 && (contents.above <= 0 || random() % 2 == 0);
  const double low = is_below ? contents.low - contents.below : contents.high;
  const double high = is_below ? contents.low : contents.high + contents.above;
  switch (contents.kind) {
    case Contents::Kind::whole:
      return is_below ? whole(random, low, high - 1) : whole(random, low + 1, high);
    case Contents::Kind::by_element:  // anything: the typical value depends on the element
      return whole(random, contents.low - contents.below, contents.high + contents.above);
    default: return uniform(random, low, high);
  }
}

double value_for(const Contents& contents, std::int64_t element, Random& random) {
  const bool is_empty = contents.high < contents.low;
  const bool has_more = contents.below > 0 || contents.above > 0;
  if (has_more && (is_empty || random() % kBeyondEvery == 0)) return value_beyond(contents, random);
  switch (contents.kind) {
    case Contents::Kind::by_element: return contents.element(element, unit(random));
    case Contents::Kind::keep_mask: return unit(random) < contents.high ? 1.0 : 0.0;
    case Contents::Kind::whole:
      return is_empty ? contents.low : whole(random, contents.low, contents.high);
    default: return uniform(random, contents.low, contents.high);
  }
}

void fill_row_offsets(BoundMemory& memory, TensorId offsets) {
  const Graph& graph = memory.graph();
  const auto length = [&](TensorId lengths, std::int64_t row) {
    return read_element(graph.tensor(lengths), memory.data(lengths), row);
  };
  std::int64_t row = 0;
  for (const std::int64_t start : packed_row_offsets(graph, offsets, length))
    write_element(graph.tensor(offsets), memory.data(offsets), row++, static_cast<double>(start));
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
  std::vector<TensorId> offsets;
  for (TensorId id : memory.bound()) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.kind == TensorKind::output) continue;
    const Contents contents = contents_of(graph, id);
    Random random(mixed(seed, tensor.name));
    if (contents.kind == Contents::Kind::row_offsets) {
      offsets.push_back(id);
    } else if (tensor.ragged_offset != kNoTensor) {
      fill_all_memory(tensor, memory.data(id), random, fill);
    } else {
      for (std::int64_t i = 0, count = number_count(tensor); i < count; ++i)
        write_element(tensor, memory.data(id), i,
                      contents.may_be_anything() ? plain_value(tensor.dtype, random, fill)
                                                 : value_for(contents, i, random));
    }
  }
  for (const TensorId id : offsets) fill_row_offsets(memory, id);  // they follow from lengths
  memory.seal();
}

}  // namespace ashlar::support
