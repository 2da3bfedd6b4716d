// The text of the GPU kernels, embedded in the library.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace ashlar::cuda {

struct KernelFile {
  std::string_view name;  // from src/cuda/kernels: "lib/elements.cuh"
  std::string_view text;
};
std::span<const KernelFile> kernel_files();

// Kernel files by name. Those of a folder, which has them as src/cuda/kernels does, come before
// those of the library: whoever changes a kernel tries it without building anything.
class KernelTexts {
 public:
  // Reads the folder; throws Error(io) where that cannot be done. Empty: the library's files alone.
  explicit KernelTexts(const std::string& folder);

  // One text for the compiler: `head` (what an engine printed) between the library files it needs
  // and the kernel, which may be several files one after the other. Their lines `#include "..."`
  // name library files; each is put in once, before `head`.
  std::string assemble(std::span<const std::string_view> kernel_files, std::string_view head) const;

 private:
  struct Assembly;
  void take(std::string_view name, Assembly& assembly, std::string& body) const;
  std::string_view text_of(std::string_view name) const;
  std::map<std::string, std::string, std::less<>> overrides_;
};

// With the files that this process has (ASHLAR_KERNELS).
std::string assemble(std::string_view kernel_file, std::string_view head);
std::string assemble(std::span<const std::string_view> kernel_files, std::string_view head);

}  // namespace ashlar::cuda
