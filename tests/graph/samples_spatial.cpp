#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

void add_spatial_samples(Samples&) {}

}  // namespace ashlar::tests
