#include "graph/bad_input.hpp"

namespace ashlar::tests {

void add_bad_recurrent(BadInputs&) {}

}  // namespace ashlar::tests
