// Rows of random values from a Philox stream.
#include "cpu/random_row.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/philox.hpp"
#include "cpu/kernels/philox.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kChunk = 256;

// The bits of elements first, first + stride, ...
void fill_bits(const RandomStream& stream, std::int64_t first, std::int64_t stride,
               std::int64_t count, std::uint32_t* bits) {
  if (stride == 1)
    return philox_row()(stream.seed, stream.offset, static_cast<std::uint64_t>(first), count, bits);
  for (std::int64_t i = 0; i < count; ++i)
    bits[i] =
        philox_element(stream.seed, stream.offset, static_cast<std::uint64_t>(first + i * stride));
}

// Box-Muller on the pair of elements 2k and 2k + 1.
double standard_normal(const RandomStream& stream, std::uint64_t index) {
  const std::uint64_t even = index & ~std::uint64_t{1};
  const auto uniform = [&](std::uint64_t at) {
    return static_cast<double>(uniform_open(philox_element(stream.seed, stream.offset, at)));
  };
  const double radius = std::sqrt(-2.0 * std::log(uniform(even)));
  const double angle = 2.0 * std::numbers::pi * uniform(even + 1);
  return radius * (index == even ? std::cos(angle) : std::sin(angle));
}

}  // namespace

template <class T>
void random_row(const Rng& op, const RandomStream& stream, std::int64_t first, std::int64_t stride,
                std::int64_t count, T* values) {
  if (op.distribution == RngDistribution::normal) {
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = static_cast<T>(
          op.mean + op.standard_deviation *
                        standard_normal(stream, static_cast<std::uint64_t>(first + i * stride)));
    return;
  }
  const auto probability = static_cast<float>(op.probability);
  const double range = op.maximum - op.minimum;
  std::array<std::uint32_t, kChunk> bits;
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t length = std::min(kChunk, count - done);
    fill_bits(stream, first + done * stride, stride, length, bits.data());
    T* target = values + done;
    for (std::int64_t i = 0; i < length; ++i) {
      const float uniform = uniform_open(bits[static_cast<std::size_t>(i)]);
      target[i] = op.distribution == RngDistribution::bernoulli
                      ? (uniform < probability ? T{1} : T{0})
                      : static_cast<T>(op.minimum + range * static_cast<double>(uniform));
    }
  }
}

template void random_row(const Rng&, const RandomStream&, std::int64_t, std::int64_t, std::int64_t,
                         float*);
template void random_row(const Rng&, const RandomStream&, std::int64_t, std::int64_t, std::int64_t,
                         double*);

}  // namespace ashlar::cpu
