#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_recurrent() {}

}  // namespace ashlar::random_graphs
