// Modules and launches of the emulated GPU: a "cubin" is a shared library of the host.
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "memory.hpp"
#include "objects.hpp"
#include "options.hpp"

namespace emulated {

namespace {

constexpr unsigned kSharedWithoutAsking = 48 << 10;
constexpr std::uint16_t kMachineCuda = 190;  // e_machine of real cubins

// Size of an ELF file in memory from its section table; 0: not ELF.
std::size_t file_bytes(const void* code) {
  Elf64_Ehdr header;
  std::memcpy(&header, code, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  return header.e_shoff + std::size_t{header.e_shentsize} * header.e_shnum;
}

// `file` stays open as long as the library: the loader identifies libraries by path, and
// descriptors of closed files are reused.
void* open_code(const void* code, std::size_t bytes, int& file) {
  file = memfd_create("emulated_kernel", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void* handle = nullptr;
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t written = write(file, static_cast<const char*>(code) + done, bytes - done);
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  if (done == bytes)
    handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) close(file);
  return handle;
}

// "sm_90a" runs on 9.0 only, "sm_80" on 8.0 and later 8.x.
bool runs_here(const std::string& architecture) {
  const int made_for = std::atoi(architecture.c_str() + 3), have = options().capability;
  return architecture.back() == 'a' ? made_for == have
                                    : made_for / 10 == have / 10 && made_for <= have;
}

void report(const Launch& launch, const std::string& error) {
  std::fprintf(stderr, "emulated CUDA: kernel '%s': %s\n", launch.name.c_str(), error.c_str());
}

// Finds host pointers in the parameters: values in the address range of the program, its heap and
// its libraries that are not GPU memory. Empty, or a message.
std::string host_address(const Launch& launch) {
  constexpr std::uint64_t kLowest = 0x55ull << 40, kHighest = 1ull << 47;
  for (std::size_t p = 0; p < launch.parameters.size(); ++p)
    for (unsigned at = 0; at + 8 <= launch.kernel->parameter_bytes[p]; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, static_cast<const char*>(launch.parameters[p]) + at, sizeof word);
      if (word >= kLowest && word < kHighest && !is_inside(word, 0))
        return "byte " + std::to_string(at) + " of the parameters is a host address (" +
               std::to_string(word) + "), not GPU memory";
    }
  return {};
}

Result run(const Launch& launch) {
  if (const std::string error = host_address(launch); !error.empty()) {
    report(launch, error);
    return Result::illegal_address;
  }
  if (const std::string error = run_launch(launch); !error.empty()) {
    report(launch, error);
    return Result::launch_failed;
  }
  if (const std::string error = overrun_allocation(); !error.empty()) {
    report(launch, error);
    return Result::illegal_address;
  }
  return Result::success;
}

int static_shared_bytes(const Image& image) {
  return static_cast<int>(image.shared_end - image.shared_begin);
}

// Occupancy by shared memory and threads.
int blocks_at_once(const KernelObject& kernel, unsigned threads, std::size_t shared_bytes) {
  constexpr int kOfBlock = 1 << 10;  // shared memory reserved by the system per CTA
  const int shared =
      static_shared_bytes(*kernel.library->image) + static_cast<int>(shared_bytes) + kOfBlock;
  return std::min({32, 2048 / static_cast<int>(std::max(threads, 1u)), (228 << 10) / shared});
}

bool is_cooperative(const LaunchConfig& config) {
  for (unsigned i = 0; i < config.attribute_count; ++i)
    if (config.attributes[i].id == LaunchAttributeId::cooperative)
      return config.attributes[i].value.cooperative != 0;
  return false;
}

// Cluster size along x; 0: the cluster has another dimension, which is not supported.
unsigned cluster_of(const LaunchConfig& config) {
  unsigned blocks = 1;
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    const LaunchAttribute& attribute = config.attributes[i];
    const auto& cluster = attribute.value.cluster;
    if (attribute.id != LaunchAttributeId::cluster_dimension) continue;
    blocks = cluster.y == 1 && cluster.z == 1 ? cluster.x : 0;
  }
  return blocks;
}

Result check_shape(const LaunchConfig& config, const KernelObject& kernel) {
  const std::uint64_t threads = std::uint64_t{config.block_x} * config.block_y * config.block_z;
  if (threads == 0 || threads > 1024 || config.block_z > 64) return Result::invalid_value;
  if (config.grid_x == 0 || config.grid_y == 0 || config.grid_z == 0 ||
      config.grid_x > 0x7fffffffu || config.grid_y > 65535 || config.grid_z > 65535)
    return Result::invalid_value;
  if (threads > static_cast<std::uint64_t>(kernel.kernel->most_threads))
    return Result::launch_out_of_resources;
  if (config.shared_bytes > kSharedWithoutAsking &&
      config.shared_bytes > static_cast<unsigned>(kernel.dynamic_shared_bytes))
    return Result::invalid_value;
  constexpr unsigned kMaxBlocks = 8;
  const unsigned cluster = cluster_of(config);
  if (cluster == 0 || config.grid_x % cluster != 0) return Result::invalid_value;
  if (cluster > kMaxBlocks || (cluster > 1 && options().capability < 90)) return kNotSupported;
  const std::uint64_t blocks = std::uint64_t{config.grid_x} * config.grid_y * config.grid_z;
  const auto at_once = static_cast<std::uint64_t>(
      blocks_at_once(kernel, static_cast<unsigned>(threads), config.shared_bytes) *
      options().sm_count);
  if (is_cooperative(config) && blocks > at_once) return kCooperativeTooLarge;
  return Result::success;
}

class AlignedBytes {
 public:
  explicit AlignedBytes(const std::vector<char>& bytes)
      : memory_(bytes.size() + kAlignment),
        data_(memory_.data() +
              (kAlignment - reinterpret_cast<std::uintptr_t>(memory_.data()) % kAlignment)) {
    std::copy(bytes.begin(), bytes.end(), data_);
  }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  AlignedBytes(AlignedBytes&&) = default;
  void* data() { return data_; }

