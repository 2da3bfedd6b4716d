// One case: filled, run by all sides, checked, timed.
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
  double seconds = 1.0;     // of timing, all sides together
  std::int64_t least = 7;   // samples of each side, however long they take
  std::uint64_t seed = 1;   // of the inputs
  bool oracle = false;      // check every case against the oracle
  bool naive = true;        // time the reference engine (GPU: the generic one) where that is quick
  bool user_layout = true;  // time oneDNN on the user's layouts
  bool best_layout = true;  // time oneDNN on the layouts it likes
  bool tune = false;        // let our plans be tuned
  int max_configs = 0;      // of a region, that are timed or tuned; 0: all
  std::string engine = {};  // take this one wherever it can run; empty: any
  Gpu* gpu = nullptr;       // null: the processor
  // The peers on the GPU, null: none. Products go to cuBLASLt first.
  const cudnn::Library* cudnn = nullptr;
  const cublaslt::Library* cublaslt = nullptr;
  double search_seconds = 0.7;  // for the plans of one call of a peer
};

// Medians, in seconds; absent where nobody was there to measure.
struct Measurement {
  std::string name;
  double ours = 0;
  std::optional<double> peer;        // oneDNN on the user's layouts; cuDNN
  std::optional<double> peer_best;   // oneDNN on its own
  std::optional<double> alone;       // ours without what is fused
  std::optional<double> peer_alone;  // the peer likewise (oneDNN: on the user's layouts)
  std::optional<double> naive;       // the reference engine; on a GPU the generic one
  std::optional<double> apart;       // ours as several graphs
  std::optional<double> same_copy;   // on a GPU, about bytes: a copy that moves as many
  std::optional<double>
      back_to_back;  // of one run among `runs_back_to_back`, each with its own tensors
  std::optional<double> same_copy_back_to_back;  // likewise, of a copy that moves as many bytes
  std::int64_t runs_back_to_back = 0;
  std::int64_t samples = 0;
  double arithmetic = 0;     // operations, 0 when the case is about bytes
  double traffic = 0;        // bytes
  double apart_traffic = 0;  // bytes of the several graphs
  double peak = 0;           // operations per second that the multiply-add loop reached, in between
  double copy_speed = 0;     // bytes per second that the copy reached, in between
  std::vector<std::pair<std::string, double>> stages;  // seconds spent, on a GPU
  bool ok = false;               // the outputs are right; nothing is timed otherwise
  std::string check;             // what they were compared with, and how far off they were
  std::string engine;            // of ours
  std::string config;            // knobs of ours
  int kernels = 0;               // regions of our plan
  std::size_t peer_kernels = 0;  // calls that the peer needed
  std::string peer_name;         // on a GPU: "cudnn", "cublaslt"
  std::string peer_refusal;      // why there is no peer, in its own words
  std::string peer_implementation;
  std::string peer_best_implementation;

  // Above 1: we are faster.
  std::optional<double> speed() const { return over_ours(peer); }
  std::optional<double> speed_best() const { return over_ours(peer_best); }
  std::optional<double> speed_naive() const { return over_ours(naive); }
  std::optional<double> speed_apart() const { return over_ours(apart); }
  std::optional<double> overhead() const;  // of what is fused: 0.05 is 5 %
  std::optional<double> peer_overhead() const;
  // The least time this machine could need: arithmetic at peak, bytes at the speed of a copy. An
  // algorithm that multiplies less, such as Winograd's, can stay below.
  double limit() const;
  double share() const { return limit() / ours; }
  std::optional<double> row_share() const {
    return back_to_back ? std::optional(limit() / *back_to_back) : std::nullopt;
  }
  // Our bytes per second as a share of those of large copies with warm caches; and of those of a
  // copy as large as the case, timed as the case is.
  double copy_share() const { return copy_speed > 0 ? traffic / ours / copy_speed : 0; }
  std::optional<double> same_copy_share() const { return over_ours(same_copy); }
  // Our bytes per second in a row as a share of those of such copies in a row.
  std::optional<double> row_copy_share() const {
    return back_to_back && same_copy_back_to_back
               ? std::optional(*same_copy_back_to_back / *back_to_back)
               : std::nullopt;
  }

 private:
  std::optional<double> over_ours(std::optional<double> seconds) const {
    return seconds ? std::optional(*seconds / ours) : std::nullopt;
  }
};

// Says what it is doing through `progress`. The second is the first where options name a GPU.
Measurement measure(const Case& problem, const MeasureOptions& options,
                    const std::function<void(const std::string&)>& progress);
// What our plans are to be.
struct PlanWishes;
PlanWishes wishes_of(const MeasureOptions& options);
// What measuring the cases takes on a GPU, which need not be here: every plan of every side of
// ours, with `tune` all that is timed for them.
BundleBuilder kernels_of(const std::vector<Suite>& suites, const Device& device,
                         const PlanWishes& wishes);
// Compiles it on all processors, so that measuring finds it in the cache. What fails here fails
// again where it is measured.
void compile_ahead(const std::vector<Suite>& suites, const MeasureOptions& options,
                   const std::function<void(const std::string&)>& progress);
Measurement measure_on_gpu(const Case& problem, const MeasureOptions& options,
                           const std::function<void(const std::string&)>& progress);

}  // namespace ashlar::bench
