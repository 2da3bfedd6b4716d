// Extents and strides of a tensor: up to eight 64-bit integers, stored inline.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace ashlar {

inline constexpr int kMaxRank = 8;

#pragma GCC visibility push(default)

class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values)
      : Dims(std::span(values.begin(), values.size())) {}
  // Throws Error(invalid_argument) for more than kMaxRank values.
  explicit Dims(std::span<const std::int64_t> values) {
    for (std::int64_t value : values) push_back(value);
  }
  static Dims filled(int rank, std::int64_t value) {
    Dims dims;
    for (int axis = 0; axis < rank; ++axis) dims.push_back(value);
    return dims;
  }

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::int64_t& operator[](int axis) { return values_[static_cast<std::size_t>(axis)]; }
  std::int64_t operator[](int axis) const { return values_[static_cast<std::size_t>(axis)]; }
  std::int64_t* begin() { return values_.data(); }
  std::int64_t* end() { return values_.data() + rank_; }
  const std::int64_t* begin() const { return values_.data(); }
  const std::int64_t* end() const { return values_.data() + rank_; }
  void push_back(std::int64_t value) {
    if (rank_ == kMaxRank) throw_too_many();
    values_[static_cast<std::size_t>(rank_++)] = value;
  }
  bool operator==(const Dims& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  [[noreturn]] static void throw_too_many();
  std::array<std::int64_t, kMaxRank> values_{};
  int rank_ = 0;
};

std::string to_string(const Dims& dims);  // "[16, 64, 56, 56]"

// Product of the extents; throws Error(size_overflow) if it exceeds 63 bits.
std::int64_t element_count(const Dims& dims);

// Memory layout of a tensor: a named order, or explicit strides in elements.
class Layout {
 public:
  enum class Order : std::uint8_t { row_major, channels_last, explicit_strides };
  Layout(Order order) : order_(order) {}
  Layout(const Dims& strides) : order_(Order::explicit_strides), strides_(strides) {}
  // Packed strides for `dims`, or the explicit ones.
  Dims strides_for(const Dims& dims) const;

 private:
  Order order_;
  Dims strides_;
};

// Packed strides for `dims` with the axis order of the strides `like` (same rank): the layout that
// a result inherits from its operand.
Dims packed_strides_like(const Dims& dims, const Dims& like);

#pragma GCC visibility pop

inline const Layout row_major{Layout::Order::row_major};
// Axis 1 (channels) varies fastest, then the last axis, and so on: NHWC for dims given as NCHW.
inline const Layout channels_last{Layout::Order::channels_last};

}  // namespace ashlar
