// Backward-filter of small-group convolution, channels last, by lines of pixels.
#pragma once

#include "cpu/conv/conv_lines.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

// Lines are divided into splits with separate partials, which are added in a fixed order.
template <class T>
class ConvLinesFilterKernel final : public Kernel {
 public:
  ConvLinesFilterKernel(const Region& region, const DeviceProps& device)
      : geometry_(*region.anchor),
        channels_(geometry_.groups * geometry_.filters),
        phase_(geometry_.forward_phase()),
        dy_phase_(geometry_.identity_phase()),
        grids_({TapGrid(phase_), TapGrid(dy_phase_)}),
        kernel_(depthwise_kernel<T>()),
        x_(region.prologues[ConvBackwardFilter::x], geometry_, geometry_.x, channels_,
           {geometry_.filters, geometry_.channels}, kernel_.lanes),
        dy_(region.prologues[ConvBackwardFilter::dy], geometry_, geometry_.y, channels_, {},
            kernel_.lanes),
        store_(region, geometry_),
        threads_(std::max(device.compute_units, 1)) {
    blocking_ = choose_line_blocking(kernel_.lanes, channels_, phase_.extent[2],
                                     !x_.direct() || !dy_.direct(), kDirectLines, grids_,
                                     phase_.scale[1], phase_.scale[2]);
    splits_ = split_count();
    reserve_scratch();
  }

