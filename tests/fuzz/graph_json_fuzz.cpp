// Fuzzes the graph reader: malformed text may only throw ashlar::Error. Accepted graphs are valid
// and round-trip through JSON.
#include <ashlar/graph.hpp>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using ashlar::Graph;
  std::string written;
  std::uint64_t hash = 0;
  try {
    const Graph graph =
        Graph::from_json(std::string_view(reinterpret_cast<const char*>(data), size));
    graph.validate();
    hash = graph.structural_hash();
    written = graph.to_json();
    if (graph.to_text().empty()) throw std::logic_error("a graph without text");
  } catch (const ashlar::Error&) {
    return 0;
  }
  // Outside the handler: an error from here on is a defect.
  const Graph again = Graph::from_json(written);
  if (again.to_json() != written) throw std::logic_error("JSON changed in a round trip");
  if (again.structural_hash() != hash) throw std::logic_error("the hash changed in a round trip");
  return 0;
}
