// Memory that ends where an unreadable page begins: reading one byte past it is a crash, with or
// without a sanitizer.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>

namespace ashlar::support {

class BytesBeforeGuardPage {
 public:
  // data() is on a 64-byte boundary where `bytes` is a multiple of 64.
  explicit BytesBeforeGuardPage(std::size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    readable_ = (bytes + page - 1) / page * page;
    mapped_ = readable_ + page;
    void* memory =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<std::byte*>(memory);
    if (mprotect(memory_ + readable_, page, PROT_NONE) != 0) {
      munmap(memory_, mapped_);
      throw std::bad_alloc();
    }
  }
  ~BytesBeforeGuardPage() { munmap(memory_, mapped_); }
  BytesBeforeGuardPage(const BytesBeforeGuardPage&) = delete;
  BytesBeforeGuardPage& operator=(const BytesBeforeGuardPage&) = delete;

  std::byte* data() { return memory_ + readable_ - bytes_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_, readable_ = 0, mapped_ = 0;
};

}  // namespace ashlar::support
