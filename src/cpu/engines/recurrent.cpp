// Recurrent networks: the input GEMM of a layer covers all time steps at once; the recurrent GEMM
// runs step by step with prepacked weights. Threads divide the hidden units: each computes the
// cells of its units right after their GEMM, with one barrier per step.
#include "cpu/engines/recurrent_parts.hpp"

#include "cpu/constants.hpp"

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/team.hpp"

namespace ashlar::cpu {

namespace {

template <class T>
class RnnForwardKernel final : public RnnKernel<T, RnnForward> {
  using Base = RnnKernel<T, RnnForward>;
  using Rnn = RnnForward;
  using Base::shape_, Base::reserve_scratch, Base::scratch;
  using typename Base::Bound;

 public:
  RnnForwardKernel(const Region& region, const Config& config)
      : Base(region, config),
        cells_(rnn_cells<T>(shape_.mode)),
        recurrent_(shape_.gates(), shape_.hidden, shape_.output()),
        projection_(1, std::max<std::int64_t>(shape_.projection, 1), shape_.hidden),
        x_(region.prologues[Rnn::x]),
        weights_program_(region.prologues[Rnn::weights]),
        weights_(weights_program_),
        hx_(input_program(region, Rnn::hx)),
        cx_(input_program(region, Rnn::cx)),
        y_(region.epilogue),
        hy_(output_program(region.anchor->outputs, Rnn::hy)),
        cy_(output_program(region.anchor->outputs, Rnn::cy)),
        reserve_(output_program(region.anchor->outputs, Rnn::reserve)) {
    const std::int64_t batch = shape_.batch;
    const std::int64_t outputs = checked_mul(shape_.rows, shape_.layer_output());
    outputs_[0] = reserve_scratch("layer outputs", outputs);
    outputs_[1] = reserve_scratch("layer inputs", shape_.layers > 1 ? outputs : 0);
    gates_ = reserve_scratch("input products", checked_mul(shape_.rows, recurrent_.row_stride()));
    for (int& states : states_)
      states = reserve_scratch("states", checked_mul(batch, shape_.output()));
    cell_states_ = reserve_scratch("cells", checked_mul(batch, shape_.hidden));
    records_ = reserve_scratch("records", checked_mul(batch, shape_.reserve_width()));
    biases_ =
        reserve_scratch("biases", recurrent_.row_stride() + shape_.hidden + shape_.gate_rows());
    panels_ = reserve_scratch("recurrent weights", recurrent_.elements());
    products_ = reserve_scratch("recurrent products", checked_mul(batch, recurrent_.row_stride()));
    const bool projects = shape_.projection > 0;
    projection_panels_ =
        reserve_scratch("projection weights", projects ? projection_.elements() : 0);
    projected_ =
        reserve_scratch("projected", projects ? checked_mul(batch, projection_.row_stride()) : 0);
    padding_ = reserve_scratch("padding", shape_.layer_output());
    std::int64_t widest = 0;
    for (std::int64_t layer = 0; layer < std::min<std::int64_t>(shape_.layers, 2); ++layer)
      widest = std::max(widest, input_matrix(layer).elements());
    input_panels_ = reserve_scratch("input weights", widest);
    inputs_ = reserve_scratch("inputs", checked_mul(shape_.rows, shape_.input));
  }

  PackedWeights<T> input_matrix(std::int64_t layer) const {
    return {shape_.gates(), shape_.hidden, shape_.layer_input(layer)};
  }

  void run(const KernelContext& context) const override { Run(*this, context).all(); }

  // Packs constant weights once.
  void keep_constants(const KernelContext& constants) override {
    if (!is_constant(weights_program_, constants)) return;
    const Bound weights = weights_.bind(constants);
    for (std::int64_t p = 0; p < shape_.pseudo_layers(); ++p) {
      const std::int64_t layer = p / shape_.directions;
      const RnnWeights at = shape_.weights(layer, p % shape_.directions);
      Panels& kept = prepacked_.emplace_back();
      const auto keep = [&](const PackedWeights<T>& matrix, const RnnMatrix& rows,
                            PrepackedBuffer<T>& panels) {
        if (!rows.present()) return;
        panels.allocate(matrix.elements());
        matrix.pack(panels.data(), true, rows_of(weights, rows));
      };
      keep(recurrent_, at.recurrent, kept.recurrent);
      keep(projection_, at.projection, kept.projection);
      keep(input_matrix(layer), at.input, kept.input);
    }
  }

 private:
  // Prepacked weights of one direction of a layer.
  struct Panels {
    PrepackedBuffer<T> input, recurrent, projection;
  };
  static auto rows_of(const Bound& weights, const RnnMatrix& matrix) {
    return [&weights, matrix](std::int64_t row, std::int64_t start, std::int64_t count, T* target) {
      return weights.view(Coords{matrix.offset + row * matrix.columns + start}.data(), count,
                          target);
    };
  }

