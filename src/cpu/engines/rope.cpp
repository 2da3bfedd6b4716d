// Rotary position embedding: one thread per block of positions. The cosines and sines of a block
// are computed once, for all heads, and for the whole batch where it shares its positions.
#include <algorithm>
#include <vector>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/integer_operand.hpp"
#include "cpu/kernels/rotate.hpp"
#include "cpu/store_to.hpp"
#include "cpu/threads.hpp"
#include "graph/rope_angles.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kLongestRopeRow = 4096;  // elements of the last axis
constexpr std::int64_t kRopeTable = 8192;       // cosines of a block of positions: they stay in L2

std::int64_t stored_stride(const PointwiseProgram& program, int axis) {
  return program.stores.empty() ? 0 : std::abs(program.stores[0].view.strides[axis]);
}

// Whether the rows along `axis` follow one another in memory, so that a plain load or store may
// cover several of them.
bool rows_follow(const View& view, int axis) {
  return view.strides[axis] == view.dims[3] * view.strides[3];
}
bool rows_follow(const PointwiseProgram& x, const PointwiseProgram& y, int axis) {
  return x.is_plain_load() && y.is_plain_store() && rows_follow(x.steps[0].view, axis) &&
         rows_follow(y.stores[0].view, axis);
}

template <class T>
class RopeKernel final : public Kernel {
 public:
  RopeKernel(const Region& region, StoreTo store_to)
      : op_(*region.anchor_as<Rope>()),
        kernels_(rotate_rows<T>()),
        dims_(region.prologues[Rope::x].space),
        pairs_(op_.width / 2),
        block_(std::clamp<std::int64_t>(kRopeTable / std::max<std::int64_t>(pairs_, 1), 1,
                                        std::max<std::int64_t>(dims_[2], 1))),
        scale_(rope_scale(op_)),
        x_(region.prologues[Rope::x], 3),
        y_(region.epilogue, 3, nullptr, 1, store_to),
        positions_(input_program(region, Rope::positions)) {
    const PointwiseProgram& cos = input_program(region, Rope::cos);
    const PointwiseProgram& sin = input_program(region, Rope::sin);
    if (!cos.empty()) {
      given_ = true;
      cos_ = Operand<T>(cos, table_space(), 3);
      sin_ = Operand<T>(sin, table_space(), 3);
      per_batch_ = cos.space[0] != 1 || sin.space[0] != 1;
      per_head_ = cos.space[1] != 1 || sin.space[1] != 1;
    } else {
      for (std::int64_t pair = 0; pair < pairs_; ++pair)
        frequencies_.push_back(rope_frequency(op_, pair));
      per_batch_ = positions_.present() && input_program(region, Rope::positions).space[0] != 1;
    }
    heads_inside_ =
        !per_head_ && stored_stride(region.epilogue, 1) < stored_stride(region.epilogue, 2);
    if (rows_follow(region.prologues[Rope::x], region.epilogue, heads_inside_ ? 1 : 2))
      together_ = kLongestRopeRow / std::max<std::int64_t>(dims_[3], 1);
  }

