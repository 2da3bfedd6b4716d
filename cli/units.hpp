// Quantities as short text.
#pragma once

#include <ashlar/graph.hpp>
#include <string>

namespace ashlar::cli {

std::string duration_text(double seconds);                  // "1.23 ms"
std::string quantity_text(double value, const char* unit);  // "67.1 MFLOP", "526 kB"
std::string shape_text(const Tensor& tensor);               // "f32 512 x 256"

}  // namespace ashlar::cli
