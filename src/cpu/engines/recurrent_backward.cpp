// Data gradient of a recurrent network, step by step in reverse time order; the gradient of a
// layer's input is one GEMM over all steps.
#include "base/element.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/recurrent_parts.hpp"

namespace ashlar::cpu {

namespace {

template <class T>
class RnnBackwardDataKernel final : public RnnKernel<T, RnnBackwardData> {
  using Base = RnnKernel<T, RnnBackwardData>;
  using Rnn = RnnBackwardData;
  using Base::shape_, Base::reserve_scratch, Base::scratch;
  using typename Base::Bound;

 public:
  RnnBackwardDataKernel(const Region& region, const Config& config)
      : Base(region, config),
        cells_(rnn_cells<T>(shape_.mode)),
        recurrent_(1, shape_.output(), shape_.gate_rows()),
        projection_(1, shape_.hidden, std::max<std::int64_t>(shape_.projection, 1)),
        record_dtype_(region.anchor->inputs[Rnn::reserve].dtype),
        dy_(region.prologues[Rnn::dy]),
        weights_(region.prologues[Rnn::weights]),
        reserve_(region.prologues[Rnn::reserve]),
        hx_(input_program(region, Rnn::hx)),
        cx_(input_program(region, Rnn::cx)),
        dhy_(input_program(region, Rnn::dhy)),
        dcy_(input_program(region, Rnn::dcy)),
        dx_(region.epilogue),
        dhx_(output_program(region.anchor->outputs, Rnn::dhx)),
        dcx_(output_program(region.anchor->outputs, Rnn::dcx)),
        dgates_(output_program(region.anchor->outputs, Rnn::dgates)) {
    const std::int64_t batch = shape_.batch;
    const std::int64_t outputs = checked_mul(shape_.rows, shape_.layer_output());
    outputs_[0] = reserve_scratch("output gradients", outputs);
    outputs_[1] = reserve_scratch("input gradients", shape_.layers > 1 ? outputs : 0);
    gates_ = reserve_scratch(
        "gate gradients",
        checked_mul(checked_mul(shape_.directions, shape_.rows), shape_.dgates_width()));
    states_ = reserve_scratch("state gradients", checked_mul(batch, shape_.output()));
    cell_states_ = reserve_scratch("cell gradients", checked_mul(batch, shape_.hidden));
    hidden_ =
        reserve_scratch("hidden gradients",
                        checked_mul(batch, std::max(shape_.output(), projection_.row_stride())));
    initial_ = reserve_scratch("initial states", checked_mul(batch, shape_.hidden));
    records_ = reserve_scratch(
        "records", checked_mul(batch, checked_add(shape_.reserve_width(), shape_.hidden)));
    reset_ = reserve_scratch("reset gradients", checked_mul(batch, shape_.gate_rows()));
    direct_ = reserve_scratch("direct gradients", checked_mul(batch, shape_.hidden));
    panels_ = reserve_scratch("recurrent weights", recurrent_.elements());
    products_ = reserve_scratch("recurrent products", checked_mul(batch, recurrent_.row_stride()));
    projection_panels_ =
        reserve_scratch("projection weights", shape_.projection > 0 ? projection_.elements() : 0);
    nothing_ = reserve_scratch("zeros", std::max(shape_.input, shape_.dgates_width()));
    std::int64_t bytes = 0;
    for (std::int64_t layer = 0; layer < std::min<std::int64_t>(shape_.layers, 2); ++layer)
      bytes = std::max(
          bytes, gemm_scratch_bytes(input_gemm(layer, shape_.rows), this->blocks_, sizeof(T)));
    panels_of_gemm_ = this->scratch_layout_.add("panels", bytes);
  }

  void run(const KernelContext& context) const override { Run(*this, context).all(); }

 private:
  // GEMM of the gate gradients of both directions with the input weights.
  GemmShape input_gemm(std::int64_t layer, std::int64_t rows) const {
    return {.batch = 1,
            .m = rows,
            .n = shape_.layer_input(layer),
            .k = shape_.directions * shape_.gate_rows()};
  }

