// A plan on tensors of its own for each run, one run after the other in a CUDA graph, as a model
// runs its layers: a launch may begin while the one before it ends, and none finds its tensors in a
// cache; and as many copies likewise.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "gpu_tensors.hpp"
#include "work_graph.hpp"

namespace ashlar::bench {

struct BackToBack {
  static constexpr double kBytes = 256 << 20;  // together, several times any L2 cache
  static constexpr double kLeast = 8, kMaxRuns = 32;
  std::vector<GpuTensors> tensors;

  // Copies of `own`, of which a run moves so many bytes.
  BackToBack(const Gpu& gpu, const Graph& graph, const GpuTensors& own, double bytes) {
    const auto runs = static_cast<int>(std::clamp(std::ceil(kBytes / bytes), kLeast, kMaxRuns));
    for (int i = 0; i < runs; ++i) tensors.push_back(own.copied(gpu, graph));
  }
  // run_on(pointers, stream) of each.
  template <class Run>
  WorkGraph captured(const Run& run_on) const {
    return WorkGraph([&](void* stream) {
      for (const GpuTensors& one : tensors) run_on(one.pointers(), stream);
    });
  }
  // Of one run among them.
  double seconds_of_one(double seconds_of_all) const {
    return seconds_of_all / static_cast<double>(tensors.size());
  }
};

// Copies of each place, one after the other; a graph for each way to copy. They go round until they
// have moved so much that what the last ones leave in a cache, unwritten, counts for little.
struct CopiesInARow {
  static constexpr double kBytes = 2e9;
  int rounds = 1, copies;      // of all places; in all
  std::deque<WorkGraph> ways;  // they stay where they are

  explicit CopiesInARow(const GpuCopy& copy) {
    const double of_round = 2.0 * static_cast<double>(copy.half()) * copy.places();
    // Where a cache could hold all places a second round would find them there.
    if (of_round >= BackToBack::kBytes / 2) rounds = static_cast<int>(std::ceil(kBytes / of_round));
    copies = rounds * copy.places();
    for (int way = 0; way < copy.ways(); ++way)
      ways.emplace_back([&](void* stream) {
        for (int round = 0; round < rounds; ++round)
          for (int place = 0; place < copy.places(); ++place) copy.run(way, place, stream);
      });
  }
  // Of one copy among them.
  double seconds_of_one(double seconds_of_all) const { return seconds_of_all / copies; }
};

}  // namespace ashlar::bench
