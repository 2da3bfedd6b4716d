#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bench.hpp"
#include "suite.hpp"

namespace ashlar::bench {

namespace {

Suite read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    throw Error(ErrorCode::io, fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  return read_suite(std::filesystem::path(path).stem().string(), text);
}

}  // namespace

std::vector<Suite> choose_suites(std::span<const std::string> names, DeviceKind device) {
  std::vector<Suite> chosen;
  const auto take = [&](bool own, const auto& wanted) {
    const std::size_t before = chosen.size();
    for (const SuiteText& suite : built_in_suites())
      if ((suite.device == device) == own && wanted(suite.name))
        chosen.push_back(read_suite(std::string(suite.name), suite.text));
    return chosen.size() > before;
  };
  if (names.empty()) take(true, [](std::string_view) { return true; });
  for (const std::string& name : names) {
    if (name.ends_with(".json")) {
      chosen.push_back(read_file(name));
      continue;
    }
    const auto is_name = [&](std::string_view suite) { return suite == name; };
    const auto begins = [&](std::string_view suite) { return suite.starts_with(name + "_"); };
    if (!take(true, is_name) && !take(true, begins) && !take(false, is_name) &&
        !take(false, begins))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("unknown suite '{}'; `ashlar bench --list` prints all suites", name));
  }
  return chosen;
}

std::vector<SuiteGraph> suite_graphs(const std::vector<std::string>& suites) {
  std::vector<SuiteGraph> graphs;
  for (const Suite& suite : choose_suites(suites, DeviceKind::cuda))
    for (const Case& one : suite.cases)
      graphs.push_back({suite.name + "/" + one.name, one.problem.graph});
  return graphs;
}

}  // namespace ashlar::bench
