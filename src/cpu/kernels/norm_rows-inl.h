// Rows and blocks of rows of norms and softmax. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_NORM_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_NORM_ROWS_INL_H_
#undef ASHLAR_CPU_KERNELS_NORM_ROWS_INL_H_
#else
#define ASHLAR_CPU_KERNELS_NORM_ROWS_INL_H_
#endif

#include <cmath>
#include <type_traits>

#include "cpu/kernels/loops-inl.h"
#include "cpu/kernels/norm_rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// An operand of a row as vectors, for the f(i, load) of ForVectorsWithHints.
template <class D, class T = hn::TFromD<D>>
class RowValue {
 public:
  HWY_INLINE RowValue(D d, RowArg<T> arg)
      : data_(arg.data), per_element_(arg.per_element), same_(hn::Set(d, *arg.data)) {}
  template <class Load>
  HWY_INLINE hn::Vec<D> operator()(std::int64_t i, Load load) const {
    return per_element_ ? load(data_ + i) : same_;
  }

 private:
  const T* data_;
  bool per_element_;
  hn::Vec<D> same_;
};

template <class T>
void NormaliseRow(const T* x, RowArg<T> mean, RowArg<T> inv, RowArg<T> scale, RowArg<T> bias,
                  std::int64_t n, T* y, const RowHints& hints) {
  const hn::ScalableTag<T> d;
  using Value = RowValue<decltype(d)>;
  // Per-row statistics with per-element parameters: layer norm.
  if (!mean.per_element && !inv.per_element && scale.per_element && bias.per_element) {
    const auto m = hn::Set(d, *mean.data), v = hn::Set(d, *inv.data);
    const T *s = scale.data, *b = bias.data;
    return ForVectorsWithHints(d, n, y, hints, [=](std::int64_t i, auto load) HWY_ATTR {
      return hn::MulAdd(hn::Mul(hn::Sub(load(x + i), m), v), load(s + i), load(b + i));
    });
  }
  const Value means(d, mean), invs(d, inv), scales(d, scale), biases(d, bias);
  ForVectorsWithHints(d, n, y, hints, [=](std::int64_t i, auto load) HWY_ATTR {
    const auto centred = hn::Mul(hn::Sub(load(x + i), means(i, load)), invs(i, load));
    return hn::MulAdd(centred, scales(i, load), biases(i, load));
  });
}

template <class T>
void GradientRow(const T* a, const T* b, RowArg<T> c, RowArg<T> slope, RowArg<T> factor,
                 std::int64_t n, T* y, const RowHints& hints) {
  const hn::ScalableTag<T> d;
  using Value = RowValue<decltype(d)>;
  const Value offsets(d, c), slopes(d, slope), factors(d, factor);
  ForVectorsWithHints(d, n, y, hints, [=](std::int64_t i, auto load) HWY_ATTR {
    const auto rest = hn::Sub(load(a + i), offsets(i, load));
    return hn::Mul(hn::NegMulAdd(load(b + i), slopes(i, load), rest), factors(i, load));
  });
}

template <class T>
void ScaleBy(const T* x, RowArg<T> factor, std::int64_t n, T* y, const RowHints& hints) {
  const hn::ScalableTag<T> d;
  const RowValue<decltype(d)> factors(d, factor);
  ForVectorsWithHints(d, n, y, hints, [=](std::int64_t i, auto load) HWY_ATTR {
    return hn::Mul(load(x + i), factors(i, load));
  });
}

template <class T>
void SubtractTwice(const T* x, RowArg<T> first, RowArg<T> second, std::int64_t n, T* y,
                   const RowHints& hints) {
  const hn::ScalableTag<T> d;
  const RowValue<decltype(d)> firsts(d, first), seconds(d, second);
  ForVectorsWithHints(d, n, y, hints, [=](std::int64_t i, auto load) HWY_ATTR {
    return hn::Sub(hn::Sub(load(x + i), firsts(i, load)), seconds(i, load));
  });
}

// Calls body(d, i) for the columns of one row: whole vectors, then single elements.
template <class T, class Body>
HWY_INLINE void ForColumns(std::int64_t width, Body&& body) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + lanes <= width; j += lanes) body(d, j);
  for (; j < width; ++j) body(one, j);
}

