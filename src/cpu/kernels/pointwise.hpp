// Pointwise operations on rows of float or double.
#pragma once

#include <ashlar/ops.hpp>
#include <cstdint>

namespace ashlar::cpu {

// How a row meets memory; a kernel may leave either out.
struct RowHints {
  const void* prefetch = nullptr;  // fetched into L1 meanwhile, one element for each of the row's
  // y is not read soon: its whole vectors go past the caches (y is aligned to a cache line then).
  // parallel_for() orders these stores before its return.
  bool stream = false;
};

// y[i] = op(x[i], b[i], predicate[i]), without alpha1 and alpha2. Unused operands are null; y may
// be any of the operands.
template <class T>
class PointwiseRow {
 public:
  using Function = void (*)(const Pointwise& op, const T* x, const T* b, const T* predicate,
                            std::int64_t count, T* y, const RowHints& hints);
  PointwiseRow() = default;
  PointwiseRow(Function function) : function_(function) {}
  explicit operator bool() const { return function_ != nullptr; }
  void operator()(const Pointwise& op, const T* x, const T* b, const T* predicate,
                  std::int64_t count, T* y, const RowHints& hints = {}) const {
    function_(op, x, b, predicate, count, y, hints);
  }

 private:
  Function function_ = nullptr;
};

// The best for this processor. `integer`: the compute type is an integer, so that quotients are
// whole numbers. gen_index is the caller's: it depends on coordinates.
template <class T>
PointwiseRow<T> pointwise_row(PointwiseMode mode, bool integer);

// y[i] = factor * x[i]
template <class T>
void scale_row(T factor, const T* x, std::int64_t count, T* y);

}  // namespace ashlar::cpu
