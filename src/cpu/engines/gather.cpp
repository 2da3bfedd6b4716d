// Gather as rows of y: copies of rows of x where the index is constant along a row, else elements
// picked one by one. The axes of all tensors are merged first, so that whole slices become rows.
#include <cstring>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/index_rows.hpp"
#include "cpu/engines/pooling.hpp"
#include "cpu/kernels/convert.hpp"
#include "cpu/kernels/stream.hpp"
#include "cpu/store_to.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kGatherRow = 2048;  // elements of y at once
constexpr std::int64_t kWidestElement = 8;

// y[at] = x[from(at) + position * step], where position = index[where(at)] and all views have the
// space of y.
struct GatherShape {
  bool raw;  // x is loaded without a fused prologue
  Dims y;
  View x, index;  // x at position 0
  PointwiseProgram epilogue;
  std::int64_t step, extent;
  SelectedAxes axes;
  RowLoop rows;
  IndexRows positions;

  explicit GatherShape(const Region& region)
      : raw(is_raw(region.prologues[Gather::x])),
        y(region.epilogue.space),
        epilogue(region.epilogue),
        axes(*region.anchor_as<Gather>(), region.prologues[Gather::index].space.rank()) {
    const PointwiseProgram& source = region.prologues[Gather::x];
    const View whole = raw ? source.steps[0].view : region.anchor->inputs[Gather::x];
    const View indices = region.prologues[Gather::index].steps[0].view;
    step = whole.strides[axes.axis];
    extent = source.space[axes.axis];
    positions = IndexRows(indices.dtype, extent,
                          region.anchor_as<Gather>()->out_of_range == OutOfRange::clamp);
    PointwiseProgram moved;
    moved.space = y;
    moved.steps.push_back({.view = axes.whole_over(y, whole)});
    moved.steps.push_back({.view = axes.index_over(y, indices)});
    // A fused prologue has coordinates of x.
    if (raw) merge_axes({&moved, &epilogue}, {&y});
    x = moved.steps[0].view;
    index = moved.steps[1].view;
    if (extent == 0) x.offset = 0, x.strides = Dims::filled(y.rank(), 0);  // never read
    rows = {y, row_axis(), kGatherRow};
  }

  bool index_varies() const { return y[rows.axis] > 1 && index.strides[rows.axis] != 0; }
  std::int64_t position(const void* indices, const Coords& at) const {
    return positions.load_one(indices, element_at(index, at));
  }
  std::int64_t grain() const { return items_per_thread(std::min(kGatherRow, y[rows.axis])); }

 private:
  int row_axis() const {
    PointwiseProgram reads;
    reads.space = y;
    View picked = x;  // strided where the index varies
    for (int a = 0; a < y.rank(); ++a)
      if (index.strides[a] != 0 && y[a] > 1) picked.strides[a] = 2;
    reads.steps.push_back({.view = picked});
    return choose_row_axis(y, {&epilogue, &reads});
  }
};

// --- elements of `bytes` bytes

// to[i * to_step] = from[i * from_step + positions[i] * position_step], or `absent` outside.
template <std::int64_t kBytes>
void pick(const std::byte* from, std::int64_t from_step, const std::int64_t* positions,
          std::int64_t position_step, std::int64_t count, const std::byte* absent, std::byte* to,
          std::int64_t to_step) {
  const auto each = [&](std::int64_t along, std::int64_t apart, std::int64_t written) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::byte* element = from + (i * along + positions[i] * apart) * kBytes;
      std::memcpy(to + i * written * kBytes, positions[i] < 0 ? absent : element, kBytes);
    }
  };
  // The usual steps as constants.
  if (from_step == 0 && position_step == 1 && to_step == 1) return each(0, 1, 1);
  if (from_step == 1 && to_step == 1) return each(1, position_step, 1);
  each(from_step, position_step, to_step);
}

using Pick = decltype(&pick<1>);
Pick pick_of(std::int64_t bytes) {
  switch (bytes) {
    case 1: return pick<1>;
    case 2: return pick<2>;
    case 4: return pick<4>;
    default: return pick<8>;
  }
}

// Bytes per element; 0 for types of less than a byte.
std::int64_t bytes_of_element(DType dtype) { return bit_width(dtype) / 8; }

bool copies_bytes(const GatherShape& shape) {
  return shape.raw && shape.epilogue.is_plain_store() &&
         shape.epilogue.stores[0].view.dtype == shape.x.dtype &&
         bytes_of_element(shape.x.dtype) > 0;
}

// Without conversion or fused work.
class GatherCopyKernel final : public Kernel {
 public:
  GatherCopyKernel(const GatherShape& shape, StoreTo store_to)
      : shape_(shape),
        y_(shape.epilogue.stores[0].view),
        bytes_(bytes_of_element(shape.x.dtype)),
        from_step_(shape.x.strides[shape.rows.axis]),
        to_step_(y_.strides[shape.rows.axis]),
        stream_(store_to == StoreTo::memory && to_step_ == 1),
        pick_(pick_of(bytes_)) {
    std::byte zero[kWidestElement] = {};
    store_element(y_.dtype, zero, 0, 0.0);
    for (std::int64_t i = 0; i < kGatherRow; ++i)
      std::memcpy(zeros_ + i * bytes_, zero, static_cast<std::size_t>(bytes_));
  }

