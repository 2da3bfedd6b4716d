// Layout copy without conversion: runs of bytes if both sides have the same contiguous axis, else
// tiles transposed in L1.
#include <algorithm>
#include <cstring>
#include <optional>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/kernels/stream.hpp"
#include "cpu/kernels/transpose_elements.hpp"
#include "cpu/store_to.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

using Step = PointwiseProgram::Step;

// Tile side in elements; a tile and its transpose stay in L1.
constexpr std::int64_t kCopyTile = 64;
constexpr std::int64_t kMaxElementBytes = 8;
constexpr std::int64_t kRun = 4096;  // elements of a run copied at once

// Whether the program is a load, an optional identity and a store.
bool is_copy(const PointwiseProgram& program) {
  if (program.steps.empty() || program.stores.size() != 1 || program.steps.size() > 2) return false;
  const Step &load = program.steps.front(), &last = program.steps.back();
  const auto rounds = [](const Step& step, DType dtype) {
    return step.round_to && *step.round_to != dtype;
  };
  const DType dtype = program.stores[0].view.dtype;
  if (load.kind != Step::Kind::load || load.view.dtype != dtype || rounds(load, dtype))
    return false;
  if (program.stores[0].value != static_cast<int>(program.steps.size()) - 1) return false;
  return program.steps.size() == 1 ||
         (last.kind == Step::Kind::compute && last.op.mode == PointwiseMode::identity &&
          last.op.alpha1 == 1.0 && last.args[0] == 0 && !rounds(last, dtype));
}

std::optional<int> unit_axis(const Dims& dims, const Dims& strides) {
  for (int axis = 0; axis < dims.rank(); ++axis)
    if (strides[axis] == 1 && dims[axis] > 1) return axis;
  return std::nullopt;
}

// The copy with axes merged.
struct CopyShape {
  Dims space;
  View from, to;
  int from_axis = 0, to_axis = 0;  // contiguous axis of each side
  bool valid = false;

  explicit CopyShape(const Region& region) {
    PointwiseProgram program = region.epilogue;
    space = program.space;
    if (space.empty() || element_count(space) == 0) return;
    merge_axes({&program}, {&space});
    from = program.steps[0].view;
    to = program.stores[0].view;
    const auto a = unit_axis(space, from.strides), b = unit_axis(space, to.strides);
    if (!a || !b) return;
    from_axis = *a;
    to_axis = *b;
    valid = true;
  }
  bool transposes() const { return from_axis != to_axis; }
};

class LayoutCopyKernel final : public Kernel {
 public:
  LayoutCopyKernel(const CopyShape& shape, StoreTo store_to)
      : shape_(shape),
        bytes_(bit_width(shape.from.dtype) / 8),
        stream_(store_to == StoreTo::memory),
        transpose_(transpose_elements(bytes_)),
        blocks_(shape.space) {
    const auto cut = [&](int axis, std::int64_t length) {
      blocks_[axis] = (shape.space[axis] + length - 1) / length;
    };
    cut(shape.to_axis, shape.transposes() ? kCopyTile : kRun);
    if (shape.transposes()) cut(shape.from_axis, kCopyTile);
    count_ = element_count(blocks_);
    grain_ = items_per_thread(element_count(shape.space) / count_);
  }

  void run(const KernelContext& context) const override {
    const auto* from = static_cast<const std::byte*>(context.pointer(shape_.from.tensor));
    auto* to = static_cast<std::byte*>(context.pointer(shape_.to.tensor));
    parallel_for(count_, grain_, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t item = begin; item < end; ++item) {
        const Block block = locate(item);
        const std::byte* source = from + block.from * bytes_;
        if (!shape_.transposes()) {
          copy_run(source, block.columns * bytes_, to + block.to * bytes_);
          continue;
        }
        const std::byte* next = item + 1 < end ? from + locate(item + 1).from * bytes_ : nullptr;
        copy_tile(source, next, to + block.to * bytes_, block.rows, block.columns);
      }
    });
  }

 private:
  // Start of a block on both sides, in elements, and its extents along from_axis and to_axis.
  struct Block {
    std::int64_t from, to, rows, columns;
  };
  Block locate(std::int64_t item) const {
    Block block{shape_.from.offset, shape_.to.offset, 1, 1};
    for (int axis = blocks_.rank() - 1; axis >= 0; --axis) {
      std::int64_t at = item % blocks_[axis];
      item /= blocks_[axis];
      if (axis == shape_.to_axis || axis == shape_.from_axis) {
        const std::int64_t length = shape_.transposes() ? kCopyTile : kRun;
        at *= length;
        (axis == shape_.to_axis ? block.columns : block.rows) =
            std::min(length, shape_.space[axis] - at);
      }
      block.from += at * shape_.from.strides[axis];
      block.to += at * shape_.to.strides[axis];
    }
    return block;
  }

  void copy_run(const std::byte* from, std::int64_t bytes, std::byte* to) const {
    if (stream_)
      stream_row(from, bytes, to, from + bytes, bytes);
    else
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

  // Reads whole source lines once, into a tile without cache-set conflicts. Prefetches the tile at
  // `next` while results are written.
  void copy_tile(const std::byte* from, const std::byte* next, std::byte* to, std::int64_t rows,
                 std::int64_t columns) const {
    alignas(64) std::byte tile[kCopyTile * kCopyTile * kMaxElementBytes];
    alignas(64) std::byte turned[kCopyTile * kCopyTile * kMaxElementBytes];
    const std::int64_t pitch = kCopyTile * bytes_;
    const std::int64_t from_step = shape_.from.strides[shape_.to_axis] * bytes_,
                       to_step = shape_.to.strides[shape_.from_axis] * bytes_;
    for (std::int64_t c = 0; c < columns; ++c)
      std::memcpy(tile + c * pitch, from + c * from_step, static_cast<std::size_t>(rows * bytes_));
    transpose_(tile, kCopyTile, turned, kCopyTile, columns, rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      if (next != nullptr && r < columns) prefetch_to_l1(next + r * from_step, pitch);
      std::byte* row = to + r * to_step;
      if (stream_)
        stream_row(turned + r * pitch, columns * bytes_, row);
      else
        std::memcpy(row, turned + r * pitch, static_cast<std::size_t>(columns * bytes_));
    }
  }

  CopyShape shape_;
  std::int64_t bytes_;
  bool stream_;
  TransposeElements transpose_;
  Dims blocks_;
  std::int64_t count_ = 0, grain_ = 1;
};

class LayoutCopyEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.layout_copy"; }
  EngineKind kind() const override { return EngineKind::precompiled_single; }
  std::string_view description() const override {
    return "layout copy of one tensor without conversion";
  }

  bool stores_last(const Region&) const override { return true; }
  Support supports(const Region& region, const DeviceProps&) const override {
    if (region.anchor) return Support::other_operation("the region has an anchor");
    if (!is_copy(region.epilogue)) return Support::no("the region is not a plain copy");
    if (touches_ragged(region)) return Support::no("a ragged tensor: rows of different lengths");
    const std::int64_t bits = bit_width(region.epilogue.stores[0].view.dtype);
    if (bits % 8 != 0 || bits / 8 > kMaxElementBytes)
      return Support::no("elements of {} bits; 8, 16, 32 and 64 are supported", bits);
    if (!CopyShape(region).valid)
      return Support::no("no axis of stride 1 in the source or in the destination");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.9))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    return std::make_unique<LayoutCopyKernel>(CopyShape(region), store_to(region.epilogue, device));
  }
};

}  // namespace

const Engine& layout_copy_engine() {
  static const LayoutCopyEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
