// RNN cell kernels. Elementary functions of float rows use vector exponentials with a relative
// error below 4 * 2^-24; those of double rows call the C library per lane.
#include <cmath>
#include <cstdint>

#include "cpu/kernels/exp-inl.h"
#include "cpu/kernels/loops-inl.h"
#include "cpu/kernels/rnn_cell.hpp"
#include "hwy/highway.h"

#if defined(ASHLAR_CPU_RNN_CELL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_RNN_CELL_INL_H_
#undef ASHLAR_CPU_RNN_CELL_INL_H_
#else
#define ASHLAR_CPU_RNN_CELL_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using CellTag = hn::ScalableTag<T>;
template <class T>
using CellVec = hn::Vec<CellTag<T>>;

// `count` elements from p on, zeros after them.
template <class T>
HWY_INLINE CellVec<T> LoadCell(const T* p, std::size_t count) {
  const CellTag<T> d;
  return count == hn::Lanes(d) ? hn::LoadU(d, p) : LoadPart(d, p, count);
}
template <class T>
HWY_INLINE void StoreCell(CellVec<T> v, T* p, std::size_t count) {
  const CellTag<T> d;
  if (count == hn::Lanes(d)) return hn::StoreU(v, d, p);
  StorePart(d, v, p, count);
}

template <class Function>
HWY_INLINE CellVec<double> LaneByLane(CellVec<double> v, Function function) {
  const CellTag<double> d;
  HWY_ALIGN double lanes[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(v, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = function(lanes[i]);
  return hn::Load(d, lanes);
}

// 1 / (1 + e), e >= 0. AVX-512 division is slow relative to multiplication, and its estimate is
// accurate enough for one Newton step.
HWY_INLINE CellVec<float> InverseOfOnePlus(CellVec<float> e) {
  const CellTag<float> d;
  const CellVec<float> sum = hn::Add(hn::Set(d, 1.0f), e);
#if HWY_TARGET <= HWY_AVX3
  const CellVec<float> estimate = hn::ApproximateReciprocal(sum);
  return hn::Mul(estimate, hn::NegMulAdd(sum, estimate, hn::Set(d, 2.0f)));
#else
  return hn::Div(hn::Set(d, 1.0f), sum);
#endif
}

// 1 / (1 + exp(-x)). Past 88 the result is below the normal floats.
template <class T>
HWY_INLINE CellVec<T> CellSigmoid(CellVec<T> x) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return LaneByLane(x, [](double v) { return 1.0 / (1.0 + std::exp(-v)); });
  } else {
    const CellTag<T> d;
    const CellVec<T> e = SoftmaxExp(d, hn::Min(hn::Neg(x), hn::Set(d, 88.0f)));
    return hn::IfThenElse(hn::Eq(x, x), InverseOfOnePlus(e), x);
  }
}
// 1 - 2 / (1 + exp(2 |x|)); near 0, where that cancels, x + x^3 p(x^2) with a polynomial fitted at
// Chebyshev nodes of x^2 <= 0.625^2.
template <class T>
HWY_INLINE CellVec<T> CellTanh(CellVec<T> x) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return LaneByLane(x, [](double v) { return std::tanh(v); });
  } else {
    const CellTag<T> d;
    const CellVec<T> size = hn::Abs(x);
    const CellVec<T> e = SoftmaxExp(d, hn::Min(hn::Add(size, size), hn::Set(d, 40.0f)));
    const CellVec<T> far = hn::NegMulAdd(hn::Set(d, 2.0f), InverseOfOnePlus(e), hn::Set(d, 1.0f));
    const CellVec<T> square = hn::Mul(x, x);
    CellVec<T> p =
        hn::MulAdd(square, hn::Set(d, -0.006092396564781666f), hn::Set(d, 0.02099420875310898f));
    p = hn::MulAdd(p, square, hn::Set(d, -0.05385028198361397f));
    p = hn::MulAdd(p, square, hn::Set(d, 0.1333276629447937f));
    p = hn::MulAdd(p, square, hn::Set(d, -0.333333283662796f));
    const CellVec<T> near = hn::MulAdd(hn::Mul(p, square), x, x);
    // NaN fails the comparison: the polynomial propagates it.
    return hn::IfThenElse(hn::Gt(size, hn::Set(d, 0.625f)), hn::CopySign(far, x), near);
  }
}

