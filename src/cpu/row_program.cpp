// Compiles pointwise programs to row instructions and runs them in L1-sized tiles.
#include "cpu/row_program.hpp"

#include <algorithm>
#include <vector>

#include "base/fail.hpp"
#include "cpu/integer_operand.hpp"
#include "cpu/kernels/convert.hpp"
#include "cpu/kernels/pointwise.hpp"
#include "cpu/kernels/stream.hpp"

namespace ashlar::cpu {

namespace {

using Step = PointwiseProgram::Step;

constexpr std::int64_t kTile = 256;  // elements: a handful of tiles stay in L1
// Tile of a program that computes from memory to memory without tile buffers. It loads at most one
// tensor.
constexpr std::int64_t kLongTile = 4096;
// Prefetch distance in bytes for large tensors: the hardware prefetcher stops at every page.
constexpr std::int64_t kPrefetchElements = 4096;
constexpr std::int64_t kLine = 64;  // bytes

// Address of a row's elements in a tensor.
struct Address {
  int pointer = 0;  // position in Bound::pointers_
  TensorId tensor = kNoTensor;
  DType dtype = f32;
  std::int64_t offset = 0;
  Dims strides;
  std::int64_t row_stride = 0;
  TensorId ragged_tensor = kNoTensor;
  DType ragged_dtype = i32;

  std::int64_t index(const std::int64_t* coords, const void* ragged_offsets) const {
    std::int64_t result = offset;
    for (int axis = 0; axis < strides.rank(); ++axis) result += coords[axis] * strides[axis];
    if (ragged_tensor == kNoTensor) return result;
    const auto row = coords[0];
    return result - row * strides[0] +
           (ragged_dtype == i64 ? static_cast<const std::int64_t*>(ragged_offsets)[row]
                                : static_cast<const std::int32_t*>(ragged_offsets)[row]);
  }
};

bool starts_line(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kLine == 0;
}

template <class T>
constexpr DType kRegisterDType = std::is_same_v<T, float> ? f32 : f64;

}  // namespace

template <class T>
struct RowProgram<T>::Code {
  using Rows = std::array<const T*, kMaxProgramRows>;  // the accumulators
  struct Instruction {
    Step::Kind kind = Step::Kind::load;
    int buffer = -1;  // tile buffer of its value; -1: read in place
    std::array<int, 3> args = {-1, -1, -1};
    std::size_t row = 0;  // accumulator
    Address address;
    LoadRow<T> load = nullptr;
    T constant = 0;
    Pointwise op = {};
    PointwiseRow<T> compute;
    T alpha1 = 1, alpha2 = 1;
    Rng random = {};
    IntegerOperand seed, offset;  // of its stream
    std::size_t stream = 0;       // position in Bound::streams_
    // Rounds to a narrower type: narrow, then widen.
    StoreRow<T> narrow = nullptr;
    LoadRow<T> widen = nullptr;
    int first_store = 0, last_store = 0;  // stores of this value
    bool once = false;    // the same for all elements of a row: computed once, in its own tile
    bool direct = false;  // computed directly into the memory of its first store
  };
  struct StoreInstruction {
    Address address;
    StoreRow<T> store = nullptr;
    bool as_it_is = false;  // contiguous elements of type T
    bool stream = false;    // non-temporal
    std::int64_t element_bytes = 0;
  };

  std::vector<Instruction> steps;
  std::vector<StoreInstruction> stores;
  int axis = 0;
  int rank = 0;
  std::int64_t row_step = 1;  // distance of a row's elements along the axis
  int result = -1;
  int buffers = 0;
  std::int64_t tile = kTile;  // elements per tile
  bool plain_load = false;    // a single plain load
  bool plain_store = false;   // a single store of the accumulator
  int streamed = -1;          // the first non-temporal store

  Code(const PointwiseProgram& program, int row_axis, const Graph* graph, std::int64_t distance,
       StoreTo store_to);
  Instruction compile(const Step& step, int& pointers, const Graph* graph) const;
  Address address_of(const View& view, int pointer, const Graph* graph) const;
  StoreInstruction compile_store(const View& view, int pointer, const Graph* graph,
                                 StoreTo store_to) const;
  void assign_buffers();