  void run(const KernelContext& context) const override {
    const typename LineSource<T>::Bound x(x_, context), dy(dy_, context);
    T* sums = context.scratch<T>(scratch_layout_, sums_);
    T* copies = copy_elements_ == 0 ? nullptr : context.scratch<T>(scratch_layout_, copies_);
    const std::int64_t shares = std::min(splits_, threads_);
    parallel_for(shares, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t share = begin; share < end; ++share) {
        T* mine = copies + share * copy_elements_;
        LineTable<T> sources(x_, x, phase_, grids_[0], blocking_, mine);
        LineTable<T> gradients(dy_, dy, dy_phase_, grids_[1], blocking_, mine + x_elements_);
        for (std::int64_t split = splits_ * share / shares; split < splits_ * (share + 1) / shares;
             ++split)
          sum_lines(sources, gradients, split, sums + split * sum_elements_);
      }
    });
    const typename GroupFilterStore<T>::Bound store(store_, context);
    const std::int64_t vectors = blocking_.vectors();
    parallel_for(vectors, divide_up(kLeastAdded, splits_ * per_vector() + 1),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t v = begin; v < end; ++v) finish(store, v, sums);
                 });
  }

 private:
  static constexpr std::int64_t kDirectLines = 8;     // few enough for a tile of them to stay in L1
  static constexpr std::int64_t kLeastAdded = 16384;  // elements worth a thread

  std::int64_t line_count() const { return phase_.images * phase_.extent[0] * phase_.extent[1]; }
  std::int64_t per_vector() const {
    return grids_[0].terms() * geometry_.channels * grids_[0].taps * blocking_.lanes;
  }

  // Enough splits for the threads and for short accumulation chains.
  std::int64_t split_count() const {
    constexpr std::int64_t kLongestSum = 8192, kMaxSplits = 256, kMacsPerSplit = 131072;
    const std::int64_t products =
        phase_.pixels() * channels_ * geometry_.channels * geometry_.tap_count();
    const std::int64_t wanted =
        std::min(2 * threads_, std::max<std::int64_t>(products / kMacsPerSplit, 1));
    const std::int64_t splits =
        std::clamp(divide_up(phase_.pixels(), kLongestSum), wanted, kMaxSplits);
    const std::int64_t lines = std::max<std::int64_t>(line_count(), 1);
    return std::min(splits > 1 ? round_up(splits, threads_) : 1, lines);
  }

  void reserve_scratch() {
    const auto bytes = [](std::int64_t elements) {
      return elements * static_cast<std::int64_t>(sizeof(T));
    };
    sum_elements_ = round_up(std::max<std::int64_t>(blocking_.vectors() * per_vector(), 1), 64);
    sums_ = scratch_layout_.add("sums", bytes(splits_ * sum_elements_));
    const std::int64_t width =
        copied_width(grids_[0], blocking_.pixels, phase_.scale[2], geometry_.x[2]);
    if (!x_.direct())
      x_elements_ = round_up(copied_lines(grids_[0], blocking_.lines, phase_.scale[1]) * width *
                                 x_.copy_pixel(blocking_.widest_copy()),
                             64);
    const std::int64_t dy =
        dy_.direct() ? 0 : blocking_.lines * blocking_.pixels * blocking_.widest_copy();
    copy_elements_ = round_up(x_elements_ + dy, 64);
    if (copy_elements_ > 0)
      copies_ = scratch_layout_.add("copies", bytes(threads_ * copy_elements_));
  }

  void sum_lines(LineTable<T>& sources, LineTable<T>& gradients, std::int64_t split,
                 T* sums) const {
    std::fill_n(sums, sum_elements_, T{0});
    const std::int64_t lines = phase_.extent[2] == 0 ? 0 : line_count();
    const std::int64_t end = lines * (split + 1) / splits_;
    for (std::int64_t line = lines * split / splits_; line < end;) {
      const std::int64_t y = line % phase_.extent[1], rest = line / phase_.extent[1];
      const LineCoords at{rest / phase_.extent[0], rest % phase_.extent[0], y};
      const std::int64_t count = std::min({blocking_.lines, phase_.extent[1] - y, end - line});
      for (std::int64_t first = 0; first < phase_.extent[2]; first += blocking_.pixels)
        for (std::int64_t chunk = 0; chunk < blocking_.chunks(); ++chunk) {
          const Span pixels{first, std::min(blocking_.pixels, phase_.extent[2] - first)};
          const Span channels = blocking_.chunk_at(chunk);
          sources.fill(at, count, pixels, channels);
          gradients.fill(at, count, pixels, channels);
          DepthwiseFilterLines<T> block;
          block.source = sources.described();
          block.gradients = gradients.described().sources;
          block.gradient_pixel = gradients.described().pixel;
          block.sums = sums + chunk * blocking_.chunk_vectors() * per_vector();
          kernel_.filter_lines(block);
        }
      line += count;
    }
  }

  // Reduces the partials of a vector of filters and stores the filters.
  void finish(const typename GroupFilterStore<T>::Bound& store, std::int64_t vector,
              T* sums) const {
    const std::int64_t chunk = std::min(vector / blocking_.chunk_vectors(), blocking_.chunks() - 1);
    const Span span = blocking_.chunk_at(chunk);
    const std::int64_t v = vector - chunk * blocking_.chunk_vectors();
    const std::int64_t start =
        vector_start(v, blocking_.lanes, std::max(span.count, blocking_.lanes));
    // Lanes that overlap the previous vector are skipped.
    const std::int64_t skipped = v * blocking_.lanes - start;
    const std::int64_t filter = span.first + start + skipped;
    const std::int64_t count = std::min(blocking_.lanes, span.count) - skipped;
    const TapGrid& grid = grids_[0];
    T* totals = sums + vector * per_vector() + skipped;
    for (std::int64_t t = 0; t < grid.terms(); ++t)
      for (std::int64_t part = 0; part < geometry_.channels; ++part)
        for (std::int64_t s = 0; s < grid.taps; ++s, totals += blocking_.lanes) {
          add_splits(totals, count);
          store.put(filter, part, grid.stored[static_cast<std::size_t>(t * grid.taps + s)], count,
                    totals);
        }
  }

  void add_splits(T* totals, std::int64_t count) const {
    if (splits_ == 1) return;
    constexpr std::int64_t kChunk = 64;
    for (std::int64_t begin = 0; begin < count; begin += kChunk) {
      double piece[kChunk] = {};
      const std::int64_t length = std::min(kChunk, count - begin);
      for (std::int64_t split = 0; split < splits_; ++split)
        for (std::int64_t i = 0; i < length; ++i)
          piece[i] += static_cast<double>(totals[split * sum_elements_ + begin + i]);
      for (std::int64_t i = 0; i < length; ++i) totals[begin + i] = static_cast<T>(piece[i]);
    }
  }

  ConvGeometry geometry_;
  std::int64_t channels_;  // of dy: filters of all groups
  ConvPhase phase_, dy_phase_;
  std::vector<TapGrid> grids_;  // of x, of dy
  DepthwiseKernel<T> kernel_;
  LineSource<T> x_, dy_;
  GroupFilterStore<T> store_;
  std::int64_t threads_, splits_ = 1;
  LineBlocking blocking_;
  std::int64_t sum_elements_ = 0, x_elements_ = 0, copy_elements_ = 0;
  int sums_ = -1, copies_ = -1;
};

}  // namespace ashlar::cpu
