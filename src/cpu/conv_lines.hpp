// Convolutions of groups of few channels with channels last, line by line of pixels (see
// kernels/depthwise.hpp): where the lines of the operands are, and copies of those that cannot be
// used as they lie in memory.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/conv_rows.hpp"
#include "cpu/kernels/convert.hpp"
#include "cpu/kernels/depthwise.hpp"

namespace ashlar::cpu {

// The taps of a phase: source lines (terms) times columns (taps), both in ascending order.
struct TapGrid {
  struct Line {
    std::int64_t z, y;      // shift along the first two axes
    std::int64_t z_number;  // among the different values of z
  };
  std::vector<Line> lines;
  std::int64_t taps = 1, shift = 0, gap = 1;  // columns shift + s * gap
  std::int64_t depths = 0;                    // different values of z
  std::int64_t first_y = 0, last_y = 0;
  std::vector<Spatial> stored;  // [term][tap]: position in the filter

  explicit TapGrid(const ConvPhase& phase);
  std::int64_t terms() const { return static_cast<std::int64_t>(lines.size()); }
};

struct Span {
  std::int64_t first = 0, count = 0;
};

// How the work on a tensor of `channels` channels is cut.
struct LineCut {
  std::int64_t lanes = 1;
  std::int64_t channels = 0;
  std::int64_t chunk = 0;   // channels at a time: whole vectors, the last chunk takes the rest
  std::int64_t pixels = 0;  // of a line at a time
  std::int64_t lines = 1;   // at a time

  std::int64_t chunks() const { return std::max<std::int64_t>(channels / chunk, 1); }
  Span chunk_at(std::int64_t number) const {
    const std::int64_t first = number * chunk;
    return {first, number + 1 == chunks() ? channels - first : chunk};
  }
  std::int64_t chunk_vectors() const { return chunk / lanes; }  // but for the last
  std::int64_t vectors() const {
    return (chunks() - 1) * chunk_vectors() + divide_up(chunk_at(chunks() - 1).count, lanes);
  }
  // Elements from pixel to pixel of a copy: at least a vector.
  std::int64_t copy_pixel(const Span& span) const { return std::max(span.count, lanes); }
  std::int64_t widest_copy() const { return copy_pixel(chunk_at(chunks() - 1)); }
};

// One line of a tensor [images, channels, spatial...].
struct LinePlace {
  std::int64_t image, z, y;
};

// Lines of an operand. `direct`: used where they lie.
template <class T>
class LineSource {
 public:
  LineSource(const PointwiseProgram& program, const ConvGeometry& geometry, const Spatial& extents,
             std::int64_t channels, std::int64_t lanes)
      : program_(program, 1), geometry_(geometry), extents_(extents), channels_(channels) {
    if (!program.is_plain_load()) return;
    view_ = program.steps[0].view;
    const bool together = view_.strides[1] == 1;
    direct_ = together && view_.dtype == kRegister && channels >= lanes;
    joined_ = together && view_.strides[view_.strides.rank() - 1] == channels;
    load_ = load_row<T>(view_.dtype);
  }

  bool direct() const { return direct_; }
  const Spatial& extents() const { return extents_; }
  std::int64_t pixel() const { return view_.strides[view_.strides.rank() - 1]; }  // direct

  class Bound {
   public:
    Bound(const LineSource& source, const KernelContext& context)
        : source_(source),
          bound_(source.program_.bind(context)),
          data_(source.load_ == nullptr ? nullptr : context.pointer(source.view_.tensor)) {}
    bool inside(const LinePlace& at) const {
      return at.z >= 0 && at.z < source_.extents_[0] && at.y >= 0 && at.y < source_.extents_[1];
    }
    // Direct: the line's column 0, channel 0.
    const T* line(const LinePlace& at) const {
      return static_cast<const T*>(data_) + source_.index(at);
    }
    // Columns and channels of a line, pixels `pixel` elements apart.
    void copy(const LinePlace& at, const Span& columns, const Span& channels, std::int64_t pixel,
              T* target) const {
      if (source_.joined_ && channels.count == source_.channels_ && pixel == channels.count) {
        const std::int64_t start = source_.index(at) + columns.first * pixel;
        return source_.load_(data_, start, 1, columns.count * pixel, target);
      }
      ConvCoords coords;
      for (std::int64_t i = 0; i < columns.count; ++i, target += pixel) {
        source_.geometry_.put(at.image, channels.first, {at.z, at.y, columns.first + i},
                              coords.data());
        bound_.load(coords.data(), channels.count, target);
        std::fill(target + channels.count, target + pixel, T{0});
      }
    }

   private:
    const LineSource& source_;
    typename RowProgram<T>::Bound bound_;
    const void* data_;
  };

 private:
  static constexpr DType kRegister = sizeof(T) == 4 ? f32 : f64;

  std::int64_t index(const LinePlace& at) const {
    ConvCoords coords;
    geometry_.put(at.image, 0, {at.z, at.y, 0}, coords.data());
    std::int64_t result = view_.offset;
    for (int axis = 0; axis < view_.strides.rank(); ++axis)
      result += coords[static_cast<std::size_t>(axis)] * view_.strides[axis];
    return result;
  }

  RowProgram<T> program_;
  ConvGeometry geometry_;
  Spatial extents_;
  std::int64_t channels_;
  bool direct_ = false, joined_ = false;
  View view_;
  LoadRow<T> load_ = nullptr;
};

// Bounds of a block: pointers [line][term], and lines.
inline constexpr std::int64_t kMostLinePointers = 1024, kMostLines = 16;

// Bounds of copies, in elements: a line takes part of L2, a block of lines most of it.
inline constexpr std::int64_t kCopiedLine = 16384, kCopiedBlock = 131072;

// Source lines a block of result lines may touch.
inline std::int64_t copied_lines(const TapGrid& grid, std::int64_t lines, std::int64_t scale) {
  return grid.depths * ((lines - 1) * scale + grid.last_y - grid.first_y + 1);
}

// Source columns that pixels [first, first + count) meet.
inline Span copied_columns(const TapGrid& grid, const Span& pixels, std::int64_t scale,
                           std::int64_t extent) {
  const std::int64_t first = std::clamp<std::int64_t>(pixels.first * scale + grid.shift, 0, extent);
  const std::int64_t last =
      (pixels.first + pixels.count - 1) * scale + grid.shift + (grid.taps - 1) * grid.gap + 1;
  return {first, std::clamp<std::int64_t>(last, first, extent) - first};
}

// What a copied line holds at most.
inline std::int64_t copied_width(const TapGrid& grid, std::int64_t pixels, std::int64_t scale,
                                 std::int64_t extent) {
  return std::min(extent, (pixels - 1) * scale + (grid.taps - 1) * grid.gap + 1);
}

// Whether the taps are few enough and near enough to each other for a block.
bool lines_fit(const std::vector<ConvPhase>& phases);

// The cut of `line` pixels and `channels` channels; `copies`: operands that are copied.
LineCut cut_lines(std::int64_t lanes, std::int64_t channels, std::int64_t line, bool copies,
                  std::int64_t direct_lines, const std::vector<TapGrid>& grids, std::int64_t scale,
                  std::int64_t column_scale);

// The source lines of a block.
template <class T>
class LineTable {
 public:
  // `copies`: memory for them, where lines are not direct.
  LineTable(const LineSource<T>& source, const typename LineSource<T>::Bound& bound,
            const ConvPhase& phase, const TapGrid& grid, const LineCut& cut, T* copies)
      : source_(source), bound_(bound), phase_(phase), grid_(grid), cut_(cut), copies_(copies) {}

  // Result lines from `at` on, `lines` of them; pixels and channels of the block.
  void fill(const LinePlace& at, std::int64_t lines, const Span& pixels, const Span& channels) {
    const std::int64_t terms = grid_.terms();
    describe(lines, pixels, channels);
    const std::int64_t rows = (lines - 1) * phase_.scale[1] + grid_.last_y - grid_.first_y + 1;
    std::fill_n(copied_, source_.direct() ? 0 : grid_.depths * rows, false);
    const Span columns = copied_columns(grid_, pixels, phase_.scale[2], source_.extents()[2]);
    const std::int64_t copy_line = columns.count * described_.pixel;
    for (std::int64_t l = 0; l < lines; ++l)
      for (std::int64_t t = 0; t < terms; ++t) {
        const TapGrid::Line& line = grid_.lines[static_cast<std::size_t>(t)];
        const LinePlace from{at.image, at.z * phase_.scale[0] + line.z,
                             (at.y + l) * phase_.scale[1] + line.y};
        const T*& pointer = pointers_[l * terms + t];
        pointer = nullptr;
        if (columns.count == 0 || !bound_.inside(from)) continue;
        if (source_.direct()) {
          pointer = bound_.line(from) + channels.first;
          continue;
        }
        const std::int64_t slot =
            line.z_number * rows + l * phase_.scale[1] + line.y - grid_.first_y;
        T* copy = copies_ + slot * copy_line;
        if (!copied_[slot]) bound_.copy(from, columns, channels, described_.pixel, copy);
        copied_[slot] = true;
        pointer = copy - columns.first * described_.pixel;
      }
  }
  const DepthwiseSource<T>& described() const { return described_; }

 private:
  void describe(std::int64_t lines, const Span& pixels, const Span& channels) {
    described_.lines = lines;
    described_.terms = grid_.terms();
    described_.taps = grid_.taps;
    described_.channels = cut_.copy_pixel(channels);
    described_.sources = pointers_;
    described_.columns = source_.extents()[2];
    described_.pixel = source_.direct() ? source_.pixel() : cut_.copy_pixel(channels);
    described_.scale = phase_.scale[2];
    described_.shift = grid_.shift;
    described_.gap = grid_.gap;
    described_.first = pixels.first;
    described_.last = pixels.first + pixels.count;
  }

  const LineSource<T>& source_;
  const typename LineSource<T>::Bound& bound_;
  const ConvPhase& phase_;
  const TapGrid& grid_;
  const LineCut& cut_;
  T* copies_;
  DepthwiseSource<T> described_;
  const T* pointers_[kMostLinePointers];
  bool copied_[kMostLinePointers];
};

}  // namespace ashlar::cpu
