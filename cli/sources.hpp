// Graphs that commands take in numbers: files, and suites by name.
#pragma once

#include <string>
#include <vector>

#include "bench/bench.hpp"

namespace ashlar::cli {

// A file is a graph unless it says that it is a suite; anything else is the name of a suite.
std::vector<bench::SuiteGraph> graphs_of(const std::string& source);

}  // namespace ashlar::cli
