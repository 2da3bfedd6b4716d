// Block-scaled quantisation and dequantisation: rows of the last axis, in chunks of whole blocks.
#include "base/block_scale.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/kernels/divide.hpp"
#include "cpu/operand.hpp"
#include "cpu/threads.hpp"
#include "graph/block_scale_shape.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kScaleChunk = 1024;  // elements of a row on the stack

// Blocking of the last axis: segments of whole blocks, processed in chunks that fit the stack.
struct OwnColumns {
  std::int64_t extent, block, segment, segments, chunk;

  OwnColumns(std::int64_t length, std::int64_t block_extent)
      : extent(length),
        block(std::min(block_extent, std::max<std::int64_t>(length, 1))),
        segment(block < kScaleChunk ? kScaleChunk / block * block : block),
        segments((length + segment - 1) / segment),
        chunk(std::min(segment, kScaleChunk)) {}

  // Calls visit(first, count) for the chunks of a segment.
  template <class Visit>
  void for_chunks(std::int64_t begin, Visit&& visit) const {
    const std::int64_t end = std::min(begin + segment, extent);
    for (std::int64_t first = begin; first < end; first += chunk)
      visit(first, std::min(chunk, end - first));
  }
  // Calls visit(first in the chunk, count, block of the segment) for the blocks that a chunk
  // overlaps.
  template <class Visit>
  void for_blocks(std::int64_t begin, std::int64_t first, std::int64_t count, Visit&& visit) const {
    for (std::int64_t at = 0; at < count;) {
      const std::int64_t position = first - begin + at;
      const std::int64_t length = std::min(block - position % block, count - at);
      visit(at, length, position / block);
      at += length;
    }
  }
};

Coords coordinates(const Dims& index) {
  Coords coords{};
  std::copy(index.begin(), index.end(), coords.begin());
  return coords;
}

// Index of a linear position in a space, last axis fastest.
void unflatten(std::int64_t position, const Dims& space, Dims& index) {
  for (int axis = space.rank() - 1; axis >= 0; --axis) {
    index[axis] = position % space[axis];
    position /= space[axis];
  }
}

// Scales by block: a whole row if they are contiguous along the last axis, else one at a time.
template <class T>
class ScaleRows {
 public:
  ScaleRows(const PointwiseProgram& program, const BlockScaleShape& shape)
      : shape_(shape), program_(program, program.space.rank() - 1) {}

  class Bound {
   public:
    void load(Dims block, std::int64_t count, T* scales) const {
      each(block, count, [&](const Coords& coords, std::int64_t first, std::int64_t length) {
        bound_.load(coords.data(), length, scales + first);
      });
    }
    void store(Dims block, std::int64_t count, const T* scales) const {
      each(block, count, [&](const Coords& coords, std::int64_t first, std::int64_t length) {
        bound_.store(coords.data(), length, scales + first);
      });
    }
    // Stores zeros everywhere.
    void clear(const Dims& stored) const {
      const T zeros[kScaleChunk] = {};
      Dims rows = stored, index = stored;
      const int last = stored.rank() - 1;
      rows[last] = (stored[last] + kScaleChunk - 1) / kScaleChunk;
      parallel_for(element_count(rows), 16, [&](std::int64_t begin, std::int64_t end, int) {
        Dims at = index;
        for (std::int64_t row = begin; row < end; ++row) {
          unflatten(row, rows, at);
          at[last] *= kScaleChunk;
          bound_.store(coordinates(at).data(), std::min(kScaleChunk, stored[last] - at[last]),
                       zeros);
        }
      });
    }

   private:
    friend class ScaleRows;
    template <class Visit>
    void each(Dims block, std::int64_t count, Visit&& visit) const {
      if (!owner_->shape_.tiled()) return visit(coordinates(block), 0, count);
      for (std::int64_t i = 0; i < count; ++i, ++block[block.rank() - 1])
        visit(coordinates(owner_->shape_.place(block)), i, 1);
    }
    const ScaleRows* owner_ = nullptr;
    typename RowProgram<T>::Bound bound_;
  };
  Bound bind(const KernelContext& context) const {
    Bound bound;
    bound.owner_ = this;
    bound.bound_ = program_.bind(context);
    return bound;
  }

 private:
  BlockScaleShape shape_;
  RowProgram<T> program_;
};

template <class T>
class QuantizeKernel final : public Kernel {
 public:
  explicit QuantizeKernel(const Region& region)
      : QuantizeKernel(region, *region.anchor_as<BlockScaleQuantize>()) {}

