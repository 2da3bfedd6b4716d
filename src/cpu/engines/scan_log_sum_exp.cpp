// Scans of logsumexp. The state is a pair: the maximum m so far, and the sum of exp(x - m). A block
// whose maxima of prefixes are within kSpread of one maximum M is an ordinary scan of exp(x - M);
// other blocks are halved.
#include <cmath>

#include "cpu/engines/build.hpp"
#include "cpu/engines/scan_chunks.hpp"
#include "cpu/kernels/pointwise.hpp"
#include "cpu/kernels/scan_rows.hpp"

namespace ashlar::cpu {

namespace {

template <class T>
class LogSumExpScanKernel final : public Kernel {
 public:
  explicit LogSumExpScanKernel(const Region& region)
      : op_(*region.anchor_as<Scan>()),
        shape_(region),
        rows_(scan_rows<T>()),
        ops_(row_ops<T>()),
        log_(pointwise_row<T>(PointwiseMode::log, f32)),
        x_(shape_.x, shape_.row_axis),
        y_(shape_.y, shape_.row_axis),
        chunks_(shape_, op_.mode, scratch_layout_) {}

  void run(const KernelContext& context) const override {
    const auto x = x_.bind(context), y = y_.bind(context);
    chunks_.run(context, scratch_layout_, true,
                [&](Coords coords, std::int64_t width, std::int64_t begin, std::int64_t end,
                    const ScanState& carry, const ScanState& total, bool store) {
                  std::copy(carry.fold, carry.fold + width, total.fold);
                  std::copy(carry.shift, carry.shift + width, total.shift);
                  if (shape_.along())
                    along(x, y, coords, begin, end, total, store);
                  else
                    across(x, y, coords, width, begin, end, total, store);
                });
  }

 private:
  using Bound = typename RowProgram<T>::Bound;
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

  struct State {
    T largest;
    double sum;  // of exp(x - largest); unused where that is not finite

    T result() const {
      return std::isfinite(largest) ? largest + static_cast<T>(std::log(sum)) : largest;
    }
  };

  void along(const Bound& x, const Bound& y, Coords coords, std::int64_t begin, std::int64_t end,
             const ScanState& total, bool store) const {
    alignas(64) T row[kScanRow], results[kScanRow + 1];
    const auto axis = static_cast<std::size_t>(shape_.axis);
    State state{static_cast<T>(*total.shift), *total.fold};
    for (std::int64_t at = begin; at < end; at += kScanRow) {
      const std::int64_t count = std::min(kScanRow, end - at);
      coords[axis] = op_.reverse ? shape_.length - at - count : at;
      x.load(coords.data(), count, row);
      if (op_.reverse) std::reverse(row, row + count);
      results[0] = state.result();  // of the elements before the row
      scan_block(row, count, state, results + 1);
      T* const first = results + (op_.exclusive ? 0 : 1);
      if (op_.reverse) std::reverse(first, first + count);
      if (store) y.store(coords.data(), count, first);
    }
    *total.shift = static_cast<double>(state.largest);
    *total.fold = state.sum;
  }

  void scan_block(const T* x, std::int64_t count, State& state, T* y) const {
    constexpr T kSpread = 1;
    constexpr std::int64_t kShort = 4;
    const T first = static_cast<T>(
        combine(Fold::maximum, static_cast<double>(state.largest), static_cast<double>(x[0])));
    const T largest = static_cast<T>(
        combine(Fold::maximum, static_cast<double>(first),
                static_cast<double>(ops_.fold(Fold::maximum, Premap::identity, x, count))));
    if (std::isfinite(first) && std::isfinite(largest) && largest - first <= kSpread) {
      alignas(64) T weights[kScanRow];
      if (state.largest == -kInfinity) state.sum = 0.0;
      state.sum *= std::exp(static_cast<double>(state.largest) - static_cast<double>(largest));
      ops_.exp_shifted(x, {&largest, false}, count, weights);
      const T sum =
          rows_.along(Fold::sum, false, weights, static_cast<T>(state.sum), count, weights);
      log_({.mode = PointwiseMode::log}, weights, nullptr, nullptr, count, y);
      for (std::int64_t i = 0; i < count; ++i) y[i] += largest;
      state.largest = largest;
      state.sum += static_cast<double>(sum);
      return;
    }
    if (count > kShort && !std::isnan(first)) {
      scan_block(x, count / 2, state, y);
      return scan_block(x + count / 2, count - count / 2, state, y + count / 2);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      add(x[i], state);
      y[i] = state.result();
    }
  }

