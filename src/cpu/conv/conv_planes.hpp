// Small-group convolutions in NCHW, plane by plane (see kernels/plane_lines.hpp). Source lines are
// staged once, with their padding.
#pragma once

#include "cpu/conv/conv_lines.hpp"
#include "cpu/kernels/plane_lines.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

// Maximum lines and pixels of a block.
inline constexpr std::int64_t kMaxPlaneLines = 64, kMaxPlanePixels = 1024;

// Whether staged blocks stay small, with `parts` channels per group.
bool planes_fit(const std::vector<ConvPhase>& phases, std::int64_t parts);

// A block of lines of one plane of the result.
struct PlaneBlock {
  std::int64_t image, group;
  LineCoords at;
  std::int64_t lines;
  Span pixels;
};

// Blocking of the planes of a phase, and the layout of staged rows. Columns a stride apart are
// staged contiguously: element i of segment r is column shift + r + (first pixel + i) * scale.
struct PlaneBlocking {
  std::int64_t lines = 1, pixels = 1;  // maxima of a block
  std::int64_t segment = 0;            // elements
  std::int64_t row = 0;                // elements of a staged row: one segment per residue
  std::int64_t result_line = 0;        // elements of a result line: whole tiles
  std::vector<std::int64_t> offsets;   // [tap]: offset of pixel 0 in a row

  PlaneBlocking(const ConvPhase& phase, const TapGrid& grid, std::int64_t parts, std::int64_t tile);
  std::int64_t copied_rows(const TapGrid& grid, const ConvPhase& phase) const {
    return copied_lines(grid, lines, phase.scale[1]);
  }
  std::int64_t blocks(const ConvPhase& phase) const {  // blocks of a plane
    return phase.extent[0] * divide_up(phase.extent[1], lines) * divide_up(phase.extent[2], pixels);
  }
  // Block `number` of a phase, plane by plane.
  PlaneBlock block(const ConvPhase& phase, std::int64_t groups, std::int64_t number) const;
};

// Staged source rows of a block, for every part of its group.
template <class T>
class PlaneTable {
 public:
  // `source` reads rows along the last axis, `scale` columns apart.
  PlaneTable(const typename RowProgram<T>::Bound& source, const ConvGeometry& geometry,
             const Spatial& extents, const ConvPhase& phase, const TapGrid& grid,
             const PlaneBlocking& blocking, std::int64_t parts, T* copies)
      : source_(source),
        geometry_(geometry),
        extents_(extents),
        phase_(phase),
        grid_(grid),
        blocking_(blocking),
        parts_(parts),
        copies_(copies) {}

  // Rows [line][part][term].
  void fill(const PlaneBlock& block) {
    const std::int64_t span =
        (block.lines - 1) * phase_.scale[1] + grid_.last_y - grid_.first_y + 1;
    const std::int64_t slots = grid_.depths * span, terms = grid_.terms();
    std::fill_n(copies_, blocking_.row, T{0});  // shared by all lines of padding
    for (std::int64_t part = 0; part < parts_; ++part) {
      std::fill_n(copied_, slots, false);
      for (std::int64_t l = 0; l < block.lines; ++l)
        for (std::int64_t t = 0; t < terms; ++t) {
          const TapGrid::Line& line = grid_.lines[static_cast<std::size_t>(t)];
          const Spatial position{block.at.z * phase_.scale[0] + line.z,
                                 (block.at.y + l) * phase_.scale[1] + line.y, 0};
          const T*& row = rows_[(l * parts_ + part) * terms + t];
          row = copies_;
          if (position[0] < 0 || position[0] >= extents_[0] || position[1] < 0 ||
              position[1] >= extents_[1])
            continue;
          const std::int64_t slot =
              line.z_number * span + l * phase_.scale[1] + line.y - grid_.first_y;
          T* copy = copies_ + (1 + part * slots + slot) * blocking_.row;
          if (!copied_[slot]) copy_row(block, block.group * parts_ + part, position, copy);
          copied_[slot] = true;
          row = copy;
        }
    }
    described_ = {block.lines,        parts_ * terms, grid_.taps,
                  block.pixels.count, rows_,          blocking_.offsets.data()};
  }
  const PlaneSource<T>& described() const { return described_; }

