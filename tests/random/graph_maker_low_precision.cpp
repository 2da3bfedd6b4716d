#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_low_precision() {}

}  // namespace ashlar::random_graphs