  struct Run {
    const RnnForwardKernel& kernel;
    const KernelContext& context;
    const RnnShape& shape;
    RnnEntries entries;
    Bound x, weights, hx, cx, y, hy, cy, reserve;
    RnnClip<T> clip;
    T *gates, *cells, *records, *biases, *new_bias, *products, *projected;
    T* states[2];  // double buffer: one is read while the other is written

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
          cells(owner.scratch(given, owner.cell_states_)),
          records(owner.scratch(given, owner.records_)),
          biases(owner.scratch(given, owner.biases_)),
          new_bias(biases + owner.recurrent_.row_stride()),
          products(owner.scratch(given, owner.products_)),
          projected(owner.scratch(given, owner.projected_)),
          states{owner.scratch(given, owner.states_[0]), owner.scratch(given, owner.states_[1])} {}

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
      const auto panels_of = [&](const PackedWeights<T>& matrix, const RnnMatrix& rows,
                                 PrepackedBuffer<T> Panels::*kept, int reservation) -> const T* {
        if (!kernel.prepacked_.empty())
          return (kernel.prepacked_[static_cast<std::size_t>(p)].*kept).data();
        T* panels = kernel.scratch(context, reservation);
        if (rows.present()) matrix.pack(panels, true, rows_of(weights, rows));
        return panels;
      };
      multiply_input(
          layer, at.input.present(),
          panels_of(kernel.input_matrix(layer), at.input, &Panels::input, kernel.input_panels_));
      const T* recurrent =
          panels_of(kernel.recurrent_, at.recurrent, &Panels::recurrent, kernel.panels_);
      const T* projection = panels_of(kernel.projection_, at.projection, &Panels::projection,
                                      kernel.projection_panels_);
      kernel.load_states(kernel.hx_, hx, p, shape.output(), states[0]);
      kernel.load_states(kernel.cx_, cx, p, shape.hidden, cells);
      T* outputs = layer_outputs(layer) + direction * shape.output();
      all_steps(direction, p, recurrent, projection, outputs);
      kernel.store_states(kernel.hy_, hy, p, shape.output(), states[entries.steps() % 2]);
      kernel.store_states(kernel.cy_, cy, p, shape.hidden, cells);
      if (!kernel.reserve_.present()) return;
      T* nothing = records;
      std::fill_n(nothing, shape.batch > 0 ? shape.reserve_width() : 0, T{0});
      entries.for_unused_rows(shape, [&](std::int64_t row) {
        reserve.store(kernel.record(p, row, 0).data(), shape.reserve_width(), nothing);
      });
    }

    // Both biases are added to the input GEMM, except that of a GRU's new gate, which the reset
    // gate multiplies: it follows the others. In the order of the packed columns.
    void load_biases(const RnnWeights& at) const {
      const std::int64_t count = shape.gate_rows(), width = kernel.recurrent_.row_stride();
      std::fill_n(biases, width + shape.hidden, T{0});
      T* given = new_bias + shape.hidden;
      const auto add = [&](const RnnMatrix& bias, std::int64_t used) {
        weights.load(Coords{bias.offset}.data(), count, given);
        for (std::int64_t i = 0; i < used; ++i) biases[kernel.recurrent_.position(i)] += given[i];
      };
      if (at.input_bias.present()) add(at.input_bias, count);
      if (!at.recurrent_bias.present()) return;
      const bool apart = shape.mode == RnnMode::gru;
      add(at.recurrent_bias, apart ? 2 * shape.hidden : count);
      if (apart) std::copy_n(given + 2 * shape.hidden, shape.hidden, new_bias);
    }

    // Input gates of an entry, block by block, so that one thread's units of a step are contiguous.
    T* input_gates(std::int64_t block, std::int64_t entry, std::int64_t at) const {
      return gates + (block * shape.rows + entry) * kernel.recurrent_.block_stride() + at;
    }
    T* recurrent_gates(std::int64_t block, std::int64_t sequence) const {
      return products + (block * shape.batch + sequence) * kernel.recurrent_.block_stride();
    }

