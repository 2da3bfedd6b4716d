// A golden case: a graph, its inputs, and the outputs PyTorch computed (make_goldens.py).
#pragma once

#include <ashlar/graph.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace ashlar::golden {

struct File {
  Graph graph;
  std::vector<TensorId> bound;              // Graph::bound_tensors()
  std::vector<std::vector<double>> values;  // of each bound tensor, row-major
};

// Names of the cases under tests/golden/data, sorted.
std::vector<std::string> case_names();

// Throws std::runtime_error if the file does not match its graph.
File load(const std::string& name);

// Memory for every bound tensor: inputs filled, outputs poisoned.
class Memory {
 public:
  explicit Memory(const File& file);
  std::vector<const void*> readable() const;
  std::vector<void*> writable();
  const void* at(std::size_t position) const { return blocks_[position].data(); }

 private:
  std::vector<std::vector<std::byte>> blocks_;
};

}  // namespace ashlar::golden