  void run(const KernelContext& context) const override {
    const Pointers at{static_cast<const std::byte*>(context.pointer(shape_.x.tensor)),
                      context.pointer(shape_.index.tensor),
                      static_cast<std::byte*>(context.pointer(y_.tensor))};
    parallel_for(shape_.rows.count(), shape_.grain(),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   shape_.index_varies() ? pick_rows(at, begin, end) : copy_rows(at, begin, end);
                 });
  }

 private:
  struct Pointers {
    const std::byte* x;
    const void* index;
    std::byte* y;
  };
  struct Row {
    const std::byte* from;  // null: outside
    std::byte* to;
    std::int64_t count;
  };
  Row row(const Pointers& pointers, std::int64_t number) const {
    Coords at;
    const std::int64_t count = shape_.rows.locate(number, at);
    const std::int64_t position = shape_.position(pointers.index, at);
    return {position < 0
                ? nullptr
                : pointers.x + (element_at(shape_.x, at) + position * shape_.step) * bytes_,
            pointers.y + element_at(y_, at) * bytes_, count};
  }

  void copy_rows(const Pointers& pointers, std::int64_t begin, std::int64_t end) const {
    constexpr std::int64_t kPrefetch =
        1024;  // bytes of the next row: the hardware fetches the rest
    alignas(64) static constexpr std::int64_t kHere[kGatherRow] = {};
    Row next = row(pointers, begin);
    for (std::int64_t number = begin; number < end; ++number) {
      const Row now = next;
      if (number + 1 < end) next = row(pointers, number + 1);
      const std::int64_t size = now.count * bytes_;
      const bool fetches = from_step_ == 1 && next.from != nullptr;
      const std::int64_t ahead = fetches ? std::min(next.count * bytes_, kPrefetch) : 0;
      const std::byte* from = now.from == nullptr ? zeros_ : now.from;
      const std::int64_t from_step = now.from == nullptr ? 0 : from_step_;
      const bool contiguous = from_step_ == 1 || now.from == nullptr;
      if (contiguous && stream_) {
        stream_row(from, size, now.to, next.from, ahead);
      } else if (contiguous && to_step_ == 1) {
        prefetch_to_l1(next.from, ahead);
        std::memcpy(now.to, from, static_cast<std::size_t>(size));
      } else {
        pick_(from, from_step, kHere, 0, now.count, zeros_, now.to, to_step_);
      }
    }
  }

  void pick_rows(const Pointers& pointers, std::int64_t begin, std::int64_t end) const {
    alignas(64) std::int64_t positions[kGatherRow];
    alignas(64) std::byte picked[kGatherRow * kWidestElement];
    const int axis = shape_.rows.axis;
    std::int64_t loaded = -1;  // where the positions come from: rows may share them
    for (std::int64_t number = begin; number < end; ++number) {
      Coords at;
      const std::int64_t count = shape_.rows.locate(number, at);
      const std::int64_t where = element_at(shape_.index, at);
      if (where != loaded)
        shape_.positions.load(pointers.index, where, shape_.index.strides[axis], count, positions);
      loaded = where;
      std::byte* to = pointers.y + element_at(y_, at) * bytes_;
      pick_(pointers.x + element_at(shape_.x, at) * bytes_, from_step_, positions, shape_.step,
            count, zeros_, stream_ ? picked : to, stream_ ? 1 : to_step_);
      if (stream_) stream_row(picked, count * bytes_, to);
    }
  }

  GatherShape shape_;
  View y_;
  std::int64_t bytes_, from_step_, to_step_;
  bool stream_;
  Pick pick_;
  alignas(64) std::byte zeros_[kGatherRow * kWidestElement];
};

// With conversion or fused work: rows of T.
template <class T>
class GatherKernel final : public Kernel {
 public:
  GatherKernel(const Region& region, const GatherShape& shape, StoreTo store_to)
      : shape_(shape),
        bytes_(bytes_of_element(shape.x.dtype)),
        is_contiguous_(shape.raw && shape.x.strides[shape.rows.axis] == 1),
        load_(load_row<T>(shape.x.dtype)),
        pick_(pick_of(bytes_)),
        result_(shape.epilogue, shape.rows.axis, nullptr, 1, store_to) {
    const int along = shape.axes.of_whole(shape.rows.axis);
    if (!shape.raw) source_ = RowProgram<T>(region.prologues[Gather::x], std::max(along, 0));
  }

