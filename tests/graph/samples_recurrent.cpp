#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

void add_recurrent_samples(Samples&) {}

}  // namespace ashlar::tests
