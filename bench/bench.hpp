// The benchmark, as the `ashlar` command uses it.
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
  std::vector<std::string> suites;  // names or files; none: all that are built in
  std::string filter;               // only cases with this text in their name
  std::string json, html;           // files to write; empty: none
  std::string record;               // folder for one JSON file per suite; empty: none
  std::string commit = "unknown";   // for the records
  std::string device = "cpu";       // or "cuda:0"; for `kernels` also one that is not here
  std::vector<std::string>
      peers;                    // onednn, cudnn:PATH, naive, none; none given: as suits the device
  std::string layout = "both";  // of oneDNN: user, best, both
  std::uint64_t seed = 1;
  std::optional<double> seconds;  // of timing per case
  int threads = 0;                // 0: as many as OpenMP would use
  bool quick = false;
  bool oracle = false;
  bool list = false;
  bool kernels = false;  // print what our plans are made of and stop
  std::string pack;      // file for all kernels that a run would need; empty: measure
  bool tune = false;
  bool configs = false;                    // time every configuration of ours instead
  int max_configs = 0;                     // of a region, those with the least estimates; 0: all
  std::string engine;                      // take this one wherever it can run; empty: any
  bool host = false;                       // measure what plans cost the host
  bool compile_only = false;               // the part of it that a second process does
  std::string program = "/proc/self/exe";  // this command
};

struct Listener {
  std::function<void(const std::string&)> print;     // results
  std::function<void(const std::string&)> progress;  // what is being done
};

// Whether every output was right. Throws Error for names, files and graphs that are not.
bool run(const Request& request, const Listener& listener);

// The graphs of suites (docs/graph-json.md), for whoever has other use for them. Names as in
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
