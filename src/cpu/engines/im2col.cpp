// im2col, row by row: the elements of y that one tap reads along the last spatial axis are a
// strided row of x with zeros at its ends.
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/pooling.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kCopiedRow = 2048;  // elements copied at once

template <class T>
class Im2ColKernel final : public Kernel {
 public:
  explicit Im2ColKernel(const Region& region)
      : op_(*region.anchor_as<Im2Col>()),
        x_dims_(region.prologues[0].space),
        spatial_(x_dims_.rank() - 2),
        x_(region.prologues[0], x_dims_.rank() - 1, nullptr, op_.stride[spatial_ - 1]),
        y_(region.epilogue, 2) {
    // [N, C, window..., windows...]: y with its two merged axes split.
    rows_.dims = {x_dims_[0], x_dims_[1]};
    for (std::int64_t extent : op_.window) rows_.dims.push_back(extent);
    for (int s = 0; s < spatial_; ++s) {
      const std::int64_t padded = x_dims_[s + 2] + op_.padding[s] + (*op_.post_padding)[s];
      const std::int64_t reach = (op_.window[s] - 1) * op_.dilation[s] + 1;
      rows_.dims.push_back(padded < reach ? 0 : (padded - reach) / op_.stride[s] + 1);
    }
    rows_.axis = rows_.dims.rank() - 1;
    rows_.length = kCopiedRow;
  }

  void run(const KernelContext& context) const override {
    const auto x = x_.bind(context), y = y_.bind(context);
    const std::int64_t grain = items_per_thread(std::min(kCopiedRow, rows_.dims[rows_.axis]));
    parallel_for(rows_.count(), grain, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T row[kCopiedRow];
      for (std::int64_t item = begin; item < end; ++item) {
        Coords at;
        const std::int64_t count = rows_.locate(item, at);
        fill(x, at, count, row);
        const Coords to = {at[0], join(at, 1, spatial_ + 2),
                           join(at, spatial_ + 2, rows_.dims.rank())};
        y.store(to.data(), count, row);
      }
    });
  }

 private:
  // Row-major position along axes [first, end) of the loop.
  std::int64_t join(const Coords& at, int first, int end) const {
    std::int64_t position = 0;
    for (int a = first; a < end; ++a)
      position = position * rows_.dims[a] + at[static_cast<std::size_t>(a)];
    return position;
  }

  void fill(const typename RowProgram<T>::Bound& x, const Coords& at, std::int64_t count,
            T* row) const {
    Coords in = at;
    for (int s = 0; s < spatial_; ++s) {
      const auto k = at[static_cast<std::size_t>(s + 2)];
      const auto o = at[static_cast<std::size_t>(s + 2 + spatial_)];
      const std::int64_t i = o * op_.stride[s] - op_.padding[s] + k * op_.dilation[s];
      in[static_cast<std::size_t>(s + 2)] = i;
      if (s + 1 < spatial_ && (i < 0 || i >= x_dims_[s + 2]))
        return void(std::fill(row, row + count, T{0}));
    }
    // Elements [low, high) of the row are inside x.
    const auto last = static_cast<std::size_t>(spatial_ + 1);
    const std::int64_t stride = op_.stride[spatial_ - 1], extent = x_dims_[spatial_ + 1];
    const std::int64_t low =
        std::clamp<std::int64_t>(in[last] >= 0 ? 0 : (-in[last] + stride - 1) / stride, 0, count);
    const std::int64_t high = std::clamp<std::int64_t>(
        extent <= in[last] ? 0 : (extent - in[last] + stride - 1) / stride, low, count);
    in[last] += low * stride;
    std::fill(row, row + low, T{0});
    if (high > low) x.load(in.data(), high - low, row + low);
    std::fill(row + high, row + count, T{0});
  }

  Im2Col op_;
  Dims x_dims_;
  int spatial_;
  RowLoop rows_;
  RowProgram<T> x_, y_;
};

class Im2ColEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.im2col"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "im2col: convolution patches as rows of a matrix";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Im2Col>()) return Support::other_operation("the anchor is not im2col");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.4))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    return build_for_precision<Im2ColKernel>(region);
  }
};

}  // namespace

const Engine& im2col_engine() {
  static const Im2ColEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
