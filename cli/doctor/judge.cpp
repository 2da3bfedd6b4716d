#include <ashlar/version.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "doctor/facts.hpp"

namespace ashlar::cli {

namespace {

using Findings = std::vector<Finding>;
constexpr bool kProblem = true, kNote = false;

std::string dotted(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

void judge_driver(const Facts& facts, Findings& findings) {
  if (!facts.opening_trouble.empty())
    findings.push_back(
        {kProblem, "opening-fails",
         fmt::format("opening the driver, NVRTC and cuBLASLt fails: {}", facts.opening_trouble),
         "env -u LD_LIBRARY_PATH -u LD_PRELOAD ashlar doctor"});
  const OpenedLibrary* driver = opened_library(facts, "libcuda");
  if (driver == nullptr || driver->usable) return;
  if (driver->path.empty())
    findings.push_back(
        facts.has_nvidia_hardware
            ? Finding{kProblem, "no-driver",
                      fmt::format("there is an NVIDIA GPU, but {}", driver->reason),
                      "sudo apt install nvidia-driver-580, or in a container: docker run --gpus "
                      "all"}
            : Finding{kNote, "no-driver",
                      "this machine has no NVIDIA GPU and no driver: everything runs on the CPU",
                      ""});
  else if (driver->reason.find("no GPU") != std::string::npos && !facts.has_nvidia_hardware)
    findings.push_back(
        {kNote, "no-gpu", fmt::format("{}: everything runs on the CPU", driver->reason), ""});
  else
    findings.push_back({kProblem, "driver-unusable", driver->reason,
                        driver->reason.find("no GPU") != std::string::npos
                            ? "unset CUDA_VISIBLE_DEVICES; nvidia-smi"
                            : "nvidia-smi; then install a newer driver or restart the machine"});
}

void judge_driver_files(const Facts& facts, Findings& findings) {
  const CopyFacts* driver = chosen_copy(facts, "libcuda");
  if (driver == nullptr) return;
  if (driver->copy.file.find("/stubs/") != std::string::npos)
    findings.push_back(
        {kProblem, "driver-stub",
         fmt::format("{} is a stub for linking, it drives no GPU", driver->copy.path),
         "take the folder 'stubs' out of LD_LIBRARY_PATH"});
  const std::string version = version_in_name(driver->copy.file);
  if (!version.empty() && !facts.kernel_driver.empty() && version != facts.kernel_driver &&
      driver->copy.file.find("/compat/") == std::string::npos)
    findings.push_back({kProblem, "driver-mismatch",
                        fmt::format("the kernel runs driver {}, {} is {}", facts.kernel_driver,
                                    driver->copy.path, version),
                        "restart the machine, or install the same version of both parts"});
}

// The first NVRTC that compiles for a capability, as 1000 * major + 10 * minor.
int nvrtc_needed(int capability) {
  if (capability == 103 || capability == 121) return 12090;
  return capability >= 100 ? 12080 : 12000;
}

void judge_compiler(const Facts& facts, Findings& findings) {
  const OpenedLibrary* nvrtc = opened_library(facts, "libnvrtc");
  const OpenedLibrary* driver = opened_library(facts, "libcuda");
  if (nvrtc == nullptr) return;
  if (!nvrtc->usable) {
    const bool has_bundles =
        std::any_of(facts.bundles.begin(), facts.bundles.end(),
                    [](const BundleFacts& bundle) { return bundle.trouble.empty(); });
    findings.push_back({!facts.gpus.empty() && !has_bundles, "no-nvrtc", nvrtc->reason,
                        "pip install nvidia-cuda-nvrtc, or export ASHLAR_NVRTC=/path/libnvrtc.so"});
    return;
  }
  if (driver != nullptr && driver->version > 0 && nvrtc->version / 1000 > driver->version / 1000)
    findings.push_back({kProblem, "nvrtc-newer-than-driver",
                        fmt::format("NVRTC {} makes code that a driver for CUDA {} cannot load",
                                    dotted(nvrtc->version), dotted(driver->version)),
                        fmt::format("pip install 'nvidia-cuda-nvrtc-cu{}', or a newer driver",
                                    driver->version / 1000)});
  for (const DeviceProps& gpu : facts.gpus) {
    const int capability = gpu.compute_capability;
    if (capability < 75)
      findings.push_back({kProblem, "gpu-too-old",
                          fmt::format("{} ({}) is of compute capability {}.{}, Ashlar's kernels "
                                      "need 7.5",
                                      gpu.name, gpu.description, capability / 10, capability % 10),
                          "ashlar run GRAPH.json --device cpu"});
    else if (nvrtc->version < nvrtc_needed(capability))
      findings.push_back({kProblem, "nvrtc-too-old",
                          fmt::format("{} is of compute capability {}.{}, NVRTC {} compiles for it "
                                      "from {} on",
                                      gpu.name, capability / 10, capability % 10,
                                      dotted(nvrtc->version), dotted(nvrtc_needed(capability))),
                          "pip install --upgrade nvidia-cuda-nvrtc"});
  }
}

std::string titled(const CopyFacts& one) {
  return fmt::format("{} ({})", one.copy.path,
                     one.version.version.empty() ? "version unknown" : one.version.version);
}

// Two copies of one name that programs may get, depending on their folders and the environment.
void judge_pair(const CopyFacts& first, const CopyFacts& other, Findings& findings) {
  const auto name = [](const CopyFacts& one) {
    return std::filesystem::path(one.copy.path).filename();
  };
  const bool first_wins = first.copy.is_loaded || first.copy.place == "LD_LIBRARY_PATH";
  if (first.copy.library != other.copy.library || name(first) != name(other)) return;
  if (first.version.version == other.version.version && first.version.maker == other.version.maker)
    return;
  if (!other.copy.on_loader_path && !(first_wins && other.copy.place == "Python package")) return;
  findings.push_back({kProblem, first.copy.is_loaded ? "wrong-preload" : "two-copies",
                      fmt::format("two different {}: {} hides {}", name(first).string(),
                                  titled(first), titled(other)),
                      first.copy.is_loaded ? "unset LD_PRELOAD"
                      : first_wins         ? "unset LD_LIBRARY_PATH, or take one folder out"
                                           : "remove one of the two, then sudo ldconfig"});
}

void judge_copies(const Facts& facts, Findings& findings) {
  for (std::size_t i = 0; i < facts.copies.size(); ++i) {
    const CopyFacts& one = facts.copies[i];
    const LibraryCopy& copy = one.copy;
    if (!one.version.trouble.empty()) {
      const bool matters =
          copy.on_loader_path || copy.is_loaded || copy.place.starts_with("ASHLAR");
      findings.push_back({matters, copy.is_loaded ? "wrong-preload" : "broken-library",
                          fmt::format("{} cannot be used: {}", copy.path, one.version.trouble),
                          copy.is_loaded ? "unset LD_PRELOAD" : "remove or reinstall it"});
    } else if (copy.on_loader_path || copy.is_loaded) {
      for (std::size_t k = i + 1; k < facts.copies.size(); ++k)
        if (facts.copies[k].version.trouble.empty()) judge_pair(one, facts.copies[k], findings);
    }
  }
}

void judge_cache(const Facts& facts, Findings& findings) {
  const CacheHealth& cache = facts.cache;
  if (!cache.trouble.empty())
    findings.push_back({kProblem, "cache-unusable",
                        fmt::format("compiled kernels cannot be kept: {}", cache.trouble),
                        cache.trouble.find("chmod") != std::string::npos
                            ? fmt::format("chmod 700 '{}'", cache.directory)
                            : "export ASHLAR_CACHE=/a/folder/of/yours"});
  if (!cache.damaged.empty())
    findings.push_back({kProblem, "cache-damaged",
                        fmt::format("{} of {} kept kernels are damaged and will be made again",
                                    cache.damaged.size(), cache.entries),
                        fmt::format("rm '{}'", fmt::join(cache.damaged, "' '"))});
  for (const BundleFacts& bundle : facts.bundles)
    if (!bundle.trouble.empty())
      findings.push_back(
          {kProblem, "bundle-unusable",
           fmt::format("the kernel bundle {} is skipped: {}", bundle.path, bundle.trouble),
           "ashlar bundle --device cuda:0 GRAPH.json..., or remove it from "
           "ASHLAR_BUNDLE"});
    else if (bundle.version != ASHLAR_VERSION)
      findings.push_back({kProblem, "bundle-version",
                          fmt::format("the kernel bundle {} was made by Ashlar {}, this is {}",
                                      bundle.path, bundle.version, ASHLAR_VERSION),
                          "make it again with ashlar bundle"});
  if (!facts.kernel_folder.empty())
    findings.push_back(
        {kNote, "other-kernels",
         fmt::format("kernel files of {} come before the library's own", facts.kernel_folder),
         "unset ASHLAR_KERNELS"});
}

}  // namespace

std::vector<Finding> judge(const Facts& facts) {
  Findings findings;
  judge_driver(facts, findings);
  judge_driver_files(facts, findings);
  judge_compiler(facts, findings);
  judge_copies(facts, findings);
  judge_cache(facts, findings);
  const OpenedLibrary* nvrtc = opened_library(facts, "libnvrtc");
  const bool no_compiler = nvrtc != nullptr && !nvrtc->usable;  // a finding already
  for (const Trial& trial : facts.trials)
    if (!trial.ok && !(no_compiler && trial.device.starts_with("cuda")))
      findings.push_back(
          {kProblem, trial.name + "-fails",
           fmt::format("a small {} on {} fails: {}", trial.name, trial.device, trial.text),
           "ASHLAR_LOG=debug ASHLAR_CUDA_SYNC=1 ashlar doctor"});
  return findings;
}

bool is_healthy(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.is_problem; });
}

}  // namespace ashlar::cli
