#include "legacy/convolution_algorithms.hpp"

#include <algorithm>
#include <array>
#include <ashlar/memory.hpp>
#include <span>

#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

using Listed = std::optional<ConvStrategy>;
constexpr std::array<Listed, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> kForward = {
    kOwnMemory,          // IMPLICIT_GEMM
    kBest,               // IMPLICIT_PRECOMP_GEMM
    std::nullopt,        // GEMM
    std::nullopt,        // DIRECT
    std::nullopt,        // FFT
    std::nullopt,        // FFT_TILING
    kWinogradOwnMemory,  // WINOGRAD
    kWinograd,           // WINOGRAD_NONFUSED
};
constexpr std::array<Listed, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT> kBackwardData = {
    kOwnMemory,          // 0
    kBest,               // 1
    std::nullopt,        // FFT
    std::nullopt,        // FFT_TILING
    kWinogradOwnMemory,  // WINOGRAD
    kWinograd,           // WINOGRAD_NONFUSED
};
constexpr std::array<Listed, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT> kBackwardFilter = {
    kOwnMemory,          // 0
    kBest,               // 1
    std::nullopt,        // FFT
    std::nullopt,        // 3
    kWinogradOwnMemory,  // WINOGRAD
    kWinograd,           // WINOGRAD_NONFUSED
    std::nullopt,        // FFT_TILING
};

std::span<const Listed> list_of(ConvKind kind) {
  switch (kind) {
    case ConvKind::forward: return kForward;
    case ConvKind::backward_data: return kBackwardData;
    case ConvKind::backward_filter: return kBackwardFilter;
  }
  return {};
}

AlgorithmReport absent(int algorithm) { return {algorithm, CUDNN_STATUS_NOT_SUPPORTED}; }

// The planner's estimate for a strategy. Empty when Winograd is allowed but not used: the strategy
// then duplicates the one without Winograd.
std::optional<AlgorithmReport> predicted(cudnnHandle_t handle, const Convolution& conv,
                                         int algorithm, ConvStrategy strategy) {
  const ConvolutionCall planned(handle, conv, strategy);
  const PlanNotes& notes = planned.call().plan().notes();
  if (strategy.allows_winograd && notes.winograd == 0) return std::nullopt;
  AlgorithmReport report{algorithm, CUDNN_STATUS_SUCCESS};
  report.workspace_bytes = static_cast<std::size_t>(planned.call().workspace_size());
  report.is_deterministic = notes.deterministic;
  return report;
}

float fastest_milliseconds(ConvolutionCall& call, void* workspace, std::size_t bytes) {
  constexpr int kMaxRuns = 10;
  constexpr double kEnoughSeconds = 0.01;
  Timer timer(call.call().device());
  call.run(workspace, bytes);  // warm-up
  double fastest = 0.0, spent = 0.0;
  for (int run = 0; run < kMaxRuns && spent < kEnoughSeconds; ++run) {
    timer.start(call.call().stream());
    call.run(workspace, bytes);
    timer.stop(call.call().stream());
    const double seconds = timer.seconds();
    fastest = run == 0 ? seconds : std::min(fastest, seconds);
    spent += seconds;
  }
  return static_cast<float>(fastest * 1e3);
}

// A failure is the status of that algorithm's report; the other algorithms are still measured.
void measure(cudnnHandle_t handle, const Convolution& conv, const ConvMemory& memory,
             void* workspace, std::size_t bytes, AlgorithmReport& report) {
  try {
    ConvolutionCall call(handle, conv, strategy_of(conv.kind, report.algorithm));
    if (!fits(call.call(), workspace, bytes)) {
      report.status = CUDNN_STATUS_ALLOC_FAILED;
      return;
    }
    call.bind(memory);
    report.milliseconds = fastest_milliseconds(call, workspace, bytes);
  } catch (const Error& error) {
    report.status = status_of(error);
  }
}

}  // namespace

