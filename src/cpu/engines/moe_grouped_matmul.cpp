// Mixture of experts: one packed GEMM per expert, whose rows are gathered while packing.
#include <algorithm>

#include "cpu/box_space.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/moe_routing.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

// Rows of a [1, M, N] tensor by position: the index of a GEMM operand, or its K.
template <class T>
class RowsOperand final : public GemmOperand<T> {
 public:
  RowsOperand(const typename RowProgram<T>::Bound& bound, const std::int64_t* rows,
              bool rows_are_index)
      : bound_(bound), rows_(rows), rows_are_index_(rows_are_index) {}
  bool along_k() const override { return rows_are_index_; }
  void row(std::int64_t, std::int64_t fixed, std::int64_t start, std::int64_t count,
           T* destination) const override {
    const Coords coords{0, rows_[fixed], start};
    bound_.load(coords.data(), count, destination);
  }

 private:
  const typename RowProgram<T>::Bound& bound_;
  const std::int64_t* rows_;
  bool rows_are_index_;
};

// The [K, N] matrices of the experts, read along the contiguous axis.
template <class T>
struct Weights {
  RowProgram<T> program;
  int index_axis = 2, k_axis = 1;
  bool along_k = false;

  Weights() = default;
  Weights(const PointwiseProgram& source, int index, int k) : index_axis(index), k_axis(k) {
    along_k = contiguous_views(source, k) > contiguous_views(source, index);
    program = RowProgram<T>(source, along_k ? k : index);
  }
};

template <class T>
class WeightOperand final : public GemmOperand<T> {
 public:
  WeightOperand(const Weights<T>& weights, const typename RowProgram<T>::Bound& bound,
                std::int64_t expert)
      : weights_(weights), bound_(bound), expert_(expert) {}
  bool along_k() const override { return weights_.along_k; }
  void row(std::int64_t, std::int64_t fixed, std::int64_t start, std::int64_t count,
           T* destination) const override {
    Coords coords{expert_};
    coords[static_cast<std::size_t>(weights_.index_axis)] = along_k() ? fixed : start;
    coords[static_cast<std::size_t>(weights_.k_axis)] = along_k() ? start : fixed;
    bound_.load(coords.data(), count, destination);
  }

 private:
  const Weights<T>& weights_;
  const typename RowProgram<T>::Bound& bound_;
  std::int64_t expert_;
};

// Stores row m of a GEMM to row rows[m] of matrix `matrix` of the result.
template <class T>
class RowsSink final : public GemmSink<T> {
 public:
  RowsSink(const typename RowProgram<T>::Bound& bound, std::int64_t matrix,
           const std::int64_t* rows)
      : bound_(bound), matrix_(matrix), rows_(rows) {}
  void row(std::int64_t, std::int64_t m, std::int64_t n, std::int64_t count,
           T* values) const override {
    const Coords coords{matrix_, rows_ ? rows_[m] : m, n};
    bound_.store(coords.data(), count, values);
  }

 private:
  const typename RowProgram<T>::Bound& bound_;
  std::int64_t matrix_;
  const std::int64_t* rows_;
};

template <class T>
class BufferSink final : public GemmSink<T> {
 public:
  BufferSink(T* buffer, std::int64_t columns) : buffer_(buffer), columns_(columns) {}
  void row(std::int64_t, std::int64_t m, std::int64_t n, std::int64_t count,
           T* values) const override {
    std::copy_n(values, count, buffer_ + m * columns_ + n);
  }

 private:
  T* buffer_;
  std::int64_t columns_;
};

// Base of both kernels: GEMMs of an expert's rows with its matrix, and sums of their rows.
template <class T>
class MoeKernel : public Kernel {
 protected:
  MoeKernel(const Config& config, std::span<const GemmShape> shapes)
      : blocks_(GemmBlocks::from_knobs(config)), alone_(blocks_), kernel_(gemm_kernel<T>()) {
    alone_.threads = std::min<std::int64_t>(blocks_.threads, 1);
    const std::int64_t together = gemm_scratch_bytes(covering(shapes), blocks_, sizeof(T)),
                       alone = gemm_scratch_bytes(covering(shapes), alone_, sizeof(T));
    per_thread_ = round_up(alone, kWorkspaceAlignment) / static_cast<std::int64_t>(sizeof(T));
    panels_ = scratch_layout_.add(
        "panels", std::max(together, blocks_.threads * round_up(alone, kWorkspaceAlignment)));
  }

