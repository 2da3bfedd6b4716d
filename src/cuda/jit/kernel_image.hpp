// Kernel text to cubin: from a kernel bundle, from the cache, or from NVRTC.
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
  std::string log;  // compiler log
  enum class From : std::uint8_t { bundle, cache, compiler } from = From::compiler;
};

// Compiles each source once per process and architecture, whichever threads ask for it, and once
// per machine where the cache is writable. No compiler is needed where a bundle or the cache has
// the key: text, architecture and version of Ashlar, not the version of the compiler.
class KernelImages {
 public:
  // Beyond `max_bytes` of images and keys the least recently used images are dropped; their owners
  // keep them, and a later get() finds them in the bundle or the cache again.
  explicit KernelImages(FileCache disk, Bundles bundles = {},
                        std::int64_t max_bytes = std::int64_t{256} << 20);
  ~KernelImages();
  std::shared_ptr<const KernelImage> get(const KernelSource& source,
                                         const std::string& architecture);
  std::int64_t bytes() const;  // of the images and keys in memory

 private:
  struct Store;
  std::unique_ptr<Store> store_;
};
// The images of this process: from the bundles it finds (bundle_files), cached in the user's cache
// directory.
KernelImages& kernel_images();
// Directory of cached cubins; empty: no caching.
std::string cubin_directory();

// The image of a source as an item of a bundle.
PackedItem packed(const KernelSource& source, const std::string& architecture,
                  const KernelImage& image);

// "sm_90a" for 90, "sm_80" for 80: the compilation target.
std::string architecture_of(int compute_capability);

// Resource usage from the ptxas log: the maximum over its kernels.
struct Resources {
  int registers = 0;
  int spilled_bytes = 0;
  int local_bytes = 0;  // stack frame per thread: spills and local arrays
};
Resources resources_of(const std::string& log);

}  // namespace ashlar::cuda
