#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_spatial() {}

}  // namespace ashlar::random_graphs