  static void add(T x, State& state) {
    const T before = state.largest;
    if (!(x <= before) && !std::isnan(before)) state.largest = x;
    if (!std::isfinite(state.largest)) return;
    const auto shift = static_cast<double>(state.largest);
    const double kept = before == state.largest ? state.sum
                        : before == -kInfinity
                            ? 0.0
                            : state.sum * std::exp(static_cast<double>(before) - shift);
    state.sum = kept + std::exp(static_cast<double>(x) - shift);
  }

  void across(const Bound& x, const Bound& y, Coords coords, std::int64_t width, std::int64_t begin,
              std::int64_t end, const ScanState& total, bool store) const {
    alignas(64) T buffer[kScanStripe], largest[kScanStripe], sums[kScanStripe];
    for (std::int64_t i = 0; i < width; ++i) {
      largest[i] = static_cast<T>(total.shift[i]);
      sums[i] = static_cast<T>(total.fold[i]);
    }
    for (std::int64_t at = begin; at < end; ++at) {
      if (shape_.axis >= 0)
        coords[static_cast<std::size_t>(shape_.axis)] = op_.reverse ? shape_.length - 1 - at : at;
      const T* row = x.view(coords.data(), width, buffer);
      if (op_.exclusive && store) store_row(y, coords, width, largest, sums);
      add_row(row, width, largest, sums);
      if (!op_.exclusive && store) store_row(y, coords, width, largest, sums);
    }
    for (std::int64_t i = 0; i < width; ++i) {
      total.shift[i] = static_cast<double>(largest[i]);
      total.fold[i] = static_cast<double>(sums[i]);
    }
  }

  // A maximum that is not finite counts as a shift of 0; store_row() ignores the sum there, except
  // that of -inf, which is 0.
  void add_row(const T* row, std::int64_t width, T* largest, T* sums) const {
    alignas(64) T shift[kScanStripe], rescale[kScanStripe], weights[kScanStripe];
    std::copy(largest, largest + width, rescale);
    ops_.fold_into(Fold::maximum, Premap::identity, row, width, largest);
    for (std::int64_t i = 0; i < width; ++i) {
      shift[i] = std::isfinite(largest[i]) ? largest[i] : T{0};
      weights[i] = std::min(row[i], shift[i]);
    }
    ops_.exp_shifted(weights, {shift, true}, width, weights);
    ops_.exp_shifted(rescale, {shift, true}, width, rescale);
    for (std::int64_t i = 0; i < width; ++i) sums[i] = sums[i] * rescale[i] + weights[i];
  }

  void store_row(const Bound& y, const Coords& coords, std::int64_t width, const T* largest,
                 const T* sums) const {
    alignas(64) T results[kScanStripe];
    log_({.mode = PointwiseMode::log}, sums, nullptr, nullptr, width, results);
    for (std::int64_t i = 0; i < width; ++i)
      results[i] = std::isfinite(largest[i]) ? results[i] + largest[i] : largest[i];
    y.store(coords.data(), width, results);
  }

  Scan op_;
  ScanShape shape_;
  const ScanRows<T>& rows_;
  const RowOps<T>& ops_;
  PointwiseRow<T> log_;
  RowProgram<T> x_, y_;
  ScanChunks chunks_;
};

}  // namespace

std::unique_ptr<Kernel> build_log_sum_exp_scan(const Region& region) {
  return build_for_precision<LogSumExpScanKernel>(region);
}

}  // namespace ashlar::cpu
