// Recurrent networks: the products of a layer's input over all steps are one matrix product, those
// of the state are made step by step from weights that stay packed; threads share the hidden units.
#include "cpu/engines/recurrent_parts.hpp"

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"

namespace ashlar::cpu {

namespace {

template <class T>
class RnnForwardKernel final : public RnnKernel<T, RnnForward> {
  using Base = RnnKernel<T, RnnForward>;
  using Rnn = RnnForward;
  using Base::shape_, Base::book, Base::scratch;
  using typename Base::Bound;

 public:
  RnnForwardKernel(const Region& region, const Config& config)
      : Base(region, config),
        cells_(rnn_cells<T>(shape_.mode)),
        recurrent_(this->gemm_kernel_, shape_.gates(), shape_.hidden, shape_.output()),
        projection_(this->gemm_kernel_, 1, std::max<std::int64_t>(shape_.projection, 1),
                    shape_.hidden),
        x_(region.prologues[Rnn::x]),
        weights_(region.prologues[Rnn::weights]),
        hx_(input_program(region, Rnn::hx)),
        cx_(input_program(region, Rnn::cx)),
        y_(region.epilogue),
        hy_(output_program(region.anchor->outputs, Rnn::hy)),
        cy_(output_program(region.anchor->outputs, Rnn::cy)),
        reserve_(output_program(region.anchor->outputs, Rnn::reserve)) {
    const std::int64_t batch = shape_.batch;
    const std::int64_t outputs = checked_mul(shape_.rows, shape_.layer_output());
    outputs_[0] = book("layer outputs", outputs);
    outputs_[1] = book("layer inputs", shape_.layers > 1 ? outputs : 0);
    gates_ = book("input products", checked_mul(shape_.rows, shape_.gate_rows()));
    states_ = book("states", checked_mul(batch, shape_.output()));
    cell_states_ = book("cells", checked_mul(batch, shape_.hidden));
    records_ = book("records", checked_mul(batch, shape_.reserve_width()));
    biases_ = book("biases", shape_.gate_rows() + shape_.hidden);
    panels_ = book("recurrent weights", recurrent_.elements());
    products_ = book("recurrent products", checked_mul(batch, recurrent_.row_stride()));
    const bool projects = shape_.projection > 0;
    projection_panels_ = book("projection weights", projects ? projection_.elements() : 0);
    projected_ = book("projected", projects ? checked_mul(batch, projection_.row_stride()) : 0);
    left_ = book("packed states",
                 PanelMatrix<T>::left_elements(batch, std::max(shape_.output(), shape_.hidden)));
    padding_ = book("padding", shape_.layer_output());
    for (std::int64_t layer = 0; layer < std::min<std::int64_t>(shape_.layers, 2); ++layer)
      gemm_bytes_ = std::max(
          gemm_bytes_,
          gemm_scratch_bytes(input_product(shape_, layer, shape_.rows), this->blocks_, sizeof(T)));
    panels_of_gemm_ = this->scratch_book_.add("panels", gemm_bytes_);
  }

  // All rows times the input weights.
  static GemmShape input_product(const RnnShape& shape, std::int64_t layer, std::int64_t rows) {
    return {.batch = 1, .m = rows, .n = shape.gate_rows(), .k = shape.layer_input(layer)};
  }

  void run(const KernelContext& context) const override { Run(*this, context).all(); }

 private:
  struct Run {
    const RnnForwardKernel& kernel;
    const KernelContext& context;
    const RnnShape& shape;
    RnnEntries entries;
    Bound x, weights, hx, cx, y, hy, cy, reserve;
    RnnClip<T> clip;
    T *gates, *states, *cells, *records, *biases, *panels, *products, *projection_panels,
        *projected, *left;

    Run(const RnnForwardKernel& owner, const KernelContext& given)
        : kernel(owner),
          context(given),
          shape(owner.shape_),
          entries(owner.entries(given)),
          x(owner.x_.bind(given)),
          weights(owner.weights_.bind(given)),
          hx(owner.hx_.bind(given)),
          cx(owner.cx_.bind(given)),
          y(owner.y_.bind(given)),
          hy(owner.hy_.bind(given)),
          cy(owner.cy_.bind(given)),
          reserve(owner.reserve_.bind(given)),
          clip(owner.clip([](double bound) { return bound; })),
          gates(owner.scratch(given, owner.gates_)),
          states(owner.scratch(given, owner.states_)),
          cells(owner.scratch(given, owner.cell_states_)),
          records(owner.scratch(given, owner.records_)),
          biases(owner.scratch(given, owner.biases_)),
          panels(owner.scratch(given, owner.panels_)),
          products(owner.scratch(given, owner.products_)),
          projection_panels(owner.scratch(given, owner.projection_panels_)),
          projected(owner.scratch(given, owner.projected_)),
          left(owner.scratch(given, owner.left_)) {}