  struct Run {
    const RnnBackwardDataKernel& kernel;
    const KernelContext& context;
    const RnnShape& shape;
    RnnEntries entries;
    Bound dy, weights, reserve, hx, cx, dhy, dcy, dx, dhx, dcx, dgates;
    RnnClip<T> clip;
    T *gates, *states, *cells, *hidden, *initial, *records, *reset, *direct, *panels, *products,
        *projection_panels;

    Run(const RnnBackwardDataKernel& owner, const KernelContext& given)
        : kernel(owner),
          context(given),
          shape(owner.shape_),
          entries(owner.entries(given)),
          dy(owner.dy_.bind(given)),
          weights(owner.weights_.bind(given)),
          reserve(owner.reserve_.bind(given)),
          hx(owner.hx_.bind(given)),
          cx(owner.cx_.bind(given)),
          dhy(owner.dhy_.bind(given)),
          dcy(owner.dcy_.bind(given)),
          dx(owner.dx_.bind(given)),
          dhx(owner.dhx_.bind(given)),
          dcx(owner.dcx_.bind(given)),
          dgates(owner.dgates_.bind(given)),
          // Clipped states are recognised by the bound as rounded in the records.
          clip(owner.clip([&](double bound) { return round_to(owner.record_dtype_, bound); })),
          gates(owner.scratch(given, owner.gates_)),
          states(owner.scratch(given, owner.states_)),
          cells(owner.scratch(given, owner.cell_states_)),
          hidden(owner.scratch(given, owner.hidden_)),
          initial(owner.scratch(given, owner.initial_)),
          records(owner.scratch(given, owner.records_)),
          reset(owner.scratch(given, owner.reset_)),
          direct(owner.scratch(given, owner.direct_)),
          panels(owner.scratch(given, owner.panels_)),
          products(owner.scratch(given, owner.products_)),
          projection_panels(owner.scratch(given, owner.projection_panels_)) {}

    // Gradients of a layer's outputs, [entries, layer output].
    T* d_outputs(std::int64_t layer) const {
      return kernel.scratch(context, kernel.outputs_[layer % 2]);
    }
    T* d_gates(std::int64_t direction, std::int64_t entry) const {
      return gates + (direction * shape.rows + entry) * shape.dgates_width();
    }

    void all() const {
      const std::int64_t width = shape.layer_output();
      T* top = d_outputs(shape.layers - 1);
      parallel_for(entries.count(), items_for_flops(8 * width),
                   [&](std::int64_t begin, std::int64_t end, int) {
                     for (std::int64_t entry = begin; entry < end; ++entry)
                       dy.load(kernel.place(entries.row(entry), 0).data(), width,
                               top + entry * width);
                   });
      for (std::int64_t layer = shape.layers - 1; layer >= 0; --layer) {
        for (std::int64_t direction = 0; direction < shape.directions; ++direction)
          one_direction(layer, direction);
        if (layer > 0 || kernel.dx_.present()) input_gradients(layer);
        if (layer > 0)
          kernel.drop_entries(kernel.dropout(context), layer - 1, entries, d_outputs(layer - 1));
      }
      T* nothing = kernel.scratch(context, kernel.nothing_);
      std::fill_n(nothing, std::max(shape.input, shape.dgates_width()), T{0});
      entries.for_unused_rows(shape, [&](std::int64_t row) {
        if (kernel.dx_.present()) dx.store(kernel.place(row, 0).data(), shape.input, nothing);
        if (!kernel.dgates_.present()) return;
        for (std::int64_t p = 0; p < shape.pseudo_layers(); ++p)
          dgates.store(kernel.record(p, row, 0).data(), shape.dgates_width(), nothing);
      });
    }

