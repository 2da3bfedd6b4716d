#include "graph/bad_input.hpp"

namespace ashlar::tests {

void add_bad_spatial(BadInputs&) {}

}  // namespace ashlar::tests
