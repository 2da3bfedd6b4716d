// A fake cuDNN: records descriptors and calls, rejects violations of the API, and runs nothing.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bench/peers/cudnn/library.hpp"

namespace ashlar::bench_test {

namespace cudnn = bench::cudnn;

struct StandInDescriptor {
  cudnn::DescriptorType type;
  bool finalized = false;
  std::map<cudnn::Attribute, std::vector<std::int64_t>> numbers;      // integers and enumerations
  std::map<cudnn::Attribute, std::vector<StandInDescriptor*>> parts;  // descriptors
  std::map<cudnn::Attribute, std::vector<void*>> pointers;
  std::map<cudnn::Attribute, double> reals;

  std::int64_t number(cudnn::Attribute name) const { return numbers.at(name).at(0); }
};

// One instance at a time: the API consists of plain functions.
class StandIn {
 public:
  StandIn();
  ~StandIn();
  cudnn::Functions functions() const;

  // --- configuration
  std::size_t max_operations = 100;              // in one graph
  std::set<cudnn::DescriptorType> refused = {};  // unsupported operations
  std::int64_t engines = 0;                      // of a graph, besides the proposed ones
  bool tensor_cores = false;                     // every engine rounds
  // --- record
  int alive = 0;                          // descriptors
  int plans = 0;                          // finalized
  std::vector<std::vector<void*>> runs;   // pointers of each execution
  std::vector<std::string> legacy_calls;  // by name
  std::vector<std::string> mistakes;      // of the caller
  // The operations of the graph that was finalized last.
  std::vector<const StandInDescriptor*> operations;
};

}  // namespace ashlar::bench_test
