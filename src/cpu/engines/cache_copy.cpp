// Paged cache loads and band matrices as row copies, with fused pointwise prologue and epilogue.
#include "cpu/box_space.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/integer_operand.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

// One task per page: rows along its width, or along time if that is contiguous.
template <class T>
class PagedLoadKernel final : public Kernel {
 public:
  using Op = PagedCacheLoad;
  explicit PagedLoadKernel(const Region& region)
      : container_(region.anchor->inputs[Op::container].dims),
        y_(region.anchor->outputs[Op::y].dims),
        table_(input_program(region, Op::page_table)),
        lengths_(input_program(region, Op::sequence)) {
    const bool transposed = region.anchor_as<Op>()->transposed;
    time_ = transposed ? 3 : 2;
    width_ = transposed ? 2 : 3;
    const PointwiseProgram& source = region.prologues[Op::container];
    along_width_ = contiguous_views(source, 3) + contiguous_views(region.epilogue, width_) >=
                   contiguous_views(source, 2) + contiguous_views(region.epilogue, time_);
    source_ = RowProgram<T>(source, along_width_ ? 3 : 2);
    result_ = RowProgram<T>(region.epilogue, along_width_ ? width_ : time_);
  }

  void run(const KernelContext& context) const override {
    const std::int64_t heads = y_[1], length = y_[time_], block = container_[2];
    if (block == 0) return;
    const std::int64_t pages = (length + block - 1) / block;
    const auto source = source_.bind(context), result = result_.bind(context);
    parallel_for(y_[0] * heads * pages, items_per_thread(block * container_[3]),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t item = begin; item < end; ++item) {
                     const std::int64_t page = item % pages, h = item / pages % heads,
                                        b = item / pages / heads;
                     const std::int64_t slots = std::min(block, length - page * block);
                     const std::int64_t valid =
                         std::clamp<std::int64_t>(lengths_.load(context, {b}, length), 0, length);
                     const std::int64_t where = table_.load(context, {b, 0, page}, 0);
                     const bool inside = where >= 0 && where < container_[0];
                     const std::int64_t filled =
                         inside ? std::clamp<std::int64_t>(valid - page * block, 0, slots) : 0;
                     const Coords from{inside ? where : 0, h, 0, 0};
                     Coords to{b, h};
                     to[static_cast<std::size_t>(time_)] = page * block;
                     copy_page(source, from, result, to, slots, filled);
                   }
                 });
  }

 private:
  using Bound = typename RowProgram<T>::Bound;

  // Copies `slots` time steps; the first `filled` come from the container, the rest are 0.
  void copy_page(const Bound& source, Coords from, const Bound& result, Coords to,
                 std::int64_t slots, std::int64_t filled) const {
    alignas(64) T row[kRowLength];
    const auto time = static_cast<std::size_t>(time_), width = static_cast<std::size_t>(width_);
    const std::int64_t first = to[time], columns = container_[3];
    const std::int64_t rows = along_width_ ? slots : columns;
    const std::int64_t row_length = along_width_ ? columns : slots;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < row_length; j += kRowLength) {
        const std::int64_t count = std::min(kRowLength, row_length - j);
        const std::int64_t slot = along_width_ ? i : j, column = along_width_ ? j : i;
        from[2] = slot;
        from[3] = column;
        to[time] = first + slot;
        to[width] = column;
        const std::int64_t read = along_width_ ? (slot < filled ? count : 0)
                                               : std::clamp<std::int64_t>(filled - slot, 0, count);
        if (read > 0) source.load(from.data(), read, row);
        std::fill(row + read, row + count, T{0});
        result.store(to.data(), count, row);
      }
  }

  Dims container_, y_;
  int time_, width_;
  bool along_width_;
  IntegerOperand table_, lengths_;
  RowProgram<T> source_, result_;
};