// Four rows at a time: each accumulator is loaded and stored once for all of them.
template <class T, class Term>
HWY_INLINE void AddRows(const T* x, std::int64_t rows, std::int64_t width, T* sums, Term term) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4, x += 4 * width)
    ForColumns<T>(width, [&](auto d, std::int64_t j) HWY_ATTR {
      const auto first = hn::Add(term(d, x + j, j), term(d, x + width + j, j));
      const auto second = hn::Add(term(d, x + 2 * width + j, j), term(d, x + 3 * width + j, j));
      hn::StoreU(hn::Add(hn::LoadU(d, sums + j), hn::Add(first, second)), d, sums + j);
    });
  for (; r < rows; ++r, x += width)
    ForColumns<T>(width, [&](auto d, std::int64_t j) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, sums + j), term(d, x + j, j)), d, sums + j);
    });
}

template <class T>
void AddColumns(const T* x, std::int64_t rows, std::int64_t width, T* sums) {
  AddRows(x, rows, width, sums,
          [](auto d, const T* p, std::int64_t) HWY_ATTR { return hn::LoadU(d, p); });
}

template <class T>
void AddColumnSquares(const T* x, std::int64_t rows, std::int64_t width, const T* mean, T* sums) {
  AddRows(x, rows, width, sums, [&](auto d, const T* p, std::int64_t j) HWY_ATTR {
    const auto difference = hn::Sub(hn::LoadU(d, p), hn::LoadU(d, mean + j));
    return hn::Mul(difference, difference);
  });
}

// Calls row() for the rows of a block, each with its own part of the prefetch hint.
template <class T, class Row>
HWY_INLINE void ForBlockRows(std::int64_t rows, std::int64_t width, const RowHints& hints,
                             Row row) {
  const auto bytes = static_cast<std::size_t>(width) * sizeof(T);
  RowHints own = hints;
  for (std::int64_t r = 0; r < rows; ++r) {
    row(r * width, own);
    if (hints.prefetch != nullptr)
      own.prefetch =
          reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(own.prefetch) + bytes);
  }
}

// Sum of term(d, i) with four independent dependency chains.
template <class T, class Term>
HWY_INLINE T RowSum(std::int64_t n, Term term) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, term(d, i));
    b = hn::Add(b, term(d, i + lanes));
    c = hn::Add(c, term(d, i + 2 * lanes));
    e = hn::Add(e, term(d, i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Add(a, term(d, i));
  T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (; i < n; ++i) sum += hn::GetLane(term(one, i));
  return sum;
}

template <class T>
void NormBlock(const T* x, std::int64_t rows, std::int64_t width, bool centred, T epsilon,
               const T* scale, const T* bias, T* means, T* invs, T* y, const RowHints& hints) {
  const auto count = static_cast<T>(width);
  ForBlockRows<T>(rows, width, hints, [&](std::int64_t at, const RowHints& own) HWY_ATTR {
    const T* row = x + at;
    const T mean = centred ? RowSum<T>(width, [=](auto d, std::int64_t i)
                                                  HWY_ATTR { return hn::LoadU(d, row + i); }) /
                                 count
                           : T{0};
    const T squares = RowSum<T>(width, [=](auto d, std::int64_t i) HWY_ATTR {
      const auto difference = hn::Sub(hn::LoadU(d, row + i), hn::Set(d, mean));
      return hn::Mul(difference, difference);
    });
    const T inv = 1 / std::sqrt(squares / count + epsilon);
    *means++ = mean;
    *invs++ = inv;
    NormaliseRow<T>(row, {&mean, false}, {&inv, false}, {scale, true}, {bias, true}, width, y + at,
                    own);
  });
}

template <class T>
void GradientBlock(const T* dy, const T* x, std::int64_t rows, std::int64_t width, bool centred,
                   const T* scale, const T* means, const T* invs, T* dx, const RowHints& hints) {
  const auto count = static_cast<T>(width);
  ForBlockRows<T>(rows, width, hints, [&](std::int64_t at, const RowHints& own) HWY_ATTR {
    const T *x_row = x + at, *dy_row = dy + at;
    const T mean = *means++, inv = *invs++;
    const T sum =
        centred ? RowSum<T>(width,
                            [=](auto d, std::int64_t i) HWY_ATTR {
                              return hn::Mul(hn::LoadU(d, dy_row + i), hn::LoadU(d, scale + i));
                            })
                : T{0};
    const T product = RowSum<T>(width, [=](auto d, std::int64_t i) HWY_ATTR {
      const auto x_hat =
          hn::Mul(hn::Sub(hn::LoadU(d, x_row + i), hn::Set(d, mean)), hn::Set(d, inv));
      return hn::Mul(hn::Mul(hn::LoadU(d, dy_row + i), hn::LoadU(d, scale + i)), x_hat);
    });
    const hn::ScalableTag<T> d;
    const auto m = hn::Set(d, mean), v = hn::Set(d, inv);
    const auto offset = hn::Set(d, sum / count), slope = hn::Set(d, product / count);
    ForVectorsWithHints(d, width, dx + at, own, [=](std::int64_t i, auto load) HWY_ATTR {
      const auto x_hat = hn::Mul(hn::Sub(load(x_row + i), m), v);
      const auto rest = hn::MulSub(load(dy_row + i), load(scale + i), offset);
      return hn::Mul(hn::NegMulAdd(x_hat, slope, rest), v);
    });
  });
}

template <class T>
void AddRowProducts(const T* dy, const T* x, std::int64_t rows, std::int64_t width, const T* means,
                    const T* invs, T* sums, T* products) {
  // kRows at a time: each accumulator is loaded and stored once for all of them.
  const auto add = [&](auto k_rows) HWY_ATTR {
    constexpr std::int64_t kRows = decltype(k_rows)::value;
    ForColumns<T>(width, [&](auto d, std::int64_t j) HWY_ATTR {
      auto sum = hn::LoadU(d, sums + j), product = hn::LoadU(d, products + j);
      for (std::int64_t r = 0; r < kRows; ++r) {
        const auto g = hn::LoadU(d, dy + r * width + j);
        const auto x_hat = hn::Mul(hn::Sub(hn::LoadU(d, x + r * width + j), hn::Set(d, means[r])),
                                   hn::Set(d, invs[r]));
        sum = hn::Add(sum, g);
        product = hn::MulAdd(g, x_hat, product);
      }
      hn::StoreU(sum, d, sums + j);
      hn::StoreU(product, d, products + j);
    });
    dy += kRows * width, x += kRows * width;
    means += kRows, invs += kRows;
  };
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) add(std::integral_constant<std::int64_t, 4>());
  for (; r < rows; ++r) add(std::integral_constant<std::int64_t, 1>());
}