  // The first element of the row at `coords`.
  std::int64_t start_of(const Address& address, const Bound& bound,
                        const std::int64_t* coords) const {
    return address.index(coords, bound.ragged_offsets_[static_cast<std::size_t>(address.pointer)]);
  }
  void run(const Bound& bound, const std::int64_t* coords, std::int64_t count, const Rows& rows,
           T* destination) const;
  template <int kBuffers>
  void run_tiles(const Bound& bound, const std::int64_t* coords, std::int64_t count,
                 const Rows& rows, T* destination) const;
  void compute(const Instruction& step, T* const* values, const std::int64_t* coords,
               std::int64_t first, std::int64_t length, T* target, const RowHints& hints) const;
  void fill_once(const Instruction& step, const Bound& bound, std::int64_t index,
                 std::int64_t length, T* target) const;
  void round_trip(const Instruction& step, std::int64_t length, T* values) const;
  // Elements before the first streamed store reaches a cache-line boundary.
  std::int64_t elements_to_line(const Bound& bound, const std::int64_t* store_index) const;
};

// --- build

template <class T>
Address RowProgram<T>::Code::address_of(const View& view, int pointer, const Graph* graph) const {
  Address address{pointer,     view.tensor,  view.dtype,
                  view.offset, view.strides, view.strides[axis] * row_step};
  if (view.ragged_offset == kNoTensor) return address;
  if (graph == nullptr)
    fail(ErrorCode::internal, "a row program got ragged tensor {} without its graph", view.tensor);
  address.ragged_tensor = view.ragged_offset;
  address.ragged_dtype = graph->tensor(view.ragged_offset).dtype;
  return address;
}

template <class T>
auto RowProgram<T>::Code::compile(const Step& step, int& pointers, const Graph* graph) const
    -> Instruction {
  Instruction code;
  code.kind = step.kind;
  code.row = static_cast<std::size_t>(step.row);
  if (step.kind == Step::Kind::load) {
    code.address = address_of(step.view, pointers++, graph);
    code.load = load_row<T>(step.view.dtype);
  }
  if (step.kind == Step::Kind::random) {
    code.address = address_of(step.view, 0, graph);
    code.random = step.random;
    if (step.seed.present()) code.seed = IntegerOperand(ashlar::plain_load(step.seed));
    if (step.offset.present()) code.offset = IntegerOperand(ashlar::plain_load(step.offset));
    code.stream = static_cast<std::size_t>(
        std::count_if(steps.begin(), steps.end(),
                      [](const Instruction& other) { return other.kind == Step::Kind::random; }));
  }
  if (step.kind == Step::Kind::constant) code.constant = static_cast<T>(step.constant);
  if (step.kind == Step::Kind::compute) {
    code.args = step.args;
    code.op = step.op;
    code.alpha1 = static_cast<T>(step.op.alpha1);
    code.alpha2 = static_cast<T>(step.op.alpha2);
    if (step.op.mode == PointwiseMode::gen_index) {
      code.args = {-1, -1, -1};
      if (code.op.axis < 0) code.op.axis += rank;
    } else {
      code.compute = pointwise_row<T>(step.op.mode, step.compute);
    }
  }
  if (step.round_to && *step.round_to != kRegisterDType<T>) {
    code.narrow = store_row<T>(*step.round_to);
    code.widen = load_row<T>(*step.round_to);
  }
  return code;
}

template <class T>
auto RowProgram<T>::Code::compile_store(const View& view, int pointer, const Graph* graph,
                                        StoreTo store_to) const -> StoreInstruction {
  StoreInstruction store;
  store.address = address_of(view, pointer, graph);
  store.store = store_row<T>(view.dtype);
  const bool contiguous = store.address.row_stride == 1;
  store.as_it_is = contiguous && view.dtype == kRegisterDType<T>;
  store.stream = contiguous && store_to == StoreTo::memory && bit_width(view.dtype) % 8 == 0;
  store.element_bytes = bit_width(view.dtype) / 8;
  return store;
}

template <class T>
RowProgram<T>::Code::Code(const PointwiseProgram& program, int row_axis, const Graph* graph,
                          std::int64_t distance, StoreTo store_to)
    : axis(row_axis), rank(program.space.rank()), row_step(distance), result(program.result) {
  int pointers = 0;
  for (const Step& step : program.steps) steps.push_back(compile(step, pointers, graph));
  pointers = kMaxProgramLoads;
  for (int value = 0; value < static_cast<int>(steps.size()); ++value) {
    Instruction& step = steps[static_cast<std::size_t>(value)];
    step.first_store = static_cast<int>(stores.size());
    for (const PointwiseProgram::Store& store : program.stores) {
      if (store.value != value) continue;
      stores.push_back(compile_store(store.view, pointers++, graph, store_to));
      if (stores.back().stream && streamed < 0) streamed = static_cast<int>(stores.size()) - 1;
    }
    step.last_store = static_cast<int>(stores.size());
    step.once =
        value != result && (step.kind == Step::Kind::constant ||
                            (step.kind == Step::Kind::load && step.address.row_stride == 0));
    if (step.kind == Step::Kind::compute && value != result && step.narrow == nullptr &&
        step.first_store < step.last_store) {
      const StoreInstruction& first = stores[static_cast<std::size_t>(step.first_store)];
      const bool read_later = std::any_of(
          program.steps.begin() + value + 1, program.steps.end(), [&](const Step& later) {
            return std::find(later.args.begin(), later.args.end(), value) != later.args.end();
          });
      const bool stored_once = step.last_store - step.first_store == 1;
      step.direct = first.as_it_is && (!first.stream || (stored_once && !read_later));
    }
  }
  assign_buffers();
  const auto loads = std::count_if(steps.begin(), steps.end(), [](const Instruction& step) {
    return step.kind == Step::Kind::load;
  });
  const bool long_tile = buffers == 0 && loads <= 1 &&
                         std::all_of(steps.begin(), steps.end(), [](const Instruction& step) {
                           const bool scales = step.alpha1 != T{1} || step.alpha2 != T{1};
                           const bool copies =
                               step.last_store - step.first_store > (step.direct ? 1 : 0);
                           return !scales && !copies && step.narrow == nullptr;
                         });
  if (long_tile) tile = kLongTile;
  const bool single = steps.size() == 1 && steps[0].narrow == nullptr;
  plain_load = single && steps[0].kind == Step::Kind::load && stores.empty();
  plain_store = single && steps[0].kind == Step::Kind::accumulator && stores.size() == 1;
}

// Register allocation for tiles: assigns every value a tile buffer and reuses buffers after the
// last read of their value. The result is written directly to its destination.
template <class T>
void RowProgram<T>::Code::assign_buffers() {
  const int count = static_cast<int>(steps.size());
  std::vector<int> last_use(steps.size(), -1);
  for (int value = 0; value < count; ++value)
    for (int arg : steps[static_cast<std::size_t>(value)].args)
      if (arg >= 0) last_use[static_cast<std::size_t>(arg)] = value;
  std::vector<int> free_buffers;
  for (int value = 0; value < count; ++value) {
    Instruction& step = steps[static_cast<std::size_t>(value)];
    std::array<int, 3> args = step.args;
    std::sort(args.begin(), args.end());
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (args[i] < 0 || (i > 0 && args[i] == args[i - 1])) continue;
      const auto arg = static_cast<std::size_t>(args[i]);
      if (last_use[arg] == value && steps[arg].buffer >= 0 && !steps[arg].once)
        free_buffers.push_back(steps[arg].buffer);
    }
    if (value == result || step.direct) continue;
    if (step.once) {
      step.buffer = buffers++;
      continue;
    }
    const bool rounded = step.narrow != nullptr;
    const bool in_place =
        !rounded && (step.kind == Step::Kind::accumulator ||
                     (step.kind == Step::Kind::load && step.address.dtype == kRegisterDType<T> &&
                      step.address.row_stride == 1));
    if (in_place) continue;
    if (free_buffers.empty()) free_buffers.push_back(buffers++);
    step.buffer = free_buffers.back();
    free_buffers.pop_back();
    if (last_use[static_cast<std::size_t>(value)] < 0) free_buffers.push_back(step.buffer);
  }
}