// Both directions shift rows: y[j] = x[j + shift of the row] where that column exists, else
// padding.
template <class T>
class BandKernel final : public Kernel {
 public:
  explicit BandKernel(const Region& region)
      : x_(region.anchor->inputs[0].dims), y_(region.anchor->outputs[0].dims) {
    if (const auto* expand = region.anchor_as<ExpandBandMatrix>())
      set_up(region, *expand, true);
    else
      set_up(region, *region.anchor_as<ContractBandMatrix>(), false);
  }

  void run(const KernelContext& context) const override {
    const auto source = source_.bind(context), result = result_.bind(context);
    const std::int64_t length = y_[axis_], from_length = x_[axis_];
    Dims lines = y_;
    lines[axis_] = 1;
    const auto axis = static_cast<std::size_t>(axis_);
    parallel_for(element_count(lines), items_per_thread(length),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   alignas(64) T row[kRowLength];
                   for (std::int64_t line = begin; line < end; ++line) {
                     Coords coords;
                     std::int64_t rest = line;
                     for (int a = lines.rank() - 1; a >= 0; --a) {
                       coords[static_cast<std::size_t>(a)] = rest % lines[a];
                       rest /= lines[a];
                     }
                     const std::int64_t shift = shift_of(context, coords);
                     for (std::int64_t j = 0; j < length; j += kRowLength) {
                       const std::int64_t count = std::min(kRowLength, length - j);
                       const std::int64_t first = std::clamp<std::int64_t>(-shift - j, 0, count);
                       const std::int64_t last =
                           std::clamp<std::int64_t>(from_length - shift - j, first, count);
                       std::fill(row, row + first, padding_);
                       coords[axis] = j + first + shift;
                       if (first < last) source.load(coords.data(), last - first, row + first);
                       std::fill(row + last, row + count, padding_);
                       coords[axis] = j;
                       result.store(coords.data(), count, row);
                     }
                   }
                 });
  }

 private:
  template <class Op>
  void set_up(const Region& region, const Op& op, bool expands) {
    axis_ = static_cast<int>(op.axis);
    expands_ = expands;
    lower_ = op.lower_bandwidth;
    padding_ = static_cast<T>(op.pad_value);
    reach_ = x_[axis_ - 1] + x_[axis_] + y_[axis_];
    source_ = RowProgram<T>(region.prologues[Op::x], axis_);
    result_ = RowProgram<T>(region.epilogue, axis_);
    offset_ = IntegerOperand(input_program(region, Op::kv_token_offset));
    if (offset_.present()) shared_ = region.anchor->inputs[Op::kv_token_offset].dims[0] == 1;
  }
  // Band column 0 of row i is matrix column i - lower + offset. Offsets beyond `reach_` move the
  // band out of the matrix.
  std::int64_t shift_of(const KernelContext& context, const Coords& coords) const {
    const std::int64_t offset =
        std::clamp(offset_.load(context, {shared_ ? 0 : coords[0]}, 0), -reach_, reach_);
    const std::int64_t first = coords[static_cast<std::size_t>(axis_ - 1)] - lower_ + offset;
    return expands_ ? -first : first;
  }

  Dims x_, y_;
  int axis_ = 0;
  bool expands_ = false, shared_ = true;
  std::int64_t lower_ = 0, reach_ = 0;
  T padding_ = 0;
  RowProgram<T> source_, result_;
  IntegerOperand offset_;
};

class CacheCopyEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.cache_copy"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "paged cache loads and band matrices as row copies";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<PagedCacheLoad>() && !region.anchor_as<ExpandBandMatrix>() &&
        !region.anchor_as<ContractBandMatrix>())
      return Support::other_operation("the anchor is neither a paged cache load nor a band matrix");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.4))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    if (region.anchor_as<PagedCacheLoad>()) return build_for_precision<PagedLoadKernel>(region);
    return build_for_precision<BandKernel>(region);
  }
};

}  // namespace

const Engine& cache_copy_engine() {
  static const CacheCopyEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