int algorithm_count(ConvKind kind) { return static_cast<int>(list_of(kind).size()); }

std::optional<ConvStrategy> listed_strategy(ConvKind kind, int algorithm) {
  if (algorithm < 0 || algorithm >= algorithm_count(kind))
    fail(CUDNN_STATUS_BAD_PARAM, "algo: got {}, expected 0 to {}", algorithm,
         algorithm_count(kind) - 1);
  return list_of(kind)[static_cast<std::size_t>(algorithm)];
}

std::vector<AlgorithmReport> predicted_algorithms(cudnnHandle_t handle, const Convolution& conv) {
  std::vector<AlgorithmReport> reports, absent_ones;
  // The planner uses Winograd only where it expects it to be faster, so Winograd comes first.
  for (const ConvStrategy strategy : {kWinograd, kWinogradOwnMemory, kBest, kOwnMemory})
    for (int algorithm = 0; algorithm < algorithm_count(conv.kind); ++algorithm)
      if (listed_strategy(conv.kind, algorithm) == strategy) {
        if (const auto report = predicted(handle, conv, algorithm, strategy))
          reports.push_back(*report);
        else
          absent_ones.push_back(absent(algorithm));
      }
  for (int algorithm = 0; algorithm < algorithm_count(conv.kind); ++algorithm)
    if (!listed_strategy(conv.kind, algorithm)) absent_ones.push_back(absent(algorithm));
  reports.insert(reports.end(), absent_ones.begin(), absent_ones.end());
  return reports;
}

std::vector<AlgorithmReport> measured_algorithms(cudnnHandle_t handle, const Convolution& conv,
                                                 const ConvMemory& memory, void* workspace,
                                                 std::size_t bytes) {
  std::vector<AlgorithmReport> reports = predicted_algorithms(handle, conv);
  for (AlgorithmReport& report : reports)
    if (report.status == CUDNN_STATUS_SUCCESS)
      measure(handle, conv, memory, workspace, bytes, report);
  std::stable_sort(reports.begin(), reports.end(),
                   [](const AlgorithmReport& a, const AlgorithmReport& b) {
                     const bool a_ran = a.milliseconds >= 0, b_ran = b.milliseconds >= 0;
                     return a_ran != b_ran ? a_ran : a_ran && a.milliseconds < b.milliseconds;
                   });
  return reports;
}

std::vector<AlgorithmReport> measured_algorithms(cudnnHandle_t handle, const Convolution& conv) {
  const Device& device = object(handle, "handle").device;
  const auto zeros = [&](std::int64_t bytes) {
    Memory memory(device, std::max<std::int64_t>(bytes, 1));
    memory.fill(std::byte{0});
    return memory;
  };
  const Memory x = zeros(byte_size(conv.x)), w = zeros(byte_size(conv.w)),
               y = zeros(byte_size(conv.y));
  std::size_t maximum = 0;
  for (const AlgorithmReport& report : predicted_algorithms(handle, conv))
    maximum = std::max(maximum, report.workspace_bytes);
  const Memory workspace = zeros(static_cast<std::int64_t>(maximum));
  std::vector<AlgorithmReport> reports =
      measured_algorithms(handle, conv, {x.data(), w.data(), y.data()}, workspace.data(), maximum);
  device.synchronize(object(handle, "handle").stream);  // before the buffers are freed
  return reports;
}

std::size_t workspace_bytes(cudnnHandle_t handle, const Convolution& conv, int algorithm) {
  const ConvolutionCall planned(handle, conv, strategy_of(conv.kind, algorithm));
  return static_cast<std::size_t>(planned.call().workspace_size());
}

void require_room(int capacity, const int* count, const void* results) {
  required(count, "returnedAlgoCount");
  required(results, "perfResults");
  if (capacity < 1)
    fail(CUDNN_STATUS_BAD_PARAM, "requestedAlgoCount: got {}, expected at least 1", capacity);
}

}  // namespace ashlar::cudnn