    T* layer_outputs(std::int64_t layer) const {
      return kernel.scratch(context, kernel.outputs_[layer % 2]);
    }

    void all() const {
      for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
        if (layer > 0)
          kernel.drop_entries(kernel.dropout(context), layer - 1, entries,
                              layer_outputs(layer - 1));
        for (std::int64_t direction = 0; direction < shape.directions; ++direction)
          one_direction(layer, direction);
      }
      if (!kernel.y_.present()) return;
      const std::int64_t width = shape.layer_output();
      const T* outputs = layer_outputs(shape.layers - 1);
      parallel_for(entries.count(), items_for_flops(8 * width),
                   [&](std::int64_t begin, std::int64_t end, int) {
                     for (std::int64_t entry = begin; entry < end; ++entry)
                       y.store(kernel.place(entries.row(entry), 0).data(), width,
                               outputs + entry * width);
                   });
      T* padding = kernel.scratch(context, kernel.padding_);
      std::fill_n(padding, width, static_cast<T>(kernel.op_.padding_value));
      entries.for_unused_rows(
          shape, [&](std::int64_t row) { y.store(kernel.place(row, 0).data(), width, padding); });
    }

    void one_direction(std::int64_t layer, std::int64_t direction) const {
      const RnnWeights at = shape.weights(layer, direction);
      const std::int64_t p = layer * shape.directions + direction;
      load_biases(at);
      multiply_input(at, layer);
      const auto rows_of = [&](const RnnMatrix& matrix) {
        return [&, matrix](std::int64_t row, std::int64_t start, std::int64_t count, T* target) {
          weights.load(Coords{matrix.offset + row * matrix.columns + start}.data(), count, target);
        };
      };
      kernel.recurrent_.pack(panels, true, rows_of(at.recurrent));
      if (at.projection.present())
        kernel.projection_.pack(projection_panels, true, rows_of(at.projection));
      kernel.load_states(kernel.hx_, hx, p, shape.output(), states);
      kernel.load_states(kernel.cx_, cx, p, shape.hidden, cells);
      T* outputs = layer_outputs(layer) + direction * shape.output();
      for (std::int64_t i = 0; i < entries.steps(); ++i)
        step(direction == 0 ? i : entries.steps() - 1 - i, p, outputs);
      kernel.store_states(kernel.hy_, hy, p, shape.output(), states);
      kernel.store_states(kernel.cy_, cy, p, shape.hidden, cells);
      if (!kernel.reserve_.present()) return;
      T* nothing = records;
      std::fill_n(nothing, shape.batch > 0 ? shape.reserve_width() : 0, T{0});
      entries.for_unused_rows(shape, [&](std::int64_t row) {
        reserve.store(kernel.record(p, row, 0).data(), shape.reserve_width(), nothing);
      });
    }

    // Both biases join the input products, but for that of a gru's new gate, which the reset gate
    // multiplies: it stands behind the others.
    void load_biases(const RnnWeights& at) const {
      const std::int64_t count = shape.gate_rows();
      T* new_bias = biases + count;
      std::fill_n(biases, count + shape.hidden, T{0});
      if (at.input_bias.present()) weights.load(Coords{at.input_bias.offset}.data(), count, biases);
      if (!at.recurrent_bias.present()) return;
      T* recurrent = products;  // not in use yet; a row has room for the gates
      if (shape.batch == 0) return;
      const bool apart = shape.mode == RnnMode::gru;
      const std::int64_t joined = apart ? 2 * shape.hidden : count;
      weights.load(Coords{at.recurrent_bias.offset}.data(), joined, recurrent);
      for (std::int64_t i = 0; i < joined; ++i) biases[i] += recurrent[i];
      if (apart)
        weights.load(Coords{at.recurrent_bias.offset + joined}.data(), shape.hidden, new_bias);
    }

