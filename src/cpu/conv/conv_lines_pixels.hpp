// Forward and backward-data of small-group convolution, channels last, by lines of pixels.
#pragma once

#include "cpu/constants.hpp"
#include "cpu/conv/channel_post_ops.hpp"
#include "cpu/conv/conv_lines.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

// Store of finished lines: in place with post-ops, or staged and through the region's epilogue.
template <class T>
class LineResult {
 public:
  LineResult(const Region& region, const ConvGeometry& geometry, std::int64_t channels,
             std::int64_t lanes)
      : geometry_(geometry),
        channels_(channels),
        store_(region.epilogue, z_of(region), geometry, 1, 1) {
    const bool adds_z = !z_of(region).empty() && geometry.beta != 0.0;
    if (!adds_z) post_ops_ = ChannelPostOps<T>::of(region.epilogue, 1, geometry.alpha);
    if (post_ops_ && !fits(*post_ops_, channels, lanes)) post_ops_.reset();
    if (post_ops_) result_address_ = PixelAddress(post_ops_->result(), geometry);
    if (post_ops_ && post_ops_->residual() != nullptr)
      residual_address_ = PixelAddress(*post_ops_->residual(), geometry);
    const PointwiseProgram& epilogue = region.epilogue;
    if (adds_z || geometry.alpha != 1.0 || !epilogue.is_plain_store()) return;
    plain_ = epilogue.stores[0].view;
    joined_ = plain_.strides[1] == 1 && plain_.strides[last()] == channels;
    if (joined_) convert_ = store_row<T>(plain_.dtype);
  }

  bool direct() const { return post_ops_.has_value(); }
  bool finishes() const { return direct() && !post_ops_->does_nothing(); }

  class Bound {
   public:
    // `post_ops`: memory for factors and offsets, two elements per channel.
    Bound(const LineResult& result, const KernelContext& context, T* post_ops)
        : result_(result), store_(result.store_, context) {
      if (result.convert_ != nullptr) memory_ = context.pointer(result.plain_.tensor);
      if (!result.direct()) return;
      direct_ = static_cast<T*>(context.pointer(result.post_ops_->result().tensor));
      if (!result.finishes()) return;
      residual_ = residual_of(result, context);
      result.post_ops_->load(context, result.channels_, post_ops, post_ops + result.channels_);
      described_ = {post_ops, post_ops + result.channels_, result.post_ops_->low(),
                    result.post_ops_->high()};
    }
    DepthwisePostOps<T> described(std::int64_t first_channel) const {
      DepthwisePostOps<T> post_ops = described_;
      if (post_ops.factor == nullptr) return post_ops;
      post_ops.factor += first_channel;
      post_ops.offset += first_channel;
      return post_ops;
    }
    T* line(const Spatial& position, std::int64_t image) const {
      return direct_ + result_.result_address_.index(image, position);
    }
    const T* residual(const Spatial& position, std::int64_t image) const {
      if (residual_ == nullptr) return nullptr;
      return residual_ + result_.residual_address_.index(image, position);
    }
    // Stores a staged line: `pixels` pixels from `position` on, `step` columns apart.
    void store(Spatial position, std::int64_t image, std::int64_t pixels, std::int64_t step,
               const Span& channels, std::int64_t pixel, T* values) const {
      if (result_.convert_ != nullptr && step == 1 && channels.count == result_.channels_ &&
          pixel == channels.count)
        return result_.convert_(
            values, pixels * pixel, memory_,
            PixelAddress(result_.plain_, result_.geometry_).index(image, position), 1);
      ConvCoords coords;
      for (std::int64_t i = 0; i < pixels; ++i, values += pixel) {
        result_.geometry_.put(image, channels.first, position, coords.data());
        store_.row(coords, 1, 1, channels.count, values);
        position[kMaxSpatial - 1] += step;
      }
    }

   private:
    static const T* residual_of(const LineResult& result, const KernelContext& context) {
      const View* view = result.post_ops_->residual();
      return view == nullptr ? nullptr : static_cast<const T*>(context.pointer(view->tensor));
    }
    const LineResult& result_;
    typename ConvStore<T>::Bound store_;
    void* memory_ = nullptr;
    T* direct_ = nullptr;
    const T* residual_ = nullptr;
    DepthwisePostOps<T> described_;
  };

