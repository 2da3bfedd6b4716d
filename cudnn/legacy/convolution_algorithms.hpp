// cuDNN's convolution algorithms: the strategy behind each, and their ranking.
//
// There are four strategies: the planner's choice without and with Winograd, each with an unlimited
// caller workspace or with none. Algorithms without a strategy (FFT, explicit GEMM, ...) are listed
// as not supported, so that no program selects them for a speed they do not have. A program that
// calls one anyway gets the best strategy.
#pragma once

#include <optional>
#include <vector>

#include "legacy/convolution.hpp"

namespace ashlar::cudnn {

int algorithm_count(ConvKind kind);
// Empty for an algorithm without a strategy; throws Failure(BAD_PARAM) for an invalid enumerator.
std::optional<ConvStrategy> listed_strategy(ConvKind kind, int algorithm);
// The strategy that a call with this algorithm runs.
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

// Every algorithm, best first by the planner's estimates; unsupported ones last.
std::vector<AlgorithmReport> predicted_algorithms(cudnnHandle_t handle, const Convolution& conv);
// The same, measured on this memory, fastest first. Algorithms whose workspace does not fit are
// reported as ALLOC_FAILED.
std::vector<AlgorithmReport> measured_algorithms(cudnnHandle_t handle, const Convolution& conv,
                                                 const ConvMemory& memory, void* workspace,
                                                 std::size_t bytes);
// Measures on buffers that it allocates.
std::vector<AlgorithmReport> measured_algorithms(cudnnHandle_t handle, const Convolution& conv);

// Workspace bytes of the algorithm.
std::size_t workspace_bytes(cudnnHandle_t handle, const Convolution& conv, int algorithm);

// Fills a caller's array.
template <class Perf>
void copy_reports(const std::vector<AlgorithmReport>& reports, const Convolution& conv,
                  int capacity, int* count, Perf* results) {
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

// Throws Failure for an array that cannot hold results.
void require_room(int capacity, const int* count, const void* results);

}  // namespace ashlar::cudnn
