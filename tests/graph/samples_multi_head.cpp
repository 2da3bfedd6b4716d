#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

void add_multi_head_samples(Samples&) {}

}  // namespace ashlar::tests
