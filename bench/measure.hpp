// Measures one case: fills inputs, runs all sides, checks the results, times them.
#pragma once

#include <ashlar/bundle.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "suite.hpp"

namespace ashlar::bench {

class Gpu;
namespace cudnn {
class Library;
}
namespace cublaslt {
class Library;
}

struct MeasureOptions {
  double seconds = 1.0;          // of timing, all sides together
  std::int64_t min_samples = 7;  // of each side, however long they take
  std::uint64_t seed = 1;        // of the inputs
  bool oracle = false;           // check every case against the oracle
  bool naive = true;        // on a GPU: time cuda.generic (one thread per output) if that is quick
  bool user_layout = true;  // time oneDNN on the user's layouts
  bool best_layout = true;  // time oneDNN on layouts of its choice
  bool tune = false;        // tune our plans
  int max_configs = 0;      // candidates per region for tuning and --configs; 0: all
  std::string engine = {};  // prefer this engine wherever it can run; empty: any
  Gpu* gpu = nullptr;       // null: the CPU
  // The peers on the GPU; null: none. Matmuls go to cuBLASLt first.
  const cudnn::Library* cudnn = nullptr;
  const cublaslt::Library* cublaslt = nullptr;
  double search_seconds = 0.7;  // to search the peer's plans for one call
};

// Medians, in seconds; absent if not measured.
struct Measurement {
  std::string name;
  double ours = 0;
  std::optional<double> peer;        // oneDNN on the user's layouts; cuDNN or cuBLASLt
  std::optional<double> peer_best;   // oneDNN on layouts of its choice
  std::optional<double> alone;       // ours without the fused operations
  std::optional<double> peer_alone;  // the peer likewise (oneDNN: on the user's layouts)
  std::optional<double> naive;       // GPU: cuda.generic, one thread per output
  std::optional<double> apart;       // ours as several graphs
  std::optional<double> same_copy;   // GPU, memory-bound case: a copy with the same traffic
  // GPU: per run of `runs_back_to_back` runs, each on its own tensors.
  std::optional<double> back_to_back;
  std::optional<double> same_copy_back_to_back;  // likewise, of the copy with the same traffic
  std::int64_t runs_back_to_back = 0;
  std::int64_t samples = 0;
  double arithmetic = 0;     // operations; 0 for a graph without matmul-like operations
  double traffic = 0;        // bytes
  double apart_traffic = 0;  // bytes of the several graphs
  double peak = 0;           // operations per second; CPU: of the FMA loop between the samples
  double copy_speed = 0;     // bytes per second; CPU: of the copy between the samples
  std::vector<std::pair<std::string, double>> stages;  // GPU: seconds spent per stage
  bool ok = false;               // the outputs are correct; otherwise nothing is timed
  std::string check;             // the reference of the check and the worst error
  std::string engine;            // engines of our plan
  std::string config;            // knobs of our plan
  int kernels = 0;               // regions of our plan
  std::size_t peer_kernels = 0;  // calls that the peer needed
  std::string peer_name;         // on a GPU: "cudnn", "cublaslt"
  std::string peer_refusal;      // the peer's own message why it does not run the case
  std::string peer_implementation;
  std::string peer_best_implementation;

  // Above 1: we are faster.
  std::optional<double> speed() const { return over_ours(peer); }
  std::optional<double> speed_best() const { return over_ours(peer_best); }
  std::optional<double> speed_naive() const { return over_ours(naive); }
  std::optional<double> speed_apart() const { return over_ours(apart); }
  std::optional<double> overhead() const;  // of the fused operations: 0.05 is 5 %
  std::optional<double> peer_overhead() const;
  // Roofline time: max(arithmetic / peak, traffic / copy bandwidth). Winograd convolutions multiply
  // less and can be faster.
  double roofline() const;
  double share() const { return roofline() / ours; }
  std::optional<double> share_back_to_back() const {
    return back_to_back ? std::optional(roofline() / *back_to_back) : std::nullopt;
  }
  // Our bandwidth over that of large warm copies, and over that of a copy with the same traffic,
  // timed like the case.
  double copy_share() const { return copy_speed > 0 ? traffic / ours / copy_speed : 0; }
  std::optional<double> same_copy_share() const { return over_ours(same_copy); }
  // The latter with both sides back to back.
  std::optional<double> copy_share_back_to_back() const {
    return back_to_back && same_copy_back_to_back
               ? std::optional(*same_copy_back_to_back / *back_to_back)
               : std::nullopt;
  }

 private:
  std::optional<double> over_ours(std::optional<double> seconds) const {
    return seconds ? std::optional(*seconds / ours) : std::nullopt;
  }
};

// Reports its current step through `progress`. With options.gpu this is measure_on_gpu().
Measurement measure(const Case& problem, const MeasureOptions& options,
                    const std::function<void(const std::string&)>& progress);
struct PlanRequest;
PlanRequest plan_request_of(const MeasureOptions& options);
// All kernels that measuring the cases needs on a GPU, which may be absent: of every plan of ours,
// with `tune` of every candidate.
BundleBuilder kernels_of(const std::vector<Suite>& suites, const Device& device,
                         const PlanRequest& request);
// Compiles them on all cores, so that measuring finds them in the cache. Failures are ignored:
// measuring reports them.
void compile_ahead(const std::vector<Suite>& suites, const MeasureOptions& options,
                   const std::function<void(const std::string&)>& progress);
Measurement measure_on_gpu(const Case& problem, const MeasureOptions& options,
                           const std::function<void(const std::string&)>& progress);

}  // namespace ashlar::bench
