#include "units.hpp"

#include <fmt/format.h>

#include <array>

namespace ashlar::cli {

std::string duration_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

std::string quantity_text(double value, const char* unit) {
  constexpr std::array kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t step = 0;
  // 999.5 would be printed as 1e+03.
  while (value >= 999.5 && step + 1 < kPrefixes.size()) {
    value /= 1000;
    ++step;
  }
  return fmt::format("{:.3g} {}{}", value, kPrefixes[step], unit);
}

std::string shape_text(const Tensor& tensor) {
  std::string text(to_string(tensor.dtype));
  for (int axis = 0; axis < tensor.dims.rank(); ++axis)
    text += fmt::format("{}{}", axis == 0 ? " " : " x ", tensor.dims[axis]);
  return text;
}

}  // namespace ashlar::cli