template <class T>
void NormaliseColumns(const T* x, std::int64_t rows, std::int64_t width, const T* mean,
                      const T* factor, const T* bias, T* y, const RowHints& hints) {
  const hn::ScalableTag<T> d;
  ForBlockRows<T>(rows, width, hints, [&](std::int64_t at, const RowHints& own) HWY_ATTR {
    ForVectorsWithHints(d, width, y + at, own, [=](std::int64_t j, auto load) HWY_ATTR {
      return hn::MulAdd(hn::Sub(load(x + at + j), load(mean + j)), load(factor + j),
                        load(bias + j));
    });
  });
}

template <class T>
void AddColumnProducts(const T* dy, const T* x, std::int64_t rows, std::int64_t width,
                       const T* mean, const T* inv, T* sums, T* products) {
  for (std::int64_t r = 0; r < rows; ++r, dy += width, x += width)
    ForColumns<T>(width, [&](auto d, std::int64_t j) HWY_ATTR {
      const auto g = hn::LoadU(d, dy + j);
      const auto x_hat =
          hn::Mul(hn::Sub(hn::LoadU(d, x + j), hn::LoadU(d, mean + j)), hn::LoadU(d, inv + j));
      hn::StoreU(hn::Add(hn::LoadU(d, sums + j), g), d, sums + j);
      hn::StoreU(hn::MulAdd(g, x_hat, hn::LoadU(d, products + j)), d, products + j);
    });
}

template <class T>
void ColumnGradient(const T* dy, const T* x, std::int64_t rows, std::int64_t width, const T* mean,
                    const T* inv, const T* g, const T* gx, const T* factor, T* dx,
                    const RowHints& hints) {
  const hn::ScalableTag<T> d;
  ForBlockRows<T>(rows, width, hints, [&](std::int64_t at, const RowHints& own) HWY_ATTR {
    ForVectorsWithHints(d, width, dx + at, own, [=](std::int64_t j, auto load) HWY_ATTR {
      const auto x_hat = hn::Mul(hn::Sub(load(x + at + j), load(mean + j)), load(inv + j));
      const auto rest = hn::Sub(load(dy + at + j), load(g + j));
      return hn::Mul(hn::NegMulAdd(x_hat, load(gx + j), rest), load(factor + j));
    });
  });
}

template <class T>
constexpr NormRows<T> kNormRows = {
    &NormaliseRow<T>,     &GradientRow<T>,      &ScaleBy<T>,           &SubtractTwice<T>,
    &NormBlock<T>,        &GradientBlock<T>,    &AddRowProducts<T>,    &AddColumns<T>,
    &AddColumnSquares<T>, &NormaliseColumns<T>, &AddColumnProducts<T>, &ColumnGradient<T>};

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
