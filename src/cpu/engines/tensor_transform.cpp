// Padding, folding and unfolding as row copies. A row of y consists of strands, runs of x along the
// row's axis: unfolding along that axis interleaves them, `weave` elements of y apart; folding into
// channels along rows of channels concatenates them, `channels` long. Otherwise there is one
// strand.
#include <limits>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/pooling.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kOutputRow = 2048;  // elements of y at once

struct Move {
  TensorTransform op;
  Dims x, y;
  int axis;  // row axis
  std::int64_t block = 1;
  std::int64_t channels = 1;  // channels of the unfolded tensor with its border; 1 without folds
  std::int64_t weave = 1;     // strands per row of y
  std::int64_t step = 1;      // step of x along a strand

  explicit Move(const Region& region)
      : op(*region.anchor_as<TensorTransform>()),
        x(region.prologues[TensorTransform::x].space),
        y(region.epilogue.space),
        axis(choose_row_axis(
            y, {&region.epilogue, &region.epilogue, &region.prologues[TensorTransform::x]})) {
    if (op.fold.empty()) return;
    block = element_count(op.fold);
    channels = (op.unfold ? x : y)[1] / block;
    if (axis >= 2) (op.unfold ? weave : step) = op.fold[axis - 2];
  }

  // Elements of a row of y from `at` on that one strand, or one weave of strands, covers.
  std::int64_t run_from(const Coords& at) const {
    if (axis != 1 || op.unfold || block == 1) return std::numeric_limits<std::int64_t>::max();
    return channels - at[1] % channels;
  }

  // Source coordinates of y[at]; may be outside x.
  Coords source_of(Coords at) const {
    const auto rank = static_cast<std::size_t>(y.rank());
    if (op.unfold)
      for (std::size_t a = 0; a < rank; ++a) at[a] += op.pad_before[static_cast<int>(a)];
    if (op.unfold && block > 1) {
      std::int64_t f = 0;
      for (int s = 0; s < op.fold.rank(); ++s) {
        std::int64_t& i = at[static_cast<std::size_t>(s + 2)];
        f = f * op.fold[s] + i % op.fold[s];
        i /= op.fold[s];
      }
      at[1] += f * channels;
    }
    if (op.unfold) return at;
    if (block > 1) {
      std::int64_t f = at[1] / channels;
      at[1] %= channels;
      for (int s = op.fold.rank() - 1; s >= 0; --s) {
        std::int64_t& i = at[static_cast<std::size_t>(s + 2)];
        i = i * op.fold[s] + f % op.fold[s];
        f /= op.fold[s];
      }
    }
    for (std::size_t a = 0; a < rank; ++a) at[a] -= op.pad_before[static_cast<int>(a)];
    return at;
  }
};

template <class T>
class TensorTransformKernel final : public Kernel {
 public:
  explicit TensorTransformKernel(const Region& region)
      : TensorTransformKernel(region, Move(region)) {}

  void run(const KernelContext& context) const override {
    const auto x = x_.bind(context), y = y_.bind(context);
    const auto z = z_.bind(context);
    const std::int64_t grain = items_per_thread(std::min(kOutputRow, rows_.dims[rows_.axis]));
    parallel_for(rows_.count(), grain, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T row[kOutputRow], addend[kOutputRow];
      for (std::int64_t item = begin; item < end; ++item) {
        Coords at;
        const std::int64_t count = rows_.locate(item, at);
        fill_row(x, at, count, row);
        if (alpha_ != T{1}) ops_.multiply(row, {&alpha_, false}, count, row);
        if (beta_ != T{0}) {
          z.load(at, count, addend, nullptr);
          ops_.axpy(beta_, addend, count, row);
        }
        y.store(at.data(), count, row);
      }
    });
  }

 private:
  TensorTransformKernel(const Region& region, const Move& move)
      : move_(move),
        ops_(row_ops<T>()),
        alpha_(static_cast<T>(move.op.alpha)),
        beta_(static_cast<T>(move.op.beta)),
        rows_{move.y, move.axis, kOutputRow},
        x_(region.prologues[TensorTransform::x], move.axis, nullptr, move.step),
        y_(region.epilogue, move.axis),
        z_(move.op.beta == 0.0 ? PointwiseProgram{} : input_program(region, TensorTransform::z),
           move.y, move.axis) {}

  void fill_row(const typename RowProgram<T>::Bound& x, Coords at, std::int64_t count,
                T* row) const {
    for (std::int64_t made = 0; made < count;) {
      const std::int64_t run = std::min(count - made, move_.run_from(at));
      fill_run(x, at, run, row + made);
      at[static_cast<std::size_t>(move_.axis)] += run;
      made += run;
    }
  }
  void fill_run(const typename RowProgram<T>::Bound& x, const Coords& at, std::int64_t count,
                T* row) const {
    const auto axis = static_cast<std::size_t>(move_.axis);
    const std::int64_t step = move_.step, extent = move_.x[move_.axis];
    std::fill(row, row + count, T{0});
    alignas(64) T strand[kOutputRow];
    for (std::int64_t first = 0; first < std::min(move_.weave, count); ++first) {
      Coords start = at;
      start[axis] += first;
      Coords in = move_.source_of(start);
      if (!is_inside(in, move_.axis)) continue;
      const std::int64_t length = (count - first + move_.weave - 1) / move_.weave;
      // Elements [low, high) of the strand are inside x.
      const std::int64_t low =
          std::clamp<std::int64_t>(in[axis] >= 0 ? 0 : (-in[axis] + step - 1) / step, 0, length);
      const std::int64_t high = std::clamp<std::int64_t>(
          extent <= in[axis] ? 0 : (extent - in[axis] + step - 1) / step, low, length);
      if (high <= low) continue;
      in[axis] += low * step;
      if (move_.weave == 1) {
        x.load(in.data(), high - low, row + low);
        continue;
      }
      const T* values = x.view(in.data(), high - low, strand);
      for (std::int64_t i = low; i < high; ++i) row[first + i * move_.weave] = values[i - low];
    }
  }
  bool is_inside(const Coords& in, int except) const {
    for (int a = 0; a < move_.x.rank(); ++a) {
      const std::int64_t i = in[static_cast<std::size_t>(a)];
      if (a != except && (i < 0 || i >= move_.x[a])) return false;
    }
    return true;
  }

  Move move_;
  const RowOps<T>& ops_;
  T alpha_, beta_;
  RowLoop rows_;
  RowProgram<T> x_, y_;
  Operand<T> z_;
};

class TensorTransformEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.tensor_transform"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "padding, folding, unfolding and blending of tensors";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<TensorTransform>())
      return Support::other_operation("the anchor is not a tensor transform");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (region.epilogue.space.empty()) return Support::no("the tensors have no axes");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({{"axis", Move(region).axis}}, row_cost(region, 0.4))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    return build_for_precision<TensorTransformKernel>(region);
  }
};

}  // namespace

const Engine& tensor_transform_engine() {
  static const TensorTransformEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
