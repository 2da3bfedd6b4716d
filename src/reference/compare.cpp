// Element access by row-major index, seeded fills, and comparison with the oracle.
#include <ashlar/check.hpp>

#include "base/fail.hpp"
#include "reference/addressing.hpp"
#include "reference/approx.hpp"

namespace ashlar {

namespace {

using reference::Addressing;
using reference::RealShape;
using reference::unflatten;

// The sequence offsets of a ragged output.
reference::RaggedRows rows_of(const Expected& expected) {
  if (expected.row_starts.empty()) return {};
  return {expected.row_starts.data(), DType::i64, 1};
}

// Hash of seed and index (SplitMix64's finaliser).
std::uint64_t mixed(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0xD1B54A32D192ED03u + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double random_value(DType dtype, std::uint64_t bits, double low, double high) {
  const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
  if (dtype == DType::e8m0) low = std::max(low, 0.0);
  if (is_floating(dtype)) return low + (high - low) * unit;
  const double first = std::ceil(std::max(low, lowest_value(dtype)));
  const double last = std::floor(std::min(high, largest_value(dtype)));
  if (last < first) return low + (high - low) * unit;
  return std::min(first + std::floor((last - first + 1.0) * unit), last);
}

// |actual - expected|; NaN matches only NaN, an infinity only itself.
double error_between(double actual, double expected) {
  return reference::distance(actual, expected);
}

// error / bound, the ordering of violations; a violated bound of 0 is the worst.
double severity(double error, double bound) {
  if (error == 0.0) return 0.0;
  return bound == 0.0 ? reference::kInfinity : error / bound;
}

}  // namespace

std::int64_t number_count(const Tensor& tensor) {
  const std::int64_t elements = element_count(tensor.dims);
  return is_complex(tensor.dtype) ? 2 * elements : elements;
}

double read_element(const Tensor& tensor, const void* data, std::int64_t row_major_index) {
  const RealShape shape(tensor);
  const Addressing address(shape.dims, shape.strides, {});
  return load_element(shape.dtype, data, address(unflatten(shape.dims, row_major_index)));
}

void write_element(const Tensor& tensor, void* data, std::int64_t row_major_index, double value) {
  const RealShape shape(tensor);
  const Addressing address(shape.dims, shape.strides, {});
  store_element(shape.dtype, data, address(unflatten(shape.dims, row_major_index)), value);
}

void fill_random(const Tensor& tensor, void* data, std::uint64_t seed, double low, double high) {
  const RealShape shape(tensor);
  const Addressing address(shape.dims, shape.strides, {});
  const std::int64_t count = number_count(tensor);
  for (std::int64_t i = 0; i < count; ++i)
    store_element(shape.dtype, data, address(unflatten(shape.dims, i)),
                  random_value(shape.dtype, mixed(seed, static_cast<std::uint64_t>(i)), low, high));
}

Comparison Expected::compare(const Tensor& candidate, const void* actual) const {
  const std::int64_t count = number_count(candidate);
  if (std::cmp_not_equal(values.size(), count) || std::cmp_not_equal(bounds.size(), count))
    fail(ErrorCode::invalid_argument,
         "compare: tensor '{}' has {} numbers, but {} values and {} bounds are expected",
         candidate.name, count, values.size(), bounds.size());
  const RealShape shape(candidate);
  const Addressing address(shape.dims, shape.strides, rows_of(*this));

  Comparison result;
  double worst = -1.0, got = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double bound = bounds[static_cast<std::size_t>(i)];
    const std::int64_t element = address(unflatten(shape.dims, i));
    if (element == Addressing::kOutside || bound == reference::kInfinity) continue;
    ++result.compared;
    const double value = load_element(shape.dtype, actual, element);
    const double error = error_between(value, values[static_cast<std::size_t>(i)]);
    if (!(error <= bound)) ++result.mismatches;
    if (severity(error, bound) > worst) {
      worst = severity(error, bound);
      result.worst_index = i;
      result.worst_error = error;
      result.worst_bound = bound;
      got = value;
    }
  }
  result.ok = result.mismatches == 0;
  if (result.compared == 0) {
    result.summary = fmt::format("{}: nothing to compare", candidate.name);
    return result;
  }
  const std::string where = to_string(unflatten(shape.dims, result.worst_index));
  if (result.ok)
    result.summary = fmt::format("{}: worst error {:.2g} (bound {:.2g}) at {}", candidate.name,
                                 result.worst_error, result.worst_bound, where);
  else
    result.summary = fmt::format(
        "{}: {} of {} elements are wrong; worst at {}: got {:.9g}, expected {:.9g}, error "
        "{:.2g} (bound {:.2g})",
        candidate.name, result.mismatches, result.compared, where, got,
        values[static_cast<std::size_t>(result.worst_index)], result.worst_error,
        result.worst_bound);
  return result;
}

}  // namespace ashlar
