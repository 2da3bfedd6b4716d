// top_k along any axis: a search for candidates better than the k-th element so far, or a radix
// sort of whole lines.
#include "cpu/box_space.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/pooling.hpp"
#include "cpu/engines/top_k_entries.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kLinesAtOnce = 16;  // lines side by side: a cache line of floats

// Two traversals: rows along the lines, where an item is one line; or rows across, where an item is
// a group of lines, copied into a buffer. A few long lines are split into parts for the threads;
// the entries have a total order, so the parts do not change the result.
struct TopKShape {
  TopKPlan plan;
  int axis, row_axis;
  std::int64_t width = 1, parts = 1;
  RowLoop items;

  TopKShape(const Region& region, std::int64_t threads) {
    constexpr std::int64_t kGroupElements = 1 << 18, kPartElements = 16384;
    const TopK& op = *region.anchor_as<TopK>();
    const PointwiseProgram& x = region.prologues[TopK::x];
    Dims lines = x.space;
    axis = static_cast<int>(op.axis);
    plan = {lines[axis], op.k, op.largest};
    lines[axis] = 1;
    row_axis = choose_row_axis(x.space, {&x});
    width = std::min(kLinesAtOnce,
                     kGroupElements / std::clamp<std::int64_t>(plan.length, 1, kGroupElements));
    if (row_axis == axis || x.space[row_axis] < 4 || width < 4) {
      row_axis = axis;
      width = 1;
    }
    items = {lines, row_axis, width};
    const std::int64_t count = std::max<std::int64_t>(items.count(), 1);
    if (along() && !plan.sorts_all() && count < threads)
      parts = std::max<std::int64_t>(
          1, std::min(threads / count, plan.length / std::max(kPartElements, 4 * plan.k)));
  }
  bool along() const { return row_axis == axis; }
  std::int64_t first_of(std::int64_t part) const { return plan.length * part / parts; }
  TopKPlan plan_of(std::int64_t part) const {
    const std::int64_t length = first_of(part + 1) - first_of(part);
    return {length, std::min(plan.k, length), plan.largest};
  }
};

template <class T, class Entry>
class TopKKernel final : public Kernel {
 public:
  TopKKernel(const Region& region, std::int64_t threads)
      : TopKKernel(region, TopKShape(region, threads), threads) {}

  void run(const KernelContext& context) const override {
    if (shape_.plan.k == 0) return;
    const Run run{x_.bind(context),
                  values_.bind(context),
                  index_.bind(context),
                  context.scratch<T>(scratch_layout_, lines_reservation_),
                  context.scratch<Entry>(scratch_layout_, entries_reservation_),
                  context.scratch<Entry>(scratch_layout_, buffer_reservation_)};
    if (shape_.parts > 1) return run_parts(context, run);
    parallel_for(shape_.items.count(), grain_, [&](std::int64_t begin, std::int64_t end, int t) {
      T* const lines = run.lines + t * shape_.width * shape_.plan.length;
      Entry* const entries = run.entries + t * shape_.width * shape_.plan.capacity();
      Entry* const buffer = run.buffer + t * shape_.plan.buffer();
      for (std::int64_t item = begin; item < end; ++item) {
        Coords coords{};
        const std::int64_t width = shape_.items.locate(item, coords);
        if (shape_.along()) {
          const T* line = run.x.view(coords.data(), shape_.plan.length, lines);
          select_top_k(shape_.plan, rows_, line, 0, entries, buffer);
          store_line(
              run, coords, [&](std::int64_t i) { return line[i]; }, entries);
        } else {
          load_lines(run, coords, width, lines);
          for (std::int64_t w = 0; w < width; ++w)
            select_top_k(shape_.plan, rows_, lines + w * shape_.plan.length, 0,
                         entries + w * shape_.plan.capacity(), buffer);
          store_lines(run, coords, width, lines, entries);
        }
      }
    });
  }

 private:
  struct Run {
    typename RowProgram<T>::Bound x, values;
    Operand<double>::Bound index;
    T* lines;
    Entry *entries, *buffer;
  };

  TopKKernel(const Region& region, const TopKShape& shape, std::int64_t threads)
      : shape_(shape),
        rows_(top_k_rows<T>()),
        grain_(items_per_thread(shape.plan.length * shape.width)),
        x_(region.prologues[TopK::x], shape.row_axis),
        values_(region.epilogue, shape.row_axis),
        index_(output_program(region.anchor->outputs, TopK::index), region.epilogue.space,
               shape.row_axis) {
    const std::int64_t groups = std::max(threads, shape.parts);
    const auto add = [&](const char* name, std::int64_t count, std::size_t bytes) {
      return scratch_layout_.add(name, count * groups * static_cast<std::int64_t>(bytes));
    };
    lines_reservation_ = add("lines", shape.plan.length * shape.width, sizeof(T));
    entries_reservation_ = add("entries", shape.plan.capacity() * shape.width, sizeof(Entry));
    buffer_reservation_ = add("sort buffer", shape.plan.buffer(), sizeof(Entry));
  }

