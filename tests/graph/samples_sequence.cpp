#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

void add_sequence_samples(Samples&) {}

}  // namespace ashlar::tests