 private:
  void copy_row(const PlaneBlock& block, std::int64_t channel, Spatial position, T* copy) const {
    const std::int64_t scale = phase_.scale[2];
    for (std::int64_t residue = 0; residue < scale; ++residue, copy += blocking_.segment) {
      const std::int64_t start = block.pixels.first * scale + grid_.shift + residue;
      const std::int64_t before =
          start >= 0 ? 0 : std::min(blocking_.segment, divide_up(-start, scale));
      const std::int64_t room = extents_[2] - (start + before * scale);
      const std::int64_t count =
          room <= 0 ? 0 : std::min(blocking_.segment - before, divide_up(room, scale));
      std::fill_n(copy, before, T{0});
      position[2] = start + before * scale;
      ConvCoords coords;
      geometry_.put(block.image, channel, position, coords.data());
      if (count > 0) source_.load(coords.data(), count, copy + before);
      std::fill(copy + before + count, copy + blocking_.segment, T{0});
    }
  }

  const typename RowProgram<T>::Bound& source_;
  const ConvGeometry& geometry_;
  const Spatial& extents_;
  const ConvPhase& phase_;
  const TapGrid& grid_;
  const PlaneBlocking& blocking_;
  std::int64_t parts_;
  T* copies_;
  PlaneSource<T> described_;
  const T* rows_[kMaxLinePointers];
  bool copied_[kMaxLinePointers];
};

