// Back-to-back timing: several runs of a plan in one CUDA graph, each on its own copy of the
// tensors. This is how a model launches its layers: programmatic dependent launch may overlap
// neighbours, and no run finds its tensors in the L2 cache. CopiesBackToBack times copies the same
// way.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "gpu_tensors.hpp"
#include "work_graph.hpp"

namespace ashlar::bench {

struct BackToBack {
  static constexpr double kBytes = 256 << 20;  // of all runs: several times any L2 cache
  static constexpr double kMinRuns = 8, kMaxRuns = 32;
  std::vector<GpuTensors> tensors;

  // `own` is copied once per run; `bytes` is the traffic of one run.
  BackToBack(const Gpu& gpu, const Graph& graph, const GpuTensors& own, double bytes) {
    const auto runs = static_cast<int>(std::clamp(std::ceil(kBytes / bytes), kMinRuns, kMaxRuns));
    for (int i = 0; i < runs; ++i) tensors.push_back(own.copied(gpu, graph));
  }
  // Captures run_on(pointers, stream) for every copy of the tensors.
  template <class Run>
  WorkGraph captured(const Run& run_on) const {
    return WorkGraph([&](void* stream) {
      for (const GpuTensors& one : tensors) run_on(one.pointers(), stream);
    });
  }
  // Seconds per run.
  double seconds_of_one(double seconds_of_all) const {
    return seconds_of_all / static_cast<double>(tensors.size());
  }
};

// Copies back to back over all slots of a GpuCopy, one CUDA graph per copy method. The rounds
// repeat until 2 GB have moved, so that the dirty lines which the last copies leave in the L2 cache
// are a negligible share.
struct CopiesBackToBack {
  static constexpr double kBytes = 2e9;
  int rounds = 1;                 // over all slots
  int copies;                     // rounds * slots
  std::deque<WorkGraph> methods;  // a deque: a WorkGraph cannot move

  explicit CopiesBackToBack(const GpuCopy& copy) {
    const double of_round = 2.0 * static_cast<double>(copy.half()) * copy.slots();
    // If the L2 cache could hold all slots, a second round would hit in it.
    if (of_round >= BackToBack::kBytes / 2) rounds = static_cast<int>(std::ceil(kBytes / of_round));
    copies = rounds * copy.slots();
    for (int method = 0; method < copy.methods(); ++method)
      methods.emplace_back([&](void* stream) {
        for (int round = 0; round < rounds; ++round)
          for (int slot = 0; slot < copy.slots(); ++slot) copy.run(method, slot, stream);
      });
  }
  // Seconds per copy.
  double seconds_of_one(double seconds_of_all) const { return seconds_of_all / copies; }
};

}  // namespace ashlar::bench