  void run(const KernelContext& context) const override {
    Inputs in{context.pointer(shape_.index.tensor), nullptr, {}};
    if (shape_.raw)
      in.x = static_cast<const std::byte*>(context.pointer(shape_.x.tensor));
    else
      in.source = source_.bind(context);
    const auto result = result_.bind(context);
    parallel_for(shape_.rows.count(), shape_.grain(),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   alignas(64) T row[kGatherRow];
                   for (std::int64_t number = begin; number < end; ++number) {
                     Coords at;
                     const std::int64_t count = shape_.rows.locate(number, at);
                     if (number + 1 < end) prefetch_row(in, number + 1);
                     result.store(at.data(), count,
                                  shape_.index_varies() ? pick_row(in, at, count, row)
                                                        : copy_row(in, at, count, row));
                   }
                 });
  }

 private:
  struct Inputs {
    const void* index;
    const std::byte* x;
    typename RowProgram<T>::Bound source;  // with a fused prologue
  };

  Coords in_x(const Coords& at, std::int64_t position) const {
    Coords from{};
    for (int a = 0; a < shape_.y.rank(); ++a)
      if (const int to = shape_.axes.of_whole(a); to >= 0)
        from[static_cast<std::size_t>(to)] = at[static_cast<std::size_t>(a)];
    from[static_cast<std::size_t>(shape_.axes.axis)] = position;
    return from;
  }

  void prefetch_row(const Inputs& in, std::int64_t number) const {
    constexpr std::int64_t kShort = 256, kPrefetch = 1024;  // bytes
    const std::int64_t size = shape_.y[shape_.rows.axis] * bytes_;
    if (shape_.index_varies() || !is_contiguous_ || size < kShort) return;
    Coords at;
    shape_.rows.locate(number, at);
    const std::int64_t position = shape_.position(in.index, at);
    if (position < 0) return;
    const std::int64_t element = element_at(shape_.x, at) + position * shape_.step;
    prefetch_to_l1(in.x + element * bytes_, std::min(size, kPrefetch));
  }

  // The values of a row, in `row` unless they are in memory as T.
  const T* copy_row(const Inputs& in, const Coords& at, std::int64_t count, T* row) const {
    const std::int64_t position = shape_.position(in.index, at);
    if (position < 0) {
      std::fill(row, row + count, T{0});
    } else if (shape_.raw) {
      const std::int64_t element = element_at(shape_.x, at) + position * shape_.step;
      if (is_contiguous_ && shape_.x.dtype == (sizeof(T) == 4 ? f32 : f64))
        return reinterpret_cast<const T*>(in.x) + element;
      load_(in.x, element, shape_.x.strides[shape_.rows.axis], count, row);
    } else if (shape_.axes.of_whole(shape_.rows.axis) >= 0) {
      in.source.load(in_x(at, position).data(), count, row);
    } else {  // one element of x: the index has extent or stride 0 along the row
      fill_row(in, in_x(at, position), count, row);
    }
    return row;
  }
  void fill_row(const Inputs& in, const Coords& from, std::int64_t count, T* row) const {
    T value;
    in.source.load(from.data(), 1, &value);
    std::fill(row, row + count, value);
  }

  const T* pick_row(const Inputs& in, const Coords& at, std::int64_t count, T* row) const {
    alignas(64) std::int64_t positions[kGatherRow];
    const int axis = shape_.rows.axis;
    shape_.positions.load(in.index, element_at(shape_.index, at), shape_.index.strides[axis], count,
                          positions);
    const std::int64_t start = element_at(shape_.x, at), step = shape_.x.strides[axis];
    if (shape_.raw && bytes_ > 0) {
      static constexpr std::byte kAbsent[kWidestElement] = {};
      alignas(64) std::byte picked[kGatherRow * kWidestElement];
      pick_(in.x + start * bytes_, step, positions, shape_.step, count, kAbsent, picked, 1);
      load_(picked, 0, 1, count, row);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (positions[i] < 0) {
        row[i] = T{0};
      } else if (!shape_.raw) {
        Coords here = at;
        here[static_cast<std::size_t>(axis)] += i;
        in.source.load(in_x(here, positions[i]).data(), 1, row + i);
      } else if (bytes_ == 0) {
        load_(in.x, start + i * step + positions[i] * shape_.step, 1, 1, row + i);
      }
    }
    return row;
  }

  GatherShape shape_;
  std::int64_t bytes_;
  bool is_contiguous_;  // rows of x, without a fused prologue
  LoadRow<T> load_;
  Pick pick_;
  RowProgram<T> source_, result_;
};

class GatherEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.gather"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "gather as copies of rows or picked elements";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Gather>()) return Support::other_operation("the anchor is not a gather");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (!is_raw(region.prologues[Gather::index])) return Support::no("the index is computed");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.5))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    const GatherShape shape(region);
    const StoreTo results = store_to(region.epilogue, device);
    if (copies_bytes(shape)) return std::make_unique<GatherCopyKernel>(shape, results);
    if (region.precision() == f64)
      return std::make_unique<GatherKernel<double>>(region, shape, results);
    return std::make_unique<GatherKernel<float>>(region, shape, results);
  }
};

}  // namespace

const Engine& gather_engine() {
  static const GatherEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
