#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

void add_low_precision_samples(Samples&) {}

}  // namespace ashlar::tests
