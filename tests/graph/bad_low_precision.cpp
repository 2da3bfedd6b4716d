#include "graph/bad_input.hpp"

namespace ashlar::tests {

void add_bad_low_precision(BadInputs&) {}

}  // namespace ashlar::tests
