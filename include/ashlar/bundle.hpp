// Packs: the kernels of plans, compiled for a GPU that need not be here, in one file. Where a pack
// is found (docs/jit.md), plans that need its kernels neither compile nor ask for a compiler.
#pragma once

#include <ashlar/plan.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ashlar {

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
// Throws Error(io) for what is no pack, or is damaged; every kernel is looked at.
BundleContents read_bundle(const std::string& path);

class BundleBuilder {
 public:
  // "sm_90a", "sm_80": plans are made as for the known GPUs of that architecture. Throws
  // Error(invalid_argument) for one that Ashlar has no kernels for.
  explicit BundleBuilder(const std::string& architecture);
  // For one GPU only.
  explicit BundleBuilder(const Device& device);
  ~BundleBuilder();
  BundleBuilder(BundleBuilder&& other) noexcept;
  BundleBuilder& operator=(BundleBuilder&& other) noexcept;

  // Notes the kernels that compile() would want for this graph; with options.tune all those that
  // it would time.
  void add(const Graph& graph, const CompileOptions& options = {});
  int kernel_count() const;  // different ones, so far
  // Regions that no kernel takes: the processor runs them.
  int regions_without_kernel() const;

  // Compiles what was noted, on all processors, and returns the file's contents. Throws
  // Error(device) when there is no NVRTC.
  std::string build(const std::function<void(int done, int all)>& progress = {}) const;
  const std::string& architecture() const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace ashlar