 private:
  static constexpr std::size_t kAlignment = 128;
  std::vector<char> memory_;
  char* data_;
};

const KernelObject& kernel_of(const GraphNodeObject& node) {
  return *reinterpret_cast<const KernelObject*>(node.kernel.function);
}

}  // namespace

// Copies the arguments: the caller's may be gone when a graph runs.
void take_arguments(GraphNodeObject& node) {
  const Kernel& kernel = *kernel_of(node).kernel;
  node.arguments.clear();
  for (int p = 0; p < kernel.parameters; ++p) {
    const auto* from = static_cast<const char*>(node.kernel.arguments[p]);
    node.arguments.emplace_back(from, from + kernel.parameter_bytes[p]);
  }
}

Result launch(const GraphNodeObject& node) {
  const KernelObject& kernel = kernel_of(node);
  // Kernels may modify their parameters: each launch gets an aligned copy.
  std::vector<AlignedBytes> copies(node.arguments.begin(), node.arguments.end());
  Launch what{.image = kernel.library->image,
              .kernel = kernel.kernel,
              .name = kernel.name,
              .grid = {node.kernel.grid_x, node.kernel.grid_y, node.kernel.grid_z},
              .block = {node.kernel.block_x, node.kernel.block_y, node.kernel.block_z},
              .shared_bytes = node.kernel.shared_bytes,
              .cooperative = node.is_cooperative,
              .parameters = {},
              .cluster = node.cluster,
              .cluster_state = kernel.library->cluster,
              .tensor_state = kernel.library->tensor};
  for (AlignedBytes& copy : copies) what.parameters.push_back(copy.data());
  return run(what);
}

}  // namespace emulated

using namespace emulated;

