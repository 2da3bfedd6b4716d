// Scatter of slices: a counting sort gives each slice of y the list of its contributions; rows of y
// are then written once, in order. Runs of slices without contributions are copied as bytes.
#include <cstring>

#include "cpu/engines/scatter.hpp"
#include "cpu/kernels/convert.hpp"
#include "cpu/kernels/stream.hpp"
#include "cpu/moe_routing.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kSliceRow = 2048;    // elements of y at once
constexpr std::int64_t kScatterTasks = 64;  // ranges of slices and rows, for threads to share

template <class T>
constexpr DType kScatterRegister = std::is_same_v<T, float> ? f32 : f64;

Fold combining_fold(ScatterMode mode) {
  switch (mode) {
    case ScatterMode::mul: return Fold::product;
    case ScatterMode::min: return Fold::minimum;
    case ScatterMode::max: return Fold::maximum;
    default: return Fold::sum;
  }
}

template <class T>
class ScatterSlicesKernel final : public Kernel {
 public:
  ScatterSlicesKernel(const Region& region, const DeviceProps& device)
      : shape_(region),
        raw_(is_raw(region.prologues[Scatter::source])),
        y_(shape_.y),
        axis_(shape_.axes.axis),
        ops_(row_ops<T>()) {
    const PointwiseProgram& source = region.prologues[Scatter::source];
    PointwiseProgram base = input_program(region, Scatter::base), epilogue = region.epilogue;
    has_base_ = !base.empty();
    const View whole = raw_ ? source.steps[0].view : region.anchor->inputs[Scatter::source];
    for (int k = 0; k < shape_.axes.index_rank; ++k) steps_.push_back(whole.strides[axis_ + k]);
    from_ = whole;
    from_.dims = y_;
    from_.strides = Dims::filled(y_.rank(), 0);
    for (int a = 0; a < y_.rank(); ++a)
      if (a != axis_) from_.strides[a] = whole.strides[shape_.axes.of_selection(a)];
    if (raw_ && shape_.extent > 1) merge(base, epilogue);

    Dims others = y_;
    others[axis_] = 1;
    row_ = choose_row_axis(others, {&epilogue});
    rows_ = {others, row_, kSliceRow};
    const auto tasks = [&] { return rows_.count() * std::min(shape_.extent, kScatterTasks); };
    constexpr std::int64_t kShortest = 128;
    while (rows_.length > kShortest && tasks() < kScatterTasks / 4) rows_.length /= 2;
    parts_ = std::clamp<std::int64_t>(kScatterTasks / std::max<std::int64_t>(rows_.count(), 1), 1,
                                      std::max<std::int64_t>(shape_.extent, 1));

    const StoreTo results = store_to(epilogue, device);
    if (has_base_) base_ = RowProgram<T>(base, row_);
    result_ = RowProgram<T>(epilogue, row_, nullptr, 1, results);
    if (raw_)
      load_ = load_row<T>(from_.dtype);
    else
      source_ = RowProgram<T>(source, shape_.axes.of_selection(row_));
    find_runs(base, epilogue, results);

    count_ = element_count(shape_.index.dims);
    targets_ = scratch_layout_.add("slices", checked_mul(8, count_));
    lists_ = RowContributions(count_, checked_add(shape_.extent, 1), scratch_layout_);
  }

