// Names of the dtypes.
#include <ashlar/dtype.hpp>

namespace ashlar {

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::f64: return "f64";
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::e4m3: return "e4m3";
    case DType::e5m2: return "e5m2";
    case DType::e8m0: return "e8m0";
    case DType::e2m1: return "e2m1";
    case DType::i64: return "i64";
    case DType::i32: return "i32";
    case DType::i8: return "i8";
    case DType::u8: return "u8";
    case DType::u32: return "u32";
    case DType::i4: return "i4";
    case DType::u4: return "u4";
    case DType::boolean: return "bool";
    case DType::complex_f32: return "complex_f32";
    case DType::complex_f64: return "complex_f64";
  }
  return "unknown";
}

}  // namespace ashlar
