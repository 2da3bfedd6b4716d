#include "cuda/text/spec_text.hpp"

#include <fmt/format.h>

#include <bit>
#include <limits>

namespace ashlar::cuda {

namespace {

constexpr double kMaxNarrow = std::numeric_limits<std::int32_t>::max();
constexpr double kSlack = 1 << 16;  // headroom for out-of-range threads, which check their index

bool is_wide(const View& view) {
  double last = static_cast<double>(view.offset) + kSlack;
  for (int axis = 0; axis < view.dims.rank(); ++axis)
    last += static_cast<double>(view.dims[axis]) *
            static_cast<double>(view.strides[axis] < 0 ? -view.strides[axis] : view.strides[axis]);
  return last > kMaxNarrow;
}

}  // namespace

std::string constant(const std::string& name, std::int64_t value) {
  return fmt::format("static const int {} = {};\n", name, value);
}

bool needs_wide_index(const std::vector<const PointwiseProgram*>& programs) {
  for (const PointwiseProgram* program : programs) {
    double elements = 1;
    for (std::int64_t extent : program->space) elements *= static_cast<double>(extent);
    if (elements + kSlack > kMaxNarrow) return true;
    for (const auto& step : program->steps)
      if (step.kind == PointwiseProgram::Step::Kind::load && is_wide(step.view)) return true;
    for (const auto& store : program->stores)
      if (is_wide(store.view)) return true;
  }
  return false;
}

std::string register_types(DType precision, const std::vector<const PointwiseProgram*>& programs) {
  return fmt::format("typedef {} R;\ntypedef {} Index;\n", precision == f64 ? "double" : "float",
                     needs_wide_index(programs) ? "int64" : "int");
}

void add_extents(Arguments& arguments, const Dims& space) {
  for (int axis = 0; axis < space.rank(); ++axis)
    arguments.number(fmt::format("extent{}", axis), space[axis]);
  for (int axis = 0; axis < space.rank(); ++axis)
    arguments.number(fmt::format("magic{}", axis), divider_word(space[axis]));
}

std::int64_t divider_word(std::int64_t divisor) {
  if (divisor <= 1 || static_cast<double>(divisor) > kMaxNarrow) return 0;
  // n / d = (n * m) >> (32 + s), m = ceil(2^(32 + s) / d), 2^s the largest power of two below d:
  // the error n * (m d - 2^(32 + s)) / (d 2^(32 + s)) stays below 1 / d for n < 2^31.
  const auto d = static_cast<std::uint64_t>(divisor);
  const int shift = static_cast<int>(std::bit_width(d - 1)) - 1;
  const std::uint64_t multiplier = ((std::uint64_t{1} << (32 + shift)) + d - 1) / d;
  return static_cast<std::int64_t>(multiplier | static_cast<std::uint64_t>(shift) << 32);
}

}  // namespace ashlar::cuda
