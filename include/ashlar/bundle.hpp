// Kernel bundles: ahead-of-time compiled kernels of plans in one file, built for a GPU that need
// not be present. Plans whose kernels are in a bundle (docs/jit.md: search paths) need no NVRTC and
// no compilation at first use.
#pragma once

#include <ashlar/plan.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ashlar {

#pragma GCC visibility push(default)

struct BundleContents {
  std::string architecture;  // "sm_90a"
  std::string version;       // of Ashlar
  std::int64_t file_bytes = 0;
  struct Kernel {
    std::string name;
    std::int64_t bytes = 0;
  };
  std::vector<Kernel> kernels;
};
// Reads and verifies every kernel. Throws Error(io) for a file that is damaged or not a bundle.
BundleContents read_bundle(const std::string& path);

class BundleBuilder {
 public:
  // For all known GPUs of an architecture ("sm_90a", "sm_80"). Throws Error(invalid_argument) for
  // an architecture without kernels.
  explicit BundleBuilder(const std::string& architecture);
  // For one GPU model.
  explicit BundleBuilder(const Device& device);
  ~BundleBuilder();
  BundleBuilder(BundleBuilder&& other) noexcept;
  BundleBuilder& operator=(BundleBuilder&& other) noexcept;

  // Adds the kernels that compile() would use for this graph; with options.tune, all candidates
  // that it would time.
  void add(const Graph& graph, const CompileOptions& options = {});
  int kernel_count() const;  // distinct kernels added so far
  // Regions without a GPU kernel: they run on the CPU.
  int regions_without_kernel() const;

  // Compiles all added kernels, on all CPU threads, and returns the contents of the file. Throws
  // Error(device) if NVRTC is not found.
  std::string build(const std::function<void(int done, int all)>& progress = {}) const;
  const std::string& architecture() const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

#pragma GCC visibility pop

}  // namespace ashlar