    // The rows of a layer's input, one per entry: in place, or copied.
    LeftRows<T> input_rows(std::int64_t layer) const {
      const std::int64_t features = shape.layer_input(layer), count = entries.count();
      if (layer > 0) return {layer_outputs(layer - 1), features, count};
      if (count > 1 && count == shape.rows) {
        T copied;
        const auto at = [&](std::int64_t row) {
          return x.view(kernel.place(row, 0).data(), 1, &copied);
        };
        const T* first = at(0);
        const std::int64_t distance = at(1) - first;
        // Rows are numbered by step and sequence: the stride is uniform if it also holds across
        // steps.
        const std::int64_t step = std::min(shape.packed ? count - 1 : shape.batch, count - 1);
        if (first != &copied && distance >= features && at(step) - first == step * distance &&
            at(count - 1) - first == (count - 1) * distance)
          return {first, distance, count};
      }
      T* rows = kernel.scratch(context, kernel.inputs_);
      parallel_for(
          count, items_for_flops(8 * features), [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t entry = begin; entry < end; ++entry)
              x.load(kernel.place(entries.row(entry), 0).data(), features, rows + entry * features);
          });
      return {rows, features, count};
    }

    void multiply_input(std::int64_t layer, bool weighted, const T* panels) const {
      const PackedWeights<T> matrix = kernel.input_matrix(layer);
      const std::int64_t stride = matrix.block_stride();
      const LeftRows<T> rows = input_rows(layer);
      if (!weighted) {
        parallel_for(rows.count, items_for_flops(8 * matrix.row_stride()),
                     [&](std::int64_t begin, std::int64_t end, int) {
                       for (std::int64_t entry = begin; entry < end; ++entry)
                         for (std::int64_t i = 0; i < shape.gate_rows(); ++i) {
                           const std::int64_t to = matrix.position(i);
                           *input_gates(to / stride, entry, to % stride) =
                               rows.data[entry * rows.row + i % shape.hidden] + biases[to];
                         }
                     });
        return;
      }
      // Few enough rows to stay in L2 while all panels pass.
      constexpr std::int64_t kRows = 10 * kPanelRowMultiple;
      const std::int64_t row_blocks = divide_up(rows.count, kRows);
      parallel_for(
          row_blocks * matrix.blocks(),
          items_for_flops(matrix.flops_per_block(std::min(kRows, rows.count))),
          [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t item = begin; item < end; ++item) {
              const std::int64_t first = item / matrix.blocks() * kRows;
              matrix.multiply(
                  panels,
                  {rows.data + first * rows.row, rows.row, std::min(kRows, rows.count - first)},
                  item % matrix.blocks(), input_gates(item % matrix.blocks(), first, 0), stride,
                  biases);
            }
          });
    }

    void all_steps(std::int64_t direction, std::int64_t p, const T* recurrent, const T* projection,
                   T* outputs) const {
      const PackedWeights<T>& matrix = kernel.recurrent_;
      const std::int64_t grain = items_for_flops(matrix.flops_per_block(shape.batch));
      const std::int64_t threads =
          std::min<std::int64_t>(thread_count(), divide_up(matrix.blocks(), grain));
      TeamBarrier barrier;
      parallel_team(static_cast<int>(threads), [&](int thread, int team) {
        for (std::int64_t i = 0; i < entries.steps(); ++i) {
          const std::int64_t step = direction == 0 ? i : entries.steps() - 1 - i;
          const Step at{entries.start(step),
                        entries.start(step + 1) - entries.start(step),
                        p,
                        recurrent,
                        projection,
                        states[i % 2],
                        states[(i + 1) % 2],
                        outputs};
          // Alternating direction, so that the panels used last, which are still cached, come
          // first.
          for_share(matrix.blocks(), thread, team, i % 2 == 1,
                    [&](std::int64_t block) { make_units(at, block); });
          barrier.wait(team);
          if (shape.projection == 0) continue;
          for_share(kernel.projection_.blocks(), thread, team, i % 2 == 1,
                    [&](std::int64_t block) { project(at, block); });
          barrier.wait(team);
        }
      });
    }
    template <class Body>
    static void for_share(std::int64_t count, int thread, int team, bool backwards,
                          const Body& body) {
      const std::int64_t begin = count * thread / team, end = count * (thread + 1) / team;
      for (std::int64_t i = begin; i < end; ++i) body(backwards ? begin + end - 1 - i : i);
    }

    struct Step {
      std::int64_t first, count;        // entries
      std::int64_t p;                   // pseudo-layer
      const T *recurrent, *projection;  // packed weights
      const T* before;                  // states
      T* after;
      T* outputs;
      std::int64_t last() const { return first + count - 1; }
    };

