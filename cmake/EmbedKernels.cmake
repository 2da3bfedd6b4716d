# cmake -DFOLDER=src/cuda/kernels -DOUTPUT=FILE.cpp -P EmbedKernels.cmake: embeds the text of the CUDA
# kernels in the library.

file(GLOB_RECURSE kernels RELATIVE "${FOLDER}" "${FOLDER}/*.cuh")
list(SORT kernels)
set(entries "")
foreach(kernel IN LISTS kernels)
  file(READ "${FOLDER}/${kernel}" text)
  string(APPEND entries "    {\"${kernel}\", R\"cuda(${text})cuda\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Made from src/cuda/kernels by cmake/EmbedKernels.cmake.
#include \"cuda/jit/kernel_text.hpp\"

namespace ashlar::cuda {

static constexpr KernelFile kFiles[] = {
${entries}};

std::span<const KernelFile> kernel_files() { return kFiles; }

}  // namespace ashlar::cuda
")
