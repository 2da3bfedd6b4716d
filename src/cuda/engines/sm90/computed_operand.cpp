#include "cuda/engines/sm90/computed_operand.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

using Step = PointwiseProgram::Step;

bool is_fp8(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }
bool fits_i8(DType dtype) {
  return dtype == DType::i8 || dtype == DType::i4 || dtype == DType::u4 || dtype == DType::boolean;
}
// Whether a 16-bit float represents every value.
bool fits_short_float(DType dtype) {
  return is_fp8(dtype) || fits_i8(dtype) || dtype == DType::u8 || dtype == DType::e2m1;
}

}  // namespace

bool choose_math(DType a, DType b, DType compute, DType& math_a, DType& math_b) {
  const auto choose = [&](DType x, DType y) {
    math_a = x;
    math_b = y;
    return true;
  };
  if (fits_i8(a) && fits_i8(b) && (compute == DType::i32 || compute == f32))
    return choose(DType::i8, DType::i8);
  if (compute != f32) return false;
  if (is_fp8(a) && is_fp8(b)) return choose(a, b);
  for (const DType math : {bf16, f16})
    if ((a == math || fits_short_float(a)) && (b == math || fits_short_float(b)))
      return choose(math, math);
  const auto is_float = [](DType dtype) { return dtype == f32 || dtype == f16 || dtype == bf16; };
  if ((is_float(a) || fits_short_float(a)) && (is_float(b) || fits_short_float(b)))
    return choose(f32, f32);
  return false;
}

std::optional<std::int64_t> batch_distance(const View& view, const Dims& dims) {
  std::int64_t distance = 0, extent = 1;  // of the axes so far, the innermost first
  for (int axis = dims.rank() - 3; axis >= 0; --axis) {
    if (dims[axis] == 1) continue;
    const std::int64_t stride = view.dims[axis] == 1 ? 0 : view.strides[axis];
    if (extent == 1)
      distance = stride;
    else if (stride != distance * extent)
      return {};
    extent *= dims[axis];
  }
  return distance;
}

Support describe_computed(const PointwiseProgram& prologue, DType dtype, DType math, int row_axis,
                          int depth_axis, const Dims& dims, ComputedOperand& factor,
                          bool in_lines) {
  if (prologue.has_random()) return Support::no("the prologue generates random numbers");
  if (!prologue.stores.empty()) return Support::no("a computed operand is stored, too");
  PointwiseProgram& program = factor.program;
  program = prologue;
  std::int64_t batches = 1;
  for (int axis = 0; axis < dims.rank() - 2; ++axis) batches *= dims[axis];
  const std::int64_t rows = prologue.space[row_axis], depth = prologue.space[depth_axis];
  program.space = {batches, rows, depth};
  std::int64_t bits_along_rows = 0, bits_along_depth = 0;
  for (Step& step : program.steps) {
    if (step.kind == Step::Kind::compute && step.op.mode == PointwiseMode::gen_index)
      return Support::no("the prologue reads coordinates");
    if (step.kind != Step::Kind::load) continue;
    View& view = step.view;
    if (view.ragged_offset != kNoTensor) return Support::no("a tensor is ragged");
    const auto batch = batch_distance(view, dims);
    if (!batch) return Support::no("batch strides of an operand are not uniform");
    const std::int64_t of_row = view.strides[row_axis], of_depth = view.strides[depth_axis];
    view.dims = program.space;
    view.strides = {*batch, of_row, of_depth};
    if (!step.blocks.empty()) {
      for (int axis = 0; axis < dims.rank() - 2; ++axis)
        if (step.blocks[axis] != 1) return Support::no("batches share block scales");
      step.blocks = {1, step.blocks[row_axis], step.blocks[depth_axis]};
      continue;
    }
    if (of_row == 0 || of_depth == 0) continue;
    if (of_row == 1) bits_along_rows += bit_width(view.dtype);
    if (of_depth == 1) bits_along_depth += bit_width(view.dtype);
  }
  // A computed operand of a 16-bit tensor is rounded to that type.
  if (math != dtype && !prologue.is_plain_load() && bit_width(dtype) == 16)
    program.steps[static_cast<std::size_t>(program.result)].round_to = dtype;
  factor.along_rows = !in_lines && bits_along_rows > bits_along_depth;
  if (factor.along_rows) move_axis_last(program, 1);
  int most = 8;
  while (program.space[2] % most != 0) most /= 2;
  factor.vector = vector_length(program, most);
  return Support::yes();
}

std::string print_lengths(const View& lengths, const std::string& name,
                          const std::string& otherwise, const Graph& graph, Arguments& arguments) {
  if (lengths.present()) return print_integer_load(lengths, graph, name, arguments);
  return fmt::format(
      "__device__ inline int64 {}(const Args& args, const Index (&)[1]) {{ return {}; }}\n", name,
      otherwise);
}

std::string operand_constants(const ComputedOperand* factor, DType math, char which,
                              bool uses_tma) {
  const auto upper = static_cast<char>(std::toupper(which));
  const std::string type = tag(math);
  return fmt::format("typedef {} Math{};\n", type.substr(0, type.size() - 2), upper) +
         constant(fmt::format("kComputes{}", upper), factor != nullptr && !uses_tma) +
         (factor && factor->converted
              ? ""
              : fmt::format("struct Narrow{} {{ static const bool kConverts = false; }};\n",
                            upper)) +
         constant(fmt::format("kVector{}", upper), factor ? factor->vector : 1) +
         constant(fmt::format("kAlongRows{}", upper), factor != nullptr && factor->along_rows);
}

std::string print_operand(const ComputedOperand* factor, DType math, char which, const Graph& graph,
                          Arguments& arguments) {
  const std::string name = fmt::format("operand_{}", which);
  std::string text = operand_constants(factor, math, which);
  const bool converts = factor && factor->converted;
  if (converts) text += print_converted(*factor->converted, which, arguments);
  if (factor && !converts) return text + print_program(factor->program, graph, name, arguments);
  return text + fmt::format(
                    "template <int kCount>\n__device__ inline void {}(const Args&, const "
                    "Index (&)[3], R (&)[kCount]) {{}}\n",
                    name);
}

}  // namespace ashlar::cuda
