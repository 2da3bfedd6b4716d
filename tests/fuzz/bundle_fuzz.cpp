// Fuzzes the kernel bundle reader: any bytes are either a bundle with all entries in bounds, or an
// Error.
#include <ashlar/error.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cuda/jit/bundle.hpp"

namespace {

using namespace ashlar::cuda;

void read_all(const std::string& file) {
  const auto read = [&](std::uint64_t offset, std::size_t bytes, char* to) {
    if (offset > file.size() || bytes > file.size() - offset) return false;
    std::memcpy(to, file.data() + offset, bytes);
    return true;
  };
  try {
    const Bundle bundle = Bundle::from(file.size(), read);
    bundle.find("0123456789abcdef0123456789abcdef");
    for (const Bundle::Row& row : bundle.rows()) {
      if (row.offset + row.bytes > file.size()) std::abort();
      bundle.read(row);
    }
  } catch (const ashlar::Error&) {
  }
}

// Repairs the size and digest of the index, so that the code behind these checks is reached.
void sign(std::string& file) {
  constexpr std::size_t kSizeAt = 16, kCountAt = 24, kDigestAt = 32, kHeader = 104, kRow = 128;
  if (file.size() < kHeader) return;
  const std::uint64_t size = file.size();
  std::memcpy(file.data() + kSizeAt, &size, sizeof size);
  std::uint64_t count = 0;
  std::memcpy(&count, file.data() + kCountAt, sizeof count);
  if (count > (size - kHeader) / kRow) return;
  const std::uint64_t digest = digest_of_index(file.substr(0, kHeader + count * kRow));
  std::memcpy(file.data() + kDigestAt, &digest, sizeof digest);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  read_all(file);
  sign(file);
  read_all(file);
  return 0;
}