  void run(const KernelContext& context) const override {
    const Bound bound{x_.bind(context), y_.bind(context), scale_.bind(context)};
    if (shape_.tiled()) bound.scale.clear(shape_.stored());
    parallel_for(element_count(groups_), grain_, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t item = begin; item < end; ++item) one_group(bound, item);
    });
  }

 private:
  struct Bound {
    typename RowProgram<T>::Bound x, y;
    typename ScaleRows<T>::Bound scale;
  };

  QuantizeKernel(const Region& region, const BlockScaleQuantize& op)
      : ops_(row_ops<T>()),
        divide_(divide_row<T>()),
        dims_(region.anchor->inputs[BlockScaleQuantize::x].dims),
        last_(dims_.rank() - 1),
        block_(op.block_size),
        shape_(dims_, op),
        columns_(dims_[last_], block_[last_]),
        groups_(shape_.blocks()),
        largest_(largest_value(region.anchor->outputs[BlockScaleQuantize::y].dtype)),
        scale_dtype_(region.anchor->outputs[BlockScaleQuantize::scale].dtype),
        x_(region.prologues[BlockScaleQuantize::x], last_),
        y_(region.epilogue, last_),
        scale_(plain_store(region.anchor->outputs[BlockScaleQuantize::scale]), shape_) {
    groups_[last_] = columns_.segments;
    std::int64_t elements = columns_.segment;
    for (int axis = 0; axis < last_; ++axis) elements *= std::min(block_[axis], dims_[axis]);
    grain_ = items_per_thread(elements);
  }

  // Quantises a group of blocks adjacent along the last axis.
  void one_group(const Bound& bound, std::int64_t item) const {
    alignas(64) T row[kScaleChunk], amax[kScaleChunk] = {}, scales[kScaleChunk];
    Dims group = groups_;
    unflatten(item, groups_, group);
    const std::int64_t begin = group[last_] * columns_.segment;
    for_rows(group, [&](Coords& coords) {
      columns_.for_chunks(begin, [&](std::int64_t first, std::int64_t count) {
        coords[static_cast<std::size_t>(last_)] = first;
        bound.x.load(coords.data(), count, row);
        if (columns_.block == 1)
          return ops_.fold_into(Fold::maximum, Premap::absolute, row, count, amax + first - begin);
        columns_.for_blocks(
            begin, first, count, [&](std::int64_t at, std::int64_t length, std::int64_t block) {
              const T most = ops_.fold(Fold::maximum, Premap::absolute, row + at, length);
              if (std::isnan(most) || most > amax[block]) amax[block] = most;
            });
      });
    });
    const std::int64_t width = std::min(columns_.segment, columns_.extent - begin);
    const std::int64_t blocks = (width + columns_.block - 1) / columns_.block;
    for (std::int64_t i = 0; i < blocks; ++i)
      scales[i] = static_cast<T>(scale_for(scale_dtype_, static_cast<double>(amax[i]), largest_));
    Dims first_block = group;
    first_block[last_] = begin / columns_.block;
    bound.scale.store(first_block, blocks, scales);
    for (std::int64_t i = 0; i < blocks; ++i)
      if (scales[i] == T{0}) scales[i] = T{1};  // a block of zeros
    for_rows(group, [&](Coords& coords) {
      columns_.for_chunks(begin, [&](std::int64_t first, std::int64_t count) {
        coords[static_cast<std::size_t>(last_)] = first;
        bound.x.load(coords.data(), count, row);
        columns_.for_blocks(begin, first, count,
                            [&](std::int64_t at, std::int64_t length, std::int64_t block) {
                              divide_(row + at, scales[block], length, row + at);
                            });
        bound.y.store(coords.data(), count, row);
      });
    });
  }

  // Calls visit(coords) for the rows of the blocks of a group.
  template <class Visit>
  void for_rows(const Dims& group, Visit&& visit) const {
    Dims extents = dims_, index = dims_;
    std::int64_t rows = 1;
    for (int axis = 0; axis < last_; ++axis) {
      extents[axis] = std::min(block_[axis], dims_[axis] - group[axis] * block_[axis]);
      rows *= extents[axis];
    }
    extents[last_] = 1;
    for (std::int64_t row = 0; row < rows; ++row) {
      unflatten(row, extents, index);
      Coords coords{};
      for (int axis = 0; axis < last_; ++axis)
        coords[static_cast<std::size_t>(axis)] = group[axis] * block_[axis] + index[axis];
      visit(coords);
    }
  }

  const RowOps<T>& ops_;
  DivideRow<T> divide_;
  Dims dims_;
  int last_;
  Dims block_;
  BlockScaleShape shape_;
  OwnColumns columns_;
  Dims groups_;  // blocks along each axis; segments along the last
  double largest_;
  DType scale_dtype_;
  RowProgram<T> x_, y_;
  ScaleRows<T> scale_;
  std::int64_t grain_ = 1;
};

