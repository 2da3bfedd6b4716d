#include <ashlar/version.h>
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "doctor/facts.hpp"

namespace ashlar::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLibraries[] = {"libcuda", "libnvrtc", "libcublasLt", "libcudnn"};

// The file that is used here: what Ashlar opened; what the loader would give a program where Ashlar
// opens none. cuBLASLt is left alone where there is no GPU.
std::string used_path(const Facts& facts, const std::string& library) {
  const OpenedLibrary* one = opened_library(facts, library);
  if (one != nullptr && (!one->path.empty() || library != "libcublasLt")) return one->path;
  const CopyFacts* copy = chosen_copy(facts, library);
  return copy != nullptr ? copy->copy.path : "";
}

int driver_version(const Facts& facts) {
  const OpenedLibrary* driver = opened_library(facts, "libcuda");
  return driver != nullptr ? driver->version : 0;
}

std::string version_text(const LibraryVersion& version) {
  if (!version.trouble.empty()) return "broken";
  return version.maker.empty() ? version.version
                               : fmt::format("{} of {}", version.version, version.maker);
}

std::string of_capability(const DeviceProps& gpu) {
  return fmt::format("{}.{}", gpu.compute_capability / 10, gpu.compute_capability % 10);
}

}  // namespace

std::string facts_text(const Facts& facts, const std::vector<Finding>& findings) {
  std::string text;
  const auto line = [&](const auto& label, const std::string& what) {
    fmt::format_to(std::back_inserter(text), "{:<13} {}\n", label, what);
  };
  line("ashlar", ASHLAR_VERSION);
  if (facts.gpus.empty()) line("GPU", "none");
  for (const DeviceProps& gpu : facts.gpus)
    line(gpu.name, fmt::format("{}, compute capability {}", gpu.description, of_capability(gpu)));
  const int version = driver_version(facts);
  line("driver",
       version == 0
           ? "none"
           : fmt::format("{}for CUDA {}.{}",
                         facts.kernel_driver.empty() ? std::string() : facts.kernel_driver + ", ",
                         version / 1000, version % 1000 / 10));
  for (const char* library : kLibraries) {
    const std::string used = used_path(facts, library);
    line(library, used.empty() ? "none" : used);
    for (const CopyFacts& one : facts.copies)
      if (one.copy.library == library)
        fmt::format_to(std::back_inserter(text), "  {:<18}{} ({})\n", version_text(one.version),
                       one.copy.path, one.copy.place);
  }
  const CacheHealth& cache = facts.cache;
  line("cache", cache.directory.empty()
                    ? std::string("none")
                    : fmt::format("{}: {} kernels, {:.1f} MB", cache.directory, cache.entries,
                                  static_cast<double>(cache.bytes) / 1e6));
  for (const BundleFacts& bundle : facts.bundles)
    line("bundle", fmt::format("{} {}", bundle.path, bundle.architecture));
  if (!facts.kernel_folder.empty()) line("kernels", facts.kernel_folder);
  for (const Trial& trial : facts.trials)
    line(trial.name, fmt::format("on {}: {}", trial.device, trial.text));
  text += "\n";
  for (const Finding& finding : findings) {
    fmt::format_to(std::back_inserter(text), "{}: {}\n", finding.is_problem ? "PROBLEM" : "note",
                   finding.sentence);
    if (!finding.fix.empty()) fmt::format_to(std::back_inserter(text), "  fix: {}\n", finding.fix);
  }
  return text + (is_healthy(findings) ? "healthy\n" : "not healthy\n");
}

std::string facts_json(const Facts& facts, const std::vector<Finding>& findings) {
  Json json = {{"format", "ashlar-doctor"},
               {"version", 1},
               {"ashlar", ASHLAR_VERSION},
               {"healthy", is_healthy(findings)},
               {"gpus", Json::array()}};
  for (const DeviceProps& gpu : facts.gpus)
    json["gpus"].push_back({{"name", gpu.name},
                            {"description", gpu.description},
                            {"compute_capability", of_capability(gpu)}});
  json["driver"] = {{"kernel", facts.kernel_driver},
                    {"cuda", driver_version(facts)},
                    {"hardware", facts.has_nvidia_hardware}};
  json["libraries"] = Json::array();
  for (const char* library : kLibraries) {
    Json row = {{"name", library}, {"path", used_path(facts, library)}};
    if (const OpenedLibrary* one = opened_library(facts, library)) {
      row["usable"] = one->usable;
      row["reason"] = one->reason;
    }
    row["copies"] = Json::array();
    for (const CopyFacts& one : facts.copies)
      if (one.copy.library == library)
        row["copies"].push_back({{"path", one.copy.path},
                                 {"file", one.copy.file},
                                 {"place", one.copy.place},
                                 {"on_loader_path", one.copy.on_loader_path},
                                 {"preloaded", one.copy.is_loaded},
                                 {"version", one.version.version},
                                 {"maker", one.version.maker},
                                 {"trouble", one.version.trouble}});
    json["libraries"].push_back(std::move(row));
  }
  json["cache"] = {{"directory", facts.cache.directory},
                   {"trouble", facts.cache.trouble},
                   {"entries", facts.cache.entries},
                   {"bytes", facts.cache.bytes},
                   {"damaged", facts.cache.damaged}};
  json["bundles"] = Json::array();
  for (const BundleFacts& bundle : facts.bundles)
    json["bundles"].push_back({{"path", bundle.path},
                               {"architecture", bundle.architecture},
                               {"version", bundle.version},
                               {"trouble", bundle.trouble}});
  json["kernel_folder"] = facts.kernel_folder;
  json["trials"] = Json::array();
  for (const Trial& trial : facts.trials)
    json["trials"].push_back(
        {{"device", trial.device}, {"name", trial.name}, {"ok", trial.ok}, {"text", trial.text}});
  json["findings"] = Json::array();
  for (const Finding& finding : findings)
    json["findings"].push_back({{"severity", finding.is_problem ? "problem" : "note"},
                                {"kind", finding.kind},
                                {"sentence", finding.sentence},
                                {"fix", finding.fix}});
  // Paths and messages of other libraries may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ashlar::cli
