// int8 matmul with i32 accumulators.
#include <algorithm>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/gemm/int8_gemm_kernel.hpp"
#include "cpu/gemm/orientation.hpp"
#include "cpu/kernels/convert.hpp"
#include "cpu/operand.hpp"

namespace ashlar::cpu {

namespace {

// Offsets of an operand in every batch of C; a single one if it is broadcast.
std::vector<std::int64_t> batch_offsets(const Dims& c, const Dims& dims, const Dims& strides) {
  const int axes = c.rank() - 2;
  std::int64_t batches = 1;
  for (int axis = 0; axis < axes; ++axis) batches *= c[axis];
  std::vector<std::int64_t> offsets;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    std::int64_t rest = batch, offset = 0;
    for (int axis = axes - 1; axis >= 0; --axis) {
      if (dims[axis] > 1) offset += rest % c[axis] * strides[axis];
      rest /= c[axis];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

// The matmul as an int8 GEMM: rows of one operand, columns of the other.
struct Int8Matmul {
  bool swapped;
  ByteOperand a, b;  // rows and columns
  StridedRowLayout rows;
  Int8ColumnSource columns;
  Int8GemmShape shape;
  Int8Output result = Int8Output::i32;
  bool in_place;  // accumulators are stored directly to C

  explicit Int8Matmul(const Region& region, std::int64_t kernel_rows)
      : swapped(swaps_operands(region.epilogue)),
        a(operand(region, swapped ? Matmul::b : Matmul::a)),
        b(operand(region, swapped ? Matmul::a : Matmul::b)) {
    const Dims& c = region.anchor->outputs[Matmul::c].dims;
    const int last = c.rank() - 1;
    const int row_axis = swapped ? last : last - 1, column_axis = swapped ? last - 1 : last;
    const int a_k = swapped ? last - 1 : last, b_k = swapped ? last : last - 1;
    rows = {.batch_offsets = batch_offsets(c, a.dims(), a.strides()),
            .rows = c[row_axis],
            .k = a.dims()[a_k],
            .row_stride = a.strides()[row_axis],
            .k_stride = a.strides()[a_k],
            .width = std::clamp<std::int64_t>(c[row_axis], 1, kernel_rows),
            .is_signed = a.is_signed()};
    columns.batch_offsets = batch_offsets(c, b.dims(), b.strides());
    columns.channels = rows.k;
    columns.column_stride = b.strides()[column_axis];
    columns.channel_stride = b.strides()[b_k];
    shape = {.batch = static_cast<std::int64_t>(rows.batch_offsets.size()),
             .lines = divide_up(rows.rows, rows.width),
             .width = rows.width,
             .rows = rows.rows,
             .columns = c[column_axis],
             .segments = 1,
             .k = rows.k,
             .a_signed = a.is_signed(),
             .b_signed = b.is_signed()};
    shape.one_b = std::all_of(b.dims().begin(), b.dims().end() - 2,
                              [](std::int64_t extent) { return extent == 1; });
    in_place = stores_as_it_is(region.epilogue, result) &&
               region.epilogue.stores[0].view.strides[column_axis] == 1;
  }

  static ByteOperand operand(const Region& region, int slot) {
    return {region, slot, region.anchor->inputs[static_cast<std::size_t>(slot)].dims.rank() - 1};
  }
  Int8GemmScratch memory(const Int8GemmBlocks& blocks) const {
    return int8_gemm_scratch(shape, blocks, rows.staged_bytes(blocks.lines(shape)), in_place);
  }
};

// T: type of the accumulators passed to the epilogue.
template <class T>
class MatmulSink final : public Int8Sink {
 public:
  MatmulSink(const RowProgram<T>& epilogue, const View& view, const Dims& dims, bool swapped,
             const KernelContext& context)
      : bound_(epilogue.bind(context)), view_(view), dims_(dims), swapped_(swapped) {
    data_ = static_cast<std::byte*>(context.pointer(view.tensor));
  }

  Target target(std::int64_t batch, std::int64_t row, std::int64_t column) const override {
    const Coords coords = coords_of(batch, row, column);
    std::int64_t index = view_.offset;
    for (int axis = 0; axis < dims_.rank(); ++axis)
      index += coords[static_cast<std::size_t>(axis)] * view_.strides[axis];
    const int rank = dims_.rank();
    return {data_ + index * (bit_width(view_.dtype) / 8),
            view_.strides[swapped_ ? rank - 1 : rank - 2]};
  }

  void store(std::int64_t batch, std::int64_t row, std::int64_t rows, std::int64_t column,
             std::int64_t columns, const std::int32_t* acc, std::int64_t acc_row) const override {
    constexpr std::int64_t kInt8Chunk = 512;
    alignas(64) T chunk[kInt8Chunk];
    const LoadRow<T> load = load_row<T>(i32);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t first = 0; first < columns; first += kInt8Chunk) {
        const std::int64_t count = std::min(kInt8Chunk, columns - first);
        load(acc, i * acc_row + first, 1, count, chunk);
        bound_.store(coords_of(batch, row + i, column + first).data(), count, chunk);
      }
  }

 private:
  Coords coords_of(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    Coords coords;
    const int rank = dims_.rank();
    for (int axis = rank - 3; axis >= 0; --axis) {
      coords[static_cast<std::size_t>(axis)] = batch % dims_[axis];
      batch /= dims_[axis];
    }
    coords[static_cast<std::size_t>(rank - 2)] = swapped_ ? column : row;
    coords[static_cast<std::size_t>(rank - 1)] = swapped_ ? row : column;
    return coords;
  }

  typename RowProgram<T>::Bound bound_;
  const View& view_;
  const Dims& dims_;
  bool swapped_;
  std::byte* data_;
};

template <class T>
class MatmulInt8Kernel final : public Int8GemmKernel<Int8Matmul> {
 public:
  MatmulInt8Kernel(const Region& region, const Config& config, const PointwiseProgram& epilogue)
      : Int8GemmKernel(region, config, swaps_operands(region.epilogue) ? Matmul::a : Matmul::b,
                       Int8Matmul(region, int8_micro_kernel().rows)),
        dims_(region.anchor->outputs[Matmul::c].dims),
        epilogue_(epilogue, dims_.rank() - (problem_.swapped ? 2 : 1)),
        view_(epilogue.stores[0].view) {}

  void run(const KernelContext& context) const override {
    multiply(context, StridedRows(problem_.rows, a_bytes(context)),
             MatmulSink<T>(epilogue_, view_, dims_, problem_.swapped, context));
  }

 private:
  Dims dims_;
  RowProgram<T> epilogue_;
  View view_;
};

class MatmulInt8Engine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.matmul_int8"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "int8 GEMM, 4 elements of K per 32-bit lane";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Matmul>()) return Support::other_operation("the anchor is not a matmul");
    for (std::size_t slot = 2; slot < region.anchor->inputs.size(); ++slot)
      if (region.anchor->inputs[slot].present())
        return Support::no("per-batch M, N or K overrides");
    if (touches_ragged(region)) return Support::no("a ragged operand");
    const Dims& a = region.anchor->inputs[Matmul::a].dims;
    return int8_gemm_support(region, a[a.rank() - 1]);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const Int8Matmul problem(region, kMaxInt8Rows);
    const std::int64_t acc =
        problem.shape.columns * (problem.in_place ? result_bytes(problem.result) : 4);
    const Int8GemmBlocks blocks =
        choose_int8_blocks(problem.shape, device, problem.rows.staged_row() + acc);
    return {int8_gemm_config(region, problem.shape, blocks, problem.memory(blocks),
                             problem.a.materialised_bytes() + problem.b.materialised_bytes())};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps&) const override {
    if (const auto program = float_epilogue(region.epilogue))
      return std::make_unique<MatmulInt8Kernel<float>>(region, config, *program);
    return std::make_unique<MatmulInt8Kernel<double>>(region, config, region.epilogue);
  }
};

}  // namespace

const Engine& matmul_int8_engine() {
  static const MatmulInt8Engine engine;
  return engine;
}

}  // namespace ashlar::cpu
