#include "doctor/facts.hpp"

#include <ashlar/bundle.hpp>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "doctor/apart.hpp"

namespace ashlar::cli {

namespace {

namespace fs = std::filesystem;

constexpr unsigned kOpenSeconds = 60;

std::string first_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// A display or compute adapter of NVIDIA's on the bus, or the device files of one.
bool nvidia_hardware() {
  std::error_code error;
  if (fs::exists("/dev/nvidiactl", error) || fs::exists("/dev/dxg", error)) return true;
  for (const auto& item : fs::directory_iterator("/sys/bus/pci/devices", error))
    if (first_word(item.path() / "vendor") == "0x10de" &&
        first_word(item.path() / "class").starts_with("0x03"))
      return true;
  return false;
}

// The first word with dots after "Kernel Module".
std::string kernel_driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word)
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  return {};
}

std::vector<BundleFacts> bundles() {
  std::vector<BundleFacts> result;
  for (const std::string& path : bundle_paths()) {
    BundleFacts facts;
    facts.path = path;
    try {
      const BundleContents contents = read_bundle(path);
      facts.architecture = contents.architecture;
      facts.version = contents.version;
    } catch (const std::exception& error) {
      facts.trouble = error.what();
    }
    result.push_back(facts);
  }
  return result;
}

}  // namespace

Facts gather_facts() {
  Facts facts;
  // Children first: CUDA does not survive a fork, so this process opens it last.
  facts.trials = run_trials();
  for (LibraryCopy& copy : library_copies()) {
    LibraryVersion version = version_of(copy.library, copy.file);
    facts.copies.push_back({std::move(copy), std::move(version)});
  }
  const Apart opening = run_apart(
      [] {
        open_cuda_libraries();
        return std::string();
      },
      kOpenSeconds);
  if (opening.ok) {
    facts.opened = open_cuda_libraries();
    for (const std::string& name : Device::known_names())
      if (DeviceProps props = Device::named(name).props();
          props.kind == DeviceKind::cuda && props.present)
        facts.gpus.push_back(std::move(props));
  } else {
    facts.opening_trouble = opening.text;
  }
  facts.has_nvidia_hardware = nvidia_hardware();
  facts.kernel_driver = kernel_driver_version();
  facts.cache = cache_health();
  facts.bundles = bundles();
  facts.kernel_folder = kernel_folder();
  return facts;
}

const OpenedLibrary* opened_library(const Facts& facts, const std::string& library) {
  for (const OpenedLibrary& one : facts.opened)
    if (one.library == library) return &one;
  return nullptr;
}

const CopyFacts* chosen_copy(const Facts& facts, const std::string& library) {
  for (const CopyFacts& one : facts.copies)
    if (one.copy.library == library && (one.copy.is_loaded || one.copy.on_loader_path)) return &one;
  return nullptr;
}

}  // namespace ashlar::cli
