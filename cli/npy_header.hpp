// The header of a .npy file: a Python dictionary in text, as the format defines it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar::cli {

struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// Throws Error(parse) with a sentence.
NpyHeader parse_npy_header(std::string_view text);
std::string format_npy_header(const NpyHeader& header);

}  // namespace ashlar::cli