  // Calls run(item, begin, end, blocks, scratch) for every item's share of [0, start[items]): item
  // by item with threads inside, or, if there are many, a range of items per thread.
  template <class Run>
  void for_items(const std::int64_t* start, std::int64_t items, const KernelContext& context,
                 const Run& run) const {
    T* scratch = context.scratch<T>(this->scratch_layout_, panels_);
    const std::int64_t total = start[items], threads = thread_count();
    std::int64_t busy = 0;
    for (std::int64_t item = 0; item < items; ++item) busy += start[item + 1] > start[item];
    if (threads == 1 || busy < 2 * threads) {
      for (std::int64_t item = 0; item < items; ++item)
        if (start[item + 1] > start[item])
          run(item, start[item], start[item + 1], blocks_, scratch);
      return;
    }
    const std::int64_t grain =
        blocks_.threads > 0 ? divide_up(total, blocks_.threads) : divide_up(total, threads);
    parallel_for(total, grain, [&](std::int64_t begin, std::int64_t end, int thread) {
      std::int64_t item = std::upper_bound(start, start + items + 1, begin) - start - 1;
      for (; item < items && start[item] < end; ++item) {
        const std::int64_t from = std::max(begin, start[item]), to = std::min(end, start[item + 1]);
        if (from < to) run(item, from, to, alone_, scratch + thread * per_thread_);
      }
    });
  }

  // row[0..columns) of every t is the sum of the GEMM rows at the positions of its list.
  template <class Store>
  static void add_rows(const RowContributions::Lists& lists, std::int64_t rows,
                       std::int64_t columns, const T* products, const Store& store) {
    const RowOps<T>& ops = row_ops<T>();
    parallel_for(rows, items_per_thread(columns), [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T sum[kRowLength];
      for (std::int64_t t = begin; t < end; ++t)
        for (std::int64_t n = 0; n < columns; n += kRowLength) {
          const std::int64_t count = std::min(kRowLength, columns - n);
          std::fill_n(sum, count, T{0});
          for (std::int64_t i = lists.start[t]; i < lists.start[t + 1]; ++i)
            ops.axpy(T{1}, products + lists.list[i] * columns + n, count, sum);
          store(t, n, count, sum);
        }
    });
  }
  // Zeroes the rows without contributions.
  static void clear_dropped(const RoutedRows& routed, const typename RowProgram<T>::Bound& bound,
                            std::int64_t columns) {
    alignas(64) T zeros[kRowLength] = {};
    for (std::int64_t i = 0; i < routed.drops; ++i)
      for (std::int64_t n = 0; n < columns; n += kRowLength) {
        const Coords coords{0, routed.dropped[i], n};
        bound.store(coords.data(), std::min(kRowLength, columns - n), zeros);
      }
  }

  GemmBlocks blocks_, alone_;  // alone_: for a GEMM on one thread
  GemmKernel<T> kernel_;
  std::int64_t per_thread_;
  int panels_;
};

struct MoeShape {
  std::int64_t tokens, rows, k, columns, experts, output_rows;
  bool dweight = false, dtoken = false;  // backward

  explicit MoeShape(const Region& region) {
    const auto& in = region.anchor->inputs;
    if (const auto* op = region.anchor_as<MoeGroupedMatmul>()) {
      using Op = MoeGroupedMatmul;
      set_tokens(in[Op::token].dims, op->mode, in[Op::token_index].dims);
      columns = in[Op::weight].dims[2];
      experts = in[Op::weight].dims[0];
      output_rows = region.anchor->outputs[0].dims[1];
      return;
    }
    using Op = MoeGroupedMatmulBackward;
    const auto& op = *region.anchor_as<Op>();
    set_tokens(in[Op::token].dims, op.mode, in[Op::token_index].dims);
    columns = in[Op::doutput].dims[2];
    experts = region.anchor->outputs[Op::dweight].dims[0];
    output_rows = in[Op::doutput].dims[1];
    dweight = true;
    dtoken =
        region.anchor->outputs.size() > Op::dtoken && region.anchor->outputs[Op::dtoken].present();
  }
  std::vector<GemmShape> products() const {
    if (!dweight) return {{.m = rows, .n = columns, .k = k}};
    std::vector<GemmShape> shapes = {{.m = k, .n = columns, .k = rows}};
    if (dtoken) shapes.push_back({.m = rows, .n = k, .k = columns});
    return shapes;
  }

