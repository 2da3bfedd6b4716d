// Weight gradient of a recurrent network: GEMMs reduced over all steps.
//   input: dgates^T x     recurrent: dgates^T h'     projection: dr^T h     biases: sums of dgates
#include "cpu/engines/build.hpp"
#include "cpu/engines/recurrent_parts.hpp"

namespace ashlar::cpu {

namespace {

template <class T>
class RnnBackwardWeightsKernel final : public RnnKernel<T, RnnBackwardWeights> {
  using Base = RnnKernel<T, RnnBackwardWeights>;
  using Rnn = RnnBackwardWeights;
  using Base::shape_, Base::scratch;
  using typename Base::Bound;

 public:
  RnnBackwardWeightsKernel(const Region& region, const Config& config)
      : Base(region, config),
        ops_(row_ops<T>()),
        x_(region.prologues[Rnn::x]),
        reserve_(region.prologues[Rnn::reserve]),
        dgates_(region.prologues[Rnn::dgates]),
        hx_(input_program(region, Rnn::hx)),
        previous_(input_program(region, Rnn::previous)),
        dweights_(region.epilogue) {
    std::int64_t bytes = 0;
    for (std::int64_t layer = 0; layer < std::min<std::int64_t>(shape_.layers, 2); ++layer) {
      const RnnWeights at = shape_.weights(layer, 0);
      for (const RnnMatrix& matrix : {at.input, at.recurrent, at.projection})
        bytes = std::max(
            bytes, gemm_scratch_bytes(product(matrix, shape_.rows), this->blocks_, sizeof(T)));
    }
    panels_ = this->scratch_layout_.add("panels", bytes);
  }

  void run(const KernelContext& context) const override {
    if (!dweights_.present()) return;
    const Run run(*this, context);
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer)
      for (std::int64_t direction = 0; direction < shape_.directions; ++direction)
        run.one_direction(layer, direction);
  }

 private:
  static GemmShape product(const RnnMatrix& matrix, std::int64_t rows) {
    return {.batch = 1, .m = matrix.rows, .n = matrix.columns, .k = rows};
  }

  struct Run {
    const RnnBackwardWeightsKernel& kernel;
    const KernelContext& context;
    const RnnShape& shape;
    RnnEntries entries;
    Bound x, reserve, dgates, hx, previous, dweights;
    typename Base::Dropout dropout;

    Run(const RnnBackwardWeightsKernel& owner, const KernelContext& given)
        : kernel(owner),
          context(given),
          shape(owner.shape_),
          entries(owner.entries(given)),
          x(owner.x_.bind(given)),
          reserve(owner.reserve_.bind(given)),
          dgates(owner.dgates_.bind(given)),
          hx(owner.hx_.bind(given)),
          previous(owner.previous_.bind(given)),
          dweights(owner.dweights_.bind(given)),
          dropout(owner.dropout(given)) {}

    void one_direction(std::int64_t layer, std::int64_t direction) const {
      const RnnWeights at = shape.weights(layer, direction);
      const std::int64_t p = layer * shape.directions + direction;
      const auto gates = [&](std::int64_t entry, std::int64_t unit, std::int64_t count, T* target) {
        dgates.load(kernel.record(p, entries.row(entry), unit).data(), count, target);
      };
      const auto recurrent_gates = [&](std::int64_t entry, std::int64_t unit, std::int64_t count,
                                       T* target) {
        gates(entry, unit, count, target);
        if (shape.mode == RnnMode::gru) reset(p, entry, unit, count, target);
      };
      multiply(at.input, gates,
               [&](std::int64_t entry, std::int64_t start, std::int64_t count, T* target) {
                 layer_input(layer, entry, start, count, target);
               });
      multiply(at.recurrent, recurrent_gates,
               [&](std::int64_t entry, std::int64_t start, std::int64_t count, T* target) {
                 state_before(p, direction, entry, start, count, target);
               });
      multiply(
          at.projection,
          [&](std::int64_t entry, std::int64_t unit, std::int64_t count, T* target) {
            gates(entry, shape.projected_gradient() + unit, count, target);
          },
          [&](std::int64_t entry, std::int64_t start, std::int64_t count, T* target) {
            reserve.load(kernel.record(p, entries.row(entry), shape.hidden_state() + start).data(),
                         count, target);
          });
      add_up(at.input_bias, gates);
      add_up(at.recurrent_bias, recurrent_gates);
    }