// Forward and backward-data.
template <class T>
class ConvPlanesKernel final : public Kernel {
 public:
  ConvPlanesKernel(const Region& region, const DeviceProps& device)
      : geometry_(*region.anchor),
        forward_(region.anchor_as<ConvForward>() != nullptr),
        groups_(forward_ ? GroupMap{geometry_.filters, geometry_.channels}
                         : GroupMap{geometry_.channels, geometry_.filters}),
        phases_(phases_of(geometry_, region)),
        grids_(phases_.begin(), phases_.end()),
        kernel_(plane_kernel<T>()),
        source_(region.prologues[0], region.prologues[0].space.rank() - 1, nullptr,
                forward_ ? geometry_.stride[2] : 1),
        filter_(region.prologues[1], geometry_, groups_, forward_),
        store_(region.epilogue, z_of(region), geometry_, 1 + geometry_.spatial,
               forward_ ? 1 : geometry_.stride[2]),
        threads_(std::max(device.compute_units, 1)) {
    std::int64_t weights = 1;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      blockings_.emplace_back(phases_[i], grids_[i], groups_.parts, kernel_.tile);
      const PlaneBlocking& blocking = blockings_.back();
      weights = std::max(weights, grids_[i].terms() * grids_[i].taps);
      copies_ =
          std::max(copies_, (1 + groups_.parts * blocking.copied_rows(grids_[i], phases_[i])) *
                                    blocking.row +
                                blocking.lines * blocking.result_line);
    }
    copies_ = round_up(copies_, kWorkspaceAlignment);
    const std::int64_t channels = geometry_.groups * groups_.results;
    const auto bytes = [](std::int64_t elements) {
      return elements * static_cast<std::int64_t>(sizeof(T));
    };
    weights_reservation_ =
        scratch_layout_.add("weights", bytes((weights * groups_.parts + 1) * channels));
    copies_reservation_ = scratch_layout_.add("copies", bytes(threads_ * copies_));
  }

  void run(const KernelContext& context) const override {
    T* weights = context.scratch<T>(scratch_layout_, weights_reservation_);
    T* copies = context.scratch<T>(scratch_layout_, copies_reservation_);
    const typename GroupFilter<T>::Bound filter(filter_, context);
    const auto source = source_.bind(context);
    const typename ConvStore<T>::Bound store(store_, context);
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      const std::int64_t blocks =
          phases_[i].images * geometry_.groups * blockings_[i].blocks(phases_[i]);
      if (blocks == 0) continue;
      pack_weights(filter, grids_[i], weights);
      const std::int64_t shares = std::min(blocks, threads_);
      parallel_for(shares, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t share = begin; share < end; ++share)
          run_blocks(
              i, source, store, weights, copies + share * copies_,
              {blocks * share / shares, blocks * (share + 1) / shares - blocks * share / shares});
      });
    }
  }

 private:
  // [result channel][part][term][tap]; the end of the memory is a row buffer, one value per
  // channel.
  void pack_weights(const typename GroupFilter<T>::Bound& filter, const TapGrid& grid,
                    T* weights) const {
    const std::int64_t taps = grid.terms() * grid.taps, each = groups_.parts * taps;
    const std::int64_t channels = geometry_.groups * groups_.results;
    T* row = weights + each * channels;
    for (std::int64_t part = 0; part < groups_.parts; ++part)
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        filter.load(grid.stored[static_cast<std::size_t>(tap)], part, row);
        for (std::int64_t c = 0; c < channels; ++c) weights[c * each + part * taps + tap] = row[c];
      }
  }

  void run_blocks(std::size_t i, const typename RowProgram<T>::Bound& source,
                  const typename ConvStore<T>::Bound& store, const T* weights, T* copies,
                  const Span& blocks) const {
    const ConvPhase& phase = phases_[i];
    const PlaneBlocking& blocking = blockings_[i];
    const std::int64_t each = groups_.parts * grids_[i].terms() * grids_[i].taps;
    T* results = copies;
    PlaneTable<T> table(source, geometry_, forward_ ? geometry_.x : geometry_.y, phase, grids_[i],
                        blocking, groups_.parts, copies + blocking.lines * blocking.result_line);
    for (std::int64_t number = blocks.first; number < blocks.first + blocks.count; ++number) {
      const PlaneBlock block = blocking.block(phase, geometry_.groups, number);
      table.fill(block);
      for (std::int64_t m = 0; m < groups_.results; ++m) {
        const std::int64_t channel = block.group * groups_.results + m;
        kernel_.lines(table.described(), weights + channel * each, results, blocking.result_line);
        for (std::int64_t l = 0; l < block.lines; ++l) {
          const Spatial position{phase.origin[0] + block.at.z * phase.step[0],
                                 phase.origin[1] + (block.at.y + l) * phase.step[1],
                                 phase.origin[2] + block.pixels.first * phase.step[2]};
          ConvCoords coords;
          geometry_.put(block.image, channel, position, coords.data());
          store.row(coords, 1 + geometry_.spatial, phase.step[2], block.pixels.count,
                    results + l * blocking.result_line);
        }
      }
    }
  }

  ConvGeometry geometry_;
  bool forward_;
  GroupMap groups_;
  std::vector<ConvPhase> phases_;
  std::vector<TapGrid> grids_;
  PlaneKernel<T> kernel_;
  RowProgram<T> source_;
  GroupFilter<T> filter_;
  ConvStore<T> store_;
  std::int64_t threads_;
  std::vector<PlaneBlocking> blockings_;
  std::int64_t copies_ = 0;  // elements per thread
  int weights_reservation_ = -1, copies_reservation_ = -1;
};