// --- run

template <class T>
void RowProgram<T>::Code::compute(const Instruction& step, T* const* values,
                                  const std::int64_t* coords, std::int64_t first,
                                  std::int64_t length, T* target, const RowHints& hints) const {
  if (step.op.mode == PointwiseMode::gen_index) {
    const std::int64_t start = coords[step.op.axis];
    if (step.op.axis != axis) return void(std::fill_n(target, length, static_cast<T>(start)));
    for (std::int64_t i = 0; i < length; ++i)
      target[i] = static_cast<T>(start + (first + i) * row_step);
    return;
  }
  alignas(64) T scaled_x[kTile];
  alignas(64) T scaled_b[kTile];
  const auto value = [&](int operand) -> const T* {
    const int arg = step.args[static_cast<std::size_t>(operand)];
    return arg < 0 ? nullptr : values[arg];
  };
  const T* x = value(Pointwise::x);
  const T* b = value(Pointwise::b);
  if (step.alpha1 != T{1}) {
    scale_row(step.alpha1, x, length, scaled_x);
    x = scaled_x;
  }
  if (step.alpha2 != T{1} && b != nullptr) {
    scale_row(step.alpha2, b, length, scaled_b);
    b = scaled_b;
  }
  step.compute(step.op, x, b, value(Pointwise::predicate), length, target, hints);
}

