#include "cuda/engines/sm90/dequantized_operand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/ceil_div.hpp"
#include "base/element.hpp"
#include "cuda/engines/weight_program.hpp"
#include "cuda/text/program_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr int kThreads = 128, kPacketBytes = 16;
constexpr int kWordBytes = 4;  // copied for a scale or zero point

bool is_narrow(DType dtype) {
  return dtype == e4m3 || dtype == e5m2 || dtype == i8 || dtype == i4 || dtype == u4 ||
         dtype == e2m1;
}
bool is_scale(DType dtype) {
  return dtype == e8m0 || dtype == e4m3 || dtype == e5m2 || dtype == bf16 || dtype == f16 ||
         dtype == f32;
}

bool is_zero_point(DType dtype) {
  return dtype == u4 || dtype == i4 || dtype == u8 || dtype == i8 || dtype == bf16 ||
         dtype == f16 || dtype == f32;
}

// Scales are copied in 4-byte words, which must not cross the end of their tensor.
bool lies_in_words(const View& scales, std::int64_t block) {
  const std::int64_t bits = bit_width(scales.dtype), word_bits = 8 * kWordBytes;
  std::int64_t count = 1, last = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t extent = axis == 2 ? ceil_div(scales.dims[2], block) : scales.dims[axis];
    if (scales.strides[axis] < 0) return false;
    if (scales.strides[axis] == 0) continue;
    count *= extent;
    last += (extent - 1) * scales.strides[axis];
  }
  return last + 1 == count && count * bits % word_bits == 0 &&
         scales.offset * bits % word_bits == 0;
}

// A scale that all rows share might be a scalar in host memory.
bool is_in_memory(const View& scales, std::int64_t block) {
  return scales.strides[1] != 0 && lies_in_words(scales, block);
}

// Whether x - zero is exact in 16-bit floats for all values of these types.
bool has_exact_differences(DType x, DType zero, DType math) {
  const auto is_small = [](DType dtype) { return is_integer(dtype) && bit_width(dtype) <= 8; };
  if (!is_small(x) || !is_small(zero)) return false;
  const double most =
      std::max(largest_value(x) - lowest_value(zero), largest_value(zero) - lowest_value(x));
  return most <= (math == bf16 ? 0x1p8 : 0x1p11);
}

}  // namespace

int DequantizedOperand::packets(int rows, int block_k) const {
  return static_cast<int>(ceil_div(rows, kThreads / (block_k / packet_elements())));
}
int DequantizedOperand::packet_scales() const {
  if (block == 0) return 0;
  return std::max(1, packet_elements() / static_cast<int>(block));
}
int DequantizedOperand::step_bytes(int rows, int block_k) const {
  return packets(rows, block_k) * kThreads *
         (kPacketBytes + (packet_scales() + packet_zeros()) * kWordBytes);
}

std::optional<DequantizedOperand> dequantized_operand(const PointwiseProgram& program, DType math) {
  if (math != bf16 && math != f16) return {};
  const NarrowLoad load = find_narrow_load(program);
  if (load.numbers == nullptr || !is_narrow(load.numbers->view.dtype)) return {};
  DequantizedOperand factor{.numbers = load.numbers->view, .scales = {}, .zeros = {}};
  const View& numbers = factor.numbers;
  const int elements = factor.packet_elements();
  if (numbers.strides[2] != 1 || numbers.dims[2] % elements != 0 || numbers.offset % elements != 0)
    return {};
  for (int axis = 0; axis < 2; ++axis)
    if (numbers.strides[axis] < 0 || numbers.strides[axis] % elements != 0) return {};
  if (load.scales == nullptr) return factor;
  factor.scales = load.scales->view;
  factor.block = load.scales->blocks[2];
  const std::int64_t block = factor.block;
  if (load.scales->blocks[0] != 1 || load.scales->blocks[1] != 1 || block % 8 != 0 ||
      (block % elements != 0 && elements % block != 0))
    return {};
  if (!is_scale(factor.scales.dtype) || !is_in_memory(factor.scales, block)) return {};
  factor.exact_scales = is_exact_in(factor.scales.dtype, math);
  if (load.zeros == nullptr) return factor;
  factor.zeros = load.zeros->view;
  if (load.zeros->blocks != load.scales->blocks || !is_zero_point(factor.zeros.dtype) ||
      !is_in_memory(factor.zeros, block))
    return {};
  factor.exact_zeros = has_exact_differences(numbers.dtype, factor.zeros.dtype, math);
  return factor;
}

std::string print_converted(const DequantizedOperand& factor, char which, Arguments& arguments) {
  const auto upper = static_cast<char>(std::toupper(which));
  const auto place = [&](const View& view, const char* name, const char* depth) {
    const auto number = [&](const char* of, std::int64_t value) {
      return "(int64)" + arguments.number(fmt::format("{}_{}_{}", name, which, of), value);
    };
    const std::int64_t first = bit_width(view.dtype) < 8 ? view.offset : 0;
    const std::string along = view.strides[2] == 1 ? "" : " * " + number("depth", view.strides[2]);
    return fmt::format("{} + batch * {} + row * {} + {}{}", first, number("batch", view.strides[0]),
                       number("row", view.strides[1]), depth, along);
  };
  const bool scaled = factor.block > 0, shifted = factor.zeros.present();
  std::string text = fmt::format(
      "struct Narrow{} {{\n"
      "  static const bool kConverts = true, kExactScales = {}, kExactZeros = {};\n"
      "  static const int kBits = {}, kBlock = {}, kZeroBits = {};\n"
      "  typedef {} Stored;\n  typedef {} Scale;\n",
      upper, factor.exact_scales, factor.exact_zeros, bit_width(factor.numbers.dtype), factor.block,
      shifted ? bit_width(factor.zeros.dtype) : 0, type_name(factor.numbers.dtype),
      type_name(scaled ? factor.scales.dtype : f32));
  text += fmt::format(
      "  __device__ static const uint8* numbers(const Args& args, int batch, int row, int depth) "
      "{{\n    return (const uint8*){} + ({}) * kBits / 8;\n  }}\n",
      arguments.pointer(fmt::format("numbers_{}", which), factor.numbers),
      place(factor.numbers, "numbers", "depth"));
  text += fmt::format(
      "  template <class W> __device__ static int first_row(const W& work) {{ return work.{}; }}\n"
      "  __device__ static int row_end(const Args& args) {{ return (int)args.{}; }}\n",
      which == 'a' ? "m" : "n", which == 'a' ? "rows" : "columns");
  if (scaled)
    text += fmt::format(
        "  __device__ static const uint8* scales(const Args& args, int batch, int row, int depth) "
        "{{\n    return (const uint8*)((const Scale::Word*){} + ({}));\n  }}\n",
        arguments.pointer(fmt::format("scales_{}", which), factor.scales),
        place(factor.scales, "scales", "depth / kBlock"));
  if (shifted)
    text += fmt::format(
        "  typedef {} Zero;\n"
        "  __device__ static uint64 zero_bit(const Args& args, int batch, int row, int depth) {{\n"
        "    return (uint64){} * 8 + (uint64)(({}) * kZeroBits);\n  }}\n",
        type_name(factor.zeros.dtype),
        arguments.pointer(fmt::format("zeros_{}", which), factor.zeros),
        place(factor.zeros, "zeros", "depth / kBlock"));
  return text + "};\n";
}

}  // namespace ashlar::cuda