  // Every part selects its own k; the best of these are those of the line.
  void run_parts(const KernelContext&, const Run& run) const {
    const std::int64_t k = shape_.plan.k, capacity = shape_.plan.capacity();
    for (std::int64_t item = 0; item < shape_.items.count(); ++item) {
      Coords coords{};
      shape_.items.locate(item, coords);
      parallel_for(shape_.parts, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t part = begin; part < end; ++part) {
          const TopKPlan plan = shape_.plan_of(part);
          Coords start = coords;
          start[static_cast<std::size_t>(shape_.axis)] = shape_.first_of(part);
          const T* x = run.x.view(start.data(), plan.length, run.lines + part * shape_.plan.length);
          select_top_k(plan, rows_, x, shape_.first_of(part), run.entries + part * capacity,
                       static_cast<Entry*>(nullptr));
        }
      });
      for (std::int64_t part = 1; part < shape_.parts; ++part)
        std::copy_n(run.entries + part * capacity, k, run.entries + part * k);
      std::nth_element(run.entries, run.entries + (k - 1), run.entries + shape_.parts * k);
      std::sort(run.entries, run.entries + k);
      const auto value_of = [&](std::int64_t i) {
        Coords at = coords;
        at[static_cast<std::size_t>(shape_.axis)] = i;
        T value;
        run.x.load(at.data(), 1, &value);
        return value;
      };
      store_line(run, coords, value_of, run.entries);
    }
  }

  void load_lines(const Run& run, Coords coords, std::int64_t width, T* lines) const {
    alignas(64) T buffer[kLinesAtOnce];
    const std::int64_t n = shape_.plan.length;
    for (std::int64_t i = 0; i < n; ++i) {
      coords[static_cast<std::size_t>(shape_.axis)] = i;
      const T* row = run.x.view(coords.data(), width, buffer);
      for (std::int64_t w = 0; w < width; ++w) lines[w * n + i] = row[w];
    }
  }

  template <class ValueOf>
  void store_line(const Run& run, Coords coords, const ValueOf& value_of,
                  const Entry* entries) const {
    constexpr std::int64_t kPiece = 512;
    alignas(64) T values[kPiece];
    alignas(64) double places[kPiece];
    for (std::int64_t j = 0; j < shape_.plan.k; j += kPiece) {
      const std::int64_t count = std::min(kPiece, shape_.plan.k - j);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t place = entries[j + i].position();
        values[i] = value_of(place);
        places[i] = static_cast<double>(place);
      }
      coords[static_cast<std::size_t>(shape_.axis)] = j;
      run.values.store(coords.data(), count, values);
      run.index.store(coords, count, places);
    }
  }

  void store_lines(const Run& run, Coords coords, std::int64_t width, const T* lines,
                   const Entry* entries) const {
    alignas(64) T values[kLinesAtOnce];
    alignas(64) double places[kLinesAtOnce];
    for (std::int64_t j = 0; j < shape_.plan.k; ++j) {
      for (std::int64_t w = 0; w < width; ++w) {
        const std::int64_t place = entries[w * shape_.plan.capacity() + j].position();
        values[w] = lines[w * shape_.plan.length + place];
        places[w] = static_cast<double>(place);
      }
      coords[static_cast<std::size_t>(shape_.axis)] = j;
      run.values.store(coords.data(), width, values);
      run.index.store(coords, width, places);
    }
  }

  TopKShape shape_;
  const TopKRows<T>& rows_;
  std::int64_t grain_;
  int lines_reservation_, entries_reservation_, buffer_reservation_;
  RowProgram<T> x_, values_;
  Operand<double> index_;
};

std::unique_ptr<Kernel> build_top_k(const Region& region, const DeviceProps& device) {
  const TopK& op = *region.anchor_as<TopK>();
  const std::int64_t threads = std::max(device.compute_units, 1);
  const std::int64_t length = region.prologues[TopK::x].space[static_cast<int>(op.axis)];
  if (region.precision() == f64 || length > std::int64_t{1} << 32)
    return std::make_unique<TopKKernel<double, DoubleEntry>>(region, threads);
  return std::make_unique<TopKKernel<float, FloatEntry>>(region, threads);
}

class TopKEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.top_k"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "the k largest or smallest elements along an axis, and sorts";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<TopK>()) return Support::other_operation("the anchor is not top_k");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (region.prologues[TopK::x].space.empty()) return Support::no("the tensor has no axes");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const TopKShape shape(region, std::max(device.compute_units, 1));
    const double fraction = shape.plan.sorts_all() ? 0.05 : 0.4;
    const std::int64_t scratch = build_top_k(region, device)->scratch_layout().total_bytes();
    return {make_config({{"lines", shape.width}, {"parts", shape.parts}},
                        row_cost(region, fraction), scratch)};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    return build_top_k(region, device);
  }
};

}  // namespace

const Engine& top_k_engine() {
  static const TopKEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