    // The new gate's recurrent term is multiplied by the reset gate.
    void reset(std::int64_t p, std::int64_t entry, std::int64_t unit, std::int64_t count,
               T* target) const {
      constexpr std::int64_t kChunk = 128;
      alignas(64) T gate[kChunk];
      const std::int64_t end = unit + count;
      for (std::int64_t u = std::max(unit, 2 * shape.hidden); u < end; u += kChunk) {
        const std::int64_t length = std::min(kChunk, end - u);
        reserve.load(kernel.record(p, entries.row(entry), u - 2 * shape.hidden).data(), length,
                     gate);
        kernel.ops_.multiply(target + (u - unit), {gate, true}, length, target + (u - unit));
      }
    }

    void layer_input(std::int64_t layer, std::int64_t entry, std::int64_t start, std::int64_t count,
                     T* target) const {
      const std::int64_t row = entries.row(entry);
      if (layer == 0) return x.load(kernel.place(row, start).data(), count, target);
      for (std::int64_t done = 0; done < count;) {  // the outputs of the directions are consecutive
        const std::int64_t feature = start + done, unit = feature % shape.output();
        const std::int64_t length = std::min(count - done, shape.output() - unit);
        const std::int64_t below = (layer - 1) * shape.directions + feature / shape.output();
        reserve.load(kernel.record(below, row, shape.output_state() + unit).data(), length,
                     target + done);
        done += length;
      }
      if (kernel.op_.dropout > 0.0) kernel.drop(dropout, layer - 1, row, start, count, target);
    }

    void state_before(std::int64_t p, std::int64_t direction, std::int64_t entry,
                      std::int64_t start, std::int64_t count, T* target) const {
      const std::int64_t before = entries.before(entry, direction);
      if (before >= 0)
        reserve.load(kernel.record(p, entries.row(before), shape.output_state() + start).data(),
                     count, target);
      else if (kernel.hx_.present())
        hx.load(Coords{p, entries.sequence(entry), start}.data(), count, target);
      else
        std::fill_n(target, count, T{0});
    }

    // matrix = sum over entries of left (rows) times right (columns).
    template <class Left, class Right>
    void multiply(const RnnMatrix& matrix, const Left& left, const Right& right) const {
      if (!matrix.present()) return;
      const auto sink =
          gemm_result<T>([&](std::int64_t row, std::int64_t column, std::int64_t count, T* values) {
            store(matrix.offset + row * matrix.columns + column, count, values);
          });
      gemm<T>(product(matrix, entries.count()), kernel.blocks_, kernel.gemm_kernel_,
              gemm_rows<T>(false, left), gemm_rows<T>(false, right), sink,
              kernel.scratch(context, kernel.panels_));
    }

    template <class Left>
    void add_up(const RnnMatrix& bias, const Left& left) const {
      constexpr std::int64_t kChunk = 64;
      if (!bias.present()) return;
      parallel_for(divide_up(bias.rows, kChunk), items_for_flops(kChunk * 4 * entries.count()),
                   [&](std::int64_t begin, std::int64_t end, int) {
                     for (std::int64_t chunk = begin; chunk < end; ++chunk) {
                       alignas(64) T sums[kChunk] = {}, values[kChunk];
                       const std::int64_t unit = chunk * kChunk,
                                          count = std::min(kChunk, bias.rows - unit);
                       for (std::int64_t entry = 0; entry < entries.count(); ++entry) {
                         left(entry, unit, count, values);
                         kernel.ops_.fold_into(Fold::sum, Premap::identity, values, count, sums);
                       }
                       store(bias.offset + unit, count, sums);
                     }
                   });
    }

    void store(std::int64_t at, std::int64_t count, T* values) const {
      constexpr std::int64_t kChunk = 128;
      alignas(64) T before[kChunk];
      if (kernel.previous_.present())
        for (std::int64_t i = 0; i < count; i += kChunk) {
          const std::int64_t length = std::min(kChunk, count - i);
          previous.load(Coords{at + i}.data(), length, before);
          kernel.ops_.fold_into(Fold::sum, Premap::identity, before, length, values + i);
        }
      dweights.store(Coords{at}.data(), count, values);
    }
  };

  const RowOps<T>& ops_;
  RnnTensor<T> x_, reserve_, dgates_, hx_, previous_, dweights_;
  int panels_;
};

}  // namespace

std::unique_ptr<Kernel> build_rnn_backward_weights(const Region& region, const Config& config) {
  return build_for_precision<RnnBackwardWeightsKernel>(region, config);
}

}  // namespace ashlar::cpu
