// Something small, compiled, run and compared with the oracle, on every GPU or else on the
// CPU.
#include <stdlib.h>

#include <ashlar/graph.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "checking.hpp"
#include "doctor/apart.hpp"
#include "doctor/facts.hpp"
#include "inputs.hpp"
#include "runner.hpp"

namespace ashlar::cli {

namespace {

constexpr unsigned kTrialSeconds = 120;

constexpr const char* kKernel = R"({"format": "ashlar-graph", "version": 1, "name": "kernel",
  "tensors": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [1000]},
              {"name": "y", "kind": "output", "dtype": "f32"}],
  "nodes": [{"name": "relu", "op": "pointwise", "inputs": {"x": "x"}, "outputs": {"y": "y"},
             "attributes": {"mode": "relu_fwd"}}]})";
constexpr const char* kConvolution = R"({"format": "ashlar-graph", "version": 1,
  "name": "convolution",
  "tensors": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [1, 8, 9, 9]},
              {"name": "w", "kind": "input", "dtype": "f32", "dims": [4, 8, 3, 3]},
              {"name": "y", "kind": "output", "dtype": "f32"}],
  "nodes": [{"name": "conv", "op": "conv_forward", "inputs": {"x": "x", "w": "w"},
             "outputs": {"y": "y"}, "attributes": {"padding": [1, 1]}, "compute": "f32"}]})";

nlohmann::json trial(const std::string& device, const char* name, const char* graph_text) {
  bool ok = false;
  std::string text;
  try {
    const Graph graph = Graph::from_json(graph_text);
    TensorMemory memory(graph);
    fill_inputs(memory, {}, 1);
    const Runner runner(compile(graph, Device::named(device)), memory);
    runner.run();
    runner.download_outputs();
    const CheckReport report = check_outputs(memory, runner.plan().notes());
    ok = report.ok;
    text = report.headline;
  } catch (const std::exception& error) {
    text = error.what();
  }
  return {{"device", device}, {"name", name}, {"ok", ok}, {"text", text}};
}

std::string all_trials() {
  nlohmann::json result = nlohmann::json::array();
  for (const std::string& name : Device::known_names())
    if (const DeviceProps props = Device::named(name).props();
        props.kind == DeviceKind::cuda && props.present)
      for (const auto& [what, graph] :
           {std::pair{"kernel", kKernel}, std::pair{"convolution", kConvolution}})
        result.push_back(trial(name, what, graph));
  if (result.empty()) result.push_back(trial("cpu", "convolution", kConvolution));
  return result.dump();
}

// A cache that has nothing: kernels that were compiled earlier would prove nothing.
class EmptyCache {
 public:
  EmptyCache() {
    std::error_code error;
    name_ = (std::filesystem::temp_directory_path(error) / "ashlar_doctor_XXXXXX").string();
    is_made_ = !error && mkdtemp(name_.data()) != nullptr;
  }
  ~EmptyCache() {
    std::error_code ignored;
    if (is_made_) std::filesystem::remove_all(name_, ignored);
  }
  EmptyCache(const EmptyCache&) = delete;
  EmptyCache& operator=(const EmptyCache&) = delete;
  void use() const {
    if (is_made_) setenv("ASHLAR_CACHE", name_.c_str(), 1);
  }

 private:
  std::string name_;
  bool is_made_ = false;
};

}  // namespace

std::vector<Trial> run_trials() {
  const EmptyCache cache;
  const Apart run = run_apart(
      [&] {
        cache.use();
        return all_trials();
      },
      kTrialSeconds);
  if (!run.ok) return {{"any", "kernel", false, run.text}};
  std::vector<Trial> trials;
  for (const auto& one : nlohmann::json::parse(run.text))
    trials.push_back({one["device"], one["name"], one["ok"], one["text"]});
  return trials;
}

}  // namespace ashlar::cli