template <class T>
void RowProgram<T>::Code::round_trip(const Instruction& step, std::int64_t length,
                                     T* values) const {
  alignas(64) std::byte narrowed[kTile * sizeof(double)] = {};
  step.narrow(values, length, narrowed, 0, 1);
  step.widen(narrowed, 0, 1, length, values);
}

template <class T>
void RowProgram<T>::Code::fill_once(const Instruction& step, const Bound& bound, std::int64_t index,
                                    std::int64_t length, T* target) const {
  if (step.kind == Step::Kind::constant)
    std::fill_n(target, length, step.constant);
  else
    step.load(bound.pointers_[static_cast<std::size_t>(step.address.pointer)], index, 0, length,
              target);
  if (step.narrow != nullptr) round_trip(step, length, target);
}

template <class T>
std::int64_t RowProgram<T>::Code::elements_to_line(const Bound& bound,
                                                   const std::int64_t* store_index) const {
  const StoreInstruction& store = stores[static_cast<std::size_t>(streamed)];
  const auto base = reinterpret_cast<std::uintptr_t>(
      bound.pointers_[static_cast<std::size_t>(store.address.pointer)]);
  const auto address =
      static_cast<std::int64_t>(base) + store_index[streamed] * store.element_bytes;
  return (kLine - address % kLine) % kLine / store.element_bytes;
}

