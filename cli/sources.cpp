#include "sources.hpp"

#include "files.hpp"

namespace ashlar::cli {

std::vector<bench::SuiteGraph> graphs_of(const std::string& source) {
  constexpr std::size_t kMaxBytes = 64 << 20;
  if (!source.ends_with(".json") && source != "-") return bench::suite_graphs({source});
  std::string text = read_file(source, kMaxBytes);
  if (text.find("\"ashlar-suite\"") != std::string::npos) return bench::suite_graphs({source});
  return {{source, std::move(text)}};
}

}  // namespace ashlar::cli
