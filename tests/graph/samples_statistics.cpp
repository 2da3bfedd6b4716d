#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

void add_statistics_samples(Samples&) {}

}  // namespace ashlar::tests
