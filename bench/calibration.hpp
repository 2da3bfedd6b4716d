// The CPU's roofline: FMA throughput and copy bandwidth on all OpenMP threads. Short loops that run
// between the samples of a case, because the clock frequency of a shared machine drifts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ashlar::bench {

// FMA throughput on registers, all threads at once: operations per second, 2 per FMA.
double multiply_add_rate();

// int8 operations per f32 operation of equal time: 4 with VNNI; 0 without it, and then no compute
// roofline is claimed.
double int8_ops_per_f32_op();

// Copy bandwidth of all threads, for a kernel that reads and writes `bytes` in total.
class CopyCalibration {
 public:
  explicit CopyCalibration(double bytes);
  double rate() const;  // bytes per second, reads plus writes

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Buffer = std::unique_ptr<std::byte, Free>;
  static Buffer allocate(std::int64_t bytes);

  std::int64_t half_;  // bytes read, and bytes written
  bool past_cache_;    // non-temporal stores: the copy exceeds the L3 cache
  std::int64_t repeats_;
  Buffer from_, to_;
};

}  // namespace ashlar::bench