template <class T>
HWY_INLINE CellVec<T> ClippedCell(CellVec<T> c, const RnnClip<T>& clip) {
  const CellTag<T> d;
  const CellVec<T> low = hn::Set(d, clip.low_value);
  const CellVec<T> high = hn::Set(d, clip.high_value);
  CellVec<T> result = c;
  if (clip.high) result = hn::IfThenElse(hn::Gt(result, high), high, result);
  if (clip.low) result = hn::IfThenElse(hn::Lt(result, low), low, result);
  return clip.nan ? hn::IfThenElse(hn::Eq(c, c), result, low) : result;
}
// A clipped cell passes no gradient.
template <class T>
HWY_INLINE CellVec<T> ThroughClip(CellVec<T> gradient, CellVec<T> c, const RnnClip<T>& clip) {
  const CellTag<T> d;
  if (clip.low) gradient = hn::IfThenElseZero(hn::Gt(c, hn::Set(d, clip.low_value)), gradient);
  if (clip.high) gradient = hn::IfThenElseZero(hn::Lt(c, hn::Set(d, clip.high_value)), gradient);
  return gradient;
}

// Calls body(first, count) for whole vectors of units and the remainder.
template <class T, class Body>
HWY_INLINE void ForUnits(std::int64_t units, Body&& body) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(CellTag<T>()));
  for (std::int64_t i = 0; i < units; i += lanes)
    body(i, static_cast<std::size_t>(HWY_MIN(lanes, units - i)));
}

template <RnnMode kMode, class T>
void CellForward(const RnnCellForward<T>& row, const RnnClip<T>& clip, std::int64_t units) {
  const CellTag<T> d;
  ForUnits<T>(units, [&](std::int64_t u, std::size_t count) HWY_ATTR {
    const auto input = [&](std::int64_t gate) HWY_ATTR {
      return LoadCell(row.input + gate * row.input_stride + u, count);
    };
    const auto recurrent = [&](std::int64_t gate) HWY_ATTR {
      return LoadCell(row.recurrent + gate * row.recurrent_stride + u, count);
    };
    const auto store_gate = [&](std::int64_t gate, CellVec<T> v) HWY_ATTR {
      StoreCell(v, row.gates + gate * row.gate_stride + u, count);
    };
    if constexpr (kMode == RnnMode::relu || kMode == RnnMode::tanh) {
      const CellVec<T> sum = hn::Add(input(0), recurrent(0));
      const CellVec<T> h = kMode == RnnMode::tanh
                               ? CellTanh<T>(sum)
                               : hn::IfThenElse(hn::Lt(sum, hn::Zero(d)), hn::Zero(d), sum);
      StoreCell(h, row.hidden + u, count);
    } else if constexpr (kMode == RnnMode::lstm) {
      const CellVec<T> i = CellSigmoid<T>(hn::Add(input(0), recurrent(0)));
      const CellVec<T> f = CellSigmoid<T>(hn::Add(input(1), recurrent(1)));
      const CellVec<T> g = CellTanh<T>(hn::Add(input(2), recurrent(2)));
      const CellVec<T> o = CellSigmoid<T>(hn::Add(input(3), recurrent(3)));
      const CellVec<T> before = LoadCell(row.previous + u, count);
      const CellVec<T> c = ClippedCell(hn::MulAdd(f, before, hn::Mul(i, g)), clip);
      store_gate(0, i);
      store_gate(1, f);
      store_gate(2, g);
      store_gate(3, o);
      StoreCell(c, row.inner + u, count);
      StoreCell(hn::Mul(o, CellTanh<T>(c)), row.hidden + u, count);
    } else {
      const CellVec<T> r = CellSigmoid<T>(hn::Add(input(0), recurrent(0)));
      const CellVec<T> z = CellSigmoid<T>(hn::Add(input(1), recurrent(1)));
      const CellVec<T> m = hn::Add(recurrent(2), LoadCell(row.new_bias + u, count));
      const CellVec<T> n = CellTanh<T>(hn::MulAdd(r, m, input(2)));
      const CellVec<T> before = LoadCell(row.previous + u, count);
      store_gate(0, r);
      store_gate(1, z);
      store_gate(2, n);
      StoreCell(m, row.inner + u, count);
      const CellVec<T> kept = hn::Sub(hn::Set(d, T{1}), z);
      StoreCell(hn::MulAdd(kept, n, hn::Mul(z, before)), row.hidden + u, count);
    }
  });
}