    // Computes one block of units of all sequences. Inactive sequences keep their state.
    void make_units(const Step& at, std::int64_t block) const {
      const PackedWeights<T>& matrix = kernel.recurrent_;
      const std::int64_t rows = at.count > 0 ? entries.sequence(at.last()) + 1 : 0;
      matrix.multiply(at.recurrent, {at.before, shape.output(), rows}, block,
                      recurrent_gates(block, 0), matrix.block_stride());
      for (std::int64_t i = 0; i < at.count; ++i) cell(at, i, block);
      if (shape.projection == 0) keep_others(at, block * matrix.block_width(), matrix.units(block));
    }
    void keep_others(const Step& at, std::int64_t unit, std::int64_t units) const {
      if (at.count == shape.batch) return;
      std::int64_t entry = at.first;  // entries of a step, in sequence order
      for (std::int64_t n = 0; n < shape.batch; ++n) {
        if (entry <= at.last() && entries.sequence(entry) == n)
          ++entry;
        else
          std::copy_n(at.before + n * shape.output() + unit, units,
                      at.after + n * shape.output() + unit);
      }
    }

    // Computes the cell units of a block for entry at.first + i.
    void cell(const Step& at, std::int64_t i, std::int64_t block) const {
      const PackedWeights<T>& matrix = kernel.recurrent_;
      const std::int64_t unit = block * matrix.block_width(), units = matrix.units(block);
      const std::int64_t entry = at.first + i, n = entries.sequence(entry), hidden = shape.hidden;
      T* record = records + i * shape.reserve_width();
      const T* state = at.before + n * shape.output() + unit;
      T* cell_state = cells + n * hidden + unit;
      T* h = record + shape.hidden_state() + unit;
      const bool lstm = shape.mode == RnnMode::lstm, gru = shape.mode == RnnMode::gru;
      kernel.cells_.forward(
          {input_gates(block, entry, 0), matrix.group_stride(), recurrent_gates(block, n),
           matrix.group_stride(), new_bias + unit, lstm ? cell_state : state, record + unit, hidden,
           lstm ? cell_state : record + shape.recurrent_new() * (gru ? 1 : 0) + unit, h},
          clip, units);
      if (shape.projection == 0) {
        std::copy_n(h, units, at.after + n * shape.output() + unit);
        std::copy_n(h, units, at.outputs + entry * shape.layer_output() + unit);
      }
      if (!kernel.reserve_.present()) return;
      const std::int64_t row = entries.row(entry);
      const auto keep = [&](std::int64_t to, const T* values) {
        reserve.store(kernel.record(at.p, row, to + unit).data(), units, values);
      };
      for (std::int64_t gate = 0; gate < shape.gates(); ++gate)
        keep(gate * hidden, record + gate * hidden + unit);
      if (lstm) keep(shape.cell(), cell_state);
      if (gru) keep(shape.recurrent_new(), record + shape.recurrent_new() + unit);
      if (lstm || gru) keep(shape.hidden_state(), h);
    }

    void project(const Step& at, std::int64_t block) const {
      const PackedWeights<T>& matrix = kernel.projection_;
      const std::int64_t unit = block * matrix.block_width(), units = matrix.units(block);
      matrix.multiply(at.projection,
                      {records + shape.hidden_state(), shape.reserve_width(), at.count}, block,
                      projected + unit, matrix.row_stride());
      for (std::int64_t i = 0; i < at.count; ++i) {
        const std::int64_t entry = at.first + i;
        const T* output = projected + i * matrix.row_stride() + unit;
        std::copy_n(output, units, at.after + entries.sequence(entry) * shape.output() + unit);
        std::copy_n(output, units, at.outputs + entry * shape.layer_output() + unit);
        if (kernel.reserve_.present())
          reserve.store(kernel.record(at.p, entries.row(entry), shape.output_state() + unit).data(),
                        units, output);
      }
      keep_others(at, unit, units);
    }
  };

  RnnCells<T> cells_;
  PackedWeights<T> recurrent_, projection_;
  std::vector<Panels> prepacked_;  // by pseudo-layer; empty if weights are not constant
  RnnTensor<T> x_;
  PointwiseProgram weights_program_;
  RnnTensor<T> weights_, hx_, cx_, y_, hy_, cy_, reserve_;
  int outputs_[2];
  int states_[2];
  int gates_, cell_states_, records_, biases_, panels_, products_, projection_panels_, projected_,
      padding_, input_panels_, inputs_;
};

class RecurrentEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.recurrent"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "recurrent networks: one input GEMM per layer, packed recurrent weights step by step";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<RnnForward>() && !region.anchor_as<RnnBackwardData>() &&
        !region.anchor_as<RnnBackwardWeights>())
      return Support::other_operation("the anchor is not a recurrent network");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    std::vector<Config> configs =
        gemm_configs(products(region), device, region.precision(), {.bytes = region.bytes()},
                     region.anchor_as<RnnBackwardWeights>() != nullptr);
    for (Config& config : configs)
      config.scratch_bytes = build_kernel(region, config)->scratch_layout().total_bytes();
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

  // The large GEMMs: input, data gradient with the input weights, and weight gradients.
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
