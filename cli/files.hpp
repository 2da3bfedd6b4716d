// Whole files, with errors as sentences.
#pragma once

#include <ashlar/graph.hpp>
#include <cstddef>
#include <string>
#include <string_view>

namespace ashlar::cli {

// Throws Error(io) when the file cannot be read or is longer than `max_bytes`. "-" is standard
// input.
std::string read_file(const std::string& path, std::size_t max_bytes);

// Throws Error(io) unless every byte reached the file; what was written of it is removed then.
void write_file(const std::string& path, std::string_view bytes);

// Reads a graph in JSON; errors name the file.
Graph read_graph(const std::string& path);

}  // namespace ashlar::cli
