// Elements of a line as entries that sort by rank, then by position: integers whose order is that
// of top_k.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "cpu/kernels/top_k_rows.hpp"

namespace ashlar::cpu {

// Ascending in the order of the results. NaN is the largest number, -0 equals +0.
template <class T, class Bits>
Bits rank_of(T value, bool largest) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  Bits bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (value == T{0}) bits = 0;
  Bits ordered = (bits & kSign) != 0 ? static_cast<Bits>(~bits) : bits | kSign;
  if (value != value) ordered = static_cast<Bits>(~Bits{0});
  return largest ? static_cast<Bits>(~ordered) : ordered;
}

// Rank in the upper half, position in the lower: of lines of at most 2^32 elements.
class FloatEntry {
 public:
  static constexpr int kRankBytes = 4;
  FloatEntry() = default;
  FloatEntry(float value, std::int64_t position, bool largest)
      : bits_(std::uint64_t{rank_of<float, std::uint32_t>(value, largest)} << 32 |
              static_cast<std::uint64_t>(position)) {}
  std::int64_t position() const { return static_cast<std::int64_t>(bits_ & 0xffffffffu); }
  std::size_t digit(int byte) const { return bits_ >> (32 + 8 * byte) & 0xff; }
  bool operator<(const FloatEntry& other) const { return bits_ < other.bits_; }

 private:
  std::uint64_t bits_;
};

class DoubleEntry {
 public:
  static constexpr int kRankBytes = 8;
  DoubleEntry() = default;
  DoubleEntry(double value, std::int64_t position, bool largest)
      : rank_(rank_of<double, std::uint64_t>(value, largest)), position_(position) {}
  std::int64_t position() const { return position_; }
  std::size_t digit(int byte) const { return rank_ >> (8 * byte) & 0xff; }
  bool operator<(const DoubleEntry& other) const {
    return rank_ != other.rank_ ? rank_ < other.rank_ : position_ < other.position_;
  }

 private:
  std::uint64_t rank_;
  std::int64_t position_;
};

// Sorts entries that are in ascending order of their positions: least significant digit first.
template <class Entry>
void radix_sort(Entry* entries, std::int64_t count, Entry* buffer) {
  std::array<std::array<std::int64_t, 256>, Entry::kRankBytes> starts{};
  for (std::int64_t i = 0; i < count; ++i)
    for (int byte = 0; byte < Entry::kRankBytes; ++byte)
      ++starts[static_cast<std::size_t>(byte)][entries[i].digit(byte)];
  Entry *from = entries, *to = buffer;
  for (int byte = 0; byte < Entry::kRankBytes; ++byte) {
    auto& start = starts[static_cast<std::size_t>(byte)];
    if (count > 0 && start[from[0].digit(byte)] == count) continue;  // all digits are equal
    std::int64_t sum = 0;
    for (std::int64_t& place : start) sum += std::exchange(place, sum);
    for (std::int64_t i = 0; i < count; ++i) to[start[from[i].digit(byte)]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::copy(from, from + count, entries);
}

// Selection of the first k entries of a line of `length` elements, in order.
struct TopKPlan {
  std::int64_t length, k;
  bool largest;

  bool sorts_all() const { return 2 * k >= length; }
  // Entries in memory at once, and of the buffer for sorting.
  std::int64_t capacity() const {
    return sorts_all() ? length : std::min(length, std::max<std::int64_t>(2 * k, 64));
  }
  std::int64_t buffer() const { return sorts_all() ? length : 0; }
};

// Fills entries[0] to [k - 1] from the line x, whose first element has position `first`.
template <class T, class Entry>
void select_top_k(const TopKPlan& plan, const TopKRows<T>& rows, const T* x, std::int64_t first,
                  Entry* entries, Entry* buffer) {
  constexpr std::int64_t kShort = 256;  // elements that std::sort sorts faster
  const std::int64_t n = plan.length, k = plan.k, capacity = plan.capacity();
  std::int64_t count = 0;
  for (; count < capacity; ++count) entries[count] = Entry(x[count], first + count, plan.largest);
  if (plan.sorts_all() && n > kShort) return radix_sort(entries, n, buffer);
  // An element that is not better than the k-th so far cannot be selected: ties go to the first.
  for (std::int64_t i = capacity; i < n;) {
    std::nth_element(entries, entries + (k - 1), entries + count);
    const T bound = x[entries[k - 1].position() - first];
    for (count = k; count < capacity; ++i) {
      i = rows.find_better(x, i, n, bound, plan.largest);
      if (i == n) break;
      entries[count++] = Entry(x[i], first + i, plan.largest);
    }
  }
  if (k < count) std::nth_element(entries, entries + (k - 1), entries + count);
  std::sort(entries, entries + k);
}

}  // namespace ashlar::cpu