 private:
  void set_tokens(const Dims& token, MoeMode mode, const Dims& index) {
    tokens = token[1];
    k = token[2];
    rows = mode == MoeMode::gather ? index[1] : tokens;
  }
};

template <class T>
class MoeForwardKernel final : public MoeKernel<T> {
 public:
  using Op = MoeGroupedMatmul;
  MoeForwardKernel(const Region& region, const Config& config)
      : MoeForwardKernel(region, config, MoeShape(region)) {}

  void run(const KernelContext& context) const override {
    const RoutedRows routed = routing_.route(context, this->scratch_layout_);
    const auto token = token_.bind(context), weight = weights_.program.bind(context),
               output = output_.bind(context);
    T* products = scatter_ ? context.scratch<T>(this->scratch_layout_, products_) : nullptr;
    this->for_items(routed.start, shape_.experts, context,
                    [&](std::int64_t expert, std::int64_t begin, std::int64_t end,
                        const GemmBlocks& blocks, T* scratch) {
                      const RowsOperand<T> a(token, routed.source + begin, true);
                      const WeightOperand<T> b(weights_, weight, expert);
                      const GemmShape shape{.m = end - begin, .n = shape_.columns, .k = shape_.k};
                      if (scatter_)
                        gemm<T>(shape, blocks, this->kernel_, a, b,
                                BufferSink<T>(products + begin * shape_.columns, shape_.columns),
                                scratch);
                      else
                        gemm<T>(shape, blocks, this->kernel_, a, b,
                                RowsSink<T>(output, 0, routed.destination + begin), scratch);
                    });
    if (!scatter_) return this->clear_dropped(routed, output, shape_.columns);
    const RowContributions::Lists lists = sums_.sort(
        routed.destination, routed.start[shape_.experts], context, this->scratch_layout_);
    this->add_rows(lists, shape_.output_rows, shape_.columns, products,
                   [&](std::int64_t t, std::int64_t n, std::int64_t count, const T* sum) {
                     const Coords coords{0, t, n};
                     output.store(coords.data(), count, sum);
                   });
  }

 private:
  MoeForwardKernel(const Region& region, const Config& config, const MoeShape& shape)
      : MoeKernel<T>(config, shape.products()),
        shape_(shape),
        scatter_(region.anchor_as<Op>()->mode == MoeMode::scatter),
        routing_(*region.anchor_as<Op>(), region, shape.experts, shape.output_rows,
                 this->scratch_layout_),
        token_(region.prologues[Op::token], 2),
        weights_(region.prologues[Op::weight], 2, 1),
        output_(region.epilogue, 2) {
    if (!scatter_) return;
    sums_ = RowContributions(shape.rows, shape.output_rows, this->scratch_layout_);
    products_ = this->scratch_layout_.add(
        "products",
        checked_mul(checked_mul(shape.rows, shape.columns), static_cast<int>(sizeof(T))));
  }

  MoeShape shape_;
  bool scatter_;
  MoeRouting routing_;
  RowProgram<T> token_;
  Weights<T> weights_;
  RowProgram<T> output_;
  RowContributions sums_;
  int products_ = -1;
};

template <class T>
class MoeBackwardKernel final : public MoeKernel<T> {
 public:
  using Op = MoeGroupedMatmulBackward;
  MoeBackwardKernel(const Region& region, const Config& config)
      : MoeBackwardKernel(region, config, MoeShape(region)) {}

  void run(const KernelContext& context) const override {
    const RoutedRows routed = routing_.route(context, this->scratch_layout_);
    const auto doutput = doutput_.bind(context);
    make_dweight(context, routed, doutput);
    if (shape_.dtoken) make_dtoken(context, routed, doutput);
  }

 private:
  using Bound = typename RowProgram<T>::Bound;

  MoeBackwardKernel(const Region& region, const Config& config, const MoeShape& shape)
      : MoeKernel<T>(config, shape.products()),
        shape_(shape),
        gather_(region.anchor_as<Op>()->mode == MoeMode::gather),
        routing_(*region.anchor_as<Op>(), region, shape.experts, shape.output_rows,
                 this->scratch_layout_),
        doutput_(region.prologues[Op::doutput], 2),
        token_(region.prologues[Op::token], 2),
        dweight_(region.epilogue, 2) {
    starts_ = this->scratch_layout_.add(
        "experts", (shape.experts + 1) * static_cast<std::int64_t>(sizeof(std::int64_t)));
    if (!shape.dtoken) return;
    weights_ = Weights<T>(region.prologues[Op::weight], 1, 2);
    dtoken_ = RowProgram<T>(plain_store(region.anchor->outputs[Op::dtoken]), 2);
    if (!gather_) return;
    sums_ = RowContributions(shape.rows, shape.tokens, this->scratch_layout_);
    products_ = this->scratch_layout_.add(
        "products", checked_mul(checked_mul(shape.rows, shape.k), static_cast<int>(sizeof(T))));
  }