template <class T>
template <int kBuffers>
void RowProgram<T>::Code::run_tiles(const Bound& bound, const std::int64_t* coords,
                                    std::int64_t count, const Rows& rows, T* destination) const {
  alignas(64) T tiles[kBuffers][kTile];
  std::array<std::int64_t, kMaxProgramSteps> load_index;
  std::array<std::int64_t, kMaxProgramStores> store_index;
  std::array<T*, kMaxProgramSteps> values;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind == Step::Kind::load)
      load_index[i] = start_of(steps[i].address, bound, coords);
    if (steps[i].kind == Step::Kind::random)
      load_index[i] = steps[i].address.index(coords, nullptr);
    if (!steps[i].once) continue;
    values[i] = tiles[steps[i].buffer];
    fill_once(steps[i], bound, load_index[i], std::min(kTile, count), values[i]);
  }
  for (std::size_t i = 0; i < stores.size(); ++i)
    store_index[i] = start_of(stores[i].address, bound, coords);
  const auto memory_of = [&](const Address& address) {
    return bound.pointers_[static_cast<std::size_t>(address.pointer)];
  };

  // Streams whole cache lines: the first tile ends at a line boundary.
  std::int64_t to_line = streamed < 0 ? 0 : elements_to_line(bound, store_index.data());
  for (std::int64_t first = 0, length = 0; first < count; first += length) {
    length = std::min(to_line > 0 ? to_line : tile, count - first);
    to_line = 0;
    // Prefetch for a later tile: one operand is prefetched while the first step computes or while
    // results are streamed, the others immediately.
    const std::byte* prefetch = nullptr;
    std::int64_t prefetch_bytes = 0;
    for (std::size_t i = 0; i < steps.size() && streamed >= 0; ++i) {
      const Address& address = steps[i].address;
      if (steps[i].kind != Step::Kind::load || address.row_stride != 1) continue;
      if (prefetch != nullptr) prefetch_to_l1(prefetch, prefetch_bytes);
      const std::int64_t bits = bit_width(address.dtype);
      prefetch = memory_of(address) + (load_index[i] + first) * bits / 8 + kPrefetchElements;
      prefetch_bytes = length * bits / 8;
    }
    const bool hint_fits = prefetch_bytes == length * static_cast<std::int64_t>(sizeof(T));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Instruction& step = steps[i];
      T* target = step.buffer >= 0                ? tiles[step.buffer]
                  : static_cast<int>(i) == result ? destination + first
                                                  : nullptr;
      int store_from = step.first_store;
      switch (step.kind) {
        case Step::Kind::accumulator:
          if (step.narrow == nullptr) {  // read in place, never written
            target = const_cast<T*>(rows[step.row]) + first;
          } else {
            std::copy_n(rows[step.row] + first, length, target);
          }
          break;
        case Step::Kind::load: {
          if (step.once) break;
          std::byte* data = memory_of(step.address);
          const std::int64_t index = load_index[i] + first * step.address.row_stride;
          if (step.buffer < 0 && static_cast<int>(i) != result)
            target = reinterpret_cast<T*>(data) + index;
          else
            step.load(data, index, step.address.row_stride, length, target);
          break;
        }
        case Step::Kind::random:
          random_row(step.random, bound.streams_[step.stream],
                     load_index[i] + first * step.address.row_stride, step.address.row_stride,
                     length, target);
          break;
        case Step::Kind::constant:
          if (!step.once) std::fill_n(target, length, step.constant);
          break;
        case Step::Kind::compute: {
          RowHints hints;
          if (step.direct) {
            const auto s = static_cast<std::size_t>(store_from++);
            target = reinterpret_cast<T*>(memory_of(stores[s].address)) + store_index[s] + first;
            hints.stream = stores[s].stream && starts_line(target);
          }
          if (hint_fits && prefetch_bytes > 0) {
            hints.prefetch = prefetch;
            prefetch_bytes = 0;
          }
          compute(step, values.data(), coords, first, length, target, hints);
          break;
        }
      }
      if (step.narrow != nullptr && !step.once) round_trip(step, length, target);
      values[i] = target;
      for (int s = store_from; s < step.last_store; ++s) {
        const StoreInstruction& store = stores[static_cast<std::size_t>(s)];
        std::byte* data = memory_of(store.address);
        const std::int64_t index =
            store_index[static_cast<std::size_t>(s)] + first * store.address.row_stride;
        if (!store.stream) {
          store.store(target, length, data, index, store.address.row_stride);
          continue;
        }
        alignas(64) std::byte narrowed[kTile * sizeof(double)];
        const void* source = target;
        if (!store.as_it_is) {
          store.store(target, length, narrowed, 0, 1);
          source = narrowed;
        }
        stream_row(source, length * store.element_bytes, data + index * store.element_bytes,
                   prefetch, prefetch_bytes);
        prefetch_bytes = 0;
      }
    }
  }
}