  // Direct: strides of the last two axes in elements.
  std::int64_t column_stride() const { return post_ops_->result().strides[last()]; }
  std::int64_t row_stride() const {
    return geometry_.spatial > 1 ? post_ops_->result().strides[last() - 1] : 0;
  }

 private:
  int last() const { return 1 + geometry_.spatial; }
  bool fits(const ChannelPostOps<T>& post_ops, std::int64_t channels, std::int64_t lanes) const {
    const View& result = post_ops.result();
    if (result.strides[1] != 1 || channels < lanes) return false;
    const View* residual = post_ops.residual();
    return residual == nullptr ||
           (residual->strides[1] == 1 && residual->strides[last()] == result.strides[last()]);
  }
  ConvGeometry geometry_;
  std::int64_t channels_;
  ConvStore<T> store_;
  std::optional<ChannelPostOps<T>> post_ops_;
  PixelAddress result_address_, residual_address_;
  View plain_;
  bool joined_ = false;
  StoreRow<T> convert_ = nullptr;
};

template <class T>
class ConvLinesKernel final : public Kernel {
 public:
  ConvLinesKernel(const Region& region, const DeviceProps& device)
      : geometry_(*region.anchor),
        forward_(region.anchor_as<ConvForward>() != nullptr),
        groups_(forward_ ? GroupMap{geometry_.filters, geometry_.channels}
                         : GroupMap{geometry_.channels, geometry_.filters}),
        channels_(geometry_.groups * groups_.results),
        phases_(phases_of(geometry_, region)),
        grids_(phases_.begin(), phases_.end()),
        kernel_(depthwise_kernel<T>()),
        source_(region.prologues[0], geometry_, forward_ ? geometry_.x : geometry_.y, channels_,
                groups_, kernel_.lanes),
        filter_program_(region.prologues[1]),
        filter_(filter_program_, geometry_, groups_, forward_),
        result_(region, geometry_, channels_, kernel_.lanes),
        threads_(std::max(device.compute_units, 1)) {
    const auto bytes = static_cast<std::int64_t>(region.bytes());
    streams_ = bytes > device.l3_bytes / 2;
    fetches_ = bytes > 2 * device.l2_bytes * threads_;
    choose_blocking();
    reserve_scratch(true);
  }

  void keep_constants(const KernelContext& constants) override {
    if (!is_constant(filter_program_, constants)) return;
    prepacked_.allocate(all_weights());
    pack_all(constants, prepacked_.data());
    reserve_scratch(false);
  }

