// fp8 support of attention: rounding to fp8, and amax outputs.
#pragma once

#include <limits>

#include "base/checked.hpp"
#include "cpu/engines/attention_shape.hpp"
#include "cpu/kernels/convert.hpp"
#include "cpu/kernels/row_ops.hpp"
#include "cpu/ragged_rows.hpp"
#include "plan/kernel.hpp"

namespace ashlar::cpu {

constexpr bool is_fp8(DType dtype) { return dtype == e4m3 || dtype == e5m2; }

// Rounds rows to an fp8 type, saturating; a no-op for other types.
template <class T>
class Fp8Rounding {
 public:
  explicit Fp8Rounding(DType dtype) {
    if (!is_fp8(dtype)) return;
    largest_ = static_cast<T>(largest_value(dtype));
    narrow_ = store_row<T>(dtype);
    widen_ = load_row<T>(dtype);
  }
  bool present() const { return narrow_ != nullptr; }
  // Rounds `count` elements, at most a tile's row.
  void apply(std::int64_t count, T* row) const {
    if (!present()) return;
    std::uint8_t narrowed[kMaxElements];
    for (std::int64_t i = 0; i < count; ++i)
      row[i] = row[i] > largest_ ? largest_ : row[i] < -largest_ ? -largest_ : row[i];
    narrow_(row, count, narrowed, 0, 1);
    widen_(narrowed, 0, 1, count, row);
  }

 private:
  static constexpr std::int64_t kMaxElements = kKeyTile;
  T largest_ = 0;
  StoreRow<T> narrow_ = nullptr;
  LoadRow<T> widen_ = nullptr;
};

// Maximum that propagates NaN.
template <class T>
T maximum_or_nan(T a, T b) {
  return b > a || b != b ? b : a;
}

// Amax outputs: one-element outputs reduced over all threads.
template <class T, int kCount>
class AmaxOutputs {
 public:
  AmaxOutputs(const Region& region, const Graph& graph, const std::array<int, kCount>& slots,
              ScratchLayout& scratch_layout, std::int64_t threads)
      : threads_(threads), ops_(row_ops<T>()) {
    for (std::size_t n = 0; n < kCount; ++n)
      outputs_[n] = RaggedRows<T>(output_program(region.anchor->outputs, slots[n]), 0, graph);
    reservation_ =
        scratch_layout.add("largest magnitudes", checked_mul(threads, kLine * sizeof(T)));
  }

  class Bound {
   public:
    Bound(const AmaxOutputs& outputs, const KernelContext& context,
          const ScratchLayout& scratch_layout)
        : owner_(&outputs), largest_(context.scratch<T>(scratch_layout, outputs.reservation_)) {
      for (std::size_t n = 0; n < kCount; ++n) outputs_[n] = outputs.outputs_[n].bind(context);
      std::fill_n(largest_, outputs.threads_ * kLine, T{0});
    }
    bool wanted(int which) const { return owner_->outputs_[at(which)].present(); }
    void add(int which, int thread, const T* row, std::int64_t count) const {
      if (!wanted(which)) return;
      T& largest = largest_[thread * kLine + which];
      largest =
          maximum_or_nan(largest, owner_->ops_.fold(Fold::maximum, Premap::absolute, row, count));
    }
    void store() const {
      for (int which = 0; which < kCount; ++which) {
        T largest = 0;
        for (std::int64_t thread = 0; thread < owner_->threads_; ++thread)
          largest = maximum_or_nan(largest, largest_[thread * kLine + which]);
        outputs_[at(which)].store({}, 1, &largest);
      }
    }

   private:
    static std::size_t at(int which) { return static_cast<std::size_t>(which); }
    const AmaxOutputs* owner_;
    T* largest_;  // [threads x kLine]
    std::array<typename RaggedRows<T>::Bound, kCount> outputs_;
  };

 private:
  static constexpr std::int64_t kLine = 16;  // avoids false sharing
  static_assert(kCount <= kLine);
  std::int64_t threads_;
  const RowOps<T>& ops_;
  std::array<RaggedRows<T>, kCount> outputs_;
  int reservation_;
};

}  // namespace ashlar::cpu