template <class T>
void RowProgram<T>::Code::run(const Bound& bound, const std::int64_t* coords, std::int64_t count,
                              const Rows& rows, T* destination) const {
  if (buffers <= 4) return run_tiles<4>(bound, coords, count, rows, destination);
  if (buffers <= 16) return run_tiles<16>(bound, coords, count, rows, destination);
  run_tiles<kMaxProgramSteps>(bound, coords, count, rows, destination);
}

template <class T>
void RowProgram<T>::Bound::store(const std::int64_t* coords, std::int64_t count,
                                 const T* accumulator) const {
  if (!code_->plain_store || code_->streamed >= 0)
    return code_->run(*this, coords, count, {accumulator}, nullptr);
  const auto& store = code_->stores[0];
  store.store(accumulator, count, pointers_[kMaxProgramLoads],
              code_->start_of(store.address, *this, coords), store.address.row_stride);
}

template <class T>
void RowProgram<T>::Bound::load(const std::int64_t* coords, std::int64_t count,
                                T* destination) const {
  if (!code_->plain_load) return code_->run(*this, coords, count, {}, destination);
  const auto& step = code_->steps[0];
  step.load(pointers_[0], code_->start_of(step.address, *this, coords), step.address.row_stride,
            count, destination);
}

template <class T>
void RowProgram<T>::Bound::apply(const std::int64_t* coords, std::int64_t count,
                                 const std::array<const T*, kMaxProgramRows>& rows,
                                 T* destination) const {
  code_->run(*this, coords, count, rows, destination);
}

template <class T>
bool RowProgram<T>::Bound::is_memory() const {
  return code_->plain_load && code_->steps[0].address.dtype == kRegisterDType<T> &&
         code_->steps[0].address.row_stride == 1;
}

template <class T>
auto RowProgram<T>::Bound::place(const std::int64_t* coords) const -> Place {
  if (!code_->plain_store || !code_->stores[0].as_it_is) return {};
  const auto& store = code_->stores[0];
  return {reinterpret_cast<T*>(pointers_[kMaxProgramLoads]) +
              code_->start_of(store.address, *this, coords),
          store.stream};
}

template <class T>
const T* RowProgram<T>::Bound::view(const std::int64_t* coords, std::int64_t count,
                                    T* buffer) const {
  if (is_memory())
    return reinterpret_cast<const T*>(pointers_[0]) +
           code_->start_of(code_->steps[0].address, *this, coords);
  load(coords, count, buffer);
  return buffer;
}

template <class T>
RowProgram<T>::RowProgram(const PointwiseProgram& program, int axis, const Graph* graph,
                          std::int64_t step, StoreTo store_to)
    : code_(std::make_shared<const Code>(program, axis, graph, step, store_to)) {}

template <class T>
auto RowProgram<T>::bind(const KernelContext& context) const -> Bound {
  Bound bound;
  bound.code_ = code_.get();
  const auto attach = [&](const Address& address) {
    const auto slot = static_cast<std::size_t>(address.pointer);
    bound.pointers_[slot] = static_cast<std::byte*>(context.pointer(address.tensor));
    bound.ragged_offsets_[slot] =
        address.ragged_tensor == kNoTensor ? nullptr : context.pointer(address.ragged_tensor);
  };
  for (const auto& step : code_->steps) {
    if (step.kind == Step::Kind::load) attach(step.address);
    if (step.kind == Step::Kind::random)
      bound.streams_[step.stream] = {
          static_cast<std::uint64_t>(step.seed.load(context, {}, step.random.seed)),
          static_cast<std::uint64_t>(step.offset.load(context, {}, step.random.offset))};
  }
  for (const auto& store : code_->stores) attach(store.address);
  return bound;
}

template <class T>
int RowProgram<T>::axis() const {
  return code_->axis;
}

int contiguous_views(const PointwiseProgram& program, int axis) {
  int count = 0;
  for (const auto& step : program.steps)
    if (step.kind == Step::Kind::load && step.view.strides[axis] == 1) ++count;
  for (const auto& store : program.stores)
    if (store.view.strides[axis] == 1) ++count;
  return count;
}

template class RowProgram<float>;
template class RowProgram<double>;

}  // namespace ashlar::cpu