  void run(const KernelContext& context) const override {
    if (element_count(y_) == 0) return;
    Run now{sorted(context), {}, {}, {}, nullptr, nullptr, nullptr};
    if (raw_)
      now.from = static_cast<const std::byte*>(context.pointer(from_.tensor));
    else
      now.source = source_.bind(context);
    if (has_base_) now.base = base_.bind(context);
    now.result = result_.bind(context);
    if (run_bytes_ > 0) {
      now.to = static_cast<std::byte*>(context.pointer(run_to_.tensor));
      if (has_base_) now.old = static_cast<const std::byte*>(context.pointer(run_from_.tensor));
    }
    const std::int64_t tasks = rows_.count() * parts_;
    const std::int64_t elements = (element_count(y_) + element_count(shape_.source)) / tasks;
    parallel_for(tasks, items_per_thread(elements), [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t task = begin; task < end; ++task) {
        Coords at;
        const std::int64_t count = rows_.locate(task / parts_, at);
        write_slices(now, at, count, part_begin(now.lists, task % parts_),
                     part_begin(now.lists, task % parts_ + 1));
      }
    });
  }

 private:
  struct Run {
    RowContributions::Lists lists;
    typename RowProgram<T>::Bound source, base, result;
    const std::byte* from;  // source without a fused prologue
    // Of runs of slices: base and y.
    const std::byte* old;
    std::byte* to;
  };

  // Merges axes but the one that is scattered along: a view that only it has a stride in keeps it
  // apart.
  void merge(PointwiseProgram& base, PointwiseProgram& epilogue) {
    PointwiseProgram moved;
    moved.space = y_;
    View marker = from_;
    marker.strides = Dims::filled(y_.rank(), 0);
    marker.strides[axis_] = 1;
    moved.steps.push_back({.view = from_});
    moved.steps.push_back({.view = marker});
    merge_axes({&moved, &base, &epilogue}, {&y_});
    from_ = moved.steps[0].view;
    const Dims& marked = moved.steps[1].view.strides;
    axis_ = static_cast<int>(std::find(marked.begin(), marked.end(), 1) - marked.begin());
  }

  // Whether slices without contributions are contiguous bytes of base (or zeros) and y.
  void find_runs(const PointwiseProgram& base, const PointwiseProgram& epilogue, StoreTo results) {
    if (!epilogue.is_plain_store() || rows_.chunks() != 1) return;
    run_to_ = epilogue.stores[0].view;
    const std::int64_t bits = bit_width(run_to_.dtype);
    const auto packed = [&](const View& view) {
      return view.strides[row_] == 1 && view.strides[axis_] == y_[row_];
    };
    if (bits % 8 != 0 || !packed(run_to_)) return;
    if (has_base_) {
      if (!is_raw(base)) return;
      run_from_ = base.steps[0].view;
      if (run_from_.dtype != run_to_.dtype || !packed(run_from_)) return;
    } else if (run_to_.dtype == e8m0) {
      return;  // 0 is not a byte of zeros
    }
    run_bytes_ = bits / 8;
    stream_ = results == StoreTo::memory;
  }

  RowContributions::Lists sorted(const KernelContext& context) const {
    auto* targets = context.scratch<std::int64_t>(scratch_layout_, targets_);
    const void* index = context.pointer(shape_.index.tensor);
    const int last = shape_.index.dims.rank() - 1;
    const RowLoop rows{shape_.index.dims, last, std::max<std::int64_t>(shape_.index.dims[last], 1)};
    std::int64_t filled = 0;
    for (std::int64_t row = 0; filled < count_; ++row) {
      Coords at;
      const std::int64_t count = rows.locate(row, at);
      shape_.positions.load(index, element_at(shape_.index, at), shape_.index.strides[last], count,
                            targets + filled);
      filled += count;
    }
    // Indices outside form a last slice, which is never written.
    std::replace(targets, targets + count_, std::int64_t{-1}, shape_.extent);
    return lists_.sort(targets, count_, context, scratch_layout_);
  }

  // Splits the slices so that each part has its share of rows to write and contributions to read.
  std::int64_t part_begin(const RowContributions::Lists& lists, std::int64_t part) const {
    const std::int64_t extent = shape_.extent;
    if (part == parts_) return extent;
    const std::int64_t wanted = (lists.start[extent] + extent) / parts_ * part;
    std::int64_t low = 0, high = extent;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (lists.start[middle] + middle < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  void write_slices(const Run& now, Coords at, std::int64_t count, std::int64_t begin,
                    std::int64_t end) const {
    const std::int64_t* start = now.lists.start;
    for (std::int64_t slice = begin; slice < end;) {
      std::int64_t next = slice;
      while (next < end && start[next] == start[next + 1]) ++next;
      if (next > slice) write_untouched(now, at, count, slice, next);
      slice = next;
      if (slice == end) return;
      write_combined(now, at, count, slice++);
    }
  }

  void write_untouched(const Run& now, Coords at, std::int64_t count, std::int64_t begin,
                       std::int64_t end) const {
    alignas(64) static constexpr T kZeros[kSliceRow] = {};
    alignas(64) T buffer[kSliceRow];
    std::int64_t& slice = at[static_cast<std::size_t>(axis_)];
    slice = begin;
    if (run_bytes_ > 0) {
      const std::int64_t bytes = (end - begin) * count * run_bytes_;
      const std::byte* from =
          now.old == nullptr ? nullptr : now.old + element_at(run_from_, at) * run_bytes_;
      return copy(from, bytes, now.to + element_at(run_to_, at) * run_bytes_);
    }
    for (; slice < end; ++slice)
      now.result.store(at.data(), count,
                       has_base_ ? now.base.view(at.data(), count, buffer) : kZeros);
  }

  // Copies bytes, or writes zeros if `from` is null.
  void copy(const std::byte* from, std::int64_t bytes, std::byte* to) const {
    if (from == to) return;  // y is in the memory of base
    constexpr std::int64_t kPiece = 4096;
    alignas(64) static constexpr std::byte kZeros[kPiece] = {};
    if (!stream_ && from == nullptr)
      return void(std::memset(to, 0, static_cast<std::size_t>(bytes)));
    if (!stream_) return void(std::memcpy(to, from, static_cast<std::size_t>(bytes)));
    for (std::int64_t done = 0; done < bytes; done += kPiece) {
      const std::int64_t piece = std::min(kPiece, bytes - done);
      if (from == nullptr)
        stream_row(kZeros, piece, to + done);
      else
        stream_row(from + done, piece, to + done, from + done + kPiece, piece);
    }
  }

  void write_combined(const Run& now, Coords at, std::int64_t count, std::int64_t slice) const {
    alignas(64) T row[kSliceRow], buffer[kSliceRow];
    at[static_cast<std::size_t>(axis_)] = slice;
    const std::int64_t *next = now.lists.list + now.lists.start[slice],
                       *end = now.lists.list + now.lists.start[slice + 1];
    const std::int64_t start = raw_ ? element_at(from_, at) : 0;
    if (shape_.op.combine == ScatterMode::set)
      return now.result.store(at.data(), count,
                              contribution(now, at, start, count, end[-1], buffer));
    if (has_base_) {
      now.base.load(at.data(), count, row);
    } else {
      std::fill(row, row + count, T{0});
    }
    const Fold fold = combining_fold(shape_.op.combine);
    for (; next != end; ++next)
      ops_.fold_into(fold, Premap::identity, contribution(now, at, start, count, *next, buffer),
                     count, row);
    now.result.store(at.data(), count, row);
  }

  // The row of source at position `place` of the index; `element`: its start at position 0.
  const T* contribution(const Run& now, const Coords& at, std::int64_t element, std::int64_t count,
                        std::int64_t place, T* buffer) const {
    const Dims& dims = shape_.index.dims;
    Coords from{};
    for (int k = dims.rank() - 1; k >= 0; --k) {
      const std::int64_t i = k == 0 ? place : place % dims[k];
      if (k > 0) place /= dims[k];
      element += i * steps_[k];
      from[static_cast<std::size_t>(shape_.axes.axis + k)] = i;
    }
    if (raw_) {
      const std::int64_t step = from_.strides[row_];
      if (step == 1 && from_.dtype == kScatterRegister<T>)
        return reinterpret_cast<const T*>(now.from) + element;
      load_(now.from, element, step, count, buffer);
      return buffer;
    }
    for (int a = 0; a < y_.rank(); ++a)
      if (a != axis_)
        from[static_cast<std::size_t>(shape_.axes.of_selection(a))] =
            at[static_cast<std::size_t>(a)];
    return now.source.view(from.data(), count, buffer);
  }

  ScatterShape shape_;
  bool raw_, has_base_ = false, stream_ = false;
  Dims y_;              // with merged axes if source has no prologue
  int axis_, row_ = 0;  // axes of y_: scattered along, and that of rows
  View from_;           // source over y_, without the axes of the index
  Dims steps_;          // of source along the axes of the index
  RowLoop rows_;
  std::int64_t parts_ = 1, count_ = 0;
  std::int64_t run_bytes_ = 0;  // per element; 0: slices are not contiguous
  View run_from_, run_to_;
  const RowOps<T>& ops_;
  LoadRow<T> load_ = nullptr;
  RowProgram<T> source_, base_, result_;
  RowContributions lists_;
  int targets_ = -1;
};

}  // namespace

std::unique_ptr<Kernel> build_scatter_slices(const Region& region, const DeviceProps& device) {
  return build_for_precision<ScatterSlicesKernel>(region, device);
}

}  // namespace ashlar::cpu
