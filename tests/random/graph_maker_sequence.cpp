#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_sequence() {}

}  // namespace ashlar::random_graphs
