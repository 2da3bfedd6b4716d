#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_multi_head() {}

}  // namespace ashlar::random_graphs