template <RnnMode kMode, class T>
void CellBackward(const RnnCellBackward<T>& row, const RnnClip<T>& clip, std::int64_t units) {
  const CellTag<T> d;
  const CellVec<T> one = hn::Set(d, T{1});
  ForUnits<T>(units, [&](std::int64_t u, std::size_t count) HWY_ATTR {
    const auto gate = [&](std::int64_t k)
                          HWY_ATTR { return LoadCell(row.gates + k * row.gate_stride + u, count); };
    const auto store_gate = [&](std::int64_t k, CellVec<T> v) HWY_ATTR {
      StoreCell(v, row.d_gates + k * row.d_gate_stride + u, count);
    };
    const CellVec<T> dh = LoadCell(row.d_hidden + u, count);
    if constexpr (kMode == RnnMode::relu) {
      store_gate(0, hn::IfThenElseZero(hn::Gt(gate(0), hn::Zero(d)), dh));
    } else if constexpr (kMode == RnnMode::tanh) {
      const CellVec<T> h = gate(0);
      store_gate(0, hn::Mul(dh, hn::NegMulAdd(h, h, one)));
    } else if constexpr (kMode == RnnMode::lstm) {
      const CellVec<T> i = gate(0), f = gate(1), g = gate(2), o = gate(3);
      const CellVec<T> c = LoadCell(row.inner + u, count);
      const CellVec<T> t = CellTanh<T>(c);
      const CellVec<T> slope = hn::Mul(o, hn::NegMulAdd(t, t, one));
      const CellVec<T> dc =
          ThroughClip(hn::MulAdd(dh, slope, LoadCell(row.d_cell + u, count)), c, clip);
      const CellVec<T> before = LoadCell(row.previous + u, count);
      store_gate(0, hn::Mul(hn::Mul(dc, g), hn::Mul(i, hn::Sub(one, i))));
      store_gate(1, hn::Mul(hn::Mul(dc, before), hn::Mul(f, hn::Sub(one, f))));
      store_gate(2, hn::Mul(hn::Mul(dc, i), hn::NegMulAdd(g, g, one)));
      store_gate(3, hn::Mul(hn::Mul(dh, t), hn::Mul(o, hn::Sub(one, o))));
      StoreCell(hn::Mul(dc, f), row.d_cell + u, count);
    } else {
      const CellVec<T> r = gate(0), z = gate(1), n = gate(2);
      const CellVec<T> m = LoadCell(row.inner + u, count);
      const CellVec<T> before = LoadCell(row.previous + u, count);
      const CellVec<T> dn = hn::Mul(hn::Mul(dh, hn::Sub(one, z)), hn::NegMulAdd(n, n, one));
      store_gate(0, hn::Mul(hn::Mul(dn, m), hn::Mul(r, hn::Sub(one, r))));
      store_gate(1, hn::Mul(hn::Mul(dh, hn::Sub(before, n)), hn::Mul(z, hn::Sub(one, z))));
      store_gate(2, dn);
      StoreCell(hn::Mul(dn, r), row.d_recurrent_new + u, count);
      StoreCell(hn::Mul(dh, z), row.d_direct + u, count);
    }
  });
}

template <class T>
RnnCells<T> CellsFor(RnnMode mode) {
  switch (mode) {
    case RnnMode::relu: return {&CellForward<RnnMode::relu, T>, &CellBackward<RnnMode::relu, T>};
    case RnnMode::tanh: return {&CellForward<RnnMode::tanh, T>, &CellBackward<RnnMode::tanh, T>};
    case RnnMode::gru: return {&CellForward<RnnMode::gru, T>, &CellBackward<RnnMode::gru, T>};
    case RnnMode::lstm: break;
  }
  return {&CellForward<RnnMode::lstm, T>, &CellBackward<RnnMode::lstm, T>};
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