    void multiply_input(const RnnWeights& at, std::int64_t layer) const {
      const std::int64_t width = shape.gate_rows(), features = shape.layer_input(layer);
      const T* below = layer == 0 ? nullptr : layer_outputs(layer - 1);
      const auto input_row = [&](std::int64_t entry, std::int64_t start, std::int64_t count,
                                 T* target) {
        if (layer == 0)
          x.load(kernel.place(entries.row(entry), start).data(), count, target);
        else
          std::copy_n(below + entry * features + start, count, target);
      };
      if (!at.input.present()) {
        parallel_for(entries.count(), items_for_flops(8 * width),
                     [&](std::int64_t begin, std::int64_t end, int) {
                       for (std::int64_t entry = begin; entry < end; ++entry) {
                         T* row = gates + entry * width;
                         input_row(entry, 0, shape.hidden, row);
                         for (std::int64_t gate = shape.gates() - 1; gate >= 0; --gate)
                           for (std::int64_t j = 0; j < shape.hidden; ++j)
                             row[gate * shape.hidden + j] =
                                 row[j] + biases[gate * shape.hidden + j];
                       }
                     });
        return;
      }
      const auto a = gemm_rows<T>(true, input_row);
      const auto b = gemm_rows<T>(
          true, [&](std::int64_t unit, std::int64_t start, std::int64_t count, T* target) {
            weights.load(Coords{at.input.offset + unit * features + start}.data(), count, target);
          });
      const auto sink =
          gemm_result<T>([&](std::int64_t entry, std::int64_t unit, std::int64_t count, T* values) {
            T* row = gates + entry * width + unit;
            for (std::int64_t j = 0; j < count; ++j) row[j] = values[j] + biases[unit + j];
          });
      gemm<T>(input_product(shape, layer, entries.count()), kernel.blocks_, kernel.gemm_kernel_, a,
              b, sink, kernel.scratch(context, kernel.panels_of_gemm_));
    }

    void step(std::int64_t step, std::int64_t p, T* outputs) const {
      const std::int64_t first = entries.start(step), count = entries.start(step + 1) - first;
      const PanelMatrix<T>& matrix = kernel.recurrent_;
      matrix.pack_left(
          count,
          [&](std::int64_t i) { return states + entries.sequence(first + i) * shape.output(); },
          left);
      parallel_for(matrix.blocks(), items_for_flops(matrix.flops_per_block(count)),
                   [&](std::int64_t begin, std::int64_t end, int) {
                     matrix.multiply(panels, left, count, begin, end, products);
                     const std::int64_t unit = begin * matrix.block_width();
                     const std::int64_t units =
                         std::min(shape.hidden, end * matrix.block_width()) - unit;
                     for (std::int64_t i = 0; i < count; ++i)
                       cell(first, i, p, unit, units, outputs);
                   });
      if (shape.projection > 0) project(first, count, p, outputs);
    }

    // Some units of entry first + i.
    void cell(std::int64_t first, std::int64_t i, std::int64_t p, std::int64_t unit,
              std::int64_t units, T* outputs) const {
      const std::int64_t entry = first + i, n = entries.sequence(entry), hidden = shape.hidden;
      T* record = records + i * shape.reserve_width();
      T* state = states + n * shape.output() + unit;
      T* cell_state = cells + n * hidden + unit;
      T* h = record + shape.hidden_state() + unit;
      const bool lstm = shape.mode == RnnMode::lstm, gru = shape.mode == RnnMode::gru;
      kernel.cells_.forward(
          {gates + entry * shape.gate_rows() + unit, hidden,
           products + i * kernel.recurrent_.row_stride() + unit, kernel.recurrent_.group_stride(),
           biases + shape.gate_rows() + unit, lstm ? cell_state : state, record + unit, hidden,
           lstm ? cell_state : record + shape.recurrent_new() * (gru ? 1 : 0) + unit, h},
          clip, units);
      if (shape.projection == 0) {
        std::copy_n(h, units, state);
        std::copy_n(h, units, outputs + entry * shape.layer_output() + unit);
      }
      if (!kernel.reserve_.present()) return;
      const std::int64_t row = entries.row(entry);
      const auto keep = [&](std::int64_t at, const T* values) {
        reserve.store(kernel.record(p, row, at + unit).data(), units, values);
      };
      for (std::int64_t gate = 0; gate < shape.gates(); ++gate)
        keep(gate * hidden, record + gate * hidden + unit);
      if (lstm) keep(shape.cell(), cell_state);
      if (gru) keep(shape.recurrent_new(), record + shape.recurrent_new() + unit);
      if (lstm || gru) keep(shape.hidden_state(), h);
    }

