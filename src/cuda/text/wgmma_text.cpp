#include "cuda/text/wgmma_text.hpp"

#include <fmt/format.h>

#include "base/fail.hpp"

namespace ashlar::cuda {

namespace {

int bytes_of(DType dtype) { return bit_width(dtype) / 8; }

// The operand type in PTX.
const char* operand_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "tf32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::e4m3: return "e4m3";
    case DType::e5m2: return "e5m2";
    case DType::i8: return "s8";
    case DType::u8: return "u8";
    default: fail(ErrorCode::internal, "cuda: tensor cores do not support {}", to_string(dtype));
  }
}

// `count` items, ", " between them.
template <class Item>
std::string list(int count, Item item) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + item(i);
  return text;
}

// Only types of 16 bits have the flag of an M/N-major operand.
std::string major(DType dtype, bool transpose) {
  return bytes_of(dtype) != 2 ? "" : transpose ? ", 1" : ", 0";
}

// One overload of multiply(). PTX operands are numbered in this order: accumulators, A (registers,
// or a descriptor), the descriptor of B, the predicate.
std::string print_multiply(const Wgmma& wgmma, bool a_in_registers) {
  const int accumulators = wgmma.n / 2, of_a = a_in_registers ? 4 : 1;
  const auto number = [](int i) { return fmt::format("%{}", i); };
  const auto operand_of_a = [&](int i) { return number(accumulators + i); };
  const bool integers = is_integer(wgmma.a);
  const std::string a = a_in_registers ? "{" + list(of_a, operand_of_a) + "}" : operand_of_a(0);
  const std::string instruction = fmt::format(
      "wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}", wgmma.n, 32 / bytes_of(wgmma.a),
      integers ? "s32" : "f32", operand_name(wgmma.a), operand_name(wgmma.b));
  const std::string flags = std::string(integers ? "" : ", 1, 1") +
                            (a_in_registers ? "" : major(wgmma.a, wgmma.transpose_a)) +
                            major(wgmma.b, wgmma.transpose_b);
  const std::string ptx = fmt::format(
      "{{\\n.reg .pred keeps;\\nsetp.ne.b32 keeps, %{}, 0;\\n{} {{{}}}, {}, %{}, keeps{};\\n}}",
      accumulators + of_a + 1, instruction, list(accumulators, number), a, accumulators + of_a,
      flags);
  const std::string registers = list(accumulators, [&](int i) {
    return fmt::format("\"+{}\"(accum[{}])", integers ? 'r' : 'f', i);
  });
  const std::string values =
      a_in_registers ? list(4, [](int i) { return fmt::format("\"r\"(a[{}])", i); }) : "\"l\"(a)";
  return fmt::format(R"(  __device__ static inline void multiply(Fragment& accum, {}, uint64 b,
                                         bool accumulate) {{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("{}"
                 : {}
                 : {}, "l"(b), "r"((int)accumulate)
                 : "memory");
#elif !defined(__CUDA_ARCH__)
    emulated_wgmma(EmulatedMmaType::{}, EmulatedMmaType::{}, accum, kN, a, b, {}{}, accumulate);
#endif
  }}
)",
                     a_in_registers ? "const uint32 (&a)[4]" : "uint64 a", ptx, registers, values,
                     operand_name(wgmma.a), operand_name(wgmma.b),
                     a_in_registers      ? ""
                     : wgmma.transpose_a ? "true, "
                                         : "false, ",
                     wgmma.transpose_b);
}

}  // namespace

std::string print_wgmma(const std::string& name, const Wgmma& wgmma) {
  return fmt::format(R"(struct {} {{
  typedef {} Accum;
  static const int kN = {}, kK = {};
  typedef Accum Fragment[kN / 2];
)",
                     name, is_integer(wgmma.a) ? "int" : "float", wgmma.n, 32 / bytes_of(wgmma.a)) +
         print_multiply(wgmma, false) + print_multiply(wgmma, true) + "};\n";
}

}  // namespace ashlar::cuda
