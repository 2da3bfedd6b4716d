// NumPy .npy files: one array of numbers, as np.save writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar::cli {

struct NpyArray {
  std::string type;                 // NumPy's type without byte order: "f4", "f2", "i8", "u1", "b1"
  std::vector<std::int64_t> shape;  // empty for a single number
  std::vector<std::byte> data;      // little endian, row-major
};

// Bytes of one element, or 0 for a type that is not read (complex numbers, strings, records).
std::int64_t npy_element_size(std::string_view type);

// Format versions 1 to 3, little endian, either axis order (Fortran order is rewritten row-major).
// Throws Error(parse) with a sentence on anything else.
NpyArray parse_npy(std::span<const std::byte> bytes);
std::vector<std::byte> encode_npy(const NpyArray& array);

// The same from and to files; Error(io) when the file cannot be read or written, full disks
// included.
NpyArray read_npy(const std::string& path);
void write_npy(const std::string& path, const NpyArray& array);

}  // namespace ashlar::cli
