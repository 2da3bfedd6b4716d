#include "cpu/kernels/window_rows.hpp"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/window_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y[i] = finish(fold of rows[r][i] from `first` on), four vectors side by side, so that no fold
// waits for the one before.
template <class T, class Combine, class Finish>
HWY_INLINE void FoldRows(const T* const* rows, std::int64_t n, std::int64_t count, T first,
                         Combine combine, Finish finish, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    auto f0 = hn::Set(d, first), f1 = f0, f2 = f0, f3 = f0;
    for (std::int64_t r = 0; r < n; ++r) {
      const T* HWY_RESTRICT row = rows[r] + i;
      f0 = combine(f0, hn::LoadU(d, row));
      f1 = combine(f1, hn::LoadU(d, row + lanes));
      f2 = combine(f2, hn::LoadU(d, row + 2 * lanes));
      f3 = combine(f3, hn::LoadU(d, row + 3 * lanes));
    }
    hn::StoreU(finish(f0), d, y + i);
    hn::StoreU(finish(f1), d, y + i + lanes);
    hn::StoreU(finish(f2), d, y + i + 2 * lanes);
    hn::StoreU(finish(f3), d, y + i + 3 * lanes);
  }
  ForVectors(d, count - i, y + i, [&](std::int64_t j, const auto& load) HWY_ATTR {
    auto fold = hn::Set(d, first);
    for (std::int64_t r = 0; r < n; ++r) fold = combine(fold, load(rows[r] + i + j));
    return finish(fold);
  });
}

template <class T>
void MaximumOfRows(const T* const* rows, std::int64_t n, std::int64_t count, T* y) {
  FoldRows(
      rows, n, count, -std::numeric_limits<T>::infinity(),
      [](auto best, auto x) HWY_ATTR {
        // Comparisons with NaN are false: a NaN takes the place of `best` and keeps it.
        return hn::IfThenElse(hn::Or(hn::Gt(x, best), hn::IsNaN(x)), x, best);
      },
      [](auto best) HWY_ATTR { return best; }, y);
}

template <class T>
void AverageOfRows(const T* const* rows, std::int64_t n, T divisor, std::int64_t count, T* y) {
  const auto by = hn::Set(hn::ScalableTag<T>(), divisor);
  FoldRows(
      rows, n, count, T{0}, [](auto sum, auto x) HWY_ATTR { return hn::Add(sum, x); },
      [&](auto sum) HWY_ATTR { return hn::Div(sum, by); }, y);
}

WindowRows<float> WindowRowsF32() { return {MaximumOfRows<float>, AverageOfRows<float>}; }
WindowRows<double> WindowRowsF64() { return {MaximumOfRows<double>, AverageOfRows<double>}; }
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(WindowRowsF32);
HWY_EXPORT(WindowRowsF64);

template <>
WindowRows<float> window_rows<float>() {
  return HWY_DYNAMIC_DISPATCH(WindowRowsF32)();
}
template <>
WindowRows<double> window_rows<double>() {
  return HWY_DYNAMIC_DISPATCH(WindowRowsF64)();
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE
