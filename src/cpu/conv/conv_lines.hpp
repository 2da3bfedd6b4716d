// Small-group convolutions with channels last, by lines (image rows) of pixels (see
// kernels/depthwise.hpp): addresses of the operands' lines, and staged copies of lines that cannot
// be used in place.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/conv/conv_rows.hpp"
#include "cpu/kernels/convert.hpp"
#include "cpu/kernels/depthwise.hpp"

namespace ashlar::cpu {

// Taps of a phase: source lines (terms) times columns (taps), both in ascending order.
struct TapGrid {
  struct Line {
    std::int64_t z, y;      // shift along the first two axes
    std::int64_t z_number;  // index among the distinct values of z
  };
  std::vector<Line> lines;
  std::int64_t taps = 1, shift = 0, gap = 1;  // columns shift + s * gap
  std::int64_t depths = 0;                    // distinct values of z
  std::int64_t first_y = 0, last_y = 0;
  std::vector<Spatial> stored;  // [term][tap]: position in the filter

  explicit TapGrid(const ConvPhase& phase);
  std::int64_t terms() const { return static_cast<std::int64_t>(lines.size()); }
};

struct Span {
  std::int64_t first = 0, count = 0;
};

// Addresses of the pixels of a view [images, channels, spatial...], channel 0.
struct PixelAddress {
  std::int64_t offset = 0, image_stride = 0;
  Spatial strides{};

  PixelAddress() = default;
  PixelAddress(const View& view, const ConvGeometry& geometry)
      : offset(view.offset), image_stride(view.strides[0]) {
    for (int axis = geometry.first_axis(); axis < kMaxSpatial; ++axis)
      strides[static_cast<std::size_t>(axis)] = view.strides[2 + axis - geometry.first_axis()];
  }
  std::int64_t index(std::int64_t image, const Spatial& at) const {
    return offset + image * image_stride + at[0] * strides[0] + at[1] * strides[1] +
           at[2] * strides[2];
  }
};

// Maximum channels per group, and maximum channels of a staged line.
inline constexpr std::int64_t kMaxGroupChannels = 8, kMaxCopied = 512;

// Blocking of a tensor of `channels` channels.
struct LineBlocking {
  std::int64_t lanes = 1;
  std::int64_t channels = 0;
  std::int64_t chunk = 0;   // channels at a time: whole vectors; the last chunk takes the rest
  std::int64_t pixels = 0;  // pixels of a line at a time
  std::int64_t lines = 1;   // lines at a time

  std::int64_t chunks() const { return std::max<std::int64_t>(channels / chunk, 1); }
  Span chunk_at(std::int64_t number) const {
    const std::int64_t first = number * chunk;
    return {first, number + 1 == chunks() ? channels - first : chunk};
  }
  std::int64_t chunk_vectors() const { return chunk / lanes; }  // except the last
  std::int64_t vectors() const {
    return (chunks() - 1) * chunk_vectors() + divide_up(chunk_at(chunks() - 1).count, lanes);
  }
  // Pixel stride of a staged copy in elements: at least one vector.
  std::int64_t copy_pixel(const Span& span) const { return std::max(span.count, lanes); }
  std::int64_t widest_copy() const { return copy_pixel(chunk_at(chunks() - 1)); }
};

// Source channels of a result channel: those of its group. A group has `results` result channels
// and `parts` source channels.
struct GroupMap {
  std::int64_t results = 1, parts = 1;

  std::int64_t source_of(std::int64_t result) const { return result / results * parts; }
  // Whether vectors at the same channels of source and result hold the same groups.
  bool fills_vectors(std::int64_t lanes) const { return results == parts && lanes % parts == 0; }
};

// One line of a tensor [images, channels, spatial...].
struct LineCoords {
  std::int64_t image, z, y;
};

// Lines of an operand. direct(): used in place. Staged copies hold the channels of a block for
// every pixel; if groups do not fill vectors, they hold part by part the value for each result
// channel.
template <class T>
class LineSource {
 public:
  // `channels`: of the result.
  LineSource(const PointwiseProgram& program, const ConvGeometry& geometry, const Spatial& extents,
             std::int64_t channels, const GroupMap& groups, std::int64_t lanes)
      : program_(program, 1),
        geometry_(geometry),
        extents_(extents),
        channels_(channels),
        groups_(groups),
        spreads_(!groups.fills_vectors(lanes)) {
    if (!program.is_plain_load() || spreads_) return;
    view_ = program.steps[0].view;
    address_ = PixelAddress(view_, geometry);
    const bool together = view_.strides[1] == 1;
    direct_ = together && view_.dtype == kRegister && channels >= lanes;
    joined_ = together && view_.strides[view_.strides.rank() - 1] == channels;
    load_ = load_row<T>(view_.dtype);
  }

  bool direct() const { return direct_; }
  const Spatial& extents() const { return extents_; }
  std::int64_t parts() const { return groups_.parts; }
  std::int64_t pixel() const { return view_.strides[view_.strides.rank() - 1]; }  // direct
  // Strides of staged copies of `width` channels: per pixel, and per part.
  std::int64_t copy_pixel(std::int64_t width) const {
    return spreads_ ? width * groups_.parts : width;
  }
  std::int64_t part_offset(std::int64_t width) const { return spreads_ ? width : 0; }

  class Bound {
   public:
    Bound(const LineSource& source, const KernelContext& context)
        : source_(source),
          bound_(source.program_.bind(context)),
          data_(source.load_ == nullptr ? nullptr : context.pointer(source.view_.tensor)) {}
    bool inside(const LineCoords& at) const {
      return at.z >= 0 && at.z < source_.extents_[0] && at.y >= 0 && at.y < source_.extents_[1];
    }
    // Direct: column 0, channel 0 of the line.
    const T* line(const LineCoords& at) const {
      return static_cast<const T*>(data_) + source_.index(at);
    }
    // Stages columns and channels of a line, `width` channels per pixel.
    void copy(const LineCoords& at, const Span& columns, const Span& channels, std::int64_t width,
              T* target) const {
      if (source_.joined_ && channels.count == source_.channels_ && width == channels.count) {
        const std::int64_t start = source_.index(at) + columns.first * width;
        return source_.load_(data_, start, 1, columns.count * width, target);
      }
      for (std::int64_t i = 0; i < columns.count; ++i, target += source_.copy_pixel(width)) {
        const Spatial position{at.z, at.y, columns.first + i};
        if (source_.spreads_) {
          spread(at.image, position, channels, width, target);
          continue;
        }
        load(at.image, position, channels, target);
        std::fill(target + channels.count, target + width, T{0});
      }
    }

   private:
    void load(std::int64_t image, const Spatial& position, const Span& channels, T* target) const {
      ConvCoords coords;
      source_.geometry_.put(image, channels.first, position, coords.data());
      bound_.load(coords.data(), channels.count, target);
    }
    void spread(std::int64_t image, const Spatial& position, const Span& channels,
                std::int64_t width, T* target) const {
      const GroupMap& groups = source_.groups_;
      alignas(64) T row[kMaxGroupChannels * kMaxCopied];
      const std::int64_t first = groups.source_of(channels.first),
                         last = groups.source_of(channels.first + channels.count - 1);
      load(image, position, {first, last - first + groups.parts}, row);
      for (std::int64_t part = 0; part < groups.parts; ++part, target += width) {
        // remaining results of the group
        std::int64_t left = groups.results - channels.first % groups.results;
        const T* from = row + part;
        for (std::int64_t i = 0; i < channels.count;) {
          const std::int64_t count = std::min(left, channels.count - i);
          for (std::int64_t j = 0; j < count; ++j) target[i + j] = *from;
          i += count;
          from += groups.parts;
          left = groups.results;
        }
        std::fill(target + channels.count, target + width, T{0});
      }
    }

    const LineSource& source_;
    typename RowProgram<T>::Bound bound_;
    const void* data_;
  };

 private:
  static constexpr DType kRegister = sizeof(T) == 4 ? f32 : f64;

  std::int64_t index(const LineCoords& at) const {
    return address_.index(at.image, {at.z, at.y, 0});
  }

  RowProgram<T> program_;
  ConvGeometry geometry_;
  Spatial extents_;
  std::int64_t channels_;
  GroupMap groups_;
  bool spreads_, direct_ = false, joined_ = false;
  View view_;
  PixelAddress address_;
  LoadRow<T> load_ = nullptr;
};

// w by result channel.
template <class T>
class GroupFilter {
 public:
  GroupFilter(const PointwiseProgram& program, const ConvGeometry& geometry, const GroupMap& groups,
              bool forward)
      : program_(program, 0, nullptr, forward ? 1 : groups.parts),
        geometry_(geometry),
        groups_(groups),
        forward_(forward) {
    const bool in_order = forward || (groups.parts == 1 && groups.results == 1);
    if (!program.is_plain_load() || !in_order) return;
    if (program.steps[0].view.dtype == (sizeof(T) == sizeof(float) ? f32 : f64))
      plain_ = program.steps[0].view;
  }

  class Bound {
   public:
    Bound(const GroupFilter& filter, const KernelContext& context)
        : filter_(filter), bound_(filter.program_.bind(context)) {
      if (filter.plain_.present())
        data_ = static_cast<const T*>(context.pointer(filter.plain_.tensor));
    }
    // load() without a copy if memory already holds the weights as T, `stride()` elements apart;
    // else null.
    const T* view(const Spatial& stored, std::int64_t part) const {
      if (data_ == nullptr) return nullptr;
      const PixelAddress address(filter_.plain_, filter_.geometry_);
      return data_ + address.index(0, stored) + part * filter_.plain_.strides[1];
    }
    std::int64_t stride() const { return filter_.plain_.strides[0]; }
    // The weights at a filter position between part `part` of the group and every result channel.
    void load(const Spatial& stored, std::int64_t part, T* row) const {
      const GroupMap& groups = filter_.groups_;
      const ConvGeometry& geometry = filter_.geometry_;
      ConvCoords coords;
      if (filter_.forward_) {
        geometry.put(0, part, stored, coords.data());
        return bound_.load(coords.data(), geometry.groups * groups.results, row);
      }
      constexpr std::int64_t kChunk = 256;
      alignas(64) T piece[kChunk];
      for (std::int64_t m = 0; m < groups.results; ++m)
        for (std::int64_t first = 0; first < geometry.groups; first += kChunk) {
          const std::int64_t count = std::min(kChunk, geometry.groups - first);
          geometry.put(first * groups.parts + part, m, stored, coords.data());
          bound_.load(coords.data(), count, piece);
          for (std::int64_t i = 0; i < count; ++i) row[(first + i) * groups.results + m] = piece[i];
        }
    }

   private:
    const GroupFilter& filter_;
    typename RowProgram<T>::Bound bound_;
    const T* data_ = nullptr;
  };

 private:
  RowProgram<T> program_;
  ConvGeometry geometry_;
  GroupMap groups_;
  bool forward_;
  View plain_;
};

// Store of dw: directly to memory if it holds accumulators of type T.
template <class T>
class GroupFilterStore {
 public:
  GroupFilterStore(const Region& region, const ConvGeometry& geometry)
      : geometry_(geometry), store_(region.epilogue, z_of(region), geometry, 1, 1) {
    const bool adds_z = !z_of(region).empty() && geometry.beta != 0.0;
    const PointwiseProgram& epilogue = region.epilogue;
    if (!adds_z && geometry.alpha == 1.0 && epilogue.is_plain_store() &&
        epilogue.stores[0].view.dtype == (sizeof(T) == sizeof(float) ? f32 : f64))
      plain_ = epilogue.stores[0].view;
  }

  class Bound {
   public:
    Bound(const GroupFilterStore& to, const KernelContext& context)
        : to_(to),
          store_(to.store_, context),
          plain_(to.plain_.present() ? static_cast<T*>(context.pointer(to.plain_.tensor))
                                     : nullptr) {}
    // Stores one value for each of `count` filters from `filter` on.
    void put(std::int64_t filter, std::int64_t part, const Spatial& stored, std::int64_t count,
             T* values) const {
      ConvCoords coords;
      to_.geometry_.put(filter, part, stored, coords.data());
      if (plain_ == nullptr) {
        for (std::int64_t i = 0; i < count; ++i, ++coords[0])
          store_.row(coords, 1, 1, 1, values + i);
        return;
      }
      const View& view = to_.plain_;
      std::int64_t index = view.offset;
      for (int axis = 0; axis < view.strides.rank(); ++axis)
        index += coords[static_cast<std::size_t>(axis)] * view.strides[axis];
      for (std::int64_t i = 0; i < count; ++i) plain_[index + i * view.strides[0]] = values[i];
    }

   private:
    const GroupFilterStore& to_;
    typename ConvStore<T>::Bound store_;
    T* plain_;
  };

 private:
  ConvGeometry geometry_;
  ConvStore<T> store_;
  View plain_;
};

// Limits of a block: pointers [line][term], and lines.
inline constexpr std::int64_t kMaxLinePointers = 1024, kMaxLines = 16;

// Limits of staged copies in elements: a line uses part of L2, a block of lines most of it.
inline constexpr std::int64_t kCopiedLine = 16384, kCopiedBlock = 131072;

// Source lines (with halo) of a block of result lines.
inline std::int64_t copied_lines(const TapGrid& grid, std::int64_t lines, std::int64_t scale) {
  return grid.depths * ((lines - 1) * scale + grid.last_y - grid.first_y + 1);
}

// Source columns (with halo) of pixels [first, first + count).
inline Span copied_columns(const TapGrid& grid, const Span& pixels, std::int64_t scale,
                           std::int64_t extent) {
  const std::int64_t first = std::clamp<std::int64_t>(pixels.first * scale + grid.shift, 0, extent);
  const std::int64_t last =
      (pixels.first + pixels.count - 1) * scale + grid.shift + (grid.taps - 1) * grid.gap + 1;
  return {first, std::clamp<std::int64_t>(last, first, extent) - first};
}

// Maximum columns of a staged line.
inline std::int64_t copied_width(const TapGrid& grid, std::int64_t pixels, std::int64_t scale,
                                 std::int64_t extent) {
  return std::min(extent, (pixels - 1) * scale + (grid.taps - 1) * grid.gap + 1);
}

// Whether the taps are few and close enough for a block with `pointers` pointers per source line.
bool lines_fit(const std::vector<ConvPhase>& phases, std::int64_t pointers);

// Blocking for lines of `line` pixels and `channels` channels; `copies`: some operand is staged.
LineBlocking choose_line_blocking(std::int64_t lanes, std::int64_t channels, std::int64_t line,
                                  bool copies, std::int64_t direct_lines,
                                  const std::vector<TapGrid>& grids, std::int64_t scale,
                                  std::int64_t column_scale);

// Pointers to the source lines of a block.
template <class T>
class LineTable {
 public:
  // `copies`: staging memory if lines are not direct.
  LineTable(const LineSource<T>& source, const typename LineSource<T>::Bound& bound,
            const ConvPhase& phase, const TapGrid& grid, const LineBlocking& blocking, T* copies)
      : source_(source),
        bound_(bound),
        phase_(phase),
        grid_(grid),
        blocking_(blocking),
        copies_(copies) {}

  // Fills the table for `lines` result lines from `at` on, with the pixels and channels of the
  // block.
  void fill(const LineCoords& at, std::int64_t lines, const Span& pixels, const Span& channels) {
    const std::int64_t terms = grid_.terms();
    describe(lines, pixels, channels);
    const std::int64_t rows = (lines - 1) * phase_.scale[1] + grid_.last_y - grid_.first_y + 1;
    std::fill_n(copied_, source_.direct() ? 0 : grid_.depths * rows, false);
    const Span columns = copied_columns(grid_, pixels, phase_.scale[2], source_.extents()[2]);
    const std::int64_t width = blocking_.copy_pixel(channels);
    const std::int64_t copy_line = columns.count * described_.pixel;
    for (std::int64_t l = 0; l < lines; ++l)
      for (std::int64_t t = 0; t < terms; ++t) {
        const TapGrid::Line& line = grid_.lines[static_cast<std::size_t>(t)];
        const LineCoords from{at.image, at.z * phase_.scale[0] + line.z,
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
        if (!copied_[slot]) bound_.copy(from, columns, channels, width, copy);
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
    const std::int64_t width = blocking_.copy_pixel(channels);
    described_.parts = source_.parts();
    described_.part_offset = source_.part_offset(width);
    described_.channels = width;
    described_.sources = pointers_;
    const bool follow = grid_.depths == 1 && grid_.last_y - grid_.first_y + 1 == grid_.terms();
    described_.shared_step = follow ? phase_.scale[1] : 0;
    described_.columns = source_.extents()[2];
    described_.pixel = source_.direct() ? source_.pixel() : source_.copy_pixel(width);
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
  const LineBlocking& blocking_;
  T* copies_;
  DepthwiseSource<T> described_;
  const T* pointers_[kMaxLinePointers];
  bool copied_[kMaxLinePointers];
};

}  // namespace ashlar::cpu
