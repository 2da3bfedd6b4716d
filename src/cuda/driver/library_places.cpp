#include "cuda/driver/library_places.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/settings.hpp"

namespace ashlar::cuda {

namespace {

namespace fs = std::filesystem;

// The folders that the loader tries for a name: first those of the environment and the program,
// then, after its cache, those of the system.
struct LoaderFolders {
  std::vector<SearchFolder> first, system;
};

LoaderFolders loader_folders() {
  LoaderFolders result;
  void* self = dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size{};
  if (self == nullptr || dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0) return result;
  std::vector<std::max_align_t> memory(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* info = reinterpret_cast<Dl_serinfo*>(memory.data());
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, info) != 0 || dlinfo(self, RTLD_DI_SERINFO, info) != 0)
    return result;
  constexpr unsigned kFromEnvironment = 0x02, kFromProgram = 0x0c;  // of <link.h>'s LA_SER_*
  for (unsigned i = 0; i < info->dls_cnt; ++i) {
    const Dl_serpath& folder = info->dls_serpath[i];
    if ((folder.dls_flags & kFromEnvironment) != 0)
      result.first.push_back({folder.dls_name, "LD_LIBRARY_PATH"});
    else if ((folder.dls_flags & kFromProgram) != 0)
      result.first.push_back({folder.dls_name, "the program's run path"});
    else
      result.system.push_back({folder.dls_name, "system folder"});
  }
  return result;
}

// What /etc/ld.so.cache has for a name. Its form, all numbers 4 bytes: a header of 48 bytes that
// begins with a magic word and has the number of entries at 20; then entries of 24 bytes: flags,
// and where in the file the name and the path begin.
std::vector<std::string> cached_paths(const std::string& name) {
  constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
  constexpr std::size_t kHeader = 48, kEntry = 24;
  constexpr std::uint32_t kForThisKind = 0xff00;  // zero: of 32-bit programs
  std::ifstream file("/etc/ld.so.cache", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t begin = bytes.find(kMagic);
  std::vector<std::string> paths;
  if (begin == std::string::npos || begin + kHeader > bytes.size()) return paths;
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + begin + at, sizeof value);
    return value;
  };
  const auto text = [&](std::size_t at) {
    const std::size_t from = begin + at, end = bytes.find('\0', from);
    return from < bytes.size() && end != std::string::npos ? bytes.substr(from, end - from)
                                                           : std::string();
  };
  const std::size_t count = number(kMagic.size());
  for (std::size_t i = 0; i < count && begin + kHeader + (i + 1) * kEntry <= bytes.size(); ++i) {
    const std::size_t at = kHeader + i * kEntry;
    if ((number(at) & kForThisKind) != 0 && text(number(at + 4)) == name)
      paths.push_back(text(number(at + 8)));
  }
  return paths;
}

}  // namespace

LibraryQuery driver_query() { return {{}, {}, "libcuda.so", {"libcuda.so.1"}, {}}; }

LibraryQuery nvrtc_query() {
  return {settings().nvrtc,
          "ASHLAR_NVRTC",
          "libnvrtc.so",
          {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
          {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "nvidia/cu12/lib"}};
}

LibraryQuery cublaslt_query() {
  return {settings().cublaslt == "off" ? std::string() : settings().cublaslt,
          "ASHLAR_CUBLASLT",
          "libcublasLt.so",
          {"libcublasLt.so.13", "libcublasLt.so.12"},
          {"nvidia/cu13/lib", "nvidia/cublas/lib"}};
}

LibraryQuery cudnn_query() {
  return {{}, {}, "libcudnn.so", {"libcudnn.so.9"}, {"nvidia/cudnn/lib"}};
}

std::vector<LibraryFile> files_of(const LibraryQuery& query) {
  std::vector<LibraryFile> files;
  const auto add = [&](const std::string& path, const std::string& place, bool on_loader_path,
                       bool is_loaded = false) {
    std::error_code error;
    const std::string file = fs::canonical(path, error).string();
    if (error || !fs::is_regular_file(file, error)) return;
    for (LibraryFile& known : files)
      if (known.file == file) {
        known.on_loader_path = known.on_loader_path || on_loader_path;
        return;
      }
    files.push_back({path, file, place, is_loaded, on_loader_path});
  };
  if (!query.own.empty()) add(query.own, query.variable, false);
  for (const std::string& path : loaded_files(query.file)) add(path, "LD_PRELOAD", false, true);
  static const LoaderFolders loader = loader_folders();
  const auto add_from = [&](const std::vector<SearchFolder>& folders, const std::string& name) {
    for (const SearchFolder& folder : folders) add(folder.path + "/" + name, folder.place, true);
  };
  for (const std::string& name : query.names) {
    add_from(loader.first, name);
    for (const std::string& path : cached_paths(name)) add(path, "loader's cache", true);
    add_from(loader.system, name);
  }
  for (const SearchFolder& folder : folders_beyond_the_loader(query))
    for (const std::string& path : matching_files(folder.path + "/" + query.file + "*"))
      add(path, folder.place, false);
  return files;
}

}  // namespace ashlar::cuda
