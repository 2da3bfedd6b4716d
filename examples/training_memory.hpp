// What the training examples share: their command line, how their step is planned, and the host
// memory of a step.
#pragma once

#include <ashlar/ashlar.hpp>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// [full] [none|cheap|all]: whether the model has its full size, and what the plan recomputes.
struct Arguments {
  bool full = false;
  ashlar::CompileOptions options;
};
inline Arguments read_arguments(int argc, char** argv) {
  Arguments arguments;
  try {
    for (int i = 1; i < argc; ++i)
      if (i == 1 && std::string_view(argv[i]) == "full")
        arguments.full = true;
      else
        arguments.options.recompute = ashlar::parse_recompute(argv[i]);
  } catch (const ashlar::Error& error) {
    std::cerr << argv[0] << ": " << error.what() << ", or first 'full'\n";
    std::exit(2);
  }
  return arguments;
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline void print_planning(const ashlar::Graph& graph) {
  for (const char* device : {"cpu", "h200"}) {
    const auto start = std::chrono::steady_clock::now();
    const ashlar::Inspection inspection = ashlar::inspect(graph, ashlar::Device::named(device));
    std::cout << device << ": " << graph.nodes().size() << " operations, "
              << inspection.regions.size() << " regions, planned in " << 1e3 * seconds_since(start)
              << " ms\n";
  }
}

inline constexpr std::string_view kNext = ".next";

// Every output "name.next" may be written to the memory of the input "name".
inline ashlar::InPlace updates_in_place(const ashlar::Graph& graph) {
  ashlar::InPlace pairs;
  for (const ashlar::TensorId id : graph.bound_tensors()) {
    const std::string& name = graph.tensor(id).name;
    if (name.ends_with(kNext)) pairs.emplace_back(name, name.substr(0, name.size() - kNext.size()));
  }
  return pairs;
}

// One buffer per bound tensor; "name.next" is in that of "name".
class TrainingMemory {
 public:
  TrainingMemory(const ashlar::Graph& graph, const ashlar::Plan& plan)
      : plan_(plan), binding_(plan.binding()) {
    for (const ashlar::TensorId id : graph.bound_tensors()) {
      const ashlar::Tensor& tensor = graph.tensor(id);
      if (tensor.name.ends_with(kNext)) continue;
      std::vector<std::byte>& bytes = buffers_[tensor.name];
      bytes.resize(static_cast<std::size_t>(ashlar::byte_size(tensor)));
      binding_.set(tensor.name, bytes.data());
    }
    for (const auto& [next, name] : updates_in_place(graph)) binding_.set(next, data(name));
    std::size_t room = static_cast<std::size_t>(plan.workspace_size()) + 64;
    workspace_.resize(room);
    aligned_workspace_ = workspace_.data();
    std::align(64, static_cast<std::size_t>(plan.workspace_size()), aligned_workspace_, room);
  }
  TrainingMemory(const TrainingMemory&) = delete;
  TrainingMemory& operator=(const TrainingMemory&) = delete;

  std::byte* data(const std::string& name) { return buffers_.at(name).data(); }
  template <class T>
  T* as(const std::string& name) {
    return reinterpret_cast<T*>(data(name));
  }
  template <class T>
  void set(const std::string& name, T value) {
    std::memcpy(data(name), &value, sizeof value);
  }

  void step() { plan_.run(binding_, aligned_workspace_); }

 private:
  const ashlar::Plan& plan_;
  ashlar::Binding binding_;
  std::map<std::string, std::vector<std::byte>> buffers_;
  std::vector<std::byte> workspace_;
  void* aligned_workspace_ = nullptr;
};