    void one_direction(std::int64_t layer, std::int64_t direction) const {
      const RnnWeights at = shape.weights(layer, direction);
      const std::int64_t p = layer * shape.directions + direction;
      const auto rows_of = [&](const RnnMatrix& matrix) {
        return [&, matrix](std::int64_t row, std::int64_t start, std::int64_t count, T* target) {
          return weights.view(Coords{matrix.offset + row * matrix.columns + start}.data(), count,
                              target);
        };
      };
      kernel.recurrent_.pack(panels, false, rows_of(at.recurrent));
      if (at.projection.present())
        kernel.projection_.pack(projection_panels, false, rows_of(at.projection));
      kernel.load_states(kernel.dhy_, dhy, p, shape.output(), states);
      kernel.load_states(kernel.dcy_, dcy, p, shape.hidden, cells);
      if (shape.mode == RnnMode::lstm) kernel.load_states(kernel.cx_, cx, p, shape.hidden, initial);
      if (shape.mode == RnnMode::gru) kernel.load_states(kernel.hx_, hx, p, shape.hidden, initial);
      const T* outputs = d_outputs(layer) + direction * shape.output();
      for (std::int64_t i = 0; i < entries.steps(); ++i)
        step(direction == 0 ? entries.steps() - 1 - i : i, direction, p, outputs);
      kernel.store_states(kernel.dhx_, dhx, p, shape.output(), states);
      kernel.store_states(kernel.dcx_, dcx, p, shape.hidden, cells);
    }