template <class T>
class DequantizeKernel final : public Kernel {
 public:
  explicit DequantizeKernel(const Region& region)
      : DequantizeKernel(region, *region.anchor_as<BlockScaleDequantize>()) {}

  void run(const KernelContext& context) const override {
    const auto x = x_.bind(context), y = y_.bind(context);
    const auto scale = scale_.bind(context);
    const auto zero = zero_ ? zero_->bind(context) : typename ScaleRows<T>::Bound();
    parallel_for(element_count(rows_), grain_, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T row[kScaleChunk], scales[kScaleChunk], zeros[kScaleChunk];
      Dims index = rows_;
      for (std::int64_t item = begin; item < end; ++item) {
        unflatten(item, rows_, index);
        const std::int64_t start = index[last_] * columns_.segment;
        columns_.for_chunks(start, [&](std::int64_t first, std::int64_t count) {
          Dims at = index, block = index;
          at[last_] = first;
          for (int axis = 0; axis <= last_; ++axis) block[axis] = at[axis] / block_[axis];
          const std::int64_t skipped = first % columns_.block;
          const std::int64_t blocks = (skipped + count + columns_.block - 1) / columns_.block;
          scale.load(block, blocks, scales);
          if (negative_)
            for (std::int64_t i = 0; i < blocks; ++i) scales[i] = -scales[i];
          if (zero_) zero.load(block, blocks, zeros);
          x.load(coordinates(at).data(), count, row);
          if (columns_.block == 1)
            scale_row(row, {zeros, true}, {scales, true}, count);
          else
            columns_.for_blocks(
                first - skipped, first, count,
                [&](std::int64_t from, std::int64_t length, std::int64_t number) {
                  scale_row(row + from, {zeros + number, false}, {scales + number, false}, length);
                });
          y.store(coordinates(at).data(), count, row);
        });
      }
    });
  }

 private:
  DequantizeKernel(const Region& region, const BlockScaleDequantize& op)
      : ops_(row_ops<T>()),
        rows_(region.anchor->inputs[BlockScaleDequantize::x].dims),
        last_(rows_.rank() - 1),
        block_(op.block_size),
        columns_(rows_[last_], block_[last_]),
        negative_(op.negative_scale),
        x_(region.prologues[BlockScaleDequantize::x], last_),
        y_(region.epilogue, last_),
        scale_(region.prologues[BlockScaleDequantize::scale], BlockScaleShape(rows_, op)) {
    if (const auto& zero = region.prologues[BlockScaleDequantize::zero_point]; !zero.empty())
      zero_.emplace(zero, BlockScaleShape(rows_, op));
    rows_[last_] = columns_.segments;
    grain_ = items_per_thread(columns_.segment);
  }

  void scale_row(T* row, RowArg<T> zeros, RowArg<T> scales, std::int64_t count) const {
    static constexpr T kOne = 1, kNothing = 0;
    if (zero_)
      ops_.normalise(row, zeros, scales, {&kOne, false}, {&kNothing, false}, count, row);
    else
      ops_.multiply(row, scales, count, row);
  }

  const RowOps<T>& ops_;
  Dims rows_;  // extents of x, the last axis in segments
  int last_;
  Dims block_;
  OwnColumns columns_;
  bool negative_;
  RowProgram<T> x_, y_;
  ScaleRows<T> scale_;
  std::optional<ScaleRows<T>> zero_;
  std::int64_t grain_ = 1;
};

class BlockScaleEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.block_scale"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "block-scaled quantisation and dequantisation by rows";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<BlockScaleQuantize>() && !region.anchor_as<BlockScaleDequantize>())
      return Support::other_operation("the anchor is not a block-scaled conversion");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.4))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    if (region.anchor_as<BlockScaleQuantize>()) return build_for_precision<QuantizeKernel>(region);
    return build_for_precision<DequantizeKernel>(region);
  }
};

}  // namespace

const Engine& block_scale_engine() {
  static const BlockScaleEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
