// Measures the run time of candidates for a region on the device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plan/backend.hpp"
#include "plan/lowered.hpp"
#include "plan/select.hpp"

namespace ashlar {

// Owns memory for the tensors of one region; for back-to-back timing, several copies of all of
// them.
class RegionTimer {
 public:
  // The arguments must outlive the timer.
  RegionTimer(const LoweredGraph& lowered, const Region& region, const Backend& backend,
              const DeviceProps& device, const CompileOptions& options);
  // Time of one run: the minimum of several measurements after a warm-up. Throws Error if the
  // candidate cannot be built or run.
  double seconds(const Candidate& candidate) const;

 private:
  OwnedMemory zeros(std::int64_t bytes) const;
  void place_tensors();
  void add_memory(TensorId id);
  void note_constant(const std::string& name);
  void flush() const;

  const LoweredGraph& lowered_;
  const Region& region_;
  const Backend& backend_;
  const DeviceProps& device_;
  const bool back_to_back_;
  std::unique_ptr<Marker> before_, after_;
  OwnedMemory flushed_;
  std::vector<TensorId> tensors_;
  std::vector<Location> locations_;
  std::vector<OwnedMemory> memory_;
  std::vector<std::unique_ptr<std::uint64_t>> scalars_;  // in host memory
  std::vector<std::vector<void*>> pointers_;             // by run
  std::vector<void*> constants_;                         // of constant inputs, null for others
};

}  // namespace ashlar
