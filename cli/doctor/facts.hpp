// What the doctor sees, and what follows from it.
#pragma once

#include <ashlar/device.hpp>
#include <ashlar/installation.hpp>
#include <string>
#include <vector>

#include "doctor/library_version.hpp"

namespace ashlar::cli {

struct CopyFacts {
  LibraryCopy copy;
  LibraryVersion version;
};

struct BundleFacts {
  std::string path;
  std::string architecture, version;
  std::string trouble;  // why it cannot be read
};

// Something small that was run and compared with the oracle.
struct Trial {
  std::string device;  // "cuda:0", "cpu"
  std::string name;    // "kernel", "convolution"
  bool ok = false;
  std::string text;
};

struct Facts {
  bool has_nvidia_hardware = false;
  std::string kernel_driver;  // version of the driver's part in the kernel: "580.82.07"
  std::vector<DeviceProps> gpus;
  std::vector<OpenedLibrary> opened;
  std::string opening_trouble;  // the libraries could not be opened without ending the process
  std::vector<CopyFacts> copies;
  CacheHealth cache;
  std::vector<BundleFacts> bundles;
  std::string kernel_folder;  // whose kernel files come before the library's; empty: none
  std::vector<Trial> trials;
};
Facts gather_facts();
// Those of gather_facts() that compile and run something.
std::vector<Trial> run_trials();

struct Finding {
  bool is_problem = false;  // else a note: the machine is healthy
  std::string kind;         // for programs: "no-driver", "two-copies"
  std::string sentence;
  std::string fix;  // a command, or what to do
};
std::vector<Finding> judge(const Facts& facts);
bool is_healthy(const std::vector<Finding>& findings);

// What opening it gave; null where that was not tried.
const OpenedLibrary* opened_library(const Facts& facts, const std::string& library);
// The library that a program gets which asks for this one; null: none.
const CopyFacts* chosen_copy(const Facts& facts, const std::string& library);

std::string facts_text(const Facts& facts, const std::vector<Finding>& findings);
std::string facts_json(const Facts& facts, const std::vector<Finding>& findings);

}  // namespace ashlar::cli
