#include "graph/bad_input.hpp"

namespace ashlar::tests {

void add_bad_multi_head(BadInputs&) {}

}  // namespace ashlar::tests