  void run(const KernelContext& context) const override {
    const std::int64_t blocks = (dims_[2] + block_ - 1) / block_;
    const std::int64_t groups = per_batch_ ? dims_[0] : 1;
    const Run run{
        *this, context, x_.bind(context), y_.bind(context), cos_.bind(context), sin_.bind(context)};
    const std::int64_t rows = block_ * dims_[1] * (per_batch_ ? 1 : dims_[0]);
    parallel_for(element_count(dims_) == 0 ? 0 : groups * blocks, items_per_thread(rows * dims_[3]),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t item = begin; item < end; ++item)
                     run.block(item / blocks, item % blocks * block_);
                 });
  }

 private:
  struct Table {
    alignas(64) T cos[kRopeTable], sin[kRopeTable];
  };

  struct Run {
    const RopeKernel& kernel;
    const KernelContext& context;
    typename RowProgram<T>::Bound x, y;
    typename Operand<T>::Bound cos, sin;

    // Rotates the rows of a block of positions, from `first` on.
    void block(std::int64_t group, std::int64_t first) const {
      Table table;
      const std::int64_t end = std::min(first + kernel.block_, kernel.dims_[2]);
      const std::int64_t last_group = kernel.per_batch_ ? group + 1 : kernel.dims_[0];
      if (!kernel.per_head_) fill(table, {group, 0}, first, end);
      const std::int64_t heads = kernel.dims_[1], together = kernel.together_;
      for (std::int64_t b = group; b < last_group; ++b) {
        if (kernel.heads_inside_) {
          for (std::int64_t s = first; s < end; ++s)
            for (std::int64_t h = 0; h < heads; h += together)
              rotate(table, {b, h, s}, first, std::min(together, heads - h));
          continue;
        }
        for (std::int64_t h = 0; h < heads; ++h) {
          if (kernel.per_head_) fill(table, {b, h}, first, end);
          for (std::int64_t s = first; s < end; s += together)
            rotate(table, {b, h, s}, first, std::min(together, end - s));
        }
      }
    }

    void fill(Table& table, Coords at, std::int64_t first, std::int64_t end) const {
      const std::int64_t pairs = kernel.pairs_;
      if (pairs == 0) return;
      for (std::int64_t s = first; s < end; ++s) {
        T* c = table.cos + (s - first) * pairs;
        T* sines = table.sin + (s - first) * pairs;
        at[2] = s;
        if (kernel.given_) {
          cos.load(at, pairs, c, nullptr);
          sin.load(at, pairs, sines, nullptr);
        } else {
          const std::int64_t position = kernel.positions_.load(context, {at[0], s}, s);
          kernel.kernels_.angles(static_cast<double>(position), kernel.frequencies_.data(), pairs,
                                 kernel.scale_, c, sines);
        }
        if (kernel.op_.inverse)
          for (std::int64_t i = 0; i < pairs; ++i) sines[i] = -sines[i];
      }
    }

    // `count` rows: of consecutive heads if heads are inside, else of consecutive positions.
    void rotate(const Table& table, const Coords& at, std::int64_t first,
                std::int64_t count) const {
      alignas(64) T buffer[kLongestRopeRow];
      const std::int64_t width = kernel.op_.width, columns = kernel.dims_[3];
      const std::int64_t start = (at[2] - first) * kernel.pairs_;
      const std::int64_t step = kernel.heads_inside_ ? 0 : kernel.pairs_;
      const T* rows = x.view(at.data(), count * columns, buffer);
      const auto place = y.place(at.data());
      T* targets = place.memory != nullptr ? place.memory : buffer;
      const auto turn = kernel.op_.pairs == RopePairs::half ? kernel.kernels_.halves
                                                            : kernel.kernels_.interleaved;
      for (std::int64_t i = 0; i < count; ++i) {
        const T* row = rows + i * columns;
        T* target = targets + i * columns;
        turn(row, table.cos + start + i * step, table.sin + start + i * step, kernel.pairs_, target,
             place.stream);
        if (target != row) std::copy(row + width, row + columns, target + width);
      }
      if (place.memory == nullptr) y.store(at.data(), count * columns, buffer);
    }
  };

  // The space that the tables of cosines and sines broadcast over.
  Dims table_space() const {
    Dims space = dims_;
    space[3] = pairs_;
    return space;
  }

  Rope op_;
  const RotateRows<T>& kernels_;
  Dims dims_;
  std::int64_t pairs_, block_;
  std::int64_t together_ = 1;  // rows that are loaded and stored together
  double scale_;
  RowProgram<T> x_, y_;
  IntegerOperand positions_;
  Operand<T> cos_, sin_;
  std::vector<double> frequencies_;  // by pair, where cosines and sines are computed
  bool given_ = false, per_batch_ = false, per_head_ = false, heads_inside_ = false;
};

class RopeEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.rope"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "rotary position embedding, cosines and sines once per position";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Rope>()) return Support::other_operation("the anchor is not a rope");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    const std::int64_t columns = region.prologues[Rope::x].space[3];
    if (columns > kLongestRopeRow)
      return Support::no("the last extent of x is {}, at most {} fit the row buffer", columns,
                         kLongestRopeRow);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.5))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    return build_for_precision<RopeKernel>(region, store_to(region.epilogue, device));
  }
};

}  // namespace

const Engine& rope_engine() {
  static const RopeEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
