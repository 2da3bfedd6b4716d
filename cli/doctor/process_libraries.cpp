#include "doctor/process_libraries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ashlar/error.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

namespace ashlar::cli {

namespace {

constexpr std::array kPrefixes = {"libcuda.so",     "libcudart.so", "libnvrtc.so", "libcublas.so",
                                  "libcublasLt.so", "libcudnn.so",  "libcudnn_"};

bool is_known(const std::string& file) {
  return file.find(".so") != std::string::npos &&
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](const char* prefix) { return file.starts_with(prefix); });
}

}  // namespace

// A line: addresses, rights, offset, device, inode, spaces, path.
std::vector<MappedLibrary> mapped_libraries(const std::string& maps) {
  std::vector<MappedLibrary> result;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find('/');
    if (at == std::string::npos) continue;
    const std::string path = line.substr(at);
    const std::string file = path.substr(path.rfind('/') + 1);
    if (!is_known(file) ||
        std::any_of(result.begin(), result.end(),
                    [&](const MappedLibrary& known) { return known.path == path; }))
      continue;
    constexpr std::string_view kDeleted = " (deleted)";
    const std::string clean =
        path.ends_with(kDeleted) ? path.substr(0, path.size() - kDeleted.size()) : path;
    result.push_back({file.substr(0, file.find(".so")), path, version_in_name(clean)});
  }
  return result;
}

std::vector<MappedLibrary> libraries_of_process(long process) {
  const std::string path = fmt::format("/proc/{}/maps", process);
  errno = 0;
  std::ifstream file(path);
  const auto refuse = [&](int reason) {
    if (reason == ENOENT || reason == ESRCH)
      throw Error(ErrorCode::io, fmt::format("there is no process {}", process));
    throw Error(ErrorCode::io,
                fmt::format("process {} may not be looked into: {}; its user or root may", process,
                            std::strerror(reason)));
  };
  if (!file.is_open()) refuse(errno);
  errno = 0;
  const std::string maps{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (maps.empty() && errno != 0) refuse(errno);
  return mapped_libraries(maps);
}

std::vector<Finding> judge_mapped(const std::vector<MappedLibrary>& libraries) {
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < libraries.size(); ++i)
    for (std::size_t k = i + 1; k < libraries.size(); ++k) {
      const MappedLibrary &one = libraries[i], &other = libraries[k];
      if (one.name == other.name)
        findings.push_back(
            {true, "two-copies",
             fmt::format("two copies of {} are mapped: {} and {}", one.name, one.path, other.path),
             "unset LD_LIBRARY_PATH and LD_PRELOAD, start the program again"});
      else if (one.name == "libcudnn" && other.name.starts_with("libcudnn_") &&
               !one.version.empty() && !other.version.empty() && one.version != other.version)
        findings.push_back({true, "mixed-cudnn",
                            fmt::format("parts of two versions of cuDNN are mapped: {} and {}",
                                        one.path, other.path),
                            "unset LD_LIBRARY_PATH, start the program again"});
    }
  return findings;
}

std::string mapped_text(long process, const std::vector<MappedLibrary>& libraries,
                        const std::vector<Finding>& findings) {
  std::string text = fmt::format("process {}: {} libraries of CUDA and cuDNN are loaded\n", process,
                                 libraries.empty() ? "no" : std::to_string(libraries.size()));
  for (const MappedLibrary& one : libraries)
    text += fmt::format("  {:<20} {:<12} {}\n", one.name, one.version.empty() ? "?" : one.version,
                        one.path);
  for (const Finding& finding : findings)
    text += fmt::format("PROBLEM: {}\n  fix: {}\n", finding.sentence, finding.fix);
  return text;
}

std::string mapped_json(long process, const std::vector<MappedLibrary>& libraries,
                        const std::vector<Finding>& findings) {
  nlohmann::ordered_json json = {{"format", "ashlar-doctor-process"},
                                 {"version", 1},
                                 {"process", process},
                                 {"healthy", is_healthy(findings)},
                                 {"libraries", nlohmann::ordered_json::array()},
                                 {"findings", nlohmann::ordered_json::array()}};
  for (const MappedLibrary& one : libraries)
    json["libraries"].push_back({{"name", one.name}, {"path", one.path}, {"version", one.version}});
  for (const Finding& finding : findings)
    json["findings"].push_back({{"severity", "problem"},
                                {"kind", finding.kind},
                                {"sentence", finding.sentence},
                                {"fix", finding.fix}});
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ashlar::cli
