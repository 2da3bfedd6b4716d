// What the machine can do at this moment, on the threads that OpenMP uses: short loops that run
// among the samples of a case, because the clock of a shared machine drifts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ashlar::bench {

// Multiply-adds on registers, all threads at once. Operations per second, 2 per multiply-add.
double multiply_add_rate();

// How many 8-bit operations a processor does in the time of one f32 operation: 4 where it has dot
// products of bytes (VNNI), 0 where it has not and no limit is claimed.
double byte_operations_per_f32();

// Copies with all threads: what memory gives at best to work that reads and writes `bytes` in all.
class CopyCalibration {
 public:
  explicit CopyCalibration(double bytes);
  double rate() const;  // bytes per second, read and written ones counted

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Buffer = std::unique_ptr<std::byte, Free>;
  static Buffer allocate(std::int64_t bytes);

  std::int64_t half_;  // bytes read, and bytes written
  bool past_cache_;    // stores that leave the caches alone
  std::int64_t repeats_;
  Buffer from_, to_;
};

}  // namespace ashlar::bench
