// Recorded calls of programs: one JSON object per line, as shared/replay/README.md describes.
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
  // The factor by which extents >= 256 of matmuls and attention, and the batches of all other
  // operations, are smaller than recorded: the oracle computes in double precision on few cores.
  std::int64_t divisor = 1;
};

// Reads a file, preceded by the recording of the same folder whose descriptors it refers to. Shapes
// are reduced until no execution exceeds `max_flops`.
Recording read_recording(const std::filesystem::path& file, double max_flops);

// The recordings of ASHLAR_REPLAY (default: shared/replay next to the repository), else those of
// tests/data/replay.
std::vector<std::filesystem::path> recordings();

}  // namespace ashlar::replay
