// The CPU backend: memory, copies, timing.
#include "cpu/cpu_backend.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "cpu/engine_table.hpp"

namespace ashlar::cpu {

namespace {

// CPU work is synchronous: a marker is a point in time.
class Moment final : public Marker {
 public:
  void record(void*) override { time_ = Clock::now(); }
  void stream_wait(void*) override {}
  double seconds_since(const Marker& earlier) const override {
    const auto& other = dynamic_cast<const Moment&>(earlier);
    return std::chrono::duration<double>(time_ - other.time_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point time_;
};

// Replays by repeating the calls.
class RepeatedWork final : public Recording {
 public:
  explicit RepeatedWork(std::function<void(void* stream)> work) : work_(std::move(work)) {}
  void replay(void* stream) override { work_(stream); }

 private:
  std::function<void(void* stream)> work_;
};

class CpuBackend final : public Backend {
 public:
  EngineTable engines() const override { return engine_table(); }
  int owned_slots() const override { return 64; }

  // Pages are committed at first touch.
  std::byte* allocate(const DeviceProps&, std::int64_t bytes) const override {
    void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      fail(ErrorCode::out_of_memory, "cpu: {} bytes of memory could not be reserved", bytes);
    return static_cast<std::byte*>(memory);
  }
  void release(const DeviceProps&, std::byte* memory, std::int64_t bytes) const noexcept override {
    munmap(memory, static_cast<std::size_t>(bytes));
  }
  void upload(const DeviceProps&, void* to, const void* from, std::int64_t bytes,
              void*) const override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void enqueue_upload(const DeviceProps&, void* to, std::span<const std::int32_t> words,
                      void*) const override {
    std::memcpy(to, words.data(), words.size_bytes());
  }
  void download(const DeviceProps&, void* to, const void* from, std::int64_t bytes,
                void*) const override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void fill(const DeviceProps&, void* to, std::byte value, std::int64_t bytes,
            void*) const override {
    std::fill_n(static_cast<std::byte*>(to), bytes, value);
  }
  void synchronize(const DeviceProps&, void*) const override {}
  std::unique_ptr<Marker> marker(const DeviceProps&) const override {
    return std::make_unique<Moment>();
  }
  std::unique_ptr<Recording> recording(const DeviceProps&,
                                       std::function<void(void* stream)> work) const override {
    return std::make_unique<RepeatedWork>(std::move(work));
  }
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace ashlar::cpu
