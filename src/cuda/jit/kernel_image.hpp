// Kernel text to machine code: from a pack, from the cache, or from the compiler.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file_cache.hpp"
#include "cuda/jit/bundle.hpp"

namespace ashlar::cuda {

struct KernelSource {
  std::string name;  // for messages and the compiler: "pointwise"
  std::string text;
};

struct KernelImage {
  std::string cubin;
  std::string log;  // what the compiler said
  enum class From : std::uint8_t { bundle, cache, compiler } from = From::compiler;
};

// The same source for the same architecture is made once per process, however many threads ask for
// it at once, and once per machine, as far as the cache can be written. Needs no compiler where a
// pack or the cache has it: the key is the text, the architecture and the version of Ashlar, not
// the compiler's.
class KernelImages {
 public:
  explicit KernelImages(FileCache disk, Bundles bundles = {});
  ~KernelImages();
  std::shared_ptr<const KernelImage> get(const KernelSource& source,
                                         const std::string& architecture);

 private:
  struct Store;
  std::unique_ptr<Store> store_;
};
// Those of this process, from the packs it finds (bundle_files), kept in the user's cache
// directory.
KernelImages& kernel_images();
// Where they are kept; empty: nowhere.
std::string cubin_directory();

// The image of a source as an item of a pack.
PackedItem packed(const KernelSource& source, const std::string& architecture,
                  const KernelImage& image);

// "sm_90a" for 90, "sm_80" for 80: the target whose instructions engines may use.
std::string architecture_of(int compute_capability);

// What the log reports for its kernels: the largest of each.
struct Resources {
  int registers = 0;
  int spilled_bytes = 0;
  int local_bytes = 0;  // of a thread: what was spilled, and arrays that are not in registers
};
Resources resources_of(const std::string& log);

}  // namespace ashlar::cuda