  void run(const KernelContext& context) const override {
    T* post_ops = result_.finishes() ? context.scratch<T>(scratch_layout_, post_ops_) : nullptr;
    T* copies = copy_elements_ == 0 ? nullptr : context.scratch<T>(scratch_layout_, copies_);
    const T* weights = prepacked_.data();
    if (weights == nullptr) {
      T* scratch = context.scratch<T>(scratch_layout_, weights_);
      pack_all(context, scratch);
      weights = scratch;
    }
    const typename LineSource<T>::Bound source(source_, context);
    const typename LineResult<T>::Bound result(result_, context, post_ops);
    const std::int64_t shares = share_count();
    parallel_for(shares, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t share = begin; share < end; ++share)
        run_share(share, shares, source, result, weights, copies + share * copy_elements_);
    });
  }

 private:
  // Few enough for a tile to stay in L1, more if many taps amortise them.
  static constexpr std::int64_t kDirectLines = 4, kManyDirectLines = 8, kFewTerms = 3;

  // The tasks of one thread, numbered line by line, chunk by chunk.
  class Block {
   public:
    Block(const ConvLinesKernel& kernel, const ConvPhase& phase, const TapGrid& grid,
          const typename LineSource<T>::Bound& source, const typename LineResult<T>::Bound& result,
          const T* weights, T* copies)
        : k_(kernel),
          phase_(phase),
          grid_(grid),
          source_(source),
          result_(result),
          weights_(weights),
          result_copies_(copies),
          table_(k_.source_, source, phase, grid, k_.blocking_, copies + k_.result_elements_) {}

    void run(std::int64_t task, std::int64_t end) {
      const std::int64_t lines = phase_.pixels() / phase_.extent[2];
      while (task < end) {
        const std::int64_t line = task % lines, first = task / lines * k_.blocking_.pixels;
        const std::int64_t y = line % phase_.extent[1], rest = line / phase_.extent[1];
        const LineCoords at{rest / phase_.extent[0], rest % phase_.extent[0], y};
        const std::int64_t count = std::min({k_.blocking_.lines, phase_.extent[1] - y, end - task});
        const Span pixels{first, std::min(k_.blocking_.pixels, phase_.extent[2] - first)};
        for (std::int64_t chunk = 0; chunk < k_.blocking_.chunks(); ++chunk)
          run_chunk(at, count, pixels, chunk);
        task += count;
      }
    }

   private:
    void run_chunk(const LineCoords& at, std::int64_t count, const Span& pixels,
                   std::int64_t chunk) {
      const Span channels = k_.blocking_.chunk_at(chunk);
      const std::int64_t copy_pixel = k_.blocking_.copy_pixel(channels);
      table_.fill(at, count, pixels, channels);
      DepthwiseLines<T> lines;
      lines.source = table_.described();
      lines.weights = weights_ + chunk * k_.blocking_.chunk_vectors() * grid_.terms() * grid_.taps *
                                     k_.groups_.parts * k_.blocking_.lanes;
      T* results[kMaxLines];
      const T *residuals[kMaxLines], *prefetch[kMaxLines];
      lines.results = results;
      if (!k_.result_.direct()) {
        for (std::int64_t l = 0; l < count; ++l)
          results[l] = result_copies_ + (l * pixels.count - pixels.first) * copy_pixel;
        lines.result_pixel = copy_pixel;
        k_.kernel_.lines(lines);
        for (std::int64_t l = 0; l < count; ++l)
          result_.store(position(at, l, pixels.first), at.image, pixels.count, phase_.step[2],
                        channels, copy_pixel, result_copies_ + l * pixels.count * copy_pixel);
        return;
      }
      for (std::int64_t l = 0; l < count; ++l) {
        results[l] = result_.line(position(at, l, 0), at.image) + channels.first;
        residuals[l] = result_.residual(position(at, l, 0), at.image);
        if (residuals[l] != nullptr) residuals[l] += channels.first;
      }
      lines.result_pixel = k_.result_.column_stride() * phase_.step[2];
      lines.post_ops = result_.described(channels.first);
      if (residuals[0] != nullptr) lines.residuals = residuals;
      if (k_.source_.direct() && k_.fetches_) {
        find_prefetch_lines(at, count, prefetch);
        lines.prefetch = prefetch;
      }
      if (k_.fetches_ && !k_.streams_)
        lines.prefetch_results = count * k_.result_.row_stride() * phase_.step[1];
      lines.stream = k_.streams_ && whole_vectors(lines, results[0]);
      k_.kernel_.lines(lines);
    }

    Spatial position(const LineCoords& at, std::int64_t line, std::int64_t pixel) const {
      return {phase_.origin[0] + at.z * phase_.step[0],
              phase_.origin[1] + (at.y + line) * phase_.step[1],
              phase_.origin[2] + pixel * phase_.step[2]};
    }

    // Finds the lines that the next block reads first.
    void find_prefetch_lines(const LineCoords& at, std::int64_t count, const T** prefetch) const {
      for (std::int64_t l = 0; l < count; ++l) {
        LineCoords next{at.image, at.z * phase_.scale[0],
                        (at.y + count + l) * phase_.scale[1] + grid_.last_y};
        if (next.y >= k_.source_.extents()[1] && next.image + 1 < phase_.images)
          next = {at.image + 1, 0, next.y - k_.source_.extents()[1]};
        prefetch[l] = phase_.scale[2] == 1 && source_.inside(next) ? source_.line(next) : nullptr;
      }
    }

    bool whole_vectors(const DepthwiseLines<T>& lines, const T* result) const {
      const std::int64_t lanes = k_.blocking_.lanes,
                         line = k_.result_.row_stride() * phase_.step[1];
      return lines.source.channels % lanes == 0 && lines.result_pixel % lanes == 0 &&
             line % lanes == 0 &&
             reinterpret_cast<std::uintptr_t>(result) %
                     (sizeof(T) * static_cast<std::size_t>(lanes)) ==
                 0;
    }

    const ConvLinesKernel& k_;
    const ConvPhase& phase_;
    const TapGrid& grid_;
    const typename LineSource<T>::Bound& source_;
    const typename LineResult<T>::Bound& result_;
    const T* weights_;
    T* result_copies_;
    LineTable<T> table_;
  };

  // Interleaves the phases, a few lines of each: together they fill whole lines of the result.
  void run_share(std::int64_t share, std::int64_t shares,
                 const typename LineSource<T>::Bound& source,
                 const typename LineResult<T>::Bound& result, const T* weights, T* copies) const {
    std::int64_t turns = 1;
    if (phases_.size() > 1) turns += max_tasks() / (shares * blocking_.lines);
    for (std::int64_t turn = share * turns; turn < (share + 1) * turns; ++turn) {
      const T* of_phase = weights;
      for (std::size_t i = 0; i < phases_.size(); ++i) {
        const std::int64_t tasks = task_count(phases_[i]);
        Block block(*this, phases_[i], grids_[i], source, result, of_phase, copies);
        block.run(tasks * turn / (shares * turns), tasks * (turn + 1) / (shares * turns));
        of_phase += weight_elements(grids_[i]);
      }
    }
  }

  // Number of lines, or chunks of lines.
  std::int64_t task_count(const ConvPhase& phase) const {
    return phase.images * phase.extent[0] * phase.extent[1] *
           divide_up(phase.extent[2], blocking_.pixels);
  }
  std::int64_t max_tasks() const {
    std::int64_t most = 0;
    for (const ConvPhase& phase : phases_) most = std::max(most, task_count(phase));
    return most;
  }

  void choose_blocking() {
    std::int64_t line = 0, lines = 0;
    for (const ConvPhase& phase : phases_) {
      line = std::max(line, phase.extent[2]);
      lines = std::max(lines, phase.images * phase.extent[0] * phase.extent[1]);
    }
    const bool copies = !source_.direct() || !result_.direct();
    const std::int64_t scale = phases_.empty() ? 1 : phases_[0].scale[1];
    const bool few = grids_.empty() || grids_[0].terms() <= kFewTerms;
    blocking_ = choose_line_blocking(kernel_.lanes, channels_, line, copies,
                                     few ? kDirectLines : kManyDirectLines, grids_, scale,
                                     phases_.empty() ? 1 : phases_[0].scale[2]);
    // Few lines: threads share a line.
    constexpr std::int64_t kLeastPixels = 56;
    if (lines > 0 && lines < 2 * threads_)
      blocking_.pixels =
          std::min(blocking_.pixels,
                   std::max(kLeastPixels, divide_up(line, divide_up(2 * threads_, lines))));
  }

  std::int64_t weight_elements(const TapGrid& grid) const {
    return grid.terms() * grid.taps * groups_.parts * blocking_.vectors() * blocking_.lanes;
  }

  // All phases, and a row buffer for packing.
  std::int64_t all_weights() const {
    std::int64_t elements = channels_;
    for (const TapGrid& grid : grids_) elements += weight_elements(grid);
    return elements;
  }

  void reserve_scratch(bool with_weights) {
    scratch_layout_ = ScratchLayout();
    std::int64_t copied = 0;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      const TapGrid& grid = grids_[i];
      copied = std::max(copied, copied_lines(grid, blocking_.lines, phases_[i].scale[1]) *
                                    copied_width(grid, blocking_.pixels, phases_[i].scale[2],
                                                 source_.extents()[2]));
    }
    const auto bytes = [](std::int64_t elements) {
      return elements * static_cast<std::int64_t>(sizeof(T));
    };
    if (with_weights) weights_ = scratch_layout_.add("weights", bytes(all_weights()));
    if (result_.finishes()) post_ops_ = scratch_layout_.add("finish", bytes(2 * channels_));
    if (!result_.direct())
      result_elements_ = blocking_.lines * blocking_.pixels * blocking_.widest_copy();
    const std::int64_t source =
        source_.direct() ? 0 : copied * source_.copy_pixel(blocking_.widest_copy());
    copy_elements_ = round_up(result_elements_ + source, kWorkspaceAlignment);
    if (copy_elements_ > 0)
      copies_ = scratch_layout_.add("copies", bytes(threads_ * copy_elements_));
  }

  // Threads worth waking, by multiply-adds and by elements moved.
  std::int64_t share_count() const {
    constexpr std::int64_t kMacsPerThread = 131072;
    std::int64_t products = 0, pixels = 0;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      products +=
          phases_[i].pixels() * channels_ * groups_.parts * grids_[i].terms() * grids_[i].taps;
      pixels += phases_[i].pixels();
    }
    const std::int64_t threads =
        std::max(products / kMacsPerThread, pixels / items_per_thread(channels_));
    return std::clamp<std::int64_t>(std::min(threads, max_tasks()), 1, threads_);
  }

  void pack_all(const KernelContext& context, T* weights) const {
    const typename GroupFilter<T>::Bound filter(filter_, context);
    for (const TapGrid& grid : grids_) {
      pack_weights(filter, grid, weights);
      weights += weight_elements(grid);
    }
  }

  // [vector][term][part][tap][lane]; the end of the memory is the row buffer, one value per
  // channel.
  void pack_weights(const typename GroupFilter<T>::Bound& filter, const TapGrid& grid,
                    T* weights) const {
    const std::int64_t parts = groups_.parts, per_vector = grid.terms() * parts * grid.taps;
    T* row = weights + per_vector * blocking_.vectors() * blocking_.lanes;
    for (std::int64_t t = 0; t < grid.terms(); ++t)
      for (std::int64_t part = 0; part < parts; ++part)
        for (std::int64_t s = 0; s < grid.taps; ++s) {
          const auto& stored = grid.stored[static_cast<std::size_t>(t * grid.taps + s)];
          const T* plain = filter.view(stored, part);
          if (plain == nullptr) filter.load(stored, part, row);
          scatter(plain == nullptr ? row : plain, plain == nullptr ? 1 : filter.stride(),
                  weights + ((t * parts + part) * grid.taps + s) * blocking_.lanes,
                  per_vector * blocking_.lanes);
        }
  }

  void scatter(const T* row, std::int64_t stride, T* target, std::int64_t vector_stride) const {
    for (std::int64_t chunk = 0; chunk < blocking_.chunks(); ++chunk) {
      const Span span = blocking_.chunk_at(chunk);
      for (std::int64_t v = 0; v * blocking_.lanes < span.count; ++v, target += vector_stride) {
        const std::int64_t start =
            vector_start(v, blocking_.lanes, std::max(span.count, blocking_.lanes));
        const std::int64_t count = std::min(blocking_.lanes, span.count);
        const T* first = row + (span.first + start) * stride;
        for (std::int64_t i = 0; i < count; ++i) target[i] = first[i * stride];
        std::fill_n(target + count, blocking_.lanes - count, T{0});
      }
    }
  }

  ConvGeometry geometry_;
  bool forward_;
  GroupMap groups_;
  std::int64_t channels_;  // of the result, all groups
  std::vector<ConvPhase> phases_;
  std::vector<TapGrid> grids_;
  DepthwiseKernel<T> kernel_;
  LineSource<T> source_;
  PointwiseProgram filter_program_;
  GroupFilter<T> filter_;
  LineResult<T> result_;
  std::int64_t threads_;
  bool streams_ = false, fetches_ = false;  // non-temporal stores; software prefetch
  LineBlocking blocking_;
  std::int64_t result_elements_ = 0, copy_elements_ = 0;  // per thread
  PrepackedBuffer<T> prepacked_;  // prepacked constant weights, phase by phase
  int weights_ = -1, post_ops_ = -1, copies_ = -1;
};

}  // namespace ashlar::cpu
