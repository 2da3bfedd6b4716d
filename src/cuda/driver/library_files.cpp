#include "cuda/driver/library_files.hpp"

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

// The entries of /etc/ld.so.cache for a library name. Its format, all integers of 4 bytes: a header
// of 48 bytes that starts with a magic string and has the number of entries at offset 20; then
// entries of 24 bytes: flags, and the file offsets of name and path.
std::vector<std::string> cached_paths(const std::string& name) {
  constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
  constexpr std::size_t kHeader = 48, kEntry = 24;
  constexpr std::uint32_t kForThisKind = 0xff00;  // zero: 32-bit libraries
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
  const auto add_from = [&](const std::vector<std::string>& folders, const std::string& name,
                            const char* place) {
    for (const std::string& folder : folders) add(folder + "/" + name, place, true);
  };
  for (const std::string& name : query.names) {
    add_from(loader_folders_of_environment(), name, "LD_LIBRARY_PATH");
    for (const std::string& path : cached_paths(name)) add(path, "loader's cache", true);
    add_from(loader_folders(), name, "system folder");
  }
  for (const SearchFolder& folder : fallback_folders(query))
    for (const std::string& path : matching_files(folder.path + "/" + query.file + "*"))
      add(path, folder.place, false);
  return files;
}

}  // namespace ashlar::cuda
