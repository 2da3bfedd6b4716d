// The algorithms of cuDNN's lists: which of our ways stands behind each, and how they compare.
//
// Two ways are ours: the engine the planner likes best, and the best one of those that may use
// Winograd tiles; each with all the workspace it wants of the caller or with none. What has no way
// behind it (FFT, explicit GEMM, ...) is listed as not supported, so that no program picks it for a
// speed that it has not; a program that calls it anyway gets the best engine.
#pragma once

#include <optional>
#include <vector>

#include "legacy/convolution.hpp"

namespace ashlar::cudnn {

int algorithm_count(ConvKind kind);
// Nothing where we have no such way; throws Failure(BAD_PARAM) for what is no algorithm.
std::optional<ConvStrategy> listed_strategy(ConvKind kind, int algorithm);
// The way a call of the algorithm runs.
inline ConvStrategy strategy_of(ConvKind kind, int algorithm) {
  return listed_strategy(kind, algorithm).value_or(kBest);
}

struct AlgorithmReport {
  int algorithm;
  cudnnStatus_t status;
  float milliseconds = -1.0F;  // -1: not measured
  std::size_t workspace_bytes = 0;
  bool is_deterministic = true;
};

// Every algorithm, best first by the planner's estimates; those without a way behind them last.
std::vector<AlgorithmReport> predicted_algorithms(cudnnHandle_t handle, const Convolution& conv);
// The same, each run on this memory, the fastest first. Algorithms whose workspace does not fit
// are reported as ALLOC_FAILED.
std::vector<AlgorithmReport> measured_algorithms(cudnnHandle_t handle, const Convolution& conv,
                                                 const ConvMemory& memory, void* workspace,
                                                 std::size_t bytes);
// On memory of its own.
std::vector<AlgorithmReport> measured_algorithms(cudnnHandle_t handle, const Convolution& conv);

// Bytes the algorithm asks for.
std::size_t workspace_bytes(cudnnHandle_t handle, const Convolution& conv, int algorithm);

// Fills a caller's array.
template <class Perf>
void copy_reports(const std::vector<AlgorithmReport>& reports, const Convolution& conv, int capacity,
              int* count, Perf* results) {
  const int count_returned = std::min(capacity, static_cast<int>(reports.size()));
  for (int index = 0; index < count_returned; ++index) {
    const AlgorithmReport& report = reports[static_cast<std::size_t>(index)];
    Perf perf{};
    perf.algo = static_cast<decltype(perf.algo)>(report.algorithm);
    perf.status = report.status;
    perf.time = report.milliseconds;
    perf.memory = report.workspace_bytes;
    perf.determinism = report.is_deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
    perf.mathType = conv.math;
    results[index] = perf;
  }
  *count = count_returned;
}

// Throws Failure for an array that cannot take results.
void require_room(int capacity, const int* count, const void* results);

}  // namespace ashlar::cudnn
