#include "graph/bad_input.hpp"

namespace ashlar::tests {

void add_bad_statistics(BadInputs&) {}

}  // namespace ashlar::tests
