// Fuzzes the .npy reader: any bytes are either an array that round-trips, or an Error.
#include <ashlar/error.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ashlar::cli;
  try {
    const NpyArray array = parse_npy(std::as_bytes(std::span(data, size)));
    const NpyArray again = parse_npy(encode_npy(array));
    if (again.type != array.type || again.shape != array.shape || again.data != array.data)
      std::abort();
  } catch (const ashlar::Error&) {
  }
  return 0;
}
