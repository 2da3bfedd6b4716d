// Recorded calls of programs: one JSON object a line, as shared/replay/README.md describes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>
#include "graph/json.hpp"

namespace ashlar::replay {

using nlohmann::json;

struct Recording {
  std::string name;
  std::vector<json> calls;
  // Extents from 256 on of products and attention are this many times smaller than recorded, and so
  // are the batches of everything else: the oracle computes in double, on few cores.
  std::int64_t divisor = 1;
};

// Reads a file, with the descriptors of another one of the same folder that it refers to before it.
// `max_flops` is how much arithmetic one execution may have; shapes are reduced until it fits.
Recording read_recording(const std::filesystem::path& file, double max_flops);

// The recordings of ASHLAR_REPLAY (default: shared/replay beside the repository), else those of
// tests/data/replay.
std::vector<std::filesystem::path> recordings();

}  // namespace ashlar::replay