extern "C" {

Result cuLibraryLoadData(LibraryHandle* library, const void* code, int*, void**, unsigned, int*,
                         void**, unsigned) {
  const std::size_t bytes = file_bytes(code);
  if (bytes == 0) return Result::invalid_image;
  Elf64_Ehdr header;
  std::memcpy(&header, code, sizeof header);
  if (header.e_machine == kMachineCuda) return Result::no_binary_for_gpu;
  int file = -1;
  void* handle = open_code(code, bytes, file);
  const auto* image =
      handle != nullptr ? static_cast<const Image*>(dlsym(handle, "emulated_image")) : nullptr;
  if (image == nullptr) return Result::invalid_image;
  if (!runs_here(image->architecture)) return Result::no_binary_for_gpu;
  if (static_shared_bytes(*image) > static_cast<int>(kSharedWithoutAsking) + 256)
    return Result::invalid_image;
  auto* const* cluster = static_cast<ClusterState* const*>(dlsym(handle, "emulated_cluster"));
  auto* const* tensor = static_cast<TensorState* const*>(dlsym(handle, "emulated_tensor"));
  *library = new LibraryObject{handle,
                               file,
                               image,
                               cluster != nullptr ? *cluster : nullptr,
                               tensor != nullptr ? *tensor : nullptr,
                               {}};
  return Result::success;
}
Result cuLibraryUnload(LibraryHandle library) {
  for (KernelHandle kernel : library->kernels) delete kernel;
  dlclose(library->handle);
  close(library->file);
  delete library;
  return Result::success;
}
Result cuLibraryGetKernel(KernelHandle* kernel, LibraryHandle library, const char* name) {
  const void* found = dlsym(library->handle, (std::string("emulated_") + name).c_str());
  if (found == nullptr) return Result::not_found;
  *kernel = new KernelObject{library, static_cast<const Kernel*>(found), name, 0};
  library->kernels.push_back(*kernel);
  return Result::success;
}
Result cuKernelGetFunction(FunctionHandle* function, KernelHandle kernel) {
  if (current_context() == nullptr) return kInvalidContext;
  *function = reinterpret_cast<FunctionHandle>(kernel);
  return Result::success;
}
Result cuKernelGetAttribute(int* value, KernelAttribute attribute, KernelHandle kernel,
                            DeviceOrdinal) {
  switch (attribute) {
    case KernelAttribute::max_threads: *value = kernel->kernel->most_threads; break;
    case KernelAttribute::static_shared_bytes:
      *value = static_shared_bytes(*kernel->library->image);
      break;
    case KernelAttribute::local_bytes: *value = 0; break;
    case KernelAttribute::registers: *value = 32; break;
    case KernelAttribute::dynamic_shared_bytes: *value = kernel->dynamic_shared_bytes; break;
    default: return Result::invalid_value;
  }
  return Result::success;
}
Result cuKernelSetAttribute(KernelAttribute attribute, int value, KernelHandle kernel,
                            DeviceOrdinal) {
  if (attribute != KernelAttribute::dynamic_shared_bytes || value > kMaxSharedBytes)
    return Result::invalid_value;
  kernel->dynamic_shared_bytes = value;
  return Result::success;
}

Result cuLaunchKernelEx(const LaunchConfig* config, FunctionHandle function, void** arguments,
                        void**) {
  const auto& kernel = *reinterpret_cast<const KernelObject*>(function);
  if (const Result result = check_shape(*config, kernel); result != Result::success) return result;
  GraphNodeObject node{.type = GraphNodeType::kernel,
                       .kernel = {.function = function,
                                  .grid_x = config->grid_x,
                                  .grid_y = config->grid_y,
                                  .grid_z = config->grid_z,
                                  .block_x = config->block_x,
                                  .block_y = config->block_y,
                                  .block_z = config->block_z,
                                  .shared_bytes = config->shared_bytes,
                                  .arguments = arguments},
                       .is_cooperative = is_cooperative(*config),
                       .cluster = cluster_of(*config)};
  take_arguments(node);
  return submit(config->stream, std::move(node));
}

Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, FunctionHandle function,
                                                   int threads, std::size_t shared_bytes) {
  const auto& kernel = *reinterpret_cast<const KernelObject*>(function);
  *blocks = blocks_at_once(kernel, static_cast<unsigned>(threads), shared_bytes);
  return Result::success;
}

}  // extern "C"

EMULATES(cuLibraryLoadData, load_library);
EMULATES(cuLibraryUnload, unload_library);
EMULATES(cuLibraryGetKernel, library_kernel);
EMULATES(cuKernelGetFunction, kernel_function);
EMULATES(cuKernelGetAttribute, kernel_attribute);
EMULATES(cuKernelSetAttribute, set_kernel_attribute);
EMULATES(cuLaunchKernelEx, launch);
EMULATES(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks_per_sm);
