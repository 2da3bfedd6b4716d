// Small valid graphs: the sample of every operation, and more with options, layouts and dtypes.
#pragma once

#include <ashlar/graph.hpp>
#include <string>
#include <vector>

namespace ashlar::tests {

struct SampleGraph {
  std::string op;  // the operation it is a sample of
  Graph graph;
};

std::vector<SampleGraph> sample_graphs();

using Samples = std::vector<SampleGraph>;

inline std::vector<Value> values_of(std::vector<Value> values) { return values; }
template <class Op>
std::vector<Value> values_of(const Outputs<Op>& outputs) {
  return outputs.all();
}

// Adds a graph named after its operation; `build` returns its results.
template <class Build>
void sample(Samples& samples, const std::string& op, const Build& build) {
  Graph graph(op + "_sample");
  int count = 0;
  for (const Value& value : values_of(build(graph)))
    if (value) graph.output("out" + std::to_string(count++), value);
  samples.push_back({op, std::move(graph)});
}

void add_recurrent_samples(Samples& samples);
void add_low_precision_samples(Samples& samples);
void add_statistics_samples(Samples& samples);
void add_spatial_samples(Samples& samples);
void add_sequence_samples(Samples& samples);
void add_multi_head_samples(Samples& samples);
void add_indexing_samples(Samples& samples);
void add_language_model_samples(Samples& samples);
void add_lines_samples(Samples& samples);

}  // namespace ashlar::tests