// Backward-filter: one task per group.
template <class T>
class ConvPlanesFilterKernel final : public Kernel {
 public:
  ConvPlanesFilterKernel(const Region& region, const DeviceProps& device)
      : geometry_(*region.anchor),
        phase_(geometry_.forward_phase()),
        grid_(phase_),
        kernel_(plane_kernel<T>()),
        blocking_(phase_, grid_, geometry_.channels, kernel_.tile),
        x_(region.prologues[ConvBackwardFilter::x], 1 + geometry_.spatial, nullptr,
           geometry_.stride[2]),
        dy_(region.prologues[ConvBackwardFilter::dy], 1 + geometry_.spatial),
        store_(region, geometry_),
        threads_(std::max(device.compute_units, 1)) {
    copies_ =
        round_up((1 + geometry_.channels * blocking_.copied_rows(grid_, phase_)) * blocking_.row +
                     blocking_.lines * blocking_.result_line,
                 kWorkspaceAlignment);
    sums_ = round_up(geometry_.filters * weights_per_filter(), kWorkspaceAlignment);
    copies_reservation_ =
        scratch_layout_.add("copies", threads_ * copies_ * static_cast<std::int64_t>(sizeof(T)));
    sums_reservation_ =
        scratch_layout_.add("sums", threads_ * sums_ * static_cast<std::int64_t>(sizeof(double)));
  }

  void run(const KernelContext& context) const override {
    T* copies = context.scratch<T>(scratch_layout_, copies_reservation_);
    double* sums = context.scratch<double>(scratch_layout_, sums_reservation_);
    const auto x = x_.bind(context), dy = dy_.bind(context);
    const typename GroupFilterStore<T>::Bound store(store_, context);
    const std::int64_t shares = std::min(geometry_.groups, threads_);
    parallel_for(shares, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t share = begin; share < end; ++share) {
        PlaneTable<T> table(x, geometry_, geometry_.x, phase_, grid_, blocking_, geometry_.channels,
                            copies + share * copies_ + blocking_.lines * blocking_.result_line);
        for (std::int64_t group = geometry_.groups * share / shares;
             group < geometry_.groups * (share + 1) / shares; ++group)
          run_group(table, dy, store, group, copies + share * copies_, sums + share * sums_);
      }
    });
  }

 private:
  std::int64_t weights_per_filter() const { return geometry_.channels * geometry_.tap_count(); }

  void run_group(PlaneTable<T>& table, const typename RowProgram<T>::Bound& dy,
                 const typename GroupFilterStore<T>::Bound& store, std::int64_t group, T* gradients,
                 double* sums) const {
    std::fill_n(sums, geometry_.filters * weights_per_filter(), 0.0);
    const std::int64_t blocks = phase_.images * blocking_.blocks(phase_);
    for (std::int64_t number = 0; number < blocks; ++number) {
      PlaneBlock block = blocking_.block(phase_, 1, number);
      block.group = group;
      table.fill(block);
      for (std::int64_t m = 0; m < geometry_.filters; ++m) {
        for (std::int64_t l = 0; l < block.lines; ++l) {
          T* line = gradients + l * blocking_.result_line;
          ConvCoords coords;
          geometry_.put(block.image, group * geometry_.filters + m,
                        {block.at.z, block.at.y + l, block.pixels.first}, coords.data());
          dy.load(coords.data(), block.pixels.count, line);
          std::fill(line + block.pixels.count, line + blocking_.result_line, T{0});
        }
        kernel_.filter_lines(table.described(), gradients, blocking_.result_line,
                             sums + m * weights_per_filter());
      }
    }
    for (std::int64_t m = 0; m < geometry_.filters; ++m)
      for (std::int64_t part = 0; part < geometry_.channels; ++part)
        for (std::int64_t tap = 0; tap < geometry_.tap_count(); ++tap) {
          T value =
              static_cast<T>(sums[m * weights_per_filter() + part * geometry_.tap_count() + tap]);
          store.put(group * geometry_.filters + m, part,
                    grid_.stored[static_cast<std::size_t>(tap)], 1, &value);
        }
  }

  ConvGeometry geometry_;
  ConvPhase phase_;
  TapGrid grid_;
  PlaneKernel<T> kernel_;
  PlaneBlocking blocking_;
  RowProgram<T> x_, dy_;
  GroupFilterStore<T> store_;
  std::int64_t threads_;
  std::int64_t copies_ = 0, sums_ = 0;  // elements per thread
  int copies_reservation_ = -1, sums_reservation_ = -1;
};

}  // namespace ashlar::cpu
