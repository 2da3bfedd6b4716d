#include "graph/bad_input.hpp"

namespace ashlar::tests {

void add_bad_sequence(BadInputs&) {}

}  // namespace ashlar::tests
