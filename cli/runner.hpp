// A plan with memory to run it in, on its device.
#pragma once

#include <ashlar/memory.hpp>
#include <ashlar/plan.hpp>
#include <vector>

#include "tensor_memory.hpp"

namespace ashlar::cli {

class Runner {
 public:
  // `memory` keeps the tensors on the host. The CPU runs on it; a GPU runs on copies made now.
  Runner(Plan plan, const TensorMemory& memory);
  const Plan& plan() const { return plan_; }
  void run() const;                            // on a GPU: returns before it is done
  double seconds_of_run() const;               // as the device measures it
  std::vector<double> region_seconds() const;  // of one run, by region
  void download_outputs() const;               // back into the host's memory

 private:
  Plan plan_;
  Device device_;
  const TensorMemory& memory_;
  std::vector<void*> pointers_;
  std::vector<Memory> copies_;  // one per tensor on a GPU, else none
  Memory workspace_;
  mutable Timer timer_;
};

}  // namespace ashlar::cli
