// How long a region takes on a device, one way or another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plan/backend.hpp"
#include "plan/lowered.hpp"
#include "plan/select.hpp"

namespace ashlar {

// The tensors of one region, each with memory of its own; in a row several times all of them.
class RegionTimer {
 public:
  // What is given must outlive it.
  RegionTimer(const LoweredGraph& lowered, const Region& region, const DeviceProps& device,
              const CompileOptions& options);
  // Of a run: the least of a few measurements, after one that is not counted. Throws Error where
  // the candidate cannot be built or run.
  double seconds(const Candidate& candidate) const;

 private:
  void place_tensors();
  void add_memory(TensorId id);
  void note_constant(const std::string& name);
  void flush() const;

  const LoweredGraph& lowered_;
  const Region& region_;
  const DeviceProps& device_;
  const bool back_to_back_;
  std::unique_ptr<Marker> before_, after_;
  OwnedMemory flushed_;
  std::vector<TensorId> tensors_;
  std::vector<Location> locations_;
  std::vector<OwnedMemory> memory_;
  std::vector<std::vector<void*>> pointers_;  // of each run
  std::vector<void*> constants_;              // of those that never change, null for others
};

}  // namespace ashlar
