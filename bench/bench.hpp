// Entry point of the benchmark: `ashlar bench` fills a Request and calls run().
#pragma once

#include <ashlar/graph.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ashlar::bench {

struct Request {
  std::vector<std::string> suites;  // names or files; none: all built-in suites of the device
  std::string filter;               // only cases with this text in their name
  std::string json, html;           // files to write; empty: none
  std::string record;               // folder for one JSON file per suite; empty: none
  std::string commit = "unknown";   // for the records
  std::string device = "cpu";  // or "cuda:0"; for `kernels` and `bundle` also one that is absent
  // CPU: onednn (the default) or none. GPU: cudnn:PATH, cublaslt:PATH, naive (the
  // one-thread-per-output engine cuda.generic) or none (the default).
  std::vector<std::string> peers;
  std::string layout = "both";  // of oneDNN: user, best, both
  std::uint64_t seed = 1;
  std::optional<double> seconds;  // of timing per case
  int threads = 0;                // 0: OpenMP's default
  bool quick = false;
  bool oracle = false;
  bool list = false;
  bool kernels = false;  // print the regions and engines of our plans and stop
  std::string bundle;    // write all kernels that a run would need to this file; empty: measure
  bool tune = false;
  bool configs = false;                    // time every engine configuration instead
  int max_configs = 0;                     // per region, by increasing estimate; 0: all
  std::string engine;                      // prefer this engine wherever it can run; empty: any
  bool host = false;                       // measure host overhead instead
  bool compile_only = false;               // the child process of `host`
  std::string program = "/proc/self/exe";  // this executable, for the child process
};

struct Listener {
  std::function<void(const std::string&)> print;     // results
  std::function<void(const std::string&)> progress;  // the current step
};

// Returns whether every output was correct. Throws Error for an unknown suite, an unreadable file
// or an invalid graph.
bool run(const Request& request, const Listener& listener);

// The graphs of suites as JSON (docs/graph-json.md), for other commands. Names as in
// Request::suites; throws as run() does.
struct SuiteGraph {
  std::string name;  // "norms/layer_norm_1024"
  std::string graph;
};
std::vector<SuiteGraph> suite_graphs(const std::vector<std::string>& suites);

// oneDNN on a graph of the user's: the fastest of its implementations on the user's layouts.
struct PeerProgram {
  std::string name;           // "oneDNN 2.6.3"
  std::function<void()> run;  // empty: see `absence`
  std::string implementation;
  std::string absence;  // why it does not run, a clause: "not in this build (...)"
};
// `pointers` as Plan::run() takes them; inputs are read from there, outputs are the peer's own.
PeerProgram onednn_program(const Graph& graph, std::span<void* const> pointers);

// The ceilings of the CPU's roofline: multiply-adds on registers, and copies as large as the
// working set, on the threads that OpenMP uses. Sampled between runs because the clock of a shared
// machine drifts; the best samples count, as other processes only lower them.
class CpuCeilings {
 public:
  explicit CpuCeilings(double working_set_bytes);
  ~CpuCeilings();
  void sample();
  double flops_f32() const;  // per second
  double bytes_per_second() const;

 private:
  struct Samples;
  std::unique_ptr<Samples> samples_;
};

}  // namespace ashlar::bench
