// The CUDA C++ text of the kernels, embedded in the library.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace ashlar::cuda {

struct KernelFile {
  std::string_view name;  // relative to src/cuda/kernels: "lib/elements.cuh"
  std::string_view text;
};
std::span<const KernelFile> kernel_files();

// Kernel files by name. Files of a folder laid out like src/cuda/kernels override the embedded
// ones, to try a changed kernel without a build.
class KernelTexts {
 public:
  // Reads the folder; throws Error(io) on failure. Empty: only embedded files.
  explicit KernelTexts(const std::string& folder);

  // The translation unit for the compiler: library files, then `head` (printed by an engine), then
  // the kernel, which may be several files. `#include "..."` lines name library files; each is
  // inserted once, before `head`.
  std::string assemble(std::span<const std::string_view> kernel_files, std::string_view head) const;

 private:
  struct Assembly;
  void take(std::string_view name, Assembly& assembly, std::string& body) const;
  std::string_view text_of(std::string_view name) const;
  std::map<std::string, std::string, std::less<>> overrides_;
};

// With the kernel files of this process (ASHLAR_KERNELS).
std::string assemble(std::string_view kernel_file, std::string_view head);
std::string assemble(std::span<const std::string_view> kernel_files, std::string_view head);

}  // namespace ashlar::cuda
