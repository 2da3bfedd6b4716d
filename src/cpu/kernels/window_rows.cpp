// Element-wise folds of several rows, for pooling.
#include "cpu/kernels/window_rows.hpp"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/window_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y[i] = finish(fold of rows[r][i] from `first` on), four vectors side by side to hide latency.
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
  const auto fold_from = [&](std::int64_t j, const auto& load) HWY_ATTR {
    auto fold = hn::Set(d, first);
    for (std::int64_t r = 0; r < n; ++r) fold = combine(fold, load(rows[r] + j));
    return finish(fold);
  };
  const auto load = [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); };
  for (; i + lanes <= count; i += lanes) hn::StoreU(fold_from(i, load), d, y + i);
  if (i == count) return;
  // The last vector overlaps the previous one: y aliases no row.
  if (count >= lanes) {
    hn::StoreU(fold_from(count - lanes, load), d, y + count - lanes);
  } else {
    const auto rest = static_cast<std::size_t>(count);
    const auto load_part = [&](const T* p) HWY_ATTR { return LoadPart(d, p, rest); };
    StorePart(d, fold_from(0, load_part), y, rest);
  }
}

template <class T>
void MaximumOfRows(const T* const* rows, std::int64_t n, std::int64_t count, T* y) {
  FoldRows(
      rows, n, count, -std::numeric_limits<T>::infinity(),
      [](auto best, auto x) HWY_ATTR {
        // Comparisons with NaN are false: NaN replaces `best` and stays.
        return hn::IfThenElse(hn::Or(hn::Gt(x, best), hn::IsNaN(x)), x, best);
      },
      [](auto best) HWY_ATTR { return best; }, y);
}

template <class T>
void SumOfRows(const T* const* rows, std::int64_t n, std::int64_t count, T* y) {
  FoldRows(
      rows, n, count, T{0}, [](auto sum, auto x) HWY_ATTR { return hn::Add(sum, x); },
      [](auto sum) HWY_ATTR { return sum; }, y);
}

template <class T>
void DivideByRow(const T* x, const T* divisors, T factor, std::int64_t count, T* y) {
  const hn::ScalableTag<T> d;
  const auto times = hn::Set(d, factor);
  TransformRow(
      d, d, count, y,
      [&](auto value, auto divisor) HWY_ATTR { return hn::Div(value, hn::Mul(divisor, times)); }, x,
      divisors);
}

template <class T>
void AverageOfRows(const T* const* rows, std::int64_t n, T divisor, std::int64_t count, T* y) {
  const auto by = hn::Set(hn::ScalableTag<T>(), divisor);
  FoldRows(
      rows, n, count, T{0}, [](auto sum, auto x) HWY_ATTR { return hn::Add(sum, x); },
      [&](auto sum) HWY_ATTR { return hn::Div(sum, by); }, y);
}

template <class T>
void SplitPairs(const T* x, std::int64_t pairs, T* even, T* odd) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < pairs; i += lanes) {
    hn::Vec<decltype(d)> first, second;
    hn::LoadInterleaved2(d, x + 2 * i, first, second);
    hn::StoreU(first, d, even + i);
    hn::StoreU(second, d, odd + i);
  }
}

template <class T>
WindowRows<T> MakeWindowRows() {
  return {MaximumOfRows<T>, SumOfRows<T>, AverageOfRows<T>, DivideByRow<T>, SplitPairs<T>};
}
WindowRows<float> WindowRowsF32() { return MakeWindowRows<float>(); }
WindowRows<double> WindowRowsF64() { return MakeWindowRows<double>(); }
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
