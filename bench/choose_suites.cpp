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

std::vector<Suite> choose_suites(std::span<const std::string> names) {
  std::vector<Suite> chosen;
  if (names.empty())
    for (const SuiteText& suite : built_in_suites())
      chosen.push_back(read_suite(std::string(suite.name), suite.text));
  for (const std::string& name : names) {
    if (name.ends_with(".json")) {
      chosen.push_back(read_file(name));
      continue;
    }
    const std::size_t before = chosen.size();
    const auto take = [&](const auto& wanted) {
      for (const SuiteText& suite : built_in_suites())
        if (wanted(suite.name)) chosen.push_back(read_suite(std::string(suite.name), suite.text));
    };
    take([&](std::string_view suite) { return suite == name; });
    if (chosen.size() == before)
      take([&](std::string_view suite) { return suite.starts_with(name + "_"); });
    if (chosen.size() == before)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("there is no suite '{}'; `ashlar bench cpu --list` names them", name));
  }
  return chosen;
}

std::vector<SuiteGraph> suite_graphs(const std::vector<std::string>& suites) {
  std::vector<SuiteGraph> graphs;
  for (const Suite& suite : choose_suites(suites))
    for (const Case& one : suite.cases)
      graphs.push_back({suite.name + "/" + one.name, one.problem.graph});
  return graphs;
}

}  // namespace ashlar::bench
