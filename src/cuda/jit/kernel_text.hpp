// The text of the GPU kernels, embedded in the library.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ashlar::cuda {

struct KernelFile {
  std::string_view name;  // from src/cuda/kernels: "lib/elements.cuh"
  std::string_view text;
};
std::span<const KernelFile> kernel_files();

// One text for the compiler: `head` (what an engine printed) between the library files it needs and
// the kernel. The file's lines `#include "..."` name those; each is put in once, before `head`.
std::string assemble(std::string_view kernel_file, std::string_view head);
// The same for a kernel in several files, one after the other.
std::string assemble(std::span<const std::string_view> kernel_files, std::string_view head);

}  // namespace ashlar::cuda