  // Experts without rows have zero gradients, so here every expert is an item of one unit.
  void make_dweight(const KernelContext& context, const RoutedRows& routed,
                    const Bound& doutput) const {
    const auto token = token_.bind(context), dweight = dweight_.bind(context);
    auto* units = context.scratch<std::int64_t>(this->scratch_layout_, starts_);
    for (std::int64_t e = 0; e <= shape_.experts; ++e) units[e] = e;
    this->for_items(
        units, shape_.experts, context,
        [&](std::int64_t expert, std::int64_t, std::int64_t, const GemmBlocks& blocks, T* scratch) {
          const std::int64_t begin = routed.start[expert], rows = routed.start[expert + 1] - begin;
          const RowsOperand<T> a(token, routed.source + begin, false),
              b(doutput, routed.destination + begin, false);
          gemm<T>({.m = shape_.k, .n = shape_.columns, .k = rows}, blocks, this->kernel_, a, b,
                  RowsSink<T>(dweight, expert, nullptr), scratch);
        });
  }

  void make_dtoken(const KernelContext& context, const RoutedRows& routed,
                   const Bound& doutput) const {
    const auto weight = weights_.program.bind(context), dtoken = dtoken_.bind(context);
    T* products = gather_ ? context.scratch<T>(this->scratch_layout_, products_) : nullptr;
    this->for_items(routed.start, shape_.experts, context,
                    [&](std::int64_t expert, std::int64_t begin, std::int64_t end,
                        const GemmBlocks& blocks, T* scratch) {
                      const RowsOperand<T> a(doutput, routed.destination + begin, true);
                      const WeightOperand<T> b(weights_, weight, expert);
                      const GemmShape shape{.m = end - begin, .n = shape_.k, .k = shape_.columns};
                      if (gather_)
                        gemm<T>(shape, blocks, this->kernel_, a, b,
                                BufferSink<T>(products + begin * shape_.k, shape_.k), scratch);
                      else
                        gemm<T>(shape, blocks, this->kernel_, a, b,
                                RowsSink<T>(dtoken, 0, routed.source + begin), scratch);
                    });
    if (!gather_) return this->clear_dropped(routed, dtoken, shape_.k);
    const RowContributions::Lists lists =
        sums_.sort(routed.source, routed.start[shape_.experts], context, this->scratch_layout_);
    this->add_rows(lists, shape_.tokens, shape_.k, products,
                   [&](std::int64_t t, std::int64_t n, std::int64_t count, const T* sum) {
                     const Coords coords{0, t, n};
                     dtoken.store(coords.data(), count, sum);
                   });
  }

  MoeShape shape_;
  bool gather_;
  MoeRouting routing_;
  RowProgram<T> doutput_, token_, dweight_, dtoken_;
  Weights<T> weights_;
  RowContributions sums_;
  int starts_, products_ = -1;
};

class MoeGroupedMatmulEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.moe_grouped_matmul"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "mixture of experts as one packed GEMM per expert, forward and backward";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<MoeGroupedMatmul>() && !region.anchor_as<MoeGroupedMatmulBackward>())
      return Support::other_operation("the anchor is not a mixture of experts");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const MoeShape shape(region);
    Cost extra;
    extra.bytes = region.bytes();
    const std::vector<GemmShape> products = shape.products();
    std::vector<Config> configs =
        gemm_configs(products, device, region.precision(), extra, /*may_split=*/false);
    for (Config& config : configs)
      config.scratch_bytes += MoeRouting::scratch_bytes(shape.rows, shape.experts);
    return configs;
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps&) const override {
    if (region.anchor_as<MoeGroupedMatmul>())
      return build_for_precision<MoeForwardKernel>(region, config);
    return build_for_precision<MoeBackwardKernel>(region, config);
  }
};

}  // namespace

const Engine& moe_grouped_matmul_engine() {
  static const MoeGroupedMatmulEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