    void project(std::int64_t first, std::int64_t count, std::int64_t p, T* outputs) const {
      const PanelMatrix<T>& matrix = kernel.projection_;
      matrix.pack_left(
          count,
          [&](std::int64_t i) {
            return records + i * shape.reserve_width() + shape.hidden_state();
          },
          left);
      parallel_for(
          matrix.blocks(), items_for_flops(matrix.flops_per_block(count)),
          [&](std::int64_t begin, std::int64_t end, int) {
            matrix.multiply(projection_panels, left, count, begin, end, projected);
            const std::int64_t unit = begin * matrix.block_width();
            const std::int64_t units =
                std::min(shape.projection, end * matrix.block_width()) - unit;
            for (std::int64_t i = 0; i < count; ++i) {
              const std::int64_t entry = first + i;
              const T* output = projected + i * matrix.row_stride() + unit;
              std::copy_n(output, units, states + entries.sequence(entry) * shape.output() + unit);
              std::copy_n(output, units, outputs + entry * shape.layer_output() + unit);
              if (kernel.reserve_.present())
                reserve.store(
                    kernel.record(p, entries.row(entry), shape.output_state() + unit).data(), units,
                    output);
            }
          });
    }
  };

  RnnCells<T> cells_;
  PanelMatrix<T> recurrent_, projection_;
  RnnTensor<T> x_, weights_, hx_, cx_, y_, hy_, cy_, reserve_;
  int outputs_[2];
  int gates_, states_, cell_states_, records_, biases_, panels_, products_, projection_panels_,
      projected_, left_, padding_, panels_of_gemm_;
  std::int64_t gemm_bytes_ = 0;
};

class RecurrentEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.recurrent"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "recurrent networks: one product per layer for its input, packed weights step by step";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<RnnForward>() && !region.anchor_as<RnnBackwardData>() &&
        !region.anchor_as<RnnBackwardWeights>())
      return Support::other_operation("the anchor is no recurrent network");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    std::vector<Config> configs =
        gemm_configs(products(region), device, region.precision(), {.bytes = region.bytes()},
                     region.anchor_as<RnnBackwardWeights>() != nullptr);
    for (Config& config : configs)
      config.scratch_bytes = build_kernel(region, config)->scratch_book().total_bytes();
    return configs;
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps&) const override {
    return build_kernel(region, config);
  }

 private:
  static std::unique_ptr<Kernel> build_kernel(const Region& region, const Config& config) {
    if (region.anchor_as<RnnBackwardData>()) return build_rnn_backward_data(region, config);
    if (region.anchor_as<RnnBackwardWeights>()) return build_rnn_backward_weights(region, config);
    return build_for_precision<RnnForwardKernel>(region, config);
  }

  // The large products: those of the input, of the gradients with the input weights, and of the
  // gradients with what they were multiplied by.
  static std::vector<GemmShape> products(const Region& region) {
    std::vector<GemmShape> shapes;
    const auto add = [&](const RnnShape& shape, bool data, bool weights) {
      for (std::int64_t layer = 0; layer < std::min<std::int64_t>(shape.layers, 2); ++layer) {
        const std::int64_t gates = shape.gate_rows(), input = shape.layer_input(layer);
        if (weights)
          shapes.push_back({.m = gates, .n = std::max(input, shape.output()), .k = shape.rows});
        else if (data)
          shapes.push_back({.m = shape.rows, .n = input, .k = shape.directions * gates});
        else
          shapes.push_back({.m = shape.rows, .n = gates, .k = input});
      }
    };
    if (region.anchor_as<RnnForward>()) add(rnn_shape<RnnForward>(region), false, false);
    if (region.anchor_as<RnnBackwardData>()) add(rnn_shape<RnnBackwardData>(region), true, false);
    if (region.anchor_as<RnnBackwardWeights>())
      add(rnn_shape<RnnBackwardWeights>(region), false, true);
    return shapes;
  }
};

}  // namespace

const Engine& recurrent_engine() {
  static const RecurrentEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