    void step(std::int64_t step, std::int64_t direction, std::int64_t p, const T* outputs) const {
      const std::int64_t first = entries.start(step), count = entries.start(step + 1) - first;
      const std::int64_t grain = items_for_flops(300 * shape.hidden);
      const bool projects = shape.projection > 0;
      parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
          T* state = states + entries.sequence(first + i) * shape.output();
          const T* output = outputs + (first + i) * shape.layer_output();
          for (std::int64_t j = 0; j < shape.output(); ++j) state[j] += output[j];
          if (projects)
            std::copy_n(state, shape.projection,
                        d_gates(direction, first + i) + shape.projected_gradient());
          else
            cell(first, i, direction, p, state);
        }
      });
      if (projects) {
        const PackedWeights<T>& matrix = kernel.projection_;
        const LeftRows<T> gradients{d_gates(direction, first) + shape.projected_gradient(),
                                    shape.dgates_width(), count};
        parallel_for(matrix.blocks(), items_for_flops(matrix.flops_per_block(count)),
                     [&](std::int64_t begin, std::int64_t end, int) {
                       for (std::int64_t block = begin; block < end; ++block)
                         matrix.multiply(projection_panels, gradients, block,
                                         hidden + block * matrix.block_stride(),
                                         matrix.row_stride());
                     });
        parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t i = begin; i < end; ++i)
            cell(first, i, direction, p, hidden + i * matrix.row_stride());
        });
      }
      previous_states(first, count, direction);
    }

    T* state_of(std::int64_t entry) const {
      return states + entries.sequence(entry) * shape.output();
    }

    // Gradients of the gates of entry first + i.
    void cell(std::int64_t first, std::int64_t i, std::int64_t direction, std::int64_t p,
              const T* d_hidden) const {
      const std::int64_t entry = first + i, n = entries.sequence(entry);
      T* buffer = records + i * (shape.reserve_width() + shape.hidden);
      const T* record = reserve.view(kernel.record(p, entries.row(entry), 0).data(),
                                     shape.reserve_width(), buffer);
      const bool lstm = shape.mode == RnnMode::lstm, gru = shape.mode == RnnMode::gru;
      const T* previous = initial + n * shape.hidden;
      const std::int64_t before = entries.before(entry, direction);
      if ((lstm || gru) && before >= 0)
        previous = reserve.view(
            kernel.record(p, entries.row(before), lstm ? shape.cell() : shape.hidden_state())
                .data(),
            shape.hidden, buffer + shape.reserve_width());
      T* d_gate = d_gates(direction, entry);
      T* d_reset = reset + i * shape.gate_rows();
      const T* inner = record + (lstm ? shape.cell() : gru ? shape.recurrent_new() : 0);
      kernel.cells_.backward(
          {record, shape.hidden, inner, previous, d_hidden, cells + n * shape.hidden, d_gate,
           shape.hidden, d_reset + 2 * shape.hidden * (gru ? 1 : 0), direct + i * shape.hidden},
          clip, shape.hidden);
      if (gru) std::copy_n(d_gate, 2 * shape.hidden, d_reset);
      if (kernel.dgates_.present())
        dgates.store(kernel.record(p, entries.row(entry), 0).data(), shape.dgates_width(), d_gate);
    }

    // Gradients of the states these steps started from.
    void previous_states(std::int64_t first, std::int64_t count, std::int64_t direction) const {
      const bool gru = shape.mode == RnnMode::gru;
      const PackedWeights<T>& matrix = kernel.recurrent_;
      const LeftRows<T> gradients =
          gru ? LeftRows<T>{reset, shape.gate_rows(), count}
              : LeftRows<T>{d_gates(direction, first), shape.dgates_width(), count};
      parallel_for(
          matrix.blocks(), items_for_flops(matrix.flops_per_block(count)),
          [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t block = begin; block < end; ++block)
              matrix.multiply(panels, gradients, block, products + block * matrix.block_stride(),
                              matrix.row_stride());
            const std::int64_t unit = begin * matrix.block_width();
            const std::int64_t units = std::min(shape.output(), end * matrix.block_width()) - unit;
            for (std::int64_t i = 0; i < count; ++i) {
              T* state = state_of(first + i) + unit;
              std::copy_n(products + i * matrix.row_stride() + unit, units, state);
              if (!gru) continue;
              const T* past = direct + i * shape.hidden + unit;
              for (std::int64_t j = 0; j < units; ++j) state[j] += past[j];
            }
          });
    }

    void input_gradients(std::int64_t layer) const {
      const std::int64_t features = shape.layer_input(layer), units = shape.gate_rows();
      T* below = layer > 0 ? d_outputs(layer - 1) : nullptr;
      const auto take = [&](std::int64_t entry, std::int64_t feature, std::int64_t count,
                            T* values) {
        if (layer > 0)
          std::copy_n(values, count, below + entry * features + feature);
        else
          dx.store(kernel.place(entries.row(entry), feature).data(), count, values);
      };
      if (layer == 0 && shape.skip) return skipped_input_gradients(take);
      const auto a = gemm_rows<T>(
          true, [&](std::int64_t entry, std::int64_t start, std::int64_t count, T* target) {
            while (count > 0) {  // the gates of the directions are consecutive
              const std::int64_t unit = start % units, length = std::min(count, units - unit);
              std::copy_n(d_gates(start / units, entry) + unit, length, target);
              start += length, count -= length, target += length;
            }
          });
      const auto b = gemm_rows<T>(false, [&](std::int64_t k, std::int64_t start, std::int64_t count,
                                             T* target) {
        const RnnMatrix matrix = shape.weights(layer, k / units).input;
        weights.load(Coords{matrix.offset + k % units * features + start}.data(), count, target);
      });
      gemm<T>(kernel.input_gemm(layer, entries.count()), kernel.blocks_, kernel.gemm_kernel_, a, b,
              gemm_result<T>(take), kernel.scratch(context, kernel.panels_of_gemm_));
    }

    template <class Take>
    void skipped_input_gradients(const Take& take) const {
      for (std::int64_t entry = 0; entry < entries.count(); ++entry) {
        T* sum = direct;  // free at this point
        std::fill_n(sum, shape.hidden, T{0});
        for (std::int64_t direction = 0; direction < shape.directions; ++direction)
          for (std::int64_t unit = 0; unit < shape.gate_rows(); ++unit)
            sum[unit % shape.hidden] += d_gates(direction, entry)[unit];
        take(entry, 0, shape.hidden, sum);
      }
    }
  };

  RnnCells<T> cells_;
  PackedWeights<T> recurrent_, projection_;
  DType record_dtype_;
  RnnTensor<T> dy_, weights_, reserve_, hx_, cx_, dhy_, dcy_, dx_, dhx_, dcx_, dgates_;
  int outputs_[2];
  int gates_, states_, cell_states_, hidden_, initial_, records_, reset_, direct_, panels_,
      products_, projection_panels_, nothing_, panels_of_gemm_;
};

}  // namespace

std::unique_ptr<Kernel> build_rnn_backward_data(const Region& region, const Config& config) {
  return build_for_precision<RnnBackwardDataKernel>(region, config);
}

}  // namespace ashlar::cpu
