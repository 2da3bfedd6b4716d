#include "cuda/jit/kernel_text.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/fail.hpp"
#include "base/log.hpp"
#include "base/settings.hpp"

namespace ashlar::cuda {

namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) fail(ErrorCode::io, "cuda: the kernel file '{}' cannot be read", path.string());
  if (!text.ends_with('\n')) text += '\n';  // files start on a line of their own
  return text;
}

const KernelTexts& of_process() {
  static const KernelTexts texts(settings().kernels);
  return texts;
}

}  // namespace

KernelTexts::KernelTexts(const std::string& folder) {
  if (folder.empty()) return;
  try {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_regular_file() && entry.path().extension() == ".cuh")
        overrides_[entry.path().lexically_relative(folder).generic_string()] =
            read_text(entry.path());
  } catch (const std::filesystem::filesystem_error& error) {
    fail(ErrorCode::io, "cuda: no kernel files can be read from '{}' (ASHLAR_KERNELS): {}", folder,
         error.code().message());
  }
  if (overrides_.empty())
    fail(ErrorCode::io, "cuda: there are no kernel files (*.cuh) in '{}' (ASHLAR_KERNELS)", folder);
  log(LogLevel::info, "cuda: {} kernel files come from {} (ASHLAR_KERNELS)", overrides_.size(),
      folder);
}

std::string_view KernelTexts::text_of(std::string_view name) const {
  if (const auto found = overrides_.find(name); found != overrides_.end()) return found->second;
  for (const KernelFile& file : kernel_files())
    if (file.name == name) return file.text;
  fail(overrides_.empty() ? ErrorCode::internal : ErrorCode::io,
       "cuda: there is no kernel file '{}'", name);
}

struct KernelTexts::Assembly {
  std::vector<std::string_view> seen;
  std::string library;
};

// Appends the file's own lines to `body`, after adding its includes to the library once.
void KernelTexts::take(std::string_view name, Assembly& assembly, std::string& body) const {
  std::string_view text = text_of(name);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    constexpr std::string_view kInclude = "#include \"";
    if (line.starts_with("#pragma once")) continue;
    if (!line.starts_with(kInclude)) {
      body += line;
      continue;
    }
    const std::string_view included =
        line.substr(kInclude.size(), line.rfind('"') - kInclude.size());
    std::vector<std::string_view>& seen = assembly.seen;
    if (std::find(seen.begin(), seen.end(), included) != seen.end()) continue;
    seen.push_back(included);
    std::string own;
    take(included, assembly, own);
    assembly.library += own;
  }
}

std::string KernelTexts::assemble(std::span<const std::string_view> kernel_files,
                                  std::string_view head) const {
  Assembly assembly;
  std::string body;
  for (std::string_view file : kernel_files) take(file, assembly, body);
  return assembly.library + std::string(head) + body;
}

std::string assemble(std::string_view kernel_file, std::string_view head) {
  return assemble(std::span(&kernel_file, 1), head);
}

std::string assemble(std::span<const std::string_view> kernel_files, std::string_view head) {
  return of_process().assemble(kernel_files, head);
}

}  // namespace ashlar::cuda
