// Pointwise operations on rows of float or double.
#pragma once

#include <ashlar/ops.hpp>
#include <cstdint>

namespace ashlar::cpu {

// Memory hints of a row operation; a kernel may ignore them.
struct RowHints {
  const void* prefetch = nullptr;  // prefetched into L1, one element per element of the row
  // Non-temporal stores: y is not read soon; its whole vectors bypass the caches (y is then aligned
  // to a cache line). parallel_for() fences these stores before it returns.
  bool stream = false;
};

// y[i] = op(x[i], b[i], predicate[i]), without alpha1 and alpha2. Unused operands are null; y may
// alias any operand.
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

// The best implementation for this CPU. Integer compute types: division truncates, and their width
// and sign define bitwise operations. gen_index is left to the caller, since it depends on
// coordinates.
template <class T>
PointwiseRow<T> pointwise_row(PointwiseMode mode, DType compute);

// y[i] = factor * x[i]
template <class T>
[[gnu::visibility("hidden")]] void scale_row(T factor, const T* x, std::int64_t count, T* y);

}  // namespace ashlar::cpu
